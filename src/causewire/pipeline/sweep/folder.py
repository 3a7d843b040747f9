"""The directory of a sweep while it is written: locked, begun, finished.

`report/sweep_layout.py` says what is where in it. All executors must see the directory
under the same name.
"""

from __future__ import annotations

import fcntl
import json
import os
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...report.sweep_layout import SweepLayout
from ...trace.storage import locate
from ..errors import PipelineError
from .bucket import Bucket
from .table import JOURNAL

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["Folder", "output_at"]


def output_at(path: str | os.PathLike[str]) -> Folder | Bucket:
    """Return the place for the output of a sweep: a directory, or a place in S3.

    Raises:
        PipelineError: It is a URL that a sweep cannot write to.
    """
    place = locate(path)
    return Folder(place) if isinstance(place, Path) else Bucket(place.url)


class Folder(SweepLayout):
    """The output of a sweep, for writing; nothing is created before `open`."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        super().__init__(Path(path).absolute())

    def check(self) -> None:
        """Refuse, before any work is done, what could not be written to.

        Raises:
            PipelineError: The directory cannot be written to.
        """
        if self.path.exists():
            if not self.path.is_dir():
                raise PipelineError(f"{self.path} exists, and is not a directory")
            if not self.is_sweep and any(self.path.iterdir()):
                raise PipelineError(f"{self.path} exists, and is not the output of a sweep")
        above = next(p for p in [self.path, *self.path.parents] if p.exists())
        if not above.is_dir():
            raise PipelineError(f"{self.path} cannot be written: {above} is not a directory")
        if not os.access(above, os.W_OK | os.X_OK):
            raise PipelineError(f"{self.path} cannot be written: Permission denied")

    @contextmanager
    def open(self) -> Iterator[None]:
        """Have the directory to oneself.

        Raises:
            PipelineError: Another sweep is writing to the directory.
        """
        with self._writing():
            self.journal.mkdir(parents=True, exist_ok=True)
            lock = (self.journal / "lock").open("w")
        with lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                raise PipelineError(f"another sweep is writing to {self.path}") from None
            yield

    @contextmanager
    def _writing(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            problem = error.strerror or str(error)
            raise PipelineError(f"{self.path} cannot be written: {problem}") from None

    def told(self) -> dict[str, Any] | None:
        """Return the summary of a finished sweep, or None if there is none here."""
        if not self.is_finished:
            return None
        try:
            told = json.loads(self.summary.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return None
        return told if isinstance(told, dict) else None

    def begin(self, source: str, traces: bool) -> None:
        """From here on, and until `finish`, the directory does not look finished."""
        with self._writing():
            self.success.unlink(missing_ok=True)
            shutil.rmtree(self.runs, ignore_errors=True)
            self.summary.unlink(missing_ok=True)
            if traces:
                self.traces.mkdir(exist_ok=True)
                for left in self.traces.glob("*_attempt-*"):
                    shutil.rmtree(left, ignore_errors=True)
            self.experiment.write_text(source, encoding="utf-8")

    def forget_trace(self, run: str) -> None:
        """Drop the trace of a run that is to be run again."""
        shutil.rmtree(self.trace(run), ignore_errors=True)

    def has_trace(self, run: str) -> bool:
        """Return whether the trace of a run is there."""
        return self.trace(run).is_dir()

    def entries(self, spark: SparkSession) -> DataFrame:
        """Return the journal as a table, read by Spark.

        The pattern is not a URI: Spark takes `%20` for three letters.
        """
        literally = re.sub(r"([\\*?\[\]{}])", r"\\\1", str(self.journal))
        return spark.read.schema(JOURNAL).json(f"file://{literally}/*.jsonl")

    def write_table(self, table: DataFrame) -> None:
        """Write the table of runs, which gets its name in the end."""
        shutil.rmtree(self.unfinished_runs, ignore_errors=True)
        table.write.parquet(f"file://{self.unfinished_runs}")

    def finish(self, told: dict[str, Any]) -> None:
        """The table is complete: say so."""
        place = self.unfinished_runs
        with self._writing():
            for checksum in place.glob(".*.crc"):
                checksum.unlink()
            text = json.dumps(told, indent=1) + "\n"
            self.summary.write_text(text, encoding="utf-8")
            place.rename(self.runs)
            self.success.touch()
