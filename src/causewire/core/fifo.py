"""FIFO delivery over any network, and no order at all: the two baselines.

**FIFO.** What a process sends to another is delivered there once and in the
order in which it was sent; nothing is promised across senders, so causality is
violated as soon as three processes talk. It is here for two reasons: it is the
known-bad that every causal-order check must catch, and it is one half of
Almeida's "SPS + FIFO implies causal" (Proposition 4.2): `csps` and `sps` are
this endpoint plus a rule for when a message may be released.

The way of Almeida's Algorithm 1: messages are numbered in one sequence for all
destinations, and each carries the number of its predecessor to the same
destination (`pid`), so the receiver sees gaps. A message is held until its
predecessor is delivered (lines 44-56), then acknowledged. FIFO makes acks
cumulative: an ack of n covers all that was sent to that process up to n, so a
lost ack is made up for by the next one, and one integer per peer is all that
has to travel, on whatever travels anyway.

    invariant   flight[j] = what was released to j and is not acked, in order;
                delivered[j] = the last message of j delivered here, and all
                of j's messages to here before it are delivered.

Cost per message: one record in `flight`, one look-up of the peer on each side.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Collection, Hashable, Iterable, Sequence
from itertools import repeat
from operator import lt
from typing import Any, Generic, Self, TypeVar

from .endpoint import (
    Blocked,
    Delivery,
    Endpoint,
    Footprint,
    Numbered,
    NumberedMessage,
    Outgoing,
    Packet,
    RemoteProtocolError,
    Wait,
    check_number,
    destinations,
)

__all__ = ["Ack", "Fifo", "FifoEndpoint", "Message", "Peer", "Unordered"]

_new = tuple.__new__


def check_order(mid: int, pid: int) -> None:
    """Refuse numbers of a message and its predecessor that cannot be."""
    check_number("mid", mid, 1)
    check_number("pid", pid, 0)
    if pid >= mid:
        raise RemoteProtocolError(f"message {mid} cannot come after message {pid}")


class Message(Packet):
    """Message `mid`, to be delivered next after message `pid` (0: the first)."""

    __slots__ = ()
    kind = "msg"
    fields = ("mid", "pid", "payload")
    integers = 2

    def __new__(cls, mid: int, pid: int, payload: Any) -> Self:
        check_order(mid, pid)
        return _new(cls, ("msg", mid, pid, payload))


class Ack(Numbered):
    """All that you sent me up to message `mid` has been delivered here."""

    __slots__ = ()
    kind = "ack"


class Peer:
    """What an endpoint knows of one other process, for both directions."""

    __slots__ = ("acked", "delivered", "early", "flight", "sent")

    def __init__(self) -> None:
        self.sent = 0
        """Number of the last message causal-sent to it (`ls`, line 24)."""
        self.acked = 0
        """It has delivered all messages up to this one."""
        self.flight: dict[int, Packet] = {}
        """Released to it and not acknowledged, by number, in order."""
        self.delivered = 0
        """Number of its last message delivered here (`ld`, line 25)."""
        self.early: dict[int, Packet] = {}
        """Its messages that arrived too early, by predecessor (`rb`, line 27)."""

    def copy(self) -> Self:
        twin = object.__new__(type(self))
        twin.sent = self.sent
        twin.acked = self.acked
        twin.flight = self.flight.copy()
        twin.delivered = self.delivered
        twin.early = self.early.copy()
        return twin

    def state(self) -> Hashable:
        return (
            self.sent,
            self.acked,
            tuple(self.flight.values()),
            self.delivered,
            frozenset(self.early.values()),
        )

    def footprint(self) -> int:
        return 4 + 2 * (len(self.flight) + len(self.early))


def _never_sent(source: str, mid: int) -> RemoteProtocolError:
    return RemoteProtocolError(f"{source!r} acks message {mid}, never sent to it")


P = TypeVar("P", bound=Peer)


class FifoEndpoint(Endpoint, Generic[P]):
    """The order and the reliability; `csps` and `sps` build on it."""

    __slots__ = ("_acks", "_peers")

    def __init__(self, me: str, group: Iterable[str] | None = None) -> None:
        super().__init__(me)
        self._peers: dict[str, P] = {}
        self._acks: dict[str, int] = {}
        """Acks that are due, by peer; `take_packets` makes packets of them."""

    @abstractmethod
    def _peer(self, name: str) -> P:
        """Make the record of a process not met before."""

    def _stranger(self, source: str) -> P:
        """Make the record of a process that a first packet came from."""
        if not isinstance(source, str) or source in ("", self.me):
            raise RemoteProtocolError(f"a packet from {source!r}, which is no other process")
        return self._peer(source)

    def _receive_message(self, source: str, message: Packet) -> None:
        try:
            peer = self._peers[source]
        except KeyError:
            peer = self._stranger(source)
        pid = message[2]
        if pid == peer.delivered:
            self._accept(source, peer, message)
            early = peer.early
            while early and peer.delivered in early:
                self._accept(source, peer, early.pop(peer.delivered))
        elif message[1] <= peer.delivered:
            self._acks[source] = peer.delivered  # the ack before may have been lost
        elif pid < peer.delivered or peer.early.get(pid, message) != message:
            raise RemoteProtocolError(
                f"{source!r} sent message {message[1]} as the one after {pid}, which was another"
            )
        else:
            peer.early[pid] = message

    def receive_run(
        self, source: str, pid: int, mids: Sequence[int], payloads: Sequence[Any], per: bool = False
    ) -> None:
        """Messages that follow one another arrived together, the first next after `pid`.

        The same as `receive` for each in turn, at a fraction of the cost where
        all are in order: a transport that packs many messages into a datagram
        need not make a packet of each.
        """
        if not mids or mids[0] <= pid or not all(map(lt, mids, mids[1:])):
            raise RemoteProtocolError(f"{source!r} sent {mids} as messages that follow {pid}")
        peer = self._peers.get(source) or self._stranger(source)
        if pid == peer.delivered and not peer.early and self.on_delivery is None:
            triples = zip(repeat(source, len(mids)), mids, payloads, strict=True)
            self._deliveries += map(_new, repeat(Delivery), triples)
            self._accept_run(source, peer, mids, per)
            peer.delivered = self._acks[source] = mids[-1]
        else:
            for mid, payload in zip(mids, payloads, strict=True):
                self._receive_message(source, self._message(mid, pid, payload, per))
                pid = mid

    @abstractmethod
    def _message(self, mid: int, pid: int, payload: Any, per: bool) -> Packet:
        """A message packet of this protocol."""

    def _accept_run(self, source: str, peer: P, mids: Sequence[int], per: bool) -> None:
        """What a run of messages in order asks for beside its delivery."""

    def _accept(self, source: str, peer: P, message: Packet) -> None:
        """The next message in order: acknowledge and deliver it (lines 52-56)."""
        mid = message[1]
        peer.delivered = mid
        self._acks[source] = mid
        if self.on_delivery is None:
            self._deliveries.append(_new(Delivery, (source, mid, message[3])))
        else:
            self.on_delivery(_new(Delivery, (source, mid, message[3])))

    def _receive_ack(self, source: str, mid: int) -> bool:
        """Drop what the peer has delivered; returns whether that was news."""
        try:
            peer = self._peers[source]
        except KeyError:
            raise _never_sent(source, mid) from None
        if mid <= peer.acked:
            return False
        flight = peer.flight
        if mid not in flight:
            raise _never_sent(source, mid)
        k = mid
        while k > peer.acked:
            k = flight.pop(k)[2]  # on to its predecessor
        peer.acked = mid
        return True

    def retransmit(self) -> None:
        for name, peer in self._peers.items():
            self._packets.extend([(name, message) for message in peer.flight.values()])

    def take_packets(self) -> list[Outgoing]:
        packets = self._packets
        self._packets = []
        acks = self._acks
        if acks:
            for name, mid in acks.items():
                packets.append((name, _new(Ack, ("ack", mid))))
            self._acks = {}
        return packets

    def blocked(self) -> list[Blocked]:
        return [
            Blocked(name, message[1], self.me, "receiver", (Wait("predecessor", name, pid),))
            for name, peer in sorted(self._peers.items())
            for pid, message in sorted(peer.early.items())
        ]

    @property
    def idle(self) -> bool:
        flying = any(peer.flight for peer in self._peers.values())
        return not flying and not self._acks and super().idle

    def _state(self) -> Hashable:
        peers = ((name, peer.state()) for name, peer in self._peers.items())
        return (frozenset(peers), frozenset(self._acks.items()))

    def _copy_into(self, twin: Self) -> None:
        twin._peers = {name: peer.copy() for name, peer in self._peers.items()}
        twin._acks = self._acks.copy()


class Fifo(FifoEndpoint[Peer]):
    """Reliable FIFO delivery over a network that may lose, copy and reorder."""

    __slots__ = ()

    def _peer(self, name: str) -> Peer:
        peer = self._peers[name] = Peer()
        return peer

    def send(self, to: str | Collection[str], payload: Any) -> int:
        if to.__class__ is str and to and to != self.me:
            mid = self._mid = self._mid + 1
            self._release(to, mid, payload)
            return mid
        names = destinations(to)
        mid = self._mid = self._mid + 1
        for name in names:
            if name != self.me:
                self._release(name, mid, payload)
        if self.me in names:
            self._deliver(self.me, mid, payload)
        return mid

    def _message(self, mid: int, pid: int, payload: Any, per: bool) -> Packet:
        return _new(Message, ("msg", mid, pid, payload))

    def _release(self, to: str, mid: int, payload: Any) -> None:
        peer = self._peers.get(to) or self._peer(to)
        message = _new(Message, ("msg", mid, peer.sent, payload))
        peer.sent = mid
        peer.flight[mid] = message
        self._packets.append((to, message))

    def receive(self, source: str, packet: Packet) -> None:
        kind = packet.__class__
        if kind is Message:
            self._receive_message(source, packet)
        elif kind is Ack:
            self._receive_ack(source, packet[1])
        else:
            raise RemoteProtocolError(f"{source!r} sent {packet!r}, which is no packet of fifo")

    def footprint(self) -> Footprint:
        state = 1 + sum(1 + peer.footprint() for peer in self._peers.values())
        return Footprint(state, {"msg": Message.integers, "ack": Ack.integers})


class Datagram(NumberedMessage):
    """Message `mid`, on its own."""

    __slots__ = ()
    kind = "msg"


class Unordered(Endpoint):
    """Delivers on arrival: no state, no order, and no defence against faults."""

    __slots__ = ()

    def send(self, to: str | Collection[str], payload: Any) -> int:
        names = (to,) if isinstance(to, str) and to else destinations(to)
        mid = self._mid = self._mid + 1
        message = _new(Datagram, ("msg", mid, payload))
        for name in names:
            if name != self.me:
                self._packets.append((name, message))
        if self.me in names:
            self._deliver(self.me, mid, payload)
        return mid

    def receive(self, source: str, packet: Packet) -> None:
        if packet.__class__ is not Datagram or source == self.me:
            raise RemoteProtocolError(
                f"{source!r} sent {packet!r}, which is no packet of unordered"
            )
        self._deliver(source, packet[1], packet[2])

    def blocked(self) -> list[Blocked]:
        return []

    def footprint(self) -> Footprint:
        return Footprint(1, {"msg": Datagram.integers})

    def _state(self) -> Hashable:
        return ()

    def _copy_into(self, twin: Self) -> None:
        pass
