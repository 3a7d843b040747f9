"""A run that is still going on: rows as they come, in whatever order they come.

Nodes write files of their own, and these are read in pieces. So a delivery may be
seen before the send, and rows of one process out of their order. Rows are kept
until it is their turn:

  - rows of a process go in the order of `seq`,
  - a delivery goes after its send,
  - and nothing goes before the *watermark* has passed it: the latest `time_ns`
    seen, less a bound. So everybody has that long to be late.

A row that comes when a later one of its process is gone is too late: it is
counted, and takes no part. A delivery whose send has not come by its time goes
without it, and both are counted. (So where rows were too late, something may be
reported as a violation, or as an undelivered message, although it is not: `causewire
check` gives the definite answer when the trace is complete.) When nothing comes any more,
`advance` with `ended` lets everything go.

What has gone is checked by the kernel, which keeps only what is in flight; and
measured, window by window of `time_ns`. A window is reported once, when the watermark
has passed it and nothing waits for it. A row that comes after that is checked,
but measured no more, and counted.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from math import ceil
from typing import NamedTuple

import numpy as np

from .._compiled import Longs
from ..check import Columns, Kernel
from ..check.columns import DELIVER as _DELIVER
from ..check.columns import SEND as _SEND
from ..check.kernel import Found, Odd
from ..check.loop import FOUND, SET_ASIDE
from ..trace import DELIVER, SEND, Event

__all__ = ["LateRow", "LiveRun", "LiveViolation", "LiveWindow"]

_FOUND = 4096
"""The most violations that are reported for one batch; all are counted."""

NO_SEND = "its send did not come in time, or it was delivered before"
TOO_LATE = "came after rows that follow it"
SEND_TOO_LATE = "came after its delivery had gone without it"
WINDOW_TOLD = "came after its window was reported; checked, but not measured"
SENT_AGAIN = "sent a second time, or out of order"
BY_ANOTHER = "sent by another process than its origin"


class LiveViolation(NamedTuple):
    """`process` delivered `second` without `first`, which happened before."""

    process: str
    seq: int
    time_ns: int
    first: tuple[str, int]
    second: tuple[str, int]


class LateRow(NamedTuple):
    """A row that took no part, and why."""

    process: str
    seq: int | None
    time_ns: int
    reason: str


class LiveWindow(NamedTuple):
    """What happened from `start_ns` on, for the length of a window.

    Latencies are of what was delivered in it; `in_flight` is how many copies were
    sent and not delivered when it ended.
    """

    start_ns: int
    events: int
    sent: int
    delivered: int
    violations: int
    in_flight: int
    latency_mean_ns: float | None
    latency_p50_ns: int | None
    latency_p99_ns: int | None
    latency_max_ns: int | None


LiveFinding = LiveViolation | LateRow | LiveWindow


class _Live(Kernel):
    """A kernel whose results are taken away batch by batch."""

    def take(self) -> tuple[Longs, Longs]:
        """Violations and rows set aside since the last time."""
        found, odd = self.found.copy(), self.odd.copy()
        self._state.counters[FOUND] = 0
        self._state.counters[SET_ASIDE] = 0
        self._odd.clear()
        return found, odd


@dataclass
class _OpenWindow:
    """A window that something may still come for."""

    events: int = 0
    sent: int = 0
    copies: int = 0
    violations: int = 0
    latencies: list[int] = field(default_factory=list)


class LiveRun:
    """The state of one run: a value, which can be stored and taken up again."""

    def __init__(self, bound_ns: int, window_ns: int) -> None:
        self.bound_ns, self.window_ns = bound_ns, window_ns
        self.rows = 0
        self.latest: int | None = None
        """The greatest `time_ns` that was seen."""
        self._ids: dict[str, int] = {}
        self._waiting: dict[str, list[Event]] = {}
        self._last_seq: dict[str, int] = {}
        self._last_mid: dict[str, int] = {}
        self._kernel = _Live(examples=_FOUND)
        self._flying: dict[tuple[str, int], list[int]] = {}
        """Of each message in flight: when it was sent, and how many copies are left."""
        self._gave_up: set[tuple[str | None, int | None]] = set()
        """Messages whose deliveries went without their sends."""
        self._windows: dict[int, _OpenWindow] = {}
        self._next_window: int | None = None
        """The first window that was not told."""
        self._too_late = _OpenWindow()
        """What came too late for its window."""
        self._in_flight = 0
        """Copies in flight at its start."""
        self.timed_out = False
        """Whether the run was taken for ended once already."""

    @property
    def pending(self) -> int:
        """How many rows wait for their turn."""
        return sum(len(rows) for rows in self._waiting.values())

    @property
    def may_hear_more(self) -> bool:
        """Whether to remember the run for a while after its end: some messages are in flight."""
        return self._kernel.undelivered > 0

    def add(self, events: Iterable[Event]) -> list[LateRow]:
        """Take rows in; returns those that come too late."""
        late = []
        for event in sorted(events, key=lambda e: (e.process, e.seq)):
            if event.time_ns is None:
                event = event._replace(time_ns=self.latest or 0)
            assert event.time_ns is not None
            self.latest = max(event.time_ns, self.latest or event.time_ns)
            if event.seq <= self._last_seq.get(event.process, -1):
                late.append(LateRow(event.process, event.seq, event.time_ns, TOO_LATE))
            else:
                self._waiting.setdefault(event.process, []).append(event)
        for rows in self._waiting.values():
            rows.sort(key=lambda e: e.seq)
        return late

    def advance(self, *, ended: bool = False) -> list[LiveFinding]:
        """Let everything go whose turn it is; returns what there is to tell."""
        if self.latest is None:
            return []
        until = self.latest + 1 if ended else self.latest - self.bound_ns
        told: list[LiveFinding] = []
        gone = self._gone(until, told)
        self._check(gone, told)
        told += self._closed(until, ended)
        return told

    # -- whose turn it is ----------------------------------------------------------

    def _gone(self, until: int, told: list[LiveFinding]) -> list[Event]:
        """Rows up to a time, in an order in which they can have happened."""
        queues = {p: deque(rows) for p, rows in sorted(self._waiting.items()) if rows}
        sends = {(e.origin, e.mid) for q in queues.values() for e in q if e.kind == SEND}
        gone: list[Event] = []

        def blocked(event: Event) -> bool:
            """Does it wait for its send?"""
            return (
                event.kind == DELIVER
                and (event.mid or 0) > self._last_mid.get(event.origin or "", -1)
                and (event.origin, event.mid) in sends
            )

        while True:
            moved = False
            stuck: list[Event] = []
            for queue in queues.values():
                while queue and (queue[0].time_ns or 0) <= until:
                    if blocked(queue[0]):
                        stuck.append(queue[0])
                        break
                    moved = True
                    event = queue.popleft()
                    if self._accepted(event, told):
                        gone.append(event)
            if moved:
                continue
            hopeless = self._hopeless(stuck, queues)
            if not hopeless:
                break
            # A cycle: that cannot have happened. Somebody has to go without.
            first = min(hopeless, key=lambda e: (e.time_ns or 0, e.process))
            sends.discard((first.origin, first.mid))
        self._waiting = {p: list(queue) for p, queue in queues.items() if queue}
        return gone

    @staticmethod
    def _hopeless(stuck: list[Event], queues: dict[str, deque[Event]]) -> list[Event]:
        """Those that wait for each other, and not for a process that has time yet."""
        waits = {event.process: event.origin or "" for event in stuck}
        moving = {p for p, queue in queues.items() if queue and p not in waits}
        while True:
            more = {p for p, origin in waits.items() if p not in moving and origin in moving}
            if not more:
                return [event for event in stuck if event.process not in moving]
            moving |= more

    def _accepted(self, event: Event, told: list[LiveFinding]) -> bool:
        """Note that a row is gone; is it one for the kernel?"""
        self._last_seq[event.process] = event.seq
        self.rows += 1
        if event.kind == SEND:
            reason = ""
            if event.origin != event.process:
                reason = BY_ANOTHER
            elif (event.mid or 0) <= self._last_mid.get(event.process, -1):
                reason = SENT_AGAIN
            elif (event.origin, event.mid) in self._gave_up:
                self._gave_up.discard((event.origin, event.mid))
                reason = SEND_TOO_LATE
            if reason:
                told.append(LateRow(event.process, event.seq, event.time_ns or 0, reason))
                return False
            self._last_mid[event.process] = event.mid or 0
        elif event.kind == DELIVER and (event.mid or 0) > self._last_mid.get(
            event.origin or "", -1
        ):
            self._gave_up.add((event.origin, event.mid))
        return True

    # -- the check -----------------------------------------------------------------

    def _id(self, name: str | None) -> int:
        return self._ids.setdefault(name or "", len(self._ids))

    def _check(self, events: list[Event], told: list[LiveFinding]) -> None:
        rows = [e for e in events if e.kind in (SEND, DELIVER)]
        position = self.rows - len(rows)
        if rows:
            self._kernel.feed(self._columns(rows), len(self._ids), position)
        found, odd = self._kernel.take()
        names = list(self._ids)
        unmatched = {(row[Odd.PROCESS], row[Odd.SEQ]) for row in odd.tolist()}
        times = {(e.process, e.seq): e.time_ns or 0 for e in rows}
        for event in events:
            self._measure(event, (self._ids.get(event.process, -1), event.seq) in unmatched, told)
        for row in odd.tolist():
            process, seq = names[row[Odd.PROCESS]], row[Odd.SEQ]
            told.append(LateRow(process, seq, times[process, seq], NO_SEND))
        for row in found.tolist():
            process, seq = names[row[Found.PROCESS]], row[Found.SEQ]
            time = times[process, seq]
            if not self._was_told(time):
                self._window(time).violations += 1
            first = names[row[Found.FIRST_ORIGIN]], row[Found.FIRST_MID]
            second = names[row[Found.ORIGIN]], row[Found.MID]
            told.append(LiveViolation(process, seq, time, first, second))

    def _columns(self, rows: list[Event]) -> Columns:
        peers = [[self._id(name) for name in e.peers] for e in rows]
        first = np.zeros(len(rows) + 1, np.int32)
        np.cumsum([len(names) for names in peers], out=first[1:])
        return Columns(
            np.array([_SEND if e.kind == SEND else _DELIVER for e in rows], np.int8),
            np.array([self._id(e.process) for e in rows], np.int32),
            np.array([e.seq for e in rows], np.int64),
            np.array([self._id(e.origin) for e in rows], np.int32),
            np.array([e.mid for e in rows], np.int64),
            first,
            np.array([name for names in peers for name in names], np.int32),
        )

    # -- windows -------------------------------------------------------------------

    def _window(self, time: int) -> _OpenWindow:
        return self._windows.setdefault(time // self.window_ns, _OpenWindow())

    def _was_told(self, time: int) -> bool:
        return self._next_window is not None and time // self.window_ns < self._next_window

    def _measure(self, event: Event, unmatched: bool, told: list[LiveFinding]) -> None:
        window = self._too_late
        if self._was_told(event.time_ns or 0):
            told.append(LateRow(event.process, event.seq, event.time_ns or 0, WINDOW_TOLD))
        else:
            window = self._window(event.time_ns or 0)
        window.events += 1
        message = event.origin or "", event.mid or 0
        if event.kind == SEND:
            window.sent += 1
            copies = len(set(event.peers))
            window.copies += copies
            if copies:
                self._flying[message] = [event.time_ns or 0, copies]
        elif event.kind == DELIVER and not unmatched and message in self._flying:
            flying = self._flying[message]
            window.latencies.append((event.time_ns or 0) - flying[0])
            flying[1] -= 1
            if flying[1] == 0:
                del self._flying[message]

    def _closed(self, until: int, ended: bool) -> Iterator[LiveWindow]:
        """Windows for which nothing can come any more, in order."""
        held = [e.time_ns or 0 for rows in self._waiting.values() for e in rows]
        limit = min([until, *held]) if not ended else until
        for number in sorted(self._windows):
            if (number + 1) * self.window_ns > limit and not ended:
                break
            self._next_window = number + 1
            yield self._told(number, self._windows.pop(number))

    def _told(self, number: int, window: _OpenWindow) -> LiveWindow:
        values = sorted(window.latencies)
        late, self._too_late = self._too_late, _OpenWindow()
        self._in_flight += window.copies + late.copies - len(values) - len(late.latencies)

        def percentile(share: float) -> int | None:
            return values[max(ceil(share * len(values)), 1) - 1] if values else None

        return LiveWindow(
            number * self.window_ns,
            window.events,
            window.sent,
            len(values),
            window.violations,
            self._in_flight,
            sum(values) / len(values) if values else None,
            percentile(0.5),
            percentile(0.99),
            values[-1] if values else None,
        )
