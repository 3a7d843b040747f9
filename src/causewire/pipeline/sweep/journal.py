"""What a sweep has done so far, on disk, so that it can be stopped at any time.

Each attempt of a task has a file of its own in the journal and appends one line
of JSON for each run that it begins and one for each that it ends, with the row:

    {"begin": "csps-s0-…", "code": "…"}
    {"end": "csps-s0-…", "code": "…", "seconds": 1.03, "row": {…}}

A line is there or it is not: one that was cut short by a crash is not JSON, and
does not count. `code` names the code that made the row, so that rows of another
version of the simulator are not taken for this one's. Two attempts at the same
run write the same row.
"""

from __future__ import annotations

import io
import json
import threading
import uuid
from collections import Counter
from collections.abc import Container
from pathlib import Path
from typing import Any, NamedTuple

from ..errors import PipelineError
from .results import FAILED

__all__ = ["Ended", "Journal", "JournalWriter"]


class JournalWriter:
    """The file of one attempt of a task; `start` names the sweep's present start."""

    def __init__(self, folder: Path, code: str, start: str, task: str) -> None:
        self._code = code
        self._path = folder / f"{start}-{task}-{uuid.uuid4().hex[:8]}.jsonl"
        self._file: io.FileIO | None = None

    def begin(self, run: str) -> None:
        """Record that a run is being simulated."""
        self._append({"begin": run, "code": self._code})

    def end(self, run: str, seconds: float, row: dict[str, Any]) -> None:
        """Record the row of a run, and how long its simulation took."""
        self._append({"end": run, "code": self._code, "seconds": seconds, "row": row})

    def _append(self, entry: dict[str, Any]) -> None:
        try:
            if self._file is None:
                self._file = io.FileIO(self._path, "xb")
            left = json.dumps(entry, separators=(",", ":")).encode() + b"\n"
            while left:  # the disk may have room for a part, and then says why not for all
                left = left[self._file.write(left) :]
        except OSError as error:
            reason = error.strerror or str(error)
            raise PipelineError(f"{self._path.parent}: cannot be written: {reason}") from None

    def close(self) -> None:
        """Close the file, if it was opened."""
        if self._file is not None:
            self._file.close()


class Ended(NamedTuple):
    """What the driver keeps of a run that ended; its row stays on disk."""

    failed: bool
    seconds: float
    events: int


class Journal:
    """A journal as it is read, again and again while it grows."""

    def __init__(self, folder: Path, code: str, keep: Container[str] = ()) -> None:
        self._folder = folder
        self._code = code
        self._keep = keep
        self._lock = threading.Lock()
        self._read: dict[Path, int] = {}
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
        for path in sorted(self._folder.glob("*.jsonl")):
            begin = self._read.get(path, 0)
            if path.stat().st_size == begin:
                continue
            with path.open("rb") as file:
                file.seek(begin)
                added = file.read()
            whole = added[: added.rfind(b"\n") + 1]
            self._read[path] = begin + len(whole)
            start = path.name.partition("-")[0]
            for line in whole.splitlines():
                self._take(start, line)

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
