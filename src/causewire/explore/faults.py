"""Times during which a fault was in force at a process, as far as the trace tells.

A trace has a row when a fault begins or ends at a process. A fault of the
network that ends (`heal`, `release`, `thaw`) ends all faults of its sort there.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from .run import Axis, RunData

__all__ = ["WORDS", "Span", "fault_spans"]

MOST = 2000
"""Spans of a run, at most."""

_PREFIX = "fault_"

_ENDS = {
    "heal": ("partition", "crash", "slow"),
    "release": ("hold",),
    "thaw": ("freeze",),
}

WORDS = {
    "freeze": "was frozen",
    "hold": "did not get its packets, which the network held back",
    "partition": "was cut off by a partition",
    "crash": "lost packets, because its links failed",
    "slow": "had slow links",
}


class Span(NamedTuple):
    """A fault in force at a process, from one row to another; the last is -1 if it never ended."""

    process: int
    kind: str
    begin: int
    end: int
    low: float
    high: float


def fault_spans(run: RunData, axis: Axis) -> list[Span]:
    """Return the faults of a run, by process and time."""
    numbers = [k for k, kind in enumerate(run.kinds) if kind.startswith(_PREFIX)]
    if not numbers:
        return []
    rows = np.flatnonzero(np.isin(run.rows.kind, numbers))[:MOST].tolist()
    spans: list[Span] = []
    open_: dict[tuple[int, str], int] = {}

    def close(process: int, kind: str, end: int) -> None:
        begin = open_.pop((process, kind))
        high = float(axis.x[end]) if end >= 0 else axis.end
        spans.append(Span(process, kind, begin, end, float(axis.x[begin]), high))

    for row in rows:
        process = int(run.rows.process[row])
        kind = run.kinds[int(run.rows.kind[row])].removeprefix(_PREFIX)
        if kind in _ENDS:
            for ended in _ENDS[kind]:
                if (process, ended) in open_:
                    close(process, ended, row)
        else:
            open_.setdefault((process, kind), row)
    for process, kind in list(open_):
        close(process, kind, -1)
    return sorted(spans)
