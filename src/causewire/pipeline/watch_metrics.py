"""What a watch does, in numbers, where people who run Spark look for them.

Each batch counts what it reads and what it finds (`Dataset.observe`). The counts are part of the
progress of the query, `observedMetrics`, which `StreamingQueryListener`s, `query.lastProgress`
and the driver's log have. The totals since the start are the description of each batch's job, which
the user interface shows in its list of jobs; the number of runs that are remembered is the number
of state rows in its tab "Structured Streaming".
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.query import StreamingQuery

__all__ = ["BatchProgress", "described_totals", "observed_findings", "observed_rows", "progress_of"]

READ = "causewire_read"
FOUND = "causewire_found"
_TABLES = ("violations", "windows", "late", "quarantine")


class BatchProgress(NamedTuple):
    """What the last batch of a watch has done."""

    batch: int
    rows: int
    """Rows that were read, those that were not understood included."""
    violations: int
    windows: int
    late: int
    quarantine: int
    state_rows: int
    """Runs that are remembered."""
    seconds: float


def observed_rows(rows: DataFrame) -> DataFrame:
    """Return a stream of rows that counts them."""
    from pyspark.sql import functions as f

    return rows.observe(READ, f.count(f.lit(1)).alias("rows"))


def observed_findings(found: DataFrame) -> DataFrame:
    """Return a stream of findings that counts them, by table."""
    from pyspark.sql import functions as f

    counts = [f.count(f.when(f.col("table") == table, 1)).alias(table) for table in _TABLES]
    return found.observe(FOUND, *counts)


def progress_of(query: StreamingQuery) -> BatchProgress | None:
    """Return what the last batch has done; None before the first."""
    last: Any = query.lastProgress
    if last is None:
        return None
    read, found = _observed(last, READ), _observed(last, FOUND)
    return BatchProgress(
        batch=last["batchId"],
        rows=read.get("rows", 0),
        violations=found.get("violations", 0),
        windows=found.get("windows", 0),
        late=found.get("late", 0),
        quarantine=found.get("quarantine", 0),
        state_rows=sum(operator["numRowsTotal"] for operator in last["stateOperators"]),
        seconds=last["durationMs"].get("triggerExecution", 0) / 1000,
    )


def _observed(progress: Any, name: str) -> dict[str, int]:
    row = progress["observedMetrics"].get(name)
    if row is None:
        return {}
    return row if isinstance(row, dict) else dict(row.asDict())


def described_totals(batch: int, seen: Counter[str]) -> str:
    """Return the description of the job of a batch, with the totals since the start."""
    totals = ", ".join(f"{seen[table]:,} {table}" for table in _TABLES)
    return f"watch: batch {batch}; since the start: {totals}"
