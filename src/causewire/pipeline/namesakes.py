"""Incarnations that have one name: `check.namesakes` and `check.collisions` on Spark."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from ..check import collisions
from ..check.namesakes import Namesake, told_apart
from ..trace import DELIVER, RECEIVE, Event, open_trace
from ..trace.schema import START, SameSeqError
from .outcomes import OUTCOME, report_of_row, row_of
from .tasks import ask

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["rows_with_seq", "with_namesakes"]


class _Wanted(NamedTuple):
    """Which rows of a file have this `seq`?"""

    file: str
    run: str
    process: str
    seq: int


def rows_with_seq(
    spark: SparkSession, files: Sequence[str], error: SameSeqError
) -> list[tuple[str, int, Event]]:
    """Return the rows that an error is about: file, row there, and event."""
    works = [_Wanted(file, error.run, error.process, error.seq) for file in files]
    what = f"check: rows with seq {error.seq} of process {error.process}"
    return [row for rows in ask(spark, works, _rows_of, what) for row in rows]


def _rows_of(wanted: _Wanted) -> list[tuple[str, int, Event]]:
    trace = open_trace(wanted.file)
    return list(collisions.rows_with_seq(trace, wanted.run, wanted.process, wanted.seq))


def with_namesakes(outcomes: pa.Table, events: Callable[[], DataFrame], limit: int) -> pa.Table:
    """Return outcomes in which messages of several incarnations are no duplicates.

    Args:
        outcomes: What was found, as `OUTCOME`.
        events: Returns the rows; not called if no run has duplicates.
        limit: How many bad rows to describe for each run.
    """
    suspects = outcomes.filter(pc.greater(outcomes["duplicates"], 0))["run"].to_pylist()
    if not suspects:
        return outcomes
    found = _namesakes(events(), suspects)
    if not found:
        return outcomes
    rows = []
    for row in outcomes.to_pylist():
        if mine := [one for one in found if one.run == row["run"]]:
            report = told_apart(report_of_row(row), mine, limit)
            row = row_of(row["run"], row["position"], report)
        rows.append(row)
    return pa.Table.from_pylist(rows, OUTCOME)


def _namesakes(events: DataFrame, runs: list[str]) -> list[Namesake]:
    from pyspark.sql import functions as f

    key = ["run", "process", "origin", "mid"]
    mine = events.where(f.col("run").isin(runs))
    nodes = mine.where(f.col("kind") == START).select("run", "process").distinct()
    rows = mine.where(f.col("kind").isin(RECEIVE, DELIVER)).join(nodes, ["run", "process"])
    received, delivered = (
        f.when(f.col("kind") == kind, f.col("seq")) for kind in (RECEIVE, DELIVER)
    )
    counted = rows.groupBy(*key).agg(
        f.max(received).alias("seq"),
        f.count_distinct(received).alias("received"),
        f.count_distinct(delivered).alias("delivered"),
    )
    return sorted(Namesake(*row) for row in counted.where("received > 1").collect())
