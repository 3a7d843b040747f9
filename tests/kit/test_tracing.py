"""The kit makes spans, and the check reads them back."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from causewire.check import check
from causewire.kit import GroupMessage, Kit, Request
from causewire.testing.virtual import VirtualLoop, run
from causewire.trace.formats.foreign import read_foreign

from .helper import kit

sdk = pytest.importorskip("opentelemetry.sdk.trace")


class Spans:
    """Tracer providers of several processes, and what they export, as OTLP."""

    def __init__(self) -> None:
        self.finished: list[Any] = []

    def provider(self, name: str) -> Any:
        from opentelemetry.sdk.resources import Resource
        from opentelemetry.sdk.trace.export import SimpleSpanProcessor
        from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

        exporter: Any = InMemorySpanExporter()
        exporter.export = self.finished.extend
        about = {"service.name": name, "service.instance.id": f"{name}-1"}
        provider = sdk.TracerProvider(resource=Resource(about), shutdown_on_exit=False)
        provider.add_span_processor(SimpleSpanProcessor(exporter))
        return provider

    def document(self) -> dict[str, Any]:
        return {"resourceSpans": [_resource(span) for span in self.finished]}


def _attributes(found: Any) -> list[dict[str, Any]]:
    return [{"key": key, "value": {"stringValue": str(value)}} for key, value in found.items()]


def _resource(span: Any) -> dict[str, Any]:
    context = span.get_span_context()
    links = [
        {"traceId": f"{link.context.trace_id:032x}", "spanId": f"{link.context.span_id:016x}"}
        for link in span.links
    ]
    written = {
        "traceId": f"{context.trace_id:032x}",
        "spanId": f"{context.span_id:016x}",
        "parentSpanId": f"{span.parent.span_id:016x}" if span.parent else "",
        "name": span.name,
        "kind": f"SPAN_KIND_{span.kind.name}",
        "startTimeUnixNano": str(span.start_time),
        "endTimeUnixNano": str(span.end_time),
        "attributes": _attributes(span.attributes),
        "links": links,
    }
    about = {"attributes": _attributes(span.resource.attributes)}
    return {"resource": about, "scopeSpans": [{"spans": [written]}]}


async def until(spans: Spans, kind: str, number: int) -> None:
    for _ in range(1000):
        if len([span for span in spans.finished if span.name.startswith(kind)]) >= number:
            return
        await asyncio.sleep(0.01)
    raise AssertionError([span.name for span in spans.finished])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("protocol", "where", "waits"),
    [
        ("csps", "sender", "bob"),  # until alice permits it, since carol has the question
        ("adaptive", "receiver", "carol"),  # until the question is there
    ],
)
def test_spans_are_read_back_and_checked(
    tmp_path: Path, protocol: str, where: str, waits: str
) -> None:
    spans = Spans()
    settings = {"protocol": protocol}

    async def main(loop: VirtualLoop) -> None:
        slow = {(1, 3)}
        async with (
            kit(loop, "alice", node_=settings, codec="json", tracing=spans.provider("alice")) as a,
            kit(loop, "bob", node_=settings, codec="json", tracing=spans.provider("bob")) as b,
            kit(loop, "carol", node_=settings, codec="json", tracing=spans.provider("carol")) as c,
        ):
            rooms = [await a.join("room")]
            rooms += [await made.join("room", ["alice"]) for made in (b, c)]
            await asyncio.sleep(1)
            loop.network.fate = lambda x, y, _: [1.0 if (x[1], y[1]) in slow else 0.001]

            async def answer() -> None:
                async for item in rooms[1]:
                    if isinstance(item, GroupMessage) and item.payload == "question":
                        await item.reply("answer")

            async def listen(k: int) -> None:
                async for _ in rooms[k]:
                    pass

            tasks = [
                asyncio.create_task(answer()),
                *[asyncio.create_task(listen(k)) for k in (0, 2)],
            ]
            await rooms[0].send("question")
            await until(spans, "deliver", 4)
            await asyncio.sleep(1)
            await request(b, c)
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def request(server: Kit, client: Kit) -> None:
        @server.serves("time")
        async def time(request: Request) -> int:
            assert "traceparent" in request.headers
            return 12

        assert await client.request("bob", None, service="time") == 12

    run(main)
    names = [span.name for span in spans.finished]
    assert names.count("send room") == 2
    assert names.count("deliver room") == 4
    assert names.count("handle room") >= 3
    by_name = {span.name: span for span in spans.finished}
    assert by_name["serve time"].parent.span_id == by_name["request time"].context.span_id
    # The answer was sent while the question was handled, in the trace of the question.
    sends = [span for span in spans.finished if span.name == "send room"]
    handled = {span.context.span_id for span in spans.finished if span.name == "handle room"}
    assert sends[1].parent.span_id in handled
    assert sends[0].context.trace_id == sends[1].context.trace_id

    # The answer waited, and its span has it: below that of the send, or that of the delivery.
    (held,) = [span for span in spans.finished if span.name == "held room"]
    assert held.attributes["causewire.held.at"] == where
    assert held.resource.attributes["service.name"] == waits
    assert held.start_time < held.end_time
    below = [span for span in spans.finished if span.context.span_id == held.parent.span_id]
    assert [span.name for span in below] == ["send room" if where == "sender" else "deliver room"]
    assert held.context.trace_id == sends[1].context.trace_id
    if where == "receiver":
        assert [link.context.span_id for link in held.links] == [sends[1].context.span_id]

    path = tmp_path / "spans.json"
    path.write_text(json.dumps(spans.document()))
    found = read_foreign([str(path)])
    assert found.quarantine == []
    report = check(found.trace)
    assert report.violations == 0
    assert report.messages >= 4

    # Carol delivers the answer before the question: the check has to see it.
    document = spans.document()
    late = [
        span["scopeSpans"][0]["spans"][0]
        for span in document["resourceSpans"]
        if "carol" in json.dumps(span["resource"])
    ]
    delivered = [span for span in late if span["name"] == "deliver room"]
    for key in ("startTimeUnixNano", "endTimeUnixNano"):
        first, second = delivered
        first[key], second[key] = second[key], first[key]
    path.write_text(json.dumps(document))
    assert check(read_foreign([str(path)]).trace).violations == 1
