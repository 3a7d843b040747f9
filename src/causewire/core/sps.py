"""`sps`: causal delivery by sender permission to send, with no wait that FIFO makes needless.

Almeida's Algorithm 2, SPS-optimal, and its multicast, which the paper leaves to the
reader. The rule (Definition 4.1): *a process i network-sends a message m to j when all
messages that happened before m, sent to any process other than i, by any process other
than j that sent messages to i, have been delivered*. Three waits of `csps` are not
needed, because FIFO covers them already (section 5.6):

    flag        no permit is needed for the sake of messages to the receiver
    permit      nor does one have to wait for their acks
    release     a message to j does not wait for permits from j

In return, messages no longer leave in the order in which they were causal-sent, and it
takes care to keep both searches, for what may leave and for what may be permitted,
amortised constant. All messages are kept in causal-send order in a buffer u, from whose
front those acknowledged by all are removed, and the missing permits in p. Say that u
*lacks* only j up to m if no receiver but j has an ack outstanding for m or for anything
before it; a message that has not left counts as outstanding. Then

    (m, j) may leave        iff  per(m) <= p.first, or per(m) <= p2 and j is
                                 the process whose permit is the oldest missing
    (m, j) is permitted     iff  m < u.first, or m < u2 and j is the one that
                                 the oldest message in u lacks

with four indexes that the paper introduces (figure 4):

    m1  first message that has not left entirely              (or u.next)
    m2  first message causal-sent after the permit at p2      (or u.next)
    p2  first missing permit of another than the oldest's     (or p.next)
    u2  first message that u lacks others up to               (or u.next)

Each of them only moves forward, passing every index once. m1 and m2 are maintained while
something is held back; p2 is brought up to date when it is needed.

A message is flagged if it leaves before it is permitted. Its permit follows at the event
that makes the second line true: u.first or u2 has passed it. The optimisation that the
paper mentions for Algorithm 3, to permit a multicast to the one receiver whose own ack
alone is missing, is contained in the second line.

The buffer is indexed by message number. For a unicast that has left it holds only the
name of the receiver, so multicasts do not make unicasts more expensive. The copies of a
multicast may leave at different times.

This rule has a price. If two processes play ping-pong, and each sends a message to a third
process before every stroke, the strokes pass at once. The permits then form a chain
through messages that have not left, and delays and buffers grow with the length of the
game (ERRATA 2.11). In `csps` they do not.

Departures from the print: indexes maintained on causal sends (ERRATA 2.2, 2.3), m2 moved
when no permit is missing (2.4), index and flag apart (2.6), acks as watermarks instead of
marks, permits too, so that they are repeated in optimal time and may come early (2.9),
copies to oneself outside the buffer (2.10), and for multicasts messages instead of copies
as the unit (ERRATA 4 uses copies).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterable
from typing import Any, Self

from .endpoint import Blocked, Footprint, Note, Wait
from .hybrid import HybridEndpoint, HybridPeer
from .sliding import SlidingArray

__all__ = ["BufferedMessage", "Sps", "SpsPeer"]


class SpsPeer(HybridPeer):
    """A receiver; the last messages in its columns may not have left."""

    __slots__ = ("held",)

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.held = 0
        """How many messages to it have not left."""

    def copy(self) -> Self:
        """Return an independent copy."""
        twin = super().copy()
        twin.held = self.held
        return twin


class BufferedMessage:
    """A message in the buffer that is a multicast, or that has not left."""

    __slots__ = ("lacks", "names", "per", "unsent")

    def __init__(self, names: tuple[str, ...], unsent: dict[str, None], per: int):
        self.names = names
        """All its receivers."""
        self.unsent = unsent
        """The receivers to which it has not left."""
        self.per = per
        """Index of the next permit when it was causal-sent."""
        self.lacks = 0
        """Receivers before this one, in `names`, are known to have acked it."""

    def copy(self) -> BufferedMessage:
        """Return an independent copy."""
        twin = BufferedMessage(self.names, self.unsent.copy(), self.per)
        twin.lacks = self.lacks
        return twin


class Sps(HybridEndpoint[SpsPeer]):
    """SPS-optimal hybrid buffering, unicast and multicast."""

    __slots__ = ("_buffer", "_lacks", "_m1", "_m2", "_p2", "_u2", "_waiting")

    def __init__(self, me: str, group: Iterable[str] | None = None) -> None:
        super().__init__(me)
        self._buffer: SlidingArray[str | BufferedMessage] = SlidingArray(first=1)
        self._waiting: set[str] = set()
        """The receivers that have not acked the oldest message, if it is a multicast."""
        self._lacks: str | None = None
        """The receiver that has not acked the oldest message, if it is only one."""
        self._m1 = self._m2 = self._u2 = 1
        self._p2 = 0
        self._held = 0
        """Copies that have not left."""

    def _peer(self, name: str) -> SpsPeer:
        self._refuse_forgotten((name,))
        peer = self._peers[name] = SpsPeer(name)
        return peer

    # -- causal sends ---------------------------------------------------------

    def sender_to(self, name: str) -> Callable[[Any], int]:
        if not isinstance(name, str) or not name or name == self.me:
            return super().sender_to(name)
        peer = self._peers.get(name) or self._peer(name)
        buffer, missing = self._buffer, self._missing

        def send(payload: Any) -> int:
            mid = self._mid + 1
            peer.mids.append(mid)  # which refuses if the peer was forgotten
            peer.payloads.append(payload)
            self._mid = mid
            granted = False
            if self._u2 == mid:
                if buffer.first == mid:
                    self._lacks = name
                if self._lacks == name:
                    self._u2 = mid + 1
                    granted = True
            if missing.at:
                self._hold(mid, BufferedMessage((name,), {name: None}, missing.next))
                return mid
            buffer.at[mid] = name
            buffer.next = mid + 1
            if granted:
                peer.granted = mid
            self._out.append(peer)
            return mid

        return send

    def send(self, to: str | Collection[str], payload: Any) -> int:
        if to.__class__ is not str or not to or to == self.me:
            return self._send_to(to, payload)
        peer = self._peers.get(to) or self._peer(to)
        mid = self._mid = self._mid + 1
        peer.mids.append(mid)
        peer.payloads.append(payload)
        buffer = self._buffer
        flag = True
        if self._u2 == mid:
            if buffer.first == mid:
                self._lacks = to
            if self._lacks == to:
                self._u2 = mid + 1
                flag = False
        if self._missing.at:
            self._hold(mid, BufferedMessage((to,), {to: None}, self._missing.next))
            return mid
        buffer.at[mid] = to
        buffer.next = mid + 1
        if not flag:
            peer.granted = mid
        self._out.append(peer)
        return mid

    def _multicast(self, names: tuple[str, ...], mid: int, payload: Any) -> None:
        for name in names:
            peer = self._peers.get(name) or self._peer(name)
            peer.mids.append(mid)
            peer.payloads.append(payload)
        if self._u2 == mid and not names:  # to oneself alone: it lacks nobody
            self._u2 = mid + 1
        if self._buffer.first == mid:
            self._lacks = None
            self._waiting = set(names)
        self._hold(mid, BufferedMessage(names, dict.fromkeys(names), self._missing.next))
        if self._buffer.first == mid and not names:
            self._buffer.remove()

    def _hold(self, mid: int, held: BufferedMessage) -> None:
        """Put a message into the buffer, and let go what may leave of it at once."""
        self._buffer.add(held)
        self._sealed = held.per
        if not self._held:
            self._m1 = self._m2 = mid
        self._held += len(held.unsent)
        for name in held.unsent:
            self._peers[name].held += 1
        if self._m2 == mid:  # else one before it waits, and this for as many permits at least
            self._permits_came()

    # -- releases: lines 25-47 and 88-100 -------------------------------------

    def _permits_came(self) -> None:
        """Release what may leave; everything before m1 and m2 is done.

        Messages that wait for the oldest permit alone are between m1 and m2, messages that
        wait for the one at p2 are from m2 on. When the oldest permit is from another
        process than before, it is the one that was at p2, or a later one. So the messages
        before m2 did not wait for that process, and all of them may leave.
        """
        buffer, missing = self._buffer, self._missing
        p1, p2 = missing.first, self._second()
        oldest = missing.peek()[0] if missing else ""
        end = buffer.next
        k = max(self._m1, buffer.first)
        while k < end:
            held = buffer[k]
            if isinstance(held, BufferedMessage) and held.unsent:
                if held.per > p1:
                    break
                for name in tuple(held.unsent):
                    self._let_go(k, held, name)
            k += 1
        self._m1 = k
        k = max(k, self._m2)
        while k < end:
            held = buffer[k]
            if isinstance(held, BufferedMessage):
                if held.per > p2:
                    break
                if oldest in held.unsent:
                    self._let_go(k, held, oldest)
            k += 1
        self._m2 = k

    def _second(self) -> int:
        """Bring p2 up to date and return it (lines 38-45)."""
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

    def _let_go(self, mid: int, held: BufferedMessage, to: str) -> None:
        """Release one copy of a message that was held."""
        del held.unsent[to]
        self._held -= 1
        if not held.unsent and len(held.names) == 1:
            self._buffer[mid] = to
        peer = self._peers[to]
        if to == self._lacks and mid < self._u2:
            peer.granted = mid
        peer.held -= 1
        self._out.append(peer)

    # -- permits: lines 48-71 -------------------------------------------------

    def _acks_came(self, peer: SpsPeer) -> None:
        """Drop what is acked by all from the front of u, and grant what follows."""
        buffer, peers, source = self._buffer, self._peers, peer.name
        at = buffer.at
        mid = buffer.first
        # An ack covers the oldest message to its sender, which may be the oldest of all.
        entry: Any = at[mid]
        if entry == source or (self._waiting and self._one_fewer(source, entry, mid)):
            while True:
                del at[mid]
                mid += 1
                if not at:
                    buffer.slide(mid)
                    self._u2 = mid
                    return
                entry = at[mid]
                if entry.__class__ is str:
                    peer = peers[entry]
                    if peer.acked < mid:  # the receiver of the oldest is permitted to tell
                        self._lacks = entry
                        buffer.first = mid
                        if self._u2 <= mid:
                            peer.granted = self._permits[entry] = mid
                            self._u2 = mid + 1
                        break
                    if peer.granted < mid:
                        peer.granted = self._permits[entry] = mid
                elif self._lacks_any(entry, mid):
                    buffer.first = mid
                    self._u2 = max(self._u2, mid)
                    break
                else:
                    self._permit_all(entry, mid)
        u2 = self._u2
        if u2 < buffer.next and self._lacks is not None:
            entry = at[u2]  # most often a unicast to another, and not acked
            if entry == self._lacks or entry.__class__ is not str or peers[entry].acked >= u2:
                self._advance_u2(self._lacks)

    def _one_fewer(self, source: str, held: Any, mid: int) -> bool:
        """Note an ack of the oldest message, a multicast; return whether all have acked."""
        waiting = self._waiting
        waiting.discard(source)
        if len(waiting) == 1:
            self._lacks = next(iter(waiting))
        elif not waiting:
            self._permit_all(held, mid)
        return not waiting

    def _lacks_any(self, held: BufferedMessage, mid: int) -> bool:
        """Return whether the new oldest message lacks an ack, and note whose."""
        lacking = {n for n in held.names if self._peers[n].acked < mid}
        self._lacks = next(iter(lacking)) if len(lacking) == 1 else None
        if len(held.names) > 1:
            self._waiting = lacking
        return bool(lacking)

    def _permit_all(self, held: Any, mid: int) -> None:
        for name in held.names:
            if self._peers[name].granted < mid:
                self._grant(name, mid)

    def _advance_u2(self, lacks: str) -> None:
        """Move u2 past messages that lack nobody but `lacks`, and permit them (lines 63-71)."""
        buffer, peers = self._buffer, self._peers
        mid = u2 = self._u2
        permitted = 0
        while mid <= self._mid:
            entry = buffer[mid]
            if isinstance(entry, str):
                if entry == lacks:
                    permitted = mid
                elif peers[entry].acked < mid:
                    break
            elif self._lacks_others(entry, mid):
                break
            elif lacks in entry.names and lacks not in entry.unsent:
                permitted = mid
            mid += 1
        if mid > u2:
            self._u2 = mid
            if permitted > peers[lacks].granted:
                self._grant(lacks, permitted)

    def _lacks_others(self, held: BufferedMessage, mid: int) -> bool:
        """Return whether a message lacks the ack of anybody but `_lacks`.

        This looks at each receiver once: acks are permanent, and `_lacks` does not change
        before this message is the oldest itself.
        """
        names = held.names
        while held.lacks < len(names):
            name = names[held.lacks]
            if name != self._lacks and self._peers[name].acked < mid:
                return True
            held.lacks += 1
        return False

    # -- when a process is gone -----------------------------------------------

    def _let_go_of(self, record: SpsPeer) -> None:
        """Remove a peer from the receivers of everything in the buffer."""
        super()._let_go_of(record)
        gone = record.name
        self._held -= record.held
        at = self._buffer.at
        for mid, entry in self._buffer.items():
            if entry == gone:
                at[mid] = BufferedMessage((), {}, 0)
            elif isinstance(entry, BufferedMessage) and gone in entry.names:
                names = tuple([name for name in entry.names if name != gone])
                entry.unsent.pop(gone, None)
                if len(names) == 1 and not entry.unsent:
                    at[mid] = names[0]  # a unicast that has left
                else:
                    at[mid] = BufferedMessage(names, entry.unsent, entry.per)

    def _after_forgetting(self) -> None:
        """Drop what lacks nobody any more from the front of u, and grant what follows."""
        buffer = self._buffer
        self._waiting, self._lacks = set(), None
        while buffer.at:
            mid, entry = buffer.first, buffer.peek()
            if isinstance(entry, str):
                if self._peers[entry].acked < mid:
                    self._lacks = entry
                    break
                if self._peers[entry].granted < mid:
                    self._grant(entry, mid)
            elif self._lacks_any(entry, mid):
                break
            else:
                self._permit_all(entry, mid)
            buffer.remove()
        self._u2 = max(self._u2, buffer.first)
        if self._lacks is not None:
            self._advance_u2(self._lacks)
        super()._after_forgetting()

    # -- what the driver takes ------------------------------------------------

    def _left(self, peer: SpsPeer) -> int:
        return len(peer.mids) - peer.held

    # -- what people ask ------------------------------------------------------

    def blocked(self) -> list[Blocked]:
        here: list[Blocked] = []
        known: tuple[tuple[str, int], ...] = ()
        permits: list[Wait] = []
        held = self._unsent()
        waits_before = self._waits_before(message.per for _, message in held)
        for (mid, message), waiting in zip(held, waits_before, strict=True):
            if waiting is not known:
                known, permits = waiting, [Wait("permit", *permit) for permit in waiting]
            for name in message.unsent:
                waits = tuple([wait for wait in permits if wait.peer != name])
                here.append(Blocked(self.me, mid, name, "sender", waits))
        return here + super().blocked()

    def _unsent(self) -> list[tuple[int, BufferedMessage]]:
        """Return the messages that have not left entirely, with their numbers."""
        return [
            (mid, entry)
            for mid, entry in self._buffer.items()
            if isinstance(entry, BufferedMessage) and entry.unsent
        ]

    @property
    def held_back(self) -> int:
        held: int = self._held
        return held + super().held_back

    def footprint(self) -> Footprint:
        more = 6 + len(self._waiting)
        for entry in self._buffer:
            more += 1 if isinstance(entry, str) else 2 + len(entry.names) + len(entry.unsent)
        return super().footprint().plus(more)

    # -- as a value -----------------------------------------------------------

    def _state(self) -> Hashable:
        # The four indexes and what the oldest lacks follow from all this.
        unsent = self._unsent()
        waits = self._waits_before(message.per for _, message in unsent)
        held = [
            (mid, frozenset(message.unsent), permits)
            for (mid, message), permits in zip(unsent, waits, strict=True)
        ]
        buffer = [each if isinstance(each, str) else each.names for each in self._buffer]
        return (super()._state(), self._buffer.first, tuple(buffer), tuple(held))

    def relative_state(self, note: Note) -> Hashable:
        buffer: list[Hashable] = []
        for entry in self._buffer:
            if isinstance(entry, str):
                buffer.append(entry)
            else:
                unsent = tuple(sorted(entry.unsent))
                waits = self._relative_waits(note, entry.per) if unsent else ()
                buffer.append((entry.names, unsent, waits))
        return (super().relative_state(note), note(self.me, self._buffer.first), tuple(buffer))

    def _copy_into(self, twin: Self) -> None:
        super()._copy_into(twin)
        twin._m1, twin._m2, twin._p2, twin._u2 = self._m1, self._m2, self._p2, self._u2
        twin._lacks = self._lacks
        twin._held = self._held
        twin._waiting = self._waiting.copy()
        twin._buffer = buffer = self._buffer.copy()
        for mid, entry in self._buffer.items():
            if isinstance(entry, BufferedMessage):
                buffer[mid] = entry.copy()
