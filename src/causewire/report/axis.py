"""The horizontal axis of a space-time diagram: where events are placed.

Time is drawn to scale where there is room for it. Things that happen at one
instant at a process (a message is received, delivered, answered) would fall on
one point, so events of a process keep a distance, and where they crowd the axis
is stretched, for all processes alike: an instant is at one place everywhere, and
what is further right happened later. With a scale of zero only the order is left.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

from ..trace.schema import DELIVER, RECEIVE, RELEASE, SEND
from .picture import Picture, message_of

__all__ = ["Axis", "Tick", "place", "readable"]

_UNITS = ((10**9, "s"), (10**6, "ms"), (10**3, "µs"), (1, "ns"))
_MARKED = (
    SEND,
    RELEASE,
    RECEIVE,
    DELIVER,
    "retransmit",
    "duplicate",
    "job_start",
    "job_end",
    "crash",
    "restart",
)


class Tick(NamedTuple):
    """A position on the axis, and its label."""

    x: float
    label: str


class Axis:
    """The positions of all rows, and of moments between them."""

    def __init__(
        self, x: list[float], moments: list[int], places: list[float], width: float
    ) -> None:
        self.x = x
        self.width = width
        self._moments = moments
        self._places = places

    def at(self, moment: int) -> float:
        """Return the position of a moment, between the rows around it."""
        moments, places = self._moments, self._places
        k = bisect_right(moments, moment) - 1
        if k < 0:
            return places[0]
        if k + 1 >= len(moments):
            return places[-1]
        share = (moment - moments[k]) / (moments[k + 1] - moments[k])
        return places[k] + share * (places[k + 1] - places[k])

    def ticks(self, start: int, distance: float) -> tuple[str, list[Tick]]:
        """Round moments, counted from `start`, not closer than `distance`; and their unit."""
        if not self._moments:
            return "", []
        first, last = self._moments[0] - start, self._moments[-1] - start
        least = _step((last - first) / max(1.0, self.width / distance))
        choices = [self._every(step, start, first, last) for step in _steps(least)]
        for unit, ticks in choices:
            if all(b.x - a.x >= distance for a, b in pairwise(ticks)):
                return unit, ticks
        return choices[0][0], _thinned(choices[0][1], distance)

    def _every(self, step: int, start: int, first: int, last: int) -> tuple[str, list[Tick]]:
        fair = max(step, last // 10)
        size, unit = next((size, name) for size, name in _UNITS if size <= fair)
        begin = -(-first // step) * step
        moments = range(begin, last + 1, step)
        return unit, [Tick(self.at(moment + start), _decimal(moment, size)) for moment in moments]


def _thinned(ticks: Sequence[Tick], distance: float) -> list[Tick]:
    """Return the ticks without those that are too close to the one before."""
    kept: list[Tick] = []
    for tick in ticks:
        if not kept or tick.x - kept[-1].x >= distance:
            kept.append(tick)
    return kept


def _step(least: float) -> int:
    """Return the next larger of 1, 2, 5, 10, 20, 50, ..."""
    power = 1
    while True:
        for digit in (1, 2, 5):
            if digit * power >= least:
                return digit * power
        power *= 10


def _steps(least: int) -> list[int]:
    """Yield candidates for the distance of ticks, from this one upward."""
    steps = [least]
    while len(steps) < 3:
        steps.append(_step(steps[-1] + 1))
    return steps


def _decimal(value: int, unit: int) -> str:
    """Return a number of units as exact text without superfluous digits."""
    sign = "-" if value < 0 else ""
    whole, rest = divmod(abs(value), unit)
    if not rest:
        return f"{sign}{whole}"
    digits = str(rest).zfill(len(str(unit)) - 1).rstrip("0")
    return f"{sign}{whole}.{digits}"


def readable(ns: int) -> str:
    """Return a duration in a suitable unit, with at most four digits."""
    if not ns:
        return "0"
    for size, name in _UNITS:
        if abs(ns) >= size:
            digits = 0 if size == 1 else max(0, 4 - len(str(abs(ns) // size)))
            text = f"{ns / size:.{digits}f}"
            return f"{text.rstrip('0').rstrip('.') if '.' in text else text} {name}"
    raise AssertionError("there is a smallest unit")


def place(picture: Picture, *, to_scale: bool, width: float, gap: float) -> Axis:
    """Return an axis on which every row has its position, within `width` if possible."""
    times = picture.times()
    if times is not None and not to_scale and any(times[a] > times[b] for a, b in picture.links()):
        times = None  # clocks disagree, and only the order is asked for
    keys = times if times is not None else list(range(len(picture.rows)))
    layout = _Layout(picture, keys, gap)
    scale = 0.0
    if to_scale and times is not None and keys and max(keys) > min(keys):
        least = layout.width(0.0)
        low, high = 0.0, width / (max(keys) - min(keys))
        if least < width:
            for _ in range(40):
                scale = (low + high) / 2
                if layout.width(scale) > width:
                    high = scale
                else:
                    low = scale
            scale = low
    x, places = layout.at_scale(scale)
    total = max([width if to_scale else 0.0, *x])
    return Axis(x, layout.moments, places, total)


class _Layout:
    """The rows of a picture, prepared to be placed at different scales."""

    def __init__(self, picture: Picture, keys: Sequence[int], gap: float) -> None:
        self._gap = gap
        number = {name: k for k, name in enumerate(picture.processes)}
        self._process = [number[row.process] for row in picture.rows]
        self._processes = len(number)
        self._slot = [row.kind in _MARKED for row in picture.rows]
        self._mate = _mates(picture)
        self._cause: list[list[int]] = [[] for _ in picture.rows]
        for leaves, comes in picture.links():
            if keys[leaves] <= keys[comes]:
                self._cause[comes].append(leaves)
        groups: dict[int, list[int]] = {}
        for index, key in enumerate(keys):  # in causal order
            groups.setdefault(key, []).append(index)
        self.moments = sorted(groups)
        self._groups = [groups[moment] for moment in self.moments]
        self._openers = [self._of_group(group) for group in self._groups]

    def _of_group(self, group: Sequence[int]) -> tuple[list[int], list[int]]:
        """What the place of a moment depends on: processes, and earlier departures."""
        processes: dict[int, bool] = {}
        causes: list[int] = []
        members = set(group)
        for index in group:
            processes.setdefault(self._process[index], self._slot[index])
            causes += [cause for cause in self._cause[index] if cause not in members]
        return [p for p, slot in processes.items() if slot], causes

    def width(self, scale: float) -> float:
        return max(self.at_scale(scale)[0], default=0.0)

    def at_scale(self, scale: float) -> tuple[list[float], list[float]]:
        """Places of rows and of moments, with `scale` for a unit of time at least."""
        gap = self._gap
        x = [0.0] * len(self._slot)
        places: list[float] = []
        last = [-gap] * self._processes
        here = 0.0
        before = self.moments[0] if self.moments else 0
        for moment, group, (processes, causes) in zip(
            self.moments, self._groups, self._openers, strict=True
        ):
            here += scale * (moment - before)
            before = moment
            for p in processes:
                here = max(here, last[p] + gap)
            for cause in causes:
                here = max(here, x[cause] + gap)
            places.append(here)
            for index in group:
                mate = self._mate[index]
                if mate is not None:
                    x[index] = x[mate]
                    continue
                p = self._process[index]
                least = last[p] + gap if self._slot[index] else last[p]
                for cause in self._cause[index]:
                    least = max(least, x[cause] + gap)
                x[index] = last[p] = max(here, least)
        return x, places


def _mates(picture: Picture) -> list[int | None]:
    """Rows that share the place of an earlier one.

    A release is put where its send is, if it happened at the same instant, and a
    delivery where the message arrived, if nothing came between.
    """
    mates: list[int | None] = []
    sends: dict[tuple[object, ...], int] = {}
    newest: dict[str, int] = {}
    for index, row in enumerate(picture.rows):
        key = (row.process, message_of(row), row.time_ns)
        mate: int | None = None
        if row.kind == SEND and row.time_ns is not None:
            sends[key] = index
        elif row.kind == RELEASE and key in sends:
            mate = sends[key]
        elif row.process in newest:
            other = newest[row.process]
            before = picture.rows[other]
            if (before.process, message_of(before), before.time_ns) == key and (
                (before.kind, row.kind) in ((SEND, RELEASE), (RECEIVE, DELIVER))
            ):
                mate = other
        mates.append(mate)
        if row.kind in _MARKED:
            newest[row.process] = index
    return mates
