"""What a sweep adds to the simulations that it is made of.

    python benchmarks/sweep.py [--master local[2]] [--runs 60] [--costs]

**Overhead.** Runs of about a second each (the length is calibrated first), swept on
Spark: what share of the executors' time is simulation, from the first task to the
last, the start of Python workers included; once in a fresh session, and once more in
a warm one. Beside it, in the same session: the same work in runs of some
milliseconds, many to a task.

**The peer** is a pool of processes (`multiprocessing`), one for each core, that
simulates the same runs in the same order and writes nothing: the least that running
them in parallel costs. The ratio is the sweep's time over the pool's.

**--costs** measures, instead, microseconds for each copy of a message, for
`causewire/pipeline/sweep/cost.py`.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from causewire import protocols
from causewire.pipeline import session
from causewire.pipeline.session import parallelism
from causewire.pipeline.sweep import Experiment, Sweep, read_experiment, sweep
from causewire.sim import Config, simulate

EXPERIMENT = """
seeds = {runs}
[settings]
processes = 20
messages = {messages}
[vary]
protocol = ["csps"]
"""


def calibrated(seconds: float) -> int:
    """How many messages make a run of about that length."""
    begin = time.perf_counter()
    simulate(Config.from_dict({"protocol": "csps", "processes": 20, "messages": 5000}))
    return max(20, int(5000 * seconds / (time.perf_counter() - begin)))


def experiment(folder: Path, runs: int, messages: int) -> Experiment:
    file = folder / f"{runs}-{messages}.toml"
    file.write_text(EXPERIMENT.format(runs=runs, messages=messages))
    return read_experiment(file)


def _alone(config: str) -> int:
    return simulate(Config.from_dict(json.loads(config))).events


def pool(runs: Experiment, cores: int) -> float:
    """Seconds that a plain pool of processes takes for the same."""
    configs = [run.config for run in runs.runs()]
    with multiprocessing.get_context("spawn").Pool(cores) as workers:
        workers.map(_alone, configs[:cores], 1)  # everybody has imported everything
        begin = time.perf_counter()
        workers.map(_alone, configs, max(1, len(configs) // (16 * cores)))
        return time.perf_counter() - begin


def line(what: str, told: Sweep, beside: float | None = None) -> None:
    each = told.simulation_s / told.runs
    busy = 100 * (told.busy or 0)
    text = f"{what:<34} {told.runs:>6} {each:>9.3f} {told.elapsed_s:>9.1f} {busy:>7.0f} %"
    print(text + (f" {told.elapsed_s / beside:>8.2f}" if beside else ""), flush=True)


def overhead(master: str, runs: int) -> None:
    with tempfile.TemporaryDirectory() as name, session(master) as spark:
        folder = Path(name)
        long = experiment(folder, runs, calibrated(1.0))
        short = experiment(folder, 20 * runs, calibrated(0.005))
        print(f"{'':<34} {'runs':>6} {'s each':>9} {'elapsed s':>9} {'busy':>9} {'/ pool':>8}")
        line("a second each, first sweep", sweep(spark, long, folder / "a"))
        beside = pool(long, parallelism(spark))
        line("a second each, session warm", sweep(spark, long, folder / "b"), beside)
        beside = pool(short, parallelism(spark))
        line("milliseconds each, session warm", sweep(spark, short, folder / "c"), beside)


def costs(sizes: Sequence[int] = (10, 40, 160)) -> None:
    print(f"{'microseconds per copy':<22}" + "".join(f"{f'n = {n}':>10}" for n in sizes))
    for name in protocols.names():
        known = protocols.describe(name)
        cells = []
        for n in sizes:
            data = {"protocol": name, "processes": n, "messages": 20 * n}
            if not known.unicast:
                data |= {"workload": {"kind": "broadcast", "lockstep": False}, "messages": 2 * n}
            begin = time.process_time()
            summary = simulate(Config.from_dict(data))
            cells.append(1e6 * (time.process_time() - begin) / summary.copies)
        print(f"{name:<22}" + "".join(f"{cell:>10.0f}" for cell in cells), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description="what a sweep adds to its simulations")
    parser.add_argument("--master", default="local[2]")
    parser.add_argument("--runs", type=int, default=60)
    parser.add_argument("--costs", action="store_true")
    args = parser.parse_args()
    if args.costs:
        costs()
    else:
        overhead(args.master, args.runs)


if __name__ == "__main__":
    main()
