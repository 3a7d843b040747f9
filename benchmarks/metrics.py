"""How fast runs are measured (`causewire.metrics`), compared with the check of the same files.

    python benchmarks/metrics.py [--events M] [--repetitions R]

    M/s       million events a second and core, from the files to the measurements of each run
    check     the same for `causewire.check`
    ratio     of the two, round by round: the median
    rows      what the trace has: sends and deliveries only, or all rows of a protocol

One core; the best of several rounds counts, of CPU time, not of the clock on the wall.
Compilation is not counted.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median

from causewire.check import check
from causewire.metrics import measure
from causewire.sim import Config, simulate
from causewire.testing.synthetic import Shape, write
from causewire.trace import open_writer


def measured(trace: Path) -> int:
    """Measure all runs; return how many events they have."""
    events = 0
    for run in measure(trace):
        run.summary()
        events += run.events
    return events


def seconds(work: Callable[[], object]) -> float:
    start = time.process_time()
    work()
    return time.process_time() - start


def report(name: str, trace: Path, repetitions: int, rows: str) -> None:
    events = measured(trace)  # compiles, or loads what is compiled
    check(trace)
    pairs = [
        (seconds(lambda: measured(trace)), seconds(lambda: check(trace)))
        for _ in range(repetitions)
    ]
    best, checked = (min(times) for times in zip(*pairs, strict=True))
    ratio = median(a / b for a, b in pairs)
    speed, other = events / best / 1e6, events / checked / 1e6
    print(f"{name:>32} {events:10,} {speed:6.2f} {other:6.2f} {ratio:6.2f}  {rows}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--events", type=int, default=2_000_000)
    parser.add_argument("--repetitions", type=int, default=5)
    options = parser.parse_args()
    print(f"{'trace':>32} {'events':>10} {'M/s':>6} {'check':>6} {'ratio':>6}  rows")
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        for processes, runs in ((100, 1), (1000, 1), (20, options.events // 1000)):
            shape = Shape(processes, options.events, runs)
            write(folder / str(processes), shape)
            report(shape.name, folder / str(processes), options.repetitions, "send, deliver")
        for protocol in ("csps", "rst"):
            file = folder / f"{protocol}.parquet"
            system = {"protocol": protocol, "processes": 20, "messages": 20_000, "seed": 1}
            with open_writer(file) as writer:
                simulate(Config.from_dict(system), writer)
            report(f"{protocol}, 20 processes", file, options.repetitions, "all of the protocol")


if __name__ == "__main__":
    main()
