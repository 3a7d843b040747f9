"""The output of a sweep in S3: what `Folder` is in a directory, without renaming and locks.

The names are those of a directory (`report/sweep_layout.py`). What differs:

- The journal has an object for each entry of a task, because nothing can be appended.
- The table is written under its final name, by tasks. `_SUCCESS` is deleted first and put
  last, so a table without it is not complete.
- A trace is complete when `_SUCCESS` is in its directory; readers of traces pass over it.
- The lock is an object that its owner renews. Whoever finds one that has not been renewed for
  `EXPIRES` seconds, by the clock of the store, may replace it, on the condition that it is
  still the same; so of several who try, one has it.
"""

from __future__ import annotations

import json
import threading
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

from ..errors import PipelineError
from ..tasks import spread_batches
from . import results
from .objects import Objects
from .table import JOURNAL

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["EXPIRES", "Bucket"]

EXPIRES = 60.0
"""Seconds after which a lock that was not renewed counts as left behind."""

_LOCK, _SUCCESS, _SUMMARY = "_journal/lock", "_SUCCESS", "sweep.json"

_SHARE = 500
"""Journal objects that a task reads."""


class Bucket:
    """The output of a sweep in S3, for writing; nothing is written before `open`."""

    def __init__(self, url: str) -> None:
        self.path = url.rstrip("/")
        self.journal = f"{self.path}/_journal"
        self.traces = f"{self.path}/traces"
        self._objects = Objects(self.path)
        self._lock: _Lock | None = None

    def check(self) -> None:
        """Refuse, before any work is done, what could not be written to.

        Raises:
            PipelineError: There is something else, or the store does not answer.
        """
        if self._objects.has_any() and not self._objects.has_any("_journal/"):
            raise PipelineError(f"{self.path} exists, and is not the output of a sweep")

    @contextmanager
    def open(self, renew: float = EXPIRES / 4) -> Iterator[None]:
        """Have the place to oneself; the lock is renewed every `renew` seconds.

        Raises:
            PipelineError: Another sweep is writing there.
        """
        self._lock = _Lock(self._objects)
        ended = threading.Event()

        def keep(lock: _Lock) -> None:
            while not ended.wait(renew):
                with suppress(PipelineError):  # whoever writes next finds out
                    lock.renew()

        keeper = threading.Thread(target=keep, args=(self._lock,), name="sweep lock", daemon=True)
        keeper.start()
        try:
            yield
        finally:
            ended.set()
            keeper.join()
            self._lock.release()
            self._lock = None

    def _still_ours(self) -> None:
        """Refuse to write what others may be writing."""
        if self._lock is not None:
            self._lock.renew()

    def told(self) -> dict[str, Any] | None:
        """Return the summary of a finished sweep, or None if there is none here."""
        if self._objects.get(_SUCCESS) is None:
            return None
        try:
            told = json.loads(self._objects.get(_SUMMARY) or b"")
        except ValueError:
            return None
        return told if isinstance(told, dict) else None

    def begin(self, source: str, traces: bool) -> None:
        """From here on, and until `finish`, the output does not look finished."""
        self._still_ours()
        self._objects.delete(_SUCCESS, _SUMMARY)
        self._objects.delete(*(found.name for found in self._objects.list("runs/")))
        self._objects.put("experiment.toml", source.encode())

    def forget_trace(self, run: str) -> None:
        """Drop the trace of a run that is to be run again."""
        names = [found.name for found in self._objects.list(f"traces/run={run}/")]
        self._objects.delete(*sorted(names))  # its mark first: `_` comes before letters

    def has_trace(self, run: str) -> bool:
        """Return whether the trace of a run is there."""
        return self._objects.get(f"traces/run={run}/{_SUCCESS}") is not None

    def entries(self, spark: SparkSession) -> DataFrame:
        """Return the journal as a table, read by tasks."""
        names = [found.name for found in self._objects.list("_journal/")]
        names = [name for name in names if name.endswith(".jsonl")]
        works = [(self.path, names[k : k + _SHARE]) for k in range(0, len(names), _SHARE)]
        return spread_batches(spark, works, _entries, JOURNAL)

    def write_table(self, table: DataFrame) -> None:
        """Write the table of runs: a task writes a file of its own, under its final name."""
        self._still_ours()
        url, names = self.path, table.columns

        def write(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            from pyspark import TaskContext

            context = TaskContext.get()
            part = context.partitionId() if context else 0
            yield _write_part(url, part, (batch.rename_columns(names) for batch in batches))

        # Spark takes dots in names for fields of structures.
        numbered = table.toDF(*(f"c{k}" for k in range(len(names))))
        numbered.mapInArrow(write, "rows bigint").collect()

    def finish(self, told: dict[str, Any]) -> None:
        """The table is complete: say so."""
        self._still_ours()
        self._objects.put(_SUMMARY, (json.dumps(told, indent=1) + "\n").encode())
        self._objects.put(_SUCCESS, b"")


class _Lock:
    """An object that says who writes; to have it is to know its tag."""

    def __init__(self, objects: Objects) -> None:
        """Take the lock.

        Raises:
            PipelineError: Another sweep has it.
        """
        self._objects = objects
        self._turn = threading.Lock()
        tag = objects.put_new(_LOCK, _anything())
        if tag is None:
            found = objects.look(_LOCK)
            if found is not None and found.age > EXPIRES:
                tag = objects.put_over(_LOCK, _anything(), found.tag)
        if tag is None:
            raise PipelineError(
                f"another sweep is writing to {objects.url}; if it died, its lock expires "
                f"after {EXPIRES:.0f} seconds"
            )
        self._tag: str | None = tag

    def renew(self) -> None:
        """Write the lock again.

        Raises:
            PipelineError: Another sweep has taken it over, or the store does not answer.
        """
        with self._turn:
            if self._tag is not None:
                self._tag = self._objects.put_over(_LOCK, _anything(), self._tag)
            if self._tag is None:
                raise PipelineError(f"another sweep has taken over {self._objects.url}")

    def release(self) -> None:
        """Remove the lock, if it is still ours."""
        with suppress(PipelineError):
            self.renew()
            self._objects.delete(_LOCK)


def _anything() -> bytes:
    """Return content that no other lock has, so that its tag is its own."""
    return uuid.uuid4().hex.encode()


def _entries(work: tuple[str, list[str]]) -> Iterator[pa.RecordBatch]:
    import pyarrow as pa

    url, names = work
    row = pa.struct(list(results.arrow_schema()))
    schema = pa.schema([("end", pa.string()), ("code", pa.string()), ("row", row)])  # as JOURNAL
    entries = [
        entry
        for content in Objects(url).get_all(names)
        for entry in map(json.loads, content.splitlines())
        if "end" in entry
    ]
    rows = [{name: entry.get(name) for name in schema.names} for entry in entries]
    yield pa.RecordBatch.from_pylist(rows, schema)


def _write_part(url: str, part: int, batches: Iterator[pa.RecordBatch]) -> pa.RecordBatch:
    import io

    import pyarrow as pa
    import pyarrow.parquet as pq

    file = io.BytesIO()
    writer: pq.ParquetWriter | None = None
    rows = 0
    for batch in batches:
        if writer is None:
            writer = pq.ParquetWriter(file, batch.schema)
        writer.write_batch(batch)
        rows += batch.num_rows
    if writer is not None:
        writer.close()
        Objects(url).put(f"runs/part-{part:05}.parquet", file.getvalue())
    return pa.RecordBatch.from_pydict({"rows": pa.array([rows], pa.int64())})
