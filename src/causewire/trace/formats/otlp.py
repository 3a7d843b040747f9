"""OpenTelemetry spans in OTLP JSON: producers and consumers as sends and deliveries.

A file is one OTLP document, or one document on each line (as the collector's file
exporter writes them). Of its spans

    producer, client     are sends
    consumer, server     are deliveries of what their links name, or else their
                         parent; several links are several deliveries
    others               are rows of kind `span`: they happened, no more

A process is a service, or an instance of it where spans tell
(`service.instance.id`). Who sends to whom is taken from links and parents, never
from time stamps: clocks of different machines do not compare. Only within a
process, by whose one clock its spans are stamped, does time give the order.

A message is named by its sending span: the n-th send of its process. It counts
as sent to those who delivered it. A delivery whose producer is not in the files
goes to the quarantine, as does a span without the fields that it needs. So a row
that comes in is a span, or each link of one that has several; a line that is no
document, and whatever is there instead of a span, is a row, too.

To find producers all files are taken together, by one task, in memory.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa

from ..schema import DELIVER, SEND, Event
from .rows import Refused, Row, batches_of_rows, shown

__all__ = ["read_spans"]

_KINDS = {
    "SPAN_KIND_INTERNAL": 1,
    "SPAN_KIND_SERVER": 2,
    "SPAN_KIND_CLIENT": 3,
    "SPAN_KIND_PRODUCER": 4,
    "SPAN_KIND_CONSUMER": 5,
}
_SERVER, _CLIENT, _PRODUCER, _CONSUMER = 2, 3, 4, 5

SPAN = "span"
"""Kind of the rows for spans that neither send nor deliver."""


class _Span(NamedTuple):
    """What counts of a span; `cause` is the span whose message it delivers."""

    file: str
    row: int
    process: str
    trace: str
    span: str
    parent: str
    start: int
    kind: str
    cause: tuple[str, str] | None
    size: int | None


class _BadSpanError(Exception):
    """Why a span cannot be understood."""


def read_spans(
    files: Sequence[str], run: str = "otlp", *, run_by_trace: bool = False
) -> Iterator[pa.RecordBatch]:
    """The spans of all files; one run, or one for each trace."""
    return batches_of_rows(_rows(files, run, run_by_trace))


def _rows(files: Sequence[str], run: str, run_by_trace: bool) -> Iterator[Row | Refused]:
    spans: list[_Span] = []
    for file in files:
        try:
            text = Path(file).read_text("utf-8")
        except (OSError, UnicodeDecodeError) as error:
            yield Refused(file, None, f"cannot be read: {error}")
            continue
        for number, found in enumerate(_spans(file, text), 1):
            if isinstance(found, _Span):
                spans.append(found._replace(row=number))
            else:
                yield found._replace(row=number)
    runs: dict[str, list[_Span]] = {}
    for span in spans:
        runs.setdefault(span.trace if run_by_trace else run, []).append(span)
    for name, mine in runs.items():
        yield from _resolved(name, mine)


def _spans(file: str, text: str) -> Iterator[_Span | Refused]:
    """Each span, or each delivery of it where it has several."""
    for document in _documents(text):
        if isinstance(document, str):
            yield Refused(file, None, "not a JSON document", shown(document))
            continue
        if "resourceSpans" not in document:
            yield Refused(file, None, "no resourceSpans", shown(json.dumps(document)))
        for process, span in _within(document):
            try:
                yield from _understood(file, process, span)
            except _BadSpanError as error:
                yield Refused(file, None, str(error), shown(json.dumps(span)))


def _within(document: Mapping[str, Any]) -> Iterator[tuple[str | None, Any]]:
    """What a document has for spans, with their processes."""
    for scope in _items(document, "resourceSpans"):
        process = _process(scope)
        for scoped in _items(scope, "scopeSpans"):
            for span in _items(scoped, "spans"):
                yield process, span


def _items(table: Any, key: str) -> list[Any]:
    """The items of a list; what is no list stands for itself, and is refused later."""
    if not isinstance(table, dict):
        return [table]
    value = table.get(key)
    return [] if value is None else value if isinstance(value, list) else [value]


def _documents(text: str) -> Iterator[Mapping[str, Any] | str]:
    """The documents of a file; a string for what is none."""
    try:
        whole = json.loads(text)
    except (ValueError, RecursionError):
        for line in text.splitlines():
            if line.strip():
                try:
                    document = json.loads(line)
                except (ValueError, RecursionError):
                    document = None
                yield document if isinstance(document, dict) else line
        return
    yield whole if isinstance(whole, dict) else text


def _list(table: Any, key: str) -> list[Any]:
    value = table.get(key) if isinstance(table, dict) else None
    return value if isinstance(value, list) else []


def _attributes(table: Any) -> dict[str, Any]:
    """Attributes as plain values."""
    result: dict[str, Any] = {}
    for entry in _list(table, "attributes"):
        if isinstance(entry, dict) and isinstance(entry.get("value"), dict):
            result[str(entry.get("key"))] = next(iter(entry["value"].values()), None)
    return result


def _process(scope: Any) -> str | None:
    about = _attributes(scope.get("resource") if isinstance(scope, dict) else None)
    service = about.get("service.name")
    instance = about.get("service.instance.id")
    if not isinstance(service, str):
        return None
    return f"{service}/{instance}" if instance else service


def _understood(file: str, process: str | None, span: Any) -> Iterator[_Span]:
    if not isinstance(span, dict):
        raise _BadSpanError("a span must be a JSON object")
    if process is None:
        raise _BadSpanError("its resource has no service.name")
    trace, name = _id(span, "traceId", 32), _id(span, "spanId", 16)
    parent = _id(span, "parentSpanId", 16) if span.get("parentSpanId") else ""
    try:
        start = int(span["startTimeUnixNano"])
    except (KeyError, TypeError, ValueError, OverflowError):
        raise _BadSpanError("it has no startTimeUnixNano") from None
    kind = span.get("kind", 0)
    kind = _KINDS.get(kind, 0) if isinstance(kind, str) else kind
    told = str(_attributes(span).get("messaging.message.body.size"))
    size = int(told) if told.isdigit() and len(told) < 10 else None
    one = _Span(file, 0, process, trace, name, parent, start, SPAN, None, size)
    if kind in (_PRODUCER, _CLIENT):
        yield one._replace(kind=SEND)
    elif kind == _CONSUMER or (kind == _SERVER and (parent or span.get("links"))):
        causes = [
            (_id(link, "traceId", 32), _id(link, "spanId", 16)) for link in _list(span, "links")
        ]
        if not causes and not parent:
            raise _BadSpanError("a consumer span without a link or a parent")
        for cause in causes or [(trace, parent)]:
            yield one._replace(kind=DELIVER, cause=cause)
    else:
        yield one


def _id(table: Any, key: str, digits: int) -> str:
    value = table.get(key) if isinstance(table, dict) else None
    if not isinstance(value, str) or len(value) != digits:
        raise _BadSpanError(f"its {key} is not one of {digits} digits")
    return value.lower()


def _resolved(run: str, spans: list[_Span]) -> Iterator[Row | Refused]:
    """Spans of a run as rows: numbered in their processes, and joined to their sends."""
    depth = _depths(spans)
    spans = sorted(spans, key=lambda s: (s.process, s.start, depth[s.trace, s.span], s.row))
    sends: dict[tuple[str, str], tuple[str, int]] = {}
    count: dict[str, int] = {}
    refused: set[int] = set()
    for k, span in enumerate(spans):
        if span.kind == SEND:
            if (span.trace, span.span) in sends:
                refused.add(k)
                yield Refused(span.file, span.row, f"a second span {span.span}")
                continue
            count[span.process] = count.get(span.process, 0) + 1
            sends[span.trace, span.span] = span.process, count[span.process]
    to: dict[tuple[str, int], dict[str, None]] = {}
    for k, span in enumerate(spans):
        if span.cause is None:
            continue
        if span.cause in sends:
            to.setdefault(sends[span.cause], {})[span.process] = None
        else:
            refused.add(k)
            yield Refused(
                span.file, span.row, f"span {span.cause[1]}, whose message it is, is missing"
            )
    seq: dict[str, int] = {}
    for k, span in enumerate(spans):
        if k in refused:
            continue
        number = seq.get(span.process, 0)
        seq[span.process] = number + 1
        origin: str | None = None
        mid: int | None = None
        peers: tuple[str, ...] = ()
        if span.kind == SEND:
            origin, mid = sends[span.trace, span.span]
            peers = tuple(to.get((origin, mid), ()))
        elif span.cause is not None:
            origin, mid = sends[span.cause]
            peers = (origin,)
        event = Event(
            run, span.process, number, span.start, None, span.kind, origin, mid, peers, span.size
        )
        yield Row(span.file, span.row, event)


def _depths(spans: Sequence[_Span]) -> dict[tuple[str, str], int]:
    """How many ancestors a span has: a parent comes before what it starts at once."""
    parents = {(s.trace, s.span): (s.trace, s.parent) for s in spans}
    depth: dict[tuple[str, str], int] = {}
    for span in parents:
        way = []
        at = span
        while at in parents and at not in depth and at not in way:
            way.append(at)
            at = parents[at]
        base = depth.get(at, -1)
        for k, name in enumerate(reversed(way), 1):
            depth[name] = base + k
    return depth
