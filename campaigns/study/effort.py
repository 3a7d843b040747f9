"""What a protocol computes and keeps: CPU time for a message, and integers of state.

The simulator runs with endpoints that stop the CPU time of their own calls (without that of
the application, which reacts inside a delivery), and that look at the size of their state
now and then. The size is the same on every machine; the time is that of this one.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from time import thread_time_ns
from typing import Any

from causewire import protocols
from causewire.core.endpoint import Delivery, Endpoint, Outgoing, Packet
from causewire.pipeline.session import code_digest
from causewire.pipeline.sweep import Experiment
from causewire.sim import Config, simulate

__all__ = ["effort", "measure", "read_effort"]

_SAMPLE = 23
"""The state is looked at after every packet of which the number is a multiple of this."""

_MESSAGES = 20_000
"""Longer runs tell no more."""


class _Meter:
    """CPU time of the calls of all endpoints of a run, and sizes of their states."""

    def __init__(self) -> None:
        self.spent = self.begun = self.calls = 0
        self.packets = self.looks = self.state = self.most = 0

    def begin(self) -> None:
        self.calls += 1
        self.begun = thread_time_ns()

    def end(self) -> None:
        self.spent += thread_time_ns() - self.begun

    def look(self, endpoint: Endpoint) -> None:
        self.packets += 1
        if self.packets % _SAMPLE == 0:
            state = endpoint.footprint().state
            self.looks += 1
            self.state += state
            self.most = max(self.most, state)


def _metered(kind: type[Endpoint], meter: _Meter) -> type[Endpoint]:
    """Return a class of endpoints whose calls are metered."""

    class Metered(kind):  # type: ignore[misc, valid-type]
        __slots__ = ()

        def send(self, to: Any, payload: Any) -> int:
            meter.begin()
            mid: int = super().send(to, payload)
            meter.end()
            return mid

        def receive(self, source: str, packet: Packet) -> None:
            meter.begin()
            super().receive(source, packet)
            meter.end()
            meter.look(self)

        def take_packets(self) -> list[Outgoing]:
            meter.begin()
            packets: list[Outgoing] = super().take_packets()
            meter.end()
            return packets

        def _call_back(self, delivery: Delivery) -> None:
            meter.end()
            super()._call_back(delivery)
            meter.begin()

    return Metered


def _idle_cost() -> float:
    """Return the nanoseconds that the meter itself adds to a call."""
    meter = _Meter()
    for _ in range(20_000):
        meter.begin()
        meter.end()
    return meter.spent / meter.calls


def effort(config: str) -> dict[str, float]:
    """Return what the endpoints of a run computed and kept.

    Args:
        config: The settings of the run, as JSON.
    """
    settings = Config.from_dict(json.loads(config))
    meter = _Meter()
    about = protocols.describe(settings.protocol)
    metered = replace(about, endpoint=_metered(about.endpoint, meter))
    messages = min(settings.number_of_messages(), _MESSAGES)
    summary = simulate(replace(settings, protocol=metered, messages=messages))
    spent = max(0.0, meter.spent - meter.calls * _idle_cost())
    return {
        "cpu_us_per_message": spent / 1000 / max(summary.messages, 1),
        "state_mean": meter.state / max(meter.looks, 1),
        "state_most": meter.most,
    }


def measure(experiment: Experiment, path: Path, workers: int) -> list[dict[str, Any]]:
    """Measure the runs of an experiment that have its first seed; continue a file of results.

    Args:
        experiment: The part `scale` of the study.
        path: The file: a line of JSON for each run.
        workers: How many runs are measured side by side.
    """
    code = code_digest("core", "sim")
    runs = experiment.runs()
    first = min(run.parameters["seed"] for run in runs)
    wanted = {run.run: run for run in runs if run.parameters["seed"] == first}
    found = {row["run"]: row for row in read_effort(path) if row["code"] == code}
    left = sorted(wanted.keys() - found.keys(), key=lambda name: wanted[name].cost)
    configs = [wanted[name].config for name in left]
    _cut_half_line(path)
    with ExitStack() as stack:
        file = stack.enter_context(path.open("a", encoding="utf-8"))
        measured: Iterable[dict[str, float]] = map(effort, configs)
        if workers > 1 and left:
            measured = stack.enter_context(ProcessPoolExecutor(workers)).map(effort, configs)
        for name, result in zip(left, measured, strict=True):
            about = {key: wanted[name].parameters[key] for key in ("protocol", "processes")}
            found[name] = {"run": name, "code": code, **about, **result}
            file.write(json.dumps(found[name]) + "\n")
            file.flush()
    return [found[name] for name in wanted]


def _cut_half_line(path: Path) -> None:
    """Remove the end of a line that was being written when a study was killed."""
    if path.exists():
        os.truncate(path, path.read_bytes().rfind(b"\n") + 1)


def read_effort(path: Path) -> Iterable[dict[str, Any]]:
    """Return the rows of a file of results; an incomplete last line does not count."""
    if not path.exists():
        return []
    whole = [line for line in path.read_text("utf-8").splitlines(keepends=True) if line[-1] == "\n"]
    return [json.loads(line) for line in whole]
