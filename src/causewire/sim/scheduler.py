"""Simulated time: a queue of events, taken out in the order in which they happen.

An event is a plain tuple in a heap: its time, a running number, what happens, and
up to four values that belong to it. Two events at one instant happen in the order
in which they were scheduled, because the running number breaks the tie; nothing
after it is ever compared. Time is an integer number of nanoseconds, so it adds up
exactly, and it advances only here.

    scheduler.at(5_000_000, WAKE, process)
    for time, number, what, a, b, c, d in scheduler:
        ...                                     # may schedule more events
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from enum import Enum
from heapq import heapify, heappop, heappush
from typing import Any

__all__ = [
    "ARRIVAL",
    "END",
    "FAULT",
    "HANDLED",
    "JOB_END",
    "TICK",
    "WAKE",
    "Event",
    "Happening",
    "Scheduler",
]

Event = tuple[int, int, Any, Any, Any, Any, Any]
"""Time, running number, what happens, and the values that belong to it."""


class Happening(Enum):
    """What can happen in a simulated run, with the values that belong to it."""

    ARRIVAL = "sender, receiver, packet, stamp: a packet reaches its receiver"
    WAKE = "process: it is time to send a message of its own"
    HANDLED = "process, message: the application has handled the message"
    JOB_END = "process, message: the message's job is over"
    TICK = "process: its retransmission timer fires"
    FAULT = "fault: something breaks, or is repaired"
    END = "the run is cut short"


ARRIVAL, WAKE, HANDLED, JOB_END, TICK, FAULT, END = Happening


class Scheduler:
    """The current time, and everything that is still to happen."""

    __slots__ = ("_queue", "now", "scheduled")

    def __init__(self) -> None:
        self.now = 0
        self.scheduled = 0
        """The number of events so far, including those that are still to happen."""
        self._queue: list[Event] = []

    def __len__(self) -> int:
        return len(self._queue)

    def at(
        self, time: int, what: Any, a: Any = None, b: Any = None, c: Any = None, d: Any = None
    ) -> None:
        """Schedule an event.

        Args:
            time: When it happens, in nanoseconds.
            what: What happens; the scheduler only hands it back.
            a, b, c, d: The values that belong to it.
        """
        number = self.scheduled = self.scheduled + 1
        heappush(self._queue, (time, number, what, a, b, c, d))

    def __iter__(self) -> Iterator[Event]:
        """Yield the next event and advance `now` to it, until no event is left."""
        queue = self._queue
        while queue:
            event = heappop(queue)
            self.now = event[0]
            yield event

    def discard(self, doomed: Callable[[Event], bool]) -> list[Event]:
        """Remove the events for which `doomed` is true, and return them in order."""
        gone = sorted(event for event in self._queue if doomed(event))
        if gone:
            self._queue[:] = [event for event in self._queue if not doomed(event)]
            heapify(self._queue)
        return gone

    def stop(self) -> None:
        """Remove all events that are still to happen."""
        self._queue.clear()
