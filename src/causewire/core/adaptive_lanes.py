"""The part of `adaptive` that holds back a message whose list is longer than the cap.

The rules are in `adaptive`. Each destination has a lane of its own, in the order of the causal
sends. A message that waits has its own list, which nothing can make longer.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable
from itertools import islice
from typing import Any, Self

from .adaptive_news import ReportingEndpoint
from .adaptive_packets import Dest, Entry, Part
from .adaptive_peer import AdaptivePeer, Listing, Waiting
from .endpoint import RemoteProtocolError

__all__ = ["LaneEndpoint", "is_for"]

_new = tuple.__new__

_ANY = 1 << 64
"""A number above those of all messages."""


def is_for(name: str, dest: Dest) -> bool:
    """Whether a process is the destination, or a member of the group."""
    return dest == name or (dest.__class__ is tuple and name in dest)


class LaneEndpoint(ReportingEndpoint):
    """Releases messages, with at most `cap` entries each."""

    __slots__ = ("_cap", "_indexed", "_part")

    def __init__(
        self, me: str, group: Iterable[str] | None = None, *, cap: int | None = None
    ) -> None:
        super().__init__(me)
        self._cap = cap
        """Most entries that a message carries (K); None: no limit."""
        self._part = max(1, cap or 0)
        """Most entries that a part carries."""
        self._indexed: dict[tuple[str, Dest], dict[tuple[int, str, int], Waiting]] = {}
        """Messages in lanes by what they list: (message, destination, message that waits)."""

    def _post(
        self,
        peer: AdaptivePeer,
        mid: int,
        payload: Any,
        group: tuple[str, ...],
        entries: list[Entry],
    ) -> None:
        """Release a copy of a message, or let it wait in its lane."""
        peer.upto = self._past.stamp
        peer.mids.append(mid)
        peer.payloads.append(payload)
        if not peer.lane and (self._cap is None or len(entries) <= self._cap):
            if entries or group:
                peer.sent[mid] = Listing(group, (), tuple(entries), [])
                self._past.listed(peer.name, entries, mid)
            self._out.append(peer)
            return
        name = peer.name
        # What the receiver will have to wait for goes last: a part need not bring it.
        entries.sort(key=lambda entry: is_for(name, entry[1]))
        waiting = Waiting(mid, group, entries)
        for origin, dest, listed in entries:
            self._indexed.setdefault((origin, dest), {})[listed, name, mid] = waiting
        peer.lane.append(waiting)
        if len(peer.lane) == 1:
            self._advance(peer)

    def _advance(self, peer: AdaptivePeer) -> None:
        """Release what can leave a lane; the first that cannot sends a part ahead."""
        cap = self._cap
        lane = peer.lane
        while lane and (cap is None or len(lane[0].rest) <= cap) and not lane[0].part:
            self._release(peer, lane.popleft())
        if lane and lane[0].part is None:
            lane[0].part = 0
            self._packets.append((peer.name, _new(Part, ("part", lane[0].mid, 0, ()))))

    def _release(self, peer: AdaptivePeer, waiting: Waiting) -> None:
        name, mid = peer.name, waiting.mid
        parts = tuple([entry for entry in waiting.parts if entry[1] == name])
        entries = tuple(waiting.rest)
        for origin, dest, listed in entries:
            self._unindex(origin, dest, listed, name, mid)
        if waiting.parts or entries or waiting.group:
            peer.sent[mid] = Listing(waiting.group, parts, entries, waiting.late)
            self._past.listed(name, entries, mid)
        self._out.append(peer)

    def _unindex(self, origin: str, dest: Dest, listed: int, name: str, mid: int) -> None:
        indexed = self._indexed[origin, dest]
        del indexed[listed, name, mid]
        if not indexed:
            del self._indexed[origin, dest]

    def _receive_got(self, source: str, mid: int, number: int) -> None:
        peer = self._peers.get(source)
        if peer is None or mid > self._mid:
            raise RemoteProtocolError(f"{source!r} got a part of message {mid}, never sent to it")
        if not peer.lane or peer.lane[0].mid != mid or peer.lane[0].part != number:
            return
        waiting = peer.lane[0]
        if self._cap is None or len(waiting.rest) <= self._cap:
            waiting.part = 0
            self._advance(peer)
            return
        part = tuple(islice(waiting.rest, self._part))
        for entry in part:
            del waiting.rest[entry]
            self._unindex(*entry, source, mid)
        waiting.parts += part
        waiting.part = number + 1
        self._past.listed(source, part, mid)
        self._packets.append((source, _new(Part, ("part", mid, number + 1, part))))

    def _shorten(self, origin: str, dest: Dest, mid: int) -> None:
        indexed = self._indexed.get((origin, dest))
        if not indexed:
            return
        keys = [key for key in indexed if key[0] <= mid]
        names = []
        for key in keys:
            listed, name, _ = key
            waiting = indexed.pop(key)
            del waiting.rest[origin, dest, listed]
            if self._peers[name].lane[0] is waiting:
                names.append(name)
        if keys and not indexed:
            del self._indexed[origin, dest]
        for name in names:
            self._advance(self._peers[name])

    def _left(self, peer: AdaptivePeer) -> int:
        if not peer.lane:
            return len(peer.mids)
        return bisect_left(peer.mids, peer.lane[0].mid, peer.taken)

    def _let_go_of(self, record: AdaptivePeer) -> None:
        """Drop the lane of a process, and take its messages off the lists of others."""
        gone = record.name
        for waiting in record.lane:
            for origin, dest, listed in waiting.rest:
                self._unindex(origin, dest, listed, gone, waiting.mid)

    def _forget(self, peer: str) -> tuple[int, ...]:
        failed = super()._forget(peer)
        for origin, dest in [pair for pair in self._indexed if peer in pair]:
            self._shorten(origin, dest, _ANY)
        return failed

    def retransmit(self) -> None:
        super().retransmit()
        for name, peer in self._peers.items():
            if peer.lane and peer.lane[0].part is not None:
                first = peer.lane[0]
                k = first.part
                entries = tuple(first.parts[-self._part :]) if k else ()
                self._packets.append((name, _new(Part, ("part", first.mid, k, entries))))

    def _copy_into(self, twin: Self) -> None:
        super()._copy_into(twin)
        twin._cap = self._cap
        twin._part = self._part
        twin._indexed = {}
        for name, peer in twin._peers.items():
            for waiting in peer.lane:
                for origin, dest, listed in waiting.rest:
                    indexed = twin._indexed.setdefault((origin, dest), {})
                    indexed[listed, name, waiting.mid] = waiting
