"""FIFO delivery over any network: a baseline, and the ground that `csps` and `sps` build on.

What a process sends to another is delivered there once, in the order in which it was sent.
Nothing is promised across senders, so causality is violated as soon as three processes talk.
Every causal-order check must catch that. FIFO is one half of Almeida's "SPS + FIFO implies
causal" (Proposition 4.2): `csps` and `sps` add a rule for when a message may be released.

It works like Almeida's Algorithm 1. Messages are numbered in one sequence for all destinations,
and each carries the number of its predecessor to the same destination (`pid`). A message is held
until its predecessor is delivered (lines 44-56), and then acknowledged. FIFO makes acks
cumulative: an ack of n covers everything that was sent to that process up to n.

    invariant   columns of j = what was causal-sent to j and is not acked, in order,
                of which a first part has left;
                delivered[j] = the last message of j delivered here, and all
                of j's messages to this process before it are delivered.

**Columns.** The messages to a process that are not acked are kept as two lists, of numbers and
of payloads, and nothing else: the predecessor of a message is the one before it in the list, or
the last acked one. A packet is made when the driver takes it. A driver that packs many messages
into a datagram takes them in runs (`take_runs`), and hands runs to the receiver (`receive_run`),
without making packets. An ack takes one step, however many messages it covers. So a message
costs two entries in lists, and one look-up of the peer on each side.
"""

from __future__ import annotations

from abc import abstractmethod
from bisect import bisect_left
from collections.abc import Callable, Collection, Hashable, Iterable, Sequence
from functools import partial
from itertools import repeat
from typing import Any, Generic, Self, TypeVar

from .endpoint import (
    Blocked,
    Delivery,
    Endpoint,
    Footprint,
    LocalProtocolError,
    Outgoing,
    Packet,
    RemoteProtocolError,
    Wait,
    destinations,
)
from .fifo_packets import Ack, FifoMessage, check_order
from .run import MessageRun
from .unordered import Datagram, Unordered

__all__ = [
    "Ack",
    "Datagram",
    "Fifo",
    "FifoEndpoint",
    "FifoMessage",
    "FifoPeer",
    "Unordered",
    "check_order",
]

_new = tuple.__new__


class FifoPeer:
    """What an endpoint knows of one other process, for both directions."""

    __slots__ = ("acked", "delivered", "early", "head", "mids", "name", "payloads", "taken")

    def __init__(self, name: str) -> None:
        self.name = name
        self.mids: list[int] = []
        """Numbers of the messages causal-sent to it, in order; the acked are dropped
        when they are as many as the others."""
        self.payloads: list[Any] = []
        """Their payloads."""
        self.head = 0
        """Index of the first that is not acknowledged."""
        self.taken = 0
        """Index of the first that the driver has not taken."""
        self.acked = 0
        """The last message that it has acknowledged."""
        self.delivered = 0
        """Number of its last message delivered here (`ld`, line 25)."""
        self.early: dict[int, Packet] = {}
        """Its messages that arrived too early, by predecessor (`rb`, line 27)."""

    def before(self, k: int) -> int:
        """Return the number of the message before the one at index `k`."""
        return self.mids[k - 1] if k > self.head else self.acked

    def copy(self) -> Self:
        """Return an independent copy."""
        twin = object.__new__(type(self))
        twin.name = self.name
        twin.mids = self.mids[:]
        twin.payloads = self.payloads[:]
        twin.head = self.head
        twin.taken = self.taken
        twin.acked = self.acked
        twin.delivered = self.delivered
        twin.early = self.early.copy()
        return twin

    def state(self) -> Hashable:
        """Return what is known about the peer, as a value; messages to it are not included."""
        return (self.acked, self.delivered, frozenset(self.early.values()))

    def footprint(self) -> int:
        """Return how many integers and identifiers this record holds."""
        return 4 + len(self.mids) - self.head + 2 * len(self.early)


class _Refusing(list[int]):
    """The numbers of messages to a process that was forgotten: there are no more."""

    def append(self, mid: int) -> None:
        raise LocalProtocolError(f"message {mid} is for a process that was forgotten")


def _not_the_successor(source: str, mid: int, pid: int) -> RemoteProtocolError:
    return RemoteProtocolError(
        f"{source!r} sent message {mid} as the one after {pid}, which was another"
    )


def _never_sent(source: str, mid: int) -> RemoteProtocolError:
    return RemoteProtocolError(f"{source!r} acks message {mid}, never sent to it")


P = TypeVar("P", bound=FifoPeer)


class FifoEndpoint(Endpoint, Generic[P]):
    """An endpoint with FIFO order, acks and retransmission; `csps` and `sps` build on it."""

    __slots__ = ("_acks", "_out", "_peers")

    def __init__(self, me: str, group: Iterable[str] | None = None) -> None:
        super().__init__(me)
        self._peers: dict[str, P] = {}
        self._out: list[P] = []
        """The receiver of each message that was released and not taken by the driver."""
        self._acks: dict[str, int] = {}
        """Acks to send, by peer; `take_packets` makes packets of them."""

    @abstractmethod
    def _peer(self, name: str) -> P:
        """Make the record of a process not met before, or raise an error if it was forgotten."""

    def _stranger(self, source: str) -> P:
        """Make the record of a process that has sent its first packet."""
        if not isinstance(source, str) or source in ("", self.me):
            raise RemoteProtocolError(f"a packet from {source!r}, which is no other process")
        return self._peer(source)

    def sender_to(self, name: str) -> Callable[[Any], int]:
        """Return a function that does what `send(name, payload)` does, without the look-up."""
        return partial(self.send, name)

    def _receive_message(self, source: str, message: Packet) -> None:
        try:
            peer = self._peers[source]
        except KeyError:
            if source in self._forgotten:
                return
            peer = self._stranger(source)
        pid = message[2]
        if pid == peer.delivered:
            self._accept(source, peer, message)
            if peer.early:
                self._deliver_early(peer)
        elif message[1] <= peer.delivered:
            self._acks[source] = peer.delivered  # the ack before may have been lost
        elif pid < peer.delivered or peer.early.setdefault(pid, message)[:4] != message[:4]:
            raise _not_the_successor(source, message[1], pid)

    def _deliver_early(self, peer: P) -> None:
        """Deliver what arrived early from a peer, as far as nothing is missing before it."""
        early = peer.early
        while early and peer.delivered in early:
            self._accept(peer.name, peer, early.pop(peer.delivered))

    def _settle(self) -> None:
        for peer in self._peers.values():
            self._deliver_early(peer)

    def receive_run(self, source: str, run: MessageRun) -> None:
        """Handle messages that arrived together.

        This has the effect of `receive` for each of them in turn, and is much faster.

        Args:
            source: The process that sent the messages.
            run: The messages.

        Raises:
            RemoteProtocolError: No correct peer could have sent this run. Nothing was
                changed, so none of its messages was delivered.
        """
        mids, pid, payloads, per, _ = run
        run.check(source)
        if source in self._forgotten:
            return
        peer = self._peers.get(source) or self._stranger(source)
        if pid == peer.delivered and not peer.early and self.on_delivery is None:
            if len(mids) == 1:
                self._deliveries.append(_new(Delivery, (source, mids[0], payloads[0])))
            else:
                triples = zip(repeat(source), mids, payloads)
                self._deliveries += map(_new, repeat(Delivery), triples)
            self._accept_run(source, peer, mids, per)
            peer.delivered = self._acks[source] = mids[-1]
        else:
            self._receive_each(source, peer, run)

    def _receive_each(self, source: str, peer: P, run: MessageRun) -> None:
        """`receive_run` where there is a gap or a repetition, or a callback to call.

        First look at all messages, and change nothing if one of them is wrong. Then
        put them with what arrived early, and deliver what is in order.
        """
        mids, pid, payloads, per, _ = run
        delivered, early = peer.delivered, peer.early
        news: dict[int, Packet] = {}
        for mid, payload in zip(mids, payloads, strict=True):
            if mid > delivered:
                message = self._message(mid, pid, payload, per)
                if pid < delivered or early.get(pid, message)[:4] != message[:4]:
                    raise _not_the_successor(source, mid, pid)
                news[pid] = message
            pid = mid
        if mids[0] <= delivered:
            self._acks[source] = delivered  # the ack before may have been lost
        for before, message in news.items():
            early.setdefault(before, message)
        self._deliver_early(peer)

    @abstractmethod
    def _message(self, mid: int, pid: int, payload: Any, per: bool) -> Packet:
        """Return a message packet of this protocol."""

    def _accept_run(self, source: str, peer: P, mids: Sequence[int], per: bool) -> None:
        """Do what the protocol requires for a run of messages that are delivered."""

    def _accept(self, source: str, peer: P, message: Packet) -> None:
        """Acknowledge and deliver the next message in order (lines 52-56)."""
        mid = message[1]
        peer.delivered = mid
        self._acks[source] = mid
        if self.on_delivery is None:
            self._deliveries.append(_new(Delivery, (source, mid, message[3])))
        else:
            self._call_back(_new(Delivery, (source, mid, message[3])))

    def _receive_ack(self, source: str, mid: int) -> P | None:
        """Drop what a peer has acknowledged; return the peer if the ack was not an old one."""
        try:
            peer = self._peers[source]
        except KeyError:
            if source in self._forgotten:
                return None
            raise _never_sent(source, mid) from None
        if mid <= peer.acked:
            return None
        k, taken, mids = peer.head, peer.taken, peer.mids
        if k == taken or mids[k] != mid:
            k = bisect_left(mids, mid, k, taken)
            if k == taken or mids[k] != mid:
                raise _never_sent(source, mid)
        peer.acked = mid
        k += 1
        if 2 * k < len(mids):
            peer.head = k
        elif k < len(mids):
            del mids[:k], peer.payloads[:k]
            peer.head = 0
            peer.taken = taken - k
        else:
            mids.clear()
            peer.payloads.clear()
            peer.head = peer.taken = 0
        return peer

    # -- when a process is gone -----------------------------------------------

    def _forget(self, peer: str) -> tuple[int, ...]:
        record = self._peers.get(peer)
        if record is None:
            return ()
        failed = tuple(record.mids[record.head :])
        self._let_go_of(record)
        record.mids = _Refusing()  # somebody may have kept the record: see `sender_to`
        del self._peers[peer]
        self._acks.pop(peer, None)
        self._out[:] = [each for each in self._out if each is not record]
        self._after_forgetting()
        return failed

    def _let_go_of(self, record: P) -> None:
        """Remove a peer from everything that a subclass keeps about messages and permits."""
        raise LocalProtocolError(f"{type(self).__name__} cannot go on without {record.name!r}")

    def _after_forgetting(self) -> None:
        """Grant and release what can be, now that this is done."""

    def retransmit(self) -> None:
        for name, peer in self._peers.items():
            flight = range(peer.head, peer.taken)
            self._packets += [(name, self._message_at(peer, k)) for k in flight]

    # -- what the driver takes ------------------------------------------------

    @abstractmethod
    def _message_at(self, peer: P, k: int) -> Packet:
        """Return the packet of the message at index `k` of a peer's columns."""

    @abstractmethod
    def _leaving(self) -> list[Outgoing]:
        """Return the packets of what was released, each once."""

    def _left(self, peer: P) -> int:
        """Return the index behind the last message that was released."""
        return len(peer.mids)

    def _unflagged(self, peer: P, start: int, end: int) -> int:
        """Return the index of the first message, from `start` on, that needs a permit."""
        return end

    def take_packets(self) -> list[Outgoing]:
        packets = self._packets
        self._packets = []
        if self._out:
            packets += self._leaving()
        acks = self._acks
        if acks:
            for name, mid in acks.items():
                packets.append((name, _new(Ack, ("ack", mid))))
            self._acks = {}
        return packets

    def take_runs(self) -> list[tuple[str, MessageRun]]:
        """Return the messages that `take_packets` would return, in runs for each peer.

        The driver repeats what is lost itself, and uses `take_acks` and `take_permits`.
        """
        out = self._out
        if len(out) == 1:  # a short way for a message that leaves alone
            peer = out[0]
            start = peer.taken
            peer.taken = end = start + 1
            mids, payloads = peer.mids[start:end], peer.payloads[start:end]
            per = self._unflagged(peer, start, end) == start
            self._out = []
            return [(peer.name, _new(MessageRun, (mids, peer.before(start), payloads, per, 0)))]
        runs: list[tuple[str, MessageRun]] = []
        for peer in dict.fromkeys(out):
            mids, payloads, start = peer.mids, peer.payloads, peer.taken
            peer.taken = end = self._left(peer)
            flagged = self._unflagged(peer, start, end)
            if start < flagged:
                pid = peer.before(start)
                run = MessageRun(mids[start:flagged], pid, payloads[start:flagged], False)
                runs.append((peer.name, run))
            if flagged < end:
                pid = peer.before(flagged)
                run = MessageRun(mids[flagged:end], pid, payloads[flagged:end], True)
                runs.append((peer.name, run))
        self._out = []
        return runs

    def take_acks(self) -> dict[str, int]:
        """Return the acks to send: for each destination, the last message acknowledged."""
        acks = self._acks
        self._acks = {}
        return acks

    def take_permits(self) -> dict[str, int]:
        """Return the permits to send: for each destination, the last message permitted."""
        return {}

    # -- what people ask ------------------------------------------------------

    def blocked(self) -> list[Blocked]:
        return [
            Blocked(name, message[1], self.me, "receiver", (Wait("predecessor", name, pid),))
            for name, peer in sorted(self._peers.items())
            for pid, message in sorted(peer.early.items())
        ]

    @property
    def held_back(self) -> int:
        return sum(len(peer.early) for peer in self._peers.values())

    @property
    def idle(self) -> bool:
        flying = any(peer.head < len(peer.mids) for peer in self._peers.values())
        return not flying and not self._acks and super().idle

    # -- as a value -----------------------------------------------------------

    def _state(self) -> Hashable:
        peers = [
            (name, peer.state(), self._messages(peer, peer.head))
            for name, peer in self._peers.items()
        ]
        return (frozenset(peers), frozenset(self._acks.items()))

    def _messages(self, peer: P, start: int) -> tuple[Packet, ...]:
        return tuple([self._message_at(peer, k) for k in range(start, len(peer.mids))])

    def _pending(self) -> tuple[Outgoing, ...]:
        ahead = {peer.name: iter(self._messages(peer, peer.taken)) for peer in self._out}
        leaving = [(peer.name, next(ahead[peer.name])) for peer in self._out]
        return (*self._packets, *leaving)

    def _copy_into(self, twin: Self) -> None:
        twin._peers = peers = {name: peer.copy() for name, peer in self._peers.items()}
        twin._out = [peers[peer.name] for peer in self._out]
        twin._acks = self._acks.copy()


class Fifo(FifoEndpoint[FifoPeer]):
    """Reliable FIFO delivery over a network that may lose, copy and reorder."""

    __slots__ = ()

    def _peer(self, name: str) -> FifoPeer:
        self._refuse_forgotten((name,))
        peer = self._peers[name] = FifoPeer(name)
        return peer

    def _let_go_of(self, record: FifoPeer) -> None:
        pass  # nothing refers to it

    def readmit(self, peer: str) -> None:
        self._forgotten.discard(peer)

    def sender_to(self, name: str) -> Callable[[Any], int]:
        peer = self._peers.get(name) or self._peer(name)

        def send(payload: Any) -> int:
            peer.mids.append(mid := self._mid + 1)  # which refuses if the peer was forgotten
            peer.payloads.append(payload)
            self._out.append(peer)
            self._mid = mid
            return mid

        return send

    def send(self, to: str | Collection[str], payload: Any) -> int:
        if to.__class__ is str and to and to != self.me:
            peer = self._peers.get(to) or self._peer(to)
            mid = self._mid = self._mid + 1
            peer.mids.append(mid)
            peer.payloads.append(payload)
            self._out.append(peer)
            return mid
        names = destinations(to)
        self._refuse_forgotten(names)
        mid = self._mid = self._mid + 1
        for name in names:
            if name != self.me:
                peer = self._peers.get(name) or self._peer(name)
                peer.mids.append(mid)
                peer.payloads.append(payload)
                self._out.append(peer)
        if self.me in names:
            self._deliver(self.me, mid, payload)
        return mid

    def _message(self, mid: int, pid: int, payload: Any, per: bool) -> Packet:
        return _new(FifoMessage, ("msg", mid, pid, payload))

    def _message_at(self, peer: FifoPeer, k: int) -> Packet:
        return self._message(peer.mids[k], peer.before(k), peer.payloads[k], False)

    def _leaving(self) -> list[Outgoing]:
        packets: list[Outgoing] = []
        for peer in self._out:
            k = peer.taken
            peer.taken = k + 1
            mids = peer.mids
            pid = mids[k - 1] if k > peer.head else peer.acked
            packets.append((peer.name, _new(FifoMessage, ("msg", mids[k], pid, peer.payloads[k]))))
        self._out = []
        return packets

    def receive(self, source: str, packet: Packet) -> None:
        kind = packet.__class__
        if kind is FifoMessage:
            self._receive_message(source, packet)
        elif kind is Ack:
            self._receive_ack(source, packet[1])
        else:
            raise RemoteProtocolError(f"{source!r} sent {packet!r}, which is not a packet of fifo")

    def footprint(self) -> Footprint:
        state = 1 + sum(1 + peer.footprint() for peer in self._peers.values())
        return Footprint(state, {"msg": FifoMessage.integers, "ack": Ack.integers})
