"""Tables of events: reading them, and putting long runs in order.

The check takes rows in an order in which every send comes before its deliveries.
`lamport` is such an order, if it is there and right; otherwise it is found by
going round:

    1. along each process, times grow by at least one from row to row
       (a running maximum);
    2. along each message, a delivery comes after the send (a join);

and again, until nothing changes. It starts from `time_ns` where there is one, so
clocks that are nearly right need few rounds. Rows without any times, or with
clocks far apart, may need as many as the longest chain has messages; after
`ROUNDS` the run is taken into the memory of one task and ordered there, which
also finds out if it has a cycle and cannot be ordered at all. Runs of up to
`IN_MEMORY` rows are ordered in this way at once.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, cast

import pyarrow as pa
import pyarrow.parquet as pq

from ..check import Sorted
from ..check.columns import COLUMNS
from ..trace import DELIVER, NAMES, SEND, arrow_schema, open_trace
from ..trace.reader import BATCH_ROWS, plain
from ..trace.schema import COLUMNS as TRACE_COLUMNS
from ..trace.schema import START, SameSeqError
from ..trace.storage import is_url
from .arrivals import arrived
from .errors import PipelineError
from .pieces import Piece, batches_of, layout
from .schemas import EVENTS
from .session import is_connect
from .tasks import spread_batches

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = [
    "completed",
    "ordered",
    "read",
    "read_by_java",
    "refuse_same_seq",
    "refuse_second_starts",
    "repeated_sends",
    "usable",
    "with_lamport",
    "without_identical",
    "without_repeated_sends",
    "write",
]

ROUNDS = 12
"""How often to go round before a run is ordered in memory."""

IN_MEMORY = 20_000_000
"""Rows that a task can hold (about 120 bytes each while they are sorted)."""

_MESSAGE = ("run", "origin", "mid")


# -- reading and writing ---------------------------------------------------------------


def read(spark: SparkSession, files: Sequence[str], columns: Sequence[str] = NAMES) -> DataFrame:
    """Some columns of the rows of trace files, as in `EVENTS`; bad rows are errors of tasks."""
    works: list[str | list[Piece]] = [file for file in files if not file.endswith(".parquet")]
    share: list[Piece] = []
    for piece in layout([file for file in files if file.endswith(".parquet")]):
        share.append(piece)
        if sum(p.rows for p in share) >= 16 * BATCH_ROWS:
            works.append(share)
            share = []
    if share:
        works.append(share)
    wanted = [name for name in NAMES if name in columns]
    schema = ", ".join(field for field in EVENTS.split(", ") if field.split()[0] in wanted)
    return spread_batches(spark, works, partial(_read, wanted), schema)


def read_by_java(spark: SparkSession, files: Sequence[str]) -> DataFrame | None:
    """Return the rows of trace files as Spark itself reads them, without Python.

    Rows are not checked. None if Spark cannot be relied on to read these files: they are
    in a store, or have columns of other types, or in their paths.
    """
    if any(is_url(file) for file in files) or is_connect(spark):
        return None
    wanted = arrow_schema()
    tables = [file for file in files if file.endswith(".parquet")]
    timed = True
    for file in tables:
        found = pq.read_schema(file)
        if any(
            name not in found.names or found.field(name).type != wanted.field(name).type
            for name in (*COLUMNS, "lamport")
        ):
            return None
        timed &= "time_ns" in found.names and found.field("time_ns").type == pa.int64()
    columns = ["run", "process", "seq", "lamport", "kind", "origin", "mid", "peers"]
    if timed:
        columns.append("time_ns")
    lines = [file for file in files if not file.endswith(".parquet")]
    parts = []
    if tables:
        parts.append(spark.read.parquet(*map(_literally, tables)))
    if lines:
        reader = spark.read.schema(EVENTS).option("mode", "FAILFAST")
        parts.append(reader.json([_literally(file) for file in lines]))
    whole = parts[0].select(columns)
    for part in parts[1:]:
        whole = whole.unionByName(part.select(columns))
    return whole


def completed(events: DataFrame) -> DataFrame:
    """Return the rows with all columns of `EVENTS`, and with its types.

    Raises:
        PipelineError: A column is missing that every trace has.
    """
    from pyspark.sql import functions as f
    from pyspark.sql.types import StructType, TimestampNTZType, TimestampType

    types = {field.name: field.dataType for field in events.schema}
    columns = []
    wanted = cast(StructType, StructType.fromDDL(EVENTS)).fields
    for field, column in zip(wanted, TRACE_COLUMNS, strict=True):
        if field.name not in types:
            if not column.may_be_missing:
                raise PipelineError(f"the table has no column {field.name}")
            columns.append(f.lit(None).cast(field.dataType).alias(field.name))
        elif isinstance(types[field.name], TimestampType | TimestampNTZType):
            nanoseconds = f.unix_micros(f.col(field.name).cast("timestamp")) * 1000
            columns.append(nanoseconds.alias(field.name))
        else:
            columns.append(f.col(field.name).cast(field.dataType).alias(field.name))
    return events.select(*columns)


def _literally(file: str) -> str:
    """Return a path in which Spark sees no pattern."""
    return "file://" + re.sub(r"([\\*?\[\]{}])", r"\\\1", file)


def _read(columns: Sequence[str], work: str | list[Piece]) -> Iterator[pa.RecordBatch]:
    if isinstance(work, str):
        batches: Iterable[pa.RecordBatch] = (b.columns for b in open_trace(work).batches(columns))
    else:
        batches = (batch.columns for _, batch in batches_of(work, columns))
    return (plain(batch).select(columns) for batch in batches)


def write(events: DataFrame, path: str | os.PathLike[str], *, needed: bool = False) -> None:
    """Write Parquet files in which the rows of each run are together and in order.

    With `needed`, there is one run, and only the columns that the check needs are written.
    """
    key = ("lamport", "process", "seq") if needed else ("run", "lamport", "process", "seq")
    (
        events.select(*(COLUMNS if needed else NAMES), *(["lamport"] if needed else []))
        .repartitionByRange(*key)
        .sortWithinPartitions(*key)
        .write.option("parquet.block.size", 16 << 20)
        .parquet(str(path))
    )


# -- rows that are there twice ---------------------------------------------------------------


def without_identical(events: DataFrame) -> DataFrame:
    """Return the rows, one of each that are identical but for their times and sizes."""
    return events.dropDuplicates(["run", "process", "seq", "kind", "origin", "mid", "peers"])


def refuse_second_starts(events: DataFrame) -> None:
    """Raise an error if a process of a run starts twice under one name.

    Raises:
        SameSeqError: A process starts twice.
    """
    from pyspark.sql import functions as f

    starts = events.where((f.col("kind") == START) & (f.col("seq") == 0))
    times = starts.groupBy("run", "process").agg(f.count_distinct("time_ns").alias("times"))
    same = times.where("times > 1").head()
    if same is not None:
        raise SameSeqError("trace", same.run, same.process, 0)


def refuse_same_seq(events: DataFrame) -> None:
    """Raise an error if a process has two rows with the same place in its order.

    Raises:
        SameSeqError: It has; these are the first in the order of runs, processes and places.
    """
    from pyspark.sql import functions as f

    key = ["run", "process", "seq"]
    rows = events.where(f.col("kind").isin(SEND, DELIVER))
    same = rows.groupBy(key).count().where("count > 1").orderBy(key).head()
    if same is not None:
        raise SameSeqError("trace", same.run, same.process, same.seq)


# -- messages that are sent twice ---------------------------------------------------------


def _counted(events: DataFrame) -> DataFrame:
    """With `nth`: how often this message has been sent, with this row."""
    from pyspark.sql import Window
    from pyspark.sql import functions as f

    same = Window.partitionBy("run", "kind", "process", "origin", "mid").orderBy("seq")
    mine = (f.col("kind") == SEND) & (f.col("process") == f.col("origin"))
    return events.withColumn("nth", f.when(mine, f.row_number().over(same)).otherwise(1))


def repeated_sends(events: DataFrame) -> DataFrame:
    """The rows that send what was sent before."""
    return _counted(events).where("nth > 1").drop("nth")


def without_repeated_sends(events: DataFrame) -> DataFrame:
    """The other rows."""
    return _counted(events).where("nth = 1").drop("nth")


# -- Lamport times --------------------------------------------------------------------------


def _sent(events: DataFrame, *columns: str) -> DataFrame:
    """Deliveries with columns of their sends, as `sent_...`; only those that have one."""
    from pyspark.sql import functions as f

    sends = events.where((f.col("kind") == SEND) & (f.col("process") == f.col("origin"))).select(
        *_MESSAGE, f.col("peers").alias("to"), *(f.col(c).alias(f"sent_{c}") for c in columns)
    )
    deliveries = events.where(f.col("kind") == DELIVER).drop("peers")
    return (
        deliveries.join(sends, list(_MESSAGE))
        .where(f.array_contains("to", f.col("process")))
        .drop("to")
    )


def usable(events: DataFrame) -> bool:
    """Do the Lamport times grow along processes and messages?"""
    from pyspark.sql import Window
    from pyspark.sql import functions as f

    rows = events.where(f.col("kind").isin(SEND, DELIVER))
    along = Window.partitionBy("run", "process").orderBy("seq")
    before = f.lag("lamport").over(along)
    wrong = f.col("lamport").isNull() | (before >= f.col("lamport"))
    if not rows.select(wrong.alias("wrong")).where("wrong").isEmpty():
        return False
    return _sent(rows, "lamport").where("sent_lamport >= lamport").isEmpty()


def ordered(events: DataFrame, scratch: str | os.PathLike[str]) -> DataFrame:
    """The same rows, with Lamport times that can be relied on.

    Of each message there is one send, and no process has two rows with the same `seq`. `scratch`
    is for what is found on the way.
    """
    from pyspark.sql import functions as f

    if usable(events):
        return events
    sizes = events.groupBy("run").count()
    if sizes.where(f.col("count") > IN_MEMORY).isEmpty():
        return _in_memory(events)
    return with_lamport(events, scratch)


def with_lamport(
    events: DataFrame, scratch: str | os.PathLike[str], rounds: int = ROUNDS
) -> DataFrame:
    """The same rows, with Lamport times made anew."""
    from pyspark.sql import functions as f

    spark = events.sparkSession
    timed = events.where(f.col("time_ns").isNull()).isEmpty()
    guess = f.col("time_ns" if timed else "seq")
    times = _along_processes(events.withColumn("lamport", guess))
    for number in range(rounds):
        path = str(Path(scratch) / f"round-{number}")
        times.write.parquet(path)
        times = spark.read.parquet(path)
        late = _sent(times, "lamport").where("sent_lamport >= lamport")
        late = late.select("run", "process", "seq", (f.col("sent_lamport") + 1).alias("least"))
        if late.isEmpty():
            return times
        late = late.groupBy("run", "process", "seq").agg(f.max("least").alias("least"))
        joined = times.join(late, ["run", "process", "seq"], "left")
        times = _along_processes(
            joined.withColumn("lamport", f.greatest("lamport", "least")).drop("least")
        )
    return _in_memory(events)


def _along_processes(events: DataFrame) -> DataFrame:
    """The least times that are not less, and grow along each process."""
    from pyspark.sql import Window
    from pyspark.sql import functions as f

    along = Window.partitionBy("run", "process").orderBy("seq")
    place = f.row_number().over(along)
    rows = events.withColumn("place", place)
    ahead = f.max(f.col("lamport") - f.col("place")).over(along)
    return rows.withColumn("lamport", ahead + f.col("place")).select(*events.columns)


def _in_memory(events: DataFrame) -> DataFrame:
    """Each run ordered by one task; the place in that order is the time."""
    from pyspark.sql import Window
    from pyspark.sql import functions as f

    columns = [name for name in COLUMNS if name in events.columns]
    places = (
        events.select(*columns)
        .repartition("run")
        .sortWithinPartitions("run")
        .mapInArrow(_places, "run string, process string, seq bigint, lamport bigint")
    )
    along = Window.partitionBy("run", "process").orderBy("seq")
    known = events.drop("lamport").join(places, ["run", "process", "seq"], "left")
    lamport = f.coalesce(f.max("lamport").over(along), f.lit(0))
    return known.withColumn("lamport", lamport).select(*events.columns)


def _places(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for _, trace in arrived(batches):
        done = 1
        for chunk in Sorted(trace).chunks():
            columns, names = chunk.columns, pa.array(chunk.run.processes, pa.string())
            size = len(columns.kind)
            yield pa.RecordBatch.from_pydict(
                {
                    "run": pa.array([chunk.run.name] * size, pa.string()),
                    "process": names.take(pa.array(columns.process)),
                    "seq": pa.array(columns.seq),
                    "lamport": pa.array(range(done, done + size), pa.int64()),
                }
            )
            done += size
