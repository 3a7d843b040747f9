"""Two starts of a process that have the same name in the same run.

A node that starts again with the same trace file has another name there (`alice/2`). With a
file for each start, the rows of both have the same names and numbers, and nothing in them says
which message belongs to which start. Such a trace is refused. What gives it away are

  - two rows of a process that have the same `seq` and say different things (`order.py`);
  - two rows of kind `start` with `seq` 0, as nodes write them, and different times, even if all
    other rows are alike, or have other numbers.
"""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pyarrow.compute as pc

from ..trace.reader import Trace, events_of
from ..trace.schema import START, Event, SameSeqError, TraceError
from .columns import COLUMNS

__all__ = ["Starts", "explained", "refuse_second_starts", "rows_with_seq"]


class Starts:
    """Looks for processes that start twice under one name."""

    def __init__(self) -> None:
        self._seen: set[tuple[str, str]] = set()

    def again(self, columns: pa.RecordBatch) -> bool:
        """Whether a process starts in these rows that has started before."""
        if START not in columns["kind"].dictionary.to_pylist():
            return False
        before = len(self._seen)
        rows = _starts(columns.select(["run", "process", "seq", "kind"]))
        self._seen.update((str(row["run"]), str(row["process"])) for row in rows)
        return len(self._seen) < before + len(rows)


def _starts(columns: pa.RecordBatch) -> list[dict[str, object]]:
    at_first = columns.filter(pc.equal(columns["seq"], 0))
    mine = at_first.filter(pc.equal(at_first["kind"].cast(pa.string()), START))
    rows: list[dict[str, object]] = mine.to_pylist()
    return rows


def refuse_second_starts(trace: Trace) -> None:
    """Raise an error if a process of a trace starts twice under one name.

    A row of a start that is there twice, as in a log with at-least-once delivery, is one start.

    Raises:
        SameSeqError: A process starts twice.
    """
    times: dict[tuple[str, str], object] = {}
    for batch in trace.batches(("run", "process", "seq", "time_ns", "kind")):
        for row in _starts(batch.columns):
            run, process, time = str(row["run"]), str(row["process"]), row.get("time_ns")
            if times.setdefault((run, process), time) != time:
                raise SameSeqError(trace.name, run, process, 0)


def rows_with_seq(
    trace: Trace, run: str, process: str, seq: int
) -> Iterator[tuple[str, int, Event]]:
    """Return the rows of a process with this `seq`: file, row there, and event."""
    for batch in trace.batches((*COLUMNS, "time_ns")):
        at = pc.indices_nonzero(pc.equal(batch.columns["seq"], seq))
        events = events_of(batch.columns.take(at))
        for place, event in zip(at.to_pylist(), events, strict=True):
            if (event.run, event.process) == (run, process):
                yield batch.file, batch.row + place, event


def explained(trace: Trace, error: SameSeqError) -> TraceError:
    """Return the error that names the files of both rows, and says what to do."""
    return error.told(rows_with_seq(trace, error.run, error.process, error.seq))
