"""How a trace is shared out: the sizes that decide, and the decision for a long run."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil
from typing import NamedTuple

__all__ = ["Limits", "Shape", "blocks_for", "choose"]


@dataclass(frozen=True)
class Limits:
    """What decides how a trace is shared out, in rows unless it says otherwise."""

    large: int = 4_000_000
    """A run from this size on is shared by several tasks."""
    wide: int = 512
    """With this many processes, clocks are the work: no time is spent on a second pass
    over segments. And a block of origins has at least half as many: narrow blocks waste
    the work that each event is."""
    segment: int = 1_000_000
    """No segment is smaller, and no stretch."""
    longest: int = 50_000_000
    """And none is larger, so that little is lost with an executor."""
    flight: int = 1_000_000
    """Copies in flight where a stretch begins, at most: they go to the driver, and where
    messages take that long there is no point in stretches."""
    share: int = 200_000
    """Small runs: a task gets at least as many rows."""
    enough: int = 3_000_000
    """And a core gets a second task, up to a fourth, only with as many rows for each."""
    memory: int = 1 << 30
    """Bytes of clocks for one task."""


class Shape(NamedTuple):
    """How a run is shared out: one of these is more than 1, or none."""

    blocks: int = 1
    segments: int = 1
    stretches: int = 1


def choose(rows: int, processes: int, cores: int, limits: Limits, *, growing: bool = True) -> Shape:
    """Stretches, time or origins? `growing` says whether mids are known to grow."""
    least = ceil(12 * processes**2 / limits.memory)
    if least > 1:
        return Shape(blocks=max(least, blocks_for(processes, cores, limits)))
    many = min(rows // limits.segment, cores * ceil(rows / cores / limits.longest))
    if processes < limits.wide and cores >= 3 and many >= 3 and growing:
        return Shape(segments=many)
    return Shape(stretches=max(1, many) if cores > 1 else 1)


def blocks_for(processes: int, cores: int, limits: Limits) -> int:
    """How many blocks of origins, if each is to be worth its while."""
    if processes < limits.wide:
        return 1
    return min(cores, max(1, processes // (limits.wide // 2)))
