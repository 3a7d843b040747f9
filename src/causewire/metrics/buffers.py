"""Buffers and messages in transit: how full they were at most, and when they changed.

A copy is in the send buffer from its send to its release, in transit from its release to
its arrival, and in the receive buffer from its arrival to its delivery. What happens in one
instant counts together: a copy that is sent and released at once was never in the buffer.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from .._compiled import Bytes, Longs, Words, compiled
from .rows import NOTHING, RECEIVED, RELEASED, SENT
from .schemas import OCCUPANCY
from .steps import Steps

_TRANSIT, _PAIR, _SENDING, _RECEIVING = range(4)

__all__ = ["Peaks", "Times", "find_peaks", "occupancy"]


class Times(NamedTuple):
    """When each copy was sent, released, received and delivered, or `NOTHING`."""

    sent: Longs
    released: Longs
    received: Longs
    delivered: Longs


class Peaks(NamedTuple):
    """How full buffers were at most, for each process."""

    in_transit: Longs
    in_transit_per_pair: Longs
    send_buffer: Longs
    receive_buffer: Longs


def find_peaks(steps: Steps, times: Times) -> Peaks:
    """Return how full buffers were at most.

    Rows are looked at in the order of their times; that of most traces is the order in
    which they are stored, which costs next to nothing to find.
    """
    rows = steps.rows
    processes = len(rows.processes)
    kind, time = rows.kind, rows.time
    changes = np.flatnonzero((kind >= SENT) & (kind <= RECEIVED) & (time != NOTHING))
    chosen = time[changes]
    if not (chosen[1:] >= chosen[:-1]).all():
        changes = changes[np.argsort(chosen, kind="stable")]
    origin = rows.process[steps.send[steps.message]]
    pair, pairs = _pairs(origin, steps.destination)
    most = np.zeros((4, max(processes, len(pairs))), np.int64)
    _peaks(
        *(changes, kind, time, steps.copy, steps.begin, origin, steps.destination),
        *(steps.release, pair, times.sent, times.released, times.received, most),
    )
    per_pair = np.zeros(processes, np.int64)
    np.maximum.at(per_pair, (pairs >> 32).astype(np.int64), most[1, : len(pairs)])
    return Peaks(most[0, :processes], per_pair, most[2, :processes], most[3, :processes])


@compiled(inline=True)
def _place(origin: Any, destination: Any, size: int) -> Any:
    return ((origin * 31 + destination) * 0x9E3779B1 >> 8) & (size - 1)


@compiled
def _pairs(origin: Words, destination: Words) -> tuple[Words, Longs]:
    """Number the pairs of processes that have copies; origin << 32 | destination names one."""
    size = 16
    heads = np.full(size, -1, np.int32)
    names = np.empty(size, np.int64)
    many = 0
    pair = np.empty(origin.shape[0], np.int32)
    for k in range(origin.shape[0]):
        if 2 * many >= size:  # grow, and enter everything again
            size *= 4
            heads = np.full(size, -1, np.int32)
            larger = np.empty(size, np.int64)
            larger[:many] = names[:many]
            names = larger
            for q in range(many):
                at = _place(names[q] >> 32, names[q] & 0xFFFFFFFF, size)
                while heads[at] >= 0:
                    at = (at + 1) & (size - 1)
                heads[at] = q
        name = np.int64(origin[k]) << 32 | np.int64(destination[k])
        at = _place(name >> 32, name & 0xFFFFFFFF, size)
        while heads[at] >= 0 and names[heads[at]] != name:
            at = (at + 1) & (size - 1)
        if heads[at] < 0:
            heads[at] = many
            names[many] = name
            many += 1
        pair[k] = heads[at]
    return pair, names[:many]


@compiled(inline=True)
def _change(
    level: Longs, since: Longs, most: Longs, what: int, who: int, now: int, by: int
) -> None:
    """Change a level; the one before counts if it lasted."""
    if since[what, who] != now:
        since[what, who] = now
        most[what, who] = max(most[what, who], level[what, who])
    level[what, who] += by


@compiled
def _peaks(
    changes: Longs,
    kind: Bytes,
    time: Longs,
    copy: Words,
    begin: Longs,
    origin: Words,
    destination: Words,
    release: Longs,
    pair: Words,
    sent: Longs,
    released: Longs,
    received: Longs,
    most: Longs,
) -> None:
    """Go through the steps in the order of their times, and keep the highest levels."""
    level = np.zeros(most.shape, np.int64)
    since = np.full(most.shape, NOTHING, np.int64)
    for t in changes:
        now = time[t]
        what = kind[t]
        first, last = np.int64(copy[t]), np.int64(copy[t]) + 1
        if first == -1:
            continue
        if first < 0:  # all copies of a message, or some of them
            m = -2 - first
            first, last = begin[m], begin[m + 1]
        for c in range(first, last):
            if origin[c] == destination[c]:
                continue
            if what == SENT:
                _change(level, since, most, _SENDING, origin[c], now, 1)
            elif what == RELEASED:
                if release[c] == t:
                    if sent[c] != NOTHING:
                        _change(level, since, most, _SENDING, origin[c], now, -1)
                    _change(level, since, most, _TRANSIT, origin[c], now, 1)
                    _change(level, since, most, _PAIR, pair[c], now, 1)
            elif what == RECEIVED:
                if released[c] != NOTHING:
                    _change(level, since, most, _TRANSIT, origin[c], now, -1)
                    _change(level, since, most, _PAIR, pair[c], now, -1)
                _change(level, since, most, _RECEIVING, destination[c], now, 1)
            elif received[c] != NOTHING:
                _change(level, since, most, _RECEIVING, destination[c], now, -1)
    for what in range(most.shape[0]):
        for who in range(most.shape[1]):
            most[what, who] = max(most[what, who], level[what, who])


# -- over time ----------------------------------------------------------------------------


def occupancy(steps: Steps, times: Times) -> pa.Table:
    """Return the levels of all buffers, whenever they change: `OCCUPANCY`."""
    rows = steps.rows
    origin = rows.process[steps.send[steps.message]]
    to = steps.destination
    nobody = np.full(len(to), -1, np.int32)
    spans = (
        (0, origin, nobody, times.sent, times.released),
        (1, origin, nobody, times.released, times.received),
        (1, origin, to, times.released, times.received),
        (2, to, nobody, times.received, times.delivered),
    )
    parts: list[tuple[Any, ...]] = []
    for buffer, place, other, enters, leaves in spans:
        entered = (origin != to) & (enters != NOTHING)
        left = entered & (leaves != NOTHING)
        for chosen, times_of, sign in ((entered, enters, 1), (left, leaves, -1)):
            size = int(chosen.sum())
            same = (np.full(size, buffer), np.full(size, sign, np.int64))
            parts.append((place[chosen], other[chosen], times_of[chosen], *same))
    columns: list[Any] = [np.concatenate(column) for column in zip(*parts, strict=True)]
    who, peer, time, what, change = columns
    order = np.lexsort((time, what, peer, who))
    key = [column[order] for column in (who, peer, what)]
    time, change = time[order], change[order]
    fresh = np.ones(len(order), np.bool_)
    fresh[1:] = np.logical_or.reduce([column[1:] != column[:-1] for column in (*key, time)])
    starts = np.flatnonzero(fresh)
    total = np.add.reduceat(change, starts) if len(starts) else change
    level = np.cumsum(total)
    key, time = [column[starts] for column in key], time[starts]
    fresh = np.ones(len(starts), np.bool_)
    fresh[1:] = np.logical_or.reduce([column[1:] != column[:-1] for column in key])
    begins = np.flatnonzero(fresh)
    base = np.repeat(level[begins] - total[begins], np.diff([*begins, len(level)]))
    kept = total != 0
    names = pa.array(rows.processes, pa.string())
    who, peer, what = (column[kept] for column in key)
    buffers = pa.array(["send_buffer", "in_transit", "receive_buffer"], pa.string())
    return pa.table(
        [
            pa.array([rows.run] * len(who), pa.string()),
            names.take(pa.array(who)),
            names.take(pa.array(peer, mask=peer < 0)),
            buffers.take(pa.array(what)),
            pa.array(time[kept]),
            pa.array((level - base)[kept]),
        ],
        schema=OCCUPANCY,
    )
