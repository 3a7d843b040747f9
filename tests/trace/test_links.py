"""Consumers that have a trace of their own, and a link to the producer's."""

from __future__ import annotations

import json
from pathlib import Path

from causewire.trace.formats.foreign import read_foreign
from causewire.trace.formats.spans import NO_PARENT

from .shop import in_order, otlp


def with_own_traces(*, links_to: str | None = None) -> str:
    document = json.loads(otlp(in_order()))
    for resource in document["resourceSpans"]:
        for span in resource["scopeSpans"][0]["spans"]:
            if span["kind"] == "SPAN_KIND_CONSUMER":
                span["traceId"] = f"{int(span['spanId'], 16):032x}"
                for link in span["links"]:
                    link["traceId"] = links_to or link["traceId"]
    return json.dumps(document)


def test_a_link_to_another_trace_is_not_missing(tmp_path: Path) -> None:
    file = tmp_path / "spans"
    file.write_text(with_own_traces())
    found = read_foreign([str(file)])
    assert NO_PARENT not in found.notes
    assert len({event.run for event in found.trace.events()}) == 1


def test_a_link_to_a_trace_that_is_not_there(tmp_path: Path) -> None:
    file = tmp_path / "spans"
    file.write_text(with_own_traces(links_to="f" * 32))
    found = read_foreign([str(file)])
    assert found.notes[NO_PARENT] == 2


def test_a_consumer_that_was_recorded_twice(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).write_text(with_own_traces())
    once = read_foreign([str(tmp_path / "a")])
    both = read_foreign([str(tmp_path / "a"), str(tmp_path / "b")])
    assert sum(1 for _ in both.trace.events()) == sum(1 for _ in once.trace.events())
