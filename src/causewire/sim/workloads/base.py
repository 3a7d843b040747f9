"""Workloads: who sends what to whom, when, and because of what.

A `Workload` is data. For a run it makes a `Traffic`, which says what the processes
do, one step at a time, as the run asks for it, and keeps no history. The run asks
about two things:

    wake    a process is to send a message of its own
    react   a process has handled a message that was delivered to it

The answer is a sequence of actions of that process: a `SimMessage` to send, or a
`Wake` to be woken again later. The run as a whole sends exactly the number of messages asked for,
including reactions: after that number nothing more is sent.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

from ..errors import SimulationError
from ..process import Process, SimMessage
from ..settings import Settings

__all__ = ["NOTHING", "THINK", "Action", "Environment", "Traffic", "Wake", "Workload"]


class Wake(NamedTuple):
    """A process is to be woken again."""

    delay: int | None
    """In how many nanoseconds; None: after a think time."""


THINK = Wake(None)
"""Wake the process again after a think time."""

Action = SimMessage | Wake
"""Send this message, or wake the process again."""

NOTHING: tuple[Action, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Environment:
    """What a workload knows of the run."""

    processes: list[Process]
    names: tuple[str, ...]
    messages: int
    """The number of messages that the run is to have."""
    random: Callable[[], float]
    """The random generator of the run: uniform over [0, 1)."""
    think: Callable[[], int]
    """Draws a think time."""
    now: Callable[[], int]
    """Returns the simulated time in nanoseconds."""


class Traffic(ABC):
    """A workload at work in one run."""

    reacts = True
    """Whether `react` has to be called at all."""

    def __init__(self, environment: Environment) -> None:
        self.environment = environment
        self.random = environment.random
        self.left = environment.messages
        """The number of messages that may still be sent."""

    def share_out(self, total: int, among: Sequence[Process]) -> None:
        """Divide a number of messages evenly among processes that send on their own."""
        for i, p in enumerate(among):
            p.left = total // len(among) + (i < total % len(among))

    def start(self) -> Iterator[tuple[Process, int]]:
        """Yield the processes that begin, and when they wake for the first time.

        Every process with messages of its own to send wakes at a random point of a
        think time, unless a workload decides otherwise.
        """
        for p in self.environment.processes:
            if p.left:
                yield p, self.first_wake()

    def first_wake(self) -> int:
        """Draw a random point of a think time."""
        return int(self.random() * self.environment.think())

    @abstractmethod
    def wake(self, p: Process) -> Iterable[Action]:
        """Return what process p does when it wakes."""

    def react(self, p: Process, message: SimMessage) -> Iterable[Action]:
        """Return what process p does after it has handled a message."""
        return NOTHING


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload(Settings):
    """Who sends what to whom, as data."""

    kind: ClassVar[str]

    def own_names(self) -> tuple[str, ...] | None:
        """Return the processes, if the workload decides which there are."""
        return None

    def own_messages(self) -> int | None:
        """Return the number of messages, if the workload decides it."""
        return None

    def reach(self, names: Sequence[str]) -> list[int]:
        """Return all numbers of destinations, besides the sender, that a message may have.

        Raises:
            SimulationError: The workload cannot run with these processes.
        """
        raise NotImplementedError

    def traffic(self, environment: Environment) -> Traffic:
        """Return the workload at work, for one run."""
        raise NotImplementedError

    def _at_least(self, n: int, names: Sequence[str]) -> None:
        if len(names) < n:
            raise SimulationError(f"{self.kind} needs at least {n} processes, not {len(names)}")
