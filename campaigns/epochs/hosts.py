"""The processes of a search: real links, whose streams the search carries."""

from __future__ import annotations

import copy
from collections import Counter, deque
from collections.abc import Hashable
from typing import Any

from causewire.core.endpoint import Delivery, Endpoint
from causewire.protocols import Protocol
from causewire.transport.identity import Identity
from causewire.transport.link import Link

__all__ = ["BORN", "NAMES", "Host", "Packet", "Sent", "Watched", "WrongError"]

Packet = tuple[bytes, frozenset[tuple[str, int]]]
"""Bytes of the link, and the obituaries in front of them."""
Sent = list[tuple[int, Packet]]
"""Packets, each with the slot of its destination."""

NAMES = ("p0", "p1", "p2", "p2")
"""A slot is an incarnation: slot 3 is the second incarnation of p2."""
BORN = (1, 1, 1, 2)


class Stream:
    """What a link sees of its sessions: ordered streams, which the search carries."""

    idle = True

    def __init__(self) -> None:
        self.out: list[tuple[str, bytes]] = []
        self.arrived: list[Delivery] = []

    def send(self, alias: str, payload: bytes) -> None:
        self.out.append((alias, payload))

    def receive_run(self, source: str, payload: Any) -> None:
        self.arrived.append(Delivery(source, 0, payload))

    def take_deliveries(self) -> list[Delivery]:
        arrived, self.arrived = self.arrived, []
        return arrived

    def forget(self, alias: str) -> None:
        self.out = [one for one in self.out if one[0] != alias]

    def readmit(self, alias: str) -> None:
        pass

    def take_runs(self) -> list[tuple[str, bytes]]:
        out, self.out = self.out, []
        return out


class Watched(Link):
    """A link that notes when it enters an epoch, and what has been seen in a search."""

    seen: Counter[str] = Counter()

    def __init__(self, slot: int, protocol: Protocol) -> None:
        super().__init__(protocol, Identity(NAMES[slot], BORN[slot], protocol.name, 1))
        self._fifo = Stream()  # type: ignore[assignment]
        self.marks: list[tuple[Any, frozenset[int], int, int]] = []
        """The view, the messages that wait for it, and how many were sent and delivered."""

    def _enter(self, view: Any) -> None:
        waiting = frozenset(one.mid for one in self._queue)
        self.marks.append((view, waiting, self._mid, len(self._ready)))
        self.seen["pulled along"] += view != self._epochs.known or not self._epochs.drained
        self.seen["waited for an epoch"] += bool(waiting)
        super()._enter(view)

    def _release(self) -> None:
        self.seen["released in the order of Lamport times"] += bool(self._undelivered)
        super()._release()


_SHARED = frozenset({"send", "_codec", "_protocol", "_identity", "_fifo"})
"""Parts of a link that are the same in all copies, or are copied in another way."""


def _frozen(value: Any) -> Hashable:
    """Return a value that can be hashed and compared."""
    if isinstance(value, dict):
        return frozenset((key, _frozen(part)) for key, part in value.items())
    if isinstance(value, set | frozenset):
        return frozenset(value)
    if isinstance(value, list | tuple | deque):
        return tuple(map(_frozen, value))
    return value.value() if isinstance(value, Endpoint) else value


class WrongError(Exception):
    """A run in which something is wrong."""


class Host:
    """One incarnation: its link, its sessions, and what its application has seen.

    Sets of messages are integers with a bit for each message.
    """

    def __init__(self, slot: int, protocol: Protocol) -> None:
        self.slot = slot
        self.up = True
        self.link = Watched(slot, protocol)
        self.sessions: dict[int, str] = {}
        """The aliases of those that there is a session with."""
        self.over: set[int] = set()
        """Those whose session is over."""
        self.aliases: dict[str, int] = {}
        """The slots of all that there was ever a session with."""
        self.floors: dict[str, int] = {}
        """Obituaries."""
        self.made = 0
        """How many messages the application has sent, or could not send."""
        self.got = self.past = 0
        """The messages that were delivered here; these, and what they depend on."""
        self.to: dict[int, int] = {}
        """The messages to each slot."""
        self.of: dict[int, int] = {}
        """The messages from each slot that were delivered."""
        self.queued: dict[int, int] = {}
        """By the number that the link gave it: a message that may wait for an epoch."""
        self.cuts: dict[Hashable, tuple[dict[int, int], dict[int, int]]] = {}
        """By epoch: `to` and `of` at its beginning."""

    def copied(self) -> Host:
        """Return an independent host in the same state."""
        twin = copy.copy(self)
        vars(twin).update({key: copy.copy(part) for key, part in vars(self).items()})
        link, epochs = twin.link, copy.copy(self.link._epochs)
        vars(epochs).update({key: copy.copy(part) for key, part in vars(epochs).items()})
        for key, part in vars(link).items():
            if key not in _SHARED:
                vars(link)[key] = copy.copy(part)
        stream = Stream()
        stream.out += self.link._fifo.out  # type: ignore[attr-defined]
        link._epochs, link._fifo, link.send = epochs, stream, link._send  # type: ignore[assignment]
        link._queue = deque(one._replace(to=set(one.to)) for one in link._queue)
        return twin

    def value(self) -> Hashable:
        """Return everything that influences what happens from now on."""
        if not self.up:
            return self.slot, _frozen(self.floors)
        link = {key: part for key, part in vars(self.link).items() if key not in _SHARED}
        link["_epochs"] = vars(self.link._epochs)
        link["_fifo"] = self.link._fifo.out  # type: ignore[attr-defined]
        mine = {key: part for key, part in vars(self).items() if key != "link"}
        return _frozen(mine), _frozen(link)

    @property
    def pending(self) -> bool:
        """Whether there is anything to do in the next turn."""
        link = self.link
        stream: Any = link._fifo
        return bool(link._ready or link.marks or link._due or link._epochs.due or stream.out)

    # -- events ---------------------------------------------------------------

    def meets(self, slot: int) -> None:
        """Establish a session."""
        name, born = NAMES[slot], BORN[slot]
        self.learns({name: born})
        alias = self.link.meet(name, sum(NAMES[other] == name for other in self.over))
        self.sessions[slot] = alias = self.link.establish(alias, name, born)
        self.aliases[alias] = slot

    def learns(self, floors: dict[str, int]) -> None:
        """Act on obituaries."""
        for name, floor in floors.items():
            if name == NAMES[self.slot] and floor > BORN[self.slot]:
                self.up = False
            elif floor > max(1, self.floors.get(name, 0)):
                self.floors[name] = floor
                for slot in [s for s in self.sessions if NAMES[s] == name and BORN[s] < floor]:
                    alias = self.sessions.pop(slot)
                    self.over.add(slot)
                    for one in self.link._queue:
                        if alias in one.to:  # it was never sent
                            self.to[slot] &= ~(1 << self.queued[one.mid])
                    self.link.forget(alias)
                    self.link.discard(alias)

    def forgets(self, slot: int) -> None:
        """Give up another process."""
        self.learns({NAMES[slot]: BORN[slot] + 1})

    def stops(self) -> None:
        """Crash."""
        self.up = False

    def ticks(self) -> None:
        """Let time pass."""
        self.link.tick()

    def hears(self, slot: int, packet: Packet) -> None:
        """Receive what comes next in a stream."""
        data, obituaries = packet
        self.learns(dict(obituaries))
        if self.up and slot in self.sessions:
            self.link.receive(self.sessions[slot], data)  # type: ignore[arg-type]

    def sends(self, to: tuple[int, ...], number: int) -> None:
        """Send a message, to those that there is a session with."""
        self.made += 1
        slots = [slot for slot in self.sessions if min(slot, 2) in to]
        if slots:
            payload = bytes([number]) + self.past.to_bytes(2, "big")
            self.past |= 1 << number
            mid = self.link.send([self.sessions[slot] for slot in slots], payload)
            self.queued[mid] = number
            for slot in slots:
                self.to[slot] = self.to.get(slot, 0) | 1 << number

    def turn(self) -> Sent:
        """Take what the link has for the application and for others, as a transport does."""
        link, obituaries, start = self.link, frozenset(self.floors.items()), 0
        slots = {alias: slot for slot, alias in self.sessions.items()}
        ready = link.take_deliveries()
        for view, waiting, last, end in link.marks:
            self._take(ready[start:end])
            later = [mid for mid in self.queued if mid in waiting or mid > last]
            late = sum(1 << self.queued[mid] for mid in later)
            before = {slot: mask & ~late for slot, mask in self.to.items()}
            self.cuts[_frozen(view)] = before, dict(self.of)
            start = end
        self._take(ready[start:])
        link.marks = []
        waits = {one.mid for one in link._queue}
        self.queued = {mid: number for mid, number in self.queued.items() if mid in waits}
        sent: Sent = []
        while runs := link.take_runs():
            for alias, data in runs:
                if alias in slots:
                    sent.append((slots[alias], (data, obituaries)))  # type: ignore[arg-type]
        return sent

    def _take(self, deliveries: list[Delivery]) -> None:
        for alias, _, payload in deliveries:
            bit, slot = 1 << payload[0], self.aliases[alias]
            if bit & self.got:
                raise WrongError("a message is delivered twice")
            if bit & self.past:
                raise WrongError("a message is delivered after one that depends on it")
            self.got |= bit
            self.past |= bit | int.from_bytes(payload[1:], "big")
            self.of[slot] = self.of.get(slot, 0) | bit
