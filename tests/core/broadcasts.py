"""A group that broadcasts over channels, and a judge of what it delivers.

The judge goes by the definition: m happened before m' if the sender of m' had
sent or delivered m, or something that m happened before, when it sent m'. It
keeps the whole past of every message as a set, and knows no clock.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import permutations
from random import Random
from typing import Any

from causewire.core.endpoint import Endpoint, Packet, RemoteProtocolError

Name = tuple[str, int]
"""A message: its origin and number."""


class OrderError(AssertionError):
    """A message was delivered that should not have been, or not yet."""


class RestlessError(AssertionError):
    """The processes keep sending packets though nothing happens any more."""


class Group:
    """Processes p0, p1, ... and the packets in flight between each two of them."""

    def __init__(self, make: Callable[[str, list[str]], Any], n: int) -> None:
        self.names = [f"p{k}" for k in range(n)]
        self.endpoints: dict[str, Any] = {name: make(name, self.names) for name in self.names}
        self.channels: dict[tuple[str, str], list[Packet]] = {
            link: [] for link in permutations(self.names, 2)
        }
        self.past: dict[Name, frozenset[Name]] = {}
        self.to_self: set[Name] = set()
        self.known: dict[str, frozenset[Name]] = dict.fromkeys(self.names, frozenset())
        self.delivered: dict[str, list[Name]] = {name: [] for name in self.names}
        self.react: Callable[[str], object] | None = None
        """Called inside each delivery, with the process that it happens at."""
        self.packets = 0
        for name, endpoint in self.endpoints.items():
            endpoint.on_delivery = lambda d, me=name: self._delivers(me, *d)

    def __getitem__(self, name: str) -> Any:
        return self.endpoints[name]

    # -- what can happen ------------------------------------------------------

    def send(self, me: str, *, to_self: bool = False) -> int:
        message = (me, 1 + sum(origin == me for origin, _ in self.past))
        self.past[message] = self.known[me]
        self.known[me] |= {message}
        if to_self:
            self.to_self.add(message)
        to = [name for name in self.names if name != me or to_self]
        mid: int = self.endpoints[me].send(to, message)
        assert mid == message[1]
        self.collect(me)
        return mid

    def hop(self, source: str, destination: str, k: int = 0) -> Packet:
        """The k-th packet on a channel arrives; the oldest if nothing is said."""
        packet = self.channels[source, destination].pop(k)
        self.endpoints[destination].receive(source, packet)
        self.collect(destination)
        return packet

    def tick(self, me: str) -> None:
        self.endpoints[me].retransmit()
        self.collect(me)

    def collect(self, me: str) -> None:
        for destination, packet in self.endpoints[me].take_packets():
            self.channels[me, destination].append(packet)
            self.packets += 1

    def flush(self) -> None:
        """Everything in flight arrives, and whatever follows from it."""
        while busy := self.busy():
            for link in busy:
                self.hop(*link)

    def settle(self, rounds: int = 100) -> None:
        """Everything arrives and every process ticks, until nothing changes."""
        self.flush()
        for _ in range(rounds):
            before = self.packets
            for name in self.names:
                self.tick(name)
            if self.packets == before:
                return
            self.flush()
        raise RestlessError(f"not quiet after {rounds} rounds")

    def busy(self) -> list[tuple[str, str]]:
        return [link for link, packets in self.channels.items() if packets]

    # -- the judge ------------------------------------------------------------

    def _delivers(self, me: str, origin: str, mid: int, payload: Any) -> None:
        message = (origin, mid)
        if payload != message:
            raise OrderError(f"{me} was given {payload} as {message}")
        if message in self.delivered[me]:
            raise OrderError(f"{me} was given {message} twice")
        for before in self.past[message]:
            if self.is_for(before, me) and before not in self.delivered[me]:
                raise OrderError(f"{me} was given {message} before {before}")
        self.delivered[me].append(message)
        self.known[me] |= self.past[message] | {message}
        if self.react is not None:
            self.react(me)

    def is_for(self, message: Name, me: str) -> bool:
        return message[0] != me or message in self.to_self

    def missing(self, me: str) -> set[Name]:
        """What is sent to a process and not delivered there."""
        return {m for m in self.past if self.is_for(m, me)} - set(self.delivered[me])

    def finished(self) -> bool:
        """Everything delivered everywhere, and nobody has anything left to do."""
        return not any(map(self.missing, self.names)) and all(
            endpoint.idle for endpoint in self.endpoints.values()
        )


def play(
    group: Group, rng: Random, messages: int, *, fifo: bool = True, ticks: float = 0.0
) -> Iterator[str]:
    """A random run, with sends from inside deliveries; yields who acted, at each step."""
    left = messages
    eager = rng.uniform(0.1, 0.7)
    reactive = rng.choice([0.0, 0.2, 0.5])

    def send(me: str) -> None:
        nonlocal left
        left -= 1
        group.send(me, to_self=rng.random() < 0.3)

    group.react = lambda me: send(me) if left > 0 and rng.random() < reactive else None
    # Some channels are slow, so that much happens while a packet is on them.
    speed = {link: rng.choice([1, 1, 5, 30]) for link in group.channels}
    while left > 0 or group.busy():
        busy = group.busy()
        if ticks and rng.random() < ticks:
            me = rng.choice(group.names)
            group.tick(me)
        elif left > 0 and (not busy or rng.random() < eager):
            me = rng.choice(group.names)
            send(me)
        else:
            link = rng.choices(busy, [speed[link] for link in busy])[0]
            group.hop(*link, 0 if fifo else rng.randrange(len(group.channels[link])))
            me = link[1]
        yield me


def verdict(make: Callable[[str, list[str]], Endpoint], seed: int, **how: Any) -> str:
    """How a random run ends: `good`, `causal`, `refused` or `stuck`."""
    rng = Random(seed)
    group = Group(make, rng.randint(3, 5))
    try:
        for _ in play(group, rng, rng.randint(3, 24), **how):
            pass
        group.settle()
    except OrderError:
        return "causal"
    except RemoteProtocolError:
        return "refused"
    except RestlessError:
        return "stuck"
    return "good" if group.finished() else "stuck"
