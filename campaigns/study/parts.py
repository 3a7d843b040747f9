"""The experiments of the study, whole or reduced."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from causewire.pipeline.sweep.experiment import Experiment, Grid, read_experiment

__all__ = ["FOLDER", "PARTS", "WHOLE", "Size", "experiment"]

FOLDER = Path(__file__).parents[2] / "experiments" / "study"

PARTS = ("small", "replay", "assumptions", "distance", "freeze", "scale")
"""The parts, the quickest first."""


class Size(NamedTuple):
    """How much of the study is run; None is as much as the files say."""

    seeds: int | None = None
    processes: int | None = None
    messages: int | None = None

    @property
    def whole(self) -> bool:
        """Whether nothing is left out."""
        return self == WHOLE

    def said(self) -> str:
        """Return what is left out, in words; empty if nothing is."""
        limits = []
        if self.seeds is not None:
            limits.append(f"at most {self.seeds} seeds for each cell")
        if self.processes is not None:
            limits.append(f"at most {self.processes:,} processes")
        if self.messages is not None:
            limits.append(f"at most {self.messages:,} messages in a run")
        return ", ".join(limits)


WHOLE = Size()


def experiment(part: str, size: Size, spans: Path) -> Experiment:
    """Return an experiment of the study, reduced to a size.

    Args:
        part: One of `PARTS`.
        size: How much of it.
        spans: The file of spans that the part `replay` reads.
    """
    found = read_experiment(FOLDER / f"{part}.toml")
    return replace(found, grids=tuple(_reduced(grid, size, spans) for grid in found.grids))


def _reduced(grid: Grid, size: Size, spans: Path) -> Grid:
    def smaller(settings: Mapping[str, Any]) -> dict[str, Any]:
        values = dict(settings)
        timed = "until" in grid.settings
        if size.messages is not None and "messages" in values and not timed:
            values["messages"] = min(values["messages"], size.messages)
        workload = values.get("workload")
        if isinstance(workload, dict) and "trace" in workload:
            values["workload"] = workload | {"trace": str(spans)}
        return values

    cases = [smaller(case) for case in grid.cases]
    if size.processes is not None:
        cases = [case for case in cases if case.get("workload.size", 0) <= size.processes]
    seeds = grid.seeds if size.seeds is None else grid.seeds[: size.seeds]
    return replace(grid, seeds=seeds, settings=smaller(grid.settings), cases=cases)


def title(part: str) -> str:
    """Return the title of a part."""
    data = tomllib.loads((FOLDER / f"{part}.toml").read_text(encoding="utf-8"))
    return str(data["title"])
