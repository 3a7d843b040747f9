"""The page about the simulator: it leaves no setting out."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from causewire.sim import (
    Config,
    Jobs,
    Processes,
    Regions,
    SimulatedNetwork,
    Sizes,
    Summary,
    workloads,
)
from causewire.sim import faults as faults_module
from causewire.sim import times as times_module
from causewire.sim.faults import Fault
from causewire.sim.settings import Settings
from causewire.sim.summary import Histogram

PAGE = (Path(__file__).parents[2] / "docs" / "simulation.md").read_text(encoding="utf-8")


def settings_of(module: object, base: type[Settings]) -> list[type[Settings]]:
    return [
        cls
        for cls in vars(module).values()
        if isinstance(cls, type) and issubclass(cls, base) and "kind" in vars(cls)
    ]


EVERY: list[type[Settings]] = [
    *(Config, SimulatedNetwork, Regions, Processes, Jobs, Sizes, workloads.Service, workloads.Call),
    *workloads.KINDS.values(),
    *settings_of(faults_module, Fault),
    *settings_of(times_module, times_module.Time),
]


@pytest.mark.parametrize("cls", EVERY, ids=lambda cls: cls.__name__)
def test_every_setting_is_on_the_page(cls: type[Settings]) -> None:
    for field in dataclasses.fields(cls):
        if field.init:
            assert f"`{field.name}`" in PAGE or f'"{field.name}"' in PAGE, field.name
    kind = getattr(cls, "kind", None)
    if kind is not None:
        assert f"`{kind}`" in PAGE or f'"{kind}"' in PAGE


def test_every_figure_of_the_summary_is_on_the_page() -> None:
    told_by_the_settings = {"protocol", "workload", "processes", "seed", "fifo_channels"}
    for field in dataclasses.fields(Summary):
        if field.name not in told_by_the_settings:
            assert f"`{field.name}`" in PAGE, field.name
    assert Histogram.ERROR == 1 / 128


def test_there_was_something_to_test() -> None:
    assert len(EVERY) == 8 + 10 + 8 + 5
