"""`sps` with the mistakes of Almeida's Algorithm 2 and of its multicast (ERRATA 2 and 4)."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable
from typing import Any, Self

from ...core.endpoint import Outgoing, Packet
from ...core.hybrid import Permit
from ...core.sps import Sps, SpsPeer, SpsRun
from .hybrid import EarlyPermitsDropped, FlagsDropped, PermitsIgnored, UpcallFirst
from .table import Mutant

__all__ = ["TABLE"]


class SpsPermitsIgnored(PermitsIgnored, Sps):
    """`sps` that releases messages without waiting for permits."""

    __slots__ = ()


class SpsEarlyPermitsDropped(EarlyPermitsDropped, Sps):
    """`sps` that forgets a permit which overtakes its message."""

    __slots__ = ()


class SpsUpcallFirst(UpcallFirst, Sps):
    """`sps` that calls the application before it updates its state."""

    __slots__ = ()


class SpsIdsFromZero(Sps):
    """Messages are numbered from 0, and 0 also means: none yet."""

    __slots__ = ()

    def __init__(self, me: str, group: Iterable[str] | None = None) -> None:
        super().__init__(me, group)
        self._mid = -1
        self._first = self._front = self._next = self._start = 0
        self._u2 = self._u2_in = 0


class _WrongU2(Sps):
    """With an index that is wrong, and so no longer follows from the rest of the state."""

    __slots__ = ()

    def _state(self) -> Hashable:
        return (super()._state(), self._u2, self._lacks and self._lacks.name)


class SpsU2NotMaintained(_WrongU2):
    """A causal send does not move u2: all but the first is flagged, and not all permitted."""

    __slots__ = ()

    def _entered(self, start: int) -> None:
        if start == 1:
            super()._entered(start)
        elif self._front == start:
            self._slide()

    def _slide(self) -> None:
        permits = self._permits.copy()
        super()._slide()
        if not self._u:
            self._permits = permits  # as if u2 had passed the last message


class SpsU2NotAdvanced(_WrongU2):
    """The ack of the message at u2 triggers nothing."""

    __slots__ = ()

    def _advance_u2(self, lacks: SpsPeer, left: bool = True) -> None:
        if not left:
            super()._advance_u2(lacks, left)

    def _slide(self) -> None:
        permits = self._permits.copy()
        super()._slide()
        self._permits = permits


class SpsOwnCopyOnly(_WrongU2):
    """A copy of a multicast is permitted though copies behind it are not acked."""

    __slots__ = ()

    def _lacks_others(self, run: SpsRun, lacks: SpsPeer) -> bool:
        own = run.peers.index(lacks) if lacks in run.ends else len(run.peers)
        run.lack()
        return any(peer.acked < run.mid for peer in run.peers[:own])


class SpsM2BelowWindow(Sps):
    """A causal send does not move m2, so that it points below the buffer."""

    __slots__ = ("_stale",)

    def __init__(self, me: str, group: Iterable[str] | None = None) -> None:
        super().__init__(me, group)
        self._stale = 1

    def receive(self, source: str, packet: Packet) -> None:
        first = self._first
        permit = isinstance(packet, Permit)
        if permit and self._held and self._stale < first:
            raise IndexError(f"m2 is {self._stale}, and the buffer starts at {first}")
        super().receive(source, packet)
        if permit and self._held:
            runs = self._runs
            self._stale = runs[self._m2].mid if self._m2 < runs.next else self._next

    def _state(self) -> Hashable:
        return (super()._state(), self._stale)

    def _copy_into(self, twin: Self) -> None:
        super()._copy_into(twin)
        twin._stale = self._stale


class SpsLastOnly(Sps):
    """Of several messages that can be delivered at once, only the last one is."""

    __slots__ = ()

    def _accept(self, source: str, peer: SpsPeer, message: Packet) -> None:
        if message[1] in peer.early:
            peer.delivered = message[1]
        else:
            super()._accept(source, peer, message)


class SpsFlagWithoutReceiver(FlagsDropped, Sps):
    """Whether a message is flagged does not depend on its receiver."""

    __slots__ = ("_free",)

    def __init__(self, me: str, group: Iterable[str] | None = None) -> None:
        super().__init__(me, group)
        self._free: set[int] = set()
        """Messages that nobody but the one receiver stood in the way of when they were sent."""

    def send(self, to: str | Collection[str], payload: Any) -> int:
        self._close()
        free = self._u2 == self._mid + 1
        mid = super().send(to, payload)
        if free:
            self._free.add(mid)
        return mid

    def _drops(self, to: str, mid: int) -> bool:
        return mid in self._free

    def take_packets(self) -> list[Outgoing]:
        packets = super().take_packets()
        self._free.clear()
        return packets

    def _copy_into(self, twin: Self) -> None:
        super()._copy_into(twin)
        twin._free = self._free.copy()


class SpsUnsentNotCounted(FlagsDropped, Sps):
    """What has not left counts as acked when a message is flagged."""

    __slots__ = ()

    def _drops(self, to: str, mid: int) -> bool:
        """Whether nothing that has left before is unacked by another than `to`."""
        for start, entry in self._u.items():
            held = isinstance(entry, SpsRun) and entry.held
            for k, peer in enumerate(entry.peers if isinstance(entry, SpsRun) else [entry], start):
                left = not held or (isinstance(entry, SpsRun) and peer is entry.left)
                if k < mid and left and peer.name != to and peer.acked < k:
                    return False
        return True


class SpsSelfThroughNetwork(Sps):
    """A message to oneself goes through the buffer and the network."""

    __slots__ = ()

    def send(self, to: str | Collection[str], payload: Any) -> int:
        me, self.me = self.me, ""
        try:
            return super().send(to, payload)
        finally:
            self.me = me


TABLE = (
    Mutant(
        "sps-permits-ignored",
        "sps",
        SpsPermitsIgnored,
        "",
        "sends at once, whatever it has learned",
        "0>2,1; 1>2; 2>",
    ),
    Mutant(
        "sps-ids-from-zero",
        "sps",
        SpsIdsFromZero,
        "2.1",
        "the first message has number 0, which also means none",
        "0>1,1; 1>",
    ),
    Mutant(
        "sps-u2-not-maintained",
        "sps",
        SpsU2NotMaintained,
        "2.2",
        "a causal send does not move u2",
        "0>1,1; 1>2; 2>",
    ),
    Mutant(
        "sps-m2-below-window",
        "sps",
        SpsM2BelowWindow,
        "2.3",
        "a causal send does not move m2",
        "0>2,1; 1>0,2; 2>",
    ),
    Mutant(
        "sps-u2-not-advanced",
        "sps",
        SpsU2NotAdvanced,
        "2.5, line 62",
        "the ack of the message at u2 triggers nothing",
        "0>2,1,1; 1>0,2; 2>",
    ),
    Mutant(
        "sps-last-only",
        "sps",
        SpsLastOnly,
        "2.5, lines 81-87",
        "of several messages that can be delivered only the last is",
        "0>1,1; 1>",
    ),
    Mutant(
        "sps-flag-without-receiver",
        "sps",
        SpsFlagWithoutReceiver,
        "2.7, line 33",
        "the flag does not depend on the receiver",
        "0>2,1; 1>2; 2>",
    ),
    Mutant(
        "sps-unsent-not-counted",
        "sps",
        SpsUnsentNotCounted,
        "2.7",
        "what has not left counts as acked when a message is flagged",
        "0>2,1,2; 1>2,0; 2>",
    ),
    Mutant(
        "sps-early-permits-dropped",
        "sps",
        SpsEarlyPermitsDropped,
        "2.9",
        "a permit that overtakes its message is forgotten",
        "0>2,1; 1>2; 2>",
    ),
    Mutant(
        "sps-upcall-first",
        "sps",
        SpsUpcallFirst,
        "1.6",
        "the application is called before the permit is known to be missing",
        "0>2,1; 1>2; 2>",
    ),
    Mutant(
        "sps-self-through-network",
        "sps",
        SpsSelfThroughNetwork,
        "2.10",
        "a message to oneself goes through the network",
        "0>0,1; 1>0",
    ),
    Mutant(
        "sps-own-copy-only",
        "sps",
        SpsOwnCopyOnly,
        "4",
        "a copy of a multicast is permitted though later copies are not acked",
        "0>1,1+2+3; 1>2; 2>; 3>",
    ),
)
