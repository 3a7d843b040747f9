"""Spans as events: which process, which messages, in which order.

The readers of the formats (`otlp.py`, `jaeger.py`, `zipkin.py`) yield `Span`s;
`rows_of_run` turns the spans of a run into rows of a trace. `docs/foreign-traces.md`
defines the model that is implemented here and says why it is so.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from ..schema import DELIVER, SEND, Event, TraceError
from .names import PROCESS_BY, RUN_BY, TWICE
from .queues import Queue
from .rows import Refused, Row

__all__ = [
    "SPAN",
    "BadSpanError",
    "Span",
    "SpanOptions",
    "identifier",
    "place_of",
    "rows_of_run",
    "runs_of",
]

SPAN = "span"
"""Kind of the rows for spans that neither send nor deliver."""

CLIENT, SERVER, PRODUCER, CONSUMER, INTERNAL = (
    "client",
    "server",
    "producer",
    "consumer",
    "internal",
)

INSTANCE = ("service.instance.id", "k8s.pod.name", "container.id", "host.name")
"""Attributes that tell one instance of a service from another, the best first."""

# What a report should say about the data, in addition to the findings.
NO_PARENT = "spans whose parent is missing"
NO_INSTANCE = "spans that do not say which instance of the service they are from"
NO_KEY = "messages in queues without a key or partition, of which no order is expected"
OVERLAP = "branches of a request that overlap, whose order is not checked"
NO_SERVER = "calls whose server left no span"


class BadSpanError(Exception):
    """Why a span cannot be understood."""


class Span(NamedTuple):
    """What counts of a span, whatever the format."""

    file: str
    row: int | None
    service: str
    instance: str
    thread: str
    trace: str
    span: str
    parent: str
    start: int
    end: int
    kind: str
    links: tuple[tuple[str, str], ...] = ()
    queue: Queue = Queue()
    size: int | None = None
    failed: bool = False
    shared: bool = False
    """Whether it has the identifier of the client's span, as in Zipkin."""

    @property
    def place(self) -> str:
        """The service instance."""
        return f"{self.service}/{self.instance}" if self.instance else self.service


class SpanOptions(NamedTuple):
    """What is a process, and what is a run."""

    process_by: str = "request"
    run_by: str = "trace"
    run: str = "spans"
    """The name of the one run, if there is one."""

    @classmethod
    def checked(cls, process_by: str | None, run_by: str | None, run: str | None) -> SpanOptions:
        """Return options with defaults for what is None.

        Raises:
            TraceError: A value is unknown, or the values do not go together.
        """
        run_by = run_by or "trace"
        process_by = process_by or ("request" if run_by == "trace" else "instance")
        for name, value, known in (("process", process_by, PROCESS_BY), ("run", run_by, RUN_BY)):
            if value not in known:
                what = f"{name}-by must be one of {', '.join(known)}, not {value!r}"
                raise TraceError("spans", None, what)
        return cls(process_by, run_by, run or "spans")


def identifier(value: Any, digits: int) -> str:
    """Return an identifier as that many hex digits; it may be hex, base64 or bytes.

    Raises:
        BadSpanError: It is neither.
    """
    if isinstance(value, bytes):
        value = value.hex()
    if isinstance(value, str) and value:
        if len(value) <= digits:
            try:
                int(value, 16)
            except ValueError:
                pass
            else:
                return value.lower().rjust(digits, "0")
        try:
            raw = base64.b64decode(value, validate=True)
        except (binascii.Error, ValueError):
            raw = b""
        if len(raw) == digits // 2:
            return raw.hex()
    raise BadSpanError(f"an identifier does not have {digits} hex digits")


def runs_of(span: Span, options: SpanOptions) -> Iterator[str]:
    """Yield the runs in which a span has a part: its own, and those of the messages it takes."""
    if options.run_by == "all":
        yield options.run
        return
    yield span.trace
    yield from {trace for trace, _ in span.links} - {span.trace}


def rows_of_run(
    run: str, spans: Iterable[Span], options: SpanOptions, notes: Counter[str]
) -> Iterator[Row | Refused]:
    """Yield the rows of a run from its spans; `notes` counts what the report should mention."""
    family = _Family(run, spans, options, notes)
    yield from family.refused
    yield from (_requests if options.process_by == "request" else _processes)(family)


class _Family:
    """The spans of a run, and who is whose parent."""

    def __init__(
        self, run: str, spans: Iterable[Span], options: SpanOptions, notes: Counter[str]
    ) -> None:
        self.run, self.options, self.notes = run, options, notes
        self.refused: list[Refused] = []
        self._by_id: dict[tuple[str, str], list[Span]] = defaultdict(list)
        self.home: list[Span] = []
        visitors: dict[tuple[str, str, bool], Span] = {}
        for span in sorted(set(spans), key=lambda s: (s.start, s.file, s.row or 0)):
            if options.run_by == "trace" and span.trace != run:
                visitors.setdefault((span.trace, span.span, span.shared), span)
                continue
            same = self._by_id[span.trace, span.span]
            twin = next((s for s in same if s.shared == span.shared), None)
            if twin is None:
                same.append(span)
                self.home.append(span)
            elif twin._replace(file="", row=None) == span._replace(file="", row=None):
                notes[TWICE] += 1
            else:
                self.refused.append(
                    Refused(span.file, span.row, "another span of the trace has its identifier")
                )
        notes[NO_INSTANCE] += sum(not span.instance for span in self.home)
        self.parent = {id(span): self._parent(span) for span in self.home}
        self.depth: dict[int, int] = {}
        for span in self.home:
            self._find_depth(span)
        self.everyone = [*self.home, *visitors.values()]
        self.causes = {id(span): self._causes(span) for span in self.everyone}
        self.takers: dict[int, list[Span]] = defaultdict(list)
        for span in self.everyone:
            for cause in self.causes[id(span)]:
                self.takers[id(cause)].append(span)
        for span in self.home:
            if span.kind in (CLIENT, PRODUCER) and not self.takers[id(span)]:
                notes[NO_SERVER] += 1

    def _parent(self, span: Span) -> Span | None:
        """Return the parent, if it is there: of two that share an identifier, the nearer."""
        if span.shared:
            found = self._by_id.get((span.trace, span.span), ())
            return next((s for s in found if not s.shared), None)
        found = self._by_id.get((span.trace, span.parent), ()) if span.parent else ()
        here = next((s for s in found if s.place == span.place), None)
        return here or next((s for s in found if s.shared), None) or next(iter(found), None)

    def _find_depth(self, span: Span) -> None:
        way: list[Span] = []
        at: Span | None = span
        known = set()
        while at is not None and id(at) not in self.depth and id(at) not in known:
            way.append(at)
            known.add(id(at))
            at = self.parent[id(at)]
        base = -1 if at is None else self.depth.get(id(at), -1)
        for k, one in enumerate(reversed(way), 1):
            self.depth[id(one)] = base + k
        if at is not None and id(at) in known:  # spans that are their own ancestors
            self.parent[id(at)] = None

    def _causes(self, span: Span) -> list[Span]:
        """Return the spans whose messages a span takes."""
        if span.kind == CONSUMER and span.links:
            here = [link for link in span.links if self._is_here(link)]
            found = [self._by_id[link][0] for link in here if self._by_id.get(link)]
            if here and not found:
                self.notes[NO_PARENT] += 1
            return found
        parent = self.parent.get(id(span))
        if parent is None:
            if span.parent and id(span) in self.parent:
                self.notes[NO_PARENT] += 1
            return []
        crosses = parent.place != span.place
        paired = (parent.kind, span.kind) in ((CLIENT, SERVER), (PRODUCER, CONSUMER))
        return [parent] if crosses or paired or span.shared else []

    def _is_here(self, link: tuple[str, str]) -> bool:
        """Whether a link leads to a sender of this run, in which its message is then taken."""
        return self.options.run_by == "all" or link[0] == self.run

    def is_elsewhere(self, span: Span) -> bool:
        """Whether a consumer of this trace takes its messages in the runs of their senders."""
        return (
            span.kind == CONSUMER and bool(span.links) and not any(map(self._is_here, span.links))
        )


class _Moment(NamedTuple):
    """Something that a process does; moments of a process sort into their order."""

    time: int
    phase: int
    depth: int
    tie: int
    span: Span
    kind: str
    message: tuple[str, int, int] | None
    """Names the message: what it is, its sending span, its taking span (0 for all)."""


def _rows(
    family: _Family,
    moments: Mapping[str, list[_Moment]],
    peers: Mapping[tuple[str, int, int], Sequence[str]],
) -> Iterator[Row]:
    """Number the moments of each process, and yield them as rows."""
    names: dict[tuple[str, int, int], tuple[str, int]] = {}
    for process, mine in moments.items():
        mine.sort(key=lambda m: m[:4])
        sends = [m.message for m in mine if m.kind == SEND and m.message is not None]
        names |= {message: (process, mid) for mid, message in enumerate(sends, 1)}
    for process, mine in moments.items():
        for seq, moment in enumerate(mine):
            origin: str | None = None
            mid: int | None = None
            to: tuple[str, ...] = ()
            if moment.message is not None:
                origin, mid = names[moment.message]
                if moment.kind == SEND:
                    to = tuple(dict.fromkeys(peers.get(moment.message, ())))
                else:
                    to = (origin,)
            size = moment.span.size if moment.kind == SEND else None
            event = Event(
                family.run, process, seq, moment.time, None, moment.kind, origin, mid, to, size
            )
            yield Row(moment.span.file, moment.span.row, event)


# -- one process for each instance, service or thread -----------------------------------------


def _processes(family: _Family) -> Iterator[Row]:
    def process(span: Span) -> str:
        if family.options.process_by == "service":
            return span.service
        if family.options.process_by == "thread" and span.thread:
            return f"{span.place}@{span.thread}"
        return span.place

    moments: dict[str, list[_Moment]] = defaultdict(list)
    peers: dict[tuple[str, int, int], list[str]] = defaultdict(list)
    for span in family.everyone:
        mine = moments[process(span)]
        causes = family.causes[id(span)]
        depth = family.depth.get(id(span), 0)
        for cause in causes:
            message, tie = ("call", id(cause), 0), cause.start
            if _is_queued(cause, span):  # the queue's receiver hands it on
                receiver = _sink(family, cause, span, process(span)) or _name(family, span, "#")
                peers[message].append(receiver)
                taken = ("taken", id(cause), id(span))
                moments[receiver] += (
                    _Moment(span.start, 0, depth, tie, span, DELIVER, message),
                    _Moment(span.start, 1, depth, tie, span, SEND, taken),
                )
                message = taken
            peers[message].append(process(span))
            mine.append(_Moment(span.start, 0, depth, tie, span, DELIVER, message))
        if id(span) not in family.parent:
            continue
        if span.kind in (CLIENT, PRODUCER) or family.takers[id(span)]:
            message = ("call", id(span), 0)
            mine.append(_Moment(span.start, 1, depth, span.row or 0, span, SEND, message))
        elif not causes and not family.is_elsewhere(span):
            mine.append(_Moment(span.start, 1, depth, span.row or 0, span, SPAN, None))
    yield from _rows(family, {name: mine for name, mine in moments.items() if mine}, peers)


# -- one process for each request -------------------------------------------------------------


def _requests(family: _Family) -> Iterator[Row]:
    strand = _strands(family)
    moments: dict[str, list[_Moment]] = defaultdict(list)
    peers: dict[tuple[str, int, int], list[str]] = defaultdict(list)

    def add(
        process: str, time: int, phase: int, tie: int, span: Span, kind: str, message: Any
    ) -> None:
        depth = family.depth.get(id(span), 0)
        moments[process].append(
            _Moment(time, phase, depth if phase < 2 else -depth, tie, span, kind, message)
        )

    for span in family.everyone:
        process = strand[id(span)]
        causes = family.causes[id(span)]
        for k, cause in enumerate(causes):
            message = ("call", id(cause), 0)
            peers[message].append(process)
            add(process, span.start, 0, k, span, DELIVER, message)
            if sink := _sink(family, cause, span, span.place):
                peers[message].append(sink)
                moments[sink].append(_Moment(span.start, 0, 0, cause.start, span, DELIVER, message))
            if _waited(cause, span):
                reply = ("reply", id(cause), id(span))
                peers[reply].append(strand[id(cause)])
                add(process, span.end, 3, k, span, SEND, reply)
                add(strand[id(cause)], cause.end, 2, k, cause, DELIVER, reply)
        if id(span) not in family.parent:
            continue
        if span.kind in (CLIENT, PRODUCER) or family.takers[id(span)]:
            add(process, span.start, 1, span.row or 0, span, SEND, ("call", id(span), 0))
        elif not causes and not family.is_elsewhere(span):
            add(process, span.start, 1, span.row or 0, span, SPAN, None)
    yield from _rows(family, moments, peers)


def _waited(call: Span, server: Span) -> bool:
    """Whether the caller waited for the reply: then its span is at least as long."""
    return (
        (call.kind, server.kind) == (CLIENT, SERVER)
        and not call.failed
        and call.trace == server.trace
        and call.end - call.start >= server.end - server.start > 0
    )


def _is_queued(cause: Span, span: Span) -> bool:
    """Whether a span takes its message from a queue."""
    return span.kind == CONSUMER or cause.kind == PRODUCER


def _sink(family: _Family, cause: Span, span: Span, place: str) -> str:
    """Return where the order of arrival is observed; nowhere, if no order is expected."""
    if not _is_queued(cause, span):
        return place
    here, there = span.queue, cause.queue
    queue = here.by_key or there.by_key or here.by_partition or there.by_partition
    if not queue:
        family.notes[NO_KEY] += 1
        return ""
    return f"{place}[{queue}]"


def _strands(family: _Family) -> dict[int, str]:
    """Return the process of each span: its request, or a branch of it that overlaps others."""
    children: dict[int, list[Span]] = defaultdict(list)
    roots: list[Span] = []
    for span in family.everyone:
        parent = family.parent.get(id(span))
        apart = span.kind in (SERVER, CONSUMER) or id(span) not in family.parent
        if parent is None or parent.place != span.place or apart:
            roots.append(span)
        else:
            children[id(parent)].append(span)
    names: dict[int, str] = {}
    stack: list[tuple[Span, str]] = [(root, _name(family, root, "#")) for root in roots]
    while stack:
        span, name = stack.pop()
        names[id(span)] = name
        below = sorted(children[id(span)], key=lambda s: s.start)
        latest = -1
        alone = [True] * len(below)
        for k, child in enumerate(below):
            if child.start < latest:
                alone[k] = alone[k - 1] = False
            latest = max(latest, child.end)
        for child, by_itself in zip(below, alone, strict=True):
            family.notes[OVERLAP] += not by_itself
            stack.append((child, name if by_itself else f"{name}~{child.span}"))
    return names


_STRAND = re.compile(r"(.+)#(?:[0-9a-f]+:)?[0-9a-f]+(?:~[0-9a-f]+)*", re.DOTALL)


def place_of(process: str) -> str | None:
    """Return the service instance that a request is handled by.

    Args:
        process: A process of rows that were made by request.

    Returns:
        The instance, or None if the process only observes in which order an instance or a
        partition takes messages.
    """
    found = _STRAND.fullmatch(process)
    return found[1] if found else None


def _name(family: _Family, span: Span, mark: str) -> str:
    where = span.span if span.trace == family.run else f"{span.trace}:{span.span}"
    return f"{span.place}{mark}{where}"
