"""Traces: what happened, one row per event, in the one format that parts share.

    with open_writer("run.parquet") as writer:
        writer.write(Event(...))

    for event in open_trace("run.parquet").events(): ...

Parquet needs pyarrow (`pip install "causewire[trace]"`); JSON lines need
nothing.
"""

from .reader import Trace, TraceBatch, open_trace, trace_files, trace_of
from .schema import (
    DELIVER,
    HELD,
    HELD_FOR,
    LANE,
    NAMES,
    RECEIVE,
    RELEASE,
    SEND,
    Event,
    TraceError,
    arrow_schema,
)
from .shiviz import ShivizLog, read_shiviz, write_shiviz
from .writer import TraceWriter, open_writer, write_trace

__all__ = [
    "DELIVER",
    "HELD",
    "HELD_FOR",
    "LANE",
    "NAMES",
    "RECEIVE",
    "RELEASE",
    "SEND",
    "Event",
    "ShivizLog",
    "Trace",
    "TraceBatch",
    "TraceError",
    "TraceWriter",
    "arrow_schema",
    "open_trace",
    "open_writer",
    "read_shiviz",
    "trace_files",
    "trace_of",
    "write_shiviz",
    "write_trace",
]
