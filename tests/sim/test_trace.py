"""Rows of the trace: an order that can be trusted, in any format."""

from __future__ import annotations

from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import pytest

from causewire.sim import Config, simulate
from causewire.trace import open_trace, open_writer

from .simulated import WORKLOADS, Judge, play

RUNS: list[tuple[str, str, dict[str, Any]]] = [
    ("csps", "uniform", {"loss": 0.1, "duplicate": 0.1, "reorder": 0.1}),
    ("sps", "multicast", {"loss": 0.1}),
    ("cykas", "relay", {}),
    ("newtop", "broadcast", {}),
    ("pak-nak", "broadcast", {}),
    ("fifo", "request-reply", {"bandwidth": "40kB/s"}),
]

DEPARTURES = {"ack": "ack_receive", "permit": "permit_receive", "control": "control_receive"}


def run(protocol: str, workload: str, network: dict[str, Any]) -> Judge:
    _, judge = play(
        protocol=protocol,
        workload=WORKLOADS[workload],
        processes=6,
        messages=80,
        network=network,
        seed=6,
    )
    return judge


@pytest.mark.parametrize(("protocol", "workload", "network"), RUNS)
def test_sorting_by_lamport_time_is_a_topological_order(
    protocol: str, workload: str, network: dict[str, Any]
) -> None:
    rows = run(protocol, workload, network).rows
    seen: defaultdict[str, int] = defaultdict(int)
    sent: set[tuple[str, int]] = set()
    left: Counter[tuple[object, ...]] = Counter()
    arrived: set[tuple[object, ...]] = set()
    for row in sorted(rows, key=lambda row: (row.lamport, row.process)):
        assert row.seq == seen[row.process], "rows of a process in their order, none left out"
        seen[row.process] += 1
        message = (row.origin, row.mid)
        if row.kind == "send":
            sent.add(message)
        elif row.kind in ("release", "retransmit"):
            assert message in sent
            left[(*message, row.peers[0])] += 1
        elif row.kind in ("receive", "duplicate"):
            assert left[(*message, row.process)], "it left before it arrived"
            arrived.add((*message, row.process))
        elif row.kind == "deliver":
            assert (*message, row.process) in arrived
        elif row.kind in DEPARTURES:
            left[row.kind, row.process, row.peers[0], *message] += 1
        elif row.kind in DEPARTURES.values():
            kind = row.kind.removesuffix("_receive")
            assert left[kind, row.peers[0], row.process, *message]


@pytest.mark.parametrize(("protocol", "workload", "network"), RUNS)
def test_rows_are_written_as_they_happen(
    protocol: str, workload: str, network: dict[str, Any]
) -> None:
    rows = run(protocol, workload, network).rows
    times = [row.time_ns for row in rows]
    assert times == sorted(times)
    first = Counter((row.origin, row.mid, row.peers) for row in rows if row.kind == "release")
    assert set(first.values()) == {1}, "a message is released once to each destination"


def test_what_each_kind_of_row_says() -> None:
    judge = run("csps", "uniform", {"loss": 0.2, "duplicate": 0.2})
    kinds = Counter(row.kind for row in judge.rows)
    for kind in ("send", "release", "receive", "deliver", "ack", "permit", "retransmit"):
        assert kinds[kind] > 0, kind
    for kind in ("duplicate", "drop", "ack_receive", "permit_receive", "control"):
        assert kinds[kind] > 0, kind
    for row in judge.rows:
        if row.kind == "send":
            assert row.origin == row.process
            assert row.payload_bytes == 100
        if row.kind == "deliver":
            assert row.peers == (row.origin,)
        if row.kind == "ack":
            assert row.origin == row.peers[0], "an ack is about a message of whom it goes to"
            assert row.mid > 0
        if row.kind == "permit":
            assert row.origin == row.process, "a permit is about a message of its sender"
        if row.kind == "control":
            assert (row.origin, row.mid) == (None, None)


@pytest.mark.parametrize("name", ["run.jsonl", "run.parquet", "run"])
def test_written_and_read_again(name: str, tmp_path: Path) -> None:
    if not name.endswith(".jsonl"):
        pytest.importorskip("pyarrow")
    config = Config.from_dict(
        {
            "protocol": "csps",
            "processes": {"count": 4, "jobs": {"share": 0.5}},
            "messages": 60,
            "network": {"loss": 0.1},
            "faults": [{"kind": "hold", "at": "5ms"}, {"kind": "release", "at": "9ms"}],
        }
    )
    judge = Judge()
    simulate(config, judge, run="x")
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        with open_writer(tmp_path / folder / name) as writer:
            simulate(config, writer, run="x")
    assert list(open_trace(tmp_path / "a" / name).events()) == judge.rows
    files = [sorted(p for p in (tmp_path / f).rglob("*") if p.is_file()) for f in ("a", "b")]
    assert [p.read_bytes() for p in files[0]] == [p.read_bytes() for p in files[1]]
    assert {row.run for row in judge.rows} == {"x"}


def test_a_run_has_a_name_of_its_own() -> None:
    _, judge = play(protocol="csps", messages=5, workload="relay", seed=12)
    assert {row.run for row in judge.rows} == {"csps-relay-12"}
