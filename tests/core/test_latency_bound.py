"""The delay that `csps` adds is bounded by round trips of others, not of those who wait."""

from __future__ import annotations

import pytest

from causewire import protocols
from causewire.testing import Network

FAR = 100
"""The delay of a packet between alice and xavier; it is 1 between any others."""


def delay(one: str, other: str) -> int:
    return FAR if {one, other} == {"alice", "xavier"} else 1


def round_trip(one: str, *others: str) -> int:
    return max(2 * delay(one, other) for other in others)


def time_of_an_answer(protocol: str) -> int:
    """Return how long a message of bob to carol takes after bob has heard from alice.

    Alice writes to xavier, who is far away, and then to bob. Bob writes to carol as soon as
    he has read it. He never talks to xavier, and those with whom he does talk are near.
    """
    network = Network.of(protocol, ["alice", "bob", "carol", "xavier"])
    now = 0
    due: list[int] = []
    times: dict[str, int] = {}

    def react(process: str, _: object) -> None:
        times[process] = now
        if process == "bob":
            network.send("bob", "carol", "answer")

    network.react = react
    network.send("alice", "xavier", "first")
    network.send("alice", "bob", "second")
    while network.in_flight:
        new = list(network.in_flight)[len(due) :]
        due += [now + delay(flying[0], flying[1]) for flying in new]
        now = min(due)
        first = due.index(now)
        del due[first]
        network.arrive(first)
    assert network.oracle.violations == []
    return times["carol"] - times["bob"]


def test_it_exceeds_the_round_trips_of_the_process_that_waits() -> None:
    took = time_of_an_answer("csps")
    own = round_trip("bob", "alice", "carol")
    heard_from = round_trip("alice", "xavier", "bob")
    assert own < heard_from < took <= heard_from + own
    assert protocols.describe("csps").noncausal_latency == "sender, O(r) of those heard from"


@pytest.mark.parametrize("protocol", ["fifo", "rst", "ks", "adaptive"])
def test_protocols_that_buffer_elsewhere_do_not_wait_for_xavier(protocol: str) -> None:
    assert time_of_an_answer(protocol) == delay("bob", "carol")
