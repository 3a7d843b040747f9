"""One trace in the explorer: read in the background, then checked, then perhaps read again.

A page can ask questions as soon as the rows are read. The check takes its own
pass over the trace meanwhile, and a trace that is still being written is read
again when its files have grown.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

from ..check import Report, check
from ..core.errors import CausewireError
from ..report.names import shown, visible
from ..trace import Trace, TraceError
from .arrays import Floats
from .causality import Causality
from .causes import Causes, causes_of
from .endpoints import EndpointStates
from .preview import Preview
from .run import RunData
from .table import Table, read
from .unavoidable import unavoidable
from .window import View

__all__ = ["EXAMPLES", "Dataset", "InputRemarks", "NotReadyError", "RunView"]

EXAMPLES = 200
"""Violations that the page lists."""

_KEPT = 4
"""Runs that are kept ready at a time."""


class NotReadyError(CausewireError):
    """The rows have not been read yet."""


class InputRemarks(NamedTuple):
    """What there is to say about the input, besides what is in the trace."""

    refused: int = 0
    """How many rows and files were not understood."""
    lines: Sequence[str] = ()
    unread: Sequence[str] = ()
    """The files that could not be read, each with the reason."""
    inferred: bool = False
    """Whether messages were inferred from vector clocks."""


class RunView:
    """One run with everything that answers are made from."""

    def __init__(self, table: Table, name: str) -> None:
        self.data = RunData(table, name)
        self.causality = Causality(self.data)
        self._views: dict[str, View] = {}

    def view(self, axis: str | None) -> View:
        """Return the run along an axis."""
        chosen = self.data.axis(axis)
        if chosen.name not in self._views:
            self._views[chosen.name] = View(self.data, chosen)
        return self._views[chosen.name]

    @cached_property
    def causes(self) -> Causes:
        """What ended each wait."""
        return causes_of(self.data)

    @cached_property
    def least(self) -> Floats | None:
        """The unavoidable part of each latency, where it is known."""
        view = self.view("time")
        return unavoidable(self.data, view.axis, view.parts)


@dataclass
class _Loaded:
    """What is known of one state of the files."""

    table: Table
    runs: OrderedDict[str, RunView] = field(default_factory=OrderedDict)
    report: Report | None = None
    trouble: str = ""
    """Why the check could not judge the trace."""


class Dataset:
    """A trace, or the result of a replay."""

    def __init__(
        self,
        source: Callable[[], Trace],
        title: str,
        *,
        follow: Sequence[Path] = (),
        summary: dict[str, Any] | None = None,
        endpoints: EndpointStates | None = None,
        run: str | None = None,
        remarks: Callable[[], InputRemarks] = InputRemarks,
    ) -> None:
        self._run, self._remarks = run, remarks
        self.title = shown(title)
        self.endpoints = endpoints
        self.summary = summary
        self.follow = list(follow)
        self._source = source
        self._lock = threading.Lock()
        self._loaded: _Loaded | None = None
        self._version = 0
        self._rows = 0
        self._total: int | None = None
        self._begun = time.monotonic()
        self._error = ""
        self._stopped = threading.Event()
        self.preview: Preview | None = None
        """The first run, while its messages are being joined."""

    def start(self) -> None:
        """Begin to read, in a thread that ends with the program."""
        threading.Thread(target=self._work, name="explore", daemon=True).start()

    def stop(self) -> None:
        """Stop following the files."""
        self._stopped.set()

    def load(self, progress: Callable[[int], None] | None = None) -> None:
        """Read and check the trace once.

        Args:
            progress: Called with the number of rows read so far; by default `status` tells.

        Raises:
            TraceError: The trace cannot be read.
        """
        trace = self._source()
        self._total = trace.about_rows()
        self._begun = time.monotonic()
        loaded = _Loaded(read(trace, self._progress if progress is None else progress))
        if self._run not in (None, *loaded.table.runs):
            raise TraceError(trace.name, None, f"there is no run {self._run!r}")
        first = self._run or loaded.table.runs[0]
        if self._loaded is None and Preview.wanted(loaded.table, first):
            self.preview = Preview(loaded.table, first)
            self._version += 1
        self._ready(loaded, first)
        with self._lock:
            self._loaded = loaded
            self.preview = None
            self._version += 1
            self._error = ""
        try:
            report = check(self._source(), examples=EXAMPLES)
            remarks = self._remarks()
            report.unread += remarks.unread
            report.inferred = remarks.inferred
            loaded.report = report
        except CausewireError as error:
            loaded.trouble = str(error)
        self._version += 1

    def _progress(self, rows: int) -> None:
        self._rows = rows

    def _work(self) -> None:
        while True:
            sizes = self._sizes()
            begun = time.monotonic()
            try:
                self.load()
            except CausewireError as error:
                self._error = str(error)
            except Exception as error:  # a thread that dies silently would hang the page
                self._error = f"{type(error).__name__}: {error}"
                raise
            if not self.follow:
                return
            pause = max(0.5, 2 * (time.monotonic() - begun))
            while not self._stopped.wait(pause):
                if self._sizes() != sizes:
                    break
            else:
                return

    def _sizes(self) -> list[tuple[str, int]]:
        found = []
        for path in self.follow:
            files = sorted(path.rglob("*")) if path.is_dir() else [path]
            found += [(str(file), file.stat().st_size) for file in files if file.is_file()]
        return found

    def _ready(self, loaded: _Loaded, run: str) -> RunView:
        if run not in loaded.runs:
            loaded.runs[run] = RunView(loaded.table, run)
            while len(loaded.runs) > _KEPT:
                loaded.runs.popitem(last=False)
        loaded.runs.move_to_end(run)
        return loaded.runs[run]

    def _now(self) -> _Loaded:
        if self._loaded is None:
            raise NotReadyError(self._error or "the trace is still being read")
        return self._loaded

    # -- what the page asks for -------------------------------------------------------

    def status(self) -> dict[str, Any]:
        """Return how far the work has come."""
        loaded = self._loaded
        result: dict[str, Any] = {
            "title": self.title,
            "version": self._version,
            "rows": self._rows,
            "error": self._error,
            "ready": loaded is not None,
            "preview": self.preview is not None,
            "following": bool(self.follow),
            "summary": self.summary,
        }
        if loaded is None:
            result |= {"total": self._total, "seconds": time.monotonic() - self._begun}
        else:
            violated = _violated(loaded)
            result["runs"] = [
                {
                    "name": shown(name),
                    "rows": loaded.table.rows_in(name),
                    "violated": name in violated,
                }
                for name in loaded.table.runs[:1000]
            ]
            result["first"] = self.first
            result["report"] = self._told(loaded)
            remarks = self._remarks()
            result["refused"] = remarks.refused
            result["remarks"] = [visible(line) for line in remarks.lines]
        return result

    @property
    def first(self) -> int | None:
        """The number of the run to show first; None until the check has found it.

        It is the one that was asked for, or else the first in which there is a violation.
        """
        loaded = self._now()
        runs = loaded.table.runs
        if self._run is not None:
            return runs.index(self._run)
        if loaded.report is None:
            return 0 if loaded.trouble else None
        violated = _violated(loaded)
        return next((k for k, name in enumerate(runs) if name in violated), 0)

    def _told(self, loaded: _Loaded) -> dict[str, Any] | None:
        if loaded.report is None:
            return {"trouble": loaded.trouble} if loaded.trouble else None
        told = loaded.report.to_json()
        for part in ("examples", "bad_rows", "verdict", "unread"):  # with names as they are
            del told[part]
        told["conclusive"] = loaded.report.conclusive
        return told

    @property
    def report(self) -> Report | None:
        """The outcome of the check, once there is one."""
        return self._now().report

    @property
    def trouble(self) -> str:
        """Why the check could not judge the trace, if it could not."""
        return self._now().trouble

    def run_name(self, number: int) -> str:
        """Return the full name of a run.

        Raises:
            LookupError: There is no such run.
        """
        runs = self._now().table.runs
        if not 0 <= number < len(runs):
            raise LookupError(f"there is no run {number}")
        return runs[number]

    def run(self, number: int) -> RunView:
        """Return a run by its number in the list of `status`."""
        name = self.run_name(number)
        with self._lock:
            return self._ready(self._now(), name)

    def trace(self) -> Trace:
        """Return the trace itself."""
        return self._source()


def _violated(loaded: _Loaded) -> set[str]:
    """Return the runs of the violations that are listed."""
    return set() if loaded.report is None else {one.run for one in loaded.report.examples}
