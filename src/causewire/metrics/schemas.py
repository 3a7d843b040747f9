"""The tables of measurements: their columns, as schemas of Arrow. Times are nanoseconds."""

from __future__ import annotations

import pyarrow as pa

__all__ = ["COPIES", "JOBS", "OCCUPANCY", "PROCESSES", "RUNS", "TIMES"]

_TEXT, _LONG, _REAL = pa.string(), pa.int64(), pa.float64()

TIMES = ("latency", "held_at_sender", "network", "held_at_receiver", "unavoidable", "noncausal")
"""The times of a copy that `RUNS` has statistics of."""

COPIES = pa.schema(
    [
        ("run", _TEXT),
        ("origin", _TEXT),
        ("mid", _LONG),
        ("destination", _TEXT),
        ("sent_ns", _LONG),
        ("released_ns", _LONG),
        ("received_ns", _LONG),
        ("delivered_ns", _LONG),
        ("latency_ns", _LONG),
        ("held_at_sender_ns", _LONG),
        (
            "released_by",
            pa.struct([("kind", _TEXT), ("peer", _TEXT), ("origin", _TEXT), ("mid", _LONG)]),
        ),
        ("network_ns", _LONG),
        ("held_at_receiver_ns", _LONG),
        ("held_for", pa.struct([("origin", _TEXT), ("mid", _LONG)])),
        ("earliest_ns", _LONG),
        ("unavoidable_ns", _LONG),
        ("noncausal_ns", _LONG),
        ("payload_bytes", pa.int32()),
        ("metadata_bytes", pa.int32()),
    ]
)
"""A row for each message and destination: where its time went (`causewire.metrics`)."""

OCCUPANCY = pa.schema(
    [
        ("run", _TEXT),
        ("process", _TEXT),
        ("peer", _TEXT),
        ("what", _TEXT),
        ("time_ns", _LONG),
        ("copies", _LONG),
    ]
)
"""`what` is `send_buffer` (at the origin), `in_transit` (of the origin; with a `peer`, to that
one) or `receive_buffer` (at the destination): how many copies from this time on, until the
next row."""

JOBS = pa.schema(
    [
        ("run", _TEXT),
        ("process", _TEXT),
        ("origin", _TEXT),
        ("mid", _LONG),
        ("start_ns", _LONG),
        ("end_ns", _LONG),
        ("delay_ns", _LONG),
    ]
)
"""`delay_ns` is from the causal send to the start of the job."""

_COUNTS = [
    *((name, _LONG) for name in ("sent", "copies", "delivered", "duration_ns")),
    *((name, _REAL) for name in ("sent_per_second", "delivered_per_second")),
    *((name, _LONG) for name in ("payload_bytes", "metadata_bytes", "control_bytes")),
    *((name, _LONG) for name in ("control_packets", "retransmissions")),
    ("control_per_message", _REAL),
    *((name, _LONG) for name in ("max_in_transit", "max_in_transit_per_pair")),
    *((name, _LONG) for name in ("max_send_buffer", "max_receive_buffer")),
]

PROCESSES = pa.schema([("run", _TEXT), ("process", _TEXT), *_COUNTS])
"""A row for each process that has rows. `duration_ns` is that of the run: from its first row
to its last. Bytes, packets and buffers are those of the process; `delivered` is what it
delivered."""

RUNS = pa.schema(
    [
        ("run", _TEXT),
        ("processes", _LONG),
        *_COUNTS,
        ("execution_ns", _LONG),
        ("jobs", _LONG),
        ("job_start_mean_ns", _REAL),
        ("job_delay_mean_ns", _REAL),
        *(
            (f"{name}_{what}_ns", _REAL if what == "mean" else _LONG)
            for name in TIMES
            for what in ("mean", "p50", "p99", "max")
        ),
    ]
)
"""A row for each run. `execution_ns` is from the run's first row to the application's last
send, delivery or job, and `job_start_mean_ns` from there, too; `duration_ns` is to the last
row, when the protocol has nothing left to send. Percentiles are exact: the p-th is the least
value that a share p of the values does not exceed."""
