"""The results of a study: cells of runs that differ in their seeds only."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from causewire.report.numbers import Estimate, estimate

from .spans import SPANS, requests_in

__all__ = ["ASSUMPTIONS", "CAUSAL", "LIMITS", "PROTOCOLS", "Cell", "Limit", "Results"]

PROTOCOLS = ("fifo", "ks", "rst", "adaptive", "csps", "sps", "cykas", "mf")
"""In the order of the tables: what keeps no causal order, what is optimal, the others."""

CAUSAL = PROTOCOLS[1:]

Row = Mapping[str, Any]
COLUMNS = (
    *("grid", "protocol", "workload", "processes", "seed", "status", "copies", "deliveries"),
    *("latency_mean_ns", "latency_p99_ns", "metadata_bits", "control_per_message"),
    *("max_send_buffer", "max_receive_buffer"),
)


ASSUMPTIONS = {
    "workload.queued": "share of calls through a queue",
    "workload.parallel": "share of places that call all at once",
    "workload.skew": "skew of popularity",
    "workload.tail": "tail of call-graph sizes",
}
"""What the part `assumptions` varies."""


class Limit(NamedTuple):
    """Up to where something counts as usable."""

    name: str
    text: str
    most: float


LIMITS = {
    "stretch": Limit("latency", "mean latency: twice the minimum", 2.0),
    "tail": Limit("p99", "99th percentile of latency: five times that of the minimum", 5.0),
    "bits": Limit(
        "metadata", "metadata: 1,200 bytes per message, about what fits into a datagram", 9600.0
    ),
    "cpu": Limit("computation", "computation: a millisecond per message, in Python", 1000.0),
}


class Cell:
    """All runs of one scenario: protocol -> seed -> row."""

    def __init__(self) -> None:
        self.runs: dict[str, dict[int, Row]] = {}

    def add(self, row: Row) -> None:
        """Add a run."""
        self.runs.setdefault(row["protocol"], {})[row["seed"]] = row

    @property
    def minimum(self) -> str:
        """The protocol that shows the least latency possible: an optimal one, or a bound."""
        return next((name for name in ("ks", "rst", "fifo") if name in self.runs), "fifo")

    def value(self, protocol: str, of: Callable[[Row], float]) -> Estimate | None:
        """Return the mean of something over the seeds, if the protocol was run here."""
        runs = self.runs.get(protocol)
        return estimate([of(row) for row in runs.values()]) if runs else None

    def over(self, protocol: str, column: str, base: str | None = None) -> Estimate | None:
        """Return a column divided, seed by seed, by that of the minimum (or of `base`)."""
        runs, bases = self.runs.get(protocol, {}), self.runs.get(base or self.minimum, {})
        seeds = [seed for seed in runs if bases.get(seed, {}).get(column)]
        return estimate([runs[s][column] / bases[s][column] for s in seeds]) if seeds else None

    def stretch(self, protocol: str) -> Estimate | None:
        """Return the mean latency relative to the minimum."""
        return self.over(protocol, "latency_mean_ns")

    def tail(self, protocol: str) -> Estimate | None:
        """Return the 99th percentile of latency relative to that of the minimum."""
        return self.over(protocol, "latency_p99_ns")

    def bits(self, protocol: str) -> Estimate | None:
        """Return bits of metadata per message, control packets included."""
        return self.value(protocol, lambda row: row["metadata_bits"] / row["copies"])

    def exceeded(self, protocol: str) -> list[str]:
        """Return which limits a protocol exceeds here."""
        found = {"stretch": self.stretch, "tail": self.tail, "bits": self.bits}
        values = {name: of(protocol) for name, of in found.items()}
        return [
            LIMITS[n].name for n, value in values.items() if value and value.mean > LIMITS[n].most
        ]


class Results:
    """The tables of runs of a study, and what its protocols computed."""

    def __init__(self, folder: Path, parts: Sequence[str]) -> None:
        import pyarrow.parquet as pq

        self.parts: dict[str, list[Row]] = {}
        self.told: dict[str, dict[str, Any]] = {}
        for part in parts:
            names = pq.ParquetDataset(folder / part / "runs").schema.names
            wanted = [*COLUMNS, *(n for n in ("processes.think.mean", *ASSUMPTIONS) if n in names)]
            self.parts[part] = pq.read_table(folder / part / "runs", columns=wanted).to_pylist()
            self.told[part] = json.loads((folder / part / "sweep.json").read_text("utf-8"))
        self.effort: dict[tuple[str, int], Row] = {}
        """By protocol and number of processes."""
        self.requests = requests_in(folder / SPANS)
        """How many requests the part `replay` sends again."""

    @property
    def runs(self) -> int:
        """The number of runs."""
        return sum(map(len, self.parts.values()))

    def cells(self, part: str, scenario: Callable[[Row], Any]) -> dict[Any, Cell]:
        """Return the cells of a part, by scenario, in their order."""
        found: dict[Any, Cell] = {}
        for row in self.parts.get(part, []):
            if row["status"] == "done":
                found.setdefault(scenario(row), Cell()).add(row)
        return found

    def sizes(self) -> dict[int, Cell]:
        """Return the cells of the part `scale`, by number of processes."""
        return dict(sorted(self.cells("scale", lambda row: row["processes"]).items()))

    def distances(self) -> dict[tuple[str, int], Cell]:
        """Return the cells of the part `distance`, by network and requests per second."""
        return self.cells(
            "distance", lambda row: (row["grid"], round(1e9 / row["processes.think.mean"]))
        )

    def assumptions(self) -> dict[tuple[float, ...], Cell]:
        """Return the cells of the part `assumptions`, by the values of all of them."""
        return self.cells("assumptions", lambda row: tuple(row[name] for name in ASSUMPTIONS))

    def grids(self, part: str) -> dict[str, Cell]:
        """Return the cells of a part by the name of the grid."""
        return self.cells(part, lambda row: row["grid"])

    def scenarios(self) -> dict[str, Cell]:
        """Return all cells in which everything is delivered, by what they are called."""
        found: dict[str, Cell] = {}
        for part in ("small", "replay"):
            found |= self.grids(part)
        for (network, load), cell in self.distances().items():
            found[f"{network}, {load} requests/s"] = cell
        for size, cell in self.sizes().items():
            found[f"{size:,} processes in a zone"] = cell
        return found
