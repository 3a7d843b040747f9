"""`csps`: causal delivery by conservative sender permission to send.

Almeida's Algorithm 1 (unicast) and Algorithm 3 (multicast) in one endpoint.
The rule (Definition 4.3): *a process network-sends a message when all messages
that happened before it, sent by any process that sent messages to it, have been
delivered*. What that means for each part, beside what `hybrid` says:

    release     Messages leave in the order in which they were causal-sent. One
                leaves when no permit is missing that was missing when it was
                causal-sent (line 31). Permits for later deliveries do not
                matter, so nothing starves, unlike in Cykas.
    flag        A message is flagged if it leaves while an earlier one is not
                acknowledged (line 34), or goes to several processes (Algorithm
                3, line 13): then each of them learns what the others may lack.
    permit      Message n to j is permitted when all acks of earlier messages
                are there, and those of n itself from everybody but j. For a
                single receiver that is Algorithm 1 (lines 64-70): the permit
                leaves when n becomes the oldest message unacknowledged. For
                several it is Algorithm 3 with the optimisation that the paper
                only mentions (ERRATA 3.8): one ack missing, its receiver gets
                its permit; none missing, everybody else.

Every message behind another in the window of unacknowledged messages was
flagged when it left, since the window was not empty then. So whichever becomes
the oldest by the removal of another is due a permit: no flags need to be kept.

    state   u       sliding array over message numbers: to whom (line 22)
            waiting receivers whose ack is missing for the oldest message in u,
                    if that is a multicast (`unack` of Algorithm 3)
            sb      send buffer, in causal-send order (line 26)
            p       missing permits (line 23), in `hybrid`

Amortised constant time per copy: the window passes each number once.

Departures from the print: ids from 1 (ERRATA 1.1), acks as watermarks instead
of marks in u (1.3, 3.2, 3.3), `pid` for each destination (3.1), flag and index
apart (1.4), a permit that overtakes its message is kept (1.5).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable, Iterable
from typing import Any, NamedTuple, Self

from .endpoint import Blocked, Footprint, Wait
from .hybrid import HybridEndpoint, Message
from .sliding import SlidingArray, SlidingMap

__all__ = ["Csps"]

_new = tuple.__new__


class Held(NamedTuple):
    """A message in the send buffer."""

    per: int
    """It may leave when the permits before this index are there."""
    mid: int
    copies: tuple[tuple[str, int], ...]
    """To whom, and the number of its predecessor there."""
    payload: Any


class Csps(HybridEndpoint):
    """Basic hybrid buffering, unicast and multicast (Algorithms 1 and 3)."""

    __slots__ = ("_held", "_unacked", "_waiting")

    def __init__(self, me: str, group: Iterable[str] | None = None) -> None:
        super().__init__(SlidingMap(), me)
        self._unacked: SlidingArray[str | tuple[str, ...]] = SlidingArray(first=1)
        self._waiting: set[str] = set()
        self._held: deque[Held] = deque()

    def _unicast(self, to: str, mid: int, payload: Any) -> None:
        peer = self._peers.get(to) or self._peer(to)
        pid = peer.sent
        peer.sent = mid
        missing = self._missing
        if missing.first != missing.next:
            self._held.append(Held(missing.next, mid, ((to, pid),), payload))
            return
        unacked = self._unacked
        message = _new(Message, ("msg", mid, pid, payload, unacked.first != mid))
        unacked.add(to)
        peer.flight.append(message)
        self._packets.append((to, message))

    def _multicast(self, names: tuple[str, ...], mid: int, payload: Any) -> None:
        copies = []
        for name in names:
            peer = self._peers.get(name) or self._peer(name)
            copies.append((name, peer.sent))
            peer.sent = mid
        self._held.append(Held(self._missing.next, mid, tuple(copies), payload))
        self._permits_came()

    def _permits_came(self) -> None:
        held = self._held
        while held and held[0].per <= self._missing.first:
            self._release(held.popleft())

    def _release(self, held: Held) -> None:
        _, mid, copies, payload = held
        unacked = self._unacked
        oldest = unacked.first == mid
        flag = not oldest or len(copies) > 1
        for name, pid in copies:
            message = _new(Message, ("msg", mid, pid, payload, flag))
            self._peers[name].flight.append(message)
            self._packets.append((name, message))
        if len(copies) == 1:
            unacked.add(copies[0][0])
        else:
            names = tuple([name for name, _ in copies])
            unacked.add(names)
            if oldest and names:
                self._waiting = set(names)
            elif oldest:  # to oneself alone: there is no ack to wait for
                self._slide()

    def _acks_came(self, source: str) -> None:
        unacked = self._unacked
        if self._peers[source].acked < unacked.first:
            return
        waiting = self._waiting
        if waiting:
            if source in waiting:
                waiting.remove(source)
                if not waiting:
                    self._slide()
                elif len(waiting) == 1:
                    self._grant(next(iter(waiting)), unacked.first)
        elif unacked.peek() == source:
            self._slide()

    def _slide(self) -> None:
        """Drop the oldest message, acked by all, and those behind it that are too.

        Permits are due to the other receivers of each one that is dropped, and
        to a single receiver of the one that becomes the oldest (lines 65-67).
        """
        unacked, peers = self._unacked, self._peers
        mid = unacked.first
        while True:
            to = unacked.remove()
            if to.__class__ is not str:
                for name in to:
                    if peers[name].granted < mid:
                        self._grant(name, mid)
            mid += 1
            if mid == unacked.next:
                return
            to = unacked.peek()
            if to.__class__ is str:
                self._grant(to, mid)
                if peers[to].acked < mid:
                    return
            else:
                waiting = {name for name in to if peers[name].acked < mid}
                if len(waiting) == 1:
                    self._grant(next(iter(waiting)), mid)
                if waiting:
                    self._waiting = waiting
                    return

    # -- what people ask ------------------------------------------------------

    def blocked(self) -> list[Blocked]:
        permits = [(k, Wait("permit", *permit)) for permit, k in self._missing.items()]
        here = [
            Blocked(self.me, mid, name, "sender", tuple(wait for k, wait in permits if k < per))
            for per, mid, copies, _ in self._held
            for name, _ in copies
        ]
        return here + super().blocked()

    @property
    def idle(self) -> bool:
        return not self._held and super().idle

    def footprint(self) -> Footprint:
        state, packet = super().footprint()
        receivers = sum(1 if isinstance(to, str) else len(to) for to in self._unacked)
        held = sum(2 + 2 * len(held.copies) for held in self._held)
        return Footprint(state + 2 + receivers + len(self._waiting) + held, packet)

    # -- as a value -----------------------------------------------------------

    def _state(self) -> Hashable:
        held = tuple((self._rank(held.per), held[1:]) for held in self._held)
        return (super()._state(), self._unacked.first, tuple(self._unacked), held)

    def _copy_into(self, twin: Self) -> None:
        super()._copy_into(twin)
        twin._unacked = self._unacked.copy()
        twin._waiting = self._waiting.copy()
        twin._held = self._held.copy()
