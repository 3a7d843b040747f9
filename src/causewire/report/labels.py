"""Room along a line: labels that do not collide, and bars side by side."""

from __future__ import annotations

from bisect import insort
from collections.abc import Sequence

__all__ = ["Track", "lanes"]

_SHIFTS = (0.0, 5.0, -5.0, 10.0, -10.0)


class Track:
    """One line of text along a process: first come, first served."""

    def __init__(self, begin: float, end: float, space: float = 4.0) -> None:
        self._begin = begin
        self._end = end
        self._space = space
        self._taken: list[tuple[float, float]] = []

    def claim(self, x: float, width: float, *, always: bool = False) -> float | None:
        """Where to centre a label that belongs at `x`; None if there is no room near it.

        With `always` it is put where it belongs even so.
        """
        half = width / 2
        least, most = self._begin + half, self._end - half
        places = [min(max(x + shift, least), most) for shift in _SHIFTS]
        for centre in places:
            if not self._collides(centre - half, centre + half):
                insort(self._taken, (centre - half, centre + half))
                return centre
        if not always:
            return None
        insort(self._taken, (places[0] - half, places[0] + half))
        return places[0]

    def _collides(self, left: float, right: float) -> bool:
        return any(
            left < end + self._space and begin - self._space < right for begin, end in self._taken
        )


def lanes(bars: Sequence[tuple[float, float]], most: int) -> list[int]:
    """A lane for each bar, so that bars of a lane do not overlap.

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
