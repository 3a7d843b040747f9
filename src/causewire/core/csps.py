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

Because messages leave in order and acks are watermarks, u is only ever used at
its ends: in place of the paper's sliding array a queue will do, in which a message
is a reference to its receiver. Whatever waits for the same permits leaves together,
in one step.

    state   u       receivers of the unacknowledged messages, in order (line 22)
            oldest  the number of the first of them
            waiting receivers whose ack is missing for the oldest message in u,
                    if that is a multicast (`unack` of Algorithm 3)
            sb      send buffer (line 26): the receivers, in causal-send order, of
                    what may leave together
            p       missing permits (line 23), in `hybrid`

The messages themselves lie in the columns of their receivers (`fifo`).

Amortised constant time per copy: each receiver is put into u once, and taken out.

Departures from the print: ids from 1 (ERRATA 1.1), acks as watermarks instead
of marks in u (1.3, 3.2, 3.3), `pid` for each destination (3.1), flag and index
apart (1.4), a permit that overtakes its message is kept (1.5).
"""

from __future__ import annotations

from bisect import bisect_left
from collections import deque
from collections.abc import Collection, Hashable, Iterable, Iterator
from typing import Any, Self, TypeAlias

from .endpoint import Blocked, Footprint, Wait
from .hybrid import HybridEndpoint, HybridPeer

__all__ = ["Csps", "Held", "Multicast"]


class Multicast:
    """The receivers of a message to several other processes, or to none."""

    __slots__ = ("peers",)

    acked = -1
    """Unlike a single receiver's, never enough: who slides has to look closer."""

    def __init__(self, peers: tuple[HybridPeer, ...]) -> None:
        self.peers = peers


Receiver: TypeAlias = HybridPeer | Multicast


class Held:
    """Messages in the send buffer that wait for the same permits, and leave together.

    Either messages to one process each, numbered without a gap, or one multicast.
    """

    __slots__ = ("mid", "multicast", "peers", "per")

    def __init__(
        self, per: int, mid: int, peers: list[HybridPeer], multicast: Multicast | None = None
    ) -> None:
        self.per = per
        """They may leave when the permits before this index are there."""
        self.mid = mid
        """The first of them."""
        self.peers = peers
        """To whom: one message each, or all of them the multicast."""
        self.multicast = multicast

    def messages(self) -> Iterator[tuple[int, tuple[str, ...]]]:
        """The number of each, and its receivers."""
        if self.multicast is not None:
            yield self.mid, tuple([peer.name for peer in self.peers])
        else:
            for mid, peer in enumerate(self.peers, self.mid):
                yield mid, (peer.name,)


class Csps(HybridEndpoint[HybridPeer]):
    """Basic hybrid buffering, unicast and multicast (Algorithms 1 and 3)."""

    __slots__ = ("_oldest", "_unacked", "_waiting")

    def __init__(self, me: str, group: Iterable[str] | None = None) -> None:
        super().__init__(me)
        self._unacked: deque[Receiver] = deque()
        self._oldest = 1
        self._waiting: set[str] = set()
        self._held: deque[Held] = deque()

    def _peer(self, name: str) -> HybridPeer:
        peer = self._peers[name] = HybridPeer(name)
        return peer

    def send(self, to: str | Collection[str], payload: Any) -> int:
        if to.__class__ is not str or not to or to == self.me:
            return self._send_to(to, payload)
        mid = self._mid = self._mid + 1
        peer = self._peers.get(to) or self._peer(to)
        peer.mids.append(mid)
        peer.payloads.append(payload)
        if self._missing.at:
            per = self._missing.next
            buffer = self._held
            if buffer and buffer[-1].per == per and buffer[-1].multicast is None:
                buffer[-1].peers.append(peer)
            else:
                buffer.append(Held(per, mid, [peer]))
            return mid
        if self._oldest == mid:
            peer.granted = mid
        self._unacked.append(peer)
        self._out.append(peer)
        return mid

    def _multicast(self, names: tuple[str, ...], mid: int, payload: Any) -> None:
        peers = [self._peers.get(name) or self._peer(name) for name in names]
        for peer in peers:
            peer.mids.append(mid)
            peer.payloads.append(payload)
        self._held.append(Held(self._missing.next, mid, peers, Multicast(tuple(peers))))
        self._permits_came()

    def _permits_came(self) -> None:
        buffer = self._held
        while buffer and buffer[0].per <= self._missing.first:
            self._release(buffer.popleft())

    def _release(self, held: Held) -> None:
        """Put what was held on the network, and into u."""
        oldest = self._oldest == held.mid
        self._out += held.peers
        if held.multicast is None:
            self._unacked += held.peers
            if oldest:
                held.peers[0].granted = held.mid
        else:
            self._unacked.append(held.multicast)
            if oldest:
                self._slide()

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
        elif self._unacked[0] is self._peers[source]:
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
            if to.acked < mid:
                if to.__class__ is not Multicast:
                    to.granted = permits[to.name] = mid
                    break
                if not self._acked_by_all(to, mid):
                    break
            elif to.granted < mid:
                to.granted = permits[to.name] = mid
            unacked.popleft()
            mid += 1
        self._oldest = mid

    def _acked_by_all(self, multicast: Multicast, mid: int) -> bool:
        """Look at a multicast that has become the oldest, and permit it where it may be."""
        lacking = [peer for peer in multicast.peers if peer.acked < mid]
        self._waiting = {peer.name for peer in lacking}
        for peer in multicast.peers if not lacking else lacking if len(lacking) == 1 else ():
            if peer.granted < mid:
                self._grant(peer.name, mid)
        return not lacking

    # -- what the driver takes ------------------------------------------------

    def _left(self, peer: HybridPeer) -> int:
        if not self._held:
            return len(peer.mids)
        return bisect_left(peer.mids, self._held[0].mid, peer.taken)

    # -- what people ask ------------------------------------------------------

    def blocked(self) -> list[Blocked]:
        here = []
        for held in self._held:
            permits = sorted(self._waits(held.per).items())
            waits = tuple([Wait("permit", *permit) for permit in permits])
            for mid, names in held.messages():
                here += [Blocked(self.me, mid, name, "sender", waits) for name in names]
        return here + super().blocked()

    def footprint(self) -> Footprint:
        state, packet = super().footprint()
        receivers = sum(
            1 if isinstance(to, HybridPeer) else 1 + len(to.peers) for to in self._unacked
        )
        held = sum(2 + len(held.peers) for held in self._held)
        return Footprint(state + 2 + receivers + len(self._waiting) + held, packet)

    # -- as a value -----------------------------------------------------------

    def _state(self) -> Hashable:
        held = [
            (frozenset(self._waits(held.per).items()), *message)
            for held in self._held
            for message in held.messages()
        ]
        return (super()._state(), self._oldest, tuple(self._receivers()), tuple(held))

    def _receivers(self) -> Iterator[str | tuple[str, ...]]:
        """Names for what is in u."""
        for to in self._unacked:
            if isinstance(to, HybridPeer):
                yield to.name
            else:
                yield tuple([peer.name for peer in to.peers])

    def _copy_into(self, twin: Self) -> None:
        super()._copy_into(twin)
        peers = twin._peers

        def again(multicast: Multicast) -> Multicast:
            return Multicast(tuple([peers[peer.name] for peer in multicast.peers]))

        twin._unacked = deque(
            [peers[to.name] if isinstance(to, HybridPeer) else again(to) for to in self._unacked]
        )
        twin._oldest = self._oldest
        twin._waiting = self._waiting.copy()
        twin._held = deque(
            [
                Held(
                    held.per,
                    held.mid,
                    [peers[peer.name] for peer in held.peers],
                    None if held.multicast is None else again(held.multicast),
                )
                for held in self._held
            ]
        )
