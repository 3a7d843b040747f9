"""Where events come from: our traces, ShiViz logs, OpenTelemetry spans, any table.

    register(spark)
    events = spark.read.format("causewire").load("traces/")
    events = spark.read.format("causewire").option("kind", "otlp").load("spans.json")

A row that cannot be understood is never dropped in silence, and never stops the
rest: it goes to the quarantine, with its file, its number there, and the reason:

    spark.read.format("causewire").option("show", "quarantine").load("traces/")

Each row of the source is in one of the two tables. `ingest` reads both at once.
"""

from ..schemas import ALL, QUARANTINE
from .ingest import Ingested, from_table, ingest
from .source import CausewireSource, register
from .streams import from_kafka, with_quarantine

__all__ = [
    "ALL",
    "QUARANTINE",
    "CausewireSource",
    "Ingested",
    "from_kafka",
    "from_table",
    "ingest",
    "register",
    "with_quarantine",
]
