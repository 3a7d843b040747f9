"""What a sweep has done so far, written down, so that it can be stopped at any time.

Each attempt of a task has a file of its own in the journal and appends one line
of JSON for each run that it begins and one for each that it ends, with the row:

    {"begin": "csps-s0-…", "code": "…"}
    {"end": "csps-s0-…", "code": "…", "seconds": 1.03, "row": {…}}

A line is there or it is not: one that was cut short by a crash is not JSON, and
does not count. `code` names the code that made the row, so that rows of another
version of the simulator are not taken for this one's. Two attempts at the same
run write the same row.

In a store nothing can be appended to an object. There an attempt writes an object when a run
begins, with the end of the run before it, and one when it is closed.
"""

from __future__ import annotations

import io
import json
import os
import threading
import uuid
from collections import Counter
from collections.abc import Container, Iterator
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from ...trace.storage import is_url
from ..errors import PipelineError
from .objects import Objects
from .results import FAILED

__all__ = ["Ended", "Journal", "JournalWriter"]


class _Sink(Protocol):
    """Where an attempt writes its lines."""

    def write(self, line: bytes, now: bool) -> None:
        """Keep a line: `now`, or at the latest with the next one."""

    def close(self) -> None:
        """Write what is left."""


class _File:
    """A file to which lines are appended."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file: io.FileIO | None = None

    def write(self, line: bytes, now: bool) -> None:
        try:
            if self._file is None:
                self._file = io.FileIO(self._path, "xb")
            while line:  # the disk may have room for a part, and then says why not for all
                line = line[self._file.write(line) :]
        except OSError as error:
            reason = error.strerror or str(error)
            raise PipelineError(f"{self._path.parent}: cannot be written: {reason}") from None

    def close(self) -> None:
        if self._file is not None:
            self._file.close()


class _ObjectSeries:
    """Objects in a store, one after the other."""

    def __init__(self, url: str, name: str) -> None:
        self._objects = Objects(url)
        self._name, self._many = name, 0
        self._held = b""

    def write(self, line: bytes, now: bool) -> None:
        self._held += line
        if now:
            self.close()

    def close(self) -> None:
        if self._held:
            self._objects.put(f"{self._name}-{self._many:05}.jsonl", self._held)
            self._many += 1
            self._held = b""


class JournalWriter:
    """What one attempt of a task writes; `start` names the sweep's present start."""

    def __init__(self, place: str | os.PathLike[str], code: str, start: str, task: str) -> None:
        self._code = code
        name = f"{start}-{task}-{uuid.uuid4().hex[:8]}"
        self._sink: _Sink
        if is_url(place):
            self._sink = _ObjectSeries(os.fspath(place), name)
        else:
            self._sink = _File(Path(place, f"{name}.jsonl"))

    def begin(self, run: str) -> None:
        """Record that a run is being simulated."""
        self._append({"begin": run, "code": self._code}, now=True)

    def end(self, run: str, seconds: float, row: dict[str, Any]) -> None:
        """Record the row of a run, and how long its simulation took."""
        entry = {"end": run, "code": self._code, "seconds": seconds, "row": row}
        self._append(entry, now=False)

    def _append(self, entry: dict[str, Any], now: bool) -> None:
        self._sink.write(json.dumps(entry, separators=(",", ":")).encode() + b"\n", now)

    def close(self) -> None:
        """Write what is left, and close the file, if there is one."""
        self._sink.close()


class Ended(NamedTuple):
    """What the driver keeps of a run that ended; its row stays on disk."""

    failed: bool
    seconds: float
    events: int


class Journal:
    """A journal as it is read, again and again while it grows."""

    def __init__(self, place: str | os.PathLike[str], code: str, keep: Container[str] = ()) -> None:
        self._place = place
        self._code = code
        self._keep = keep
        self._lock = threading.Lock()
        self._read: dict[str, int] = {}
        """How far each file has been read, in bytes."""
        self.entries = 0
        self.ended: dict[str, Ended] = {}
        self.rows: dict[str, dict[str, Any]] = {}
        """The rows of those runs that are to be kept here."""
        self._begun: dict[str, Counter[str]] = {}
        """By start: how often a run was begun there."""

    def refresh(self) -> None:
        """Read what was added since the last time; any thread may ask."""
        with self._lock:
            self._read_on()

    def _read_on(self) -> None:
        added = self._objects() if is_url(self._place) else self._files()
        for name, lines in added:
            start = name.partition("-")[0]
            for line in lines.splitlines():
                self._take(start, line)

    def _files(self) -> Iterator[tuple[str, bytes]]:
        """Yield the whole lines that were added to each file."""
        for path in sorted(Path(self._place).glob("*.jsonl")):
            begin = self._read.get(path.name, 0)
            if path.stat().st_size == begin:
                continue
            with path.open("rb") as file:
                file.seek(begin)
                added = file.read()
            whole = added[: added.rfind(b"\n") + 1]
            self._read[path.name] = begin + len(whole)
            yield path.name, whole

    def _objects(self) -> Iterator[tuple[str, bytes]]:
        """Yield the objects that are new."""
        objects = Objects(os.fspath(self._place))
        names = [found.name for found in objects.list()]
        new = [name for name in names if name.endswith(".jsonl") and name not in self._read]
        for name, content in zip(new, objects.get_all(new), strict=True):
            self._read[name] = len(content)
            yield name, content

    def _take(self, start: str, line: bytes) -> None:
        try:
            entry = json.loads(line)
        except ValueError:  # a disk that filled up, and was used again
            return
        if entry["code"] != self._code:
            return
        self.entries += 1
        if "begin" in entry:
            self._begun.setdefault(start, Counter())[entry["begin"]] += 1
            return
        run, row = entry["end"], entry["row"]
        failed = row["status"] == FAILED
        self.ended[run] = Ended(failed, entry["seconds"], row["events"] or 0)
        if run in self._keep:
            self.rows[run] = row

    def attempts(self, start: str, run: str) -> int:
        """How often a run was begun there and came to nothing."""
        begun = self._begun.get(start)
        return 0 if begun is None or run in self.ended else begun[run]
