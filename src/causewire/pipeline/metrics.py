"""What processes and runs were doing, and where the time of messages went.

    table = copies(events)       # each message for each destination (`copies.py`)
    occupancy(table)             # buffers and messages in transit, over time
    jobs(events)                 # jobs: when they began, and how long after the send
    processes(events, table)     # each process
    runs(events, table)          # each run

All are functions of a table of events (`prepare.EVENTS`), with the schemas that
are declared here. They refer to their tables many times: keep those, as files or
by `localCheckpoint()`, if it costs something to make them. Times are nanoseconds.
Percentiles are exact: the p-th is the least value that a share p of the values
does not exceed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..trace import DELIVER, RELEASE, SEND
from .copies import COPIES, copies, declared

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

__all__ = [
    "COPIES",
    "JOBS",
    "OCCUPANCY",
    "PROCESSES",
    "RUNS",
    "copies",
    "jobs",
    "occupancy",
    "processes",
    "runs",
]

OCCUPANCY = "run string, process string, peer string, what string, time_ns bigint, copies bigint"
"""`what` is `send_buffer` (at the origin), `in_transit` (of the origin; with a
`peer`, to that one) or `receive_buffer` (at the destination): how many copies from
this time on, until the next row."""

JOBS = (
    "run string, process string, origin string, mid bigint, start_ns bigint, end_ns bigint, "
    "delay_ns bigint"
)
"""`delay_ns` is from the causal send to the start of the job."""

_TIMES = ("latency", "held_at_sender", "network", "held_at_receiver", "unavoidable", "noncausal")
_STATISTICS = ", ".join(
    f"{name}_mean_ns double, {name}_p50_ns bigint, {name}_p99_ns bigint, {name}_max_ns bigint"
    for name in _TIMES
)
_COUNTS = (
    "sent bigint, copies bigint, delivered bigint, duration_ns bigint, "
    "sent_per_second double, delivered_per_second double, "
    "payload_bytes bigint, metadata_bytes bigint, control_bytes bigint, control_packets bigint, "
    "retransmissions bigint, control_per_message double, "
    "max_in_transit bigint, max_in_transit_per_pair bigint, max_send_buffer bigint, "
    "max_receive_buffer bigint"
)

PROCESSES = f"run string, process string, {_COUNTS}"
"""`duration_ns` is that of the run: from its first row to its last. Bytes, packets
and buffers are those of the process; `delivered` is what it delivered."""

RUNS = (
    f"run string, processes bigint, {_COUNTS}, execution_ns bigint, jobs bigint, "
    f"job_start_mean_ns double, job_delay_mean_ns double, {_STATISTICS}"
)
"""`execution_ns` is from the run's first row to the application's last send, delivery
or job, and `job_start_mean_ns` from there, too; `duration_ns` is to the last row,
when the protocol has nothing left to say."""

_CONTROL = ("ack", "permit", "control")
_WORK = (SEND, DELIVER, "job_start", "job_end")


# -- over time ----------------------------------------------------------------------------


def occupancy(table: DataFrame) -> DataFrame:
    """Buffers and messages in transit, whenever they change: `OCCUPANCY`.

    What happens in one instant counts together: a copy that is sent and released
    at once was never in the buffer.
    """
    from pyspark.sql import Window
    from pyspark.sql import functions as f

    def steps(what: str, who: str, peer: Column, enters: str, leaves: str) -> list[Column]:
        key = [f.lit(what).alias("what"), f.col(who).alias("process"), peer.alias("peer")]
        left = f.when(f.col(enters).isNotNull(), f.col(leaves))
        return [
            f.struct(*key, f.col(enters).alias("time_ns"), f.lit(1).alias("change")),
            f.struct(*key, left.alias("time_ns"), f.lit(-1).alias("change")),
        ]

    nobody = f.lit(None).cast("string")
    every = [
        *steps("send_buffer", "origin", nobody, "sent_ns", "released_ns"),
        *steps("in_transit", "origin", nobody, "released_ns", "received_ns"),
        *steps("in_transit", "origin", f.col("destination"), "released_ns", "received_ns"),
        *steps("receive_buffer", "destination", nobody, "received_ns", "delivered_ns"),
    ]
    moved = (
        table.where("origin != destination")
        .select("run", f.explode(f.array(*every)).alias("step"))
        .select("run", "step.*")
        .where("time_ns is not null")
    )
    key = ("run", "process", "peer", "what")
    changes = moved.groupBy(*key, "time_ns").agg(f.sum("change").alias("change"))
    along = Window.partitionBy(*key).orderBy("time_ns")
    level = f.sum("change").over(along)
    return declared(changes.where("change != 0").withColumn("copies", level), OCCUPANCY)


def jobs(events: DataFrame) -> DataFrame:
    """Jobs, when they began and ended: `JOBS`."""
    from pyspark.sql import functions as f

    def rows(kind: str, time: str) -> DataFrame:
        part = events.where(f.col("kind") == kind)
        return part.groupBy("run", "process", "origin", "mid").agg(f.min("time_ns").alias(time))

    sends = events.where(f.col("kind") == SEND).select(
        "run", "origin", "mid", f.col("time_ns").alias("sent_ns")
    )
    whole = (
        rows("job_start", "start_ns")
        .join(rows("job_end", "end_ns"), ["run", "process", "origin", "mid"], "left")
        .join(sends, ["run", "origin", "mid"], "left")
        .withColumn("delay_ns", f.col("start_ns") - f.col("sent_ns"))
    )
    return declared(whole, JOBS)


# -- processes and runs -------------------------------------------------------------------


def _counted(events: DataFrame, *key: str) -> DataFrame:
    """What is counted row by row."""
    from pyspark.sql import functions as f

    def count(*kinds: str) -> Column:
        return f.count_if(f.col("kind").isin(*kinds))

    def total(column: str, *kinds: str) -> Column:
        return f.coalesce(f.sum(f.when(f.col("kind").isin(*kinds), f.col(column))), f.lit(0))

    carried = (RELEASE, "retransmit")
    return events.groupBy(*key).agg(
        count(SEND).alias("sent"),
        count("retransmit").alias("retransmissions"),
        count(*_CONTROL).alias("control_packets"),
        total("payload_bytes", *carried).alias("payload_bytes"),
        total("metadata_bytes", *carried).alias("metadata_bytes"),
        total("metadata_bytes", *_CONTROL).alias("control_bytes"),
    )


def _rated(counts: DataFrame) -> DataFrame:
    """Rates, from counts and durations."""
    from pyspark.sql import functions as f

    seconds = f.col("duration_ns") / 1e9
    return counts.withColumns(
        {
            "sent_per_second": f.when(seconds > 0, f.col("sent") / seconds),
            "delivered_per_second": f.when(seconds > 0, f.col("delivered") / seconds),
            "control_per_message": f.when(
                f.col("sent") > 0, f.col("control_packets") / f.col("sent")
            ),
        }
    )


def _durations(events: DataFrame) -> DataFrame:
    from pyspark.sql import functions as f

    return events.groupBy("run").agg((f.max("time_ns") - f.min("time_ns")).alias("duration_ns"))


def _peaks(table: DataFrame) -> DataFrame:
    """How high buffers got, for each process."""
    from pyspark.sql import functions as f

    def peak(what: str, paired: bool) -> Column:
        chosen = (f.col("what") == what) & (f.col("peer").isNotNull() == f.lit(paired))
        return f.coalesce(f.max(f.when(chosen, f.col("copies"))), f.lit(0))

    return (
        occupancy(table)
        .groupBy("run", "process")
        .agg(
            peak("in_transit", False).alias("max_in_transit"),
            peak("in_transit", True).alias("max_in_transit_per_pair"),
            peak("send_buffer", False).alias("max_send_buffer"),
            peak("receive_buffer", False).alias("max_receive_buffer"),
        )
    )


_PEAKS = ("max_in_transit", "max_in_transit_per_pair", "max_send_buffer", "max_receive_buffer")


def processes(events: DataFrame, table: DataFrame) -> DataFrame:
    """Each process that has rows, and `table`, the copies of these events: `PROCESSES`."""
    from pyspark.sql import functions as f

    key = ["run", "process"]
    mine = table.groupBy("run", f.col("origin").alias("process")).agg(f.count("*").alias("copies"))
    got = (
        table.where("delivered_ns is not null")
        .groupBy("run", f.col("destination").alias("process"))
        .agg(f.count("*").alias("delivered"))
    )
    whole = (
        _counted(events, *key)
        .join(mine, key, "left")
        .join(got, key, "left")
        .join(_peaks(table), key, "left")
        .join(_durations(events), "run")
        .fillna(0, ["copies", "delivered", *_PEAKS])
    )
    return declared(_rated(whole), PROCESSES)


def runs(events: DataFrame, table: DataFrame) -> DataFrame:
    """Each run, and `table`, the copies of these events: `RUNS`."""
    from pyspark.sql import functions as f

    travelled = f.col("origin") != f.col("destination")
    statistics = []
    for name in _TIMES:
        column = f"{name}_ns"
        if name in ("held_at_sender", "held_at_receiver", "network"):
            table = table.withColumn(column, f.when(travelled, f.col(column)))
        statistics += [
            f.mean(column).alias(f"{name}_mean_ns"),
            _percentile(column, 0.5).alias(f"{name}_p50_ns"),
            _percentile(column, 0.99).alias(f"{name}_p99_ns"),
            f.max(column).alias(f"{name}_max_ns"),
        ]
    of_copies = table.groupBy("run").agg(
        f.count("*").alias("copies"),
        f.count("delivered_ns").alias("delivered"),
        *statistics,
    )
    worked = events.where(f.col("kind").isin(*_WORK))
    spans = events.groupBy("run").agg(
        f.min("time_ns").alias("first_ns"),
        f.count_distinct("process").alias("processes"),
    )
    executed = worked.groupBy("run").agg(f.max("time_ns").alias("end_ns")).join(spans, "run")
    started = jobs(events)
    starts = (
        started.join(spans, "run")
        .groupBy("run")
        .agg(
            f.count("*").alias("jobs"),
            f.mean(f.col("start_ns") - f.col("first_ns")).alias("job_start_mean_ns"),
            f.mean("delay_ns").alias("job_delay_mean_ns"),
        )
    )
    peaks = _peaks(table).groupBy("run").agg(*(f.max(name).alias(name) for name in _PEAKS))
    whole = (
        _counted(events, "run")
        .join(of_copies, "run", "left")
        .join(executed, "run", "left")
        .join(starts, "run", "left")
        .join(peaks, "run", "left")
        .join(_durations(events), "run")
        .withColumn("execution_ns", f.col("end_ns") - f.col("first_ns"))
        .fillna(0, ["copies", "delivered", "jobs", *_PEAKS])
    )
    return declared(_rated(whole), RUNS)


def _percentile(column: str, share: float) -> Column:
    """Exact: the least value that this share of the values does not exceed."""
    from pyspark.sql import functions as f

    return f.expr(f"percentile_disc({share}) WITHIN GROUP (ORDER BY {column})")
