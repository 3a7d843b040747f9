"""An omniscient observer of small runs, written from the papers' definitions.

It keeps the whole history: for each process the set of events in its causal past,
for each message the set of events before its send (Kshemkalyani and Singhal,
Definition 1). Everything else is read off these sets, so it shares no idea, and no
code, with the protocols that it judges. Slow, and meant to be.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from random import Random
from typing import Any, NamedTuple


class Sent(NamedTuple):
    """A message, its destinations, and all that happened before it was sent."""

    dests: frozenset[str]
    past: frozenset[tuple[Any, ...]]


class World:
    """Endpoints, packets in flight, and what has happened so far."""

    def __init__(self, endpoints: Any) -> None:
        self.endpoints = {endpoint.me: endpoint for endpoint in endpoints}
        self.flying: list[tuple[str, str, Any]] = []
        """Packets on their way: source, destination, packet."""
        self.arrived: list[tuple[str, str, Any]] = []
        """Packets that were on their way, in the order of their arrival."""
        self.sent: dict[tuple[str, int], Sent] = {}
        self.past: dict[str, frozenset[tuple[Any, ...]]] = dict.fromkeys(
            self.endpoints, frozenset()
        )
        self.delivered: dict[str, list[tuple[str, int]]] = {me: [] for me in self.endpoints}
        self.clock = dict.fromkeys(self.endpoints, 0)
        self.react: Callable[[str, str, int], object] | None = None
        """Called with (process, origin, mid) inside each delivery."""
        for endpoint in self.endpoints.values():
            endpoint.on_delivery = lambda d, me=endpoint.me: self._delivers(me, *d)

    # -- what happens ---------------------------------------------------------

    def send(self, me: str, to: Any, payload: Any = None) -> int:
        dests = frozenset([to] if isinstance(to, str) else to)
        self.clock[me] += 1
        mid = self.clock[me]
        self.sent[me, mid] = Sent(dests, self.past[me])
        self.past[me] |= {("send", me, mid)}
        assert self.endpoints[me].send(to, payload if payload is not None else (me, mid)) == mid
        self._collect(me)
        return mid

    def arrive(self, k: int = 0) -> str:
        """The k-th of the packets in flight arrives; returns where."""
        source, destination, packet = self.flying.pop(k)
        self.arrived.append((source, destination, packet))
        self.endpoints[destination].receive(source, packet)
        self._collect(destination)
        return destination

    def again(self, k: int) -> str:
        """The k-th of the packets that have arrived arrives once more; returns where."""
        source, destination, packet = self.arrived[k]
        self.endpoints[destination].receive(source, packet)
        assert not self.endpoints[destination].take_packets()
        return destination

    def hop(self, source: str, destination: str) -> None:
        """The oldest packet on a link arrives."""
        links = [(s, d) for s, d, _ in self.flying]
        self.arrive(links.index((source, destination)))

    def _collect(self, me: str) -> None:
        for destination, packet in self.endpoints[me].take_packets():
            self.flying.append((me, destination, packet))

    def _delivers(self, me: str, origin: str, mid: int, payload: Any) -> None:
        message = self.sent[origin, mid]
        assert payload == (origin, mid), "payload changed on the way"
        assert me in message.dests, f"{origin}#{mid} delivered to {me}, no destination"
        assert (origin, mid) not in self.delivered[me], f"{origin}#{mid} delivered twice to {me}"
        for i, a in self.sent:
            if ("send", i, a) in message.past and me in self.sent[i, a].dests:
                assert (i, a) in self.delivered[me], f"{origin}#{mid} before {i}#{a} at {me}"
        self.delivered[me].append((origin, mid))
        self.past[me] |= message.past | {("send", origin, mid), ("deliver", origin, mid, me)}
        if self.react is not None:
            self.react(me, origin, mid)

    # -- what holds -----------------------------------------------------------

    def undelivered(self) -> set[tuple[str, int, str]]:
        return {
            (i, a, d)
            for (i, a), message in self.sent.items()
            for d in message.dests
            if (i, a) not in self.delivered[d]
        }

    def last_sent(self, past: frozenset[tuple[Any, ...]], i: str, d: str) -> int:
        """The last message of i to d in a causal past, 0 if there is none."""
        known = [a for k, a in self.sent if k == i and ("send", i, a) in past]
        return max((a for a in known if d in self.sent[i, a].dests and d != i), default=0)

    def newest(self, past: frozenset[tuple[Any, ...]], i: str) -> int:
        """The last message of i to anybody else in a causal past."""
        return max((self.last_sent(past, i, d) for d in self.endpoints), default=0)

    def facts(self, past: frozenset[tuple[Any, ...]]) -> set[tuple[str, int, str]]:
        """The necessary information (3.3, 3.4): "d in M(i,a).Dests", as (i, a, d).

        All such facts in the causal past except those known to be delivered (PC1) or
        taken over by a later message to d (PC2).
        """
        known = {key: message for key, message in self.sent.items() if ("send", *key) in past}
        return {
            (i, a, d)
            for (i, a), message in known.items()
            for d in message.dests - {i}
            if ("deliver", i, a, d) not in past
            and not any(
                d in later.dests and ("send", i, a) in later.past for later in known.values()
            )
        }

    def held(self, me: str) -> set[tuple[str, int]]:
        """Messages that have arrived at `me`, and that it has not delivered."""
        here = {(source, packet[1]) for source, d, packet in self.arrived if d == me}
        return here - set(self.delivered[me])

    def missing(self, me: str, origin: str, mid: int) -> set[tuple[str, int]]:
        """What a message must wait for at `me`: its undelivered predecessors there."""
        past = self.sent[origin, mid].past
        before = {key for key in self.sent if ("send", *key) in past}
        return {key for key in before if me in self.sent[key].dests} - set(self.delivered[me])


def names(n: int) -> list[str]:
    return [f"p{k}" for k in range(n)]


def some(rng: Random, population: list[str]) -> list[str]:
    """Destinations: often one, at times everybody, oneself not excluded."""
    most = rng.choice([1, 1, 2, 3, len(population)])
    return rng.sample(population, rng.randint(1, min(most, len(population))))


def play(
    world: World,
    rng: Random,
    messages: int,
    *,
    choose: Any = some,
    reactions: float = 0.3,
    duplicates: float = 0.0,
) -> Iterator[Any]:
    """A random run on a reordering network; yields the process that acted."""
    population = list(world.endpoints)
    left = messages

    def react(me: str, origin: str, mid: int) -> None:
        nonlocal left
        if left > 0 and rng.random() < reactions:
            left -= 1
            world.send(me, choose(rng, population))

    world.react = react if reactions else None
    eager = rng.uniform(0.2, 0.8)
    while left > 0 or world.flying:
        if left > 0 and (not world.flying or rng.random() < eager):
            left -= 1
            me = rng.choice(population)
            world.send(me, choose(rng, population))
            yield me
        else:
            yield world.arrive(rng.randrange(len(world.flying)))
        while world.arrived and rng.random() < duplicates:
            yield world.again(rng.randrange(len(world.arrived)))
