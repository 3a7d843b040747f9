"""Names of formats and of their options, for those who only list them; imports nothing."""

from __future__ import annotations

__all__ = ["FORMATS", "PROCESS_BY", "RUN_BY", "SPAN_FORMATS", "TWICE"]

SPAN_FORMATS = ("otlp", "jaeger", "zipkin")
FORMATS = ("trace", "shiviz", *SPAN_FORMATS, "table")

PROCESS_BY = ("request", "instance", "service", "thread")
"""What is a process of a system whose spans are read (`docs/foreign-traces.md`)."""

RUN_BY = ("trace", "all")

TWICE = "spans that were recorded twice"
"""A note of the readers of spans."""
