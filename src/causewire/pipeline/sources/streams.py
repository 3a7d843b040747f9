"""Streaming tables of events: any DataFrame, and topics of Kafka."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...trace import DELIVER, SEND
from ..prepare import completed
from ..schemas import EVENTS

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["from_kafka", "with_quarantine"]


def from_kafka(records: DataFrame) -> DataFrame:
    """Return the events in records of Kafka whose values are lines of a `.jsonl` trace.

    Args:
        records: The columns of Spark's Kafka source: `value`, and `topic`, `partition` and
            `offset`, which tell in the quarantine where a record is.

    Returns:
        Events and records that could not be understood, for `watch`.
    """
    from pyspark.sql import functions as f

    text = f.col("value").cast("string")
    place = f.concat_ws("/", f.col("topic"), f.col("partition").cast("string"))
    parsed = records.select(
        f.from_json(text, EVENTS).alias("event"),
        place.alias("file"),
        f.col("offset").cast("bigint").alias("row"),
        f.substring(text, 1, 200).alias("text"),
    )
    return _judged(parsed.select("event.*", "file", "row", "text"))


def with_quarantine(events: DataFrame) -> DataFrame:
    """Return a table of events with the columns of the quarantine.

    Rows that cannot be of a trace have a `reason`. What `from_kafka` returns is returned
    as it is.

    Raises:
        PipelineError: A column is missing that every trace has.
    """
    from pyspark.sql import functions as f

    if "reason" in events.columns:
        return events
    rows = completed(events)
    text = f.substring(f.to_json(f.struct(*rows.columns)), 1, 200)
    nothing = {"file": f.lit(None).cast("string"), "row": f.lit(None).cast("bigint")}
    return _judged(rows.withColumns({**nothing, "text": text}))


def _judged(rows: DataFrame) -> DataFrame:
    """Add the reason why a row cannot be of a trace, if there is one."""
    from pyspark.sql import functions as f

    reason = f.lit(None).cast("string")
    about = f.col("kind").isin(SEND, DELIVER)
    for name in ("peers", "mid", "origin"):
        if name == "peers":
            absent = (f.col("kind") == SEND) & f.col(name).isNull()
        else:
            absent = about & f.col(name).isNull()
        reason = f.when(absent, f.lit(f"a send or deliver row needs {name}")).otherwise(reason)
    for name in ("kind", "seq", "process", "run"):
        reason = f.when(f.col(name).isNull(), f.lit(f"has no {name}")).otherwise(reason)
    named = rows.withColumn("reason", reason)
    return named.withColumn("text", f.when(f.col("reason").isNotNull(), f.col("text")))
