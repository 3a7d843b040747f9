"""Which rows of a trace to draw: a window on one run, small enough to be read.

A trace may be longer than memory, so it is read twice: once to find the run, its
beginning and what is looked for, and once to collect the rows of the window. Where
rows have times they are chosen by time, else by Lamport time, else in the order of
the file. What does not fit on a page is left out, whole processes or the ends of the
window, and `TimeWindow` says how much that was.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from ..trace.reader import Trace
from ..trace.schema import DELIVER, RECEIVE, RELEASE, SEND, Event, TraceError
from .picture import FAULT, MessageKey, message_of, natural
from .violations import Overtaking

__all__ = ["ROWS_AT_ONCE", "Edge", "TimeWindow", "choose"]

ROWS_AT_ONCE = 100_000
"""Rows of other processes around what is looked for; if there are more, they are not drawn."""

_BEFORE_AND_AFTER = {"violation": 0.3, "message": 1.0}
"""How much to show around what is looked for, as a share of its length."""

_WORD = 10_000
"""Rows between two words about progress."""

Edge = int | tuple[str, int]
"""Where a window begins or ends: nanoseconds since the run began, or a process and a seq."""


class TimeWindow(NamedTuple):
    """The rows of a run that are drawn, and how much is left out."""

    run: str
    runs: int
    """How many runs the trace has."""
    start: int | None
    """The first time of the run."""
    events: list[Event]
    processes: list[str]
    rows: int
    """Rows of the run."""
    left_out: int
    """Rows within the window that are not drawn."""
    hidden: list[str]
    """Processes of the window that are not drawn."""


def choose(
    trace: Trace,
    *,
    run: str | None = None,
    around: MessageKey | None = None,
    violation: Overtaking | None = None,
    processes: Sequence[str] = (),
    begin: Edge | None = None,
    end: Edge | None = None,
    limit: int = 300,
    most: int = 12,
    progress: Callable[[int], None] | None = None,
) -> TimeWindow:
    """Return the rows of a run to draw: a span of time, or around a message or violation.

    Args:
        trace: The trace.
        run: The run; the first one of the trace, if not given.
        around: The message to look for.
        violation: The violation to look for.
        processes: Processes that are drawn in any case.
        begin: Where the window begins: a time, or a row by process and seq.
        end: Where the window ends.
        limit: The maximum number of rows, apart from those that are looked for.
        most: The maximum number of processes, apart from those that are named.
        progress: Called now and then with the number of rows read in this pass.

    Raises:
        TraceError: There is no such run, process, message or row.
    """
    concerns = _concerns(around, violation)
    read = _Reading(trace, progress)
    survey = _Survey.of(read, run, concerns, [edge for edge in (begin, end) if _is_row(edge)])
    strangers = [name for name in processes if name not in survey.processes]
    if strangers:
        known = ", ".join(sorted(survey.processes, key=natural)[:12])
        raise TraceError(trace.name, None, f"no process {strangers[0]!r} (there are {known})")
    if concerns is not None and survey.first is None:
        sought = f"message {around[0]}:{around[1]}" if around else "trace of the violation"
        raise TraceError(trace.name, None, f"there is no {sought} in run {survey.run!r}")
    share = _BEFORE_AND_AFTER["message" if violation is None else "violation"]
    lowest, highest = survey.span(trace, begin, end, share)
    focus = set(survey.focus)
    if processes:
        focus &= set(processes)
    named = set(processes) or None

    def inside(event: Event, number: int) -> bool:
        if named is not None and event.process not in named and not _is_fault(event):
            return False
        if isinstance(begin, tuple) and event.process == begin[0] and event.seq < begin[1]:
            return False  # at the same instant, but before
        if isinstance(end, tuple) and event.process == end[0] and event.seq > end[1]:
            return False
        at = survey.position(event, number)
        return (lowest is None or at >= lowest) and (highest is None or at <= highest)

    rows, faults, total = _collect(read, survey, inside, focus, limit)
    others = _others(rows, focus)
    room = len(others) if named is not None else max(0, most - len(focus))
    kept, hidden = _without(rows, others[room:]), others[room:]
    if concerns is not None:
        first, last = survey.core()
        spare = others[:room] if named is None else []
        while spare and sum(first <= at <= last for at, _ in kept) > limit:
            hidden.append(spare.pop())
            kept = _without(kept, hidden[-1:])
        kept = _nearest(kept, first, last, limit)
    else:
        kept = heapq.nsmallest(limit, kept, key=lambda entry: entry[0])
    present = {event.process for _, event in kept}
    drawn = list(processes) or sorted(present, key=natural)
    events = [event for _, event in sorted(kept, key=lambda e: (e[0], e[1].process, e[1].seq))]
    edges = [at for at, _ in kept]
    events += [f for at, f in faults if edges and min(edges) <= at <= max(edges)]
    if not kept:
        raise TraceError(trace.name, None, f"run {survey.run!r} has no rows in that window")
    return TimeWindow(
        survey.run,
        len(survey.runs),
        survey.start,
        events,
        drawn,
        survey.rows,
        total - len(kept),
        sorted(hidden, key=natural),
    )


def _is_row(edge: Edge | None) -> bool:
    return isinstance(edge, tuple)


def _is_fault(event: Event) -> bool:
    return event.kind.startswith(FAULT)


def _concerns(
    around: MessageKey | None, violation: Overtaking | None
) -> Callable[[Event], bool] | None:
    """Return a test of whether a row is about what is looked for, or None."""
    if violation is not None:
        return violation.concerns
    if around is not None:
        marks = (SEND, RELEASE, RECEIVE, DELIVER)
        return lambda event: event.kind in marks and message_of(event) == around
    return None


class _Reading:
    """The rows of a trace, read from the start each time, with progress."""

    def __init__(self, trace: Trace, progress: Callable[[int], None] | None) -> None:
        self.name = trace.name
        self._trace = trace
        self._progress = progress
        self._rows = 0

    def __iter__(self) -> Iterator[Event]:
        self._rows = 0
        for event in self._trace.events():
            yield event
            self._rows += 1
            if self._progress is not None and self._rows % _WORD == 0:
                self._progress(self._rows)


@dataclass
class _Survey:
    """What is learnt from the first pass over a trace."""

    run: str
    runs: set[str] = field(default_factory=set)
    rows: int = 0
    start: int | None = None
    timed: bool = True
    clocked: bool = True
    processes: set[str] = field(default_factory=set)
    focus: dict[str, None] = field(default_factory=dict)
    """Processes at which something happens that is looked for."""
    first: list[int] | None = None
    last: list[int] | None = None
    """Where that begins and ends: by time, by Lamport time, by number."""
    edges: dict[tuple[str, int], list[int]] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        read: _Reading,
        run: str | None,
        concerns: Callable[[Event], bool] | None,
        edges: Iterable[Edge | None],
    ) -> _Survey:
        wanted = set(edges)
        survey: _Survey | None = None if run is None else cls(run)
        runs: set[str] = set()
        for event in read:
            runs.add(event.run)
            if survey is None:
                survey = cls(event.run)
            if event.run == survey.run:
                survey._take(event, concerns, wanted)
        if not runs:
            raise TraceError(read.name, None, "the trace is empty")
        assert survey is not None
        if run is not None and run not in runs:
            known = ", ".join(map(repr, sorted(runs)[:6])) + (", …" if len(runs) > 6 else "")
            raise TraceError(read.name, None, f"there is no run {run!r} (there are {known})")
        survey.runs = runs
        return survey

    def _take(
        self, event: Event, concerns: Callable[[Event], bool] | None, wanted: set[Edge | None]
    ) -> None:
        places = [event.time_ns or 0, event.lamport or 0, self.rows]
        self.rows += 1
        if event.time_ns is None:
            self.timed = False
        elif self.start is None or event.time_ns < self.start:
            self.start = event.time_ns
        if event.lamport is None:
            self.clocked = False
        self.processes.add(event.process)
        if concerns is not None and concerns(event):
            self.focus[event.process] = None
            self.first = list(map(min, self.first, places)) if self.first else places
            self.last = list(map(max, self.last, places)) if self.last else places
        if (event.process, event.seq) in wanted:
            self.edges[event.process, event.seq] = places

    def _column(self) -> int:
        return 0 if self.timed else 1 if self.clocked else 2

    def position(self, event: Event, number: int) -> int:
        """Return the position of a row; `number` is the number of rows of the run before it."""
        if self.timed:
            return event.time_ns or 0
        return (event.lamport or 0) if self.clocked else number

    def core(self) -> tuple[int, int]:
        """Return where the rows that are looked for begin and end."""
        assert self.first is not None
        assert self.last is not None
        return self.first[self._column()], self.last[self._column()]

    def span(
        self, trace: Trace, begin: Edge | None, end: Edge | None, share: float
    ) -> tuple[int | None, int | None]:
        """Return where the window begins and ends."""
        lowest = highest = None
        if self.first is not None:
            first, last = self.core()
            margin = max(int(share * (last - first)), 1)
            lowest, highest = first - margin, last + margin
        if begin is not None:
            lowest = self._edge(trace, begin)
        if end is not None:
            highest = self._edge(trace, end)
        return lowest, highest

    def _edge(self, trace: Trace, edge: Edge) -> int:
        if isinstance(edge, int):
            if not self.timed:
                what = "has rows without a time: choose a window by PROCESS:SEQ"
                raise TraceError(trace.name, None, what)
            return (self.start or 0) + edge
        if edge not in self.edges:
            what = f"process {edge[0]!r} has no row {edge[1]} in run {self.run!r}"
            raise TraceError(trace.name, None, what)
        return self.edges[edge][self._column()]


_Placed = tuple[int, Event]


def _collect(
    read: _Reading,
    survey: _Survey,
    inside: Callable[[Event, int], bool],
    focus: set[str],
    limit: int,
) -> tuple[list[_Placed], list[_Placed], int]:
    """The rows of the window, as many as could matter; its faults; and how many it has."""
    total = 0
    faults: list[_Placed] = []

    def rows() -> Iterable[_Placed]:
        nonlocal total
        number = others = 0
        for event in read:
            if event.run != survey.run:
                continue
            number += 1
            if not inside(event, number - 1):
                continue
            at = survey.position(event, number - 1)
            if _is_fault(event):
                faults.append((at, event))
                continue
            total += 1
            if focus and event.process not in focus:
                others += 1
                if others > ROWS_AT_ONCE:
                    continue
            yield at, event

    if not focus:
        found = heapq.nsmallest(8 * limit, rows(), key=lambda entry: entry[0])
        return found, faults, total
    found = list(rows())
    if len(found) > ROWS_AT_ONCE and total > len(found):
        found = [entry for entry in found if entry[1].process in focus]
    return found, faults, total


def _others(rows: Sequence[_Placed], focus: set[str]) -> list[str]:
    """Return the other processes, those with most rows in common with the focus first."""
    score: Counter[str] = Counter()
    for _, event in rows:
        if not focus:
            score[event.process] += 1
        elif event.process not in focus:
            score[event.process] += len(focus.intersection(event.peers))
        else:
            score.update(peer for peer in event.peers if peer not in focus)
    everyone = {event.process for _, event in rows}
    return sorted(everyone - focus, key=lambda name: (-score[name], natural(name)))


def _without(rows: Sequence[_Placed], hidden: Sequence[str]) -> list[_Placed]:
    gone = set(hidden)
    return [entry for entry in rows if entry[1].process not in gone]


def _nearest(rows: Sequence[_Placed], first: int, last: int, limit: int) -> list[_Placed]:
    """The rows from `first` to `last`, and as much before and after as there is room for.

    Whatever is cut off is cut off for all processes at the same moment: a hole in
    one of them would look as if nothing had happened there.
    """
    distances = sorted(max(first - at, at - last, 0) for at, _ in rows)
    reach = distances[limit] - 1 if len(rows) > limit else distances[-1] if rows else 0
    return [entry for entry in rows if max(first - entry[0], entry[0] - last) <= max(reach, 0)]
