"""What a workload is: who sends what to whom, when, and because of what.

A `Workload` is data. For a run it makes a `Traffic`, which generates sends one
by one as the run asks for them, and keeps no history. It hears of two things:

    wake    a process is to send a message of its own
    react   a process has handled a message that was delivered to it

and answers by `Stage.post`, any number of times, for the process concerned. The
run as a whole sends exactly the number of messages asked for, reactions
included: when they have been sent, nothing more is.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from ..errors import SimulationError
from ..process import Message, Process
from ..settings import Settings

__all__ = ["Stage", "Traffic", "Workload"]


class Stage(ABC):
    """What a workload sees of the run that it plays in."""

    __slots__ = ()

    processes: list[Process]
    names: tuple[str, ...]
    messages: int
    """How many messages the run is to have."""
    random: Callable[[], float]

    @abstractmethod
    def post(
        self, p: Process, to: str | tuple[str, ...], note: Any = None, size: int | None = None
    ) -> None:
        """Process p sends a message now."""

    @abstractmethod
    def think(self) -> int:
        """Draw a think time."""

    @abstractmethod
    def wake(self, p: Process, delay: int | None = None) -> None:
        """Wake p after that long; after a think time, if not given."""


class Traffic(ABC):
    """A workload at work."""

    reacts = True
    """Whether `react` has to be called at all."""

    def __init__(self, stage: Stage) -> None:
        self.stage = stage
        self.left = stage.messages
        """Messages that may still be sent."""

    def share_out(self, total: int, among: Sequence[Process]) -> None:
        """Let each of these processes send its share of so many messages of its own."""
        for i, p in enumerate(among):
            p.left = total // len(among) + (i < total % len(among))

    @abstractmethod
    def start(self) -> None:
        """Wake whoever is to begin."""

    @abstractmethod
    def wake(self, p: Process) -> bool:
        """A process is to send; returns whether to wake it again after a think time."""

    def react(self, p: Process, message: Message, source: str) -> None:  # noqa: B027
        """Process p has handled a message from `source`."""

    def begin(self, p: Process) -> None:
        """Wake a process for the first time, at a random point of a think time."""
        self.stage.wake(p, int(self.stage.random() * self.stage.think()))

    def begin_all(self) -> None:
        """Wake each process that has something to send."""
        for p in self.stage.processes:
            if p.left:
                self.begin(p)


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload(Settings):
    """Who sends what to whom, as data."""

    kind: ClassVar[str]

    def own_names(self) -> tuple[str, ...] | None:
        """The processes, if the workload brings its own."""
        return None

    def own_messages(self) -> int | None:
        """The number of messages, if the workload brings its own."""
        return None

    def reach(self, names: Sequence[str]) -> list[int]:
        """All numbers of destinations, other than the sender, that a message may have.

        Raises `SimulationError` if the workload makes no sense with these
        processes.
        """
        raise NotImplementedError

    def traffic(self, stage: Stage) -> Traffic:
        """The workload at work, for one run."""
        raise NotImplementedError

    def _at_least(self, n: int, names: Sequence[str]) -> None:
        if len(names) < n:
            raise SimulationError(f"{self.kind} needs at least {n} processes, not {len(names)}")
