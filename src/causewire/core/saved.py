"""Endpoints as data: what a process has to keep so that it can go on after a crash.

An endpoint is a deterministic state machine, so its state after a crash can be computed
again from what was done to it. That record grows without end, therefore a driver that keeps
one saves the whole endpoint from time to time and starts a new record (`causewire.transport`
does, for a node with a store). This module turns an endpoint into plain values, and back:

    saved = save(endpoint)              # when packets and deliveries have been taken
    restore(fresh, saved)               # an endpoint of the same class and the same name

`saved.state` consists of lists, strings, numbers and None, so it can be written as JSON.
Payloads, which may be anything, are apart: the state refers to them by their index.

Only `fifo`, `csps`, `sps` and `adaptive` can be saved: the protocols whose messages, acks and
permits are numbered for each pair of processes, so that a process that was silent for a while
can continue where it stopped.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import Any, NamedTuple

from .adaptive import Adaptive
from .adaptive_peer import AdaptivePeer
from .csps import BufferedRun, Csps
from .departure import GONE, Departure
from .endpoint import Endpoint, LocalProtocolError, Packet
from .fifo import Fifo, FifoEndpoint, FifoPeer
from .hybrid import HybridEndpoint, HybridPeer
from .interrupted import usual_class
from .run import MessageRun
from .saved_adaptive import (
    newest_from,
    restore_adaptive,
    restore_adaptive_peer,
    save_adaptive,
    save_adaptive_peer,
    untaken,
)
from .sliding import SlidingArray
from .sps import Sps
from .sps_run import SpsPeer, SpsRun

__all__ = [
    "Saved",
    "Standing",
    "can_save",
    "last_number",
    "restore",
    "save",
    "standing",
    "unacknowledged",
]


class Saved(NamedTuple):
    """An endpoint as plain values."""

    state: list[Any]
    """Lists, strings, numbers and None."""
    payloads: list[Any]
    """The payloads that `state` refers to by index."""


class Standing(NamedTuple):
    """The watermarks between an endpoint and one other process."""

    acked: int
    """Messages to it up to this one are acknowledged."""
    delivered: int
    """Its messages up to this one are delivered here."""
    arrived: int
    """Its messages up to this one are here; under `adaptive`, some may wait."""
    granted: int
    """Messages to it up to this one are permitted."""
    permit: int
    """Its messages up to this one are permitted."""
    flagged: int
    """Its last message that was delivered here and lacks its permit; 0 if there is none."""
    unacked: list[tuple[int, Any]]
    """The messages to it that are not acknowledged, whether or not they have left: the number
    and the payload of each."""


def can_save(kind: type[Endpoint]) -> bool:
    """Return whether endpoints of a class can be saved."""
    return kind in (Fifo, Csps, Sps, Adaptive)


class _Payloads:
    """Gives payloads an index; the copies of a multicast share one."""

    def __init__(self) -> None:
        self.all: list[Any] = []
        self._own: dict[int, int] = {}

    def own(self, mid: int, payload: Any) -> int:
        """Return the index of the payload of a message that this process sent."""
        index = self._own.get(mid)
        if index is None:
            index = self._own[mid] = self.other(payload)
        return index

    def other(self, payload: Any) -> int:
        """Return the index of another payload."""
        self.all.append(payload)
        return len(self.all) - 1


def save(endpoint: Endpoint) -> Saved:
    """Return an endpoint as plain values.

    Args:
        endpoint: An endpoint of `fifo`, `csps`, `sps` or `adaptive`, whose packets and
            deliveries have been taken.

    Raises:
        LocalProtocolError: The protocol cannot be saved, or something was not taken.
    """
    kind = usual_class(type(endpoint))
    if not isinstance(endpoint, FifoEndpoint) or not can_save(kind):
        raise LocalProtocolError(f"{kind.__name__} cannot be saved")
    open_run = isinstance(endpoint, Sps) and bool(endpoint._tail)
    open_run |= isinstance(endpoint, Adaptive) and untaken(endpoint)
    if endpoint._packets or endpoint._deliveries or endpoint._out or open_run:
        raise LocalProtocolError("take packets and deliveries before an endpoint is saved")
    payloads = _Payloads()
    peers = [_peer(peer, payloads) for peer in endpoint._peers.values()]
    state: list[Any] = [
        kind.__name__,
        endpoint.me,
        endpoint._mid,
        sorted(endpoint._forgotten),
        peers,
        list(endpoint._acks.items()),
    ]
    if isinstance(endpoint, HybridEndpoint):
        missing = endpoint._missing
        state += [
            [missing.first, [list(each) for each in missing]],
            endpoint._sealed,
            list(endpoint._permits.items()),
        ]
    if isinstance(endpoint, Csps):
        state += _csps(endpoint)
    elif isinstance(endpoint, Sps):
        state += _sps(endpoint)
    elif isinstance(endpoint, Adaptive):
        state.append(save_adaptive(endpoint, payloads.other))
    return Saved(state, payloads.all)


def _peer(peer: FifoPeer, payloads: _Payloads) -> list[Any]:
    head = peer.head
    mids = peer.mids[head:]
    record: list[Any] = [
        peer.name,
        mids,
        list(map(payloads.own, mids, peer.payloads[head:])),
        peer.taken - head,
        peer.acked,
        peer.delivered,
        [[pid, m[1], payloads.other(m[3]), *m[4:]] for pid, m in peer.early.items()],
    ]
    if isinstance(peer, HybridPeer):
        record += [peer.flagged, peer.granted, peer.permit]
    if isinstance(peer, SpsPeer):
        record.append(peer.released)
    if isinstance(peer, AdaptivePeer):
        record += save_adaptive_peer(peer)
    return record


def _names(peers: Iterable[HybridPeer]) -> list[str]:
    return [peer.name for peer in peers]


def _ends(ends: dict[HybridPeer, int]) -> list[list[Any]]:
    return [[peer.name, mid] for peer, mid in ends.items()]


def _csps(endpoint: Csps) -> list[Any]:
    unacked: list[Any] = [
        [each.mid, _names(each.peers), each.multicast, _ends(each.ends)]
        if isinstance(each, Departure)
        else each.name
        for each in endpoint._unacked
    ]
    held = [[run.per, run.mid, _names(run.peers), run.multicast] for run in endpoint._held]
    return [endpoint._oldest, unacked, _ends(endpoint._lacking), held]


def _sps(endpoint: Sps) -> list[Any]:
    u = [_run(each) if isinstance(each, SpsRun) else each.name for each in endpoint._u.values()]
    runs = [_run(run) for run in endpoint._runs]
    lacks = endpoint._lacks and endpoint._lacks.name
    indexes = [endpoint._front, endpoint._first, endpoint._u2, endpoint._u2_in]
    return [u, runs, endpoint._runs.first, indexes, lacks, endpoint._m2]


def _run(run: SpsRun) -> list[Any]:
    left = run.left and run.left.name
    lacking = None if run.lacking is None else _names(run.lacking)
    ends = _ends(run.ends)
    return [run.mid, _names(run.peers), run.multicast, ends, run.per, run.held, left, lacking]


# -- and back -------------------------------------------------------------------------


def restore(endpoint: Endpoint, saved: Saved) -> None:
    """Give a fresh endpoint the state of one that was saved.

    Args:
        endpoint: A new endpoint, which has not done anything.
        saved: What `save` returned, possibly after a detour through JSON.

    Raises:
        LocalProtocolError: It was saved by another process, or under another protocol.
        ValueError, TypeError, IndexError, KeyError: It is damaged.
    """
    kind, me, mid, forgotten, peers, acks, *rest = saved.state
    if kind != type(endpoint).__name__ or me != endpoint.me:
        raise LocalProtocolError(f"{me!r} under {kind} cannot become {endpoint!r}")
    assert isinstance(endpoint, FifoEndpoint)
    endpoint._mid = mid
    endpoint._forgotten = set()
    for record in peers:
        _restore_peer(endpoint, record, saved.payloads)
    endpoint._forgotten = set(forgotten)
    endpoint._acks = {name: number for name, number in acks}  # noqa: C416 - lists of two
    if isinstance(endpoint, HybridEndpoint):
        (first, missing), sealed, permits, *rest = rest
        endpoint._missing = _window(first, [(name, number) for name, number in missing])
        endpoint._sealed = sealed
        endpoint._permits = {name: number for name, number in permits}  # noqa: C416
    if isinstance(endpoint, Csps):
        _restore_csps(endpoint, *rest)
    elif isinstance(endpoint, Sps):
        _restore_sps(endpoint, *rest)
    elif isinstance(endpoint, Adaptive):
        restore_adaptive(endpoint, saved.payloads, *rest)


def _restore_peer(endpoint: FifoEndpoint[Any], record: list[Any], payloads: list[Any]) -> None:
    name, mids, indexes, taken, acked, delivered, early, *more = record
    peer = endpoint._peer(name)
    peer.mids = list(mids)
    peer.payloads = [payloads[k] for k in indexes]
    peer.taken, peer.acked, peer.delivered = taken, acked, delivered
    for pid, mid, index, *flag in early:
        message: Packet = endpoint._message(mid, pid, payloads[index], bool(flag and flag[0]))
        peer.early[pid] = message
    if isinstance(peer, HybridPeer):
        peer.flagged, peer.granted, peer.permit = more[:3]
    if isinstance(peer, SpsPeer):
        peer.released = more[3]
    if isinstance(peer, AdaptivePeer):
        restore_adaptive_peer(peer, more)


def _window(first: int, elements: list[Any]) -> SlidingArray[Any]:
    window: SlidingArray[Any] = SlidingArray(first)
    for element in elements:
        window.add(element)
    return window


def _restore_csps(
    endpoint: Csps, oldest: int, unacked: list[Any], lacking: list[Any], held: list[Any]
) -> None:
    peers = endpoint._peers

    def again(names: list[str]) -> list[HybridPeer]:
        return [peers[name] if name else GONE for name in names]

    def ends(numbers: list[Any]) -> dict[HybridPeer, int]:
        return {peers[name]: mid for name, mid in numbers}

    endpoint._oldest = oldest
    endpoint._lacking = ends(lacking)
    endpoint._unacked = deque(
        [
            (peers[each] if each else GONE)
            if isinstance(each, str)
            else Departure(each[0], again(each[1]), each[2], ends(each[3]))
            for each in unacked
        ]
    )
    endpoint._held = deque(
        [BufferedRun(per, mid, again(names), multicast) for per, mid, names, multicast in held]
    )
    endpoint._tail, endpoint._per, endpoint._entered = endpoint._out, -1, 0


def _restore_sps(
    endpoint: Sps,
    u: list[Any],
    runs: list[Any],
    first: int,
    indexes: list[int],
    lacks: str | None,
    m2: int,
) -> None:
    peers = endpoint._peers
    gone: Any = GONE
    endpoint._front, endpoint._first, endpoint._u2, endpoint._u2_in = indexes
    endpoint._m2 = m2
    endpoint._lacks = peers[lacks] if lacks else None
    start = endpoint._front
    for each in u:
        if isinstance(each, str):
            endpoint._u[start] = peers[each] if each else gone
            start += 1
        else:
            endpoint._u[start] = run = _run_again(peers, each)
            endpoint._kept += 1
            start = run.end
    endpoint._next = endpoint._start = start
    endpoint._runs = SlidingArray(first)
    for each in runs:
        same = endpoint._u.get(each[0])  # or nobody is left in it
        endpoint._runs.add(same if isinstance(same, SpsRun) else _run_again(peers, each))
    endpoint._held = sum(len(run.unsent()) for run in endpoint._runs)


def _run_again(peers: dict[str, SpsPeer], saved: list[Any]) -> SpsRun:
    mid, names, multicast, ends, per, held, left, lacking = saved
    receivers = [peers[name] if name else GONE for name in names]
    run = SpsRun(mid, receivers, multicast, {peers[name]: end for name, end in ends}, per)
    run.held, run.whole = held, GONE not in receivers
    run.left = peers.get(left) if left else None
    if lacking is not None:
        run.lacking = {peers[name]: run.ends[peers[name]] for name in lacking}
    return run


# -- what a driver tells the others ------------------------------------------------------


def standing(endpoint: FifoEndpoint[Any], name: str) -> Standing:
    """Return the watermarks between an endpoint and another process, all 0 for a stranger."""
    peer = endpoint._peers.get(name)
    if peer is None:
        return Standing(0, 0, 0, 0, 0, 0, [])
    arrived = newest_from(endpoint, name) if isinstance(endpoint, Adaptive) else 0
    granted = permit = flagged = 0
    if isinstance(peer, HybridPeer) and isinstance(endpoint, HybridEndpoint):
        granted, permit = peer.granted, peer.permit
        flagged = endpoint._waits().get(name, 0)
    unacked = zip(peer.mids[peer.head :], peer.payloads[peer.head :], strict=True)
    return Standing(
        peer.acked,
        peer.delivered,
        max(arrived, peer.delivered),
        granted,
        permit,
        flagged,
        list(unacked),
    )


def last_number(endpoint: Endpoint) -> int:
    """Return the number of the last message that an endpoint has sent."""
    return endpoint._mid


def unacknowledged(endpoint: FifoEndpoint[Any], name: str) -> list[MessageRun]:
    """Return the messages to a process that were taken and not acknowledged, with their sizes.

    A driver that has lost what it did with them sends them again.
    """
    peer = endpoint._peers.get(name)
    if peer is None:
        return []
    if isinstance(endpoint, Adaptive):
        return endpoint.in_flight(name)
    flagged = endpoint._unflagged(peer, peer.head, peer.taken)
    runs: list[MessageRun] = []
    for start, end, per in ((peer.head, flagged, False), (flagged, peer.taken, True)):
        if start < end:
            payloads = peer.payloads[start:end]
            size = sum(map(len, payloads))
            runs.append(MessageRun(peer.mids[start:end], peer.before(start), payloads, per, size))
    return runs
