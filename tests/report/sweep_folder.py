"""A directory as a finished sweep leaves it, made by hand."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

__all__ = ["EXPERIMENT", "RUNS", "read_csv", "run", "sweep_folder"]

EXPERIMENT = """
name = "try"
title = "A <try>"
about = "What it is about."

[[figure]]
name = "time"
title = "Time against processes"
x = "processes"
x_label = "processes"
y = "execution_ns"
y_label = "execution time (s)"
y_factor = 1e-9

[[figure]]
name = "speedup"
title = "Speedup over mf"
x = "processes"
x_label = "processes"
y = "execution_ns"
y_label = "speedup"
over = { protocol = "mf" }
across = [1.0]

[[table]]
name = "times"
title = "Times"
rows = ["protocol", "processes"]
column = [{ of = "execution_ns", label = "time (s)", factor = 1e-9 }]
"""


def run(protocol: str, processes: int, seed: int, time: int | None) -> dict[str, Any]:
    config = {"protocol": protocol, "processes": {"count": processes}, "seed": seed}
    return {
        "run": f"{protocol}-{processes}-{seed}",
        "grid": "",
        "protocol": protocol,
        "processes": processes,
        "seed": seed,
        "status": "failed" if time is None else "done",
        "error": "RuntimeError: no" if time is None else None,
        "execution_ns": time,
        "packets": [("ack", 3)],
        "config": json.dumps(config),
    }


RUNS = [
    run(protocol, n, seed, base * n * (10 + seed) * 10**7)
    for protocol, base in (("mf", 2), ("csps", 1))
    for n in (10, 20)
    for seed in (0, 1, 2)
]


def sweep_folder(place: Path, runs: list[dict[str, Any]], experiment: str = EXPERIMENT) -> Path:
    """A directory as a finished sweep leaves it."""
    place.mkdir()
    (place / "_journal").mkdir()
    (place / "experiment.toml").write_text(experiment)
    failed = sum(row["status"] == "failed" for row in runs)
    told = {"name": "try", "runs": len(runs), "failed": failed, "events": 1234}
    (place / "sweep.json").write_text(json.dumps(told))
    (place / "runs").mkdir()
    columns = {name: [row[name] for row in runs] for name in runs[0]}
    packets = pa.array(columns["packets"], pa.map_(pa.string(), pa.int64()))
    pq.write_table(pa.table(columns | {"packets": packets}), place / "runs" / "part-0.parquet")
    (place / "_SUCCESS").touch()
    return place


def read_csv(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file))
