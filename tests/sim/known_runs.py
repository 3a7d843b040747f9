"""Runs whose traces are fixed: a digest for each, so that a seed keeps its meaning.

    python -m tests.sim.known_runs

prints the digests of all runs as they are now. `test_known_runs.py` compares them
with `known_runs.json`. The last column of the rows (bytes of metadata) is left
out, because it follows from how a protocol counts, not from what happens.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from causewire.sim import Config, SimulationError, simulate
from causewire.trace import Event

from .simulated import WORKLOADS

PROTOCOLS = (
    *("csps", "sps", "mf", "cykas", "cykas-secret-sends", "rst", "ks", "newtop"),
    *("pak", "pak-credit", "pak-nak", "bss", "fifo", "unordered"),
)

BAD = {"loss": 0.1, "duplicate": 0.1, "reorder": 0.1}
FAULTS = [
    {"kind": "hold", "at": "5ms", "processes": [1]},
    {"kind": "slow", "at": "10ms", "factor": 3},
    {"kind": "release", "at": "15ms"},
    {"kind": "partition", "at": "20ms", "sides": 2},
    {"kind": "heal", "at": "60ms"},
    {"kind": "crash", "at": "70ms", "processes": [2]},
    {"kind": "heal", "at": "90ms"},
]
BUSY = {
    "handling": {"kind": "uniform", "low": "0ms", "high": "2ms"},
    "jobs": {"share": 0.3, "length": "7ms"},
}
REGIONS = {
    "kind": "regions",
    "names": ["east", "west"],
    "matrix": [["1ms", "30ms"], [{"kind": "exponential", "mean": "20ms"}, "2ms"]],
}

CONDITIONS: dict[str, dict[str, Any]] = {
    "plain": {},
    "bad": {"network": BAD, "faults": FAULTS},
    "busy": {"processes": BUSY},
    "narrow": {"network": {"latency": REGIONS, "bandwidth": "90kB/s"}, "until": "2s"},
}

KNOWN = Path(__file__).with_name("known_runs.json")


class Digest:
    """A sink that keeps a digest of the rows, and their number."""

    def __init__(self) -> None:
        self.rows = 0
        self.hash = hashlib.sha256()

    def write(self, event: Event) -> None:
        self.rows += 1
        self.hash.update(repr(tuple(event)[:-1]).encode())


def runs() -> Iterator[tuple[str, Config]]:
    """Yield every known run that its protocol can carry, with its name."""
    for protocol in PROTOCOLS:
        for name, workload in WORKLOADS.items():
            for condition, settings in CONDITIONS.items():
                if condition == "narrow" and protocol not in ("fifo", "unordered"):
                    continue  # bandwidth makes times depend on bytes of metadata
                processes = dict(settings.get("processes", {}))
                if name != "microservices":
                    processes["count"] = 6
                run = {
                    **settings,
                    "protocol": protocol,
                    "workload": workload,
                    "messages": 60,
                    "seed": 5,
                    "processes": processes,
                }
                try:
                    yield f"{protocol} {name} {condition}", Config.from_dict(run)
                except SimulationError:
                    continue


def digest(config: Config) -> str:
    """Return the number of rows of a run and a digest of them."""
    sink = Digest()
    simulate(config, sink)
    return f"{sink.rows} {sink.hash.hexdigest()[:16]}"


if __name__ == "__main__":
    print(json.dumps({name: digest(config) for name, config in runs()}, indent=0))
