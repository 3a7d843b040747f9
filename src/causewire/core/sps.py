"""`sps`: causal delivery by sender permission to send, without needless waits.

Almeida's Algorithm 2, SPS-optimal, and its multicast, which the paper leaves to the
reader. The rule (Definition 4.1): *a process i network-sends a message m to j when all
messages that happened before m, sent to any process other than i, by any process other
than j that sent messages to i, have been delivered*. This is sender permission to send
without the waits that FIFO makes unnecessary; `csps` has three of them (section 5.6):

    flag        no permit is needed for the sake of messages to the receiver
    permit      nor does one have to wait for their acks
    release     a message to j does not wait for permits from j

In return, messages no longer leave in the order in which they were causal-sent, and keeping
both searches, for what may leave and for what may be permitted, amortised constant takes
care. All messages are kept in causal-send order in a buffer u, from whose
front those acknowledged by all are removed, and the missing permits in p. Say that u
*lacks* only j up to m if no receiver but j has an ack outstanding for m or for anything
before it; a message that has not left counts as outstanding. Then

    (m, j) may leave        iff  per(m) <= p.first, or per(m) <= p2 and j is
                                 the process whose permit is the oldest missing
    (m, j) is permitted     iff  m < u.first, or m < u2 and j is the one that
                                 the oldest message in u lacks

with the indexes that the paper introduces (figure 4):

    m1  first message that has not left entirely              (or u.next)
    m2  first message causal-sent after the permit at p2      (or u.next)
    p2  first missing permit of another than the oldest's     (or p.next)
    u2  first message up to which some receiver other than j  (or u.next)
        has not acked, j being the one that the oldest lacks

Each of them only moves forward, passing every index once.

**Invariants.** The paper proves for unicasts that FIFO and SPS imply causal delivery
(Proposition 4.2). For multicasts, and with the two lines above:

    I1  permits: if k has permitted its message n to i (n left without a flag, or its
        permit was sent), then every message of k up to n, n included, has been
        delivered to all its receivers other than i.
    I2  releases: when i releases (m, j), every message that i had delivered when m
        was causal-sent, and that came from another process than j, is permitted.

I1 is the second line, because an ack is only sent after the delivery; a message that has not
left has no acks, so it stops u.first and u2 as well. It remains true, because deliveries do.
I2 is the first line: flagged messages enter p when they are delivered, per(m) is the end of p
at the causal send of m, and before it no permit is missing, or only permits from j.

*Safety.* Let x happen before m, both to d, and m from i. If i sent x, the channel is FIFO; if
d sent x, d delivered its copy inside `send`. Otherwise there are processes p0, ..., pk = i,
k > 0, such that p0 sent x; each pl sent a message y(l+1) that p(l+1) delivered before it sent
the next; y1 is x or was sent after x; and the last of these messages is m, from pk to d. Take
a shortest such chain, and assume that causal order was kept by all deliveries before that of
m at d. If some pl with l > 0 is d, then yl is x, or x happened before it; d delivered yl before
m, and so x before m. If none is, let z be the message that p1 sent on the chain, and q its
receiver: p2, or d if k = 1. q is not p0: p0 is neither d nor i, and if p2 were p0, the chain
could begin there. So by I2 y1 was permitted to p1 when z left, and by I1 x was delivered at d,
which is not p1, before z left; and m was delivered after z left.

A message is flagged if it leaves before it is permitted. Its permit follows at the event
that makes the second line true: u.first or u2 has passed it. The optimisation that the
paper mentions for Algorithm 3, to permit a multicast to the one receiver whose own ack
alone is missing, is contained in the second line.

**Departures.** Both lines can be decided for many messages at once: see `sps_run`.

This rule has a price. If two processes play ping-pong, and each sends a message to a third
process before every stroke, the strokes pass at once. The permits then form a chain
through messages that have not left, and delays and buffers grow with the length of the
game (ERRATA 2.11). In `csps` they do not.

Where this differs from the paper: indexes maintained on causal sends (ERRATA 2.2, 2.3), m2
moved when no permit is missing (2.4), index and flag apart (2.6), acks as watermarks instead of
marks, permits too, so that they are repeated in optimal time and may come early (2.9),
copies to oneself outside the buffer (2.10), and for multicasts messages instead of copies
as the unit (ERRATA 4 uses copies).
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Collection
from typing import Any, ClassVar

from .departure import GONE
from .endpoint import Outgoing
from .hybrid import HybridEndpoint
from .run import MessageRun
from .sps_run import SpsPeer, SpsRun
from .sps_state import SpsState

NEVER = 1 << 63
"""More than the number of any message."""

__all__ = ["Sps", "SpsPeer", "SpsRun"]


class Sps(SpsState):
    """SPS-optimal hybrid buffering, unicast and multicast."""

    many: ClassVar[int] = 32
    """A run that may leave when it is closed becomes a departure if it has this many messages.

    A matter of speed alone; the model checker lowers it to reach departures."""

    __slots__ = ()

    # -- causal sends ---------------------------------------------------------

    def send(self, to: str | Collection[str], payload: Any) -> int:
        if to.__class__ is not str or not to or to == self.me:
            return self._send_to(to, payload)
        peer = self._peers.get(to) or self._peer(to)
        mid = self._mid + 1
        if self._missing.next != self._per:
            self._open(mid)
        self._mid = mid
        peer.mids.append(mid)
        peer.payloads.append(payload)
        self._tail.append(peer)
        return mid

    def sender_to(self, name: str) -> Callable[[Any], int]:
        if not isinstance(name, str) or not name or name == self.me:
            return super().sender_to(name)
        peer = self._peers.get(name) or self._peer(name)

        def send(payload: Any) -> int:
            mid = self._mid + 1
            if self._missing.next != self._per:
                self._open(mid)
            peer.mids.append(mid)  # which refuses if the peer was forgotten
            peer.payloads.append(payload)
            self._mid = mid
            self._tail.append(peer)
            return mid

        return send

    def _multicast(self, names: tuple[str, ...], mid: int, payload: Any) -> None:
        self._open(mid)
        peers = [self._peers.get(name) or self._peer(name) for name in names]
        for peer in peers:
            peer.mids.append(mid)
            peer.payloads.append(payload)
        per, self._per = self._per, -1
        run = SpsRun(mid, peers, True, dict.fromkeys(peers, mid), per)
        self._enter(run, per <= self._missing.first)

    def _open(self, mid: int) -> None:
        """Close the run, and start another one with message `mid`."""
        if self._tail:
            self._close()
        self._start = mid
        per = self._per = self._missing.next
        if self._missing.at:
            self._sealed = per

    def _close(self) -> None:
        """Put the messages that were sent since the last call into u; release what may leave."""
        peers, per, start = self._tail, self._per, self._start
        self._per = -1
        if not peers:
            return
        self._tail = []
        free = per <= self._missing.first
        if free and len(peers) < self.many:
            if self._out:
                self._out += peers
            else:
                self._out = peers
            self._next = start + len(peers)
            self._u.update(enumerate(peers, start))
            self._entered(start)
        else:
            ends = {peer: peer.mids[-1] for peer in dict.fromkeys(peers)}
            self._enter(SpsRun(start, peers, False, ends, per), free)

    def _enter(self, run: SpsRun, free: bool) -> None:
        """Put a run into u, and release what may leave."""
        self._u[run.mid] = run
        self._kept += 1
        self._next = run.end
        if free:
            self._out += run.peers
        else:
            run.held = True
            self._held += len(run.peers)
            self._runs.add(run)
            self._permits_came()
        self._entered(run.mid)

    def _entered(self, start: int) -> None:
        """Note whether messages from `start` on are permitted, so that they need no flag."""
        if self._front == start:  # there was nothing in u
            oldest: Any = self._u[start]
            if oldest.__class__ is SpsRun:
                self._slide()
            else:
                self._lacks = oldest
                oldest.granted = start
                self._u2 = self._u2_in = start + 1
        lacks = self._lacks
        if lacks is not None and start <= self._u2 < self._next:
            second = self._u[self._u2_in]
            if second is lacks or second.__class__ is SpsRun:
                self._advance_u2(lacks, left=False)

    # -- releases: lines 25-47 and 88-100 -------------------------------------

    def _permits_came(self) -> None:
        """Release what may leave of the runs.

        Runs that wait for the oldest permit alone are between m1 and m2, runs that
        wait for the one at p2 are from m2 on. When the oldest permit is from another
        process than before, it is the one that was at p2, or a later one. So the runs
        before m2 did not wait for that process, and all of them may leave.
        """
        runs, p1 = self._runs, self._missing.first
        at = runs.at
        while at and at[runs.first].per <= p1:
            self._release(runs.remove())
        if not at:
            return
        oldest, p2 = self._peers[self._missing.peek()[0]], self._second()
        k = max(self._m2, runs.first)
        while k < runs.next and at[k].per <= p2:
            self._release_to(at[k], oldest)
            k += 1
        self._m2 = k

    def _release(self, run: SpsRun) -> None:
        """Release what has not left of a run."""
        peers = run.peers if run.left is None and run.whole else run.unsent()
        self._held -= len(peers)
        self._out += peers
        run.held = False
        if self._lacks in run.ends and self._lacks is not run.left:
            self._grant_below_u2(run)

    def _release_to(self, run: SpsRun, peer: SpsPeer) -> None:
        """Release the messages of a run to one process."""
        if peer not in run.ends:
            return
        first = bisect_left(peer.mids, run.mid, peer.taken)
        copies = bisect_left(peer.mids, run.end, first) - first
        run.left = peer
        peer.released = run.end
        self._held -= copies
        self._out += [peer] * copies
        if self._lacks is peer:
            self._grant_below_u2(run)

    def _grant_below_u2(self, run: SpsRun) -> None:
        """Messages to the one that u lacks need no flag if u2 has passed them."""
        peer: Any = self._lacks
        k = bisect_left(peer.mids, min(self._u2, run.end), peer.taken)
        if k > peer.taken and peer.mids[k - 1] > peer.granted:
            peer.granted = peer.mids[k - 1]

    # -- permits: lines 48-71 -------------------------------------------------

    def _acks_came(self, peer: SpsPeer) -> None:
        """Drop what is acked by all from the front of u, and grant what follows."""
        u = self._u
        start = self._front
        front: Any = u[start]
        second: Any
        if self._kept and self._u2_in != start:
            second = u.get(self._u2_in)
            if second.__class__ is SpsRun and second.lacking:
                self._one_fewer(second, peer)
        # An ack covers the oldest message to its sender, which may be the oldest of all.
        if front is peer:
            mid = self._first
            del u[mid]
            mid += 1
            self._front = self._first = mid
            second = u.get(mid)
            if second.__class__ is SpsPeer and second.acked < mid:
                self._lacks = second
                if self._u2 <= mid:
                    self._u2 = self._u2_in = mid + 1
                    second.granted = self._permits[second.name] = mid
            else:
                self._slide()
        elif front.__class__ is SpsRun and self._ack_inside(front, peer):
            return
        lacks = self._lacks
        if lacks is None or self._u2 == self._next:
            return
        second = u[self._u2_in]
        if self._kept and second.__class__ is SpsRun and not second.multicast:
            second = second.peers[self._u2 - second.mid]
        # Most often a unicast to another, and not acked.
        if second is lacks or second.__class__ is SpsRun or second.acked >= self._u2:
            self._advance_u2(lacks)

    def _ack_inside(self, run: SpsRun, peer: SpsPeer) -> bool:
        """Move u.first, which is in `run`, if the ack is of messages in it.

        Returns:
            Whether u2 is known to be where it has to be.
        """
        lacking: Any = run.lacking
        peers, mid = run.peers, self._first
        if run.multicast or peers[mid - run.mid] is not peer:
            if peer.acked >= lacking.get(peer, NEVER):
                del lacking[peer]
                if run.multicast or not lacking:
                    self._slide()
            return False
        if peer.acked >= lacking[peer]:
            del lacking[peer]
        mid += 1
        k = mid - run.mid
        if not lacking or run.held or peers[k].acked >= mid:
            self._slide()
            return False
        self._lacks = oldest = peers[k]
        self._first = mid
        if self._u2 > mid:
            return False
        oldest.granted = self._permits[oldest.name] = mid
        self._u2 = mid = mid + 1
        if mid == run.end:
            self._u2_in = mid
            return False
        second = peers[k + 1]  # most often to another, and not acked
        return second is not oldest and second.acked < mid

    def _one_fewer(self, run: SpsRun, peer: SpsPeer) -> None:
        """Note an ack in the run that u2 is in."""
        lacking: Any = run.lacking
        if peer.acked >= lacking.get(peer, NEVER):
            del lacking[peer]

    def _slide(self) -> None:
        """Drop what is acked by all from the front of u, and determine what the oldest lacks."""
        u, permits, start, mid = self._u, self._permits, self._front, self._first
        lacks = None
        while u:
            entry: Any = u[start]
            if entry.__class__ is not SpsRun:
                if entry.acked < mid:
                    lacks = entry
                    break
                if entry.granted < mid:
                    entry.granted = permits[entry.name] = mid
                mid += 1
            elif entry.lack() if entry.lacking is None else entry.lacking:
                lacks, mid = self._look_inside(entry, mid)
                break
            else:
                self._permit_all(entry.ends)
                self._kept -= 1
                mid = entry.end
            del u[start]
            start = mid
        self._front, self._first, self._lacks = start, mid, lacks
        if self._u2 < mid:  # so it is if another process than before is lacking
            self._u2, self._u2_in = mid, start

    def _look_inside(self, run: SpsRun, mid: int) -> tuple[SpsPeer | None, int]:
        """Return whom alone the oldest message of a run lacks, and its number."""
        if run.multicast:
            lacking: Any = run.lacking
            return (next(iter(lacking)) if len(lacking) == 1 else None), mid
        peers, permits = run.peers, self._permits
        k = mid - run.mid
        peer = peers[k]
        while peer.acked >= mid:
            if peer.granted < mid:
                peer.granted = permits[peer.name] = mid
            k += 1
            mid += 1
            peer = peers[k]
        return peer, mid

    def _advance_u2(self, lacks: SpsPeer, left: bool = True) -> None:
        """Move u2 past messages that lack only `lacks`, and permit those that `left` (63-71)."""
        u, end = self._u, self._next
        mid, start = self._u2, self._u2_in
        permitted = 0
        while start < end:
            entry: Any = u[start]
            if entry.__class__ is not SpsRun:
                if entry is lacks:
                    permitted = mid
                elif entry.acked < mid:
                    break
                mid += 1
            else:
                stuck = self._lacks_others(entry, lacks)
                if not stuck:
                    own = entry.ends.get(lacks, 0)
                    if start != self._front:
                        entry.lacking = None
                    mid = entry.end
                else:
                    own, mid = entry.pass_inside(lacks, mid)
                if own and (not entry.held or entry.left is lacks):
                    permitted = own
                if stuck:
                    break
            start = mid
        self._u2, self._u2_in = mid, start
        if permitted > lacks.granted:
            lacks.granted = permitted
            if left:
                self._permits[lacks.name] = permitted

    def _lacks_others(self, run: SpsRun, lacks: SpsPeer) -> bool:
        """Return whether a run lacks anybody but `lacks`."""
        lacking = run.lack() if run.lacking is None else run.lacking
        return len(lacking) > (lacks in lacking)

    # -- when a process is gone -----------------------------------------------

    def _let_go_of(self, record: SpsPeer) -> None:
        """Remove a peer from the receivers of everything in the buffer."""
        self._close()
        super()._let_go_of(record)
        gone: Any = GONE
        for start, entry in self._u.items():
            if entry is record:
                self._u[start] = gone
            elif isinstance(entry, SpsRun):
                entry.forget(record)
        for run in self._runs:  # which may have left u, if nobody but the forgotten lacks it
            run.forget(record)
        self._held = sum([len(run.unsent()) for run in self._runs])

    def _after_forgetting(self) -> None:
        """Drop what lacks nobody any more from the front of u, and grant what follows."""
        self._slide()
        if self._lacks is not None:
            self._advance_u2(self._lacks)
        super()._after_forgetting()

    # -- what the driver takes ------------------------------------------------

    def take_packets(self) -> list[Outgoing]:
        if self._per != -1:
            self._close()
        elif not (self._out or self._acks or self._permits or self._packets):
            return []
        return HybridEndpoint.take_packets(self)

    def take_runs(self) -> list[tuple[str, MessageRun]]:
        self._close()
        return super().take_runs()

    def _left(self, peer: SpsPeer) -> int:
        if not self._held:
            return len(peer.mids)
        held = self._runs.at[self._runs.first].mid
        return bisect_left(peer.mids, max(held, peer.released), peer.taken)
