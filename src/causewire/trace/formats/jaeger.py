"""Jaeger spans, in both of its JSON forms.

The API and the user interface write `{"data": [{"traceID", "spans", "processes"}]}`, in
which a span names its process by `processID`. Storage and archives write spans that have
a `process` each, in a list or one on each line, with references, or `parentSpanID`, also
as Elasticsearch returns or exports them (`hits`, `_source`).
Times are microseconds; in JSON made of Jaeger's protobuf definitions they are texts
(`2026-11-18T01:02:03.000004Z`, `0.5s`), and identifiers are base64.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

from .documents import first_of, items
from .queues import queue_of
from .rows import Refused, shown
from .spans import INSTANCE, INTERNAL, BadSpanError, Span, identifier

__all__ = ["count_json", "read_json"]

_TIME = re.compile(r"(.*T\d\d:\d\d:\d\d)(?:\.(\d{1,9}))?(Z|[+-]\d\d:\d\d)")
_VALUES = ("value", "vStr", "vInt64", "vBool", "v_str", "v_int64", "v_bool")
_AROUND = ("data", "hits", "_source")
"""What spans are below: in the API of Jaeger, and in that of Elasticsearch, where it keeps them."""
_KINDS = ("client", "server", "producer", "consumer")


def read_json(file: str, found: Iterable[Any], first: int = 1) -> Iterator[Span | Refused]:
    """Yield the spans of documents in either form; `first` is the number of the first of them."""
    inside = (item for document in found for item in _within(document))
    for number, (span, processes) in enumerate(inside, first):
        try:
            yield _span(file, number, span, processes)
        except BadSpanError as error:
            yield Refused(file, number, str(error), shown(span))


def count_json(found: Iterable[Any]) -> int:
    """Return how many numbers `read_json` gives to what is in some documents."""
    return sum(1 for document in found for _ in _within(document))


def _within(document: Any) -> Iterator[tuple[Any, Mapping[str, Any]]]:
    """Yield what a document has for spans, with the processes of their trace."""
    todo = [document]
    while todo:
        item = todo.pop()
        inner = next((key for key in _AROUND if isinstance(item, dict) and key in item), None)
        if isinstance(item, list):
            todo += reversed(item)
        elif inner is not None:
            todo.append(item[inner])
        elif isinstance(item, dict) and "spans" in item:
            processes = item.get("processes")
            for span in items(item, "spans"):
                yield span, processes if isinstance(processes, dict) else {}
        else:
            yield item, {}


def _span(file: str, row: int, span: Any, processes: Mapping[str, Any]) -> Span:
    if not isinstance(span, dict):
        raise BadSpanError("a span must be a JSON object")
    process = span.get("process")
    if not isinstance(process, dict):
        process = processes.get(str(span.get("processID")))
    service = first_of(process or {}, "serviceName", "service_name")
    if not service:
        raise BadSpanError("its process has no serviceName")
    resource, about = _tags(process), _tags(span)
    start = _microseconds(first_of(span, "startTime", "start_time"))
    if start is None:
        raise BadSpanError("it has no startTime")
    length = _microseconds(first_of(span, "duration"))
    kind = str(about.get("span.kind", "")).lower()
    trace = identifier(_named(span, "traceID", "traceId", "trace_id"), 32)
    parent, links = _references(span, trace)
    return Span(
        file=file,
        row=row,
        service=service,
        instance=first_of(resource, *INSTANCE, "hostname", "ip"),
        thread=str(about.get("thread.id", "")),
        trace=trace,
        span=identifier(_named(span, "spanID", "spanId", "span_id"), 16),
        parent=parent,
        start=start,
        end=start + (length or 0),
        kind=kind if kind in _KINDS else INTERNAL,
        links=links,
        queue=queue_of(about),
        failed=str(about.get("error", "")).lower() == "true",
    )


def _references(span: Mapping[str, Any], trace: str) -> tuple[str, tuple[tuple[str, str], ...]]:
    """Return the parent, and the other spans that this one follows from."""
    parent = ""
    links: list[tuple[str, str]] = []
    for reference in items(span, "references"):
        if not isinstance(reference, dict):
            raise BadSpanError("a reference must be a JSON object")
        of = identifier(_named(reference, "traceID", "traceId", "trace_id"), 32)
        to = identifier(_named(reference, "spanID", "spanId", "span_id"), 16)
        how = _named(reference, "refType", "ref_type") or "CHILD_OF"
        if how == "CHILD_OF" and of == trace and not parent:
            parent = to
        else:
            links.append((of, to))
    older = first_of(span, "parentSpanID", "parentSpanId")
    if not parent and older and older.strip("0"):
        parent = identifier(older, 16)
    return parent, tuple(links)


def _named(table: Mapping[str, Any], *names: str) -> Any:
    """Return the value under the first of these names that is there."""
    return next((table[name] for name in names if name in table), None)


def _tags(table: Any) -> dict[str, Any]:
    """Return tags as plain values: a list of them, or an object as in Elasticsearch."""
    result: dict[str, Any] = {}
    if not isinstance(table, dict):
        return result
    if isinstance(table.get("tag"), dict):
        result |= {str(key).replace("@", "."): value for key, value in table["tag"].items()}
    for tag in items(table, "tags"):
        if isinstance(tag, dict):
            result[str(tag.get("key"))] = _named(tag, *_VALUES)
    return result


def _microseconds(text: str) -> int | None:
    """Return nanoseconds from microseconds, a date, or a duration in seconds."""
    if text.isdigit() and len(text) <= 16:
        return int(text) * 1000
    if match := re.fullmatch(r"(\d+)(?:\.(\d{1,9}))?s", text):
        return int(match[1]) * 10**9 + int((match[2] or "").ljust(9, "0"))
    if match := _TIME.fullmatch(text):
        try:
            whole = datetime.fromisoformat(match[1] + match[3].replace("Z", "+00:00"))
        except ValueError:
            return None
        seconds = int((whole - datetime(1970, 1, 1, tzinfo=UTC)).total_seconds())
        return seconds * 10**9 + int((match[2] or "").ljust(9, "0"))
    return None
