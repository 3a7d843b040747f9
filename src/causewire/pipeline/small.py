"""Many runs, none of them long: whole runs to a task, which may be spread over files."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import accumulate
from math import ceil
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa

from ..check import OrderError, Sorted, scan
from ..check.assemble import describe
from ..check.columns import COLUMNS, ScatteredRunError
from ..check.lives import resolve_lives
from ..trace import Trace, TraceError, trace_of
from ..trace.schema import START
from .arrivals import arrived
from .limits import Limits
from .outcomes import ORDER, OUTCOME, failed, judged, out_of_order, row_of
from .pieces import Piece, PieceTrace, Runs
from .session import parallelism
from .tasks import ask, rows_to_batches, spark_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["Share", "check_rows", "check_runs", "check_small", "check_spread", "shares_of_runs"]


def check_small(
    spark: SparkSession,
    pieces: Sequence[Piece],
    *,
    skip: Collection[str] = (),
    examples: int = 10,
    limits: Limits | None = None,
) -> pa.Table:
    """The outcomes of the runs in these pieces, but those in `skip`, as `OUTCOME`."""
    works = [
        _Work(share, frozenset(skip), examples)
        for share in shares_of_runs(pieces, limits or Limits(), parallelism(spark))
    ]
    return pa.concat_tables(ask(spark, works, _check_share, "check: whole runs"))


class Share(NamedTuple):
    """The runs that begin in the pieces from `start` to `end`."""

    pieces: Sequence[Piece]
    start: int
    end: int


class _Work(NamedTuple):
    """A share to check; runs of the names in `skip` are looked at by others."""

    share: Share
    skip: frozenset[str]
    examples: int


def shares_of_runs(pieces: Sequence[Piece], limits: Limits, cores: int) -> Iterator[Share]:
    """Pieces with about as many rows; several shares for a core, if they are many.

    Each comes with the piece before it, and with as many after it as a run that is
    not large can go on in.
    """
    ends = list(accumulate(piece.rows for piece in pieces))
    rounds = min(4, ceil(ends[-1] / cores / limits.enough))
    each = max(limits.share, ends[-1] / cores / rounds)
    start = rows = 0
    for k, piece in enumerate(pieces, 1):
        rows += piece.rows
        if rows >= each or k == len(pieces):
            before = max(0, start - 1)
            last = bisect_left(ends, ends[k - 1] + limits.large) + 2
            yield Share(pieces[before:last], start - before, k - before)
            start, rows = k, 0


def _check_share(work: _Work) -> pa.Table:
    batches = rows_to_batches(_rows_of(work), OUTCOME)
    return pa.Table.from_batches(batches, OUTCOME)


def _rows_of(work: _Work) -> Iterator[dict[str, Any]]:
    try:
        for held in Runs(*work.share, work.skip):
            yield judged(held.name, held, work.examples)
    except (OrderError, ScatteredRunError) as error:
        yield out_of_order(str(error))
    except TraceError as error:
        yield failed("", error)


# -- runs that are spread over files -------------------------------------------------------


class _Spread(NamedTuple):
    """Whole runs, and the pieces that have their rows and no others."""

    runs: Sequence[tuple[str, Sequence[Piece]]]
    examples: int
    strict: bool


def check_spread(
    spark: SparkSession,
    runs: Mapping[str, Sequence[Piece]],
    *,
    examples: int,
    strict: bool,
    limits: Limits,
) -> pa.Table:
    """The outcomes of runs that are spread over pieces, but none of them shared, as `OUTCOME`."""
    total = sum(piece.rows for pieces in runs.values() for piece in pieces)
    each = max(limits.share, total / parallelism(spark) / 4)
    works: list[_Spread] = []
    held: list[tuple[str, Sequence[Piece]]] = []
    rows = 0
    for run, pieces in runs.items():
        held.append((run, pieces))
        rows += sum(piece.rows for piece in pieces)
        if rows >= each:
            works.append(_Spread(held, examples, strict))
            held, rows = [], 0
    if held:
        works.append(_Spread(held, examples, strict))
    return pa.concat_tables(ask(spark, works, _check_spread, "check: whole runs of many files"))


def _check_spread(work: _Spread) -> pa.Table:
    rows = (
        check_rows(run, PieceTrace(run, pieces), work.examples, work.strict)
        for run, pieces in work.runs
    )
    return pa.Table.from_batches(rows_to_batches(rows, OUTCOME), OUTCOME)


def check_rows(run: str, trace: Trace, examples: int, strict: bool) -> dict[str, Any]:
    """The outcome of a run whose rows are in any order, as a row of `OUTCOME`."""
    try:
        source = Sorted(trace, strict=strict)
    except TraceError as error:
        return failed(run, error)
    row = judged(run, source, examples)
    if row.get("trouble") != ORDER:
        return row
    # Sorted, and still no order: processes were restarted.
    events, lost = resolve_lives(trace.events())
    try:
        source = Sorted(trace_of(events, trace.name), strict=strict)
    except TraceError as error:
        return failed(run, error)
    found = scan(source, examples=examples)
    report = describe(source, found, examples)
    report.lost = lost
    return row_of(run, 0, report)


# -- tables of events ------------------------------------------------------------------------


def check_runs(events: DataFrame, *, examples: int = 10, strict: bool = False) -> DataFrame:
    """The outcome of each run of a table of events, as `OUTCOME`.

    Rows may be in any order. All rows of a run go to one task, and have to fit
    in its memory.
    """
    from pyspark.sql import functions as f

    columns: list[Any] = [name for name in (*COLUMNS, "lamport") if name in events.columns]
    if "time_ns" in events.columns:  # of the rows with which a process starts, to tell them apart
        columns.append(f.when(f.col("kind") == START, f.col("time_ns")).alias("time_ns"))

    def check(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        rows = (check_rows(run, trace, examples, strict) for run, trace in arrived(batches))
        yield from rows_to_batches(rows, OUTCOME)

    sorted_by_run = events.select(columns).repartition("run").sortWithinPartitions("run")
    return sorted_by_run.mapInArrow(check, spark_of(OUTCOME))
