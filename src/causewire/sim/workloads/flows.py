"""Messages that make their receivers send: pipelines, relays, calls and replies."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from ..errors import SimulationError
from ..process import Process, SimMessage
from ..settings import by, integer, optional
from .base import NOTHING, THINK, Action, Environment, Traffic, Wake, Workload

__all__ = ["Pipeline", "Relay", "RequestReply"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Pipeline(Workload):
    """Items pass through stages, one message from each stage to the next.

    The processes, in order, are cut into `stages` (one for each process if not
    given); a stage of several processes takes turns. All messages flow one way,
    so even FIFO order keeps this causal.
    """

    label: ClassVar[str] = "pipeline workload"
    kind: ClassVar[str] = "pipeline"
    stages: int | None = field(default=None, metadata=by(optional(integer(2))))

    def reach(self, names: Sequence[str]) -> list[int]:
        self._at_least(self.stages or 2, names)
        return [1]

    def traffic(self, environment: Environment) -> Traffic:
        return Line(environment, self.stages or len(environment.names))


class Line(Traffic):
    """A pipeline at work; a process notes how many items it passed on."""

    def __init__(self, environment: Environment, stages: int) -> None:
        super().__init__(environment)
        n = len(environment.names)
        self._stage_of = [i * stages // n for i in range(n)]
        self._members: list[list[str]] = [[] for _ in range(stages)]
        for p in environment.processes:
            self._members[self._stage_of[p.index]].append(p.name)
            p.note = 0
        items = -(-self.left // (stages - 1))
        self.share_out(items, environment.processes[: len(self._members[0])])

    def wake(self, p: Process) -> Iterable[Action]:
        p.left -= 1
        sends = self._pass_on(p)
        return (*sends, THINK) if p.left else sends

    def react(self, p: Process, message: SimMessage) -> Iterable[Action]:
        return self._pass_on(p)

    def _pass_on(self, p: Process) -> tuple[Action, ...]:
        after = self._stage_of[p.index] + 1
        if not self.left or after == len(self._members):
            return NOTHING
        self.left -= 1
        members = self._members[after]
        p.note += 1
        return (SimMessage(p, members[(p.index + p.note) % len(members)]),)


@dataclass(frozen=True, slots=True, kw_only=True)
class Relay(Workload):
    """Chains: the receiver of a message passes it on to another process, `hops` times in all."""

    label: ClassVar[str] = "relay workload"
    kind: ClassVar[str] = "relay"
    hops: int = field(default=3, metadata=by(integer(1)))

    def reach(self, names: Sequence[str]) -> list[int]:
        self._at_least(2, names)
        return [1]

    def traffic(self, environment: Environment) -> Traffic:
        return Chains(environment, self.hops)


class Chains(Traffic):
    """Relays at work; a message notes how many hops are left after it."""

    def __init__(self, environment: Environment, hops: int) -> None:
        super().__init__(environment)
        self._hops = hops
        self.share_out(-(-self.left // hops), environment.processes)

    def wake(self, p: Process) -> Iterable[Action]:
        p.left -= 1
        sends = self._hop(p, self._hops - 1)
        return (*sends, THINK) if p.left else sends

    def react(self, p: Process, message: SimMessage) -> Iterable[Action]:
        return self._hop(p, message.note - 1) if message.note else NOTHING

    def _hop(self, p: Process, more: int) -> tuple[Action, ...]:
        if not self.left:
            return NOTHING
        self.left -= 1
        names = self.environment.names
        to = p.index + 1 + int(self.random() * (len(names) - 1))
        return (SimMessage(p, names[to % len(names)], more),)


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestReply(Workload):
    """Clients send requests to servers, which reply.

    The first `servers` processes are servers, and the rest are clients. A client
    sends a request to one of the servers, drawn at random; when the reply has
    come, it waits for a think time and sends the next request. `outstanding` is
    the number of requests that a client may have open at a time.
    """

    label: ClassVar[str] = "request-reply workload"
    kind: ClassVar[str] = "request-reply"
    servers: int = field(default=1, metadata=by(integer(1)))
    outstanding: int = field(default=1, metadata=by(integer(1)))

    def reach(self, names: Sequence[str]) -> list[int]:
        if len(names) <= self.servers:
            raise SimulationError(
                f"request-reply needs a client besides {self.servers} servers; "
                f"there are {len(names)} processes"
            )
        return [1]

    def traffic(self, environment: Environment) -> Traffic:
        return Calls(environment, self.servers, self.outstanding)


class Calls(Traffic):
    """Requests and replies at work; a message notes whether it is a request."""

    def __init__(self, environment: Environment, servers: int, outstanding: int) -> None:
        super().__init__(environment)
        self._servers = servers
        self._outstanding = outstanding
        self.share_out(-(-self.left // 2), environment.processes[servers:])

    def start(self) -> Iterator[tuple[Process, int]]:
        for p in self.environment.processes[self._servers :]:
            for _ in range(min(self._outstanding, p.left)):
                yield p, self.first_wake()

    def wake(self, p: Process) -> Iterable[Action]:
        if not p.left or not self.left:
            return NOTHING
        p.left -= 1
        self.left -= 1
        to = int(self.random() * self._servers) if self._servers > 1 else 0
        return (SimMessage(p, self.environment.names[to], True),)

    def react(self, p: Process, message: SimMessage) -> Iterable[Action]:
        if message.note:  # a request
            if not self.left:
                return NOTHING
            self.left -= 1
            return (SimMessage(p, message.origin.name, False),)
        if p.left and (pause := self.environment.think()):
            return (Wake(pause),)
        return self.wake(p)
