"""Metrics against a plain computation from the definitions, on simulated traces."""

from __future__ import annotations

from collections import defaultdict
from math import ceil
from typing import Any, cast

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from pyspark.sql.types import StructType

from causewire.pipeline import metrics
from causewire.sim import Config, simulate
from causewire.trace import Event, arrow_schema

BASE = {"messages": 60, "processes": {"count": 5}}
RUNS = {
    "csps": {"protocol": "csps"},
    "mf": {"protocol": "mf"},
    "rst": {"protocol": "rst"},
    "newtop": {"protocol": "newtop", "workload": {"kind": "broadcast"}, "messages": 20},
    "lossy": {"protocol": "csps", "network": {"loss": 0.1}},
    "unordered": {"protocol": "unordered", "workload": {"kind": "relay"}},
    "jobs": {
        "protocol": "cykas",
        "processes": {"count": 4, "jobs": {"share": 0.5, "length": "2ms"}},
    },
}

STORY = [
    ("ann", 0, 0, 1, "send", "ann", 1, ["bob", "cy"]),
    ("ann", 1, 0, 2, "release", "ann", 1, ["bob"]),
    ("ann", 2, 0, 3, "release", "ann", 1, ["cy"]),
    ("bob", 0, 10, 4, "receive", "ann", 1, ["ann"]),
    ("bob", 1, 10, 5, "deliver", "ann", 1, ["ann"]),
    ("bob", 2, 20, 6, "send", "bob", 1, ["cy"]),
    ("ann", 3, 40, 4, "permit", "ann", 1, ["bob"]),
    ("bob", 3, 60, 7, "permit_receive", "ann", 1, ["ann"]),
    ("bob", 4, 60, 8, "release", "bob", 1, ["cy"]),
    ("cy", 0, 75, 9, "receive", "bob", 1, ["bob"]),
    ("cy", 1, 100, 10, "receive", "ann", 1, ["ann"]),
    ("cy", 2, 100, 11, "deliver", "ann", 1, ["ann"]),
    ("cy", 3, 105, 12, "deliver", "bob", 1, ["bob"]),
]
"""Process, seq, time and so on, of a story that is worked out by hand, below."""
NAMES = [*RUNS, "story"]


class Sink(list[Event]):
    write = list.append


@pytest.fixture(scope="module")
def simulated() -> Any:
    """Events and summaries of a few runs."""
    events: list[Any] = []
    summaries: dict[Any, Any] = {}
    settings: Any
    for seed, (name, settings) in enumerate(RUNS.items()):
        sink = Sink()
        config = Config.from_dict({**BASE, **settings, "seed": seed})
        summaries[name] = simulate(config, sink, run=name)
        events += sink
    make: Any = Event
    events += [make("story", *row, 100, 8) for row in STORY]
    return events, summaries


@pytest.fixture(scope="module")
def tables(spark: SparkSession, simulated: Any) -> Any:
    """The same as tables of Spark, all at once."""
    rows = pa.Table.from_pylist([event._asdict() for event in simulated[0]], arrow_schema())
    events = spark.createDataFrame(rows).repartition(2).localCheckpoint()
    return events, metrics.copies(events).localCheckpoint()


@pytest.fixture(scope="module")
def table_of_runs(tables: Any) -> Any:
    return {row.run: row for row in metrics.runs(*tables).collect()}


def plain(events: list[Event]) -> Any:
    """Copies of one run, from the definitions: sets of predecessors, no clocks."""
    events = sorted(events, key=lambda e: (e.lamport, e.process, e.seq))
    copies: dict[Any, Any] = {}
    past: defaultdict[Any, Any] = defaultdict(set)
    needs: dict[Any, Any] = {}
    came: dict[Any, Any] = {}
    for e in events:
        message = e.origin, e.mid
        if e.kind == "send":
            needs[message] = set(past[e.process])
            past[e.process].add(message)
            for d in e.peers:
                copies[(*message, d)] = {"sent": e.time_ns}
        elif e.kind == "release":
            copy = copies[(*message, e.peers[0])]
            copy["released"], copy["by"] = e.time_ns, came.get(e.process)
        elif e.kind == "receive":
            copies[(*message, e.process)].update(received=e.time_ns, received_seq=e.seq)
        elif e.kind == "deliver":
            past[e.process] |= needs[message] | {message}
            copies[(*message, e.process)].update(delivered=e.time_ns, place=e.seq)
        if e.kind.endswith("receive") or e.kind == "duplicate":
            came[e.process] = (e.kind, e.peers[0], e.origin, e.mid)
    for copy in copies.values():
        start, end = copy.get("released", copy["sent"]), copy.get("received", copy.get("delivered"))
        copy["arrival"] = None if end is None else copy["sent"] + end - start
    for (origin, mid, d), copy in copies.items():
        before = [copies[(*m, d)] | {"m": m} for m in needs[origin, mid] if (*m, d) in copies]
        arrivals = [c["arrival"] for c in [*before, copy] if c["arrival"] is not None]
        copy["earliest"] = max(arrivals, default=None)
        done = [c for c in before if "place" in c]
        last: Any = max(done, key=lambda c: c["place"], default=None)
        waited = last is not None and last["place"] > copy.get("received_seq", 1 << 60)
        copy["held_for"] = last["m"] if waited else None
    return copies


def minus(a: Any, b: Any) -> Any:
    return None if a is None or b is None else a - b


def percentile(values: Any, share: Any) -> Any:
    values = sorted(values)
    return values[max(ceil(share * len(values)), 1) - 1] if values else None


def test_where_the_time_of_each_copy_went(simulated: Any, tables: Any) -> None:
    events, _ = simulated
    table = {tuple(row[:4]): row for row in tables[1].collect()}
    wanted = {}
    for run in NAMES:
        for key, copy in plain([e for e in events if e.run == run]).items():
            wanted[(run, *key)] = copy
    assert table.keys() == wanted.keys()
    seen = set()
    for key, copy in wanted.items():
        row = table[key]
        get = copy.get
        assert (row.sent_ns, row.released_ns, row.received_ns, row.delivered_ns) == (
            get("sent"),
            get("released"),
            get("received"),
            get("delivered"),
        ), key
        assert row.latency_ns == minus(get("delivered"), get("sent")), key
        assert row.held_at_sender_ns == minus(get("released"), get("sent")), key
        assert row.held_at_receiver_ns == minus(get("delivered"), get("received")), key
        assert row.earliest_ns == get("earliest"), key
        assert row.noncausal_ns == minus(get("delivered"), get("earliest")), key
        assert row.unavoidable_ns == minus(get("earliest"), get("sent")), key
        assert (None if row.held_for is None else tuple(row.held_for)) == get("held_for"), key
        if row.held_at_sender_ns:
            assert tuple(row.released_by) == get("by"), key
            seen.add((key[0], row.released_by.kind))
        else:
            assert row.released_by is None
        if row.held_for:
            seen.add((key[0], "held for"))
        if row.noncausal_ns:
            seen.add((key[0], "noncausal" if row.noncausal_ns > 0 else "too early"))
    assert ("mf", "ack_receive") in seen
    assert ("jobs", "permit_receive") in seen
    assert {("rst", "held for"), ("newtop", "noncausal"), ("unordered", "too early")} <= seen
    # An optimal protocol imposes no latency but the unavoidable one (Table 1).
    assert ("rst", "noncausal") not in seen
    assert ("csps", "noncausal") in seen


def test_a_story_by_hand(tables: Any, table_of_runs: Any) -> None:
    """Ann tells Bob (10 ns away) and Cy (100 ns); Bob passes it on to Cy (15 ns).

    Bob has to wait for a permit of Ann, 40 ns, and his message for hers at Cy, who
    delivers it 5 ns after that. Whoever knew everything would have sent it at 20, to
    arrive at 35, but would have had to wait for Ann's until 100.
    """
    table = tables[1].where("run = 'story'")
    to_bob, to_cy, passed_on = table.orderBy("sent_ns", "destination").collect()
    names: tuple[str, ...] = (
        "latency_ns",
        "held_at_sender_ns",
        "network_ns",
        "held_at_receiver_ns",
    )
    names += ("earliest_ns", "unavoidable_ns", "noncausal_ns")
    assert [to_bob[name] for name in names] == [10, 0, 10, 0, 10, 10, 0]
    assert [to_cy[name] for name in names] == [100, 0, 100, 0, 100, 100, 0]
    assert [passed_on[name] for name in names] == [85, 40, 15, 30, 100, 80, 5]
    assert to_cy.released_by is None
    assert tuple(passed_on.released_by) == ("permit_receive", "ann", "ann", 1)
    assert tuple(passed_on.held_for) == ("ann", 1)
    assert to_bob.held_for is None
    run = table_of_runs["story"]
    assert (run.sent, run.copies, run.delivered, run.processes) == (2, 3, 3, 3)
    assert (run.latency_p50_ns, run.latency_p99_ns, run.latency_max_ns) == (85, 100, 100)
    assert run.latency_mean_ns == pytest.approx(65)
    assert run.noncausal_mean_ns == pytest.approx(5 / 3)
    assert (run.duration_ns, run.execution_ns) == (105, 105)
    assert (run.control_packets, run.control_bytes, run.control_per_message) == (1, 8, 0.5)
    assert (run.payload_bytes, run.metadata_bytes) == (300, 24)
    assert (run.max_send_buffer, run.max_receive_buffer) == (1, 1)
    assert (run.max_in_transit, run.max_in_transit_per_pair) == (2, 1)


def test_schemas_are_as_declared(tables: Any) -> None:
    events, copies = tables
    for frame, schema in (
        (copies, metrics.COPIES),
        (metrics.occupancy(copies), metrics.OCCUPANCY),
        (metrics.jobs(events), metrics.JOBS),
        (metrics.processes(events, copies), metrics.PROCESSES),
        (metrics.runs(events, copies), metrics.RUNS),
    ):
        declared = [(f.name, f.dataType) for f in cast(StructType, StructType.fromDDL(schema))]
        assert [(f.name, f.dataType) for f in frame.schema] == declared


def test_occupancy_over_time(simulated: Any, tables: Any) -> None:
    rows = metrics.occupancy(tables[1]).collect()
    found = defaultdict(list)
    for row in sorted(rows, key=lambda row: row.time_ns):
        found[row.run, row.process, row.peer, row.what].append((row.time_ns, row.copies))
    wanted: defaultdict[Any, Any] = defaultdict(lambda: defaultdict(int))
    for run in NAMES:
        for (origin, _, d), copy in plain([e for e in simulated[0] if e.run == run]).items():
            if origin == d:
                continue
            for who, peer, what, enters, leaves in (
                (origin, None, "send_buffer", "sent", "released"),
                (origin, None, "in_transit", "released", "received"),
                (origin, d, "in_transit", "released", "received"),
                (d, None, "receive_buffer", "received", "delivered"),
            ):
                for step, change in ((enters, 1), (leaves, -1)):
                    if step in copy:
                        wanted[run, who, peer, what][copy[step]] += change
    for key, changes in wanted.items():
        level, steps = 0, []
        for time, change in sorted(changes.items()):
            level += change
            if change:
                steps.append((time, level))
        assert found.pop(key, []) == steps, key
    assert not found


def test_runs_agree_with_the_simulator(simulated: Any, table_of_runs: Any) -> None:
    events, summaries = simulated
    rows = table_of_runs
    assert rows.keys() == set(NAMES)
    for name, summary in summaries.items():
        row = rows[name]
        assert row.sent == summary.messages
        assert row.copies == summary.copies
        assert row.delivered == summary.deliveries
        assert row.retransmissions == summary.retransmissions
        assert row.metadata_bytes + row.control_bytes == summary.metadata_bytes
        assert row.payload_bytes == summary.payload_bytes
        assert row.control_per_message == pytest.approx(summary.control_per_message)
        assert row.latency_mean_ns == pytest.approx(summary.latency.mean_ns)
        assert row.latency_max_ns == summary.latency.max_ns
        assert row.latency_p50_ns <= summary.latency.p50_ns <= row.latency_p50_ns * (1 + 1 / 128)
        assert row.held_at_sender_mean_ns == pytest.approx(summary.held_at_sender.mean_ns)
        assert row.held_at_receiver_max_ns == summary.held_at_receiver.max_ns
        assert row.max_in_transit == summary.max_in_transit
        assert row.max_in_transit_per_pair == summary.max_in_transit_per_pair
        assert row.max_send_buffer == summary.max_send_buffer
        assert row.max_receive_buffer <= summary.max_receive_buffer
        assert row.jobs == summary.jobs
        first = min(e.time_ns for e in events if e.run == name)
        assert row.execution_ns == summary.execution_ns - first
        mine = plain([e for e in events if e.run == name]).values()
        values = [c["delivered"] - c["earliest"] for c in mine if "delivered" in c]
        for share, found in ((0.5, row.noncausal_p50_ns), (0.99, row.noncausal_p99_ns)):
            assert found == percentile(values, share)
    assert rows["jobs"].jobs > 0
    assert rows["jobs"].job_delay_mean_ns == pytest.approx(summaries["jobs"].job_delay.mean_ns)


def test_processes_add_up_to_runs(tables: Any, table_of_runs: Any) -> None:
    runs = table_of_runs
    sums: defaultdict[Any, Any] = defaultdict(lambda: defaultdict(int))
    most: defaultdict[Any, Any] = defaultdict(lambda: defaultdict(int))
    for row in metrics.processes(*tables).collect():
        for name in ("sent", "copies", "delivered", "control_packets", "metadata_bytes"):
            sums[row.run][name] += row[name]
        for name in ("max_in_transit", "max_send_buffer", "max_receive_buffer"):
            most[row.run][name] = max(most[row.run][name], row[name])
        sums[row.run]["processes"] += 1
        assert row.duration_ns == runs[row.run].duration_ns
        assert row.sent_per_second == pytest.approx(row.sent * 1e9 / row.duration_ns)
    for name, run in runs.items():
        for field, value in [*sums[name].items(), *most[name].items()]:
            assert run[field] == value, (name, field)
