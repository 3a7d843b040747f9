"""The check of other people's data on Spark: spans, logs and tables."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from functools import partial
from typing import NamedTuple

from ..check import Report
from ..trace import TraceError
from ..trace.formats.rows import Refused, unread_files
from ..trace.formats.shiviz_log import STRAY
from ..trace.storage import absolute, expand
from .check import check_runs
from .errors import PipelineError, reason
from .namesakes import with_namesakes
from .outcomes import ERROR, OUTCOME, error_of, folded, report_of
from .session import session
from .sources import Ingested, ingest
from .tasks import described

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
    inferred: bool = False
    """Whether messages were inferred from vector clocks."""


def check_foreign(
    paths: Sequence[str],
    kind: str,
    *,
    master: str | None = None,
    examples: int = 10,
    config: Mapping[str, str] | None = None,
    **options: str,
) -> ForeignReport:
    """Check files of another format on Spark; the same report as in one process.

    Args:
        paths: Files, directories, patterns and URLs that executors can read.
        kind: `otlp`, `jaeger`, `zipkin`, `spans` (one of these, by content), `shiviz` or
            `table`.
        master: The Spark master; by default that of the session at hand, or this machine.
        examples: How many violations to explain, and how many bad rows to describe.
        config: Settings of Spark, if a session has to be started.
        options: Options of the source `causewire`.

    Raises:
        TraceError: Nothing could be understood, or a run cannot have happened.
        PipelineError: Spark failed.
    """
    names = {absolute(str(file)): str(file) for path in paths for file in expand(path)}
    try:
        return _checked(paths, kind, names, master, examples, config, options)
    except TraceError as error:
        if type(error) is not TraceError or error.file not in names:
            raise
        raise TraceError(names[error.file], error.row, error.reason) from None


def _checked(
    paths: Sequence[str],
    kind: str,
    names: Mapping[str, str],
    master: str | None,
    examples: int,
    config: Mapping[str, str] | None,
    options: Mapping[str, str],
) -> ForeignReport:
    """Return the report; `names` says how files were called by whoever asked."""
    with session(master, config=config) as spark:
        try:
            found = ingest(spark, paths, kind, **options)
            rows = found.rows.persist()
            try:
                events = found.events
                with described(spark, f"check: runs of {kind}"):
                    outcomes = check_runs(events, examples=examples)
                    shown = outcomes.mapInArrow(partial(folded, examples=examples), outcomes.schema)
                    table = shown.toArrow().cast(OUTCOME)
                table = with_namesakes(table, events.select, examples)
                with described(spark, f"check: what was not understood of {kind}"):
                    refused = found.quarantine.groupBy("reason").count().collect()
                    first = found.quarantine.orderBy("row", "file").limit(_QUARANTINE).collect()
                    understood = found.understood({row.file for row in first})
                    notes = found.notes()
                    inferred = kind == "shiviz" and _inferred(found)
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
    for row in table.to_pylist():
        if row["trouble"] == ERROR:
            raise error_of(row["detail"])
    report = report_of(table, examples)
    report.unread += unread_files(quarantine, understood, paths)
    counts = Counter({r.reason: r["count"] for r in refused})
    return ForeignReport(report, counts, notes, quarantine, inferred)


def _inferred(found: Ingested) -> bool:
    """Return whether messages of logs were inferred from their clocks.

    Raises:
        TraceError: An event contradicts the others; it is the first that does.
    """
    wrong = found.quarantine.where("row is not null").where(f"reason <> '{STRAY}'")
    for row in wrong.orderBy("file", "row").limit(1).collect():
        raise TraceError(row.file, row.row, row.reason)
    return not found.rows.where("reason is null and row is null").isEmpty()
