"""What Almeida's two hybrid-buffering protocols have in common: FIFO plus permits.

A process may send to others while its own earlier messages are in flight. Whoever
receives such a message learns about messages that others have not received, and must not
pass that knowledge on before they have. The sender learns from acks when they have, and
says so with a **permit**:

    sender      flags a message (`per`) that leaves while earlier messages are not
                acknowledged; its permit follows when the missing acks have come.
    receiver    delivers a flagged message at once, but keeps what it sends from then
                on in its send buffer until the permit has come.

So when a message leaves a process, all messages in its past have been delivered, except
those of the process itself, and these are in order by FIFO: "SPS + FIFO implies causal"
(Proposition 4.2). `csps` and `sps`, the two subclasses of the class below, differ only in
which acks a permit waits for, and which permits a message waits for.

**Permits are cumulative**, like acks, for each pair of processes. A permit for message n
to j states that what was sent before n has been delivered elsewhere, and this holds for
every earlier message to j as well. So a permit is one integer, a watermark. It may come
early (before its message), late, twice, or not at all if a later one comes. This replaces
the set of early permits of ERRATA 1.5 and 2.9, and means that the periodic block is needed
for lost packets only, on any network. A peer that acknowledges and permits each message
individually, as the paper does, is understood: it sends the same packets, only more of
them.

Watermarks also make it simple to find out what is missing. When a flagged message is
delivered, it enters a sliding array p. It is permitted if its number is not above the
watermark of its sender. The paper's sliding map, from which permits are removed by name,
is not needed: what has been permitted stays in p until it comes to the front, and is
dropped there. Between two messages that are held back, one entry for each sender is
enough, as its last permit covers the others.

**Flags need no memory.** For each receiver, the sender knows up to which number its
messages are permitted (`granted`), exactly and at all times. A message is flagged if its
number is above that when it leaves. If it leaves again after it was permitted, it carries
no flag, and that tells the receiver the same as the permit.

**Repeating a lost permit.** When the driver calls `retransmit`, a receiver that still
lacks permits sends an `Ask`: an ack that requests an answer. The sender answers with its
watermark for that process. So a lost permit costs one period of retransmission. (The
paper leaves this out. A repeated plain ack is answered too, as in lines 58-59.)

A copy to the sender itself is delivered inside `send`, outside all buffers. SPS would be
unsafe otherwise (ERRATA 2.10), and it is correct under CSPS as well.
"""

from __future__ import annotations

from abc import abstractmethod
from bisect import bisect_right
from collections.abc import Collection, Hashable, Iterable, Iterator, Sequence
from typing import Any, Generic, Self, TypeVar

from .endpoint import (
    WORD_BITS,
    Delivery,
    Footprint,
    Note,
    Numbered,
    Outgoing,
    Packet,
    RemoteProtocolError,
    destinations,
)
from .fifo import Ack, FifoEndpoint, FifoPeer, check_order
from .sliding import SlidingArray

__all__ = ["Ask", "HybridEndpoint", "HybridMessage", "HybridPeer", "MissingPermit", "Permit"]

_new = tuple.__new__

MissingPermit = tuple[str, int]
"""Sender and number of a message that was delivered with a flag (`Per`)."""


class HybridMessage(Packet):
    """Message `mid`, whose predecessor is `pid`; with `per`, its permit will follow."""

    __slots__ = ()
    kind = "msg"
    fields = ("mid", "pid", "payload", "per")
    numbers = ("mid", "pid")
    integers = 2
    flags = 1

    def __new__(cls, mid: int, pid: int, payload: Any, per: bool) -> Self:
        check_order(mid, pid)
        if type(per) is not bool:
            raise RemoteProtocolError(f"per must be a boolean, not {per!r}")
        return _new(cls, ("msg", mid, pid, payload, per))


class Permit(Numbered):
    """You may pass on what you learned from my messages up to `mid`."""

    __slots__ = ()
    kind = "permit"


class Ask(Numbered):
    """An ack of `mid` from a process that still lacks a permit."""

    __slots__ = ()
    kind = "ask"
    numbered_by = "destination"


class HybridPeer(FifoPeer):
    """What an endpoint knows of one other process, including permits."""

    __slots__ = ("flagged", "granted", "permit")

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.flagged = -1
        """Index in p of its newest message there; -1 if there is none that lacks its permit."""
        self.granted = 0
        """Messages to it up to this one are permitted: they need no flag, or their permit
        was sent. It is exact, and changes at the event that makes it true."""
        self.permit = 0
        """Its messages up to this one are permitted."""

    def copy(self) -> Self:
        """Return an independent copy."""
        twin = super().copy()
        twin.flagged = self.flagged
        twin.granted = self.granted
        twin.permit = self.permit
        return twin

    def state(self) -> Hashable:
        """Return what is known about the peer, as a value; messages to it are not included."""
        # A permit for nothing but delivered messages no longer matters.
        early = self.permit if self.permit > self.delivered else 0
        return (super().state(), self.granted, early)

    def footprint(self) -> int:
        """Return how many integers and identifiers this record holds."""
        return super().footprint() + 3


H = TypeVar("H", bound=HybridPeer)


class HybridEndpoint(FifoEndpoint[H], Generic[H]):
    """FIFO delivery with permits; subclasses decide what has to wait for what."""

    __slots__ = ("_held", "_missing", "_p2", "_permits", "_sealed")

    def __init__(self, me: str, group: Iterable[str] | None = None) -> None:
        super().__init__(me)
        self._missing: SlidingArray[MissingPermit] = SlidingArray()
        """`p`: flagged messages that were delivered, in order. The first lacks its permit."""
        self._p2 = 0
        self._sealed = 0
        """Nothing in the send buffer waits for a permit in p from this index on, which is not
        before p.first. Set when a message is held, and when p.first passes it."""
        self._held: Any
        """What is in the send buffer, or how much; false if it is empty. Set by subclasses."""
        self._permits: dict[str, int] = {}
        """Permits to send, by peer; `take_packets` makes packets of them."""

    # -- the rule, which a subclass defines -------------------------------------

    @abstractmethod
    def _multicast(self, names: tuple[str, ...], mid: int, payload: Any) -> None:
        """Release a message to any number of other processes but one, or hold it back."""

    @abstractmethod
    def _acks_came(self, peer: H) -> None:
        """Grant the permits that can be granted, after an ack of new messages."""

    @abstractmethod
    def _permits_came(self) -> None:
        """Release what can be released of what is held, after a permit came."""

    # -- events ---------------------------------------------------------------

    def _send_to(self, to: str | Collection[str], payload: Any) -> int:
        """Send a message that is not to exactly one other process."""
        names = destinations(to)
        self._refuse_forgotten(names)
        others = tuple([name for name in names if name != self.me])
        if len(others) == 1:
            mid = self.send(others[0], payload)
        else:
            mid = self._mid = self._mid + 1
            self._multicast(others, mid, payload)
        if len(others) < len(names):
            self._deliver(self.me, mid, payload)
        return mid

    def receive(self, source: str, packet: Packet) -> None:
        kind = packet.__class__
        if kind is HybridMessage:
            peer = self._peers.get(source)
            if peer is not None and packet[2] == peer.delivered and not peer.early:
                self._accept(source, peer, packet)  # next in order, and nothing behind it
            else:
                self._receive_message(source, packet)
        elif kind is Ack:
            peer = self._receive_ack(source, packet[1])
            if peer is not None:
                self._acks_came(peer)
            else:
                self._repeat_permit(source)
        elif kind is Permit:
            self._receive_permit(source, packet[1])
        elif kind is Ask:
            peer = self._receive_ack(source, packet[1])
            if peer is not None:
                self._acks_came(peer)
            self._repeat_permit(source)
        else:
            raise RemoteProtocolError(
                f"{source!r} sent {packet!r}, which is not a packet of this protocol"
            )

    def _accept(self, source: str, peer: H, message: Packet) -> None:
        """Deliver the next message, after noting that its permit is missing (ERRATA 1.6)."""
        mid = message[1]
        peer.delivered = mid
        if message[4] and mid > peer.permit:  # as in `_await_permit`, without the call
            missing = self._missing
            k = peer.flagged
            if k < self._sealed:
                k = peer.flagged = missing.next
                missing.next = k + 1
            missing.at[k] = (source, mid)
        self._acks[source] = mid
        if self.on_delivery is None:
            self._deliveries.append(_new(Delivery, (source, mid, message[3])))
        else:
            self._call_back(_new(Delivery, (source, mid, message[3])))

    def _message(self, mid: int, pid: int, payload: Any, per: bool) -> Packet:
        return _new(HybridMessage, ("msg", mid, pid, payload, per))

    def _accept_run(self, source: str, peer: H, mids: Sequence[int], per: bool) -> None:
        if per and mids[-1] > peer.permit:
            self._await_permit(source, peer, mids[-1])

    def _await_permit(self, source: str, peer: H, mid: int) -> None:
        """Message `mid` of a peer is delivered with a flag, and its permit is missing.

        Permits are cumulative, so the permit for this message takes the place of one
        that is missing for an earlier message of the same peer, unless something was
        held back between the two: that waits for the earlier permit alone.
        """
        missing = self._missing
        k = peer.flagged
        if k < self._sealed:
            k = peer.flagged = missing.next
            missing.next = k + 1
        missing.at[k] = (source, mid)

    def _receive_permit(self, source: str, mid: int) -> None:
        """Note that messages up to `mid` are permitted, even those that have not arrived."""
        try:
            peer = self._peers[source]
        except KeyError:
            if source in self._forgotten:
                return
            peer = self._stranger(source)
        if mid <= peer.permit:
            return
        peer.permit = mid
        missing = self._missing
        at = missing.at
        if at:
            first = missing.first
            sender, delivered = at[first]
            if sender == source and delivered <= mid:
                peers = self._peers
                while delivered <= peers[sender].permit:
                    del at[first]
                    first += 1
                    if not at:
                        missing.slide(first)
                        break
                    sender, delivered = at[first]
                missing.first = first
                if self._sealed < first:
                    self._sealed = first
            k = peer.flagged
            if k >= self._sealed and at[k][1] <= mid:
                peer.flagged = -1
        if self._held:
            self._permits_came()

    def holds(self) -> bool:
        """Return whether a message waits for permits."""
        return bool(self._held)

    def _second(self) -> int:
        """Return p2: the index of the first missing permit of another than the oldest's.

        It is p.next if all missing permits are from one process. It only moves forward,
        and is brought up to date when somebody asks (Algorithm 2, lines 38-45).
        """
        missing, peers = self._missing, self._peers
        p2 = max(self._p2, missing.first)
        if missing:
            oldest, _ = missing.peek()
            while p2 < missing.next:
                sender, mid = missing[p2]
                if sender != oldest and mid > peers[sender].permit:
                    break
                p2 += 1
        self._p2 = p2
        return p2

    def _let_go_of(self, record: H) -> None:
        """Treat the permits of a peer as if they had come.

        What is in p keeps its index, because what is held refers to it, and becomes
        message 0 of some other peer, which needs no permit.
        """
        self._permits.pop(record.name, None)
        missing = self._missing
        others = [name for name, _ in missing if name != record.name]
        if not others:
            missing.at.clear()
            missing.slide(missing.next)
            return
        for k, (sender, _) in missing.items():
            if sender == record.name:
                missing.at[k] = (others[0], 0)

    def readmit(self, peer: str) -> None:
        self._forgotten.discard(peer)

    def _after_forgetting(self) -> None:
        missing, peers = self._missing, self._peers
        while missing and missing.peek()[1] <= peers[missing.peek()[0]].permit:
            missing.remove()
        self._sealed = max(self._sealed, missing.first)
        if self._held:
            self._permits_came()

    def _grant(self, to: str, mid: int) -> None:
        """Permit the messages to `to` up to `mid`."""
        self._peers[to].granted = self._permits[to] = mid

    def _permit_all(self, ends: dict[H, int]) -> None:
        """Permit the last message to each of several processes, and those before it."""
        for peer, mid in ends.items():
            if peer.granted < mid:
                self._grant(peer.name, mid)

    def _repeat_permit(self, source: str) -> None:
        """Send the last permit again, as it may have been lost."""
        peer = self._peers.get(source)
        if peer is not None and peer.granted:
            self._permits[source] = peer.granted

    def retransmit(self) -> None:
        super().retransmit()
        askers = sorted(self._waits())
        self._packets.extend([(name, Ask(self._peers[name].delivered)) for name in askers])

    def take_packets(self) -> list[Outgoing]:
        packets = self._packets
        self._packets = []
        if self._out:
            packets += self._leaving()
        acks = self._acks
        if acks:
            packets += [(name, _new(Ack, ("ack", mid))) for name, mid in acks.items()]
            self._acks = {}
        permits = self._permits
        if permits:
            packets += [(name, _new(Permit, ("permit", mid))) for name, mid in permits.items()]
            self._permits = {}
        return packets

    def take_permits(self) -> dict[str, int]:
        permits = self._permits
        self._permits = {}
        return permits

    def _message_at(self, peer: H, k: int) -> Packet:
        mid = peer.mids[k]
        return self._message(mid, peer.before(k), peer.payloads[k], mid > peer.granted)

    def _leaving(self) -> list[Outgoing]:
        packets: list[Outgoing] = []
        for peer in self._out:
            k = peer.taken
            peer.taken = k + 1
            mids = peer.mids
            mid = mids[k]
            pid = mids[k - 1] if k > peer.head else peer.acked
            message = _new(HybridMessage, ("msg", mid, pid, peer.payloads[k], mid > peer.granted))
            packets.append((peer.name, message))
        self._out = []
        return packets

    def _unflagged(self, peer: H, start: int, end: int) -> int:
        return bisect_right(peer.mids, peer.granted, start, end)

    # -- what people ask ------------------------------------------------------

    @property
    def idle(self) -> bool:
        return not (self._held or self._permits or self._missing.at) and super().idle

    def footprint(self) -> Footprint:
        state = 4 + sum(1 + peer.footprint() for peer in self._peers.values())
        state += 2 * len(self._missing)
        kinds = (HybridMessage, Ack, Permit, Ask)
        packet = {kind.kind: kind.integers for kind in kinds}
        packet_bits = {kind.kind: WORD_BITS * kind.integers + kind.flags for kind in kinds}
        flags = sum(len(peer.early) for peer in self._peers.values())
        return Footprint(state, packet, WORD_BITS * state + flags, packet_bits)

    def _state(self) -> Hashable:
        due = frozenset(self._permits.items())
        return (super()._state(), due, frozenset(self._waits().items()))

    def relative_state(self, note: Note) -> Hashable:
        me = self.me
        peers = []
        for name, peer in sorted(self._peers.items()):
            messages = [
                (note(me, message[1]), note(me, message[2]), message[4])
                for message in self._messages(peer, peer.head)
            ]
            early = [
                (note(name, pid), note(name, message[1]), message[4])
                for pid, message in sorted(peer.early.items())
            ]
            permit = peer.permit if peer.permit > peer.delivered else 0
            marks = note(me, peer.acked), note(me, peer.granted)
            others = note(name, peer.delivered), note(name, permit)
            peers.append((name, marks, tuple(messages), others, tuple(early)))
        return (tuple(peers), self._relative_waits(note), note(me, self._mid))

    def _relative_waits(self, note: Note, per: int | None = None) -> Hashable:
        return tuple([(name, note(name, mid)) for name, mid in sorted(self._waits(per).items())])

    def _copy_into(self, twin: Self) -> None:
        super()._copy_into(twin)
        twin._missing = self._missing.copy()
        twin._p2 = self._p2
        twin._sealed = self._sealed
        twin._permits = self._permits.copy()

    def _waits(self, per: int | None = None) -> dict[str, int]:
        """Return the permits that are missing before index `per`, or all of them.

        Of each sender only the last, because its permit covers those before it. This
        is all that matters about what a message waits for, so it is what counts as
        state and what `blocked` reports.
        """
        waits = {}
        for k, (sender, mid) in self._missing.items():
            if (per is None or k < per) and mid > self._peers[sender].permit:
                waits[sender] = mid
        return waits

    def _waits_before(self, pers: Iterable[int]) -> Iterator[tuple[tuple[str, int], ...]]:
        """Yield the same, sorted, for each of many indexes that never descend.

        Takes one pass over p. While nothing changes, the same tuple is yielded again.
        """
        waits: dict[str, int] = {}
        waiting: tuple[tuple[str, int], ...] = ()
        permits = iter(self._missing.items())
        ahead = next(permits, None)
        for per in pers:
            known = len(waits), ahead
            while ahead is not None and ahead[0] < per:
                sender, mid = ahead[1]
                if mid > self._peers[sender].permit:
                    waits[sender] = mid
                ahead = next(permits, None)
            if known != (len(waits), ahead):
                waiting = tuple(sorted(waits.items()))
            yield waiting
