"""Incarnations that have one name: `check.namesakes` and `check.collisions` on Spark."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from ..check import BadRow, collisions
from ..check.namesakes import Namesakes, told_apart
from ..check.report import RECEIVED_AGAIN
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


def with_namesakes(
    outcomes: pa.Table, read: Callable[[Sequence[str]], DataFrame], limit: int
) -> pa.Table:
    """Return outcomes in which messages of several incarnations are no duplicates.

    Args:
        outcomes: What was found, as `OUTCOME`.
        read: Returns some columns of the rows; not called if no run has duplicates.
        limit: How many bad rows to describe for each run.
    """
    if not pc.any(pc.greater(outcomes["duplicates"], 0)).as_py():
        return outcomes
    found = _namesakes(read, limit)
    rows = []
    for row in outcomes.to_pylist() if found else ():
        if row["run"] in found and row["duplicates"]:
            one = found[row["run"]]
            report = report_of_row(row)
            told_apart(report, one._replace(duplicates=min(one.messages, report.duplicates)))
            del report.bad_rows[limit:]
            row = row_of(row["run"], row["position"], report)
        rows.append(row)
    return pa.Table.from_pylist(rows, OUTCOME) if found else outcomes


def _namesakes(read: Callable[[Sequence[str]], DataFrame], limit: int) -> dict[str, Namesakes]:
    """Return the messages that came from several incarnations, by run, by the rule for all runs."""
    from pyspark.sql import functions as f

    start = f.col("kind") == START
    if read(["kind"]).where(start).isEmpty():
        return {}
    key = ["run", "process", "origin", "mid"]
    rows = read([*key, "seq", "kind"])
    nodes = rows.where(start).select("run", "process").distinct()
    received, delivered = (
        f.when(f.col("kind") == kind, f.col("seq")) for kind in (RECEIVE, DELIVER)
    )
    messages = rows.where(f.col("kind").isin(RECEIVE, DELIVER)).dropna(subset=["origin", "mid"])
    counted = messages.groupBy(*key).agg(
        f.max(received).alias("seq"),
        f.least(f.size(f.collect_set(received)), f.size(f.collect_set(delivered))).alias("times"),
    )
    several = counted.where("times > 1").join(nodes, ["run", "process"], "left_semi")
    described = f.sort_array(f.collect_list(f.struct("process", "origin", "mid", "seq")))
    by_run = several.groupBy("run").agg(
        f.sum(f.col("times") - 1).alias("messages"), f.slice(described, 1, limit).alias("rows")
    )
    return {
        row.run: Namesakes(
            row.messages,
            0,
            [
                BadRow(row.run, one.process, one.seq, one.origin, one.mid, RECEIVED_AGAIN)
                for one in row.rows
            ],
        )
        for row in by_run.collect()
    }
