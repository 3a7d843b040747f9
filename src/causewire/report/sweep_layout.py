"""What is where in the directory of a sweep: the one module that knows.

    experiment.toml   the experiment, as it was given
    runs/             the table of runs, Parquet
    traces/run=…/     the trace of each run, if asked for
    sweep.json        the sweep in numbers
    _SUCCESS          written last: everything above is complete
    _journal/         what the tasks wrote down; a sweep that was stopped goes on from there
    _runs/            the table of runs while it is being written

The pipeline writes the directory, and the report reads it. Spark and `trace.open_trace`
pass over names that begin with an underscore.
"""

from __future__ import annotations

import os
from pathlib import Path

__all__ = ["SweepLayout"]


class SweepLayout:
    """The paths in the directory of a sweep; nothing is created or read here."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        self.experiment = self.path / "experiment.toml"
        self.runs = self.path / "runs"
        self.unfinished_runs = self.path / "_runs"
        self.traces = self.path / "traces"
        self.summary = self.path / "sweep.json"
        self.success = self.path / "_SUCCESS"
        self.journal = self.path / "_journal"

    def trace(self, run: str) -> Path:
        """Return where the trace of a run is."""
        return self.traces / f"run={run}"

    @property
    def is_sweep(self) -> bool:
        """Whether a sweep has worked in this directory."""
        return self.journal.is_dir()

    @property
    def is_finished(self) -> bool:
        """Whether everything is complete."""
        return self.success.exists()
