"""Measurements on Spark, with the code of `causewire.metrics`, run by run.

    table = measure_paths(["traces/"])   # each run, as a table of Arrow
    runs(events)                         # the same for a table of events, as a table
    copies(events)                       # each message for each destination
    processes(events)                    # each process
    occupancy(events)                    # buffers and messages in transit, over time
    jobs(events)                         # jobs: when they began, how long after the send

`measure_paths` gives files to tasks, which read them; no event passes through Spark unless
runs are spread over files. The others take any table of events (`prepare.EVENTS`), and move
each run to one task. A run has to fit into the memory of a task (about 120 bytes a row).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

import pyarrow as pa

from ..metrics import COPIES, JOBS, OCCUPANCY, PROCESSES, RUNS, RunMetrics, measure
from ..metrics.rows import COLUMNS, consecutive
from ..trace import TraceError, trace_files
from ..trace.storage import absolute
from . import prepare
from .arrivals import arrived
from .errors import PipelineError, reason
from .limits import Limits
from .outcomes import error_of
from .pieces import Runs, by_process, layout, long_runs, without
from .session import parallelism, session
from .small import Share, shares_of_runs
from .tasks import described, spark_of
from .trouble import Trouble, answers, guarded

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = [
    "COPIES",
    "JOBS",
    "OCCUPANCY",
    "PROCESSES",
    "RUNS",
    "copies",
    "jobs",
    "measure_paths",
    "occupancy",
    "processes",
    "runs",
]


# -- tables of events ------------------------------------------------------------------------


def runs(events: DataFrame) -> DataFrame:
    """Return the measurements of each run: `RUNS`."""
    return _measured(events, _summary, RUNS)


def copies(events: DataFrame) -> DataFrame:
    """Return each message for each destination, and where its time went: `COPIES`."""
    return _measured(events, RunMetrics.copies, COPIES)


def processes(events: DataFrame) -> DataFrame:
    """Return each process that has rows: `PROCESSES`."""
    return _measured(events, RunMetrics.processes, PROCESSES)


def occupancy(events: DataFrame) -> DataFrame:
    """Return the levels of all buffers, whenever they change: `OCCUPANCY`."""
    return _measured(events, RunMetrics.occupancy, OCCUPANCY)


def jobs(events: DataFrame) -> DataFrame:
    """Return the jobs, when they began and ended: `JOBS`."""
    return _measured(events, RunMetrics.jobs, JOBS)


def _measured(
    events: DataFrame, table: Callable[[RunMetrics], pa.Table], schema: pa.Schema
) -> DataFrame:
    columns = [name for name in COLUMNS if name in events.columns]

    def of_runs(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for _, trace in arrived(batches):
            for run in measure(trace):
                yield from table(run).combine_chunks().to_batches()

    by_run = events.select(columns).repartition("run").sortWithinPartitions("run")
    return by_run.mapInArrow(of_runs, spark_of(schema))


def _summary(run: RunMetrics) -> pa.Table:
    return pa.Table.from_pylist([run.summary()], RUNS)


# -- files -----------------------------------------------------------------------------------


def measure_paths(
    paths: Sequence[str | os.PathLike[str]],
    *,
    master: str | None = None,
    limits: Limits | None = None,
    config: Mapping[str, str] | None = None,
) -> pa.Table:
    """Return the measurements of each run in these files and directories: `RUNS`, by name.

    Args:
        paths: Files, directories, patterns and URLs that executors can read.
        master: The Spark master; by default that of the session at hand, or this machine.
        limits: The sizes that decide how the work is shared out.
        config: Settings of Spark, if a session has to be started.

    Raises:
        TraceError: The trace cannot be read, or the events of a run form a cycle.
        PipelineError: Spark failed.
    """
    files = [absolute(str(file)) for file in trace_files(*paths)]
    with session(master, config=config) as spark:
        try:
            return _runs_in(spark, files, limits or Limits()).sort_by("run")
        except Trouble as trouble:
            raise error_of(trouble.detail) from None
        except (TraceError, PipelineError):
            raise
        except Exception as error:  # Py4J, gRPC and the JVM raise what they like
            raise PipelineError(f"measuring failed: {reason(error)}") from None


def _runs_in(spark: SparkSession, files: Sequence[str], limits: Limits) -> pa.Table:
    if all(file.endswith(".parquet") for file in files):
        table = _as_stored(spark, files, limits)
        if table is not None:
            return table
    with described(spark, "metrics: runs"):  # some are spread over files
        return runs(prepare.read(spark, files)).toArrow().cast(RUNS)


class _Work(NamedTuple):
    """Runs of a task: those that begin in its pieces, or a single one."""

    share: Share
    skip: frozenset[str]
    only: str | None = None


class _Measured(NamedTuple):
    table: pa.Table
    events: int


def _as_stored(spark: SparkSession, files: Sequence[str], limits: Limits) -> pa.Table | None:
    """Measure runs whose rows are together; None if there are others."""
    pieces = layout(files)
    if by_process(pieces):
        return None
    large = long_runs(pieces, limits.large)
    works = [_Work(Share(mine, 0, len(mine)), frozenset(), run) for run, mine in large.items()]
    if small := without(pieces, large):
        shares = shares_of_runs(small, limits, parallelism(spark))
        works += [_Work(share, frozenset(large)) for share in shares]
    parts = answers(spark, works, _measure_share, "metrics: whole runs")
    table = pa.concat_tables([part.table for part in parts])
    together = len(table["run"].unique()) == table.num_rows
    whole = sum(part.events for part in parts) == sum(piece.rows for piece in pieces)
    return table if together and whole else None


@guarded
def _measure_share(work: _Work) -> _Measured:
    rows = []
    events = 0
    batches = (batch for _, batch in Runs(*work.share, work.skip).batches(COLUMNS))
    for of_run in consecutive(batches):
        if work.only is None or of_run.run == work.only:
            run = RunMetrics(of_run)
            rows.append(run.summary())
            events += run.events
    return _Measured(pa.Table.from_pylist(rows, RUNS), events)
