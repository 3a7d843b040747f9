"""The study: its runs can be run, and its short form says what the long one says."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from statistics import fmean

import pytest

from campaigns.study.parts import FOLDER, PARTS, Size, experiment
from campaigns.study.spans import write_spans
from causewire.sim import Config, Summary, simulate


@pytest.fixture(scope="module")
def spans(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("study") / "spans.jsonl.gz"
    write_spans(path, size=20, requests=5)
    return path


@pytest.mark.slow
@pytest.mark.parametrize("part", PARTS)
def test_every_run_of_the_study_can_be_run(part: str, spans: Path) -> None:
    runs = experiment(part, Size(seeds=1), spans).runs()
    assert len(runs) > 10
    assert len({run.run for run in runs}) == len(runs)


def test_every_file_is_a_part() -> None:
    assert {path.stem for path in FOLDER.glob("*.toml")} == set(PARTS)


def test_a_study_can_be_reduced(spans: Path) -> None:
    size = Size(seeds=2, processes=30, messages=300)
    runs = experiment("scale", size, spans).runs()
    assert {run.parameters["seed"] for run in runs} == {0, 1}
    assert {run.parameters["processes"] for run in runs} == {10, 30}
    assert {run.parameters["messages"] for run in runs} == {300}
    assert size.said() == (
        "at most 2 seeds for each cell, at most 30 processes, at most 300 messages in a run"
    )
    replayed = experiment("replay", size, spans).runs()
    assert {run.parameters["workload.trace"] for run in replayed} == {str(spans)}


@cache
def summary(config: str) -> Summary:
    return simulate(Config.from_dict(json.loads(config)))


@pytest.mark.slow
def test_the_study_in_short(spans: Path) -> None:
    found: dict[tuple[str, str], Summary] = {}
    for run in experiment("distance", Size(seeds=1, messages=2000), spans).runs():
        about = run.parameters
        if about["processes.think.mean"] == 100_000_000 and run.grid in ("zone", "three regions"):
            found[run.grid, about["protocol"]] = summary(run.config)

    def latency(grid: str, protocol: str) -> float:
        assert found[grid, protocol].undelivered is None
        return found[grid, protocol].latency.mean_ns

    for grid in ("zone", "three regions"):
        optimum = latency(grid, "ks")
        assert latency(grid, "fifo") <= 1.02 * optimum
        assert latency(grid, "adaptive") <= 1.1 * optimum
        assert optimum < latency(grid, "csps") < latency(grid, "mf")


@pytest.mark.slow
def test_metadata_grows_only_where_it_must(spans: Path) -> None:
    found: dict[tuple[str, int], float] = {}
    for run in experiment("scale", Size(seeds=1, processes=100, messages=1000), spans).runs():
        got = summary(run.config)
        found[got.protocol, got.processes] = got.metadata_bits / got.copies
    assert found["ks", 100] > 3 * found["ks", 10]
    assert found["rst", 100] > 50 * found["rst", 10]
    for protocol in ("adaptive", "csps", "sps", "mf", "cykas"):
        assert found[protocol, 100] < 2 * found[protocol, 10], protocol


def test_replayed_spans_are_delivered(spans: Path) -> None:
    runs = experiment("replay", Size(seeds=1), spans).runs()
    messages = {run.parameters["messages"] for run in runs}
    assert messages == {summary(runs[0].config).deliveries}
    assert fmean(messages) > 20
