"""The event loop: what happens next, in simulated time.

An event is a plain tuple in a heap: when, a running number, what to call, and
four arguments. Two events at one instant happen in the order in which they were
scheduled, because the running number breaks the tie; nothing after it is ever
compared. Time is an integer number of nanoseconds, so that it adds up exactly,
and it moves only here.
"""

from __future__ import annotations

from collections.abc import Callable
from heapq import heapify, heappop, heappush
from itertools import repeat
from typing import Any

__all__ = ["Event", "Scheduler"]

Event = tuple[int, int, Callable[[Any, Any, Any, Any], None], Any, Any, Any, Any]


class Scheduler:
    """Simulated time, and everything that is still to happen."""

    __slots__ = ("_queue", "now", "scheduled")

    def __init__(self) -> None:
        self.now = 0
        self.scheduled = 0
        """How many events there have been so far, those to come included."""
        self._queue: list[Event] = []

    def __len__(self) -> int:
        return len(self._queue)

    def at(
        self,
        time: int,
        action: Callable[[Any, Any, Any, Any], None],
        a: Any = None,
        b: Any = None,
        c: Any = None,
        d: Any = None,
    ) -> None:
        """Call `action(a, b, c, d)` when it is `time`."""
        number = self.scheduled = self.scheduled + 1
        heappush(self._queue, (time, number, action, a, b, c, d))

    def run(self, events: int) -> bool:
        """Let up to that many events happen; returns whether more are left."""
        queue = self._queue
        for _ in repeat(None, events):
            if not queue:
                return False
            self.now, _, action, a, b, c, d = heappop(queue)
            action(a, b, c, d)
        return bool(queue)

    def discard(self, doomed: Callable[[Event], bool]) -> list[Event]:
        """Take out the events for which `doomed` is true; in order, for the record."""
        gone = sorted(event for event in self._queue if doomed(event))
        if gone:
            self._queue[:] = [event for event in self._queue if not doomed(event)]
            heapify(self._queue)
        return gone

    def stop(self) -> None:
        """Nothing more is to happen."""
        self._queue.clear()
