"""Control packets: the departures and arrivals of acks, permits and others, joined.

A trace does not number packets. Of those of the same sort, about the same
message and between the same two processes, the first to arrive is joined with
the first that left, and so on.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .arrays import Longs, Words
from .run import RunData

__all__ = ["SORTS", "Packets", "packets_of"]

SORTS = ("ack", "permit", "control")


@dataclass(frozen=True, slots=True)
class Packets:
    """Packets in the order of their arrivals: the rows of both ends, and the sort by number."""

    departure: Longs
    arrival: Longs
    sort: Words


def packets_of(run: RunData) -> Packets:
    """Return all control packets of a run that arrived."""
    rows = run.rows
    leaves = np.full(len(run.kinds), -1, np.int64)
    comes = np.full(len(run.kinds), -1, np.int64)
    for number, kind in enumerate(run.kinds):
        if kind in SORTS:
            leaves[number] = SORTS.index(kind)
        elif kind.removesuffix("_receive") in SORTS:
            comes[number] = SORTS.index(kind.removesuffix("_receive"))
    some = np.diff(rows.first) == 1  # a control packet has one other end
    left = np.flatnonzero((leaves[rows.kind] >= 0) & some)
    came = np.flatnonzero((comes[rows.kind] >= 0) & some)
    row = np.concatenate([left, came])
    if not len(left) or not len(came):
        none = np.array([], np.int64)
        return Packets(none, none, none.astype(np.int32))
    peer = rows.peers[rows.first[row]]
    arrived = np.arange(len(row)) >= len(left)
    sort = np.where(arrived, comes[rows.kind[row]], leaves[rows.kind[row]])
    source = np.where(arrived, peer, rows.process[row])
    target = np.where(arrived, rows.process[row], peer)
    columns = (row, sort, rows.mid[row], rows.origin[row], target, source)
    order = np.lexsort(columns)
    same = np.ones(len(order), np.bool_)
    for column in columns[1:]:
        same[1:] &= column[order[1:]] == column[order[:-1]]
    group = np.cumsum(~same)
    came_last = arrived[order]
    leaving, coming = order[~came_last], order[came_last]
    groups, wanted = group[~came_last], group[came_last]
    rank = np.arange(len(wanted)) - np.searchsorted(wanted, wanted)
    place = np.searchsorted(groups, wanted) + rank
    fits = place < np.searchsorted(groups, wanted, "right")
    arrival, departure = row[coming[fits]], row[leaving[place[fits]]]
    ranked = np.argsort(arrival)
    return Packets(departure[ranked], arrival[ranked], sort[coming[fits]][ranked].astype(np.int32))
