"""Metrics against a plain computation from the definitions, on simulated traces."""

from __future__ import annotations

import random
from collections import defaultdict
from math import ceil
from typing import Any

import numpy as np
import pytest

from causewire.metrics import COPIES, JOBS, OCCUPANCY, PROCESSES, RUNS, RunMetrics, measure
from causewire.metrics.earliest import earliest
from causewire.trace import Event, TraceError

from ..check.random_traces import random_run
from .runs import NAMES, plain, simulate_runs


@pytest.fixture(scope="module")
def simulated() -> Any:
    return simulate_runs()


@pytest.fixture(scope="module")
def measured(simulated: Any) -> dict[str, RunMetrics]:
    """The measurements of each run, from rows in an order in which nothing can rely on."""
    events = list(simulated[0])
    random.Random(1).shuffle(events)
    return {run.name: run for run in measure(events)}


@pytest.fixture(scope="module")
def table_of_runs(measured: dict[str, RunMetrics]) -> Any:
    return {name: run.summary() for name, run in measured.items()}


def minus(a: Any, b: Any) -> Any:
    return None if a is None or b is None else a - b


def values(struct: Any) -> Any:
    return None if struct is None else tuple(struct.values())


def percentile(values: Any, share: Any) -> Any:
    values = sorted(values)
    return values[max(ceil(share * len(values)), 1) - 1] if values else None


def test_where_the_time_of_each_copy_went(simulated: Any, measured: Any) -> None:
    events, _ = simulated
    table = {
        (row["run"], row["origin"], row["mid"], row["destination"]): row
        for run in measured.values()
        for row in run.copies().to_pylist()
    }
    wanted = {}
    for run in NAMES:
        for key, copy in plain([e for e in events if e.run == run]).items():
            wanted[(run, *key)] = copy
    assert table.keys() == wanted.keys()
    seen = set()
    for key, copy in wanted.items():
        row = table[key]
        get = copy.get
        assert (row["sent_ns"], row["released_ns"], row["received_ns"], row["delivered_ns"]) == (
            get("sent"),
            get("released"),
            get("received"),
            get("delivered"),
        ), key
        assert row["latency_ns"] == minus(get("delivered"), get("sent")), key
        assert row["held_at_sender_ns"] == minus(get("released"), get("sent")), key
        assert row["held_at_receiver_ns"] == minus(get("delivered"), get("received")), key
        assert row["earliest_ns"] == get("earliest"), key
        assert row["noncausal_ns"] == minus(get("delivered"), get("earliest")), key
        assert row["unavoidable_ns"] == minus(get("earliest"), get("sent")), key
        assert values(row["held_for"]) == get("held_for"), key
        if row["held_at_sender_ns"]:
            assert values(row["released_by"]) == get("by"), key
            seen.add((key[0], row["released_by"]["kind"]))
        else:
            assert row["released_by"] is None
        if row["held_for"]:
            seen.add((key[0], "held for"))
        if row["noncausal_ns"]:
            seen.add((key[0], "noncausal" if row["noncausal_ns"] > 0 else "too early"))
    assert ("mf", "ack_receive") in seen
    assert ("jobs", "permit_receive") in seen
    assert {("rst", "held for"), ("newtop", "noncausal"), ("unordered", "too early")} <= seen
    # An optimal protocol imposes no latency but the unavoidable one (Table 1).
    assert ("rst", "noncausal") not in seen
    assert ("csps", "noncausal") in seen


def test_a_story_by_hand(measured: Any, table_of_runs: Any) -> None:
    """Ann tells Bob (10 ns away) and Cy (100 ns); Bob passes it on to Cy (15 ns).

    Bob has to wait for a permit of Ann, 40 ns, and his message for hers at Cy, who
    delivers it 5 ns after that. Whoever knew everything would have sent it at 20, to
    arrive at 35, but would have had to wait for Ann's until 100.
    """
    order = [("sent_ns", "ascending"), ("destination", "ascending")]
    copies = measured["story"].copies().sort_by(order)
    to_bob, to_cy, passed_on = copies.to_pylist()
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
    assert to_cy["released_by"] is None
    assert values(passed_on["released_by"]) == ("permit_receive", "ann", "ann", 1)
    assert values(passed_on["held_for"]) == ("ann", 1)
    assert to_bob["held_for"] is None
    run = table_of_runs["story"]
    assert (run["sent"], run["copies"], run["delivered"], run["processes"]) == (2, 3, 3, 3)
    assert (run["latency_p50_ns"], run["latency_p99_ns"], run["latency_max_ns"]) == (85, 100, 100)
    assert run["latency_mean_ns"] == pytest.approx(65)
    assert run["noncausal_mean_ns"] == pytest.approx(5 / 3)
    assert (run["duration_ns"], run["execution_ns"]) == (105, 105)
    assert (run["control_packets"], run["control_bytes"], run["control_per_message"]) == (1, 8, 0.5)
    assert (run["payload_bytes"], run["metadata_bytes"]) == (300, 24)
    assert (run["max_send_buffer"], run["max_receive_buffer"]) == (1, 1)
    assert (run["max_in_transit"], run["max_in_transit_per_pair"]) == (2, 1)


def test_schemas_are_as_declared(measured: dict[str, RunMetrics]) -> None:
    for run in measured.values():
        assert run.copies().schema == COPIES
        assert run.occupancy().schema == OCCUPANCY
        assert run.jobs().schema == JOBS
        assert run.processes().schema == PROCESSES
        assert list(run.summary()) == RUNS.names


def test_occupancy_over_time(simulated: Any, measured: Any) -> None:
    rows = [row for run in measured.values() for row in run.occupancy().to_pylist()]
    found = defaultdict(list)
    for row in sorted(rows, key=lambda row: row["time_ns"]):
        key = (row["run"], row["process"], row["peer"], row["what"])
        found[key].append((row["time_ns"], row["copies"]))
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
        assert row["sent"] == summary.messages
        assert row["copies"] == summary.copies
        assert row["delivered"] == summary.deliveries
        assert row["retransmissions"] == summary.retransmissions
        assert row["metadata_bytes"] + row["control_bytes"] == summary.metadata_bytes
        assert row["payload_bytes"] == summary.payload_bytes
        assert row["control_per_message"] == pytest.approx(summary.control_per_message)
        assert row["latency_mean_ns"] == pytest.approx(summary.latency.mean_ns)
        assert row["latency_max_ns"] == summary.latency.max_ns
        median = row["latency_p50_ns"]
        assert median <= summary.latency.p50_ns <= median * (1 + 1 / 128)
        assert row["held_at_sender_mean_ns"] == pytest.approx(summary.held_at_sender.mean_ns)
        assert row["held_at_receiver_max_ns"] == summary.held_at_receiver.max_ns
        assert row["max_in_transit"] == summary.max_in_transit
        assert row["max_in_transit_per_pair"] == summary.max_in_transit_per_pair
        assert row["max_send_buffer"] == summary.max_send_buffer
        assert row["max_receive_buffer"] <= summary.max_receive_buffer
        assert row["jobs"] == summary.jobs
        first = min(e.time_ns for e in events if e.run == name)
        assert row["execution_ns"] == summary.execution_ns - first
        mine = plain([e for e in events if e.run == name]).values()
        beyond = [c["delivered"] - c["earliest"] for c in mine if "delivered" in c]
        for share, found in ((0.5, row["noncausal_p50_ns"]), (0.99, row["noncausal_p99_ns"])):
            assert found == percentile(beyond, share)
    assert rows["jobs"]["jobs"] > 0
    assert rows["jobs"]["job_delay_mean_ns"] == pytest.approx(summaries["jobs"].job_delay.mean_ns)


def test_processes_add_up_to_runs(measured: Any, table_of_runs: Any) -> None:
    runs = table_of_runs
    sums: defaultdict[Any, Any] = defaultdict(lambda: defaultdict(int))
    most: defaultdict[Any, Any] = defaultdict(lambda: defaultdict(int))
    for row in [row for run in measured.values() for row in run.processes().to_pylist()]:
        for name in ("sent", "copies", "delivered", "control_packets", "metadata_bytes"):
            sums[row["run"]][name] += row[name]
        for name in ("max_in_transit", "max_send_buffer", "max_receive_buffer"):
            most[row["run"]][name] = max(most[row["run"]][name], row[name])
        sums[row["run"]]["processes"] += 1
        assert row["duration_ns"] == runs[row["run"]]["duration_ns"]
        assert row["sent_per_second"] == pytest.approx(row["sent"] * 1e9 / row["duration_ns"])
    for name, run in runs.items():
        for field, value in [*sums[name].items(), *most[name].items()]:
            assert run[field] == value, (name, field)


@pytest.mark.parametrize("seed", range(30))
def test_random_runs_in_any_order_agree_with_brute_force(seed: int) -> None:
    rng = random.Random(seed)
    events = random_run(rng, "r", causal=seed % 2 == 0)
    events = [e._replace(time_ns=rng.randrange(100)) for e in events]
    wanted = plain(events)
    shuffled = rng.sample(events * 2, 2 * len(events))  # each row twice
    for given in (events, shuffled, [e._replace(lamport=None) for e in shuffled]):
        (run,) = measure(given)
        rows = {(r["origin"], r["mid"], r["destination"]): r for r in run.copies().to_pylist()}
        assert rows.keys() == wanted.keys()
        for key, copy in wanted.items():
            assert rows[key]["earliest_ns"] == copy["earliest"], key
            assert values(rows[key]["held_for"]) == copy["held_for"], key
        peaks: defaultdict[Any, int] = defaultdict(int)
        for row in run.occupancy().to_pylist():
            key = row["process"], row["what"], row["peer"] is not None
            peaks[key] = max(peaks[key], row["copies"])
        for row in run.processes().to_pylist():
            p = row["process"]
            assert row["max_in_transit"] == peaks[p, "in_transit", False]
            assert row["max_in_transit_per_pair"] == peaks[p, "in_transit", True]
            assert row["max_send_buffer"] == peaks[p, "send_buffer", False]
            assert row["max_receive_buffer"] == peaks[p, "receive_buffer", False]


def test_blocks_of_destinations_change_nothing() -> None:
    """Twenty processes, sixteen destinations at a time."""
    rng = np.random.default_rng(1)
    messages, processes = 400, 20
    sender = rng.integers(0, processes, messages).astype(np.int32)
    to = rng.integers(0, processes, messages).astype(np.int32)
    kind = np.tile(np.array([1, 2], np.int8), messages)
    process = np.column_stack([sender, to]).ravel()
    message = np.repeat(np.arange(messages, dtype=np.int32), 2)
    arrival = rng.integers(0, 1000, messages)
    place = (2 * np.arange(messages) + 1).astype(np.int32)
    begin = np.arange(messages + 1)
    given = (kind, process, message, begin, to, arrival, place, processes)
    whole, blocked = earliest(*given), earliest(*given, memory=1)
    assert np.array_equal(whole[0], blocked[0])
    assert np.array_equal(whole[1], blocked[1])
    assert (whole[0] > arrival).any()


def test_a_cycle_is_refused() -> None:
    make: Any = Event
    crossed = [
        make("r", "a", 0, 0, None, "deliver", "b", 1, ("b",)),
        make("r", "a", 1, 1, None, "send", "a", 1, ("b",)),
        make("r", "b", 0, 0, None, "deliver", "a", 1, ("a",)),
        make("r", "b", 1, 1, None, "send", "b", 1, ("a",)),
    ]
    with pytest.raises(TraceError, match="form a cycle"):
        list(measure(crossed))


def test_a_trace_without_times_has_counts() -> None:
    (run,) = measure(
        e._replace(time_ns=None) for e in random_run(random.Random(3), "r", causal=True)
    )
    row = run.summary()
    assert row["sent"] > 0
    assert row["latency_mean_ns"] is row["duration_ns"] is row["execution_ns"] is None
