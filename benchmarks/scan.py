"""What more cores give one long run of few processes, checked by segments of time.

    python benchmarks/scan.py
    python benchmarks/scan.py --events 20000000 --segments 1 4 16 64 256

One long run, n = 100, cut into k segments, in one process, one step after the other: the
slowest segment of each pass, also times k relative to one kernel for all, and the walk
from cut to cut. From these follows what a cluster gains on a run of 10^8 or 10^9 events
over one process, rows being read from files in each pass, and a segment for each core.
(On two cores two passes gain nothing: they are twice the work.)
"""

from __future__ import annotations

import argparse
import tempfile
import time
from itertools import pairwise
from pathlib import Path
from typing import Any

from causewire.check import Kernel, Stream
from causewire.check.segments import Cut, Survey, resume, walk
from causewire.testing.synthetic import Shape, write
from causewire.trace import open_trace


def scan_table(folder: Path, events: int, parts: list[int]) -> None:
    """The scan over time, its steps measured one after the other."""
    shape = Shape(100, events)
    place = folder / "scan"
    write(place, shape)
    start = time.process_time()
    for _ in Stream(open_trace(place)).chunks():
        pass
    reading = time.process_time() - start
    chunks = [(c.position, c.columns.copy()) for c in Stream(open_trace(place)).chunks()]
    names = next(iter(Stream(open_trace(place)).chunks())).run.processes
    n = len(names)

    def timed(job: Any) -> tuple[float, Any]:
        start = time.process_time()
        result = job()
        return time.process_time() - start, result

    def one_kernel() -> Kernel:
        kernel = Kernel()
        for position, columns in chunks:
            kernel.feed(columns, n, position)
        return kernel

    one_kernel()
    whole, _ = min((timed(one_kernel) for _ in range(3)), key=lambda pair: pair[0])
    print(
        f"\nscan over time: n=100, {events / 1e6:g} M events, one kernel {whole:.2f} s, "
        f"reading {reading:.2f} s"
    )
    print(
        f"{'k':>4} {'pass 1':>8} {'pass 2':>8} {'x k / whole':>16} {'walk':>8} {'cut kB':>7} "
        f"{'10^8 on 16':>11} {'on 256':>7} {'10^9 on 16':>11} {'on 256':>7}"
    )
    for k in parts:
        bounds = [len(chunks) * i // k for i in range(k + 1)]
        segments = [chunks[a:b] for a, b in pairwise(bounds) if a < b]

        def survey(rows: Any) -> Any:
            result = Survey(rows[0][0])
            for position, columns in rows:
                result.feed(columns, n, position)
            return result.result(names)

        first = [min((timed(lambda s=s: survey(s)) for _ in range(2)), key=_time) for s in segments]
        walk_seconds, cuts = timed(lambda first=first: _walk([s for _, s in first]))

        def second(cut: Cut, rows: Any) -> Kernel:
            kernel = resume(cut)
            for position, columns in rows:
                kernel.feed(columns, n, position)
            return kernel

        again = [
            min((timed(lambda c=c, s=s: second(c, s)) for _ in range(2)), key=_time)
            for c, s in zip(cuts, segments, strict=False)
        ]
        one, two = [t for t, _ in first], [t for t, _ in again]
        work = sum(one) + sum(two)
        size = max(cut.nbytes for cut in cuts)

        def gain(
            many: float,
            cores: int,
            work: float = work,
            step: float = walk_seconds / len(segments),
        ) -> str:
            """Over one process, for so many events on so many cores."""
            alone = (whole + reading) / events * many
            shared = (work + 2 * reading) / events * many / cores + step * cores
            return f"{alone / shared:.0f}x"

        print(
            f"{len(segments):4} {max(one):7.3f}s {max(two):7.3f}s "
            f"{max(one) * k / whole:7.2f} {max(two) * k / whole:7.2f} "
            f"{walk_seconds * 1e3:6.1f}ms {size / 1e3:7.0f} "
            f"{gain(1e8, 16):>11} {gain(1e8, 256):>7} {gain(1e9, 16):>11} {gain(1e9, 256):>7}",
            flush=True,
        )


def _time(pair: tuple[float, Any]) -> float:
    return pair[0]


def _walk(surveys: list[Any]) -> list[Cut]:
    cuts, strangers = walk(surveys)
    assert not strangers
    return cuts


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--events", type=int, default=10_000_000)
    parser.add_argument("--segments", type=int, nargs="+", default=[1, 4, 16, 64])
    parser.add_argument("--folder", help="where the trace goes; default: a temporary directory")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=options.folder) as place:
        scan_table(Path(place), options.events, options.segments)


if __name__ == "__main__":
    main()
