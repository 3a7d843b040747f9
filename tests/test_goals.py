"""The table of goals compares contenders of one round; builds are what they are said to be."""

from __future__ import annotations

import importlib
import json
import shutil
from pathlib import Path
from typing import Any

import pytest

import causewire

BENCHMARKS = Path(__file__).parent.parent / "benchmarks"


@pytest.fixture
def goals(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    return importlib.import_module("goals")


@pytest.fixture
def builds(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    return importlib.import_module("_builds")


def values(number: float) -> dict[str, float]:
    return dict.fromkeys(("p50", "p90", "p99", "cpu", "datagrams", "rate"), number)


def test_a_ratio_compares_two_contenders_of_the_same_round(goals: Any) -> None:
    goal = goals.Goal("a client", "p50", "csps", "udp", 2.5)
    fast, slow = ("a client", "udp"), ("a client", "csps")
    rounds = [{fast: values(10), slow: values(20)}, {fast: values(100), slow: values(300)}, {}]
    assert goal.ratios(rounds) == [2.0, 3.0]
    assert goal.ratios([{fast: values(10)}]) == []  # interrupted before it was measured
    alone = goals.Goal("a client", "datagrams", "csps", None, 2.2)
    assert alone.ratios(rounds) == [20, 300]


def test_less_is_better_except_for_rates(goals: Any) -> None:
    latency = goals.Goal("a client", "p50", "csps", "udp", 2.5)
    assert latency.reached(2.5)
    assert not latency.reached(2.6)
    rate = goals.Goal("one way", "rate", "csps", "zmq", 1.3)
    assert rate.reached(1.3)
    assert not rate.reached(1.2)


def test_every_goal_is_about_contenders_that_are_measured(goals: Any) -> None:
    measured = set(goals.in_turn(0, True))
    for goal in goals.goals():
        assert (goal.shape, goal.contender) in measured
        assert goal.beside is None or (goal.shape, goal.beside) in measured
    assert set(goals.in_turn(5, True)) == measured
    assert list(goals.in_turn(5, True)) != list(goals.in_turn(0, True))
    assert not any(name.endswith("compiled") for _, name in goals.in_turn(0, False))


def test_a_run_that_was_interrupted_shows_what_it_has(
    goals: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "results.jsonl"
    rows = [(0, "csps", 40.0), (0, "zmq.asyncio", 50.0), (1, "csps", 60.0)]
    lines = [
        json.dumps({"round": k, "shape": "a client", "contender": name, "values": values(number)})
        for k, name, number in rows
    ]
    file.write_text("\n".join(lines))
    goals.show_goals(goals.read(file))
    table = capsys.readouterr().out.splitlines()
    assert (
        "| a client | p50 | csps | zmq.asyncio | 0.80 | 0.80 | 0.80 | ≤ 0.90 | reached |" in table
    )
    assert sum("not measured" in line for line in table) == len(list(goals.goals())) - 1


def test_a_directory_with_other_sources_is_refused(builds: Any, tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match="there is no compiled package; run: python hatch_build"):
        builds.Builds(tmp_path)
    ours = Path(causewire.__file__).parent
    for package in ("core", "transport", "node"):
        shutil.copytree(ours / package, tmp_path / "causewire" / package)
    builds.Builds(tmp_path)
    (tmp_path / "causewire" / "core" / "csps.py").write_text("# older")
    with pytest.raises(SystemExit, match=r"core/csps\.py is not what was compiled"):
        builds.Builds(tmp_path)


@pytest.mark.slow
def test_sources_are_not_taken_for_compiled_modules(
    builds: Any, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    nothing = shutil.ignore_patterns("__pycache__", "*.so")
    shutil.copytree(Path(causewire.__file__).parent, tmp_path / "causewire", ignore=nothing)
    both = builds.Builds(tmp_path)
    assert both.both(["csps"]) == ["csps", "csps compiled"]
    with pytest.raises(SystemExit, match=r"os\.strerror failed for csps compiled"):
        both.call("os", "strerror", "csps compiled")
    assert "asked for compiled=True, but got " in capfd.readouterr().err
