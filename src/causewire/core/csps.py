"""`csps`: causal delivery by conservative sender permission to send.

Almeida's Algorithm 1 (unicast) and Algorithm 3 (multicast) in one endpoint. The rule
(Definition 4.3): *a process network-sends a message when all messages that happened
before it, sent by any process that sent messages to it, have been delivered*. On top of
what `hybrid` describes, this means:

    release     Messages leave in the order in which they were causal-sent. One
                leaves when no permit is missing that was missing when it was
                causal-sent (line 31). Permits for later deliveries do not matter,
                so nothing starves, in contrast to Cykas.
    flag        A message is flagged if it leaves while an earlier one is not
                acknowledged (line 34), or goes to several processes (Algorithm 3,
                line 13), because each of them then learns about copies that the
                others may lack.
    permit      Message n to j is permitted when all acks of earlier messages have
                come, and the acks of n itself from everybody but j. For a single
                receiver this is Algorithm 1 (lines 64-70): the permit leaves when n
                becomes the oldest unacknowledged message. For several receivers it
                is Algorithm 3 with the optimisation that the paper only mentions
                (ERRATA 3.8): if one ack is missing, its sender gets its permit; if
                none is missing, all others get theirs.

**The option `replies_early`**: a message to j does not wait for permits from j, if it is the
next to leave. Algorithm 1 lets it wait, and so does this class by default; Algorithm 2 shows
that it need not (Definition 4.1). The only messages that may still be undelivered are j's
own, and FIFO, with the flags of j, keeps them before whatever j sends after it has delivered
this one. `csps` permits nothing before `sps` does, and releases nothing before `sps` does, so
the two invariants in `sps`, and the proof of safety there, hold for it as well. A client that
talks to one server then never waits, and need not be permitted in a hurry; nodes therefore
choose it. What `sps` pays for this rule (ERRATA 2.11), `csps` does not: a message never
overtakes one that is held, so everything sent before a message in flight has already left,
and permits depend on acks alone, not on other permits.

The delay that this adds is bounded by round trips: not by those of the process that
waits, but by those between the processes that it heard from and their receivers.

Because messages leave in order and acks are watermarks, u is only ever used at its ends.
A queue replaces the paper's sliding array, and an element of it is a reference to the
receiver of a message. What the driver takes in one step leaves in one step. If these are
many messages, they are usually acked together as well, receiver by receiver, and they
become one element of u, a *departure*. It is dropped as a whole when all receivers have
acked their last message of it, and only examined message by message as far as they have
not. Likewise, messages that wait for the same permits are held, and released, together.

    state   u       unacknowledged messages in order (line 22); a multicast is a
                    departure, too
            oldest  the number of the first message that is not acked by all
            lacking if it is in a departure: the receivers that have not acked their
                    part of it, with the last message that each lacks (`unack` of
                    Algorithm 3)
            sb      send buffer (line 26): the receivers, in causal-send order, of
                    messages that may leave together
            p       missing permits (line 23), in `hybrid`

The messages themselves are in the columns of their receivers (`fifo`).

The cost is amortised constant time per copy: each receiver is put into u once and
examined once, alone or with its departure.

Where this differs from the paper: ids from 1 (ERRATA 1.1), acks as watermarks instead of
marks in u (1.3, 3.2, 3.3), `pid` for each destination (3.1), flag and index apart (1.4), a permit
that overtakes its message is kept (1.5).
"""

from __future__ import annotations

from bisect import bisect_left
from collections import deque
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator
from typing import Any, ClassVar, Self

from .departure import GONE, Departure, messages, replace_gone
from .endpoint import Blocked, Footprint, Note, Outgoing, Wait
from .hybrid import HybridEndpoint, HybridPeer
from .run import MessageRun

__all__ = ["BufferedRun", "Csps", "Departure"]


class BufferedRun:
    """Messages in the send buffer that wait for the same permits, and leave together.

    Either messages to one process each, numbered without a gap, or one multicast.
    """

    __slots__ = ("mid", "multicast", "peers", "per")

    def __init__(
        self, per: int, mid: int, peers: list[HybridPeer], multicast: bool = False
    ) -> None:
        self.per = per
        """They may leave when the permits before this index have come."""
        self.mid = mid
        """The number of the first message."""
        self.peers = peers
        """The receivers: of one message each, or all of the multicast."""
        self.multicast = multicast

    def messages(self) -> Iterator[tuple[int, tuple[str, ...]]]:
        """Yield the number of each message, and its receivers."""
        return messages(self.mid, self.peers, self.multicast)


class Csps(HybridEndpoint[HybridPeer]):
    """Basic hybrid buffering, unicast and multicast (Algorithms 1 and 3).

    Args:
        me: The name of this process.
        group: Ignored; the membership is open.
        replies_early: A message to a process does not wait for permits of that process.
    """

    many: ClassVar[int] = 32
    """Unicasts that left together become one departure if there are at least this many.

    A matter of speed alone; the model checker lowers it to reach departures."""

    __slots__ = (
        *("_entered", "_lacking", "_oldest", "_per", "_replies_early", "_tail", "_unacked"),
    )

    def __init__(
        self, me: str, group: Iterable[str] | None = None, *, replies_early: bool = False
    ) -> None:
        super().__init__(me)
        self._replies_early = replies_early
        self._unacked: deque[HybridPeer | Departure] = deque()
        self._entered = 0
        """How many elements of `_out` have entered u already."""
        self._oldest = 1
        self._lacking: dict[HybridPeer, int] = {}
        self._held: deque[BufferedRun] = deque()
        self._tail: list[HybridPeer] = self._out
        """Where the receiver of the next message is appended: released or held messages."""
        self._per = 0
        """Index of the next permit when `_tail` was determined; -1 if it must be determined
        again."""

    def _peer(self, name: str) -> HybridPeer:
        self._refuse_forgotten((name,))
        peer = self._peers[name] = HybridPeer(name)
        self._per = -1  # see `_find_tail`
        return peer

    def send(self, to: str | Collection[str], payload: Any) -> int:
        if to.__class__ is not str or not to or to == self.me:
            return self._send_to(to, payload)
        peer = self._peers.get(to) or self._peer(to)
        mid = self._mid = self._mid + 1
        peer.mids.append(mid)
        peer.payloads.append(payload)
        if self._missing.next != self._per:
            self._find_tail(mid, peer)
        self._tail.append(peer)
        return mid

    def sender_to(self, name: str) -> Callable[[Any], int]:
        if not isinstance(name, str) or not name or name == self.me:
            return super().sender_to(name)
        peer = self._peers.get(name) or self._peer(name)

        def send(payload: Any) -> int:
            mid = self._mid + 1
            peer.mids.append(mid)  # which refuses if the peer was forgotten
            peer.payloads.append(payload)
            self._mid = mid
            if self._missing.next != self._per:
                self._find_tail(mid, peer)
            self._tail.append(peer)
            return mid

        return send

    def _find_tail(self, mid: int, peer: HybridPeer) -> None:
        """Determine whether message `mid`, and those that follow, are released or held."""
        per = self._per = self._missing.next
        if not self._missing.at:
            self._tail = self._out
        elif self._held and self._held[-1].per == per and not self._held[-1].multicast:
            self._tail = self._held[-1].peers
        elif self._replies_early and not self._held and self._waits_only_for() is peer:
            self._tail = self._out
            if len(self._peers) > 1:  # the next message may be to another
                self._per = -1
        else:
            self._tail = []
            self._sealed = per
            self._held.append(BufferedRun(per, mid, self._tail))

    def _waits_only_for(self) -> HybridPeer | None:
        """Return the process that all missing permits are from, if it is only one."""
        if self._second() < self._missing.next:
            return None
        return self._peers[self._missing.peek()[0]]

    def _multicast(self, names: tuple[str, ...], mid: int, payload: Any) -> None:
        peers = [self._peers.get(name) or self._peer(name) for name in names]
        for peer in peers:
            peer.mids.append(mid)
            peer.payloads.append(payload)
        self._held.append(BufferedRun(self._missing.next, mid, peers, multicast=True))
        self._per, self._sealed = -1, self._missing.next
        self._permits_came()

    def _permits_came(self) -> None:
        buffer = self._held
        while buffer and buffer[0].per <= self._missing.first:
            self._release(buffer[0])
            buffer.popleft()
        if self._replies_early:
            while buffer and buffer[0].per <= self._second() and self._release_early(buffer[0]):
                buffer.popleft()

    def _release_early(self, held: BufferedRun) -> bool:
        """Release messages of the first run to the process whose permits alone it lacks.

        They leave in order, so this ends at a message to another process. Returns whether
        all have left.
        """
        oldest, peers = self._peers[self._missing.peek()[0]], held.peers
        if not peers:  # to the sender alone, or to processes that were forgotten
            self._release(held)
            return True
        if held.multicast or peers[0] is not oldest:
            return False
        others = (k for k, peer in enumerate(peers) if peer is not oldest)
        count = next(others, len(peers))
        self._per = -1
        self._out += peers[:count]
        del peers[:count]
        held.mid += count
        return not peers

    def _release(self, held: BufferedRun) -> None:
        """Release a run that was held."""
        self._per = -1
        if held.multicast:
            self._enter()
            ends = dict.fromkeys(held.peers, held.mid)
            self._unacked.append(Departure(held.mid, held.peers, True, ends))
            self._entered += len(held.peers)
            if len(self._unacked) == 1:
                self._slide()
        elif GONE in held.peers:
            self._enter()
            alone = not self._unacked
            self._unacked += held.peers
            held.peers = [peer for peer in held.peers if peer is not GONE]
            self._entered += len(held.peers)
            if alone:
                self._slide()
        self._out += held.peers

    # -- u: lines 64-70 -------------------------------------------------------

    def _enter(self) -> None:
        """Put what was released since the last call into u."""
        peers = self._out[self._entered :]
        if not peers:
            return
        self._entered += len(peers)
        alone = not self._unacked
        if alone:
            peers[0].granted = self._oldest  # so it carries no flag
        if len(peers) < self.many:
            self._unacked += peers
            return
        ends = {peer: peer.mids[self._left(peer) - 1] for peer in dict.fromkeys(peers)}
        mid = self._next_to_leave() - len(peers)
        self._unacked.append(Departure(mid, peers, False, ends))
        if alone:
            self._lacking = ends.copy()

    def _next_to_leave(self) -> int:
        """The number of the first message that has not been released."""
        return self._held[0].mid if self._held else self._mid + 1

    def _acks_came(self, peer: HybridPeer) -> None:
        # An ack covers the oldest message to its sender, which may be the oldest of all.
        front: Any = self._unacked[0]
        if front is peer:
            self._slide()
            return
        end = self._lacking.get(peer)
        if end is None:
            return
        if peer.acked >= end:
            del self._lacking[peer]
        if self._lacking:
            self._look_inside(front)
        else:
            self._unacked.popleft()
            self._oldest = front.end
            self._permit_all(front.ends)
            self._slide()

    def _slide(self) -> None:
        """Drop what is acked by all from the front of u.

        Permits are due to the other receivers of each message that is dropped,
        and to a single receiver of the one that becomes the oldest (lines 65-67).
        """
        unacked, permits = self._unacked, self._permits
        mid = self._oldest
        while unacked:
            to: Any = unacked[0]
            if to.acked >= mid:
                if to.granted < mid:
                    to.granted = permits[to.name] = mid
                mid += 1
            elif to.__class__ is not Departure:
                to.granted = permits[to.name] = mid
                break
            else:
                self._lacking = {peer: end for peer, end in to.ends.items() if peer.acked < end}
                if self._lacking:
                    self._oldest = mid
                    self._look_inside(to)
                    return
                self._permit_all(to.ends)
                mid = to.end
            unacked.popleft()
        self._oldest = mid

    def _look_inside(self, front: Departure) -> None:
        """Find the oldest unacknowledged message in a departure, and permit it."""
        mid, permits = self._oldest, self._permits
        if front.multicast:
            if len(self._lacking) == 1:
                self._grant(next(iter(self._lacking)).name, mid)
            return
        for k in range(mid - front.mid, len(front.peers)):
            peer = front.peers[k]
            if peer.granted < mid:
                peer.granted = permits[peer.name] = mid
            if peer.acked < mid:
                break
            mid += 1
        self._oldest = mid

    # -- when a process is gone -----------------------------------------------

    def _let_go_of(self, record: HybridPeer) -> None:
        """Treat what was sent to a peer as acked, and what is held for it as sent."""
        self._enter()
        self._entered -= self._out.count(record)
        super()._let_go_of(record)
        for run in self._held:
            replace_gone(run.peers, record, run.multicast)
        for k, each in enumerate(self._unacked):
            if each is record:
                self._unacked[k] = GONE
            elif isinstance(each, Departure):
                replace_gone(each.peers, record, each.multicast)
                each.ends.pop(record, None)
        self._lacking.pop(record, None)
        self._per = -1

    def _after_forgetting(self) -> None:
        if self._unacked and (self._unacked[0] is GONE or isinstance(self._unacked[0], Departure)):
            self._slide()
        super()._after_forgetting()

    # -- what the driver takes ------------------------------------------------

    def _leaving(self) -> list[Outgoing]:
        self._enter()
        self._entered, self._per = 0, -1
        return super()._leaving()

    def take_runs(self) -> list[tuple[str, MessageRun]]:
        if not self._out:
            return []
        self._enter()
        self._entered, self._per = 0, -1
        return super().take_runs()

    def _left(self, peer: HybridPeer) -> int:
        if not self._held:
            return len(peer.mids)
        return bisect_left(peer.mids, self._held[0].mid, peer.taken)

    # -- what people ask ------------------------------------------------------

    def blocked(self) -> list[Blocked]:
        here = []
        known: tuple[tuple[str, int], ...] = ()
        waits: tuple[Wait, ...] = ()
        runs = self._held
        for held, permits in zip(runs, self._waits_before(r.per for r in runs), strict=True):
            if permits is not known:
                known, waits = permits, tuple([Wait("permit", *permit) for permit in permits])
            for mid, names in held.messages():
                here += [Blocked(self.me, mid, name, "sender", waits) for name in names if name]
        return here + super().blocked()

    @property
    def held_back(self) -> int:
        held = sum([len(run.peers) - run.peers.count(GONE) for run in self._held])
        return held + super().held_back

    def footprint(self) -> Footprint:
        left = sum(
            1 if isinstance(each, HybridPeer) else 2 + len(each.peers) + 2 * len(each.ends)
            for each in self._unacked
        )
        held = sum(2 + len(each.peers) for each in self._held)
        return super().footprint().plus(2 + left + 2 * len(self._lacking) + held)

    # -- as a value -----------------------------------------------------------

    def _state(self) -> Hashable:
        # What was released and is not in u yet is in `_pending`.
        runs = self._held
        waits = self._waits_before(run.per for run in runs)
        held = [
            (permits, *message)
            for run, permits in zip(runs, waits, strict=True)
            for message in run.messages()
        ]
        left = [message for message in self._receivers() if message[0] >= self._oldest]
        return (super()._state(), tuple(left), tuple(held))

    def relative_state(self, note: Note) -> Hashable:
        held = [
            (self._relative_waits(note, held.per), note(self.me, mid), names)
            for held in self._held
            for mid, names in held.messages()
        ]
        unacked = [
            (note(self.me, mid), names) for mid, names in self._receivers() if mid >= self._oldest
        ]
        return (super().relative_state(note), tuple(unacked), tuple(held))

    def _receivers(self) -> Iterator[tuple[int, tuple[str, ...]]]:
        """Yield the number and the receivers of each message in u."""
        mid = self._oldest
        for each in self._unacked:
            if isinstance(each, HybridPeer):
                yield mid, (each.name,)
                mid += 1
            else:
                yield from messages(each.mid, each.peers, each.multicast)
                mid = each.end

    def _copy_into(self, twin: Self) -> None:
        super()._copy_into(twin)
        peers = twin._peers

        def again(mine: Iterable[HybridPeer]) -> list[HybridPeer]:
            return [peers.get(peer.name, GONE) for peer in mine]

        def ends(mine: dict[HybridPeer, int]) -> dict[HybridPeer, int]:
            return {peers[peer.name]: mid for peer, mid in mine.items()}

        twin._replies_early = self._replies_early
        twin._tail, twin._per = twin._out, -1
        twin._entered = self._entered
        twin._oldest = self._oldest
        twin._lacking = ends(self._lacking)
        twin._unacked = deque(
            [
                peers.get(each.name, GONE)
                if isinstance(each, HybridPeer)
                else Departure(each.mid, again(each.peers), each.multicast, ends(each.ends))
                for each in self._unacked
            ]
        )
        twin._held = deque(
            [
                BufferedRun(held.per, held.mid, again(held.peers), held.multicast)
                for held in self._held
            ]
        )
