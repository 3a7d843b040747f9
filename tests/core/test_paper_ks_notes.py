"""Kshemkalyani and Singhal's notes of 4.5, 6.2 and 7.1, as tests."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import Any

import pytest

from causewire.core.endpoint import Wait
from causewire.core.ks import AllBut, Ks

from .ks_printed import (
    SEEDS,
    Printed,
    broadcasting,
    by_complement,
    by_hardware,
    entries,
    every_step,
    plain,
)
from .world import World, names, play


def lookahead_run(make: Any) -> Any:
    """k knows a message that j still lacks, so k's message to {j, d} waits at j."""
    world = World([make(me) for me in "dijkx"])
    world.send("x", {"j", "k"})
    world.hop("x", "k")
    world.send("i", {"d", "j", "k"})
    world.hop("i", "j")
    world.hop("i", "k")
    world.send("k", {"d", "j"})  # takes over from i's message what concerns d and j
    world.hop("k", "j")  # arrives, and has to wait
    world.send("j", "d")  # after i's message, not after k's
    world.hop("j", "d")
    return world


def test_lookahead_is_unsafe() -> None:
    """Second note of 4.5: RCV(4-5) on a message that cannot be delivered yet.

    From it j learns that a later message to d has taken over what i's message asks for,
    but not which: that message is the one that waits, entered only by RCV(3).
    """
    with pytest.raises(AssertionError, match="j#1 before i#1 at d"):
        lookahead_run(lambda me: Printed(me, lookahead=True))
    for make in (Printed, Ks, lambda me: Ks(me, hardware_multicast=True)):
        world = lookahead_run(make)
        while world.flying:
            world.arrive()
        assert not world.undelivered()


def in_step(seed: int, make: Any, other: Any, **how: Any) -> Iterator[Any]:
    """The same run with two kinds of endpoints; yields both worlds after each step."""
    group = names(Random(seed).randint(2, 6))
    worlds = [World([kind(me, group) for me in group]) for kind in (make, other)]
    runs = [play(world, Random(seed), 25, reactions=0, **how) for world in worlds]
    for me, same in zip(*runs, strict=True):
        assert me == same
        yield *worlds, me
    assert not worlds[0].undelivered()


@pytest.mark.parametrize("seed", SEEDS)
def test_hardware_multicast_has_no_avalanche_effect(seed: int) -> None:
    """4.5: what it carries too much is left out on arrival, so all LOGs are the same."""
    for ours, theirs, me in in_step(seed, by_hardware, plain):
        assert ours.endpoints[me].log == theirs.endpoints[me].log, f"seed {seed}"
        assert ours.delivered[me] == theirs.delivered[me], f"seed {seed}"


def test_hardware_multicast_sends_one_packet() -> None:
    i, j = Ks("i"), Ks("j", hardware_multicast=True)
    i.send({"j", "x", "y", "z"}, None)
    j.receive("i", i.take_packets()[0][1])
    j.send({"i", "x", "y"}, None)
    (_, one), (_, two), (_, three) = j.take_packets()
    assert one is two is three
    assert entries(one[3], "i") == {1: {"x", "y", "z"}}
    assert entries(j.log, "i") == {1: {"z"}}


@pytest.mark.parametrize("seed", SEEDS)
def test_complement_says_the_same_with_less(seed: int) -> None:
    """6.2: substitute PROC - Dests where that is smaller."""
    shorter = 0
    for ours, theirs, me in in_step(seed, by_complement, plain):
        assert ours.endpoints[me].log == theirs.endpoints[me].log, f"seed {seed}"
        assert ours.delivered[me] == theirs.delivered[me], f"seed {seed}"
        others = len(ours.endpoints) - 1
        for (_, _, a), (_, _, b) in zip(ours.flying, theirs.flying, strict=True):
            assert a.integers == b.integers
            assert a.identifiers <= b.identifiers
            shorter += b.identifiers - a.identifiers
            for dests in [a[2], *(d for _, row in a[3] for _, d in row)]:
                assert len(dests.names if type(dests) is AllBut else dests) <= others / 2
    assert shorter


def test_complement_bound_is_per_entry() -> None:
    """6.2 claims at most n/2 identifiers for all entries of a sender together.

    Two halves of the group in two entries of one sender are a counterexample.
    """
    group = names(9)
    p0 = Ks("p0", group, complement=True)
    p0.send(group[1:5], None)
    p0.send(group[5:], None)
    p0.take_packets()
    p0.send("p1", None)
    [(_, packet)] = p0.take_packets()
    assert entries(packet[3], "p0") == {1: set(group[1:5]), 2: set(group[5:])}
    assert packet.identifiers - 2 == 8 > 9 / 2  # less the sender and the destination


def everybody(rng: Any, population: Any) -> Any:
    return population


@pytest.mark.parametrize("seed", SEEDS)
def test_broadcast_is_a_vector_clock(seed: int) -> None:
    """7.1: Dests is eliminated, one clock per sender is left, decisions are the same."""
    for ours, theirs, me in in_step(seed, broadcasting, plain, choose=everybody):
        assert ours.delivered[me] == theirs.delivered[me], f"seed {seed}"
        endpoint = ours.endpoints[me]
        assert endpoint.log == tuple(
            (i, ((newest, frozenset()),))
            for i in sorted(ours.endpoints)
            if (newest := ours.newest(ours.past[me], i))
        ), f"seed {seed}"
        assert endpoint.footprint().packet["msg"] == 1 + 2 * len(endpoint.log)


@pytest.mark.parametrize("seed", SEEDS)
def test_broadcast_with_reactions(seed: int) -> None:
    for _ in every_step(seed, broadcasting, choose=everybody):
        pass


def test_channels_need_not_be_fifo() -> None:
    """7.1 asks for numbers per channel; the entries about the sender itself will do."""
    i, j = Ks("i"), Ks("j")
    for payload in "abc":
        i.send("j", payload)
    a, b, c = (packet for _, packet in i.take_packets())
    j.receive("i", c)
    j.receive("i", b)
    assert [(held.mid, held.waits) for held in j.blocked()] == [
        (2, (Wait("predecessor", "i", 1),)),
        (3, (Wait("predecessor", "i", 2),)),
    ]
    j.receive("i", a)
    assert [delivery.payload for delivery in j.take_deliveries()] == ["a", "b", "c"]
