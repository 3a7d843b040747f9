"""Spans of a made-up system, as its tracing would have recorded them: OTLP, one document a line.

The system is a deployment of the simulator (`sim.workloads.Deployment`): its services and
call graphs. Requests arrive at random; calls take time on the way and at the server; each
instance has a clock of its own, which is wrong by up to 50 ms. Nothing of the simulator's
event loop is used, so the file is like one that a collector would have written.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

from causewire.sim.workloads import Deployment
from causewire.sim.workloads.deployment import CallNode

__all__ = ["SPANS", "requests_in", "write_spans"]

SPANS = "spans.jsonl.gz"
"""The name of the file in the directory of a study."""

_START = 1_700_000_000_000_000_000
_KINDS = {"server": 2, "client": 3, "producer": 4, "consumer": 5}


class _Recorder:
    """Lets requests happen, and keeps their spans."""

    def __init__(self, size: int, seed: int) -> None:
        plan = Deployment(size=size, seed=seed).plan
        self._random = Random(seed)
        self._functions = [function.root for function in plan.functions]
        self._weights = [function.weight for function in plan.functions]
        self._instances: list[list[tuple[str, str, int]]] = []
        names = iter(plan.names())
        for service, replicas in enumerate(plan.replicas):
            self._instances.append(
                [(f"service-{service}", next(names), self._skew()) for _ in range(replicas)]
            )
        self._trace = self._last = 0
        self.documents: list[dict[str, Any]] = []

    def _skew(self) -> int:
        return int(self._random.uniform(-50e6, 50e6))

    def _on_the_way(self) -> int:
        return int(self._random.lognormvariate(12.4, 0.3))  # a median of 0.25 ms

    def _work(self) -> int:
        return int(self._random.lognormvariate(12.4, 1.0))

    def request(self, at: int) -> None:
        """Let one request happen."""
        (root,) = self._random.choices(self._functions, self._weights)
        self._trace += 1
        self._serve(root, at, "server", 0)

    def _serve(self, node: CallNode, start: int, kind: str, cause: int) -> int:
        """Handle a call at an instance of its service; return when it is done."""
        where = self._random.choice(self._instances[node.service])
        me = self._number()
        now = end = start + self._work()
        for call in node.calls:
            if call.optional and self._random.random() < 0.5:
                continue
            span = self._number()
            if call.queued:
                self._span(where, span, me, "producer", now, now + 50_000)
                self._serve(call, now + 4 * self._on_the_way(), "consumer", span)
                now += 50_000
                end = max(end, now)
                continue
            done = self._serve(call, now + self._on_the_way(), "server", span)
            back = done + self._on_the_way()
            self._span(where, span, me, "client", now, back)
            end = max(end, back)
            now = now + 20_000 if node.parallel else back
        self._span(where, me, cause if kind == "server" else 0, kind, start, end, cause)
        return end

    def _number(self) -> int:
        self._last += 1
        return self._last

    def _span(
        self,
        where: tuple[str, str, int],
        span: int,
        parent: int,
        kind: str,
        start: int,
        end: int,
        link: int = 0,
    ) -> None:
        service, instance, skew = where
        value: dict[str, Any] = {
            "traceId": f"{self._trace:032x}",
            "spanId": f"{span:016x}",
            "kind": _KINDS[kind],
            "startTimeUnixNano": str(_START + start + skew),
            "endTimeUnixNano": str(_START + end + skew),
        }
        if parent:
            value["parentSpanId"] = f"{parent:016x}"
        if kind == "consumer":
            value["links"] = [{"traceId": value["traceId"], "spanId": f"{link:016x}"}]
        about = {"service.name": service, "service.instance.id": instance}
        attributes = [{"key": key, "value": {"stringValue": v}} for key, v in about.items()]
        resource = {"resource": {"attributes": attributes}, "scopeSpans": [{"spans": [value]}]}
        self.documents.append({"resourceSpans": [resource]})


def _documents(size: int, requests: int, seed: int) -> Iterator[dict[str, Any]]:
    recorder = _Recorder(size, seed)
    pause = Random(seed + 1)
    at = 0
    for _ in range(requests):
        at += int(pause.expovariate(size / 50e6))  # 20 requests a second for each process
        recorder.request(at)
        yield from recorder.documents
        recorder.documents.clear()


def write_spans(path: Path, *, size: int = 100, requests: int = 1000, seed: int = 0) -> None:
    """Write the spans of some requests as JSON lines, compressed.

    Args:
        path: The file, which is replaced.
        size: The number of service instances.
        requests: How many requests there are.
        seed: The seed of the system and of what happens in it.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = (json.dumps(one, separators=(",", ":")) for one in _documents(size, requests, seed))
    text = "".join(f"{line}\n" for line in lines)
    part = path.with_suffix(".part")  # a study that is stopped here finds no half file later
    part.write_bytes(gzip.compress(text.encode(), 6, mtime=0))
    part.replace(path)


def requests_in(path: Path) -> int:
    """Return how many requests a file of spans has; none if there is no such file."""
    if not path.exists():
        return 0
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        spans = (json.loads(line)["resourceSpans"][0]["scopeSpans"][0]["spans"] for line in lines)
        return len({span["traceId"] for found in spans for span in found})
