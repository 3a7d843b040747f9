"""OpenTelemetry spans: OTLP as JSON, JSON lines and protobuf, and Tempo's export.

A JSON document has `resourceSpans` (`batches` in what Tempo exports), each with a
resource and `scopeSpans`. It may be in a list, below `trace` (version 2 of Tempo's API) or
`result` (version 3 of Jaeger's), or be one element of `resourceSpans` alone. The protobuf
forms are parsed with the definitions of the project itself (`opentelemetry-proto`): one
`TracesData` or export request, or several, each after its length in four bytes, as the
collector's file exporter writes them. With compression, it does so with JSON as well, and
compresses each document (`unframed`).
"""

from __future__ import annotations

import io
import struct
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from .documents import first_of, flattened, items
from .queues import queue_of
from .rows import Refused, shown
from .spans import (
    CLIENT,
    CONSUMER,
    INSTANCE,
    INTERNAL,
    PRODUCER,
    SERVER,
    BadSpanError,
    Span,
    identifier,
)

__all__ = ["count_json", "is_document", "read_json", "read_protobuf", "unframed"]

_DOCUMENT_KEYS = ("resourceSpans", "resource_spans", "batches")
"""What the list of resources is called."""

_AROUND = ("trace", "result")
"""What a document may be below: in the APIs of Tempo and Jaeger."""

_ZSTD = b"\x28\xb5\x2f\xfd"
_SCOPES = ("scopeSpans", "scope_spans", "instrumentationLibrarySpans")
_KINDS = {1: INTERNAL, 2: SERVER, 3: CLIENT, 4: PRODUCER, 5: CONSUMER}
_NAMES = {f"SPAN_KIND_{kind.upper()}": kind for kind in _KINDS.values()}


def read_json(file: str, found: Iterable[Any], first: int = 1) -> Iterator[Span | Refused]:
    """Yield the spans of some documents; `first` is the number of the first of them."""
    number = first - 1
    for document in flattened(found):
        if not is_document(document):
            number += 1
            reason = "not a JSON document" if isinstance(document, bytes) else "no resourceSpans"
            yield Refused(file, number, reason, shown(document))
            continue
        for scope in _resources(document):
            about = _attributes(scope.get("resource") if isinstance(scope, dict) else None)
            for span in _spans_of(scope):
                number += 1
                try:
                    yield _span(file, number, about, span)
                except BadSpanError as error:
                    yield Refused(file, number, str(error), shown(span))


def count_json(found: Iterable[Any]) -> int:
    """Return how many numbers `read_json` gives to what is in some documents."""
    return sum(
        sum(1 for scope in _resources(document) for _ in _spans_of(scope))
        if is_document(document)
        else 1
        for document in flattened(found)
    )


def is_document(document: Any) -> bool:
    """Return whether spans can be looked for in a document: it has resources, or is one."""
    if not isinstance(document, dict):
        return False
    return _has_resources(document) or any(_has_resources(document.get(key)) for key in _AROUND)


def _has_resources(document: Any) -> bool:
    keys = (*_DOCUMENT_KEYS, *_SCOPES)
    return isinstance(document, dict) and any(key in document for key in keys)


def _resources(document: Any) -> list[Any]:
    """Return the resources of a document, each with its scopes."""
    if not _has_resources(document):
        document = next(filter(_has_resources, map(document.get, _AROUND)))
    if any(key in document for key in _DOCUMENT_KEYS):
        return items(document, *_DOCUMENT_KEYS)
    return [document]


def _spans_of(scope: Any) -> Iterator[Any]:
    for scoped in items(scope, *_SCOPES):
        yield from items(scoped, "spans")


def read_protobuf(file: str, data: bytes) -> Iterator[Span | Refused]:
    """Yield the spans of a protobuf message, or of several with their lengths before them."""
    try:
        from google.protobuf.json_format import MessageToDict
        from google.protobuf.message import DecodeError
        from opentelemetry.proto.trace.v1.trace_pb2 import TracesData
    except ImportError:
        reason = 'OTLP as protobuf needs pip install "causewire[otlp]"'
        yield Refused(file, None, reason)
        return
    number = 0
    for part in _frames(data):
        try:
            message = TracesData.FromString(part)
        except DecodeError:
            yield Refused(file, None, "neither JSON nor a protobuf message of OTLP")
            return
        for resource in message.resource_spans:
            about = _attributes(MessageToDict(resource.resource))
            for scoped in resource.scope_spans:
                for span in scoped.spans:
                    number += 1
                    try:
                        yield _span(file, number, about, MessageToDict(span))
                    except BadSpanError as error:
                        yield Refused(file, number, str(error), shown(span))
    if number == 0:
        yield Refused(file, None, "a protobuf message without spans")


def unframed(data: bytes) -> bytes:
    """Return content in which each document was compressed as without compression.

    Raises:
        OSError: A document cannot be decompressed.
    """
    frames = _frames(data) if data[4:8] == _ZSTD else [data]
    if frames == [data]:
        return data
    import pyarrow as pa

    documents = []
    for frame in frames:
        with pa.CompressedInputStream(io.BytesIO(frame), "zstd") as stream:
            documents.append(stream.read())
    if all(document.lstrip()[:1] == b"{" for document in documents):
        return b"\n".join(documents)
    return b"".join(struct.pack(">I", len(document)) + document for document in documents)


def _frames(data: bytes) -> list[bytes]:
    """Split messages that are preceded by their lengths; a single message is not."""
    frames, at = [], 0
    while at + 4 <= len(data):
        (size,) = struct.unpack_from(">I", data, at)
        if at + 4 + size > len(data):
            return [data]
        frames.append(data[at + 4 : at + 4 + size])
        at += 4 + size
    return frames if frames and at == len(data) else [data]


def _attributes(table: Any) -> dict[str, Any]:
    """Return attributes as plain values."""
    result: dict[str, Any] = {}
    for entry in items(table, "attributes") if isinstance(table, dict) else []:
        if isinstance(entry, dict) and isinstance(entry.get("value"), dict):
            result[str(entry.get("key"))] = next(iter(entry["value"].values()), None)
    return result


def _span(file: str, row: int, resource: Mapping[str, Any], span: Any) -> Span:
    if not isinstance(span, dict):
        raise BadSpanError("a span must be a JSON object")
    about = _attributes(span)
    service = resource.get("service.name")
    if not isinstance(service, str) or not service:
        raise BadSpanError("its resource has no service.name")
    start = _time(span, "startTimeUnixNano", "start_time_unix_nano")
    if start is None:
        raise BadSpanError("it has no startTimeUnixNano")
    end = _time(span, "endTimeUnixNano", "end_time_unix_nano")
    size = str(
        first_of(about, "messaging.message.body.size", "messaging.message.payload_size_bytes")
    )
    status = span.get("status")
    parent = span.get("parentSpanId", span.get("parent_span_id"))
    return Span(
        file=file,
        row=row,
        service=service,
        instance=first_of(resource, *INSTANCE),
        thread=str(about.get("thread.id", "")),
        trace=identifier(span.get("traceId", span.get("trace_id")), 32),
        span=identifier(span.get("spanId", span.get("span_id")), 16),
        parent=identifier(parent, 16) if parent else "",
        start=start,
        end=max(start, end or 0),
        kind=_kind(span.get("kind", 0)),
        links=tuple(map(_link, items(span, "links"))),
        queue=queue_of(about),
        size=int(size) if size.isdigit() and len(size) < 10 else None,
        failed=isinstance(status, dict) and status.get("code") in (2, "STATUS_CODE_ERROR"),
    )


def _kind(value: Any) -> str:
    if isinstance(value, str):
        return _NAMES.get(value, INTERNAL)
    return _KINDS.get(value, INTERNAL) if type(value) is int else INTERNAL


def _link(link: Any) -> tuple[str, str]:
    if not isinstance(link, dict):
        raise BadSpanError("a link must be a JSON object")
    return (
        identifier(link.get("traceId", link.get("trace_id")), 32),
        identifier(link.get("spanId", link.get("span_id")), 16),
    )


def _time(span: Mapping[str, Any], *names: str) -> int | None:
    for name in names:
        try:
            value = int(span[name])
        except (KeyError, TypeError, ValueError, OverflowError):
            continue
        if 0 <= value < 2**63:
            return value
    return None
