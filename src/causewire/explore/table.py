"""All rows of a trace in memory, as columns of numbers, run by run.

The explorer answers questions about any part of a run at any time, so it keeps
every row: about 50 bytes each. Names become numbers once, while reading.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from ..report.names import natural
from ..trace import DELIVER, RECEIVE, RELEASE, SEND, Trace, TraceError
from .arrays import Longs, Words

__all__ = ["DELIVERED", "KINDS", "NO_TIME", "RECEIVED", "RELEASED", "SENT", "Rows", "Table", "read"]

SENT, RELEASED, RECEIVED, DELIVERED = 0, 1, 2, 3
"""Numbers of the kinds that the explorer knows best; others follow as they come."""

KINDS = (SEND, RELEASE, RECEIVE, DELIVER)

NO_TIME = np.iinfo(np.int64).min
"""A row without a time, or without a Lamport time."""

_COLUMNS = ("run", "process", "seq", "time_ns", "lamport", "kind", "origin", "mid", "peers")


@dataclass(frozen=True, slots=True)
class Rows:
    """Rows as columns; `peers[first[t]:first[t + 1]]` are the peers of row t.

    `origin` and `mid` are -1 in rows that are about no message.
    """

    kind: Words
    process: Words
    seq: Longs
    time: Longs
    lamport: Longs
    origin: Words
    mid: Longs
    first: Longs
    peers: Words

    def __len__(self) -> int:
        return len(self.kind)

    def take(self, rows: Longs) -> Rows:
        """Return these rows, in this order."""
        count = np.diff(self.first)[rows]
        first = np.zeros(len(rows) + 1, np.int64)
        np.cumsum(count, out=first[1:])
        places = np.repeat(self.first[:-1][rows] - first[:-1], count) + np.arange(first[-1])
        return Rows(
            self.kind[rows],
            self.process[rows],
            self.seq[rows],
            self.time[rows],
            self.lamport[rows],
            self.origin[rows],
            self.mid[rows],
            first,
            self.peers[places],
        )


class Table:
    """A whole trace: the rows of each run, with names as numbers."""

    def __init__(self, name: str, rows: Rows, run: Words, runs: list[str], names: list[str]):
        self.name = name
        self.names = names
        """Names of processes, by their number in `all_rows`."""
        self.kinds: list[str] = []
        order = np.argsort(run, kind="stable") if len(runs) > 1 else None
        self._rows = rows if order is None else rows.take(order)
        counts = np.bincount(run, minlength=len(runs))
        self._bounds = np.concatenate([[0], np.cumsum(counts)])
        sends = np.bincount(run[rows.kind == SENT], minlength=len(runs))
        rank = sorted(range(len(runs)), key=lambda k: (sends[k] == 0, natural(runs[k])))
        self._numbers = {runs[k]: k for k in rank}
        self.runs = [runs[k] for k in rank]
        """Names of the runs, in natural order; those in which nothing is sent come last."""

    @property
    def total(self) -> int:
        """Number of rows in all runs."""
        return len(self._rows)

    def rows_in(self, run: str) -> int:
        """Return the number of rows of a run."""
        k = self._numbers[run]
        return int(self._bounds[k + 1] - self._bounds[k])

    def run(self, run: str) -> tuple[Rows, list[str]]:
        """Return the rows of a run as they are stored, and its processes by number."""
        k = self._numbers[run]
        rows = self._rows
        if len(self._numbers) > 1:
            rows = rows.take(np.arange(self._bounds[k], self._bounds[k + 1]))
        mentioned = np.zeros(len(self.names) + 1, np.bool_)
        for column in (rows.process, rows.origin, rows.peers):
            mentioned[column] = True
        used = np.flatnonzero(mentioned[:-1])  # the last entry is for -1
        ranked = sorted(used.tolist(), key=lambda n: natural(self.names[n]))
        number = np.full(len(self.names) + 1, -1, np.int32)  # the last entry is for -1
        number[ranked] = np.arange(len(ranked))
        local = Rows(
            rows.kind,
            number[rows.process],
            rows.seq,
            rows.time,
            rows.lamport,
            number[rows.origin],
            rows.mid,
            rows.first,
            number[rows.peers],
        )
        return local, [self.names[n] for n in ranked]


class _Numbers:
    """Gives names numbers in the order in which they first appear."""

    def __init__(self, names: Sequence[str] = ()) -> None:
        self.known = {name: k for k, name in enumerate(names)}

    def of(self, column: Any) -> Words:
        """Return the number of each value of a dictionary-encoded column; -1 for null."""
        known = self.known
        codes = [known.setdefault(name, len(known)) for name in column.dictionary.to_pylist()]
        table = np.array([*codes, -1], np.int32)  # index -1 is the last entry
        indices = column.indices
        if indices.null_count:
            indices = indices.fill_null(-1)
        result: Words = table[indices.to_numpy(zero_copy_only=False)]
        return result


def _longs(columns: pa.RecordBatch, name: str, missing: int) -> Longs:
    if name not in columns.schema.names:
        return np.full(columns.num_rows, missing, np.int64)
    column = columns[name]
    if column.null_count:
        column = column.fill_null(missing)
    return np.asarray(column.to_numpy(zero_copy_only=False), np.int64)


def read(trace: Trace, progress: Callable[[int], None] | None = None) -> Table:
    """Read a whole trace.

    Args:
        trace: What to read.
        progress: Called with the number of rows read so far.

    Raises:
        TraceError: The trace cannot be read, or has no rows.
    """
    runs, names, kinds = _Numbers(), _Numbers(), _Numbers(KINDS)
    parts: list[tuple[Any, ...]] = []
    total = 0
    for batch in trace.batches(_COLUMNS):
        c = batch.columns
        total += c.num_rows
        lengths = c["peers"].value_lengths().fill_null(0).to_numpy(zero_copy_only=False)
        parts.append(
            (
                runs.of(c["run"]),
                kinds.of(c["kind"]),
                names.of(c["process"]),
                _longs(c, "seq", 0),
                _longs(c, "time_ns", NO_TIME),
                _longs(c, "lamport", NO_TIME),
                names.of(c["origin"]),
                _longs(c, "mid", -1),
                lengths.astype(np.int64),
                names.of(c["peers"].flatten()),
            )
        )
        if progress is not None:
            progress(total)
    if not total:
        raise TraceError(trace.name, None, "the trace is empty")
    run, kind, process, seq, time, lamport, origin, mid, lengths, peers = (
        np.concatenate(column) for column in zip(*parts, strict=True)
    )
    first = np.concatenate([[0], np.cumsum(lengths)])
    rows = Rows(kind, process, seq, time, lamport, origin, mid, first, peers)
    table = Table(trace.name, rows, run, list(runs.known), list(names.known))
    table.kinds = list(kinds.known)
    return table
