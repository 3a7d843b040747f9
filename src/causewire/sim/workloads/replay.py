"""Replay the sends of a trace, with what each of them depended on.

A process sends its messages in the order of the trace, and sends each of them
only when everything has been delivered to it that had been delivered to it
before that send in the trace. So happened-before is kept: two sends that were
ordered are ordered again, under another protocol and on another network. (More
may be ordered than was: nothing keeps other messages from being delivered
earlier than they were.) Spans of another system are replayed likewise, except
that a process handles its requests independently of each other (`script.py`).

With `pace`, the process lets as much time pass as it did in the trace, between
the last thing that a send depended on and the send. The script of a replay is
held in memory: it takes what the sends and deliveries of the trace take.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from heapq import heappop, heappush
from itertools import count
from typing import Any, ClassVar

from ...trace import Trace
from ..process import Process, SimMessage
from ..settings import by, flag, optional, text
from .base import NOTHING, Action, Environment, Traffic, Wake, Workload
from .script import Script, read_script

__all__ = ["Replay"]


def _source(value: Any, what: str) -> Trace | str:
    if isinstance(value, Trace):
        return value
    return text(os.fspath(value) if isinstance(value, os.PathLike) else value, what)


@dataclass(frozen=True, slots=True, kw_only=True)
class Replay(Workload):
    """The sends of a trace, a file or an open one, with their causal dependencies."""

    label: ClassVar[str] = "replay workload"
    kind: ClassVar[str] = "replay"
    trace: Trace | str = field(metadata=by(_source))
    run: str | None = field(default=None, metadata=by(optional(text)))
    pace: bool = field(default=True, metadata=by(flag))
    by_request: bool = field(default=False, metadata=by(flag))
    """Whether the processes of an open trace are requests, made of spans; files are looked into."""
    script: Script = field(init=False, repr=False, compare=False)

    def check(self) -> None:
        object.__setattr__(self, "script", read_script(self.trace, self.run, self.by_request))

    def own_names(self) -> tuple[str, ...]:
        return self.script.names

    def own_messages(self) -> int:
        return self.script.messages

    def reach(self, names: Sequence[str]) -> list[int]:
        reaches = {
            len(step.to) - (strand.process in step.to)
            for strand in self.script.strands
            for step in strand.steps
        }
        return sorted(reaches)

    def traffic(self, environment: Environment) -> Traffic:
        return Playback(environment, self.script, self.pace)


class Playback(Traffic):
    """A replay at work."""

    def __init__(self, environment: Environment, script: Script, pace: bool) -> None:
        super().__init__(environment)
        self._strands = script.strands
        self._waiting = script.waiting
        self._pace = pace
        self._missing = [[step.missing for step in strand.steps] for strand in script.strands]
        self._done = [0] * len(script.strands)
        self._pausing = [False] * len(script.strands)
        self._order = count()
        for p in environment.processes:
            p.note = []  # a heap: when its strands end their pauses
        self._by_name = {p.name: p for p in environment.processes}

    def start(self) -> Iterator[tuple[Process, int]]:
        for number, strand in enumerate(self._strands):
            if self._ready(number):
                p = self._by_name[strand.process]
                yield p, self._pause(p, number)

    def wake(self, p: Process) -> Iterator[Action]:
        *_, number = heappop(p.note)
        self._pausing[number] = False
        yield self._send(p, number)
        yield from self._proceed(p, number)

    def react(self, p: Process, message: SimMessage) -> Iterable[Action]:
        waits = self._waiting.get((p.name, message.note))
        return NOTHING if waits is None else self._delivered(p, waits)

    def _delivered(self, p: Process, waits: Iterable[tuple[int, int]]) -> Iterator[Action]:
        for number, step in waits:
            missing = self._missing[number]
            if step < len(missing):
                missing[step] -= 1
                yield from self._proceed(p, number)

    def _ready(self, number: int) -> bool:
        """Return whether a strand can make its next send now."""
        missing, done = self._missing[number], self._done[number]
        return done < len(missing) and not missing[done] and not self._pausing[number]

    def _gap(self, number: int) -> int:
        return self._strands[number].steps[self._done[number]].gap if self._pace else 0

    def _pause(self, p: Process, number: int) -> int:
        """Let a strand pause before its next send; return for how long."""
        gap = self._gap(number)
        self._pausing[number] = True
        heappush(p.note, (self.environment.now() + gap, next(self._order), number))
        return gap

    def _proceed(self, p: Process, number: int) -> Iterator[Action]:
        """Send for as long as nothing is missing, up to the next pause."""
        while self._ready(number):
            if self._gap(number):
                yield Wake(self._pause(p, number))
            else:
                yield self._send(p, number)

    def _send(self, p: Process, number: int) -> SimMessage:
        step = self._strands[number].steps[self._done[number]]
        self._done[number] += 1
        return SimMessage(p, step.to, step.message, step.size)
