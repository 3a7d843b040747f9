"""The same settings and seed give the same run: here, elsewhere, and tomorrow."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys

import pytest

from causewire import protocols
from causewire.sim import Config, SimulationError, simulate

from .simulated import WORKLOADS, Judge, play

PROGRAM = """
import hashlib
from tests.sim.simulated import Judge, WORKLOADS
from causewire import protocols
from causewire.sim import Config, Processes, SimulationError, simulate
FAULTS = [{"kind": "partition", "at": "20ms", "sides": 2}, {"kind": "heal", "at": "60ms"}]
BAD = {"loss": 0.1, "duplicate": 0.1, "reorder": 0.1}
for protocol in protocols.names():
    for name in ("uniform", "multicast", "microservices", "broadcast"):
        for network, faults in ((BAD, FAULTS), ({}, [])):
            try:
                config = Config.from_dict({
                    "protocol": protocol, "workload": WORKLOADS[name], "messages": 40,
                    "processes": Processes(count=None if name == "microservices" else 6),
                    "network": network, "faults": faults, "seed": 5,
                })
            except SimulationError:
                continue
            judge = Judge()
            summary = simulate(config, judge)
            rows = repr(judge.rows) + repr(summary)
            print(protocol, name, len(judge.rows), hashlib.sha256(rows.encode()).hexdigest())
"""


def digests(hash_seed: str) -> str:
    path = os.pathsep.join(filter(None, sys.path))
    environment = {**os.environ, "PYTHONHASHSEED": hash_seed, "PYTHONPATH": path}
    run = subprocess.run(
        [sys.executable, "-c", PROGRAM], env=environment, capture_output=True, text=True, check=True
    )
    return run.stdout


@pytest.mark.slow
def test_two_processes_with_different_hash_seeds_write_the_same_rows() -> None:
    first, second = digests("1"), digests("2")
    assert first.count("\n") > 3 * len(protocols.names())
    assert first == second


@pytest.mark.parametrize("protocol", ["unordered", "csps"])
def test_a_seed_is_a_run(protocol: str) -> None:
    def rows(seed: int) -> list[object]:
        return [*play(protocol=protocol, messages=50, seed=seed)[1].rows]

    assert rows(1) == rows(1)
    assert rows(1) != rows(2)


def test_a_trace_changes_nothing() -> None:
    for name, workload in WORKLOADS.items():
        settings = {"protocol": "csps", "messages": 60, "workload": workload, "seed": 3}
        config = Config.from_dict(settings)
        assert simulate(config) == simulate(config, Judge()), name


def test_progress_changes_nothing_and_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("causewire.sim.run.SLICE", 1000)
    config = Config(protocol="unordered", messages=2_000)
    told: list[tuple[int, int]] = []
    assert simulate(config, progress=lambda done, all_: told.append((done, all_))) == simulate(
        config
    )
    assert told
    assert told == sorted(told)
    assert all(done <= all_ == 2_000 for done, all_ in told)


def test_a_known_run() -> None:
    """Draws of every kind; a change here is a change for everybody who noted a seed."""
    _, judge = play(
        protocol="unordered",
        processes={
            "count": 5,
            "think": {"kind": "exponential", "mean": "4ms"},
            "handling": {"kind": "uniform", "low": "0ms", "high": "1ms"},
            "jobs": {"length": {"kind": "normal", "mean": "9ms", "deviation": "2ms"}},
        },
        messages=200,
        workload={"kind": "relay"},
        network={
            "latency": {"kind": "lognormal", "median": "3ms", "sigma": 0.7},
            "reorder": 0.1,
            "duplicate": 0.05,
            "loss": 0.02,
            "bandwidth": "90kB/s",
        },
        allow_worse_network=True,
        seed=2026,
    )
    rows = [tuple(row) for row in judge.rows]
    assert hashlib.sha256(repr(rows).encode()).hexdigest()[:16] == "59d02d3bb46c92f9"


def test_what_is_refused_is_refused_before_anything_is_written() -> None:
    with pytest.raises(SimulationError):
        Config(protocol="bss", messages=10)
