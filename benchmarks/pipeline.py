"""How fast traces are checked on Spark, beside one process and beside plain Python.

    python benchmarks/pipeline.py                     minutes
    python benchmarks/pipeline.py --full              with 100 million events: an hour
    python benchmarks/pipeline.py --runs 0 --processes 1000 --events 10000000
    python benchmarks/pipeline.py --once --processes 100 --events 100000000 1000000000

Traces are made by `causewire.testing.synthetic`. For each of them, and on each number of cores,
there
is a fresh Spark session, held to these cores, its driver and Java included (not with
--free). The machine may be shared and varies with time, so what is compared takes turns:
in each round every session checks the trace once, then one plain process does, then as
many plain processes at the same time as there are cores.

    M/s        million events checked in a second, in the best round, the session being
               warm: it has checked a small trace some twenty times
    local      the same by `causewire.check` in one plain process, from the same files
    x python   ratio to vector clocks in plain Python (on fewer events)
    x 1 core   ratio to Spark on one core: the median of all rounds, least and most
    ceiling    what this machine gives at all: how much more so many plain processes do at
               the same time than one alone, without Spark; the median of the same rounds
    linear     time per event, relative to the fewest events of that shape
    task MB    greatest memory of a Python worker of the executors
    of the time that the cores had in the best round, the share of
    kernel     the kernel (as it takes in one process, from memory)
    reading    reading and decoding columns (one process, from files, less that)
    other      the rest: Spark's scheduling, Python workers, idle cores at the end
    start-up   seconds for the session and the first Python worker, once
    shuffled   bytes that went through a shuffle: none

With --once, every trace is checked once, on the most cores only, for traces that take
minutes; `written` are the seconds that making the trace took, and GB its size on disk.
`CPU` are the seconds of CPU time of the check, of all processes together, which do not depend
on what else the machine does; `linear` is then CPU time per event. `all MB` is the greatest
memory of each process of the session (Python, Java, workers), added up.

A check during which other programs took more than a tenth of the machine is made again, a
few times if need be; how many these were is told.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any, TypeVar

import numpy as np
from check import plain

from causewire.check import Kernel, Stream, check
from causewire.testing.synthetic import Maker, Shape, seed, write
from causewire.trace import open_trace

SMALL = "small"
WARM = 20
"""Checks of a small trace before the first that counts: Java compiles what it meets often, on
the cores that are to be measured."""
PLAIN = 10_000_000
"""Clock entries that the plain check may touch: it is slow."""
OTHERS = 0.1
"""Share of the machine that other programs may take during a check."""
PATIENCE = 8
"""How often a check is made that others disturb."""

T = TypeVar("T")


# -- one process ---------------------------------------------------------------------------


def kernel_seconds(folder: Path, events: int) -> float:
    """Seconds of the kernel alone (measured on at most ten million rows, twice)."""
    best = None
    for _ in range(2):
        kernel, run, rows, seconds = Kernel(), None, 0, 0.0
        for chunk in Stream(open_trace(folder)).chunks():
            if chunk.run is not run:
                kernel, run = Kernel(), chunk.run
            start = time.perf_counter()
            kernel.feed(chunk.columns, len(chunk.run.processes), chunk.position)
            seconds += time.perf_counter() - start
            rows += len(chunk.columns.kind)
            if rows >= 10_000_000:
                break
        best = min(best or seconds / rows, seconds / rows)
    assert best is not None
    return best * events


def in_python(processes: int) -> float:
    """Seconds for an event in plain Python."""
    seed(1)
    rows = Maker(processes).rows(max(2000, PLAIN // processes))
    kind, process, seq, lamport, origin, mid, peer = rows.T
    first = np.arange(len(rows) + 1)
    start = time.perf_counter()
    assert plain(processes, (kind + 1, process, seq, lamport, origin, mid, first, peer)) == 0
    return (time.perf_counter() - start) / len(rows)


# -- what runs in processes of its own -------------------------------------------------------


def most_memory() -> tuple[int, int]:
    """The most memory that a Python worker below this process ever had, and that of all."""
    most = total = 0
    for pid in [os.getpid(), *_below(os.getpid())]:
        try:
            about = Path(f"/proc/{pid}/status").read_text()
            line = next(x for x in about.splitlines() if x.startswith("VmHWM"))
            memory = int(line.split()[1]) * 1024
            total += memory
            if pid != os.getpid() and "python" in Path(f"/proc/{pid}/cmdline").read_text():
                most = max(most, memory)
        except (OSError, StopIteration):
            continue
    return most, total


def _below(pid: int) -> list[int]:
    """All descendants of a process."""
    found = []
    todo = [pid]
    while todo:
        for task in Path(f"/proc/{todo.pop()}/task").glob("*/children"):
            try:
                children = [int(word) for word in task.read_text().split()]
            except OSError:
                continue
            found += children
            todo += children
    return found


def on_spark(folder: Path, cores: int, *, free: bool, once: bool) -> None:
    """Check on `cores` cores, once for each line of input; unless `once`, also once before."""
    if not free:
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:cores])
    start = time.perf_counter()
    from causewire.pipeline import session
    from causewire.pipeline.check import check_paths

    with session(f"local[{cores}]") as spark:
        spark.range(0, cores, 1, cores).mapInArrow(_warm, "id bigint").count()
        begun = time.perf_counter() - start
        store = spark.sparkContext._jsc.sc().statusStore()
        for _ in range(WARM):
            check_paths([folder.parent / SMALL])
        if not once:
            check_paths([folder])  # compiles, or loads what is compiled
        for _ in sys.stdin:
            before = sum(e.totalShuffleWrite() for e in _list(store))
            worked, start = _ours(), time.perf_counter()
            report = check_paths([folder])
            seconds, cpu = time.perf_counter() - start, _ours() - worked
            memory, total = most_memory()
            told = {
                "seconds": seconds,
                "cpu": cpu,
                "start": begun,
                "memory": memory,
                "total": total,
                "shuffled": sum(e.totalShuffleWrite() for e in _list(store)) - before,
            }
            assert report.ordered
            print(json.dumps(told), flush=True)


def _list(store: Any) -> list[Any]:
    executors = store.executorList(True)
    return [executors.apply(k) for k in range(executors.size())]


def _warm(batches: Any) -> Any:
    import causewire.pipeline.large  # noqa: F401 - what workers need

    yield from batches


def in_process(folder: Path) -> None:
    """Check without Spark, once for each line of input."""
    check(folder)  # compiles, or loads what is compiled
    for _ in sys.stdin:
        start = time.perf_counter()
        assert check(folder).ordered
        print(json.dumps({"seconds": time.perf_counter() - start}), flush=True)


class Apart:
    """A process in which nothing else is, and from which nothing is left."""

    def __init__(self, folder: Path, cores: int, *, free: bool = False, once: bool = False) -> None:
        """Start it, with a Spark session on `cores` cores, or without Spark if that is 0."""
        command = [sys.executable, __file__, "--apart", str(folder), str(cores)]
        self._process = subprocess.Popen(
            command + ["--free"] * free + ["--once"] * once,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def ask(self) -> None:
        """Have it check once."""
        assert self._process.stdin is not None
        print("go", file=self._process.stdin, flush=True)

    def told(self) -> dict[str, Any]:
        """What that took."""
        assert self._process.stdout is not None
        told = self._process.stdout.readline()
        if not told:
            sys.exit(1)  # it has said why
        result: dict[str, Any] = json.loads(told)
        return result

    def check(self) -> dict[str, Any]:
        self.ask()
        return self.told()

    def close(self) -> None:
        self._process.communicate()


# -- rounds ------------------------------------------------------------------------------------


class Rounds:
    """What each session and each number of plain processes took, round by round."""

    def __init__(self, folder: Path, cores: list[int], *, free: bool) -> None:
        self.cores = cores
        self.spark: dict[int, list[dict[str, Any]]] = {many: [] for many in cores}
        self.plain: dict[int, list[float]] = {many: [] for many in sorted({1, *cores})}
        self.checks = self.disturbed = self.kept = 0
        self._sessions = {}
        for many in cores:
            self._sessions[many] = Apart(folder, many, free=free)
            self._sessions[many].check()  # one after the other: none starts beside another
        self._processes = [Apart(folder, 0) for _ in range(max(cores))]
        for each in self._processes:
            each.check()

    def go(self, wanted: int) -> None:
        """So many rounds."""
        for _ in range(wanted):
            for many, session in self._sessions.items():
                self.spark[many].append(self._undisturbed(session.check))
            for many, times in self.plain.items():
                times.append(self._undisturbed(partial(self._at_once, many)))

    def _undisturbed(self, check: Callable[[], T]) -> T:
        """A check during which others were not busy, if that takes only a few attempts."""
        for _ in range(PATIENCE):
            busy, ours, start = _busy(), _ours(), time.perf_counter()
            result = check()
            had = (time.perf_counter() - start) * (os.cpu_count() or 1)
            self.checks += 1
            if _busy() - busy - (_ours() - ours) <= OTHERS * had:
                return result
            self.disturbed += 1
        self.kept += 1
        return result

    def _at_once(self, many: int) -> float:
        """Seconds until so many plain processes, at the same time, are all done."""
        start = time.perf_counter()
        for each in self._processes[:many]:
            each.ask()
        for each in self._processes[:many]:
            each.told()
        return time.perf_counter() - start

    def gains(self, many: int) -> list[float]:
        """Return, for each round, the speed of Spark on `many` cores over that on the fewest."""
        fewest = self.spark[self.cores[0]]
        return [
            one["seconds"] / more["seconds"]
            for one, more in zip(fewest, self.spark[many], strict=True)
        ]

    def ceiling(self, many: int) -> float:
        """What so many plain processes do at the same time, over one alone."""
        pairs = zip(self.plain[1], self.plain[many], strict=True)
        return median(many * one / more for one, more in pairs)

    def close(self) -> None:
        for each in [*self._sessions.values(), *self._processes]:
            each.close()


def _busy() -> float:
    """Seconds that the processors of this machine have worked."""
    words = Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:]
    user, nice, system = (int(word) for word in words[:3])
    return (user + nice + system) / os.sysconf("SC_CLK_TCK")


def _ours() -> float:
    """Seconds of them that were for this process and those below it."""
    ticks = 0
    for pid in [os.getpid(), *_below(os.getpid())]:
        try:
            about = Path(f"/proc/{pid}/stat").read_text()
        except OSError:
            continue
        ticks += sum(int(word) for word in about.rpartition(")")[2].split()[11:13])
    return ticks / os.sysconf("SC_CLK_TCK")


# -- the table ---------------------------------------------------------------------------------


def shapes_table(
    folder: Path, shapes: list[Shape], cores: list[int], repetitions: int, *, free: bool
) -> None:
    print(
        f"{'trace':>28} {'cores':>5} {'M/s':>7} {'local':>7} {'x python':>8} "
        f"{'x 1 core':>18} {'ceiling':>7} {'linear':>6} {'task MB':>7} {'kernel':>6} "
        f"{'reading':>7} {'other':>6} {'start-up':>8} {'shuffled':>8}"
    )
    bases: dict[tuple[int, int, int], float] = {}
    python: dict[int, float] = {}
    for shape in shapes:
        place = folder / f"{shape.processes}-{shape.events}-{shape.runs}"
        write(place, shape)
        n = shape.processes
        python[n] = python.get(n) or in_python(n)
        rounds = Rounds(place, cores, free=free)
        rounds.go(repetitions)
        rounds.close()
        local, kernel = min(rounds.plain[1]), kernel_seconds(place, shape.events)
        for many in cores:
            told = min(rounds.spark[many], key=lambda told: told["seconds"])
            seconds = told["seconds"]
            base = bases.setdefault((n, shape.runs, many), seconds / shape.events)
            had = many * seconds
            reading = max(0.0, local - kernel)
            gains = rounds.gains(many)
            gain = f"{median(gains):.2f} ({min(gains):.2f}, {max(gains):.2f})"
            print(
                f"{shape.name:>28} {many:5} {shape.events / seconds / 1e6:7.2f} "
                f"{shape.events / local / 1e6:7.2f} "
                f"{python[n] * shape.events / seconds:8.0f} {gain:>18} "
                f"{rounds.ceiling(many):7.2f} "
                f"{seconds / shape.events / base:6.2f} {told['memory'] / 1e6:7.0f} "
                f"{kernel / had:6.0%} {reading / had:7.0%} "
                f"{max(0.0, 1 - (kernel + reading) / had):6.0%} {told['start']:7.1f}s "
                f"{told['shuffled'] / 1e3:6.1f}kB",
                flush=True,
            )
        if rounds.disturbed:
            print(
                f"{'':>28} others were busy in {rounds.disturbed} of {rounds.checks} checks, "
                f"which were made again; {rounds.kept} count all the same"
            )
        for file in place.iterdir():
            file.unlink()


def once_table(folder: Path, shapes: list[Shape], cores: int, *, free: bool) -> None:
    """Check every trace once; time and memory should not depend on its length."""
    print(
        f"{'trace':>28} {'cores':>5} {'GB':>6} {'written':>8} {'checked':>8} {'M/s':>7} "
        f"{'CPU':>7} {'linear':>6} {'task MB':>7} {'all MB':>7} {'shuffled':>8}",
        flush=True,
    )
    bases: dict[int, float] = {}
    for shape in shapes:
        place = folder / f"{shape.processes}-{shape.events}-{shape.runs}"
        start = time.perf_counter()
        write(place, shape)
        written = time.perf_counter() - start
        size = sum(file.stat().st_size for file in place.iterdir())
        apart = Apart(place, cores, free=free, once=True)
        told = apart.check()
        apart.close()
        each = told["cpu"] / shape.events
        print(
            f"{shape.name:>28} {cores:5} {size / 1e9:6.2f} {written:7.0f}s "
            f"{told['seconds']:7.1f}s {shape.events / told['seconds'] / 1e6:7.2f} "
            f"{told['cpu']:6.1f}s {each / bases.setdefault(shape.processes, each):6.2f} "
            f"{told['memory'] / 1e6:7.0f} {told['total'] / 1e6:7.0f} "
            f"{told['shuffled'] / 1e3:6.1f}kB",
            flush=True,
        )
        for file in place.iterdir():
            file.unlink()


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--processes", type=int, nargs="*", default=[100, 1000])
    parser.add_argument("--events", type=int, nargs="+", default=[1_000_000, 10_000_000])
    parser.add_argument("--runs", type=int, default=10_000, help="runs of 1,000 events")
    parser.add_argument("--cores", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--repetitions", type=int, default=5, help="rounds")
    parser.add_argument("--full", action="store_true", help="with 100 million events")
    parser.add_argument(
        "--free", action="store_true", help="let the driver and Java use all cores of the machine"
    )
    parser.add_argument("--once", action="store_true", help="check each trace once")
    parser.add_argument("--folder", help="where traces go; default: a temporary directory")
    parser.add_argument("--apart", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.apart:
        folder, cores = Path(options.apart[0]), int(options.apart[1])
        if cores:
            on_spark(folder, cores, free=options.free, once=options.once)
        else:
            in_process(folder)
        return
    events = sorted({*options.events, *([100_000_000] if options.full else [])})
    shapes = [Shape(n, many) for n in options.processes for many in events]
    if options.runs and not options.once:
        shapes.append(Shape(20, options.runs * 1000, options.runs))
    with tempfile.TemporaryDirectory(dir=options.folder) as place:
        folder = Path(place)
        write(folder / SMALL, Shape(10, 10_000))
        check(folder / SMALL)  # compile everything
        if options.once:
            once_table(folder, shapes, max(options.cores), free=options.free)
            return
        shapes_table(folder, shapes, options.cores, options.repetitions, free=options.free)


if __name__ == "__main__":
    main()
