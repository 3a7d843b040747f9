"""Each process sends its share of the messages to destinations drawn at random."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from ..errors import SimulationError
from ..process import Process, SimMessage
from ..settings import by, fraction, integer, optional
from .base import THINK, Action, Environment, Traffic, Workload

__all__ = ["Hotspot", "Uniform"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Uniform(Workload):
    """Every other process is equally likely as a destination.

    `fanout` is the number of destinations of a message. With `correspondents`, a
    process sends only to that many others, those that follow it in a ring, as
    processes of a large system do.
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

    def traffic(self, environment: Environment) -> Traffic:
        known = self.correspondents or len(environment.names) - 1
        return Scatter(environment, self.fanout, known)


class Scatter(Traffic):
    """Destinations drawn from the `known` processes that follow in the ring."""

    reacts = False

    def __init__(self, environment: Environment, fanout: int, known: int) -> None:
        super().__init__(environment)
        self._fanout = fanout
        self._known = known
        self.share_out(self.left, environment.processes)

    def wake(self, p: Process) -> Iterable[Action]:
        send = SimMessage(p, self._one(p) if self._fanout == 1 else self._several(p))
        p.left -= 1
        return (send, THINK) if p.left else (send,)

    def _one(self, p: Process) -> str:
        """Draw a destination."""
        names = self.environment.names
        to = p.index + 1 + int(self.random() * self._known)
        return names[to % len(names)]

    def _several(self, p: Process) -> tuple[str, ...]:
        """Draw `fanout` different destinations (Floyd's method: that many draws)."""
        names = self.environment.names
        chosen: dict[int, None] = {}
        for last in range(self._known - self._fanout, self._known):
            k = int(self.random() * (last + 1))
            chosen[last if k in chosen else k] = None
        return tuple(names[(p.index + 1 + k) % len(names)] for k in chosen)


@dataclass(frozen=True, slots=True, kw_only=True)
class Hotspot(Workload):
    """Most messages go to a few processes.

    The first `share` of the processes are hot (at least one; with a share of 0 this
    is `uniform`). A message goes to one of them with `probability`, and to one of
    the others otherwise.
    """

    label: ClassVar[str] = "hotspot workload"
    kind: ClassVar[str] = "hotspot"
    share: float = field(default=0.1, metadata=by(fraction))
    probability: float = field(default=0.8, metadata=by(fraction))

    def reach(self, names: Sequence[str]) -> list[int]:
        self._at_least(2, names)
        return [1]

    def traffic(self, environment: Environment) -> Traffic:
        n = len(environment.names)
        hot = min(n, max(1, round(self.share * n))) if self.share else 0
        return Hot(environment, hot, self.probability)


class Hot(Scatter):
    """Destinations drawn from the hot processes, or from the others."""

    def __init__(self, environment: Environment, hot: int, probability: float) -> None:
        super().__init__(environment, 1, len(environment.names) - 1)
        self._hot = hot
        self._probability = probability

    def _one(self, p: Process) -> str:
        n = len(self.environment.names)
        hot = self._hot
        low, high = (0, hot) if self.random() < self._probability else (hot, n)
        if low == high or (high - low == 1 and p.index == low):
            low, high = 0, n
        mine = low <= p.index < high
        to = low + int(self.random() * (high - low - mine))
        return self.environment.names[to + (mine and to >= p.index)]
