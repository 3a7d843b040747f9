"""Obituaries of processes that were given up: memory is bounded, and order is kept all the same."""

from __future__ import annotations

from typing import Any

import pytest

from causewire.transport import NodeRenumbered, NodeSuperseded, TransportConfig
from causewire.transport.obituaries import MOST

from .pair import Pair, events, payloads
from .three import Three

FEW = TransportConfig(peers=4)


class Apart(Three):
    """carol and bob have not met."""

    def run(self, seconds: float) -> None:
        if self.now == 100.0:
            self.cut = {("carol", "bob"), ("bob", "carol")}
        super().run(seconds)


@pytest.mark.parametrize("full", [False, True], ids=["room", "full"])
@pytest.mark.parametrize("protocol", ["csps", "sps", "adaptive"])
def test_what_follows_an_obituary_waits_until_there_is_room_for_it(
    protocol: str, full: bool
) -> None:
    """The obituary of carol comes to bob before an effect of her message, which he lacks."""
    three = Apart(protocol=protocol, config=FEW, give_up_after=None)
    ann, bob, carol = three["ann"], three["bob"], three["carol"]
    carol.send("bob", b"cause")
    three.run(0.2)
    carol.send("ann", b"news")
    three.run(0.2)
    assert payloads(ann) == [b"news"]
    three.cut |= {("ann", "carol"), ("carol", "ann"), ("bob", "ann")}  # ann hears no acks
    for k in range(MOST * FEW.peers if full else 0):
        bob._peers.obituary(f"crashed {k}", (1 << 20) + 1, "ann", three.now)
    ann.send("bob", b"effect")
    ann.forget("carol", three.now)
    three.run(0.5)
    got = payloads(bob)
    assert got == ([] if full else [b"effect"])
    three.cut = set()
    three.run(10.0)
    assert [*got, *payloads(bob)] in ([b"effect"], [b"cause", b"effect"])


def crowd(pair: Pair, count: int) -> list[Any]:
    """Many processes write to ann, one after the other, and crash."""
    crashed = []
    for k in range(count):
        guest = pair.bob = pair.start(f"guest {k}", (k + 10) << 20)
        guest.add_peer("ann", ("127.0.0.1", 1), pair.now)
        guest.send("ann", b"hello")
        pair.exchange()
        pair.later(0.1)
        pair.exchange()
        assert payloads(pair.ann) == [b"hello"]
        pair.ann.forget(f"guest {k}", pair.now)
        pair.out(pair.ann)
        crashed.append(guest)
    return crashed


@pytest.mark.parametrize("protocol", ["csps", "adaptive"])
def test_memory_does_not_grow_with_all_who_have_crashed(protocol: str) -> None:
    pair = Pair(protocol=protocol, config=TransportConfig(peers=80, linger=1.0))
    crashed = crowd(pair, 200)
    peers = pair.ann._peers
    assert len(peers.floors) <= 21
    assert peers.obituaries.lowest > 170 << 20
    # One that wakes up is refused, and learns why.
    pair.bob = crashed[0]
    for _ in range(20):
        pair.later(1.0)
        pair.exchange()
    assert any(isinstance(event, NodeSuperseded) for event in events(pair.bob))
    assert payloads(pair.ann) == []
    # A new process with a low number, whose clock is behind, takes a higher one.
    for number, renumbered in ((5 << 20, True), (300 << 20, False)):
        pair.bob = pair.start(f"new {number}", number)
        pair.bob.add_peer("ann", ("127.0.0.1", 1), pair.now)
        pair.bob.send("ann", b"I am new")
        for _ in range(5):
            pair.later(0.5)
            pair.exchange()
        assert payloads(pair.ann) == [b"I am new"]
        told = [event for event in events(pair.bob) if isinstance(event, NodeRenumbered)]
        assert bool(told) == renumbered
        pair.ann.forget(f"new {number}", pair.now)


def test_while_they_are_few_all_names_are_remembered() -> None:
    """A living process with a low number that was never met is accepted."""
    pair = Pair(protocol="csps", config=TransportConfig(peers=80, linger=1.0))
    crowd(pair, 20)
    assert len(pair.ann._peers.floors) == 20
    assert pair.ann._peers.obituaries.lowest == 0
    pair.bob = pair.start("old", 1 << 20)
    pair.bob.add_peer("ann", ("127.0.0.1", 1), pair.now)
    pair.bob.send("ann", b"I am old")
    for _ in range(5):
        pair.later(0.5)
        pair.exchange()
    assert payloads(pair.ann) == [b"I am old"]
    assert not any(isinstance(event, NodeRenumbered) for event in events(pair.bob))


def test_peers_that_have_not_confirmed_it_keep_it() -> None:
    pair = Pair(config=FEW).meet()
    for k in range(9):
        pair.ann._peers.announce(f"crashed {k}", k + 2, pair.now)
    assert len(pair.ann._peers.floors) == 9
    pair.exchange()
    for k in range(9):
        pair.ann._peers.announce(f"more {k}", k + 2, pair.now)
        pair.exchange()
    assert len(pair.ann._peers.floors) <= 5
