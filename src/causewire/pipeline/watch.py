"""Watching traces that are still being written: Structured Streaming.

    watching = watch(spark, "traces/", "found/", tell=print)
    watching.stop()

Rows come from the source `causewire` as nodes write them, go to the state of
their run (`live.py`), and what is found goes to four tables below a directory:

    violations/   as they come, one row for each message that was overtaken
    windows/      the metrics of each window, when it is over
    late/         rows that came too late, or that did not fit
    quarantine/   rows that could not be understood

Each batch is written to a place of its own, `batch=N`, and written over if it is
done again; what it reads and what it knew before is in the checkpoint. So after
a crash each row is in the tables once. Many batches are put together (`watch_tables.py`).

The source can also be any streaming table of events: `watch(spark, from_kafka(frame), out)`,
or a directory of tables or spans: `watch(spark, "spans/", out, kind="otlp")`.

A run that has not been heard of for a while counts as ended: rows that still wait
are processed, and its last windows are reported.
"""

from __future__ import annotations

import logging
import os
import pickle
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..trace import TraceError
from ..trace.formats.names import SPAN_FORMATS
from ..trace.formats.spans import SpanOptions
from .errors import PipelineError
from .session import is_connect, parallelism
from .sources import register, with_quarantine
from .tasks import described
from .watch_metrics import (
    BatchProgress,
    described_totals,
    observed_findings,
    observed_rows,
    progress_of,
)
from .watch_state import COLUMNS, FINDINGS, NOBODY, STATE, Runs, check_state
from .watch_tables import write_batch

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

__all__ = [
    "LATE",
    "TABLES",
    "VIOLATIONS",
    "WINDOWS",
    "Tell",
    "WatchSettings",
    "Watching",
    "found",
    "waiting",
    "watch",
]

VIOLATIONS = (
    "run string, process string, seq bigint, time_ns bigint, first_origin string, "
    "first_mid bigint, second_origin string, second_mid bigint"
)
WINDOWS = (
    "run string, start_ns bigint, events bigint, sent bigint, delivered bigint, "
    "violations bigint, in_flight bigint, latency_mean_ns double, latency_p50_ns bigint, "
    "latency_p99_ns bigint, latency_max_ns bigint"
)
LATE = "run string, process string, seq bigint, time_ns bigint, reason string"
QUARANTINE = "file string, row bigint, reason string, text string"
TABLES = {"violations": VIOLATIONS, "windows": WINDOWS, "late": LATE, "quarantine": QUARANTINE}

_ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
_NUMBERS = ("seq", "time_ns", "mid", "row")


@dataclass(frozen=True)
class WatchSettings:
    """How long to wait, in nanoseconds of the trace or of our own clock."""

    window_ns: int = 10_000_000_000
    late_ns: int = 10_000_000_000
    idle_ms: int = 30_000


def found(
    rows: DataFrame,
    settings: WatchSettings,
    *,
    final: bool = False,
    spans: SpanOptions | None = None,
) -> DataFrame:
    """Return what there is to say about a stream of rows of the source, shown `all`.

    With `spans`, the source was shown as `spans`, and these options make events of them.
    """
    from pyspark.sql import functions as f

    named = f.when(f.col("reason").isNull(), f.col("run")).otherwise(NOBODY)
    columns = COLUMNS if spans is None else ("span",)
    # As text: pandas would make floats of numbers where one is missing.
    keyed = rows.select(
        named.alias("run"),
        *(
            f.col(name).cast("string") if name in _NUMBERS else f.col(name)
            for name in (*columns, "file", "row", "reason", "text")
        ),
    )
    runs = Runs(
        late_ns=settings.late_ns,
        window_ns=settings.window_ns,
        idle_ms=settings.idle_ms,
        final=final,
        spans=spans,
    )
    return keyed.groupBy("run").transformWithStateInPandas(
        runs, outputStructType=FINDINGS, outputMode="append", timeMode="ProcessingTime"
    )


Tell = Callable[[str, dict[str, Any]], None]
"""Called with the name of a table and a row that was written to it."""


@dataclass
class Watching:
    """A query that runs."""

    query: StreamingQuery

    def wait(self, seconds: int) -> bool:
        """Wait for the end, for a while; has it come? Raises what ended it."""
        return bool(self.query.awaitTermination(seconds))

    def progress(self) -> BatchProgress | None:
        """Return what the last batch has done; None before the first."""
        return progress_of(self.query)

    def stop(self, patience: float = 20.0) -> None:
        """End it, if possible between two batches; the checkpoint knows how far it came."""
        end = time.monotonic() + patience
        while self.query.isActive and self.query.status["isTriggerActive"]:
            if time.monotonic() > end:
                break
            time.sleep(0.05)
        # If it has to be in a batch: Py4J would print what that batch raises.
        logging.getLogger("py4j").setLevel(logging.CRITICAL)
        self.query.stop()


def watch(
    spark: SparkSession,
    source: str | os.PathLike[str] | DataFrame,
    out: str | os.PathLike[str],
    settings: WatchSettings | None = None,
    *,
    kind: str = "trace",
    options: Mapping[str, str] | None = None,
    every: float = 2.0,
    once: bool = False,
    final: bool = False,
    tell: Tell | None = None,
) -> Watching:
    """Follow the traces in a directory, and write what is found to tables below another.

    Args:
        spark: The session. Over Spark Connect, tables are written where the server is.
        source: The directory where nodes write, or a streaming DataFrame of events.
        out: Where the tables and the checkpoint go.
        settings: Lengths of windows and of waiting.
        kind: What is in the directory: `trace`, `table` (JSON lines and Parquet), or spans, as
            JSON lines: `otlp`, `jaeger` or `zipkin`.
        options: More options of the source `causewire`: `columns` of a table, `processBy` of
            spans.
        every: Seconds between two batches.
        once: Take what is there, and end. A later call goes on from there, with the rows
            that wait for what may still come.
        final: With `once`: what is there is all that there will be, so every row is
            checked now, and none waits. `waiting` says if rows of earlier calls still do.
        tell: Called with the name of a table and each row that is written to it.

    Raises:
        PipelineError: `tell` over Spark Connect, which has no way to call it; the checkpoint is
            from an earlier version; or protobuf is missing.
        TraceError: Spans would be one run without an end.
    """
    if tell is not None and is_connect(spark):
        raise PipelineError("Spark Connect cannot tell what a watch finds: use another --master")
    out = Path(out)
    check_state(out)
    chosen = dict(options or {})
    spans: SpanOptions | None = None
    if kind in SPAN_FORMATS:
        spans = SpanOptions.checked(chosen.get("processBy"), chosen.get("runBy"), None)
        if spans.run_by == "all":
            raise TraceError("spans", None, "watch checks a trace when it ends: no run for all")
    if isinstance(source, str | os.PathLike):
        register(spark)
        show = "all" if spans is None else "spans"
        reader = spark.readStream.format("causewire").options(kind=kind, show=show, **chosen)
        if final:
            reader = reader.option("whole", "true")
        name, stream = os.fspath(source), reader.load(os.fspath(source))
    else:
        name, stream = str(out), with_quarantine(source)

    seen: Counter[str] = Counter()

    def write(frame: DataFrame, batch: int) -> None:
        with described(frame.sparkSession, described_totals(batch, seen)):
            seen.update(_write(frame, batch, out, tell))

    counted = observed_rows(stream)
    findings = found(counted, settings or WatchSettings(), final=final, spans=spans)
    writer = (
        observed_findings(findings)
        .writeStream.foreachBatch(write)
        .outputMode("append")
        .option("checkpointLocation", str(out / "_checkpoint"))
        .queryName(f"causewire watch {name}")
    )
    if once:
        writer = writer.trigger(availableNow=True)
    else:
        writer = writer.trigger(processingTime=f"{every} seconds")
    settings_of_query = {
        # Each is a store of its own, which costs time in every batch.
        "spark.sql.shuffle.partitions": str(parallelism(spark)),
        # Batches without rows are for runs that may have ended. There is no end to them.
        "spark.sql.streaming.noDataMicroBatches.enabled": str(not once).lower(),
        # The only one that has timers.
        "spark.sql.streaming.stateStore.providerClass": _ROCKSDB,
    }
    before = {key: str(spark.conf.get(key)) for key in settings_of_query}
    try:
        for key, value in settings_of_query.items():
            spark.conf.set(key, value)
        return Watching(writer.start())
    finally:
        for key, value in before.items():
            spark.conf.set(key, value)


def waiting(spark: SparkSession, out: str | os.PathLike[str]) -> dict[str, int]:
    """Return how many rows of each run wait in the checkpoint of a watch, if any."""
    checkpoint = Path(out) / "_checkpoint"
    if not (checkpoint / "state").is_dir():
        return {}
    reader = spark.read.format("statestore").option("stateVarName", STATE)
    stored = reader.load(str(checkpoint)).select("key.run", "value.live")

    def count(batches: Iterator[Any]) -> Iterator[Any]:
        import pyarrow as pa

        for batch in batches:
            runs, pending = [], []
            for row in batch.to_pylist():
                live = pickle.loads(row["live"])
                if live.pending:
                    runs.append(row["run"])
                    pending.append(live.pending)
            yield pa.RecordBatch.from_pydict(
                {"run": pa.array(runs, pa.string()), "rows": pa.array(pending, pa.int64())}
            )

    counts = stored.mapInArrow(count, "run string, rows bigint").collect()
    return {row.run: row.rows for row in counts}


def _write(frame: DataFrame, batch: int, out: Path, tell: Tell | None) -> dict[str, int]:
    """Write a batch to its place in each table, and return how many rows each has got.

    The same is written again if the batch is done again.
    """
    import pyarrow as pa

    from .tasks import arrow_of

    rows = frame.toArrow()
    written: dict[str, int] = {}
    for table, schema in TABLES.items():
        mine = rows.filter(pa.compute.equal(rows["table"], table))
        wanted = arrow_of(schema)
        mine = mine.select(wanted.names).cast(wanted)
        mine = mine.sort_by([(name, "ascending") for name in wanted.names])
        write_batch(out / table, batch, mine)
        written[table] = mine.num_rows
        if tell is not None:
            for row in mine.to_pylist():
                tell(table, row)
    return written
