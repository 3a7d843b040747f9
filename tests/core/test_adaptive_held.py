"""Runs that wait at an `adaptive` endpoint are kept as runs, and show as single messages."""

from __future__ import annotations

import copy

import pytest

from causewire.core.adaptive import Adaptive, AdaptiveMessage, Listed
from causewire.core.endpoint import Blocked, Delivery, RemoteProtocolError, Wait
from causewire.core.run import MessageRun

COUNT = 1000


def waiting(count: int = COUNT) -> Adaptive:
    """An endpoint that waits for message 1 of b; c sent message 1, which lists it, and more."""
    endpoint = Adaptive("a")
    listed = Listed("c1", (), (("b", "a", 1),))
    endpoint.receive_run("c", MessageRun([1], 0, [listed], True))
    mids = range(2, count + 2)
    endpoint.receive_run("c", MessageRun(mids, 1, [f"c{mid}" for mid in mids]))
    return endpoint


def free(endpoint: Adaptive) -> list[Delivery]:
    """Let what the messages wait for arrive; returns what is delivered."""
    endpoint.receive_run("b", MessageRun([1], 0, ["b1"]))
    return endpoint.take_deliveries()


def test_a_run_is_held_as_one() -> None:
    endpoint = waiting()
    assert len(list(endpoint._held.packets())) == 2
    assert endpoint.held_back == COUNT + 1
    assert endpoint.holds_more_than(COUNT, "c")
    assert not endpoint.holds_more_than(COUNT + 1, "c")


def test_it_is_delivered_after_what_it_waits_for_and_in_order() -> None:
    endpoint = waiting()
    delivered = free(endpoint)
    assert delivered[0] == ("b", 1, "b1")
    assert delivered[1:] == [("c", mid, f"c{mid}") for mid in range(1, COUNT + 2)]
    assert endpoint.take_acks() == {"b": 1, "c": COUNT + 1}
    assert not endpoint.held_back
    assert not list(endpoint._held.packets())


def test_blocked_and_footprint_show_each_message() -> None:
    endpoint = waiting(3)
    single = Adaptive("a")
    single.receive("c", AdaptiveMessage(1, 0, "c1", (), (("b", "a", 1),)))
    for mid in (2, 3, 4):
        single.receive("c", AdaptiveMessage(mid, mid - 1, f"c{mid}", (), ()))
    assert endpoint == single
    assert endpoint.footprint() == single.footprint()
    assert endpoint.blocked() == single.blocked()
    assert endpoint.blocked()[-1] == Blocked(
        "c", 4, "a", "receiver", (Wait("predecessor", "c", 3),)
    )


def test_a_message_of_a_held_run_that_comes_again_is_recognised() -> None:
    endpoint = waiting()
    endpoint.receive("c", AdaptiveMessage(7, 6, "c7", (), ()))
    endpoint.receive_run("c", MessageRun([8, 9], 7, ["c8", "c9"]))
    with pytest.raises(RemoteProtocolError, match="two messages of the number 7"):
        endpoint.receive("c", AdaptiveMessage(7, 6, "something else", (), ()))
    assert len(free(endpoint)) == COUNT + 2


def test_a_copy_is_independent() -> None:
    endpoint = waiting()
    twin = copy.copy(endpoint)
    assert len(free(endpoint)) == COUNT + 2
    assert twin.held_back == COUNT + 1
    assert len(free(twin)) == COUNT + 2


def test_a_run_of_a_forgotten_process_is_dropped() -> None:
    endpoint = waiting()
    endpoint.forget("c")
    assert not endpoint.held_back
    assert free(endpoint) == [("b", 1, "b1")]


def test_a_run_is_free_when_what_it_waits_for_is_forgotten() -> None:
    endpoint = waiting()
    endpoint.forget("b")
    assert len(endpoint.take_deliveries()) == COUNT + 1


def test_a_callback_that_fails_does_not_lose_the_rest_of_a_run() -> None:
    endpoint = waiting(5)
    got: list[int] = []

    def on_delivery(delivery: Delivery) -> None:
        got.append(delivery.mid)
        if len(got) == 3:
            raise ValueError("the application")

    endpoint.on_delivery = on_delivery
    with pytest.raises(ValueError, match="the application"):
        endpoint.receive("b", AdaptiveMessage(1, 0, "b1", (), ()))
    later = [delivery.mid for delivery in endpoint.take_deliveries()]
    assert got + later == [1, 1, 2, 3, 4, 5, 6]


def test_a_message_that_waits_for_the_middle_of_a_run_follows_it_there() -> None:
    endpoint = Adaptive("a")
    endpoint.receive_run("b", MessageRun([1], 0, ["b1"]))
    listed = Listed("c1", (), (("b", "a", 3),))
    endpoint.receive_run("c", MessageRun([1], 0, [listed], True))
    endpoint.receive_run("b", MessageRun([2, 3, 4], 1, ["b2", "b3", "b4"]))
    got = [delivery.payload for delivery in endpoint.take_deliveries()]
    assert got == ["b1", "b2", "b3", "c1", "b4"]
