"""The sends of a trace, and what each of them depended on: what a replay plays.

A process of the replay has one strand or several. A strand is what happened one after
the other: its sends in their order, each with the messages whose delivery it waits for.
In a trace of Causewire a process is one strand. In spans of another system a process is a
service instance, and each request that it handles is a strand, since requests that are
handled at the same time do not depend on each other (docs/foreign-traces.md).
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache

from ...trace import DELIVER, SEND, Event, Trace, TraceError, open_trace
from ..errors import SimulationError

__all__ = ["Script", "Step", "Strand", "read_script"]

Owner = Callable[[str], str | None]
"""Returns the process of a strand, or None for what only observes an order."""


class Step:
    """One send of a strand, and what it waits for."""

    __slots__ = ("gap", "message", "missing", "size", "to")

    def __init__(
        self, message: int, to: tuple[str, ...], gap: int, missing: int, size: int | None
    ) -> None:
        self.message = message
        """Its number among all messages of the script."""
        self.to = to
        self.gap = gap
        """Time from the last thing it depends on to the send."""
        self.missing = missing
        """How many messages must be delivered after the send before this one."""
        self.size = size


class Strand:
    """Sends of one process that were made one after the other."""

    __slots__ = ("process", "steps")

    def __init__(self, process: str) -> None:
        self.process = process
        self.steps: list[Step] = []


class Script:
    """The strands of all processes, and which send waits for which message.

    Args:
        events: The sends and deliveries of a trace.
        source: What messages call the trace.
        owner: Which process a strand belongs to.

    Raises:
        SimulationError: A message is sent twice or to nobody, or delivered and not sent.
    """

    __slots__ = ("messages", "names", "strands", "waiting")

    def __init__(self, events: Iterable[Event], source: str, owner: Owner | None = None) -> None:
        found: dict[tuple[str, str], list[Event]] = {}
        names: set[str] = set()
        for event in events:
            place = event.process if owner is None else owner(event.process)
            if place is None:
                continue
            names.add(place)
            if owner is None:
                names.update(event.peers)
            found.setdefault((event.run, event.process), []).append(event)
        self.names = tuple(sorted(names))
        start = min((e.time_ns or 0 for some in found.values() for e in some), default=0)
        messages: dict[tuple[str, str, int], int] = {}
        for key in sorted(found):
            found[key].sort(key=lambda event: event.seq)
            for event in found[key]:
                if event.kind == SEND and (owner is None or _places(event, owner)):
                    self._number(event, messages, source)
        self.messages = len(messages)
        self.strands: list[Strand] = []
        self.waiting: dict[tuple[str, int], list[tuple[int, int]]] = {}
        """By process and message: the strands and steps that wait for the delivery."""
        for _, process in (keys := sorted(found)):
            self.strands.append(Strand(process if owner is None else owner(process) or process))
        for number, key in enumerate(keys):
            self._fill(number, found[key], messages, start, source, owner)

    @staticmethod
    def _number(event: Event, messages: dict[tuple[str, str, int], int], source: str) -> None:
        key = (event.run, event.process, event.mid or 0)
        if key in messages or not event.peers:
            fault = "twice" if key in messages else "to nobody"
            raise SimulationError(f"{source}: {event.process} sends message {event.mid} {fault}")
        messages[key] = len(messages)

    def _fill(
        self,
        number: int,
        events: Sequence[Event],
        messages: dict[tuple[str, str, int], int],
        start: int,
        source: str,
        owner: Owner | None,
    ) -> None:
        """Give a strand its steps."""
        strand = self.strands[number]
        known: set[int] = set()
        missing = 0
        last = start
        for event in events:
            now = start if event.time_ns is None else event.time_ns
            if event.kind == SEND:
                to = event.peers if owner is None else _places(event, owner)
                if to:
                    message = messages[event.run, event.process, event.mid or 0]
                    gap = max(0, now - last)
                    strand.steps.append(Step(message, to, gap, missing, event.payload_bytes))
                    missing = 0
            else:
                label = messages.get((event.run, event.origin or "", event.mid or 0))
                if label is None:
                    raise SimulationError(
                        f"{source}: {event.process} delivers message {event.mid} of "
                        f"{event.origin}, which the trace does not send"
                    )
                if label not in known:
                    known.add(label)
                    waits = self.waiting.setdefault((strand.process, label), [])
                    waits.append((number, len(strand.steps)))
                    missing += 1
            last = max(last, now)


def _places(event: Event, owner: Owner) -> tuple[str, ...]:
    """Return the processes that a message of a strand goes to."""
    found = (owner(peer) for peer in event.peers)
    return tuple(dict.fromkeys(place for place in found if place is not None))


def read_script(source: Trace | str, run: str | None, by_request: bool) -> Script:
    """Return the script of a trace, or of spans that another system has recorded.

    Args:
        source: An open trace, or the path of one, or of spans.
        run: The run to take. Without it a trace must have only one; spans are
            all taken together.
        by_request: Whether the processes of an open trace are requests (spans).

    Raises:
        SimulationError: It cannot be read, or nothing is sent in it.
    """
    if isinstance(source, Trace):
        return _script(source, run, by_request)
    version = _version(source)
    return _read(source, run) if version is None else _read_once(source, run, version)


def _version(path: str) -> tuple[int, int] | None:
    """Return what changes when a file is written; None for what is not one local file."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    return (found.st_mtime_ns, found.st_size) if stat.S_ISREG(found.st_mode) else None


@lru_cache(maxsize=4)
def _read_once(path: str, run: str | None, version: tuple[int, int]) -> Script:
    """Read a file once for all runs of a sweep that replay it."""
    return _read(path, run)


def _read(path: str, run: str | None) -> Script:
    try:
        trace, by_request = _open(path)
    except TraceError as error:
        raise SimulationError(str(error)) from None
    return _script(trace, run, by_request, path)


def _script(trace: Trace, run: str | None, by_request: bool, path: str | None = None) -> Script:
    name = path or trace.name
    try:
        events = list(_chosen(trace, name, run, several=by_request))
    except TraceError as error:
        raise SimulationError(str(error)) from None
    if not any(event.kind == SEND for event in events):
        raise SimulationError(f"{name}: nothing is sent" + (f" in run {run!r}" if run else ""))
    if not by_request:
        return Script(events, name)
    from ...trace.formats.spans import place_of

    script = Script(events, name, place_of)
    if not script.messages:
        raise SimulationError(f"{name}: no span calls another service")
    return script


def _open(path: str) -> tuple[Trace, bool]:
    """Return a trace by its path, and whether it is made of spans."""
    from ...trace.formats.foreign import format_of_paths, read_foreign
    from ...trace.formats.names import SPAN_FORMATS

    if format_of_paths([path]) in SPAN_FORMATS:
        return read_foreign([path]).trace, True
    return open_trace(path), False


def _chosen(trace: Trace, name: str, run: str | None, *, several: bool) -> Iterable[Event]:
    first = run
    for event in trace.events():
        first = event.run if first is None else first
        if event.run == first or (several and run is None):
            if event.kind in (SEND, DELIVER):
                yield event
        elif run is None:
            raise SimulationError(f"{name} has several runs: choose one by 'run'")
