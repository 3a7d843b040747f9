"""How far a sweep is: runs that have ended, and the part of the work that is done."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import NamedTuple, Self

from .journal import Journal

__all__ = ["SweepProgress", "SweepState"]

_PAUSE = 0.5
"""Seconds between two looks at the journal."""


class SweepState(NamedTuple):
    """How far a sweep is."""

    done: int
    """Runs that have ended, those of earlier starts of the sweep included."""
    runs: int
    """All runs of the sweep."""
    failed: int
    rate: float
    """Runs a second, since the first of this start began."""
    share: float
    """The part of this start's work that is done, from 0 to 1, by the estimated cost of runs."""
    seconds: float
    """Time since the first run of this start began."""


class SweepProgress:
    """Watches a journal grow while a block runs, and tells somebody about it.

    The part that is done is estimated from the cost of the runs, not from their number: they
    begin with the longest. The clock starts when the first run does, since workers that are
    slow to start say nothing about the runs.

    Args:
        journal: What was done so far.
        costs: The estimated cost of each run.
        tell: Called with the state every half second, from another thread, and at the end of
            the block. Without it, nothing is watched.
        clock: Returns the time in seconds.
    """

    def __init__(
        self,
        journal: Journal,
        costs: Mapping[str, float],
        tell: Callable[[SweepState], None] | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._journal = journal
        self._costs = costs
        self._tell = tell
        self._clock = clock
        self._begin = clock()
        self._entries = journal.entries
        self._done_before = {run for run in costs if run in journal.ended}
        self._work = sum(cost for run, cost in costs.items() if run not in self._done_before)
        self._over = threading.Event()
        self._thread: threading.Thread | None = None

    def __enter__(self) -> Self:
        if self._tell is not None:
            self._thread = threading.Thread(target=self._watch, daemon=True)
            self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._thread is not None and self._tell is not None:
            self._over.set()
            self._thread.join()
            self._tell(self.state())

    def _watch(self) -> None:
        while self._tell is not None and not self._over.wait(_PAUSE):
            self._journal.refresh()
            self._tell(self.state())

    def state(self) -> SweepState:
        """Return how far the sweep is, according to the journal as it was last read."""
        if self._journal.entries == self._entries:
            self._begin = self._clock()
        ended = self._journal.ended
        new = [run for run in self._costs if run in ended and run not in self._done_before]
        seconds = self._clock() - self._begin
        return SweepState(
            done=len(self._done_before) + len(new),
            runs=len(self._costs),
            failed=sum(ended[run].failed for run in self._costs if run in ended),
            rate=len(new) / seconds if seconds > 0 else 0.0,
            share=sum(self._costs[run] for run in new) / self._work if self._work else 1.0,
            seconds=seconds,
        )
