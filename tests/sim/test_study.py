"""The study: its files can be run, and its short form says what the long one says."""

from __future__ import annotations

import json
from pathlib import Path
from statistics import fmean

import pytest

from causewire.pipeline.sweep import read_experiment
from causewire.sim import Config, Summary, simulate

STUDY = Path(__file__).parents[2] / "experiments" / "study"
FILES = sorted(STUDY.glob("*.toml"))


@pytest.mark.slow
@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_every_run_of_the_study_can_be_run(path: Path) -> None:
    runs = read_experiment(path).runs()
    assert len(runs) > 20
    assert len({run.run for run in runs}) == len(runs)


def test_there_are_files() -> None:
    assert {"distance", "freeze", "quick", "scale", "small"} <= {path.stem for path in FILES}


@pytest.mark.slow
def test_the_study_in_short() -> None:
    found: dict[tuple[str, str], list[Summary]] = {}
    for run in read_experiment(STUDY / "quick.toml").runs():
        if run.parameters["seed"]:
            continue  # one seed is enough here
        summary = simulate(Config.from_dict(json.loads(run.config)))
        assert summary.undelivered is None
        assert summary.deliveries == 2_000
        found.setdefault((run.grid, summary.protocol), []).append(summary)

    def latency(grid: str, protocol: str) -> float:
        return fmean(s.latency.mean_ns for s in found[grid, protocol])

    def bits(protocol: str, processes: int) -> float:
        runs = [s for s in found["zone", protocol] if s.processes == processes]
        return fmean(s.metadata_bits / s.copies for s in runs)

    for grid in ("zone", "three regions"):
        optimum = latency(grid, "ks")
        assert latency(grid, "fifo") <= 1.02 * optimum
        assert latency(grid, "adaptive") <= 1.1 * optimum
        assert latency(grid, "csps") < latency(grid, "mf")
        assert optimum < latency(grid, "csps")
    assert bits("ks", 160) > 3 * bits("ks", 10)
    for protocol in ("adaptive", "csps", "sps", "mf", "cykas"):
        assert bits(protocol, 160) < 2 * bits(protocol, 10), protocol
