"""Each process sends its share of the messages, to destinations drawn at random."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from ..errors import SimulationError
from ..process import Process
from ..settings import by, fraction, integer, optional
from .base import Stage, Traffic, Workload

__all__ = ["Hotspot", "Uniform"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Uniform(Workload):
    """Every other process is as likely a destination.

    `fanout` is how many destinations a message has. With `correspondents`, a
    process writes only to that many others, those that follow it in a ring: what
    a process of a large system does.
    """

    label: ClassVar[str] = "uniform workload"
    kind: ClassVar[str] = "uniform"
    fanout: int = field(default=1, metadata=by(integer(1)))
    correspondents: int | None = field(default=None, metadata=by(optional(integer(1))))

    def reach(self, names: Sequence[str]) -> list[int]:
        self._at_least(2, names)
        known = len(names) - 1 if self.correspondents is None else self.correspondents
        if known >= len(names) or self.fanout > known:
            raise SimulationError(
                f"uniform workload: {self.fanout} of {known} correspondents "
                f"cannot be had among {len(names) - 1} others"
            )
        return [self.fanout]

    def traffic(self, stage: Stage) -> Traffic:
        known = self.correspondents or len(stage.names) - 1
        return Scatter(stage, self.fanout, known)


class Scatter(Traffic):
    """Destinations drawn from the `known` processes that follow in the ring."""

    reacts = False

    def __init__(self, stage: Stage, fanout: int, known: int) -> None:
        super().__init__(stage)
        self._fanout = fanout
        self._known = known
        self.share_out(self.left, stage.processes)

    def start(self) -> None:
        self.begin_all()

    def wake(self, p: Process) -> bool:
        stage = self.stage
        names = stage.names
        if self._fanout == 1:
            to = p.index + 1 + int(stage.random() * self._known)
            stage.post(p, names[to % len(names)])
        else:
            stage.post(p, self._several(p))
        p.left -= 1
        return p.left > 0

    def _several(self, p: Process) -> tuple[str, ...]:
        """Draw `fanout` different ones (Floyd's method: as many draws as that)."""
        names = self.stage.names
        chosen: dict[int, None] = {}
        for last in range(self._known - self._fanout, self._known):
            k = int(self.stage.random() * (last + 1))
            chosen[last if k in chosen else k] = None
        return tuple(names[(p.index + 1 + k) % len(names)] for k in chosen)


@dataclass(frozen=True, slots=True, kw_only=True)
class Hotspot(Workload):
    """Most messages go to a few processes.

    The first `share` of the processes are the hot ones (at least one, unless the
    share is 0: then this is `uniform`); a message goes to one of them with
    `probability`, and to one of the others otherwise.
    """

    label: ClassVar[str] = "hotspot workload"
    kind: ClassVar[str] = "hotspot"
    share: float = field(default=0.1, metadata=by(fraction))
    probability: float = field(default=0.8, metadata=by(fraction))

    def reach(self, names: Sequence[str]) -> list[int]:
        self._at_least(2, names)
        return [1]

    def traffic(self, stage: Stage) -> Traffic:
        n = len(stage.names)
        hot = min(n, max(1, round(self.share * n))) if self.share else 0
        return Hot(stage, hot, self.probability)


class Hot(Scatter):
    """Destinations drawn from the hot processes, or from the others."""

    def __init__(self, stage: Stage, hot: int, probability: float) -> None:
        super().__init__(stage, 1, len(stage.names) - 1)
        self._hot = hot
        self._probability = probability

    def wake(self, p: Process) -> bool:
        n = len(self.stage.names)
        hot = self._hot
        low, high = (0, hot) if self.stage.random() < self._probability else (hot, n)
        if low == high or (high - low == 1 and p.index == low):
            low, high = 0, n
        mine = low <= p.index < high
        to = low + int(self.stage.random() * (high - low - mine))
        self.stage.post(p, self.stage.names[to + (mine and to >= p.index)])
        p.left -= 1
        return p.left > 0
