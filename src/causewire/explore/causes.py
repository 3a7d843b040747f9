"""What each wait of a run ended with, and so what processes spent their waiting on.

The cause of a wait is the last thing that arrived at the process before the wait
was over, if it arrived at the same moment: an ack, a permit, another control
packet, or a message (a predecessor).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from .arrays import Floats, Longs, Words
from .run import RunData
from .table import RECEIVED
from .window import View, Window

__all__ = ["REASONS", "Causes", "causes_of", "waiting"]

REASONS = ("a permit", "an ack", "another control packet", "a message", "something unknown")
"""What a message can have waited for, by number."""

_KINDS = {"permit_receive": 0, "ack_receive": 1, "control_receive": 2}
_UNKNOWN = len(REASONS) - 1
_COLUMNS = 120


class Causes(NamedTuple):
    """Of each copy: the rows that ended its waits, or -1; and the numbers of the reasons."""

    sender: Longs
    receiver: Longs
    sender_reason: Words
    receiver_reason: Words


def causes_of(run: RunData) -> Causes:
    """Return what ended the waits of all copies."""
    reason = np.full(len(run.kinds), -1, np.int32)
    for number, kind in enumerate(run.kinds):
        reason[number] = _KINDS.get(kind, -1)
    reason[RECEIVED] = 3
    ranked = run.by_process
    of_row = reason[run.rows.kind]
    places = np.arange(len(ranked))
    arrived = np.where(of_row[ranked] >= 0, places, -1)
    last = np.maximum.accumulate(arrived)  # up to and including each row
    begins = np.repeat(run.bounds[:-1], np.diff(run.bounds))
    last = np.where(last >= begins, last, -1)
    before = np.full(len(ranked), -1, np.int64)
    before[1:] = np.where(begins[1:] == begins[:-1], last[:-1], -1)  # before each row
    cause = np.full(len(ranked), -1, np.int64)
    cause[ranked] = np.where(before >= 0, ranked[before], -1)
    c = run.copies
    found = []
    for begin, end in ((c.send, c.release), (c.receive, c.deliver)):
        row = np.where((begin >= 0) & (end >= 0), cause[end], -1)
        row = np.where(row > begin, row, -1)
        if run.timed:
            row = np.where(run.rows.time[row] == run.rows.time[end], row, -1)
        found.append(row)
    reasons = [np.where(row >= 0, of_row[row], _UNKNOWN).astype(np.int32) for row in found]
    return Causes(found[0], found[1], reasons[0], reasons[1])


def waiting(view: View, causes: Causes, window: Window) -> dict[str, Any]:
    """Return what messages in a window waited for: over time, and process by process.

    `columns` has, for each reason, how many messages were held on average in
    each column of the window; `processes` has the total time for each process
    and reason.
    """
    run, axis, parts = view.run, view.axis, view.parts
    copies = view.chosen(window)
    c = run.copies
    groups = (
        (c.source, axis.begins, parts.sender, causes.sender_reason, False),
        (c.target, axis.ends, parts.receiver, causes.receiver_reason, True),
    )
    processes = len(run.processes)
    totals = np.zeros((processes, len(REASONS), 2))
    columns = np.zeros((len(REASONS), _COLUMNS))
    for side, (process, edge, length, reason, backwards) in enumerate(groups):
        held = copies[np.nan_to_num(length[copies], nan=0.0) > 0]
        begin = edge[held] - (length[held] if backwards else 0)
        low = np.clip(begin, window.low, window.high)
        high = np.clip(begin + length[held], window.low, window.high)
        np.add.at(totals[:, :, side], (process[held], reason[held]), high - low)
        scale = _COLUMNS / (window.high - window.low)
        for number in range(len(REASONS)):
            chosen = reason[held] == number
            columns[number] += _spread(
                (low[chosen] - window.low) * scale, (high[chosen] - window.low) * scale
            )
    some = np.flatnonzero(totals.sum((1, 2)) > 0)
    if window.lanes is not None:
        some = some[np.isin(some, window.lanes)]
    return {
        "reasons": list(REASONS),
        "columns": columns.tolist(),
        "processes": [[int(p), totals[p].tolist()] for p in some.tolist()[:500]],
    }


def _spread(begin: Floats, end: Floats) -> Floats:
    """Return how many intervals cover each column on average, from their ends in columns."""
    edges = np.arange(_COLUMNS + 1)

    def area(points: Floats) -> Floats:
        """Return, for each edge, the sum of the lengths from the points up to it."""
        points = np.sort(points)
        upto = np.searchsorted(points, edges)
        sums = np.concatenate([[0.0], np.cumsum(points)])
        result: Floats = edges * upto - sums[upto]
        return result

    return np.diff(area(begin) - area(end))
