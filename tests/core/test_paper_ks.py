"""Kshemkalyani and Singhal's own examples, lemmas and claims, as tests."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from causewire.core.endpoint import Packet, Wait
from causewire.core.ks import Ks
from causewire.core.rst import Rst

from .ks_printed import SEEDS, Printed, by_hardware, entries, every_step, plain
from .world import World, names, play


def necessary(world: Any, past: Any, *, dests: Any = frozenset(), to: Any = None) -> Any:
    """LOG as it has to be after `past`, from the definitions alone.

    The facts that are necessary (3.3), and of each sender the newest entry (4.2). With
    `dests` and `to`: as a message to `dests` has to tell it to one of them (PC2).
    """
    facts = {f for f in world.facts(past) if f[2] not in dests - {to}}
    log = []
    for i in sorted(world.endpoints):
        clocks = {a for k, a, _ in facts if k == i} | {world.newest(past, i)} - {0}
        row = [(a, frozenset(d for k, b, d in facts if (k, b) == (i, a))) for a in sorted(clocks)]
        if row:
            log.append((i, tuple(row)))
    return tuple(log)


# -- 4.4: the running examples ----------------------------------------------------


def test_running_example_of_snd() -> None:
    """A process j with l(i,a).Dests = {2,3,4,6,8} sends M(j,b) to {3,4,7,8,11}."""
    i, j = Ks("i"), Ks("j")
    a = i.send({"j", "2", "3", "4", "6", "8"}, "M(i,a)")
    [packet] = [packet for d, packet in i.take_packets() if d == "j"]
    j.receive("i", packet)
    assert entries(j.log, "i") == {a: {"2", "3", "4", "6", "8"}}

    b = j.send({"3", "4", "7", "8", "11"}, "M(j,b)")
    told = {d: entries(packet[3], "i")[a] for d, packet in j.take_packets()}
    assert told == {
        "3": {"2", "3", "6"},
        "4": {"2", "4", "6"},
        "8": {"2", "6", "8"},
        "7": {"2", "6"},
        "11": {"2", "6"},
    }
    assert entries(j.log, "i") == {a: {"2", "6"}}  # SND(3)
    assert entries(j.log, "j") == {b: {"3", "4", "7", "8", "11"}}  # SND(4)


def test_running_example_of_rcv() -> None:
    """M arrives at j with o(i,*) for 7, 9, 12, 20; LOG has l(i,*) for 9, 10, 14, 20, 21.

    The paper gives the two logs; this is a run that brings them about.
    """
    nodes = ["2", "3", "7", "11", "13", "15", "16"]
    world = World([Ks(me) for me in [*"ijkpqxyz", *nodes]])
    i_sends = {
        7: {"p"},
        9: {"2", "7", "11", "13"},
        10: {"x"},
        12: {"q"},
        14: {"y"},
        20: {"3", "15", "16", "k"},
        21: {"z", "j"},
    }
    for clock in range(1, 22):
        world.send("i", i_sends.get(clock, "i"))  # fill up the clock with notes to itself

    world.hop("i", "k")
    world.send("k", "j")  # tells j that M(i,20) is delivered at k
    for heard, told in {
        "2": "k",
        "3": "k",
        "11": "j",
        "13": "k",
        "15": "j",
        "16": "j",
        "p": "j",
        "q": "j",
        "x": "k",
        "y": "k",
    }.items():
        world.hop("i", heard)
        world.send(heard, told)
    for k_hears in ["2", "3", "13", "x", "y"]:
        world.hop(k_hears, "k")
    for j_hears in ["i", "k", "11", "15", "16", "p", "q"]:
        world.hop(j_hears, "j")

    world.send("k", "j")
    _, _, packet = world.flying[-1]
    j = world.endpoints["j"]
    assert entries(packet[3], "i") == {7: {"p"}, 9: {"7", "11"}, 12: {"q"}, 20: {"15", "16"}}
    assert entries(j.log, "i") == {
        9: {"2", "7", "13"},
        10: {"x"},
        14: {"y"},
        20: {"3"},
        21: {"z"},
    }
    world.hop("k", "j")
    # Loop 1 deletes 7, 12, 10, 14; loop 2 intersects 9 and 20; RCV(5) purges 20.
    assert entries(j.log, "i") == {9: {"7"}, 21: {"z"}}


def test_chain_of_three() -> None:
    """Theorem 8: m to {x, d}, then x to y, then y to d, who must wait for the first."""
    world = World([Ks(me) for me in "dmxy"])
    world.send("m", {"x", "d"})
    world.hop("m", "x")
    world.send("x", "y")
    world.hop("x", "y")
    world.send("y", "d")
    world.hop("y", "d")
    [held] = world.endpoints["d"].blocked()
    assert (held.origin, held.mid, held.waits) == ("y", 1, (Wait("predecessor", "m", 1),))
    world.hop("m", "d")
    assert world.delivered["d"] == [("m", 1), ("y", 1)]


# -- the lemmas, and Definition 5 --------------------------------------------------


@pytest.mark.parametrize("seed", SEEDS)
def test_lemmas_1_and_7(seed: int) -> None:
    """No destination twice for one sender; only a sender's newest entry is empty."""
    for world, me, packets in every_step(seed):
        for log in [world.endpoints[me].log, *(packet[3] for _, _, packet in packets)]:
            for _, row in log:
                assert [clock for clock, _ in row] == sorted({clock for clock, _ in row})
                remaining = [d for _, dests in row for d in dests]
                assert len(remaining) == len(set(remaining)), f"Lemma 1, seed {seed}"
                assert all(dests for _, dests in row[:-1]), f"Lemma 7, seed {seed}"


@pytest.mark.parametrize("seed", SEEDS)
def test_lemmas_2_and_4(seed: int) -> None:
    """The newest clock of a sender never falls; Dests never grows once it is there."""
    before: dict[str, tuple[Any, ...]] = {}
    for world, me, _ in every_step(seed):
        log = world.endpoints[me].log
        for i, old in before.get(me, ()):
            new = entries(log, i)
            assert max(new) >= old[-1][0], f"Lemma 2, seed {seed}"
            for clock, dests in new.items():
                if clock <= old[-1][0]:
                    assert dests <= dict(old).get(clock, set()), f"Lemma 4, seed {seed}"
        before[me] = log


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("hardware", [False, True], ids=["per-destination", "hardware"])
def test_no_redundant_information(seed: int, hardware: Any) -> None:
    """Definition 5, Theorems 3 and 6: LOG and O_M have what is necessary and no more.

    A hardware multicast tells all destinations the same, so PC2 is not applied to what
    it carries, only to what is kept of it (4.5).
    """
    facts = 0
    for world, me, packets in every_step(seed, by_hardware if hardware else plain):
        expected = necessary(world, world.past[me])
        assert world.endpoints[me].log == expected, f"seed {seed}"
        for source, d, packet in packets:
            dests, past = world.sent[source, packet[1]]
            dests = frozenset() if hardware else dests
            assert packet[3] == necessary(world, past, dests=dests, to=d), f"seed {seed}"
            facts += sum(len(D) for _, row in packet[3] for _, D in row)
    assert facts, "the run had nothing to tell"


# -- 4.3 to the letter -------------------------------------------------------------


@pytest.mark.parametrize("seed", range(15))
def test_same_as_the_pseudo_code(seed: int) -> None:
    """Step by step the same LOG and the same deliveries, whatever LOG starts with.

    The pseudo-code starts with (i, 0, {}) for every i, `Ks` with nothing (ERRATA 7.4).
    """
    rng = Random(seed)
    group = names(rng.randint(2, 6))
    ours = World([Ks(me) for me in group])
    paper = World([Printed(me, group) for me in group])
    both = zip(
        play(ours, Random(seed), 25, reactions=0),
        play(paper, Random(seed), 25, reactions=0),
        strict=True,
    )
    for me, same in both:
        assert me == same
        assert ours.endpoints[me].log == paper.endpoints[me].log, f"seed {seed}"
        assert sorted(ours.delivered[me]) == sorted(paper.delivered[me]), f"seed {seed}"
    assert not ours.undelivered()


def metadata(packet: Any) -> Any:
    """Integers and identifiers of a packet of `Ks`, `Rst` or `Printed`."""
    if isinstance(packet, Packet):
        return packet.integers + packet.identifiers
    _, _, dests, o_m, _ = packet
    senders = {i for i, _ in o_m}
    return 1 + len(dests) + len(senders) + sum(1 + len(remaining) for remaining in o_m.values())


def packets_of(make: Any, seed: int, n: int = 12, messages: int = 120) -> Any:
    """All packets of a random run of multicasts, the same run for all protocols."""
    rng = Random(seed)
    group = names(n)
    endpoints = {me: make(me) for me in group}
    sent: list[Any] = []
    flying: list[Any] = []
    while messages or flying:
        if messages and (not flying or rng.random() < 0.35):
            messages -= 1
            me = rng.choice(group)
            endpoints[me].on_delivery = lambda delivery: None
            to = rng.sample([d for d in group if d != me], rng.randint(1, 3))
            endpoints[me].send(to, None)
            flying += [(me, *out) for out in endpoints[me].take_packets()]
            sent += [packet for _, _, packet in flying[-len(to) :]]
        else:
            source, d, packet = flying.pop(rng.randrange(len(flying)))
            endpoints[d].on_delivery = lambda delivery: None
            endpoints[d].receive(source, packet)
    return sent


def test_what_optimality_is_worth() -> None:
    """ERRATA 7.5, in shape: both misreadings are safe, and cost; a matrix costs more."""
    ours = packets_of(Ks, seed=1)
    correct, newest_dropped, first_test_as_printed, matrix = (
        sum(map(metadata, packets_of(make, seed=1))) / len(ours)
        for make in (
            Printed,
            lambda me: Printed(me, keep_newest=False),
            lambda me: Printed(me, first_test=False),
            lambda me: Rst(me, names(12)),
        )
    )
    assert sum(map(metadata, ours)) / len(ours) == correct
    assert correct < newest_dropped < first_test_as_printed < matrix / 2
    assert matrix > 12 * 12
