"""How a trace is shared out: the sizes that decide, and the decision for a long run."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil
from typing import NamedTuple

__all__ = ["Limits", "Shape", "choose"]


@dataclass(frozen=True)
class Limits:
    """What decides how a trace is shared out, in rows unless it says otherwise."""

    large: int = 4_000_000
    """A run from this size on is shared by several tasks."""
    wide: int = 512
    """With this many processes, origins are shared, not time; and a block of
    origins has at least half as many: narrow blocks waste the work that each
    event is."""
    segment: int = 1_000_000
    """No segment is smaller."""
    longest: int = 50_000_000
    """And none is larger, so that little is lost with an executor."""
    share: int = 200_000
    """Small runs: a task gets at least as many rows."""
    enough: int = 3_000_000
    """And a core gets a second task, up to a fourth, only with as many rows for each."""
    memory: int = 1 << 30
    """Bytes of clocks for one task."""


class Shape(NamedTuple):
    """How a run is shared out; one of the two is 1."""

    blocks: int
    segments: int


def choose(rows: int, processes: int, cores: int, limits: Limits, *, growing: bool = True) -> Shape:
    """Origins or time? `growing` says whether mids are known to grow."""
    least = ceil(12 * processes**2 / limits.memory)
    if processes >= limits.wide:
        most = max(1, processes // (limits.wide // 2))
        return Shape(max(least, min(cores, most)), 1)
    many = min(rows // limits.segment, cores * ceil(rows / cores / limits.longest))
    if cores >= 3 and many >= 3 and growing:
        return Shape(1, many)
    return Shape(max(1, least), 1)
