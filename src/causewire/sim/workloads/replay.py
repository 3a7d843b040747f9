"""Replay the sends of a trace, with what each of them depended on.

A process sends its messages in the order of the trace, and sends each of them
only when everything has been delivered to it that had been delivered to it
before that send in the trace. So happened-before is kept: two sends that were
ordered are ordered again, under another protocol and on another network. (More
may be ordered than was: nothing keeps other messages from being delivered
earlier than they were.)

With `pace`, the process lets as much time pass as it did in the trace, between
the last thing that a send depended on and the send. The script of a replay is
held in memory: it takes what the sends and deliveries of the trace take.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from ...trace import DELIVER, SEND, Event, Trace, TraceError, open_trace
from ..errors import SimulationError
from ..process import Process, SimMessage
from ..settings import by, flag, optional, text
from .base import NOTHING, Action, Environment, Traffic, Wake, Workload

__all__ = ["Replay"]

Label = tuple[str, int]
"""A message: its origin, and its number among those of the origin, from 1."""


class Step:
    """One send of a process, and what it waits for."""

    __slots__ = ("gap", "missing", "size", "to")

    def __init__(self, to: tuple[str, ...], gap: int, missing: int, size: int | None) -> None:
        self.to = to
        self.gap = gap
        """Time from the last thing it depends on to the send."""
        self.missing = missing
        """How many messages must be delivered after the send before this one."""
        self.size = size


class Role:
    """What one process does in a replay: its sends, and which delivery is for which."""

    __slots__ = ("needs", "steps")

    def __init__(self) -> None:
        self.steps: list[Step] = []
        self.needs: dict[Label, int] = {}
        """The step that waits for the delivery of a message."""


class Script:
    """The sends of one run of a trace."""

    __slots__ = ("messages", "names", "roles")

    def __init__(self, events: Sequence[Event], source: str) -> None:
        by_process: dict[str, list[Event]] = {}
        for event in events:
            by_process.setdefault(event.process, []).append(event)
            for peer in event.peers:
                by_process.setdefault(peer, [])
        self.names = tuple(sorted(by_process))
        start = min((event.time_ns or 0 for event in events), default=0)
        labels: dict[tuple[str, int], Label] = {}
        for name in self.names:
            by_process[name].sort(key=lambda event: event.seq)
            sends = [event for event in by_process[name] if event.kind == SEND]
            for number, event in enumerate(sends, 1):
                key = (name, event.mid or 0)
                if key in labels or not event.peers:
                    fault = "twice" if key in labels else "to nobody"
                    raise SimulationError(f"{source}: {name} sends message {event.mid} {fault}")
                labels[key] = (name, number)
        self.messages = len(labels)
        self.roles = {
            name: self._role(by_process[name], labels, start, source) for name in self.names
        }

    @staticmethod
    def _role(
        events: Sequence[Event], labels: dict[tuple[str, int], Label], start: int, source: str
    ) -> Role:
        role = Role()
        missing = 0
        last = start
        for event in events:
            now = start if event.time_ns is None else event.time_ns
            if event.kind == SEND:
                gap = max(0, now - last)
                role.steps.append(Step(event.peers, gap, missing, event.payload_bytes))
                missing = 0
            else:
                label = labels.get((event.origin or "", event.mid or 0))
                if label is None:
                    raise SimulationError(
                        f"{source}: {event.process} delivers message {event.mid} of "
                        f"{event.origin}, which the trace does not send"
                    )
                if label not in role.needs:
                    role.needs[label] = len(role.steps)
                    missing += 1
            last = max(last, now)
        return role


def _script(source: Trace | str, run: str | None) -> Script:
    """Read the sends and deliveries of one run of a trace."""
    name = source.name if isinstance(source, Trace) else source
    try:
        trace = source if isinstance(source, Trace) else open_trace(source)
        chosen = run
        events = []
        for event in trace.events():
            if chosen is None:
                chosen = event.run
            if event.run == chosen:
                if event.kind in (SEND, DELIVER):
                    events.append(event)
            elif run is None:
                raise SimulationError(f"{name} has several runs: choose one by 'run'")
    except TraceError as error:
        raise SimulationError(str(error)) from None
    if not any(event.kind == SEND for event in events):
        raise SimulationError(f"{name}: nothing is sent" + (f" in run {run!r}" if run else ""))
    return Script(events, name)


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
    script: Script = field(init=False, repr=False, compare=False)

    def check(self) -> None:
        object.__setattr__(self, "script", _script(self.trace, self.run))

    def own_names(self) -> tuple[str, ...]:
        return self.script.names

    def own_messages(self) -> int:
        return self.script.messages

    def reach(self, names: Sequence[str]) -> list[int]:
        reaches = {
            len(step.to) - (name in step.to)
            for name, role in self.script.roles.items()
            for step in role.steps
        }
        return sorted(reaches)

    def traffic(self, environment: Environment) -> Traffic:
        return Playback(environment, self.script, self.pace)


class Playback(Traffic):
    """A replay at work.

    A process notes how many of its steps are done; `left` is 1 while it pauses
    before the next.
    """

    def __init__(self, environment: Environment, script: Script, pace: bool) -> None:
        super().__init__(environment)
        self._roles = [script.roles[name] for name in environment.names]
        self._missing = [[step.missing for step in role.steps] for role in self._roles]
        self._pace = pace
        for p in environment.processes:
            p.note = 0

    def start(self) -> Iterator[tuple[Process, int]]:
        for p in self.environment.processes:
            if self._ready(p):
                p.left = 1
                yield p, self._gap(p)

    def wake(self, p: Process) -> Iterator[Action]:
        p.left = 0
        yield self._send(p)
        yield from self._proceed(p)

    def react(self, p: Process, message: SimMessage) -> Iterable[Action]:
        step = self._roles[p.index].needs.get((message.origin.name, message.mid))
        missing = self._missing[p.index]
        if step is None or step >= len(missing):
            return NOTHING
        missing[step] -= 1
        return self._proceed(p)

    def _ready(self, p: Process) -> bool:
        """Return whether p can make its next send now."""
        missing = self._missing[p.index]
        done: int = p.note
        return done < len(missing) and not missing[done] and not p.left

    def _gap(self, p: Process) -> int:
        return self._roles[p.index].steps[p.note].gap if self._pace else 0

    def _proceed(self, p: Process) -> Iterator[Action]:
        """Send for as long as nothing is missing, up to the next pause."""
        while self._ready(p):
            if gap := self._gap(p):
                p.left = 1
                yield Wake(gap)
            else:
                yield self._send(p)

    def _send(self, p: Process) -> SimMessage:
        step = self._roles[p.index].steps[p.note]
        p.note += 1
        return SimMessage(p, step.to, None, step.size)
