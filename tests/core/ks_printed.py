"""Kshemkalyani and Singhal's algorithm to the letter, and `Ks` with each of its options."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import Any

from causewire.core.ks import Ks

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
