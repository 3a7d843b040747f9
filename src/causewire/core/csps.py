"""`csps`: causal delivery by conservative sender permission to send.

Almeida's Algorithm 1 (unicast) and Algorithm 3 (multicast) in one endpoint.
The rule (Definition 4.3): *a process network-sends a message when all messages
that happened before it, sent by any process that sent messages to it, have been
delivered*. What that means for each part, beside what `hybrid` says:

    release     Messages leave in the order in which they were causal-sent. One
                leaves when no permit is missing that was missing when it was
                causal-sent (line 31). Permits for later deliveries do not
                matter, so nothing starves, unlike in Cykas.
    flag        A message is flagged if it leaves while an earlier one is not
                acknowledged (line 34), or goes to several processes (Algorithm
                3, line 13): then each of them learns what the others may lack.
    permit      Message n to j is permitted when all acks of earlier messages
                are there, and those of n itself from everybody but j. For a
                single receiver that is Algorithm 1 (lines 64-70): the permit
                leaves when n becomes the oldest message unacknowledged. For
                several it is Algorithm 3 with the optimisation that the paper
                only mentions (ERRATA 3.8): one ack missing, its receiver gets
                its permit; none missing, everybody else.

Every message behind another among the unacknowledged was flagged when it left,
since it was not alone then. So whichever becomes the oldest by the removal of
another is due a permit: no flags need to be kept. And because messages leave in
order and acks are watermarks, u is only ever used at its ends: in place of the
paper's sliding array a queue will do. Messages to one process that follow each
other are one run in it, which takes part of an ack, or all of it, in one step: a
process that talks to one other for a while pays nothing for causality.

    state   u       unacknowledged messages in order (line 22), by runs: to whom,
                    and the number behind each run but the last
            oldest  the number of the first of them
            waiting receivers whose ack is missing for the oldest message in u,
                    if that is a multicast (`unack` of Algorithm 3)
            sb      send buffer, in causal-send order (line 26): packets that may
                    leave together are kept together
            p       missing permits (line 23), in `hybrid`

Amortised constant time per copy: u passes each run once.

Departures from the print: ids from 1 (ERRATA 1.1), acks as watermarks instead
of marks in u (1.3, 3.2, 3.3), `pid` for each destination (3.1), flag and index
apart (1.4), a permit that overtakes its message is kept (1.5).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Hashable, Iterable, Iterator
from typing import Any, Self

from .endpoint import Blocked, Footprint, Outgoing, Wait
from .hybrid import HybridEndpoint, Message

__all__ = ["Csps"]

_new = tuple.__new__


class Held:
    """Messages in the send buffer that wait for the same permits, ready to leave.

    Either messages to one process each, numbered without a gap, or one multicast.
    """

    __slots__ = ("mid", "names", "packets", "per")

    def __init__(
        self, per: int, mid: int, packets: list[Outgoing], names: tuple[str, ...] | None = None
    ) -> None:
        self.per = per
        """They may leave when the permits before this index are there."""
        self.mid = mid
        """The first of them."""
        self.packets = packets
        """All flagged: none but the first can be alone when it leaves."""
        self.names = names
        """The receivers, if it is a multicast."""

    def copy(self) -> Held:
        return Held(self.per, self.mid, self.packets.copy(), self.names)

    def messages(self) -> Iterator[tuple[int, Any, tuple[tuple[str, int], ...]]]:
        """Each with its number, its payload, and for each receiver its predecessor there."""
        if self.names is None:
            for to, message in self.packets:
                yield message[1], message[3], ((to, message[2]),)
        else:
            payload = self.packets[0][1][3] if self.packets else None
            yield self.mid, payload, tuple([(to, message[2]) for to, message in self.packets])


class Csps(HybridEndpoint):
    """Basic hybrid buffering, unicast and multicast (Algorithms 1 and 3)."""

    __slots__ = ("_ends", "_oldest", "_send_buffer", "_unacked", "_waiting")

    def __init__(self, me: str, group: Iterable[str] | None = None) -> None:
        super().__init__(me)
        self._unacked: deque[str | tuple[str, ...]] = deque()
        self._ends: deque[int] = deque()
        self._oldest = 1
        self._waiting: set[str] = set()
        self._send_buffer: deque[Held] = deque()

    def send(self, to: str | Collection[str], payload: Any) -> int:
        if to.__class__ is not str or not to or to == self.me:
            return self._send_to(to, payload)
        mid = self._mid = self._mid + 1
        peer = self._peers.get(to) or self._peer(to)
        pid = peer.sent
        peer.sent = mid
        if self._missing.at:
            per = self._missing.next
            buffer = self._send_buffer
            packet = (to, _new(Message, ("msg", mid, pid, payload, True)))
            if buffer and buffer[-1].per == per and buffer[-1].names is None:
                buffer[-1].packets.append(packet)
            else:
                buffer.append(Held(per, mid, [packet]))
            self._held += 1
            return mid
        if self._oldest == mid:
            peer.granted = mid
            message = _new(Message, ("msg", mid, pid, payload, False))
        else:
            message = _new(Message, ("msg", mid, pid, payload, True))
        unacked = self._unacked
        if not unacked:
            unacked.append(to)
        elif unacked[-1] != to:
            unacked.append(to)
            self._ends.append(mid)
        peer.flight[mid] = message
        self._packets.append((to, message))
        return mid

    def _multicast(self, names: tuple[str, ...], mid: int, payload: Any) -> None:
        packets: list[Outgoing] = []
        for name in names:
            peer = self._peers.get(name) or self._peer(name)
            packets.append((name, _new(Message, ("msg", mid, peer.sent, payload, True))))
            peer.sent = mid
        self._send_buffer.append(Held(self._missing.next, mid, packets, names))
        self._held += 1
        self._permits_came()

    def _permits_came(self) -> None:
        buffer = self._send_buffer
        while buffer and buffer[0].per <= self._missing.first:
            held = buffer.popleft()
            self._held -= len(held.packets) if held.names is None else 1
            self._release(held)

    def _release(self, held: Held) -> None:
        """Put what was held on the network, and into u."""
        if held.names is None:
            self._release_each(held)
            return
        if self._unacked:
            self._ends.append(held.mid)
        self._unacked.append(held.names)
        for to, message in held.packets:
            self._peers[to].flight[held.mid] = message
        self._packets += held.packets
        if self._oldest == held.mid:
            self._slide()

    def _release_each(self, held: Held) -> None:
        """Messages to one process each: what goes to the same one is a run in u."""
        packets, peers = held.packets, self._peers
        if self._oldest == held.mid:
            to, first = packets[0]
            packets[0] = (to, _new(Message, (*first[:4], False)))
            peers[to].granted = held.mid
        unacked, ends = self._unacked, self._ends
        last = unacked[-1] if unacked else None
        flight = peers[last].flight if isinstance(last, str) else {}
        for to, message in packets:
            mid = message[1]
            if to != last:
                if last is not None:
                    ends.append(mid)
                unacked.append(to)
                last = to
                flight = peers[to].flight
            flight[mid] = message
        self._packets += packets

    def _acks_came(self, source: str) -> None:
        # An ack covers what is oldest to its sender, so the oldest of all, if
        # that is for it.
        waiting = self._waiting
        if waiting:
            if source in waiting:
                waiting.remove(source)
                if not waiting:
                    self._slide()
                elif len(waiting) == 1:
                    self._grant(next(iter(waiting)), self._oldest)
        elif self._unacked[0] == source:
            self._slide()

    def _slide(self) -> None:
        """Drop what is acked by all from the front of u.

        Permits are due to the other receivers of each message that is dropped,
        and to a single receiver of the one that becomes the oldest (lines 65-67).
        """
        unacked, ends, peers = self._unacked, self._ends, self._peers
        mid = self._oldest
        while unacked:
            to = unacked[0]
            if to.__class__ is str:
                peer = peers[to]
                acked = peer.acked
                if acked < mid:
                    peer.granted = self._permits[to] = mid
                    break
                end = ends[0] if ends else self._next_to_leave()
                mid = acked + 1
                if mid < end:
                    peer.granted = self._permits[to] = mid
                    break
                mid = end
                if peer.granted < mid - 1:
                    peer.granted = self._permits[to] = mid - 1
            else:
                self._waiting = waiting = {name for name in to if peers[name].acked < mid}
                for name in to if not waiting else waiting if len(waiting) == 1 else ():
                    if peers[name].granted < mid:
                        self._grant(name, mid)
                if waiting:
                    break
                mid += 1
            unacked.popleft()
            if ends:
                ends.popleft()
        self._oldest = mid

    def _next_to_leave(self) -> int:
        """The number of the first message that has not left."""
        return self._send_buffer[0].mid if self._send_buffer else self._mid + 1

    # -- what people ask ------------------------------------------------------

    def blocked(self) -> list[Blocked]:
        here = []
        for held in self._send_buffer:
            permits = sorted(self._waits(held.per).items())
            waits = tuple([Wait("permit", *permit) for permit in permits])
            for mid, _, copies in held.messages():
                here += [Blocked(self.me, mid, name, "sender", waits) for name, _ in copies]
        return here + super().blocked()

    def footprint(self) -> Footprint:
        state, packet = super().footprint()
        receivers = sum(1 + (1 if isinstance(to, str) else len(to)) for to in self._unacked)
        held = sum(2 + 2 * len(held.packets) for held in self._send_buffer)
        return Footprint(state + 1 + receivers + len(self._waiting) + held, packet)

    # -- as a value -----------------------------------------------------------

    def _state(self) -> Hashable:
        held = tuple(
            [
                (frozenset(self._waits(held.per).items()), *message)
                for held in self._send_buffer
                for message in held.messages()
            ]
        )
        unacked = (self._oldest, tuple(self._unacked), tuple(self._ends))
        return (super()._state(), unacked, held)

    def _copy_into(self, twin: Self) -> None:
        super()._copy_into(twin)
        twin._unacked = self._unacked.copy()
        twin._ends = self._ends.copy()
        twin._oldest = self._oldest
        twin._waiting = self._waiting.copy()
        twin._send_buffer = deque([held.copy() for held in self._send_buffer])
