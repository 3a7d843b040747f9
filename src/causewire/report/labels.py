"""Placement of labels that do not overlap, and of bars next to each other."""

from __future__ import annotations

from collections.abc import Callable, Sequence

__all__ = ["Room", "lanes"]

_SHIFTS = (0.0, 5.0, -5.0, 10.0, -10.0)
_SPACE = 4.0
"""Between two labels of a line."""


class Room:
    """The space that labels take so far; a label is placed where no earlier one is."""

    def __init__(self, begin: float, end: float) -> None:
        self._begin = begin
        self._end = end
        self._taken: list[tuple[float, float, float, float]] = []

    def claim(
        self, x: float, width: float, height: float, baseline: Callable[[float], float]
    ) -> tuple[float, float] | None:
        """Return the centre and the baseline of a label that belongs at `x`.

        `baseline` gives the baseline for a centre. Returns None if there is no room
        nearby.
        """
        half = width / 2
        least, most = self._begin + half, self._end - half
        for shift in _SHIFTS:
            centre = min(max(x + shift, least), most)
            y = baseline(centre)
            box = (centre - half, y - height, centre + half, y)
            if not any(_overlap(box, other) for other in self._taken):
                self._taken.append(box)
                return centre, y
        return None


def _overlap(a: tuple[float, float, float, float], b: tuple[float, float, float, float]) -> bool:
    return a[0] < b[2] + _SPACE and b[0] - _SPACE < a[2] and a[1] < b[3] and b[1] < a[3]


def lanes(bars: Sequence[tuple[float, float]], most: int) -> list[int]:
    """Return a lane for each bar, so that bars in one lane do not overlap.

    If more than `most` are needed, the rest share the last.
    """
    free: list[float] = []
    result = [0] * len(bars)
    for index in sorted(range(len(bars)), key=lambda k: bars[k]):
        begin, end = bars[index]
        lane = next((k for k, until in enumerate(free) if until <= begin), len(free))
        if lane == len(free) and lane < most:
            free.append(end)
        lane = min(lane, most - 1)
        free[lane] = max(free[lane], end)
        result[index] = lane
    return result
