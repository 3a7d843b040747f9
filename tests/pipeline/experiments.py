"""Small experiments, their rows, and experiments that are refused."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq

from causewire.pipeline.sweep import Experiment
from causewire.pipeline.sweep import results as columns
from causewire.pipeline.sweep.experiment import Run
from causewire.sim import Config, simulate

if TYPE_CHECKING:
    pass


SMALL = """
seeds = 2
[settings]
messages = 60
[vary]
protocol = ["csps", "mf", "rst"]
processes = [4, 6]
"""

Write = Callable[[str], Experiment]


def rows(out: Path) -> list[dict[str, Any]]:
    table: list[dict[str, Any]] = pq.read_table(out / "runs").to_pylist()
    return table


def simulated(run: Run) -> dict[str, Any]:
    """The row of a run that is simulated here, as Parquet gives it back."""
    row = columns.done(run.run, simulate(Config.from_dict(json.loads(run.config))))
    return row | {"packets": list(row["packets"].items())}


BAD = {
    "unknown key": (
        "[varry]\nprotocol = ['mf']",
        "an experiment has no 'varry' (did you mean 'vary'?)",
    ),
    "unknown setting": ("[vary]\nprotocol=['mf']\nnetwork.los=[0.1]", "network has no setting"),
    "unknown key of a grid": ("[[grid]]\nname='a'\ntraces=true", "a grid has no 'traces'"),
    "empty list": ("[vary]\nprotocol = []", "the grid is empty: there is nothing to run"),
    "no seeds": ("seeds = 0\n[vary]\nprotocol = ['mf']", "the grid is empty"),
    "all skipped": ("[vary]\nprotocol=['mf']\n[[skip]]\nprotocol='mf'", "the grid is empty"),
    "no protocol": ("[settings]\nprocesses = 3", "run needs 'protocol'"),
    "cannot carry": (
        "[vary]\nprotocol = ['csps', 'bss']\nprocesses = [5]",
        "bss only broadcasts, and cannot carry the uniform workload (messages to 1 of 4 others)",
    ),
    "not TOML": ("name = ", "not TOML"),
    "not a list": ("[vary]\nprotocol = 'mf'", "vary.protocol must be a list of values, not 'mf'"),
    "a seed": ("[vary]\nprotocol=['mf']\nseed=[1]", "seeds are given by 'seeds'"),
    "a table in a value": ("[settings]\nprotocol='mf'\nmessages=5\n'messages.x'=1", "has no x"),
    "two grids, one name": ("[[grid]]\nname='a'\n[[grid]]\nname='a'", "a name of its own"),
    "both": (
        "[settings]\nprotocol='mf'\nmessages=1\nmessages_per_process=1",
        "exclude each other",
    ),
    "a figure": ("[settings]\nprotocol='mf'\n[[figure]]\nname='f'\nz=1", "figure f has no 'z'"),
}


def journal_lines(out: Path) -> list[str]:
    return [
        line for f in sorted(out.glob("_journal/*.jsonl")) for line in f.read_text().split("\n")
    ]
