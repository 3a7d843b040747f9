"""Where the time of messages went, and what processes and runs were doing.

    table = copies(events)       # each message for each destination: where its time went
    occupancy(table)             # buffers and messages in transit, over time
    jobs(events)                 # jobs: when they began, and how long after the send
    processes(events, table)     # each process
    runs(events, table)          # each run

All are functions of a table of events (`prepare.EVENTS`), with the schemas that
are declared here. They refer to their tables many times: keep those, as files or
by `localCheckpoint()`, if it costs something to make them. Times are nanoseconds.
Percentiles are exact: the p-th is the least value that a share p of the values
does not exceed.

A copy is one message for one destination. Its time is

    sent ... released ... received ... delivered
        held at the      on the       held at the
        sender           network      receiver

`released_by` is what came right before it was released, if it was held: an ack,
a permit. `held_for` is the last of its causal predecessors, if that was delivered
after the copy had arrived. `earliest_ns` is when an omniscient protocol could have
delivered it (`earliest.py`); from the send to then is unavoidable, and what comes
after is `noncausal_ns`. (In a trace that is not causally ordered it may be
negative: the message was delivered too early.) A copy to oneself is not released
and not received. Where a trace has no releases and arrivals, all the time counts
as time on the network.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..trace import DELIVER, RECEIVE, RELEASE, SEND
from .arrivals import Arrived, arrived
from .earliest import NOTHING, earliest

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

COPIES = (
    "run string, origin string, mid bigint, destination string, "
    "sent_ns bigint, released_ns bigint, received_ns bigint, delivered_ns bigint, "
    "latency_ns bigint, held_at_sender_ns bigint, "
    "released_by struct<kind: string, peer: string, origin: string, mid: bigint>, "
    "network_ns bigint, held_at_receiver_ns bigint, "
    "held_for struct<origin: string, mid: bigint>, "
    "earliest_ns bigint, unavoidable_ns bigint, noncausal_ns bigint, "
    "payload_bytes int, metadata_bytes int"
)

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

_ARRIVALS = ("receive", "duplicate", "ack_receive", "permit_receive", "control_receive")
_CONTROL = ("ack", "permit", "control")
_WORK = (SEND, DELIVER, "job_start", "job_end")
_COPY = ("run", "origin", "mid", "destination")


def _declared(frame: DataFrame, schema: str) -> DataFrame:
    """The columns that were declared, of the types that were declared."""
    from pyspark.sql import functions as f
    from pyspark.sql.types import StructType

    fields = cast(StructType, StructType.fromDDL(schema)).fields
    return frame.select(*(f.col(x.name).cast(x.dataType).alias(x.name) for x in fields))


# -- copies ----------------------------------------------------------------------------


def copies(events: DataFrame) -> DataFrame:
    """Each message for each destination, and where its time went: `COPIES`."""
    from pyspark.sql import functions as f

    steps = _steps(events)
    bounds = _bounds(events, steps)
    places = steps.select(
        "run",
        "destination",
        f.col("delivered_seq").alias("before_seq"),
        f.struct("origin", "mid").alias("before"),
    ).where("before_seq is not null")
    whole = steps.join(bounds, list(_COPY), "left").join(
        places, ["run", "destination", "before_seq"], "left"
    )
    held = f.col("released_ns") > f.col("sent_ns")
    waited = f.col("before_seq") > f.col("received_seq")
    return _declared(
        whole.withColumns(
            {
                "latency_ns": f.col("delivered_ns") - f.col("sent_ns"),
                "held_at_sender_ns": f.col("released_ns") - f.col("sent_ns"),
                "released_by": f.when(held, f.col("released_by")),
                "network_ns": f.coalesce("received_ns", "delivered_ns")
                - f.coalesce("released_ns", "sent_ns"),
                "held_at_receiver_ns": f.col("delivered_ns") - f.col("received_ns"),
                "held_for": f.when(waited, f.col("before")),
                "unavoidable_ns": f.col("earliest_ns") - f.col("sent_ns"),
                "noncausal_ns": f.col("delivered_ns") - f.col("earliest_ns"),
            }
        ),
        COPIES,
    )


def _steps(events: DataFrame) -> DataFrame:
    """Sends by destination, with the first release, arrival and delivery of each."""
    from pyspark.sql import Window
    from pyspark.sql import functions as f

    sends = events.where((f.col("kind") == SEND) & (f.col("process") == f.col("origin"))).select(
        "run",
        "origin",
        "mid",
        f.explode(f.array_distinct("peers")).alias("destination"),
        f.col("time_ns").alias("sent_ns"),
        "payload_bytes",
    )
    along = (
        Window.partitionBy("run", "process")
        .orderBy("seq")
        .rowsBetween(Window.unboundedPreceding, -1)
    )
    cause = f.when(
        f.col("kind").isin(*_ARRIVALS),
        f.struct("kind", f.element_at("peers", 1).alias("peer"), "origin", "mid"),
    )
    caused = events.withColumn("released_by", f.last(cause, ignorenulls=True).over(along))
    releases = caused.where(
        (f.col("kind") == RELEASE) & (f.col("process") == f.col("origin"))
    ).select(
        "run",
        "origin",
        "mid",
        f.explode("peers").alias("destination"),
        f.struct("seq", "time_ns", "released_by", "metadata_bytes").alias("release"),
    )

    def at_destination(kind: str) -> DataFrame:
        """The first row of a kind, for each copy."""
        step = f.struct(f.col("seq"), f.col("time_ns")).alias("step")
        rows = events.where(f.col("kind") == kind)
        rows = rows.select("run", "origin", "mid", f.col("process").alias("destination"), step)
        return rows.groupBy(*_COPY).agg(f.min("step").alias("step"))

    released = releases.groupBy(*_COPY).agg(f.min("release").alias("release"))
    received = at_destination(RECEIVE).withColumnRenamed("step", "received")
    delivered = at_destination(DELIVER).withColumnRenamed("step", "delivered")
    whole = sends
    for part in (released, received, delivered):
        whole = whole.join(part, list(_COPY), "left")
    return whole.select(
        *_COPY,
        "sent_ns",
        f.col("release.time_ns").alias("released_ns"),
        f.col("release.released_by").alias("released_by"),
        f.col("received.time_ns").alias("received_ns"),
        f.col("received.seq").alias("received_seq"),
        f.col("delivered.time_ns").alias("delivered_ns"),
        f.col("delivered.seq").alias("delivered_seq"),
        "payload_bytes",
        f.col("release.metadata_bytes").alias("metadata_bytes"),
    )


_BOUNDS = (
    "run string, origin string, mid bigint, destination string, earliest_ns bigint, "
    "before_seq bigint"
)


def _bounds(events: DataFrame, steps: DataFrame) -> DataFrame:
    """The earliest delivery of each copy, and the place of its last predecessor.

    Each run goes to one task, which holds it in memory.
    """
    from pyspark.sql import functions as f

    arrives = (
        f.col("sent_ns")
        + f.coalesce("received_ns", "delivered_ns")
        - f.coalesce("released_ns", "sent_ns")
    )
    arrivals = steps.groupBy("run", "origin", "mid").agg(
        f.collect_list(
            f.struct("destination", arrives.alias("arrival"), f.col("delivered_seq").alias("place"))
        ).alias("copies")
    )
    sends = events.where((f.col("kind") == SEND) & (f.col("process") == f.col("origin")))
    rows = (
        sends.join(arrivals, ["run", "origin", "mid"])
        .select("run", "process", "seq", "lamport", "kind", "origin", "mid", "copies")
        .unionByName(
            events.where(f.col("kind") == DELIVER).select(
                "run", "process", "seq", "lamport", "kind", "origin", "mid"
            ),
            allowMissingColumns=True,
        )
    )
    return (
        rows.repartition("run")
        .sortWithinPartitions("run", "lamport", "process", "seq")
        .mapInArrow(_bound_runs, _BOUNDS)
    )


def _bound_runs(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for run, trace in arrived(batches):
        yield _bound_run(run, trace)


def _bound_run(run: str, trace: Arrived) -> pa.RecordBatch:
    """One run: names to numbers, then the compiled loop."""
    table = pa.Table.from_batches(trace.raw).combine_chunks()
    kind = np.where(pc.equal(table["kind"], SEND).to_numpy(), 1, 2).astype(np.int8)
    lists = table["copies"].combine_chunks()
    flat = lists.flatten()
    length = pc.fill_null(pc.list_value_length(lists), 0).to_numpy(zero_copy_only=False)
    end = np.cumsum(length, dtype=np.int64)
    to = flat.field("destination")
    names = pc.unique(
        pa.concat_arrays([_whole(table["process"]), _whole(table["origin"]), to.cast(pa.string())])
    )
    process, origin = _codes(table["process"], names), _codes(table["origin"], names)
    mid = table["mid"].to_numpy()
    out, before = earliest(
        kind,
        process,
        _messages(kind, origin, mid),
        end - length,
        end,
        _codes(to, names),
        _or_nothing(flat.field("arrival")),
        _or_nothing(flat.field("place")),
        len(names),
    )
    which = pa.array(np.repeat(np.arange(len(kind)), length))
    return pa.RecordBatch.from_arrays(
        [
            pa.array([run] * len(out), pa.string()),
            _whole(table["origin"].take(which)),
            _whole(table["mid"].take(which)),
            to.cast(pa.string()),
            pa.array(out, mask=out == NOTHING),
            pa.array(before, mask=before == NOTHING),
        ],
        names=[*_COPY, "earliest_ns", "before_seq"],
    )


def _messages(kind: Any, origin: Any, mid: Any) -> Any:
    """Numbers of messages: the row of the send, or -1 if there is none before it."""
    key = np.rec.fromarrays([origin, mid])
    unique, number = np.unique(key, return_inverse=True)
    rows = np.arange(len(kind))
    sent = np.full(len(unique), len(kind), np.int64)
    np.minimum.at(sent, number[kind == 1], rows[kind == 1])
    first = sent[number]
    result = np.where(first <= rows, number, -1)
    result[(kind == 1) & (first != rows)] = -1  # a message sent again
    return result.astype(np.int64)


def _whole(column: Any) -> pa.Array:
    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column


def _codes(column: Any, names: pa.Array) -> Any:
    return pc.index_in(_whole(column), value_set=names).to_numpy(zero_copy_only=False).astype("i4")


def _or_nothing(column: pa.Array) -> Any:
    return pc.fill_null(column, NOTHING).to_numpy(zero_copy_only=False)


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
    return _declared(changes.where("change != 0").withColumn("copies", level), OCCUPANCY)


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
    return _declared(whole, JOBS)


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
    return _declared(_rated(whole), PROCESSES)


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
    return _declared(_rated(whole), RUNS)


def _percentile(column: str, share: float) -> Column:
    """Exact: the least value that this share of the values does not exceed."""
    from pyspark.sql import functions as f

    return f.expr(f"percentile_disc({share}) WITHIN GROUP (ORDER BY {column})")
