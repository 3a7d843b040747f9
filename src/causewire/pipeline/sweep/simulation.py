"""Runs on the executors: a DataFrame of runs in, a DataFrame of their rows out."""

from __future__ import annotations

import os
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...sim import Config, simulate
from ...trace import TraceError
from ...trace.parquet import ParquetDirectoryWriter
from ..errors import PipelineError
from ..tasks import settle
from . import results
from .experiment import Run
from .journal import Journal, JournalWriter

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["GRID", "Notebook", "grid_of", "pack", "simulate_runs"]

GRID = "task int, run string, config string"
"""The schema of the runs to be simulated; those of one `task` go together."""

ATTEMPTS = 3
"""How often a run may take its worker down with it before it is given up."""

_SMALLEST = 0.25
"""Estimated seconds of work below which a task is not worth its overhead."""


@dataclass(frozen=True, slots=True)
class Notebook:
    """Where tasks write down what they did; all of it survives them."""

    journal: str
    code: str
    sitting: str
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


def simulate_runs(grid: DataFrame, notebook: Notebook | None = None) -> DataFrame:
    """Simulate each run; its row comes out as soon as it is over.

    A run that raises has a row that says so. With a notebook, rows go there as
    well, as they come, and a task that is tried again takes from there what it
    had done already.
    """
    return grid.mapInArrow(_simulator(notebook), results.ddl())


def _simulator(
    notebook: Notebook | None,
) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def simulate_batches(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import pyarrow as pa
        from pyspark import TaskContext

        schema = results.arrow_schema()
        context = TaskContext.get()
        task = context.partitionId() if context else 0
        again = context is not None and context.attemptNumber() > 0
        desk = _Desk(notebook, f"{task:05}", again) if notebook else None
        try:
            for batch in batches:
                runs, configs = batch["run"].to_pylist(), batch["config"].to_pylist()
                if desk:
                    desk.lay_out(runs)
                for run, config in zip(runs, configs, strict=True):
                    row = desk.row(run, config) if desk else _outcome(run, config, None)[0]
                    yield pa.RecordBatch.from_pylist([row], schema)
        finally:
            if desk:
                desk.close()
        settle()

    return simulate_batches


class _Desk:
    """One attempt of a task at its runs, with what earlier attempts wrote down."""

    def __init__(self, notebook: Notebook, task: str, again: bool) -> None:
        self._notebook = notebook
        self._folder = Path(notebook.journal)
        self._again = again
        self._before: Journal | None = None
        self._writer = JournalWriter(self._folder, notebook.code, notebook.sitting, task)

    def lay_out(self, runs: Sequence[str]) -> None:
        """See what has been done of these before, if this is not the first attempt."""
        if self._again:
            self._before = Journal(self._folder, self._notebook.code, keep=frozenset(runs))
            self._before.refresh()

    def row(self, run: str, config: str) -> dict[str, Any]:
        if self._before is not None:
            if run in self._before.rows:
                return self._before.rows[run]
            if self._before.attempts(self._notebook.sitting, run) >= ATTEMPTS:
                row = results.failed(run, "its worker died, each time")
                self._writer.end(run, 0.0, row)
                return row
        self._writer.begin(run)
        row, seconds = _outcome(run, config, self._notebook.traces)
        self._writer.end(run, seconds, row)
        return row

    def close(self) -> None:
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
            _keep(sink.path, Path(traces, f"run={run}"))
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
    return ParquetDirectoryWriter(Path(traces, f"_attempt-{uuid.uuid4().hex}"))


def _keep(attempt: Path, trace: Path) -> None:
    """Give a finished trace its name, unless another attempt was quicker."""
    try:
        os.rename(attempt, trace)
    except OSError:
        if not trace.is_dir():
            raise
        import shutil

        shutil.rmtree(attempt, ignore_errors=True)
