"""One run, ready to be drawn and asked about."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from ..report.names import shown
from .arrays import Floats, Longs, Words
from .copies import Copies, join
from .order import by_process, causal_order
from .table import NO_TIME, SENT, Rows, Table

__all__ = ["AXES", "Axis", "RunData"]

AXES = ("time", "order")
"""What the horizontal axis can be: clock time, or one step for each row."""


class Axis:
    """Where rows and copies lie along one axis, and how to find those in a window."""

    BLOCK = 4096

    def __init__(self, name: str, x: Floats, copies: Copies) -> None:
        self.name = name
        self.x = x
        """Of each row: where it lies; from 0 up."""
        rising = bool((x[1:] >= x[:-1]).all())
        self.rows: Longs = np.arange(len(x)) if rising else np.argsort(x, kind="stable")
        self.sorted: Floats = x if rising else x[self.rows]
        self.end = float(self.sorted[-1]) if len(x) else 0.0
        last = np.max([copies.send, copies.release, copies.receive, copies.deliver], axis=0)
        self.begins: Floats = x[copies.send]
        self.ends: Floats = np.maximum(self.begins, x[last])
        self.ends[copies.deliver < 0] = self.end
        rising = bool((self.begins[1:] >= self.begins[:-1]).all())
        count = np.arange(len(copies))
        self.copies: Longs = count if rising else np.argsort(self.begins, kind="stable")
        self._begins: Floats = self.begins[self.copies]
        starts = np.arange(0, len(copies), self.BLOCK)
        ends = self.ends[self.copies]
        self._latest: Floats = np.maximum.reduceat(ends, starts) if len(ends) else ends

    def rows_between(self, low: float, high: float) -> Longs:
        """Return the rows in a window, from left to right."""
        a, b = np.searchsorted(self.sorted, [low, high], "left")
        b = int(np.searchsorted(self.sorted, high, "right"))
        return self.rows[a:b]

    def copies_between(self, low: float, high: float) -> Longs:
        """Return the copies that are under way at some time of a window."""
        upto = int(np.searchsorted(self._begins, high, "right"))
        since = int(np.searchsorted(self._begins, low, "left"))
        parts = []
        blocks = -(-since // self.BLOCK)
        for block in np.flatnonzero(self._latest[:blocks] >= low).tolist():
            part = self.copies[block * self.BLOCK : min((block + 1) * self.BLOCK, since)]
            parts.append(part[self.ends[part] >= low])
        parts.append(self.copies[since:upto])
        return np.concatenate(parts)


class RunData:
    """The rows of one run in a causal order, its copies, and where everything lies."""

    def __init__(self, table: Table, name: str) -> None:
        self.name = name
        rows, self.processes = table.run(name)
        self.kinds = table.kinds
        copies = join(rows, len(self.processes))
        order = causal_order(rows, copies)
        if not (order == np.arange(len(order))).all():
            rows = rows.take(order)
            copies = join(rows, len(self.processes))
        self.rows: Rows = rows
        self.copies: Copies = copies
        self.shown = [shown(process) for process in self.processes]
        known = bool((rows.time != NO_TIME).all()) and len(rows) > 0
        self.start = int(rows.time.min()) if known else 0
        self.timed = known and int(rows.time.max()) > self.start
        """Whether every row has a time, and not all the same."""

    def __len__(self) -> int:
        return len(self.rows)

    @cached_property
    def place(self) -> Words:
        """Of each row: its place among the rows of its process, from 0."""
        by_process = self.by_process
        place = np.empty(len(self.rows), np.int32)
        place[by_process] = np.arange(len(self.rows)) - np.repeat(
            self.bounds[:-1], np.diff(self.bounds)
        )
        return place

    @cached_property
    def by_process(self) -> Longs:
        """Rows by process, and by `seq` within a process."""
        return by_process(self.rows)

    @cached_property
    def bounds(self) -> Longs:
        """Where the rows of each process begin in `by_process`."""
        counts = np.bincount(self.rows.process, minlength=len(self.processes))
        result: Longs = np.concatenate([[0], np.cumsum(counts)])
        return result

    def row_at(self, process: int, place: int) -> int:
        """Return the row at a place of a process."""
        return int(self.by_process[self.bounds[process] + place])

    @cached_property
    def _time(self) -> Axis:
        return Axis("time", (self.rows.time - self.start).astype(np.float64), self.copies)

    @cached_property
    def _order(self) -> Axis:
        return Axis("order", np.arange(len(self.rows), dtype=np.float64), self.copies)

    def axis(self, name: str | None = None) -> Axis:
        """Return an axis: the one asked for if the run has it."""
        return self._time if self.timed and name != "order" else self._order

    def copies_of(self, origin: int, mid: int) -> Longs:
        """Return the copies of a message, if the run sends it."""
        rows = self.by_process[self.bounds[origin] : self.bounds[origin + 1]]
        sends = rows[(self.rows.mid[rows] == mid) & (self.rows.kind[rows] == SENT)]
        first = self.copies.of_row[sends]
        if not (first >= 0).any():
            return np.array([], np.int64)
        send = self.copies.send[first[first >= 0][0]]
        low, high = np.searchsorted(self.copies.send, [send, send + 1])
        return np.arange(low, high)

    def message(self, row: int) -> str:
        """Return the name of the message that a row is about."""
        return f"{self.shown[int(self.rows.origin[row])]}:{int(self.rows.mid[row])}"
