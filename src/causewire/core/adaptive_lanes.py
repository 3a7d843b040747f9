"""The part of `adaptive` that lists, and holds back messages whose list is too long.

The rules are in `adaptive`. Messages that were sent since the driver last took any, and since
anything was learnt, are a *burst*. `send` only appends them to the columns of their
receivers; lists are made for a whole burst, one for each destination, on the first message
to it. So a message in a stream to one destination costs as much as under `fifo`.

Each destination has a lane of its own, in the order of the causal sends. A message that waits
has its own list, which nothing can make longer. Messages without a list wait behind the one
before them.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from itertools import islice
from typing import Self

from .adaptive_news import ReportingEndpoint
from .adaptive_packets import Dest, Entry, Listed, Part
from .adaptive_peer import AdaptivePeer, Listing, Waiting
from .endpoint import Blocked, Outgoing, RemoteProtocolError, Wait
from .run import MessageRun

__all__ = ["LaneEndpoint", "is_for"]

_new = tuple.__new__

_ANY = 1 << 64
"""A number above those of all messages."""


def is_for(name: str, dest: Dest) -> bool:
    """Whether a process is the destination, or a member of the group."""
    return dest == name or (dest.__class__ is tuple and name in dest)


class LaneEndpoint(ReportingEndpoint):
    """Releases messages, with at most `cap` entries each."""

    __slots__ = ("_burst", "_cap", "_indexed", "_part", "_told")

    def __init__(
        self, me: str, group: Iterable[str] | None = None, *, cap: int | None = None
    ) -> None:
        super().__init__(me)
        self._burst: list[AdaptivePeer] = []
        """The receiver of each message that was sent and has no list yet."""
        self._cap = cap
        """Most entries that a message carries (K); None: no limit."""
        self._part = max(1, cap or 0)
        """Most entries that a part carries."""
        self._indexed: dict[tuple[str, Dest], dict[tuple[int, str, int], Waiting]] = {}
        """Messages in lanes by what they list: (message, destination, message that waits)."""
        self._told: list[Blocked] | None = None
        """Messages that have begun to wait, if the driver wants to know (`tell_waits`)."""

    def _flush(self) -> None:
        """Make the lists of the messages in the burst, and release those that may leave."""
        burst, self._burst = self._burst, []
        past = self._past
        peers = dict.fromkeys(burst)
        for peer in peers:
            past.sent(peer.name, peer.mids[-1])
        held = {peer for peer in peers if not self._post(peer, ())}
        self._out += [peer for peer in burst if peer not in held] if held else burst

    def _post(self, peer: AdaptivePeer, group: tuple[str, ...]) -> bool:
        """List for what was sent to a peer since the last call; return whether it may leave.

        Otherwise it waits in its lane.
        """
        entries = self._past.unlisted(peer.name, peer.upto)
        if peer.alias:
            unnamed = (self.me, peer.alias[0])
            entries = [entry for entry in entries if entry[:2] != unnamed]
        peer.upto = self._past.stamp
        start = bisect_right(peer.mids, peer.posted, peer.head)
        first = peer.mids[start]
        peer.posted = peer.mids[-1]
        if not peer.lane and (self._cap is None or len(entries) <= self._cap):
            if entries or group:
                peer.sent[first] = Listing(group, (), tuple(entries), [])
                self._past.listed(peer.name, entries, first)
            return True
        if entries or group:
            self._wait(peer, first, group, entries)
        if self._told is not None:
            waits = (Wait("ack", peer.name, peer.lane[0].mid),)
            new = peer.mids[start:]
            self._told += [Blocked(self.me, mid, peer.name, "sender", waits) for mid in new]
        return False

    def _wait(
        self, peer: AdaptivePeer, mid: int, group: tuple[str, ...], entries: list[Entry]
    ) -> None:
        """Put a message, and those behind it, into a lane."""
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
        # Those behind it without a list leave with it.
        last = peer.lane[0].mid - 1 if peer.lane else peer.posted
        count = bisect_right(peer.mids, last) - bisect_left(peer.mids, mid)
        self._out += [peer] * count

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
        if self._indexed:
            for name in self._strike(origin, dest, mid):
                self._advance(self._peers[name])

    def _strike(self, origin: str, dest: Dest, mid: int) -> list[str]:
        """Take entries off the lists of waiting messages; return whose lane may advance."""
        indexed = self._indexed.get((origin, dest))
        if not indexed:
            return []
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
        return names

    def _left(self, peer: AdaptivePeer) -> int:
        if not peer.lane:
            return len(peer.mids)
        return bisect_left(peer.mids, peer.lane[0].mid, peer.taken)

    def _waiting(self, peer: AdaptivePeer) -> list[int]:
        """Return the numbers of the messages in a lane."""
        if not peer.lane:
            return []
        return peer.mids[self._left(peer) : bisect_right(peer.mids, peer.posted)]

    def _let_go_of(self, record: AdaptivePeer) -> None:
        """Drop the lane of a process, and take its messages off the lists of others."""
        gone = record.name
        for waiting in record.lane:
            for origin, dest, listed in waiting.rest:
                self._unindex(origin, dest, listed, gone, waiting.mid)

    def _forget(self, peer: str) -> tuple[int, ...]:
        self._flush()
        shorter: list[str] = []
        for origin, dest in [pair for pair in self._indexed if peer in pair]:
            shorter += self._strike(origin, dest, _ANY)  # all of them, before a message leaves
        failed = super()._forget(peer)
        for name in dict.fromkeys(shorter):
            if name != peer:
                self._advance(self._peers[name])
        return failed

    def take_packets(self) -> list[Outgoing]:
        if self._burst:
            self._flush()
        return super().take_packets()

    def take_runs(self) -> list[tuple[str, MessageRun]]:
        """Return the messages that `take_packets` would return, in runs for each peer.

        A run with `per` has messages with lists: its payloads are `Listed`. Acks are
        taken with `take_acks`, all other packets with `take_control`.
        """
        if self._burst:
            self._flush()
        runs: list[tuple[str, MessageRun]] = []
        for peer in dict.fromkeys(self._out):
            start, peer.taken = peer.taken, self._left(peer)
            self._take_runs_of(peer, start, runs)
        self._out = []
        return runs

    def _take_runs_of(
        self, peer: AdaptivePeer, start: int, runs: list[tuple[str, MessageRun]]
    ) -> None:
        name, mids, payloads, end = peer.name, peer.mids, peer.payloads, peer.taken
        listing = []
        for mid in reversed(peer.sent):
            if mid < mids[start]:
                break
            listing.append(mid)
        for mid in reversed(listing):
            k = bisect_left(mids, mid, start)
            if start < k:
                run = MessageRun(mids[start:k], peer.before(start), payloads[start:k])
                runs.append((name, run))
            sent = peer.sent[mid]
            listed = Listed(payloads[k], sent.group, sent.entries)
            runs.append((name, MessageRun([mid], peer.before(k), [listed], True)))
            start = k + 1
        if start < end:
            run = MessageRun(mids[start:end], peer.before(start), payloads[start:end])
            runs.append((name, run))

    def in_flight(self, name: str) -> list[MessageRun]:
        """Return the messages to a peer that were taken and not acked, as `take_runs` does."""
        runs: list[tuple[str, MessageRun]] = []
        peer = self._peers[name]
        if peer.head < peer.taken:
            self._take_runs_of(peer, peer.head, runs)
        return [run for _, run in runs]

    @property
    def has_messages(self) -> bool:
        """Whether there are messages that `take_runs` has not seen."""
        return bool(self._burst or self._out)

    def _repeat(self, peer: AdaptivePeer) -> None:
        super()._repeat(peer)
        if peer.lane and peer.lane[0].part is not None:
            first = peer.lane[0]
            k = first.part
            entries = tuple(first.parts[-self._part :]) if k else ()
            self._packets.append((peer.name, _new(Part, ("part", first.mid, k, entries))))

    def _copy_into(self, twin: Self) -> None:
        super()._copy_into(twin)
        twin._burst = [twin._peers[peer.name] for peer in self._burst]
        twin._cap = self._cap
        twin._part = self._part
        twin._told = None
        twin._indexed = {}
        for name, peer in twin._peers.items():
            for waiting in peer.lane:
                for origin, dest, listed in waiting.rest:
                    indexed = twin._indexed.setdefault((origin, dest), {})
                    indexed[listed, name, waiting.mid] = waiting
