"""`sps`: causal delivery by sender permission to send, without any waiting more.

Almeida's Algorithm 2, SPS-optimal, and its multicast, which the paper leaves to
the reader. The rule (Definition 4.1): *a process i network-sends a message m to
j when all messages that happened before m, sent to any process other than i, by
any process other than j that sent messages to i, have been delivered*. Three
waits of `csps` fall away, since FIFO covers them already (section 5.6):

    flag        no permit is needed for the sake of messages to the receiver
    permit      nor does one have to wait for their acks
    release     a message to j does not wait for permits from j

In return messages no longer leave in the order in which they were causal-sent,
and both searches, for what may leave and for what may be permitted, need care
to stay amortised constant. The unit of the buffer is one copy (m, j); those of
one multicast lie side by side, up to `last` of it. With all copies in causal-
send order in u, acknowledged ones removed from its front, and the missing
permits in p, four indexes are kept exact after every event:

    m1  first copy that has not left                          (or u.next)
    u2  first copy not acked, to another than u.peek().to     (or u.next)
    p2  first missing permit, of another than p.peek()'s      (or p.next)
    m2  first copy that was sent after the permit at p2       (or u.next)

A copy that has not left counts as not acked. Then

    (m, j) may leave        iff  per <= p.first, or per <= p2 and j is the
                                 process whose permit is the oldest missing
    (m, j) is permitted     iff  last(m) < u.first, or last(m) < u2 and j is
                                 the receiver of the oldest copy in u

The second line says: all copies up to m's last are acked, save those to j. For
a multicast it contains the optimisation that the paper mentions for Algorithm
3, that the permit may go to the one receiver whose own ack alone is missing.
Using the copy's own index in place of `last` is unsafe (ERRATA 4). A message is
flagged if it leaves before it is permitted; its permit follows at the event
that makes the second line true: u.first or u2 has passed its last copy.

Not all is gain. Two processes that play ping-pong, and tell a third before each
stroke, let the strokes through at once; the permits then form a chain through
what has not left yet, and delay and buffers grow with the length of the game
(ERRATA 2.11). `csps` is the default for that reason.

Departures from the print: indexes maintained on causal sends (ERRATA 2.2, 2.3),
m2 moved when no permit is missing (2.4), index and flag apart (2.6), acks as
watermarks instead of marks, permits too, so that they are repeated in optimal
time and may come early (2.9), copies to oneself outside the buffer (2.10).
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import Any, Self

from .endpoint import Blocked, Footprint, Wait
from .hybrid import HybridEndpoint, HybridPeer, Message, MissingPermit
from .sliding import IndexedSlidingMap, SlidingArray

__all__ = ["Sps"]

_new = tuple.__new__


class Copy:
    """One copy (m, j) in the unified buffer."""

    __slots__ = ("copies", "flagged", "last", "mid", "payload", "per", "pid", "sent", "to")

    def __init__(self, to: str, mid: int, pid: int, payload: Any, per: int, last: int) -> None:
        self.to = to
        self.mid = mid
        self.pid = pid
        self.payload = payload
        """Only until it leaves; from then on the receiver's flight has it."""
        self.per = per
        """Index of the next permit when it was causal-sent."""
        self.last = last
        """Index in the buffer of the last copy of the same message."""
        self.copies: tuple[Copy, ...] = (self,)
        """All copies of the same message."""
        self.sent = False
        self.flagged = False

    def copy(self) -> Copy:
        twin = Copy(self.to, self.mid, self.pid, self.payload, self.per, self.last)
        twin.sent = self.sent
        twin.flagged = self.flagged
        return twin


class Sps(HybridEndpoint):
    """SPS-optimal hybrid buffering, unicast and multicast."""

    __slots__ = ("_buffer", "_m1", "_m2", "_p2", "_u2")

    _missing: IndexedSlidingMap[MissingPermit]

    def __init__(self, me: str, group: Iterable[str] | None = None) -> None:
        super().__init__(IndexedSlidingMap(), me)
        self._buffer: SlidingArray[Copy] = SlidingArray()
        """`u`: copies that have not left, or are not acked, or are behind such."""
        self._m1 = 0
        self._m2 = 0
        self._p2 = 0
        self._u2 = 0

    # -- causal sends ---------------------------------------------------------

    def _unicast(self, to: str, mid: int, payload: Any) -> None:
        peer = self._peers.get(to) or self._peer(to)
        buffer = self._buffer
        missing = self._missing
        k = buffer.next
        copy = Copy(to, mid, peer.sent, payload, missing.next, k)
        peer.sent = mid
        buffer.add(copy)
        self._extend_u2_m2(k, copy)
        if missing.first == missing.next or self._may_leave(copy):
            self._release(copy, peer)
            if self._m1 == k:
                self._m1 = k + 1

    def _multicast(self, names: tuple[str, ...], mid: int, payload: Any) -> None:
        buffer = self._buffer
        per = self._missing.next
        first = buffer.next
        last = first + len(names) - 1
        copies = []
        for name in names:
            peer = self._peers.get(name) or self._peer(name)
            copies.append(Copy(name, mid, peer.sent, payload, per, last))
            peer.sent = mid
        for k, copy in enumerate(copies, first):
            copy.copies = tuple(copies)
            buffer.add(copy)
            self._extend_u2_m2(k, copy)
        for k, copy in enumerate(copies, first):
            if self._may_leave(copy):
                self._release(copy, self._peers[copy.to])
                if self._m1 == k:
                    self._m1 = k + 1

    def _extend_u2_m2(self, k: int, copy: Copy) -> None:
        """Keep u2 and m2 exact as `copy` comes in at index k (ERRATA 2.2, 2.3)."""
        if self._u2 == k and self._buffer.peek().to == copy.to:
            self._u2 = k + 1
        if self._m2 == k and copy.per <= self._p2:
            self._m2 = k + 1

    # -- releases: lines 25-37 and 88-100 -------------------------------------

    def _may_leave(self, copy: Copy) -> bool:
        missing = self._missing
        if copy.per <= missing.first:
            return True
        return copy.per <= self._p2 and copy.to == missing.peek()[0]

    def _release(self, copy: Copy, peer: HybridPeer) -> None:
        flag = copy.last >= self._u2 or copy.to != self._buffer.peek().to
        message = _new(Message, ("msg", copy.mid, copy.pid, copy.payload, flag))
        copy.payload = None
        copy.sent = True
        copy.flagged = flag
        peer.flight.append(message)
        self._packets.append((copy.to, message))

    def _await_permit(self, peer: HybridPeer, permit: MissingPermit) -> None:
        super()._await_permit(peer, permit)
        missing = self._missing
        if self._p2 == missing.next - 1 and permit[0] == missing.peek()[0]:
            self._p2 = missing.next

    def _permits_came(self) -> None:
        """Release what can leave; everything before m1 and m2 is done with.

        What was waiting for the oldest permit alone lies between m1 and m2, what
        was waiting for the one at p2 from m2 on. When the oldest permit is that
        of another process now, it is the one that was at p2 or a later one, so
        no copy before m2 can go to it and still wait.
        """
        self._advance_p2()
        buffer, missing, p2 = self._buffer, self._missing, self._p2
        p1 = missing.first
        asker = missing.peek()[0] if missing else None
        k = self._m1
        while k < buffer.next and (copy := buffer[k]).per <= p1:
            if not copy.sent:
                self._release(copy, self._peers[copy.to])
            k += 1
        self._m1 = k
        k = self._m2
        while k < buffer.next and (copy := buffer[k]).per <= p2:
            if not copy.sent and (copy.to == asker or copy.per <= p1):
                self._release(copy, self._peers[copy.to])
            k += 1
        self._m2 = k
        while self._m1 < buffer.next and buffer[self._m1].sent:
            self._m1 += 1

    def _advance_p2(self) -> None:
        missing = self._missing
        p2 = max(self._p2, missing.first)
        if missing:
            oldest = missing.peek()[0]
            while p2 < missing.next:
                permit = missing[p2]
                if permit is not None and permit[0] != oldest:
                    break
                p2 += 1
        self._p2 = p2

    # -- permits: lines 48-71 -------------------------------------------------

    def _acks_came(self, source: str) -> None:
        buffer, peers = self._buffer, self._peers
        while buffer and self._acked(copy := buffer.peek()):
            if buffer.first == copy.last:
                for each in copy.copies:
                    if each.flagged and peers[each.to].granted < each.mid:
                        self._grant(each.to, each.mid)
            buffer.remove()
        u2 = max(self._u2, buffer.first)
        if buffer:
            to = buffer.peek().to
            while u2 < buffer.next:
                copy = buffer[u2]
                if copy.to != to and not self._acked(copy):
                    break
                if u2 == copy.last:
                    for each in copy.copies:
                        if each.flagged and each.to == to and peers[to].granted < each.mid:
                            self._grant(to, each.mid)
                u2 += 1
        self._u2 = u2

    def _acked(self, copy: Copy) -> bool:
        return copy.mid <= self._peers[copy.to].acked

    # -- what people ask ------------------------------------------------------

    def _held(self) -> list[Copy]:
        return [copy for copy in self._buffer if not copy.sent]

    def blocked(self) -> list[Blocked]:
        permits = [(k, Wait("permit", *permit)) for permit, k in self._missing.items()]
        here = []
        for copy in self._held():
            waits = (wait for k, wait in permits if k < copy.per and wait.peer != copy.to)
            here.append(Blocked(self.me, copy.mid, copy.to, "sender", tuple(waits)))
        return here + super().blocked()

    @property
    def idle(self) -> bool:
        return not self._buffer and super().idle

    def footprint(self) -> Footprint:
        state, packet = super().footprint()
        return Footprint(state + 7 + 5 * len(self._buffer), packet)

    # -- as a value -----------------------------------------------------------

    def _state(self) -> Hashable:
        # The four indexes follow from the buffer, the acks and the permits.
        return (super()._state(), tuple([self._copy_state(copy) for copy in self._buffer]))

    def _copy_state(self, copy: Copy) -> Hashable:
        if not copy.sent:
            return (copy.to, copy.mid, copy.pid, copy.payload, self._rank(copy.per))
        # Permits may be due to copies that have left the buffer already.
        return (copy.mid, copy.to, tuple([each.to for each in copy.copies if each.flagged]))

    def _copy_into(self, twin: Self) -> None:
        super()._copy_into(twin)
        twin._m1, twin._m2, twin._p2, twin._u2 = self._m1, self._m2, self._p2, self._u2
        twin._buffer = buffer = self._buffer.copy()
        twins: dict[int, Copy] = {}
        for k in range(buffer.first, buffer.next):
            copy = buffer[k]
            if id(copy) not in twins:
                copies = tuple([each.copy() for each in copy.copies])
                for old, new in zip(copy.copies, copies, strict=True):
                    new.copies = copies
                    twins[id(old)] = new
            buffer[k] = twins[id(copy)]
