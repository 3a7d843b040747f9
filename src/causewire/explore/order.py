"""An order of all rows in which causes come before their effects.

The picture needs one for its order axis, and stepping through a run follows it.
A trace usually has one already: the order in which its rows are stored, that of
its Lamport times, or that of its clocks. Each is tried. If none of them fits
(files of several nodes whose clocks disagree, without Lamport times), an order
is made that follows the clocks as far as causality allows.
"""

from __future__ import annotations

import heapq

import numpy as np

from .arrays import Longs
from .copies import Copies
from .table import NO_TIME, Rows

__all__ = ["by_process", "causal_order", "place_of"]


def by_process(rows: Rows) -> Longs:
    """Return the rows by process, and by `seq` within a process."""
    few = int(rows.process.max(initial=0)) < 1 << 15
    process = rows.process.astype(np.int16) if few else rows.process  # short keys sort fastest
    order = np.argsort(process, kind="stable")
    seq, ranked = rows.seq[order], process[order]
    if ((np.diff(seq) < 0) & (ranked[1:] == ranked[:-1])).any():
        return np.lexsort((rows.seq, rows.process))
    return order


def place_of(order: Longs) -> Longs:
    """Return for each row its place in the order."""
    place = np.empty_like(order)
    place[order] = np.arange(len(order))
    return place


def causal_order(rows: Rows, copies: Copies) -> Longs:
    """Return the rows in an order that respects processes and messages.

    Rows of a run that contradicts itself (a cycle) come in some order.
    """
    stored = np.arange(len(rows))
    if _respects(stored, rows, copies):
        return stored
    for column in (rows.lamport, rows.time):
        if (column != NO_TIME).all():
            order = np.lexsort((rows.seq, rows.process, column))
            if _respects(order, rows, copies):
                return order
    return _made(rows, copies)


def _respects(order: Longs, rows: Rows, copies: Copies) -> bool:
    place = place_of(order)
    ranked = by_process(rows)
    process = rows.process[ranked]
    inside = process[1:] == process[:-1]
    steps = np.diff(place[ranked])
    if (steps[inside] < 0).any():
        return False
    for later in (copies.receive, copies.deliver):
        known = later >= 0
        if (place[later[known]] < place[copies.send[known]]).any():
            return False
    return True


def _made(rows: Rows, copies: Copies) -> Longs:
    """Return an order in which the earliest possible row always comes next."""
    ranked = by_process(rows)
    bounds = np.searchsorted(rows.process[ranked], np.arange(rows.process.max() + 2)).tolist()
    needs = np.full(len(rows), -1, np.int64)
    for later in (copies.receive, copies.deliver):
        known = later >= 0
        needs[later[known]] = copies.send[known]
    needed, sequence, time = needs.tolist(), ranked.tolist(), rows.time.tolist()
    at, ends = bounds[:-1], bounds[1:]
    done = bytearray(len(rows))
    waiting: dict[int, list[int]] = {}
    ready = [(time[sequence[a]], p) for p, a in enumerate(at) if a < ends[p]]
    heapq.heapify(ready)
    order: list[int] = []
    while ready:
        _, p = heapq.heappop(ready)
        row = sequence[at[p]]
        if needed[row] >= 0 and not done[needed[row]]:
            waiting.setdefault(needed[row], []).append(p)
            continue
        done[row] = 1
        order.append(row)
        at[p] += 1
        woken = waiting.pop(row, [])
        if at[p] < ends[p]:
            woken.append(p)
        for q in woken:
            heapq.heappush(ready, (time[sequence[at[q]]], q))
    order += [row for p, a in enumerate(at) for row in sequence[a : ends[p]]]  # rows of a cycle
    return np.array(order, np.int64)
