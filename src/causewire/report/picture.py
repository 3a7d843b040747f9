"""From the rows of a trace to the things that a space-time diagram shows.

A row is a point on the line of its process. Arrows join a departure with its
arrival; a trace does not number packets, so they are matched by what they are
about, by their ends and by their order. Bars are the times that a message waits:
from its causal send to its release, and from its arrival to its delivery.

Traces that have only `send` and `deliver` rows (somebody's log) are drawn as
well: a message then goes straight from the one to the other.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from ..trace.schema import DELIVER, HELD, HELD_FOR, LANE, RECEIVE, RELEASE, SEND, Event

__all__ = ["Arrow", "Bar", "Fault", "MessageKey", "Picture", "message_of", "natural"]

MessageKey = tuple[str, int]
"""A message: who sent it, and its number there."""

MARKS = (SEND, RELEASE, RECEIVE, DELIVER)
"""Kinds of rows that every diagram marks."""

FAULT = "fault_"
"""Begins the kinds of rows that say what happened to the network."""

_LEAVES = {RELEASE: "message", "retransmit": "message"}
_COMES = {RECEIVE: "message", "duplicate": "message"}
for _sort in ("ack", "permit", "control"):
    _LEAVES[_sort] = _sort
    _COMES[f"{_sort}_receive"] = _sort


class Arrow(NamedTuple):
    """A packet on its way; an end is None if it is not among the rows drawn."""

    sort: str
    """`message`, `ack`, `permit` or `control`."""
    source: str
    target: str
    leaves: int | None
    comes: int | None
    message: MessageKey | None
    again: bool = False
    """A repetition: sent once more by its sender, or doubled by the network."""
    lost: bool = False


class Bar(NamedTuple):
    """A time that passes at a process; an end is None if it is not among the rows."""

    sort: str
    """`held` (in the send buffer), `waits` (in the receive buffer) or `job`."""
    process: str
    begin: int | None
    end: int | None
    message: MessageKey | None


class Fault(NamedTuple):
    """Something that happened to the network, and to whose links."""

    time: int
    kind: str
    processes: tuple[str, ...]


@dataclass
class Picture:
    """Everything about some rows of one run that can be drawn."""

    rows: list[Event]
    """In an order that respects processes and, where possible, messages."""
    processes: list[str]
    arrows: list[Arrow] = field(default_factory=list)
    bars: list[Bar] = field(default_factory=list)
    faults: list[Fault] = field(default_factory=list)
    held_for: dict[tuple[str, MessageKey], list[MessageKey]] = field(default_factory=dict)
    """What messages waited for in the receive buffer of a process, where the trace says it."""
    lanes: dict[MessageKey, list[str]] = field(default_factory=dict)
    """The peers for which messages waited in the send buffer, likewise."""

    @classmethod
    def of(cls, events: Iterable[Event], processes: Sequence[str] | None = None) -> Picture:
        """Return the picture of rows, for these processes in this order, or for all."""
        everything = list(events)
        if processes is None:
            processes = sorted({event.process for event in everything}, key=natural)
        shown = set(processes)
        rows = [
            event
            for event in everything
            if event.process in shown and not event.kind.startswith(FAULT)
        ]
        rows.sort(key=lambda event: (event.process, event.seq))
        times = _steady_times(rows)
        before = _causes(rows)
        order = _causal_order(rows, before, times)
        picture = cls([rows[i] for i in order], list(processes), faults=_faults(everything))
        picture._find_arrows(shown)
        picture._find_bars()
        picture._find_reasons()
        return picture

    def links(self) -> list[tuple[int, int]]:
        """Yield pairs of rows: the departure and the arrival of a packet."""
        return [
            (arrow.leaves, arrow.comes)
            for arrow in self.arrows
            if arrow.leaves is not None and arrow.comes is not None
        ]

    def times(self) -> list[int] | None:
        """Return the time of each row, ascending along a process, or None if rows lack times."""
        return _steady_times(self.rows)

    # -- arrows ----------------------------------------------------------------

    def _find_arrows(self, shown: set[str]) -> None:
        kinds = {row.kind for row in self.rows}
        leaves = _LEAVES if RELEASE in kinds else {**_LEAVES, SEND: "message"}
        comes = _COMES if RECEIVE in kinds else {**_COMES, DELIVER: "message"}
        ways: dict[tuple[str, str, str, MessageKey | None], _Way] = {}
        for index, row in enumerate(self.rows):
            message = message_of(row)
            if row.kind in leaves:
                for peer in row.peers:
                    if peer in shown and peer != row.process:
                        key = (leaves[row.kind], row.process, peer, message)
                        ways.setdefault(key, _Way()).leave(index)
            elif row.kind == "drop":
                for peer in row.peers:
                    key = (_sort_of_drop(row), row.process, peer, message)
                    if key in ways:
                        ways[key].drop()
            elif row.kind in comes:
                # A delivery says whom the message is from; a receipt, who carried it.
                source = row.peers[0] if row.peers else row.origin or ""
                if source in shown and source != row.process:
                    key = (comes[row.kind], source, row.process, message)
                    ways.setdefault(key, _Way()).come(index)
        found = [
            Arrow(sort, source, target, leaving, coming, message, again, lost)
            for (sort, source, target, message), way in ways.items()
            for leaving, coming, again, lost in way.pairs(self.rows)
        ]
        found.sort(key=lambda arrow: (arrow.sort, _first(arrow), arrow.target))
        self.arrows = found

    # -- why messages waited ----------------------------------------------------

    def _find_reasons(self) -> None:
        came: dict[str, MessageKey | None] = {}
        for row in self.rows:
            message = message_of(row)
            if row.kind in (RECEIVE, HELD):
                came[row.process] = message
            elif row.kind == LANE and message is not None:
                self.lanes.setdefault(message, []).extend(row.peers)
            elif row.kind == HELD_FOR and message is not None:
                waits = came.get(row.process)
                if waits is not None:
                    self.held_for.setdefault((row.process, waits), []).append(message)

    # -- bars ------------------------------------------------------------------

    def _find_bars(self) -> None:
        kinds = {row.kind for row in self.rows}
        sent: dict[MessageKey, int] = {}
        released: dict[MessageKey, int] = {}
        left: dict[MessageKey, set[str]] = {}
        arrived: dict[tuple[str, MessageKey], int] = {}
        jobs: dict[tuple[str, MessageKey | None], int] = {}
        bars: list[Bar] = []
        for index, row in enumerate(self.rows):
            message = message_of(row)
            if row.kind == "job_start":
                jobs[row.process, message] = index
            elif row.kind == "job_end":
                begin = jobs.pop((row.process, message), None)
                bars.append(Bar("job", row.process, begin, index, message))
            elif message is None:
                continue
            elif row.kind == SEND:
                sent[message] = index
                left[message] = set(row.peers) - {row.process}
            elif row.kind == RELEASE:
                released[message] = index
                left.setdefault(message, set()).difference_update(row.peers)
            elif row.kind == RECEIVE:
                arrived.setdefault((row.process, message), index)
            elif row.kind == DELIVER and RECEIVE in kinds and message[0] != row.process:
                begin = arrived.pop((row.process, message), None)
                bars.append(Bar("waits", row.process, begin, index, message))
        if RELEASE in kinds:
            for message in sorted({*sent, *released}):
                begin, end = sent.get(message), released.get(message)
                if left[message] or end is not None:
                    end = None if left[message] else end
                    bars.append(Bar("held", message[0], begin, end, message))
        if DELIVER in kinds:
            bars += [Bar("waits", p, i, None, m) for (p, m), i in arrived.items()]
        bars += [Bar("job", p, i, None, m) for (p, m), i in jobs.items()]
        bars.sort(key=lambda bar: (bar.sort, bar.process, _bar_first(bar)))
        self.bars = bars


class _Way:
    """The packets between two processes about one message, or about none."""

    def __init__(self) -> None:
        self.leaving: list[int] = []
        self.lost: list[bool] = []
        self.coming: list[int] = []

    def leave(self, index: int) -> None:
        self.leaving.append(index)
        self.lost.append(False)

    def drop(self) -> None:
        """Mark the last departure that is not yet known to be lost as lost."""
        for k in reversed(range(len(self.lost))):
            if not self.lost[k]:
                self.lost[k] = True
                return

    def come(self, index: int) -> None:
        self.coming.append(index)

    def pairs(self, rows: Sequence[Event]) -> list[tuple[int | None, int | None, bool, bool]]:
        """Yield departures with their arrivals, in order; extra arrivals go to the last one."""
        free = [i for i, lost in zip(self.leaving, self.lost, strict=True) if not lost]
        repeated = {i for i in self.leaving if rows[i].kind == "retransmit"}
        result: list[tuple[int | None, int | None, bool, bool]] = [
            (i, None, i in repeated, True)
            for i, lost in zip(self.leaving, self.lost, strict=True)
            if lost
        ]
        used = 0
        for coming in self.coming:
            double = rows[coming].kind == "duplicate"
            if used < len(free) and free[used] < coming:
                leaving = free[used]
                used += 1
                result.append((leaving, coming, double or leaving in repeated, False))
            else:  # a copy that the network made
                earlier = [i for i in self.leaving if i < coming]
                again = double or len(earlier) > 0
                result.append((earlier[-1] if earlier else None, coming, again, False))
        result += [(i, None, i in repeated, False) for i in free[used:]]
        return result


def message_of(row: Event) -> MessageKey | None:
    """Return the message that a row is about, or None."""
    return None if row.origin is None or row.mid is None else (row.origin, row.mid)


def _faults(events: Iterable[Event]) -> list[Fault]:
    """What happened to the network: one fault has a row at each process it concerns."""
    found: dict[tuple[int, str], list[str]] = {}
    for event in events:
        if event.kind.startswith(FAULT) and event.time_ns is not None:
            kind = event.kind.removeprefix(FAULT)
            found.setdefault((event.time_ns, kind), []).append(event.process)
    return [
        Fault(time, kind, tuple(sorted(names, key=natural)))
        for (time, kind), names in sorted(found.items())
    ]


def natural(name: str) -> tuple[tuple[int, int, str], ...]:
    """Return a sort key by which p2 comes before p10."""
    parts: list[tuple[int, int, str]] = []
    digits = ""
    for c in [*name, ""]:
        if c.isascii() and c.isdigit():
            digits += c
            continue
        if digits:
            parts.append((0, int(digits), digits))
            digits = ""
        if c:
            parts.append((1, 0, c))
    return tuple(parts)


def _sort_of_drop(row: Event) -> str:
    """Return the kind of a packet that was lost, which follows from the message in its row."""
    if row.payload_bytes is not None:
        return "message"
    if row.origin is None:
        return "control"
    return "permit" if row.origin == row.process else "ack"


def _first(arrow: Arrow) -> tuple[int, int]:
    return (
        arrow.leaves if arrow.leaves is not None else -1,
        arrow.comes if arrow.comes is not None else -1,
    )


def _bar_first(bar: Bar) -> tuple[int, int]:
    return (
        bar.begin if bar.begin is not None else -1,
        bar.end if bar.end is not None else 1 << 60,
    )


# -- the order of rows -----------------------------------------------------------


def _steady_times(rows: Sequence[Event]) -> list[int] | None:
    """Return times that never decrease along a process (a clock may have been set back)."""
    latest: dict[str, int] = {}
    times = []
    for row in rows:
        if row.time_ns is None:
            return None
        time = max(row.time_ns, latest.get(row.process, row.time_ns))
        latest[row.process] = time
        times.append(time)
    return times


def _causes(rows: Sequence[Event]) -> list[list[int]]:
    """Return, for each row (by process and seq), the rows that must come before it."""
    sends: dict[MessageKey, int] = {}
    for index, row in enumerate(rows):
        message = message_of(row)
        if row.kind == SEND and message is not None:
            sends.setdefault(message, index)
    before: list[list[int]] = []
    for index, row in enumerate(rows):
        causes = [index - 1] if index and rows[index - 1].process == row.process else []
        message = message_of(row)
        if row.kind in (RECEIVE, DELIVER, "duplicate") and message in sends:
            cause = sends[message]
            if rows[cause].process != row.process:
                causes.append(cause)
        before.append(causes)
    return before


def _causal_order(
    rows: Sequence[Event], before: Sequence[Sequence[int]], times: Sequence[int] | None
) -> list[int]:
    """Return the indexes of rows in causal order, and by time where that does not contradict."""

    def key(index: int) -> tuple[int, int, int]:
        row = rows[index]
        time = times[index] if times is not None else row.lamport or 0
        return time, row.lamport or 0, index

    after: list[list[int]] = [[] for _ in rows]
    missing = [len(causes) for causes in before]
    for index, causes in enumerate(before):
        for cause in causes:
            after[cause].append(index)
    ready = [key(index) for index in range(len(rows)) if not missing[index]]
    heapq.heapify(ready)
    order: list[int] = []
    while ready:
        index = heapq.heappop(ready)[2]
        order.append(index)
        for effect in after[index]:
            missing[effect] -= 1
            if not missing[effect]:
                heapq.heappush(ready, key(effect))
    # Rows of a cycle describe nothing that can have happened; they are shown all the same.
    order += sorted(set(range(len(rows))) - set(order), key=key)
    return order
