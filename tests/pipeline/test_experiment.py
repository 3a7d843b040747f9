"""The grid of a sweep: its runs, how they are divided into tasks, and grids that are refused."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import TYPE_CHECKING

import pytest

from causewire.pipeline import PipelineError
from causewire.pipeline.sweep.simulation import (
    pack,
)
from causewire.sim import Config

if TYPE_CHECKING:
    pass
from .experiments import BAD, SMALL, Write

# -- the experiment --------------------------------------------------------------


def test_every_combination_is_a_run(written: Write) -> None:
    runs = written(SMALL).runs()
    points = [tuple(run.parameters[k] for k in ("protocol", "processes", "seed")) for run in runs]
    assert points == [(p, n, s) for p in ("csps", "mf", "rst") for n in (4, 6) for s in (0, 1)]
    assert len({run.run for run in runs}) == 12
    assert all(run.parameters["messages"] == 60 for run in runs)
    assert all(Config.from_dict(json.loads(run.config)).processes.count in (4, 6) for run in runs)


def test_a_run_is_named_by_what_it_is(written: Write) -> None:
    first = {run.run for run in written(SMALL).runs()}
    text = SMALL.replace("seeds = 2", "seeds = [1, 0, 7]").replace("messages = 60", "messages=60")
    assert first < {run.run for run in written(text).runs()}
    other = {run.run for run in written(SMALL.replace("60", "61")).runs()}
    assert not first & other


def test_cases_skip_and_grids(written: Write) -> None:
    experiment = written("""
    [settings]
    messages_per_process = 10
    processes.think = "5ms"
    [[skip]]
    protocol = "mf"
    "network.loss" = [0.1, 0.2]
    [[grid]]
    name = "a"
    vary.protocol = ["csps", "mf"]
    cases = [
        { network.loss = 0.1, network.latency = "1ms" },
        { network.loss = 0.0, processes.count = 7 },
    ]
    [[grid]]
    name = "b"
    seeds = [3]
    settings.processes.think = "1ms"
    vary.protocol = ["csps"]
    """)
    found = [
        (r.grid, r.parameters["protocol"], r.parameters["network.loss"], r.parameters["messages"])
        for r in experiment.runs()
    ]
    assert found == [
        ("a", "csps", 0.1, 100),
        ("a", "csps", 0.0, 70),
        ("a", "mf", 0.0, 70),
        ("b", "csps", 0.0, 100),
    ]
    assert [r.parameters["processes.think.value"] for r in experiment.runs()] == [5_000_000] * 3 + [
        1_000_000
    ]


@pytest.mark.parametrize("case", BAD)
def test_bad_experiments(case: str, written: Write) -> None:
    text, said = BAD[case]
    with pytest.raises(PipelineError) as error:
        written(text).runs()
    assert said in str(error.value)
    assert "experiment.toml: " in str(error.value)
    assert "\n" not in str(error.value)


# -- balance -----------------------------------------------------------------------


def test_tasks_get_shorter_and_leave_nobody_alone() -> None:
    costs = [100.0, 50.0, *[1.0] * 300, *[0.001] * 5000]
    tasks = pack(costs, slots=4)
    assert sorted(i for task in tasks for i in task) == list(range(len(costs)))
    assert tasks[0] == [0]
    assert tasks[1] == [1]
    weights = [sum(costs[i] for i in task) for task in tasks]
    assert all(later <= max(earlier, 2.0) for earlier, later in pairwise(weights))
    # As the tasks are taken up: nobody waits long for the last one.
    free = [0.0] * 4
    for weight in weights:
        free[free.index(min(free))] += weight
    assert max(free) <= 1.02 * max(100.0, sum(costs) / 4)
    assert len(tasks) < 80, "small runs come many to a task"


def test_every_run_is_in_one_task_however_small() -> None:
    assert pack([0.001] * 10, slots=2) == [list(range(10))]
    assert pack([5.0], slots=64) == [[0]]
