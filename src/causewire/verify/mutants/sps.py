"""`sps` with the mistakes of Almeida's Algorithm 2 and of its multicast (ERRATA 2 and 4)."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable
from typing import Any, Self

from ...core.endpoint import Outgoing, Packet
from ...core.hybrid import Permit
from ...core.sps import BufferedMessage, Sps, SpsPeer
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
        self._buffer.first = 0
        self._m1 = self._m2 = self._u2 = 0


class _WrongU2(Sps):
    """With an index that is wrong, and so no longer follows from the rest of the state."""

    __slots__ = ()

    def _state(self) -> Hashable:
        return (super()._state(), self._u2, self._lacks)


class SpsU2NotMaintained(_WrongU2):
    """A causal send does not move u2: all but the first is flagged, and not all permitted."""

    __slots__ = ()

    def send(self, to: str | Collection[str], payload: Any) -> int:
        u2 = self._u2
        if self._mid:
            self._u2 = 0
            if isinstance(to, str) and self._buffer.first == self._mid + 1:
                self._lacks = to
        mid = super().send(to, payload)
        self._u2 = u2
        return mid


class SpsU2NotAdvanced(_WrongU2):
    """The ack of the message at u2 triggers nothing."""

    __slots__ = ()

    def _advance_u2(self, lacks: str) -> None:
        pass


class SpsOwnCopyOnly(_WrongU2):
    """A copy of a multicast is permitted though copies behind it are not acked."""

    __slots__ = ()

    def _lacks_others(self, held: BufferedMessage, mid: int) -> bool:
        own = held.names.index(self._lacks) if self._lacks in held.names else len(held.names)
        return any(self._peers[name].acked < mid for name in held.names[:own])


class SpsM2BelowWindow(Sps):
    """A causal send does not move m2, so that it points below the buffer."""

    __slots__ = ("_stale",)

    def __init__(self, me: str, group: Iterable[str] | None = None) -> None:
        super().__init__(me, group)
        self._stale = 1

    def receive(self, source: str, packet: Packet) -> None:
        first = self._buffer.first
        permit = isinstance(packet, Permit)
        if permit and self._held and self._stale < first:
            raise IndexError(f"m2 is {self._stale}, and the buffer starts at {first}")
        super().receive(source, packet)
        if permit and self._held:
            self._stale = self._m2

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
        for k in range(self._buffer.first, mid):
            entry = self._buffer[k]
            if isinstance(entry, str) and entry != to and self._peers[entry].acked < k:
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
