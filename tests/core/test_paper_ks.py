"""Kshemkalyani and Singhal's own examples, lemmas and claims, as tests."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import Any

import pytest

from causewire.core.endpoint import Packet, Wait
from causewire.core.ks import AllBut, Ks
from causewire.core.rst import Rst

from .world import World, names, play

SEEDS = range(25)


def plain(me: Any, group: Any) -> Any:
    return Ks(me)


def by_hardware(me: Any, group: Any) -> Any:
    return Ks(me, hardware_multicast=True)


def by_complement(me: Any, group: Any) -> Any:
    return Ks(me, group, complement=True)


def broadcasting(me: Any, group: Any) -> Any:
    return Ks(me, group, broadcast=True)


def entries(log: Any, i: Any) -> Any:
    """The entries of sender i in a LOG or in O_M, by clock."""
    return {clock: set(dests) for clock, dests in dict(log).get(i, ())}


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


def every_step(seed: int, make: Any = plain, **how: Any) -> Iterator[Any]:
    """A random run; yields the world, who acted, and the packets that it sent."""
    rng = Random(seed)
    group = names(rng.randint(2, 6))
    world = World([make(me, group) for me in group])
    seen: set[Any] = set()
    for me in play(world, rng, rng.randint(5, 25), **how):
        new = [(s, d, p) for s, d, p in world.flying if (s, d, p[1]) not in seen]
        seen.update((s, d, p[1]) for s, d, p in new)
        yield world, me, new
    assert not world.undelivered(), f"seed {seed}"


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


class Printed:
    """The pseudo-code of 4.3, with RCV(3-5) before the delivery (ERRATA 7.1).

    `first_test` is RCV(4)'s first test as its comment has it, or as printed: never true.
    `keep_newest=False` purges all empty entries. `lookahead` is the second note of 4.5.
    """

    def __init__(
        self,
        me: Any,
        group: Any = (),
        *,
        first_test: bool = True,
        keep_newest: bool = True,
        lookahead: bool = False,
    ) -> None:
        self.me = me
        self.clock = 0
        self.SR: dict[Any, int] = {}
        self.LOG: dict[Any, set[Any]] = {(i, 0): set() for i in group}
        self.buffer: list[Any] = []
        self.packets: list[Any] = []
        self.on_delivery: Any = None
        self.first_test = first_test
        self.keep_newest = keep_newest
        self.lookahead = lookahead

    @property
    def log(self) -> Any:
        """LOG as `Ks.log` has it, without the initial entries."""
        rows: dict[Any, Any] = {}
        for (i, t), dests in sorted(self.LOG.items()):
            if t:
                rows.setdefault(i, []).append((t, frozenset(dests)))
        return tuple((i, tuple(row)) for i, row in rows.items())

    def take_packets(self) -> Any:
        packets, self.packets = self.packets, []
        return packets

    def send(self, to: Any, payload: Any) -> Any:
        dests = frozenset([to] if isinstance(to, str) else to) - {self.me}
        self.clock += 1
        for d in sorted(dests):
            o_m = {}
            for key, remaining in self.LOG.items():
                o_m[key] = remaining - dests
                if d in remaining:
                    o_m[key] |= {d}
            self.purge(o_m)
            self.packets.append((d, ("msg", self.clock, dests, o_m, payload)))
        if dests:
            self.LOG = {key: remaining - dests for key, remaining in self.LOG.items()}
            self.LOG[self.me, self.clock] = set(dests)
            self.purge(self.LOG)
        if self.me in to:
            self.on_delivery((self.me, self.clock, payload))
        return self.clock

    def receive(self, source: Any, packet: Any) -> None:
        self.buffer.append((source, packet))
        progress = True
        while progress:
            progress = False
            for held in self.buffer:
                if self.deliverable(held[1][3]):
                    self.buffer.remove(held)
                    self.deliver(*held)
                    progress = True
                    break
        if self.lookahead and (source, packet) in self.buffer:
            self.merge(packet[3])

    def deliverable(self, o_m: Any) -> Any:
        return all(
            self.me not in remaining or t <= self.SR.get(m, 0) for (m, t), remaining in o_m.items()
        )

    def deliver(self, k: int, packet: Any) -> None:
        _, t_k, dests, o_m, payload = packet
        self.SR[k] = t_k
        o_m = {(k, t_k): set(dests), **o_m}
        self.merge({key: remaining - {self.me} for key, remaining in o_m.items()})
        self.on_delivery((k, t_k, payload))

    def merge(self, o_m: Any) -> None:
        o_m = {key: set(remaining) for key, remaining in o_m.items()}
        dead_o, dead_l = set(), set()
        for m, t in o_m:
            for s, t2 in self.LOG:
                if s == m:
                    if self.first_test and t < t2 and (s, t) not in self.LOG:
                        dead_o.add((m, t))
                    if t2 < t and (m, t2) not in o_m:
                        dead_l.add((s, t2))
        for key in dead_o:
            del o_m[key]
        for key in dead_l:
            del self.LOG[key]
        for key in set(o_m) & set(self.LOG):
            self.LOG[key] &= o_m.pop(key)
        self.LOG.update(o_m)
        self.purge(self.LOG)

    def purge(self, log: Any) -> None:
        for s, t in list(log):
            newer = any(s2 == s and t < t2 for s2, t2 in log)
            if not log[s, t] and (newer or not self.keep_newest):
                del log[s, t]


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


# -- the notes of 4.5, 6.2 and 7.1 --------------------------------------------------


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
