"""How far a sweep is: runs done, rate, and time left, on a terminal."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Self, TextIO

from .journal import Journal

__all__ = ["Progress", "duration"]


def duration(seconds: float) -> str:
    """A time as people say it."""
    whole = max(0, round(seconds))
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02} s"
    return f"{whole // 3600} h {whole % 3600 // 60:02} min"


class Progress:
    """Watches a journal grow; says nothing unless there is a terminal to say it to.

    The time that is left is estimated from the work that is, not from the number
    of runs: they begin with the longest. The clock starts when the first run does:
    workers that are slow to start say nothing about the runs.
    """

    def __init__(
        self,
        journal: Journal,
        costs: Mapping[str, float],
        stream: TextIO | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._journal = journal
        self._costs = costs
        self._stream = sys.stderr if stream is None else stream
        self._clock = clock
        self._begin = clock()
        self._entries = journal.entries
        self._done_before = {run for run in costs if run in journal.ended}
        self._work = sum(cost for run, cost in costs.items() if run not in self._done_before)
        self._over = threading.Event()
        self._thread: threading.Thread | None = None

    def __enter__(self) -> Self:
        if self._stream.isatty():
            self._thread = threading.Thread(target=self._watch, daemon=True)
            self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._thread is not None:
            self._over.set()
            self._thread.join()
            self._show("")

    def _watch(self) -> None:
        while not self._over.wait(0.5):
            self._journal.refresh()
            self._show(self.line())

    def line(self) -> str:
        """The present state in one line."""
        if self._journal.entries == self._entries:
            self._begin = self._clock()
        runs = self._journal.ended
        new = [run for run in self._costs if run in runs and run not in self._done_before]
        done = len(self._done_before) + len(new)
        elapsed = self._clock() - self._begin
        line = f"{done} of {len(self._costs)} runs"
        failures = sum(runs[run].failed for run in self._costs if run in runs)
        if failures:
            line += f", {failures} failed"
        if new and elapsed > 0:
            line += f", {len(new) / elapsed:.3g} a second"
            work = sum(self._costs[run] for run in new)
            if done < len(self._costs):
                line += f", about {duration(elapsed * (self._work - work) / work)} left"
        return line

    def _show(self, line: str) -> None:
        self._stream.write(f"\r\x1b[K{line}")
        self._stream.flush()
