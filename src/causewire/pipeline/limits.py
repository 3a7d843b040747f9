"""How a trace is shared out among tasks: the sizes that decide, and the decision."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil
from typing import NamedTuple

from ..check.scan import CLOCK_BYTES

__all__ = ["Limits", "Shape", "blocks_for", "choose"]


@dataclass(frozen=True)
class Limits:
    """What decides how a trace is shared out, in rows unless it says otherwise."""

    large: int = 4_000_000
    """A run from this size on is shared by several tasks."""
    wide: int = 32
    """A block of origins has at least as many processes: as many clocks fit into a vector."""
    stretch: int = 1_000_000
    """No stretch has fewer rows."""
    longest: int = 50_000_000
    """And none has more, so that little is lost with an executor."""
    sort: int = 8_000_000
    """Rows that a task sorts in memory, at most (about 100 bytes each)."""
    flight: int = 1_000_000
    """Copies in flight where a stretch begins, at most: they go to the driver, and where
    messages take that long there is no point in stretches."""
    overdue: float = 0.0001
    """The share of copies that are overdue where a run begins, from which on stretches do not
    pay: they have to read on until what was sent in them has arrived."""
    soon: int = 10_000
    """Rows after a stretch in which what was sent in it arrives, unless it is overdue."""
    share: int = 200_000
    """Small runs: a task gets at least as many rows."""
    enough: int = 3_000_000
    """And a core gets a second task, up to a fourth, only with as many rows for each."""
    memory: int = 1 << 30
    """Bytes of clocks for one task."""


class Shape(NamedTuple):
    """How a run is shared out: into blocks of origins, or stretches of time, or not at all."""

    blocks: int = 1
    stretches: int = 1


def choose(rows: int, processes: int, cores: int, limits: Limits, overdue: float = 0.0) -> Shape:
    """Return the shape for a run of this size.

    Stretches of time win where messages arrive: a single pass, with hardly a row read twice.
    Blocks of origins win where messages are lost, and are needed if the clocks do not fit
    into one task. (`docs/measurements/pipeline.md` has the measurements behind this.)

    Args:
        rows: How many rows the run has.
        processes: How many processes are known before the run is read.
        cores: How many tasks run at the same time.
        limits: The sizes that decide.
        overdue: The share of copies that do not arrive soon, as far as is known.
    """
    least = ceil(CLOCK_BYTES * processes**2 / limits.memory)
    if least > 1:
        return Shape(blocks=max(least, blocks_for(processes, cores, limits)))
    if overdue >= limits.overdue:
        blocks = blocks_for(processes, cores, limits)
        if blocks > 1:
            return Shape(blocks=blocks)
    many = min(rows // limits.stretch, cores * ceil(rows / cores / limits.longest))
    return Shape(stretches=max(1, many) if cores > 1 else 1)


def blocks_for(processes: int, cores: int, limits: Limits) -> int:
    """Return how many blocks of origins there are: one for each core, if they are wide enough."""
    return min(cores, ceil(processes / limits.wide))
