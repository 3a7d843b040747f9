"""Schemas of the tables that sources give, as Spark writes them."""

from __future__ import annotations

__all__ = ["ALL", "EVENTS", "QUARANTINE", "SPANS"]

EVENTS = (
    "run string, process string, seq bigint, time_ns bigint, lamport bigint, kind string, "
    "origin string, mid bigint, peers array<string>, payload_bytes int, metadata_bytes int"
)
"""The columns of a trace."""

QUARANTINE = "file string, row bigint, reason string, text string"
"""Rows that cannot be understood. `row` counts from 1 within the file (lines, for text);
it is missing if the whole file cannot be read. `text` is how the row begins."""

ALL = f"{EVENTS}, {QUARANTINE}"
"""Both together: `reason` is missing in the rows that are events."""

SPANS = f"run string, span binary, {QUARANTINE}"
"""Spans that are followed, pickled, each once for every run in which it has a part; and what
cannot be understood."""
