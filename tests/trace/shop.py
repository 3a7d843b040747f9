"""A small shop whose requests are recorded by hand, written in the formats of tracing tools.

A request comes to `web`, which calls `cart` (and waits), and publishes an order to a
queue, partition 0, that `mail` consumes. Then `web` calls `audit`, which publishes to the
same partition. `mail` should see the order first.
"""

from __future__ import annotations

import base64
import json
import struct
from typing import Any, NamedTuple

__all__ = [
    "Op",
    "in_order",
    "jaeger",
    "jaeger_lines",
    "otlp",
    "otlp_protobuf",
    "overtaken",
    "zipkin",
]


class Op(NamedTuple):
    """One span: times in microseconds after the start of the request."""

    service: str
    span: int
    parent: int
    kind: str
    start: int
    end: int
    link: int = 0
    partition: str = ""
    trace: int = 1
    tags: tuple[tuple[str, str], ...] = ()

    @property
    def attributes(self) -> dict[str, str]:
        """What its instrumentation says about it."""
        partition = {
            "messaging.destination.name": "orders",
            "messaging.destination.partition.id": self.partition,
        }
        return (partition if self.partition else {}) | dict(self.tags)


_BASE = 1_700_000_000_000_000


def in_order(trace: int = 1) -> list[Op]:
    """Return the spans of a request in which everything is handled in order."""
    ops = [
        Op("web", 1, 0, "server", 0, 100),
        Op("web", 2, 1, "client", 10, 20),
        Op("cart", 3, 2, "server", 1012, 1018),  # another clock
        Op("web", 4, 1, "producer", 30, 31, 0, "0"),
        Op("web", 5, 1, "client", 40, 60),
        Op("audit", 6, 5, "server", 545, 555),
        Op("audit", 7, 6, "producer", 550, 551, 0, "0"),
        Op("mail", 8, 0, "consumer", 2100, 2101, 4, "0"),
        Op("mail", 9, 0, "consumer", 2200, 2201, 7, "0"),
    ]
    return [op._replace(trace=trace) for op in ops]


def overtaken(trace: int = 1) -> list[Op]:
    """Return the same, but the second order is consumed before the first."""
    return [op._replace(start=2300, end=2301) if op.span == 8 else op for op in in_order(trace)]


def _hex(number: int, digits: int) -> str:
    return f"{number:0{digits}x}"


def _attribute(key: str, value: str) -> dict[str, Any]:
    return {"key": key, "value": {"stringValue": value}}


def otlp(
    ops: list[Op], *, key: str = "resourceSpans", in_base64: bool = False, lines: bool = False
) -> bytes:
    """Return the spans as OTLP: one document, or one for each span."""

    def name(number: int, digits: int) -> str:
        raw = _hex(number, digits)
        return base64.b64encode(bytes.fromhex(raw)).decode() if in_base64 else raw

    resources = []
    for op in ops:
        span: dict[str, Any] = {
            "traceId": name(op.trace, 32),
            "spanId": name(op.span, 16),
            "kind": f"SPAN_KIND_{op.kind.upper()}",
            "startTimeUnixNano": str((_BASE + op.start) * 1000),
            "endTimeUnixNano": str((_BASE + op.end) * 1000),
        }
        if op.parent:
            span["parentSpanId"] = name(op.parent, 16)
        if op.link:
            span["links"] = [{"traceId": name(op.trace, 32), "spanId": name(op.link, 16)}]
        if op.attributes:
            span["attributes"] = [_attribute(key, op.attributes[key]) for key in op.attributes]
        about = [_attribute("service.name", op.service), _attribute("host.name", f"{op.service}-1")]
        resources.append({"resource": {"attributes": about}, "scopeSpans": [{"spans": [span]}]})
    documents = [[one] for one in resources] if lines else [resources]
    return b"".join(json.dumps({key: some}).encode() + b"\n" for some in documents)


def otlp_protobuf(ops: list[Op], *, framed: bool = False) -> bytes:
    """Return the spans as protobuf, with the length before it if framed."""
    from google.protobuf.json_format import ParseDict
    from opentelemetry.proto.trace.v1.trace_pb2 import TracesData

    document = json.loads(otlp(ops, in_base64=True))
    data: bytes = ParseDict(document, TracesData()).SerializeToString()
    return struct.pack(">I", len(data)) + data if framed else data


def _jaeger_span(op: Op) -> dict[str, Any]:
    references = []
    if op.parent:
        references.append(("CHILD_OF", op.parent))
    if op.link:
        references.append(("FOLLOWS_FROM", op.link))
    about = {"span.kind": op.kind} | op.attributes
    tags = [{"key": key, "type": "string", "value": value} for key, value in about.items()]
    return {
        "traceID": _hex(op.trace, 1),
        "spanID": _hex(op.span, 1),
        "operationName": "x",
        "references": [
            {"refType": kind, "traceID": _hex(op.trace, 1), "spanID": _hex(span, 1)}
            for kind, span in references
        ],
        "startTime": _BASE + op.start,
        "duration": op.end - op.start,
        "tags": tags,
    }


def _jaeger_process(op: Op) -> dict[str, Any]:
    tag = {"key": "hostname", "type": "string", "value": f"{op.service}-1"}
    return {"serviceName": op.service, "tags": [tag]}


def jaeger(ops: list[Op]) -> bytes:
    """Return the spans as Jaeger's API does."""
    traces = []
    for trace in sorted({op.trace for op in ops}):
        mine = [op for op in ops if op.trace == trace]
        traces.append(
            {
                "traceID": _hex(trace, 1),
                "spans": [_jaeger_span(op) | {"processID": op.service} for op in mine],
                "processes": {op.service: _jaeger_process(op) for op in mine},
            }
        )
    return json.dumps({"data": traces}).encode()


def jaeger_lines(ops: list[Op]) -> bytes:
    """Return the spans as Jaeger's storage has them, one on each line."""
    spans = [_jaeger_span(op) | {"process": _jaeger_process(op)} for op in ops]
    return b"".join(json.dumps(span).encode() + b"\n" for span in spans)


def zipkin(ops: list[Op], *, shared: bool = False) -> bytes:
    """Return the spans as Zipkin does, which has no links: a consumer names its parent."""
    alias = {op.span: op.parent for op in ops if shared and op.kind == "server" and op.parent}
    spans = []
    for op in ops:
        parent = op.parent or op.link
        span: dict[str, Any] = {
            "traceId": _hex(op.trace, 16),
            "id": _hex(alias.get(op.span, op.span), 16),
            "kind": op.kind.upper(),
            "timestamp": _BASE + op.start,
            "duration": op.end - op.start,
            "localEndpoint": {"serviceName": op.service, "ipv4": "10.0.0.1"},
        }
        if op.span in alias:
            span["shared"] = True
        elif parent:
            span["parentId"] = _hex(alias.get(parent, parent), 16)
        if op.attributes:
            span["tags"] = op.attributes
        spans.append(span)
    return json.dumps(spans).encode()
