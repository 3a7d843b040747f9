"""Messages that make their receivers send: pipelines, relays, calls and replies."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from ..errors import SimulationError
from ..process import Message, Process
from ..settings import by, integer, optional
from .base import Stage, Traffic, Workload

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

    def traffic(self, stage: Stage) -> Traffic:
        return Line(stage, self.stages or len(stage.names))


class Line(Traffic):
    """A pipeline at work; a process notes how many items it passed on."""

    def __init__(self, stage: Stage, stages: int) -> None:
        super().__init__(stage)
        n = len(stage.names)
        self._stage_of = [i * stages // n for i in range(n)]
        self._members: list[list[str]] = [[] for _ in range(stages)]
        for p in stage.processes:
            self._members[self._stage_of[p.index]].append(p.name)
            p.note = 0
        items = -(-self.left // (stages - 1))
        self.share_out(items, stage.processes[: len(self._members[0])])

    def start(self) -> None:
        self.begin_all()

    def wake(self, p: Process) -> bool:
        p.left -= 1
        self._pass_on(p)
        return p.left > 0

    def react(self, p: Process, message: Message, source: str) -> None:
        self._pass_on(p)

    def _pass_on(self, p: Process) -> None:
        after = self._stage_of[p.index] + 1
        if self.left and after < len(self._members):
            self.left -= 1
            members = self._members[after]
            p.note += 1
            self.stage.post(p, members[(p.index + p.note) % len(members)])


@dataclass(frozen=True, slots=True, kw_only=True)
class Relay(Workload):
    """Chains: whoever gets a message passes it on to somebody else, `hops` in all."""

    label: ClassVar[str] = "relay workload"
    kind: ClassVar[str] = "relay"
    hops: int = field(default=3, metadata=by(integer(1)))

    def reach(self, names: Sequence[str]) -> list[int]:
        self._at_least(2, names)
        return [1]

    def traffic(self, stage: Stage) -> Traffic:
        return Chains(stage, self.hops)


class Chains(Traffic):
    """Relays at work; a message notes how many hops are left after it."""

    def __init__(self, stage: Stage, hops: int) -> None:
        super().__init__(stage)
        self._hops = hops
        self.share_out(-(-self.left // hops), stage.processes)

    def start(self) -> None:
        self.begin_all()

    def wake(self, p: Process) -> bool:
        p.left -= 1
        self._hop(p, self._hops - 1)
        return p.left > 0

    def react(self, p: Process, message: Message, source: str) -> None:
        if message.note:
            self._hop(p, message.note - 1)

    def _hop(self, p: Process, more: int) -> None:
        if self.left:
            self.left -= 1
            names = self.stage.names
            to = p.index + 1 + int(self.stage.random() * (len(names) - 1))
            self.stage.post(p, names[to % len(names)], more)


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestReply(Workload):
    """Clients call a service, which answers.

    The first `servers` processes are the service, and the rest its clients. A
    client sends a request to one of the servers, drawn at random; when the reply
    has come it thinks, and sends the next. `outstanding` is how many requests a
    client may have open at a time.
    """

    label: ClassVar[str] = "request-reply workload"
    kind: ClassVar[str] = "request-reply"
    servers: int = field(default=1, metadata=by(integer(1)))
    outstanding: int = field(default=1, metadata=by(integer(1)))

    def reach(self, names: Sequence[str]) -> list[int]:
        if len(names) <= self.servers:
            raise SimulationError(
                f"request-reply needs a client beside {self.servers} servers; "
                f"there are {len(names)} processes"
            )
        return [1]

    def traffic(self, stage: Stage) -> Traffic:
        return Calls(stage, self.servers, self.outstanding)


class Calls(Traffic):
    """Requests and replies at work; a message notes whether it is a request."""

    def __init__(self, stage: Stage, servers: int, outstanding: int) -> None:
        super().__init__(stage)
        self._servers = servers
        self._outstanding = outstanding
        self.share_out(-(-self.left // 2), stage.processes[servers:])

    def start(self) -> None:
        for p in self.stage.processes[self._servers :]:
            for _ in range(min(self._outstanding, p.left)):
                self.begin(p)

    def wake(self, p: Process) -> bool:
        if p.left and self.left:
            p.left -= 1
            self.left -= 1
            to = int(self.stage.random() * self._servers) if self._servers > 1 else 0
            self.stage.post(p, self.stage.names[to], True)
        return False

    def react(self, p: Process, message: Message, source: str) -> None:
        if not message.note:
            if p.left and (pause := self.stage.think()):
                self.stage.wake(p, pause)
            else:
                self.wake(p)
        elif self.left:
            self.left -= 1
            self.stage.post(p, source, False)
