"""The check of other people's data on Spark: spans, logs and tables."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

import pyarrow as pa

from ..check import Report
from ..trace import NAMES, Event, TraceError
from ..trace.formats.foreign import name_of
from ..trace.formats.rows import Refused, unread_files
from ..trace.formats.shiviz_log import STRAY
from ..trace.schema import SameSeqError
from ..trace.storage import absolute, expand
from .check import Progress, outcomes_of
from .errors import PipelineError, reason
from .limits import Limits
from .outcomes import report_of
from .session import session
from .sources import Ingested, ingest
from .tasks import described

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["ForeignReport", "check_foreign"]

_QUARANTINE = 1000


class ForeignReport(NamedTuple):
    """The report of a check, and what there is to say about its input."""

    report: Report
    refused: Counter[str]
    """How many rows and files could not be understood, by reason."""
    notes: Counter[str]
    quarantine: list[Refused]
    """The first of them, by their numbers in their files; whole files come first."""


def check_foreign(
    paths: Sequence[str],
    kind: str,
    *,
    master: str | None = None,
    examples: int = 10,
    limits: Limits | None = None,
    progress: Progress | None = None,
    scratch: str | os.PathLike[str] | None = None,
    strict: bool = False,
    config: Mapping[str, str] | None = None,
    **options: str,
) -> ForeignReport:
    """Check files of another format on Spark; the same report as in one process.

    A long run is sorted into a temporary directory, and checked there by many tasks.

    Args:
        paths: Files, directories, patterns and URLs that executors can read.
        kind: `otlp`, `jaeger`, `zipkin`, `spans` (one of these, by content), `shiviz` or
            `table`.
        master: The Spark master; by default that of the session at hand, or this machine.
        examples: How many violations to explain, and how many bad rows to describe.
        limits: The sizes that decide how the work is shared out.
        progress: Called with a line that says what is being done.
        scratch: Where long runs are kept meanwhile; on a cluster, every executor has to see it.
        strict: Refuse rows that are there twice, instead of taking them once.
        config: Settings of Spark, if a session has to be started.
        options: Options of the source `causewire`.

    Raises:
        TraceError: Nothing could be understood, or a run cannot have happened.
        PipelineError: Spark failed.
    """
    names = {absolute(str(file)): str(file) for path in paths for file in expand(path)}

    def outcomes(events: DataFrame) -> pa.Table:
        if "lamport" not in json.loads(options.get("columns", "{}")):
            events = events.drop("lamport")  # there are none, so nobody has to look for them
        return outcomes_of(
            events,
            examples=examples,
            limits=limits,
            progress=progress,
            scratch=scratch,
            strict=strict,
            fold=True,
        )

    try:
        with session(master, config=config) as spark:
            return _checked(spark, paths, kind, names, outcomes, examples, options)
    except TraceError as error:
        if type(error) is not TraceError or error.file not in names:
            raise
        raise TraceError(names[error.file], error.row, error.reason) from None


def _checked(
    spark: SparkSession,
    paths: Sequence[str],
    kind: str,
    names: Mapping[str, str],
    outcomes: Callable[[DataFrame], pa.Table],
    examples: int,
    options: Mapping[str, str],
) -> ForeignReport:
    """Return the report; `names` says how files were called by whoever asked."""
    try:
        found = ingest(spark, paths, kind, **options)
        rows = found.rows.persist()
        try:
            with described(spark, f"check: what was not understood of {kind}"):
                refused = found.quarantine.groupBy("reason").count().collect()
                first = found.quarantine.orderBy("row", "file").limit(_QUARANTINE).collect()
                understood = found.understood({row.file for row in first})
                notes = found.notes()
                inferred = kind == "shiviz" and _inferred(found)
            try:
                table = outcomes(found.events)
            except SameSeqError as error:
                raise error.told(_rows_with_seq(found, error, names)) from None
            except TraceError as error:  # which is about a run, not about a file
                raise TraceError(name_of(paths), None, error.reason) from None
        finally:
            rows.unpersist()
    except (TraceError, PipelineError):
        raise
    except Exception as error:  # Py4J, gRPC and the JVM raise what they like
        raise PipelineError(f"the check failed: {reason(error)}") from None
    quarantine = [Refused(names.get(r.file, r.file), r.row, r.reason, r.text) for r in first]
    understood = {names.get(file, file) for file in understood}
    if table.num_rows == 0:
        if not quarantine:
            raise TraceError(paths[0], None, "no rows")
        raise TraceError(*quarantine[0][:3])
    report = report_of(table, examples)
    report.unread += unread_files(quarantine, understood, paths)
    report.inferred = inferred
    counts = Counter({r.reason: r["count"] for r in refused})
    return ForeignReport(report, counts, notes, quarantine)


def _inferred(found: Ingested) -> bool:
    """Return whether messages of logs were inferred from their clocks.

    Raises:
        TraceError: An event contradicts the others; it is the first that does.
    """
    wrong = found.quarantine.where("row is not null").where(f"reason <> '{STRAY}'")
    for row in wrong.orderBy("file", "row").limit(1).collect():
        raise TraceError(row.file, row.row, row.reason)
    return not found.rows.where("reason is null and row is null").isEmpty()


def _rows_with_seq(
    found: Ingested, error: SameSeqError, names: Mapping[str, str]
) -> list[tuple[str, int, Event]]:
    """Return the rows that an error is about: file, row there, and event."""
    from pyspark.sql import functions as f

    wanted = {"run": error.run, "process": error.process, "seq": error.seq}
    rows = found.rows.where("reason is null and row is not null")
    for name, value in wanted.items():
        rows = rows.where(f.col(name) == f.lit(value))
    order = {file: place for place, file in enumerate(names)}
    same = sorted(rows.collect(), key=lambda row: (order.get(row.file, len(order)), row.row))
    return [(names.get(r.file, r.file), r.row, Event(*(r[name] for name in NAMES))) for r in same]
