"""`adaptive` with processes whose name is not known yet."""

from __future__ import annotations

from copy import copy

import pytest

from causewire.core.adaptive import Adaptive, AdaptiveMessage, Got, News, Part, Seen
from causewire.core.endpoint import LocalProtocolError, RemoteProtocolError
from causewire.core.fifo import Ack

B = "b\0"


def kinds(endpoint: Adaptive) -> list[tuple[str, str]]:
    return [(to, packet.kind) for to, packet in endpoint.take_packets()]


def started() -> Adaptive:
    """a has sent to a process that it calls B, then to c, which knows of that message."""
    a = Adaptive("a")
    a.expect(B)
    a.send(B, "x")
    assert kinds(a) == [(B, "msg")]
    a.send("c", "y")
    packets = dict(a.take_packets())
    assert packets["c"][5] == (("a", B, 1),)
    a.receive("c", Ack(2))
    assert kinds(a) == []
    return a


def test_messages_to_an_alias_are_reported_when_they_are_delivered() -> None:
    a = started()
    a.identify(B, "b")
    a.send("b", "z")
    (message,) = [packet for _, packet in a.take_packets()]
    assert message[5] == (), "a process lists no message to its destination, by any name"
    a.receive("b", Ack(1))
    assert a.take_packets() == [("c", News(1, (("a", B, 1),)))]
    assert list(a._past) == [("a", "b", 3)]


@pytest.mark.parametrize("identified", [True, False])
def test_messages_to_an_alias_are_void_when_the_process_is_given_up(identified: bool) -> None:
    a = started()
    if identified:
        a.identify(B, "b")
        assert a.forget("b") == (1,)
    else:
        assert a.abandon(B) == (1,)
    assert a.take_packets() == [("c", News(1, (("a", B, 1),)))]
    assert not list(a._past)
    a.expect(B)
    assert a.send(B, "again") == 3


def test_what_waits_for_a_void_message_is_freed() -> None:
    b = Adaptive("b")
    b.receive("c", AdaptiveMessage(1, 0, "w", (), (("a", "b", 1),)))
    assert b.held_back == 1
    b.void("a", 1)
    assert [delivery.payload for delivery in b.take_deliveries()] == ["w"]
    b.receive("d", AdaptiveMessage(1, 0, "later", (), (("a", "b", 1),)))
    assert [delivery.payload for delivery in b.take_deliveries()] == ["later"]
    b.receive("d", AdaptiveMessage(2, 1, "next", (), (("a", "b", 2),)))
    assert b.held_back == 1


def test_what_is_void_is_reported_before_the_ack_of_the_message_that_listed_it() -> None:
    a = Adaptive("a")
    a.expect(B)
    a.send(B, "x")
    a.send("c", "y")
    a.take_packets()
    a.abandon(B)
    assert a.take_packets() == [("c", News(1, (("a", B, 1),)))]


@pytest.mark.parametrize("identified", [True, False])
def test_a_later_incarnation_hears_from_the_origin_what_does_not_come(identified: bool) -> None:
    a = started()
    if identified:
        a.identify(B, "b")
        a.receive("b", Ack(1))
        a.forget("b")
    else:
        a.abandon(B)
    a.take_packets()
    a.expect(B)
    a.send(B, "again")
    a.identify(B, "b2")
    packets = a.take_packets()
    assert ("b2", News(1, (("a", B, 1),))) in packets
    assert [packet.kind for to, packet in packets if to != "b2"] == []


@pytest.mark.parametrize("identified", [True, False])
def test_everybody_hears_from_the_origin_what_does_not_come(identified: bool) -> None:
    """c has the entry, and may have passed it on to e and died; a never meets b again."""
    a = started()
    a.expect("d\0")
    a.identify("d\0", "d")
    if identified:
        a.identify(B, "b")
        a.forget("b")
    else:
        a.abandon(B)
    void = News(1, (("a", B, 1),))
    assert a.take_packets() == [("c", void), ("d", void)]
    a.expect("e\0")
    a.identify("e\0", "e")
    assert a.take_packets() == [("e", void)]
    assert copy(a) == a


def test_a_lane_and_news_follow_to_the_name() -> None:
    a = Adaptive("a", cap=0)
    a.expect(B)
    a.send("c", "x")
    a.take_runs()
    a.send(B, "y")
    a.take_runs()
    assert a.held_back == 1
    a.identify(B, "b")
    assert [(to, packet.kind) for to, packet in a.take_control()] == [("b", "part")]
    a.receive("c", Ack(1))
    assert not a.held_back
    assert kinds(a) == [("b", "msg")]


def test_a_multicast_to_an_alias_lists_each_member() -> None:
    a = Adaptive("a")
    a.expect(B)
    a.send([B, "c", "d"], "x")
    assert all(packet[4] == () for _, packet in a.take_packets())


def test_what_is_refused() -> None:
    a = Adaptive("a")
    a.send("b", "x")
    for wrong in ("b", "c"):
        with pytest.raises(LocalProtocolError):
            a.expect(wrong)
        with pytest.raises(LocalProtocolError):
            a.abandon(wrong)
        with pytest.raises(LocalProtocolError):
            a.identify(wrong, "d")
    a.expect(B)
    for wrong in ("a", "b"):
        with pytest.raises(LocalProtocolError):
            a.identify(B, wrong)
    b = Adaptive("b")
    b.receive("c", AdaptiveMessage(1, 0, "w", (), ()))
    with pytest.raises(RemoteProtocolError):
        b.receive("c", News(1, (("a", "b", 1),)))


def test_a_name_is_readmitted_when_nothing_mentions_it() -> None:
    b = Adaptive("b")
    b.receive("c", AdaptiveMessage(2, 0, "w", ("b", "c", "d"), (("x", "b", 1),)))
    b.forget("d")
    with pytest.raises(LocalProtocolError, match="refer"):
        b.readmit("d")
    b.forget("x")
    b.forget("c")
    b.readmit("x")
    assert b.forgotten == {"c", "d"}


def test_a_waiting_message_that_is_freed_lists_nothing_of_the_process_that_is_forgotten() -> None:
    a = Adaptive("a", cap=1)
    a.receive("e", AdaptiveMessage(1, 0, "w", (), (("f", "d", 1),)))
    a.send("d", "x")
    a.take_packets()
    a.send("c", "y")
    assert kinds(a) == [("c", "part")]
    a.forget("d")
    assert [(to, packet[5]) for to, packet in a.take_packets()] == [("c", ())]
    assert not list(a._past.owed())


def test_news_of_a_message_that_was_listed_to_an_alias_of_its_origin() -> None:
    """Before d was met, nobody could know that it needs no list of its own messages."""
    d = Adaptive("d")
    d.send(["b", "c"], "own")
    a = Adaptive("a")
    a.receive("b", AdaptiveMessage(1, 0, "w", (), (("d", "c", 1),)))
    a.expect("d\0")
    a.send("d\0", "x")
    message = dict(a.take_packets())["d\0"]
    assert message[5] == (("d", "c", 1),)
    a.identify("d\0", "d")
    d.receive("a", message)
    a.receive("d", Ack(1))
    a.receive("b", News(1, (("d", "c", 1),)))
    news = dict(a.take_packets())["d"]
    assert news == News(1, (("d", "c", 1),))
    d.take_packets()
    d.receive("a", news)
    assert d.take_packets() == [("a", Seen(1))]
    with pytest.raises(RemoteProtocolError, match="never sent"):
        d.receive("a", News(2, (("d", "c", 2),)))


def test_a_part_that_comes_again_may_lack_entries_of_the_dead() -> None:
    """Its receiver may have confirmed it, and its sender has not heard of that."""
    d = Adaptive("d")
    d.receive("a", Part(1, 1, (("x", "y", 1), ("b", "c", 1))))
    d.take_packets()
    d.forget("x")
    d.receive("a", Part(1, 1, (("b", "c", 1),)))
    assert d.take_packets() == [("a", Got(1, 1))]
    with pytest.raises(RemoteProtocolError, match="after 1 parts"):
        d.receive("a", Part(1, 1, (("b", "c", 2),)))
