"""`csps` with the mistakes of Almeida's Algorithms 1 and 3 (ERRATA 1 and 3)."""

from __future__ import annotations

from collections.abc import Iterable

from ...core.csps import BufferedRun, Csps, Departure
from ...core.endpoint import Outgoing, Packet
from ...core.fifo import Ack
from ...core.hybrid import HybridMessage, HybridPeer
from .hybrid import EarlyPermitsDropped, PermitsIgnored, UpcallFirst
from .table import Mutant

__all__ = ["TABLE"]


class CspsPermitsIgnored(PermitsIgnored, Csps):
    """`csps` that releases messages without waiting for permits."""

    __slots__ = ()


class CspsEarlyPermitsDropped(EarlyPermitsDropped, Csps):
    """`csps` that forgets a permit which overtakes its message."""

    __slots__ = ()


class CspsUpcallFirst(UpcallFirst, Csps):
    """`csps` that calls the application before it updates its state."""

    __slots__ = ()


class CspsIdsFromZero(Csps):
    """Messages are numbered from 0, and 0 also means: none yet."""

    __slots__ = ()

    def __init__(self, me: str, group: Iterable[str] | None = None) -> None:
        super().__init__(me, group)
        self._mid = -1
        self._oldest = 0


class CspsUnboundName(Csps):
    """The answer to a duplicate uses a name that does not exist."""

    __slots__ = ()

    def receive(self, source: str, packet: Packet) -> None:
        peer = self._peers.get(source)
        if peer is not None and isinstance(packet, HybridMessage) and packet[1] <= peer.delivered:
            raise NameError("name 'b' is not defined")
        super().receive(source, packet)


class CspsOnePid(Csps):
    """All copies of a multicast bear the predecessor of one of them."""

    __slots__ = ()

    def take_packets(self) -> list[Outgoing]:
        packets = super().take_packets()
        pids: dict[int, int] = {}
        for k, (to, packet) in enumerate(packets):
            if packet.__class__ is HybridMessage:
                mid, pid, payload, per = packet[1:]
                packets[k] = (to, HybridMessage(mid, pids.setdefault(mid, pid), payload, per))
        return packets


class CspsReceiversForgotten(Csps):
    """The receivers of a multicast disappear with their acks; nobody is permitted."""

    __slots__ = ()

    def _grant(self, to: str, mid: int) -> None:
        self._peers[to].granted = mid


class CspsStrictAcks(Csps):
    """An ack that says nothing new is an error."""

    __slots__ = ()

    def receive(self, source: str, packet: Packet) -> None:
        if isinstance(packet, Ack) and packet[1] <= self._peers[source].acked:
            raise KeyError(source)
        super().receive(source, packet)


class CspsMulticastUnflagged(Csps):
    """A multicast needs no permit if all before it is acked."""

    __slots__ = ()

    def _release(self, held: BufferedRun) -> None:
        if self._oldest == held.mid:
            for peer in held.peers:
                peer.granted = held.mid
        super()._release(held)


class CspsPermitBeforeAcks(Csps):
    """A multicast is permitted when it is the oldest, though it is not acked itself."""

    __slots__ = ()

    def _release(self, held: BufferedRun) -> None:
        super()._release(held)
        self._permit_oldest()

    def _slide(self) -> None:
        super()._slide()
        self._permit_oldest()

    def _permit_oldest(self) -> None:
        front = self._unacked[0] if self._unacked else None
        if isinstance(front, Departure):
            for peer in front.peers:
                if peer.granted < self._oldest:
                    self._permits[peer.name] = self._oldest


class CspsOldestOnly(Csps):
    """A message to the process whose permit is the oldest missing waits for no other."""

    __slots__ = ()

    def _waits_only_for(self) -> HybridPeer | None:
        return self._peers[self._missing.peek()[0]]


TABLE = (
    Mutant(
        "csps-permits-ignored",
        "csps",
        CspsPermitsIgnored,
        "",
        "sends at once, whatever it has learned",
        "0>2,1; 1>2; 2>",
    ),
    Mutant(
        "csps-ids-from-zero",
        "csps",
        CspsIdsFromZero,
        "1.1",
        "the first message has number 0, which also means none",
        "0>1,1; 1>",
    ),
    Mutant(
        "csps-unbound-name",
        "csps",
        CspsUnboundName,
        "1.2",
        "the answer to a duplicate uses an unbound name",
        "0>1; 1>",
        {"duplicates": 1},
    ),
    Mutant(
        "csps-early-permits-dropped",
        "csps",
        CspsEarlyPermitsDropped,
        "1.5",
        "a permit that overtakes its message is forgotten",
        "0>1,1; 1>0",
    ),
    Mutant(
        "csps-upcall-first",
        "csps",
        CspsUpcallFirst,
        "1.6",
        "the application is called before the permit is known to be missing",
        "0>2,1; 1>2; 2>",
    ),
    Mutant(
        "csps-one-pid",
        "csps",
        CspsOnePid,
        "3.1",
        "all copies of a multicast bear the same predecessor",
        "0>1,1+2; 1>; 2>",
    ),
    Mutant(
        "csps-receivers-forgotten",
        "csps",
        CspsReceiversForgotten,
        "3.2",
        "the receivers of a multicast disappear with their acks",
        "0>1+2; 1>2; 2>",
    ),
    Mutant(
        "csps-strict-acks",
        "csps",
        CspsStrictAcks,
        "3.3",
        "an ack that says nothing new is an error",
        "0>1,1; 1>",
    ),
    Mutant(
        "csps-multicast-unflagged",
        "csps",
        CspsMulticastUnflagged,
        "3.5, line 13",
        "a multicast needs no permit if all before it is acked",
        "0>1+2; 1>2; 2>",
    ),
    Mutant(
        "csps-permit-before-acks",
        "csps",
        CspsPermitBeforeAcks,
        "3.5, line 34",
        "a multicast is permitted before it is acked itself",
        "0>1+2; 1>2; 2>",
    ),
    Mutant(
        "csps-oldest-only",
        "csps",
        CspsOldestOnly,
        "",
        "a message to the process whose permit is the oldest missing waits for no other",
        "0>2,1; 1>0; 2>0,1",
        options={"replies_early": True},
    ),
)
