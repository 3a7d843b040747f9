"""Zipkin v2 spans: a list of them, a list of traces as the API returns it, or one on each line.

Times are microseconds. Client and server may report the same span, each from its side;
the server's is then marked as `shared`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from .documents import first_of, flattened
from .queues import queue_of
from .rows import Refused, shown
from .spans import INTERNAL, BadSpanError, Span, identifier

__all__ = ["count_json", "read_json"]

_KINDS = ("client", "server", "producer", "consumer")


def read_json(file: str, found: Iterable[Any], first: int = 1) -> Iterator[Span | Refused]:
    """Yield the spans of some documents; `first` is the number of the first of them."""
    for number, span in enumerate(flattened(found), first):
        try:
            yield _span(file, number, span)
        except BadSpanError as error:
            yield Refused(file, number, str(error), shown(span))


def count_json(found: Iterable[Any]) -> int:
    """Return how many numbers `read_json` gives to what is in some documents."""
    return sum(1 for _ in flattened(found))


def _span(file: str, row: int, span: Any) -> Span:
    if not isinstance(span, dict):
        raise BadSpanError("a span must be a JSON object")
    here = span.get("localEndpoint")
    here = here if isinstance(here, dict) else {}
    service = first_of(here, "serviceName")
    if not service:
        raise BadSpanError("its localEndpoint has no serviceName")
    start, length = span.get("timestamp"), span.get("duration", 0)
    if type(start) is not int or not 0 < start < 2**53:
        raise BadSpanError("it has no timestamp")
    tags = span.get("tags")
    tags = tags if isinstance(tags, dict) else {}
    kind = str(span.get("kind", "")).lower()
    address = first_of(here, "ipv4", "ipv6")
    if address and here.get("port"):
        address += f":{here['port']}"
    return Span(
        file=file,
        row=row,
        service=service,
        instance=address,
        thread=str(tags.get("thread.id", "")),
        trace=identifier(span.get("traceId"), 32),
        span=identifier(span.get("id"), 16),
        parent=identifier(span["parentId"], 16) if span.get("parentId") else "",
        start=start * 1000,
        end=(start + (length if type(length) is int and length > 0 else 0)) * 1000,
        kind=kind if kind in _KINDS else INTERNAL,
        queue=queue_of(tags),
        failed="error" in tags,
        shared=span.get("shared") is True,
    )
