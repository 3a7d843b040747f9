"""The check of files that nodes wrote, one for each process, and of the same events in order.

    python benchmarks/by_node.py [--events M ...] [--processes N] [--cores C] [--rounds R]

    one process   seconds of `causewire.check`, files by node
    by node       seconds of the check on Spark, files by node
    in order      seconds of the check on Spark, the same events in order
    x process     one process / by node: at least 1 is the goal
    x in order    by node / in order: at most 3 is the goal
    jobs, reads   Spark jobs of a check by node, and how often its tasks read a row of the files
    shuffled      bytes through a shuffle, by node

The three are measured in turn, round after round; ratios are medians over rounds. A session
has checked each trace before the first round.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

from causewire.check import check
from causewire.pipeline import session
from causewire.pipeline.check import check_paths
from causewire.pipeline.limits import Limits
from causewire.pipeline.pieces import layout
from causewire.pipeline.ranges import cut, rows_read
from causewire.testing.synthetic import Shape, write, write_by_node


def seconds(work: Callable[[], Any]) -> float:
    start = time.perf_counter()
    assert work().ordered
    return time.perf_counter() - start


def shuffled(spark: Any) -> int:
    executors = spark.sparkContext._jsc.sc().statusStore().executorList(True)
    return sum(executors.apply(k).totalShuffleWrite() for k in range(executors.size()))


def measure(spark: Any, shape: Shape, folder: Path, cores: int, rounds: int) -> None:
    ordered, spread = folder / "ordered", folder / "spread"
    write(ordered, shape)
    write_by_node(spread, ordered)
    limits = Limits(large=min(Limits.large, shape.events))
    works: tuple[Callable[[], Any], ...] = (
        lambda: check(spread),
        lambda: check_paths([spread], limits=limits),
        lambda: check_paths([ordered], limits=limits),
    )
    for work in works:
        work()
    before = shuffled(spark)
    spark.sparkContext.setJobGroup("by node", "by node")
    check_paths([spread], limits=limits)
    jobs = len(spark.sparkContext.statusTracker().getJobIdsForGroup("by node"))
    spark.sparkContext.setLocalProperty("spark.jobGroup.id", None)
    moved = shuffled(spark) - before
    times = [tuple(seconds(work) for work in works) for _ in range(rounds)]
    one, by_node, in_order = (median(column) for column in zip(*times, strict=True))
    pieces = layout([str(file) for file in sorted(spread.iterdir())])
    reads = rows_read(cut(pieces, cores, limits)) / shape.events
    print(
        f"{shape.name:>20} {one:12.2f} {by_node:8.2f} {in_order:9.2f} "
        f"{median(a / b for a, b, _ in times):10.2f} {median(b / c for _, b, c in times):11.2f} "
        f"{jobs:5} {reads:6.2f} {moved:9}",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--events", type=int, nargs="+", default=[2_000_000, 10_000_000])
    parser.add_argument("--processes", type=int, default=100)
    parser.add_argument("--cores", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    print(
        f"{'trace':>20} {'one process':>12} {'by node':>8} {'in order':>9} {'x process':>10} "
        f"{'x in order':>11} {'jobs':>5} {'reads':>6} {'shuffled':>9}"
    )
    with session(f"local[{options.cores}]") as spark:
        for events in options.events:
            with tempfile.TemporaryDirectory() as folder:
                shape = Shape(options.processes, events)
                measure(spark, shape, Path(folder), options.cores, options.rounds)


if __name__ == "__main__":
    main()
