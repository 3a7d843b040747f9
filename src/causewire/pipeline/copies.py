"""Where the time of messages went: a row for each message and destination.

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
    from pyspark.sql import DataFrame

__all__ = ["COPIES", "copies", "declared"]

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

_COPY = ("run", "origin", "mid", "destination")
_ARRIVALS = ("receive", "duplicate", "ack_receive", "permit_receive", "control_receive")


def declared(frame: DataFrame, schema: str) -> DataFrame:
    """The columns that were declared, of the types that were declared."""
    from pyspark.sql import functions as f
    from pyspark.sql.types import StructType

    fields = cast(StructType, StructType.fromDDL(schema)).fields
    return frame.select(*(f.col(x.name).cast(x.dataType).alias(x.name) for x in fields))


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
    return declared(
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
