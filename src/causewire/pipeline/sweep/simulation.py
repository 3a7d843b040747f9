"""Runs on the executors: simulated into a DataFrame of rows, or into the journal."""

from __future__ import annotations

import os
import shutil
import tempfile
import time
import uuid
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...sim import Config, simulate
from ...trace import TraceError
from ...trace.parquet import ParquetDirectoryWriter
from ...trace.storage import is_url
from ..errors import PipelineError
from ..tasks import settle
from . import results
from .experiment import Run
from .journal import Journal, JournalWriter
from .objects import Objects

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

__all__ = [
    "ATTEMPTS",
    "GRID",
    "JournalSettings",
    "TaskAttempt",
    "grid_of",
    "journal_runs",
    "pack",
    "simulate_runs",
]

GRID = "task int, run string, config string"
"""The schema of the runs to be simulated; those of one `task` go together."""

ATTEMPTS = 3
"""How often a run may take its worker down with it before it is given up."""

_SMALLEST = 0.25
"""Estimated seconds of work below which a task is not worth its overhead."""


@dataclass(frozen=True, slots=True)
class JournalSettings:
    """Where tasks write down what they did; all of it survives them."""

    journal: str
    code: str
    start: str
    """Names the present start of the sweep: attempts of earlier ones do not count."""
    traces: str | None = None
    """Where the traces of the runs go, if they are wanted."""


def pack(costs: Sequence[float], slots: int) -> list[list[int]]:
    """Share out runs to tasks: which runs, by index, each task has.

    Tasks are taken up in this order by whoever is free. So they begin with the
    longest runs, and get shorter and shorter: each takes a third of an equal
    share of what is left, down to a size at which the cost of a task itself
    would show. No core is left alone with a long task at the end, and small runs
    come many to a task.
    """
    order = sorted(range(len(costs)), key=lambda i: (-costs[i], i))
    left = sum(costs)
    tasks: list[list[int]] = []
    task: list[int] = []
    weight = 0.0
    for i in order:
        task.append(i)
        weight += costs[i]
        if weight >= max(left / (3 * slots), _SMALLEST):
            tasks.append(task)
            left -= weight
            task, weight = [], 0.0
    if task:
        tasks.append(task)
    return tasks


def grid_of(spark: SparkSession, runs: Sequence[Run], slots: int) -> DataFrame:
    """The runs as a DataFrame, a partition for each task."""
    tasks = pack([run.cost for run in runs], slots)
    rows = [(k, runs[i].run, runs[i].config) for k, task in enumerate(tasks) for i in task]
    frame = spark.createDataFrame(rows, GRID)
    return frame.repartitionById(len(tasks), "task")


def simulate_runs(grid: DataFrame) -> DataFrame:
    """Return the row of each run, simulated by the executors; nothing is written.

    A run that raises has a row that says so.
    """

    def simulate_batches(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import pyarrow as pa

        for batch in batches:
            for run, config in _runs_in(batch):
                yield pa.RecordBatch.from_pylist(
                    [_outcome(run, config, None)[0]], results.arrow_schema()
                )
        settle()

    return grid.mapInArrow(simulate_batches, results.ddl())


def journal_runs(grid: DataFrame, settings: JournalSettings) -> int:
    """Simulate each run on the executors, which write its row to the journal; wait for them.

    Rows go to the journal, not through Spark, because they have to survive the task that
    made them: a task that is tried again, and a sweep that is started again, take from the
    journal what was done already. The table of runs is made of the journal at the end.

    Returns:
        How many runs the tasks wrote down or found in the journal.
    """

    def simulate_batches(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import pyarrow as pa
        from pyspark import TaskContext

        context = TaskContext.get()
        task = context.partitionId() if context else 0
        again = context is not None and context.attemptNumber() > 0
        attempt = TaskAttempt(settings, f"{task:05}", again)
        done = 0
        try:
            for batch in batches:
                runs = list(_runs_in(batch))
                attempt.load([run for run, _ in runs])
                for run, config in runs:
                    attempt.row(run, config)
                    done += 1
        finally:
            attempt.close()
        settle()
        yield pa.RecordBatch.from_pydict({"runs": pa.array([done], pa.int64())})

    counts = grid.mapInArrow(simulate_batches, "runs bigint").collect()
    return sum(row.runs for row in counts)


def _runs_in(batch: pa.RecordBatch) -> Iterator[tuple[str, str]]:
    """Return the name and the settings of each run of a batch of `GRID`."""
    return zip(batch["run"].to_pylist(), batch["config"].to_pylist(), strict=True)


class TaskAttempt:
    """One attempt of a task at its runs, which knows what earlier attempts wrote down."""

    def __init__(self, settings: JournalSettings, task: str, again: bool) -> None:
        self._settings = settings
        self._folder = settings.journal
        self._again = again
        self._before: Journal | None = None
        self._writer = JournalWriter(self._folder, settings.code, settings.start, task)

    def load(self, runs: Sequence[str]) -> None:
        """Read what was done of these runs before, if this is not the first attempt."""
        if self._again:
            self._before = Journal(self._folder, self._settings.code, keep=frozenset(runs))
            self._before.refresh()

    def row(self, run: str, config: str) -> dict[str, Any]:
        """Return the row of a run: from the journal, or simulated and written down now."""
        if self._before is not None:
            if run in self._before.rows:
                return self._before.rows[run]
            if self._before.attempts(self._settings.start, run) >= ATTEMPTS:
                row = results.failed(run, "its worker died, each time")
                self._writer.end(run, 0.0, row)
                return row
        self._writer.begin(run)
        row, seconds = _outcome(run, config, self._settings.traces)
        self._writer.end(run, seconds, row)
        return row

    def close(self) -> None:
        """Close the journal file of this attempt."""
        self._writer.close()


def _outcome(run: str, config: str, traces: str | None) -> tuple[dict[str, Any], float]:
    """Simulate one run: its row, and the seconds that it took.

    What goes wrong in the run is the run's; what goes wrong in writing ends the
    sweep, for the next run would meet it too.
    """
    import json

    begin = time.perf_counter()
    sink = _attempt(traces) if traces else None
    try:
        summary = simulate(Config.from_dict(json.loads(config)), sink, run=run)
        if sink is not None and traces is not None:
            sink.close()
            _keep(sink.path, traces, run)
        row = results.done(run, summary)
    except (OSError, TraceError) as error:
        raise PipelineError(f"the trace of run {run} cannot be written: {error}") from None
    except Exception as error:
        if sink is not None:
            sink.discard()
        said = " ".join(str(error).split())
        row = results.failed(run, f"{type(error).__name__}: {said}" if said else repr(error))
    return row, time.perf_counter() - begin


def _attempt(traces: str) -> ParquetDirectoryWriter:
    """A trace under a name that no other attempt has, and no reader looks at."""
    folder = tempfile.gettempdir() if is_url(traces) else traces
    return ParquetDirectoryWriter(Path(folder, f"_attempt-{uuid.uuid4().hex}"))


def _keep(attempt: Path, traces: str, run: str) -> None:
    """Give a finished trace its name, unless another attempt was quicker."""
    if is_url(traces):
        objects = Objects(f"{traces}/run={run}")
        for file in sorted(attempt.iterdir()):
            objects.put(file.name, file.read_bytes())
        objects.put("_SUCCESS", b"")
        shutil.rmtree(attempt, ignore_errors=True)
        return
    trace = Path(traces, f"run={run}")
    try:
        os.rename(attempt, trace)
    except OSError:
        if not trace.is_dir():
            raise
        shutil.rmtree(attempt, ignore_errors=True)
