"""Long runs with restarted processes: what `check.lives` does in memory, as tables of Spark."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..check.lives import LABEL, lives_of
from ..trace import DELIVER, SEND
from ..trace.schema import START

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

__all__ = ["LOST", "labels_of", "resolved"]

LOST = "lost"
"""The column that says how many copies of a message were lost with a life of a process."""


def labels_of(events: DataFrame) -> list[str]:
    """Return the processes of a run that wrote a row with which a life begins.

    Empty if none of them is a second life, or a later one.
    """
    from pyspark.sql import functions as f

    rows = events.where(f.col("kind") == START).select("process").distinct().collect()
    labels = [str(row.process) for row in rows]
    return labels if any(LABEL.fullmatch(label) for label in labels) else []


def resolved(events: DataFrame, labels: list[str]) -> DataFrame:
    """Return the rows of a run with destinations that are lives, and with the column `LOST`.

    Args:
        events: The rows of one run, none of them twice.
        labels: The processes that `labels_of` returns.
    """
    from pyspark.sql import functions as f

    spark = events.sparkSession
    lives = lives_of(labels)
    table = spark.createDataFrame(list(lives.items()), "base string, lives array<string>")
    ended = [life for theirs in lives.values() for life in theirs[:-1]]
    gone = spark.createDataFrame([(life,) for life in ended], "process string")
    key = ["process", "seq"]
    copies = (
        events.where(f.col("kind") == SEND)
        .select(*key, "origin", "mid", f.posexplode(f.array_distinct("peers")).alias("at", "name"))
        .withColumn("base", _base(f.col("name")))
        .join(f.broadcast(table), "base", "left")
        .join(f.broadcast(gone.withColumn("ended", f.lit(True))), "process", "left")
    )
    several = f.coalesce(f.size("lives") > 1, f.lit(False))
    may_be_lost = f.coalesce("ended", f.lit(False)) | several
    known = f.array_distinct(f.concat(f.array("name"), f.coalesce("lives", f.array())))
    tried = copies.select(
        *key, "origin", "mid", "at", "name", may_be_lost.alias("may"), f.posexplode(known)
    )
    delivered = (
        events.where(f.col("kind") == DELIVER)
        .select("origin", "mid", f.col("process").alias("col"))
        .distinct()
        .withColumn("taken", f.lit(True))
    )
    found = tried.join(delivered, ["origin", "mid", "col"], "left")
    takers = f.collect_list(f.when(f.col("taken"), f.struct("pos", "col")))
    each = found.groupBy(*key, "at", "name", "may").agg(
        f.transform(f.sort_array(takers), lambda taker: taker["col"]).alias("takers")
    )
    nobody = f.size("takers") == 0
    each = each.select(
        *key,
        "at",
        f.when(~nobody, f.col("takers"))
        .when(f.col("may"), f.array())
        .otherwise(f.array("name"))
        .alias("to"),
        (nobody & f.col("may")).cast("int").alias(LOST),
    )
    peers = each.groupBy(*key).agg(
        f.flatten(
            f.transform(f.sort_array(f.collect_list(f.struct("at", "to"))), lambda copy: copy["to"])
        ).alias("resolved"),
        f.sum(LOST).alias(LOST),
    )
    columns = [name for name in events.columns if name != "peers"]
    return events.join(peers, key, "left").select(
        *columns,
        f.when(f.col("kind") == SEND, f.coalesce("resolved", "peers"))
        .otherwise(f.col("peers"))
        .alias("peers"),
        f.when(f.col("kind") == SEND, f.coalesce(LOST, f.lit(0))).otherwise(0).alias(LOST),
    )


def _base(name: Column) -> Column:
    """Return the name of a process without the number of its life."""
    from pyspark.sql import functions as f

    base = f.regexp_extract(name, f"^{LABEL.pattern}$", 1)
    return f.when(base == "", name).otherwise(base)
