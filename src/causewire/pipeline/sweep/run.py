"""A sweep: the runs of an experiment, simulated on Spark, as a table.

The driver knows the runs and what has been done; the executors simulate, and
write down each run as it ends (`journal`). So it does not matter when, where or
how often anything dies: what is written down is not done again, and what is done
twice comes out the same.
"""

from __future__ import annotations

import json
import os
import time
import uuid
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from ..errors import PipelineError, reason, worker_died
from ..session import code_digest, parallelism
from ..tasks import described
from . import results
from .bucket import Bucket
from .experiment import Experiment, Run
from .folder import Folder, output_at
from .journal import Journal, JournalWriter
from .progress import SweepProgress, SweepState
from .simulation import ATTEMPTS, JournalSettings, grid_of, journal_runs
from .table import derived, parameters_of, results_of, table_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["SIMULATOR", "Sweep", "finished", "sweep"]

SIMULATOR = ("core", "sim")
"""The parts of the package on which a row depends."""

_FILE_ROWS = 200_000
"""Rows of the table of runs in one file."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sweep:
    """What came of a sweep; also `sweep.json`."""

    name: str
    title: str
    runs: int
    """Rows of the table."""
    simulated: int
    """Runs that were simulated this time."""
    kept: int
    """Runs that were there from an earlier time."""
    failed: int
    events: int
    """Events of all simulations together."""
    elapsed_s: float
    """Time that this sweep took on Spark, and how many tasks ran side by side."""
    slots: int
    simulation_s: float
    """Time in simulations, of all tasks together."""
    busy: float | None
    """What share of the slots' time was simulation; None if nothing was to be done."""
    code: str
    asked: str
    """Names all that was asked for: the runs, what is derived of them, traces or none."""

    def to_dict(self) -> dict[str, Any]:
        """Return the summary as values for JSON."""
        return asdict(self)


def finished(
    experiment: Experiment, out: str | os.PathLike[str], traces: bool | None = None
) -> Sweep | None:
    """What a sweep has said that left nothing to do; this needs no Spark.

    Refuses what can be refused before Spark is started: runs that cannot be, and
    a directory that cannot be written.
    """
    folder = output_at(out)
    folder.check()
    asked = _asked(experiment, experiment.runs(), _wants(experiment, traces))
    told = folder.told()
    if told is None or told.get("asked") != asked or told.get("code") != code_digest(*SIMULATOR):
        return None
    if told["simulated"]:
        told |= {"simulated": 0, "kept": told["simulated"] + told["kept"]}
        told |= {"elapsed_s": 0.0, "simulation_s": 0.0, "busy": None}
    return Sweep(**told)


def sweep(
    spark: SparkSession,
    experiment: Experiment,
    out: str | os.PathLike[str],
    *,
    traces: bool | None = None,
    progress: Callable[[SweepState], None] | None = None,
) -> Sweep:
    """Run an experiment into a directory, or what is left of it to run.

    Args:
        spark: The session.
        experiment: Which runs there are to be.
        out: The directory, or the URL of one in S3.
        traces: Whether to write traces; by default what the experiment says.
        progress: Called with how far the sweep is, from another thread.

    Returns:
        A summary, which is also in `sweep.json`.

    Raises:
        PipelineError: The output cannot be written, or Spark failed.
    """
    folder = output_at(out)
    folder.check()
    runs = experiment.runs()
    with folder.open():
        started = SweepRun(spark, experiment, runs, folder, _wants(experiment, traces))
        return started.execute(progress)


def _wants(experiment: Experiment, traces: bool | None) -> bool:
    return experiment.traces if traces is None else traces


def _asked(experiment: Experiment, runs: Sequence[Run], traces: bool) -> str:
    names = [(run.run, run.grid) for run in runs]
    everything = [names, experiment.source, traces]
    return sha256(json.dumps(everything).encode()).hexdigest()[:16]


class SweepRun:
    """One start of a sweep, up to its end or its interruption."""

    def __init__(
        self,
        spark: SparkSession,
        experiment: Experiment,
        runs: Sequence[Run],
        folder: Folder | Bucket,
        traces: bool,
    ) -> None:
        self._spark = spark
        self._experiment = experiment
        self._rows = runs
        self._runs = {run.run: run for run in runs}
        self._folder = folder
        self._traces = traces
        self._code = code_digest(*SIMULATOR)
        self._name = uuid.uuid4().hex[:8]
        self._journal = Journal(str(folder.journal), self._code)

    def execute(self, progress: Callable[[SweepState], None] | None = None) -> Sweep:
        """Simulate what is left to do, write the table, and return the summary."""
        if self._experiment.derive:
            # Expressions that make no sense are found before hours of simulation.
            self._table(self._spark.createDataFrame([], results.ddl()))
        self._journal.refresh()
        kept = [run for run in self._runs if self._is_done(run)]
        self._folder.begin(self._experiment.source, self._traces)
        todo = [run for name, run in self._runs.items() if not self._is_done(name)]
        for run in todo:
            self._journal.ended.pop(run.run, None)
            self._folder.forget_trace(run.run)
        slots = parallelism(self._spark)
        begin = time.monotonic()
        costs = {name: run.cost for name, run in self._runs.items()}
        if todo:
            with SweepProgress(self._journal, costs, progress):
                self._simulate(todo, slots)
        elapsed = time.monotonic() - begin
        self._write()
        ended = [self._journal.ended[name] for name in self._runs]
        seconds = sum(self._journal.ended[run.run].seconds for run in todo)
        told = Sweep(
            name=self._experiment.name,
            title=self._experiment.title,
            runs=len(self._rows),
            simulated=len(todo),
            kept=len(kept),
            failed=sum(end.failed for end in ended),
            events=sum(end.events for end in ended),
            elapsed_s=round(elapsed, 3),
            slots=slots,
            simulation_s=round(seconds, 3),
            busy=round(seconds / (elapsed * slots), 4) if todo else None,
            code=self._code,
            asked=_asked(self._experiment, self._rows, self._traces),
        )
        self._folder.finish(told.to_dict())
        return told

    def _is_done(self, run: str) -> bool:
        end = self._journal.ended.get(run)
        if end is None or not self._traces or end.failed:
            return end is not None
        return self._folder.has_trace(run)

    def _simulate(self, todo: Sequence[Run], slots: int) -> None:
        """Simulate all of them; again, without those that killed their workers."""
        settings = JournalSettings(
            journal=str(self._folder.journal),
            code=self._code,
            start=self._name,
            traces=str(self._folder.traces) if self._traces else None,
        )
        while todo:
            trouble: Exception | None = None
            try:
                with described(self._spark, f"sweep: {len(todo)} runs of {self._experiment.name}"):
                    journal_runs(grid_of(self._spark, todo, slots), settings)
            except Exception as error:  # Spark raises what it likes
                trouble = error
            self._journal.refresh()
            left = [run for run in todo if run.run not in self._journal.ended]
            if trouble is None and left:
                raise PipelineError(
                    f"{len(left)} runs left no trace in {self._folder.path}: "
                    "it must be a directory that all executors share"
                )
            if trouble and not (worker_died(trouble) and self._tried(left)):
                raise PipelineError(f"the sweep ended early: {reason(trouble)}")
            todo = [run for run in left if run.run not in self._journal.ended]

    def _tried(self, left: Sequence[Run]) -> bool:
        """Give up the runs whose workers died too often; False if no run was even begun."""
        tried = [run for run in left if self._journal.attempts(self._name, run.run)]
        writer = JournalWriter(str(self._folder.journal), self._code, self._name, "driver")
        for run in tried:
            if self._journal.attempts(self._name, run.run) >= ATTEMPTS:
                writer.end(run.run, 0.0, results.failed(run.run, "its worker died, each time"))
        writer.close()
        self._journal.refresh()
        return bool(tried)

    def _table(self, rows: DataFrame) -> DataFrame:
        files = -(-len(self._rows) // _FILE_ROWS)
        table = table_of(parameters_of(self._spark, self._rows), rows, files)
        return derived(table, self._experiment.derive)

    def _write(self) -> None:
        try:
            entries = self._folder.entries(self._spark)
            self._folder.write_table(self._table(results_of(entries, self._code)))
        except PipelineError:
            raise
        except Exception as error:
            raise PipelineError(f"{self._folder.path} cannot be written: {reason(error)}") from None
