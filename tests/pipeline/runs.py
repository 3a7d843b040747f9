"""Runs to check on Spark: long ones, planted violations, Parquet files with small row groups."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import SparkSession

from causewire.pipeline.limits import Limits
from causewire.trace import Event, arrow_schema, write_trace

SMALL = Limits(large=300, wide=16, stretch=50, longest=200, share=100, enough=200)
"""Everything happens with few rows, too."""


def write(path: Path, events: list[Event], rows: int = 64) -> Any:
    """A Parquet file with small row groups."""
    import pyarrow.parquet as pq

    whole = path.with_suffix(".whole.parquet")
    write_trace(whole, events)
    table = pq.read_table(whole)
    whole.unlink()
    pq.write_table(table, path, row_group_size=rows, store_schema=False)
    return path


def noting(asked: list[Any], which: int, function: Callable[..., Any]) -> Callable[..., Any]:
    """The function, which keeps one of its arguments in `asked`."""

    def noted(*args: Any) -> Any:
        asked.append(args[which])
        return function(*args)

    return noted


def long_run(
    seed: int, *, name: str = "long", processes: int = 5, steps: int = 400, causal: bool = True
) -> Any:
    """One run of some hundred rows, perhaps with violations."""
    rng = random.Random(seed)
    names = [f"p{k}" for k in range(processes)]
    events: list[Any] = []
    queue: list[Any] = []
    seq = dict.fromkeys(names, 0)
    mid = dict.fromkeys(names, 0)
    lamport = dict.fromkeys(names, 0)

    def add(p: Any, kind: str, origin: str, number: Any, peers: Any, after: int = 0) -> None:
        lamport[p] = max(lamport[p], after) + 1
        time = len(events) * 1000
        events.append(Event(name, p, seq[p], time, lamport[p], kind, origin, number, peers, 10, 4))
        seq[p] += 1

    for _ in range(steps):
        p = rng.choice(names)
        to = tuple(rng.sample(names, rng.randint(1, min(3, processes))))
        mid[p] += 1
        add(p, "send", p, mid[p], to)
        queue += [(p, mid[p], d, lamport[p]) for d in to]
        while len(queue) > 3 * processes:
            k = 0 if causal or rng.random() < 0.9 else rng.randrange(len(queue))
            origin, number, d, after = queue.pop(k)
            add(d, "deliver", origin, number, (origin,), after)
    return events


def frame_of(spark: SparkSession, events: list[Event]) -> Any:
    """Events as a table, in two parts."""
    rows = [event._asdict() for event in events]
    return spark.createDataFrame(pa.Table.from_pylist(rows, arrow_schema())).repartition(2)


def planted(events: list[Event], many: Any, seed: int) -> Any:
    """Let some deliveries come too late: exchange two of a process in their places."""
    rng = random.Random(seed)
    events = list(events)
    sent = {(e.origin, e.mid): k for k, e in enumerate(events) if e.kind == "send"}
    at: dict[Any, Any] = {}
    for k, event in enumerate(events):
        if event.kind == "deliver":
            at.setdefault(event.process, []).append(k)
    while many:
        i, j = sorted(rng.sample(rng.choice([k for k in at.values() if len(k) > 1]), 2))
        a, b = events[i], events[j]
        if sent[b.origin, b.mid] < i < j < i + 150:
            events[i] = b._replace(seq=a.seq, lamport=a.lamport, time_ns=a.time_ns)
            events[j] = a._replace(seq=b.seq, lamport=b.lamport, time_ns=b.time_ns)
            many -= 1
    return events
