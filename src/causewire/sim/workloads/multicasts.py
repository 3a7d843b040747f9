"""Messages with many destinations: broadcast rounds, and groups that overlap."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from ..errors import SimulationError
from ..process import Process, SimMessage
from ..settings import by, flag, integer, many, optional, text
from .base import NOTHING, THINK, Action, Environment, Traffic, Workload

__all__ = ["Broadcast", "Groups"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Broadcast(Workload):
    """Rounds: in each, every process sends one message to all the others.

    With `lockstep`, a process goes on to the next round (after a think time) when
    it has delivered the messages of all others of this round; without, after each
    think time.
    """

    label: ClassVar[str] = "broadcast workload"
    kind: ClassVar[str] = "broadcast"
    lockstep: bool = field(default=True, metadata=by(flag))

    def reach(self, names: Sequence[str]) -> list[int]:
        self._at_least(2, names)
        return [len(names) - 1]

    def traffic(self, environment: Environment) -> Traffic:
        return Rounds(environment, self.lockstep)


class Rounds(Traffic):
    """Broadcast rounds at work.

    A message notes its round. A process notes how many rounds it has finished,
    and how many messages of the current and of the next one it got: others are
    at most one round ahead, since that round takes a message from here.
    """

    def __init__(self, environment: Environment, lockstep: bool) -> None:
        super().__init__(environment)
        self.reacts = lockstep
        self._full, self._rest = divmod(self.left, len(environment.names))
        """Rounds of all processes, and how many take part in the last one."""
        self.share_out(self.left, environment.processes)
        for p in environment.processes:
            p.note = (0, 0, 0)

    def wake(self, p: Process) -> Iterable[Action]:
        names = self.environment.names
        others = names[: p.index] + names[p.index + 1 :]
        p.left -= 1
        yield SimMessage(p, others, p.sent)
        if self.reacts:
            yield from self._finish_round(p)
        elif p.left:
            yield THINK

    def react(self, p: Process, message: SimMessage) -> Iterable[Action]:
        finished, got, ahead = p.note
        if message.note != finished:
            p.note = (finished, got, ahead + 1)
            return NOTHING
        p.note = (finished, got + 1, ahead)
        return self._finish_round(p)

    def _finish_round(self, p: Process) -> tuple[Action, ...]:
        """Go on to the next round if p has sent its message of this one and got all others."""
        finished, got, ahead = p.note
        senders = len(self.environment.names) if finished < self._full else self._rest
        if p.sent > finished and got == senders - 1:
            p.note = (finished + 1, ahead, 0)
            if p.left:
                return (THINK,)
        return NOTHING


@dataclass(frozen=True, slots=True, kw_only=True)
class Groups(Workload):
    """Multicast in groups that overlap.

    Either `members` lists them, by names, or there are `groups` of `size`
    processes each, spread evenly around a ring (as many as processes if not
    given), so that neighbouring groups overlap. A process sends to all others of
    one of its groups, drawn at random.
    """

    label: ClassVar[str] = "groups workload"
    kind: ClassVar[str] = "groups"
    size: int = field(default=3, metadata=by(integer(2)))
    groups: int | None = field(default=None, metadata=by(optional(integer(1))))
    members: tuple[tuple[str, ...], ...] = field(default=(), metadata=by(many(many(text))))

    def of(self, names: Sequence[str]) -> list[tuple[str, ...]]:
        """Return all groups, for a run with these processes.

        Raises:
            SimulationError: A group is too small, or has members that do not exist.
        """
        for i, group in enumerate(self.members):
            strangers = [name for name in group if name not in names]
            if strangers or len(set(group)) < max(2, len(group)):
                raise SimulationError(
                    f"group {i} must be two or more different processes of the run: {list(group)}"
                )
        if self.members:
            return list(self.members)
        n = len(names)
        if self.size > n:
            raise SimulationError(f"a group of {self.size} cannot be had of {n} processes")
        many_groups = self.groups or n
        starts = [g * n // many_groups for g in range(many_groups)]
        return [tuple(names[(s + k) % n] for k in range(self.size)) for s in starts]

    def reach(self, names: Sequence[str]) -> list[int]:
        return sorted({len(group) - 1 for group in self.of(names)})

    def traffic(self, environment: Environment) -> Traffic:
        return Circles(environment, self.of(environment.names))


class Circles(Traffic):
    """Groups at work."""

    reacts = False

    def __init__(self, environment: Environment, groups: Sequence[tuple[str, ...]]) -> None:
        super().__init__(environment)
        mine: dict[str, list[Any]] = {name: [] for name in environment.names}
        for group in groups:
            for name in group:
                others = tuple(x for x in group if x != name)
                mine[name].append(others if len(others) > 1 else others[0])
        self._mine = [mine[name] for name in environment.names]
        self.share_out(self.left, [p for p in environment.processes if mine[p.name]])

    def wake(self, p: Process) -> Iterable[Action]:
        groups = self._mine[p.index]
        p.left -= 1
        send = SimMessage(p, groups[int(self.random() * len(groups))])
        return (send, THINK) if p.left else (send,)
