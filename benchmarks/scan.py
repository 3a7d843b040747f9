"""Which way of sharing out one long run wins where: stretches of time or blocks of origins.

    python benchmarks/scan.py
    python benchmarks/scan.py --events 20000000 --parts 16 --processes 100 1000

A run is checked by one kernel; by k stretches, each of which reads on until what was sent
in it has arrived; and by k blocks of origins, each of which reads all rows. All in one
process, one part after the other: `longest` is the slowest part, which is what k cores
would wait for, and `work` is all parts together, both in CPU time relative to one task for
the whole run, reading included: the time to read the whole trace is measured once, and
each part is charged for the share of rows that it reads. `lost` is the share of deliveries
that were removed from the run.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable
from functools import partial
from itertools import pairwise
from pathlib import Path

import numpy as np

from causewire.check import Columns, Kernel, Stream
from causewire.check.columns import DELIVER, OTHER
from causewire.check.stretches import Stretch
from causewire.testing.synthetic import Shape, write
from causewire.trace import open_trace

Rows = list[tuple[int, Columns]]


def timed(job: Callable[[], tuple[Kernel, int]], read: float) -> tuple[float, int]:
    """The better of two CPU times with the reading of the rows, and the violations found."""
    best = float("inf")
    for _ in range(2):
        start = time.process_time()
        kernel, rows = job()
        best = min(best, time.process_time() - start)
    return best + rows * read, kernel.violations


def whole(rows: Rows, n: int, origins: tuple[int, int] | None = None) -> tuple[Kernel, int]:
    kernel, fed = Kernel(origins), 0
    for position, columns in rows:
        kernel.feed(columns, n, position)
        fed += len(columns.kind)
    return kernel, fed


def stretch(rows: Rows, beyond: Rows, n: int) -> tuple[Kernel, int]:
    kernel, fed = Stretch(), 0
    for position, columns in rows:
        kernel.feed(columns, n, position)
        fed += len(columns.kind)
    kernel.end()
    step = 1 << 13
    for position, columns in beyond:
        at = 0
        fed += len(columns.kind)
        while kernel.left and at < len(columns.kind):
            kernel.feed(columns.rows(at, min(at + step, len(columns.kind))), n, position + at)
            at += step
            step *= 2
            kernel.narrow()
        if not kernel.left:
            break
    return kernel, fed


def measure(rows: Rows, n: int, lost: float, parts: int, read: float) -> None:
    draw = np.random.default_rng(1)
    for _, columns in rows:
        delivered = columns.kind == DELIVER
        columns.kind[delivered & (draw.random(len(columns.kind)) < lost)] = OTHER
    whole(rows, n)
    one, violations = timed(lambda: whole(rows, n), read)
    bounds = [len(rows) * k // parts for k in range(parts + 1)]
    by_time = [timed(partial(stretch, rows[a:b], rows[b:], n), read) for a, b in pairwise(bounds)]
    width = -(-n // parts)
    blocks = range(0, n, width)
    by_origin = [timed(partial(whole, rows, n, (low, low + width)), read) for low in blocks]
    cells = []
    for times in (by_time, by_origin):
        assert sum(found for _, found in times) == violations
        seconds = [t for t, _ in times]
        cells += [f"{max(seconds) / one:7.2f}", f"{sum(seconds) / one:7.2f}"]
    print(f"{n:5} {lost:8.2%} {one:8.2f}s  " + "  ".join(cells), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--events", type=int, default=2_000_000)
    parser.add_argument("--parts", type=int, default=8)
    parser.add_argument("--processes", type=int, nargs="+", default=[100, 1000])
    parser.add_argument("--lost", type=float, nargs="+", default=[0, 0.0001, 0.01, 0.3])
    parser.add_argument("--folder", help="where the trace goes; default: a temporary directory")
    options = parser.parse_args()
    print(f"{options.events / 1e6:g} M events in {options.parts} parts, relative to one task")
    print(f"{'n':>5} {'lost':>8} {'one':>9}   stretches: longest, work   blocks: longest, work")
    with tempfile.TemporaryDirectory(dir=options.folder) as place:
        for n in options.processes:
            path = Path(place) / str(n)
            write(path, Shape(n, options.events))
            for lost in options.lost:
                start = time.process_time()
                for _ in Stream(open_trace(path)).chunks():
                    pass
                read = (time.process_time() - start) / options.events
                chunks = [
                    (chunk.position, chunk.columns.copy(), len(chunk.run.processes))
                    for chunk in Stream(open_trace(path)).chunks()
                ]
                rows = [(position, columns) for position, columns, _ in chunks]
                measure(rows, chunks[-1][2], lost, options.parts, read)


if __name__ == "__main__":
    main()
