"""How fast traces are checked on Spark, beside one process and beside plain Python.

    python benchmarks/pipeline.py                     minutes
    python benchmarks/pipeline.py --full              with 100 million events: an hour
    python benchmarks/pipeline.py --only scan         the scan over time alone

Traces are made here, causally ordered, in the order of their Lamport times, and
written as the package writes them. Three tables:

**Shapes.** For each trace, and on each number of cores, a fresh Spark session; they take
turns, as the machine varies with time. It lends each no more cores than that, for driver
and Java as well (not with --free):

    M/s        million events checked in a second, the session being warm: it has checked
               a small trace some twenty times
    local      the same by `causewire.check` in one process, from the same files
    x python   ratio to vector clocks in plain Python (on fewer events)
    x 1 core   ratio to Spark on one core
    linear     time per event, relative to the fewest events of that shape
    task MB    greatest memory of a Python worker of the executors
    of the time that the cores had, the share of
    kernel     the kernel (as it takes in one process, from memory)
    reading    reading and decoding columns (one process, from files, less that)
    other      the rest: Spark's scheduling, Python workers, idle cores at the end
    start-up   seconds for the session and the first Python worker, once
    shuffled   bytes that went through a shuffle: none

**Scan.** One long run, n = 100, cut into k segments, in one process: the slowest
segment of each pass, also times k relative to one kernel for all, and the walk from
cut to cut. From these follows what a cluster gains on a run of 10^8 or 10^9 events
over one process, rows being read from files in each pass, and a segment for each
core. (On two cores two passes gain nothing: they are twice the work.)

**Planted.** A trace with violations planted: Spark finds what one process finds.

The machine may be shared: the best of several repetitions counts.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from causewire.check import Kernel, Stream, check
from causewire.check.compiled import compiled
from causewire.check.segments import Cut, Survey, resume
from causewire.trace import arrow_schema, open_trace
from causewire.trace.parquet import FILE_ROWS, ParquetWriter
from check import plain

BLOCK = 1 << 20
SMALL = "small"
WARM = 20
"""Checks of a small trace before the first that counts: Java compiles what it meets often, on
the cores that are to be measured."""
PLAIN = 10_000_000
"""Clock entries that the plain check may touch: it is slow."""


# -- traces ------------------------------------------------------------------------------


class Shape(NamedTuple):
    """Some runs of some events among some processes."""

    processes: int
    events: int
    runs: int = 1

    @property
    def name(self) -> str:
        many = f"{self.runs:,} runs, " if self.runs > 1 else ""
        return f"{many}n={self.processes:,}, {self.events / 1e6:g} M"


@compiled
def _more(
    rows: int,
    most: int,
    wrong: float,
    seq: Any,
    clock: Any,
    sent: Any,
    queue: Any,
    head: Any,
    tail: Any,
    flying: Any,
    out: Any,
) -> None:
    """The next rows of a run; the state is in the arrays."""
    n, room = queue.shape[0], queue.shape[1]
    for t in range(rows):
        if flying[0] == 0 or (flying[0] < most and np.random.randint(0, 2) == 0):
            p = np.random.randint(0, n)
            q = np.random.randint(0, n)
            while q == p or tail[q] - head[q] == room:
                q = np.random.randint(0, n)
            sent[p] += 1
            clock[p] += 1
            at = tail[q] % room
            queue[q, at, 0], queue[q, at, 1], queue[q, at, 2] = p, sent[p], clock[p]
            tail[q] += 1
            flying[0] += 1
            out[t, 0], out[t, 4], out[t, 5], out[t, 6] = 0, p, sent[p], q
        else:
            p = np.random.randint(0, n)
            while head[p] == tail[p]:
                p = np.random.randint(0, n)
            if wrong > 0 and tail[p] - head[p] > 1 and np.random.random() < wrong:
                a, b = head[p] % room, (tail[p] - 1) % room
                for k in range(3):
                    queue[p, a, k], queue[p, b, k] = queue[p, b, k], queue[p, a, k]
            at = head[p] % room
            head[p] += 1
            flying[0] -= 1
            clock[p] = max(clock[p], queue[p, at, 2]) + 1
            out[t, 0], out[t, 4], out[t, 5] = 1, queue[p, at, 0], queue[p, at, 1]
            out[t, 6] = queue[p, at, 0]
        out[t, 1], out[t, 2], out[t, 3] = p, seq[p], clock[p]
        seq[p] += 1


@compiled
def _seed(seed: int) -> None:
    np.random.seed(seed)


class Maker:
    """Makes the rows of one run, piece by piece."""

    def __init__(self, processes: int, wrong: float = 0.0) -> None:
        n = processes
        self._state = (
            np.zeros(n, np.int64),
            np.zeros(n, np.int64),
            np.zeros(n, np.int64),
            np.zeros((n, 64, 3), np.int64),
            np.zeros(n, np.int64),
            np.zeros(n, np.int64),
            np.zeros(1, np.int64),
        )
        self._most, self._wrong = 3 * n, wrong

    def rows(self, many: int) -> Any:
        out = np.empty((many, 7), np.int64)
        _more(many, self._most, self._wrong, *self._state, out)
        return out


def write(folder: Path, shape: Shape, wrong: float = 0.0) -> None:
    """A trace as files of the package's usual size."""
    _seed(1)
    folder.mkdir(parents=True)
    names = pa.array([f"p{k:04}" for k in range(shape.processes)])
    each = shape.events // shape.runs
    done = part = 0
    writer = ParquetWriter(folder / "part-00000.parquet")
    for run in range(shape.runs):
        maker = Maker(shape.processes, wrong)
        left = each
        while left:
            many = min(left, BLOCK)
            writer.write_batch(_batch(f"run-{run:06}", maker.rows(many), names, done))
            left -= many
            done += many
            if writer.rows >= FILE_ROWS:
                writer.close()
                part += 1
                writer = ParquetWriter(folder / f"part-{part:05}.parquet")
    writer.close()


def _batch(run: str, rows: Any, names: pa.Array, done: int) -> pa.RecordBatch:
    size = len(rows)

    def named(codes: Any, values: pa.Array = names) -> pa.Array:
        indices = pa.array(codes.astype(np.int32))
        return pa.DictionaryArray.from_arrays(indices, values).cast(pa.string())

    kind, process, seq, lamport, origin, mid, peer = rows.T
    peers = pa.ListArray.from_arrays(pa.array(np.arange(size + 1, dtype=np.int32)), named(peer))
    arrays = [
        named(np.zeros(size), pa.array([run])),
        named(process),
        pa.array(seq),
        pa.array(np.arange(done, done + size) * 1000),
        pa.array(lamport),
        named(kind, pa.array(["send", "deliver"])),
        named(origin),
        pa.array(mid),
        peers.cast(arrow_schema().field("peers").type),
        pa.array(np.full(size, 100, np.int32)),
        pa.array(np.full(size, 16, np.int32)),
    ]
    return pa.record_batch(arrays, schema=arrow_schema())


# -- one process ---------------------------------------------------------------------------


def in_process(folder: Path, repetitions: int) -> tuple[float, float]:
    """Seconds of the whole check, and of its kernel (on at most ten million rows)."""
    whole = []
    for _ in range(repetitions):
        start = time.perf_counter()
        assert check(folder).ordered
        whole.append(time.perf_counter() - start)
    best = None
    for _ in range(repetitions):
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
    events = sum(batch.columns.num_rows for batch in open_trace(folder).batches(("seq",)))
    return min(whole), best * events


def in_python(processes: int) -> float:
    """Seconds for an event in plain Python."""
    _seed(1)
    rows = Maker(processes).rows(max(2000, PLAIN // processes))
    kind, process, seq, lamport, origin, mid, peer = rows.T
    first = np.arange(len(rows) + 1)
    start = time.perf_counter()
    assert plain(processes, (kind + 1, process, seq, lamport, origin, mid, first, peer)) == 0
    return (time.perf_counter() - start) / len(rows)


# -- Spark, in a process of its own -----------------------------------------------------------


def most_memory() -> int:
    """The most memory that a Python worker below this process ever had."""
    most = 0
    for pid in _below(os.getpid()):
        try:
            about = Path(f"/proc/{pid}/status").read_text()
            if "python" in Path(f"/proc/{pid}/cmdline").read_text():
                line = next(x for x in about.splitlines() if x.startswith("VmHWM"))
                most = max(most, int(line.split()[1]) * 1024)
        except (OSError, StopIteration):
            continue
    return most


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


def on_spark(folder: Path, cores: int, *, free: bool) -> None:
    """Check on so many cores, once for each line of input; run in a process of its own."""
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
        check_paths([folder])  # compiles, or loads what is compiled
        for _ in sys.stdin:
            before = sum(e.totalShuffleWrite() for e in _list(store))
            start = time.perf_counter()
            report = check_paths([folder])
            told = {
                "seconds": time.perf_counter() - start,
                "start": begun,
                "memory": most_memory(),
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


class Apart:
    """A session in another process, where nothing else is, and from which nothing is left."""

    def __init__(self, folder: Path, cores: int, *, free: bool) -> None:
        command = [sys.executable, __file__, "--apart", str(folder), str(cores)]
        self._process = subprocess.Popen(
            command + ["--free"] * free, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def check(self) -> dict[str, Any]:
        """Check once, and tell what that took."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        print("go", file=self._process.stdin, flush=True)
        told = self._process.stdout.readline()
        if not told:
            sys.exit(1)  # it has said why
        result: dict[str, Any] = json.loads(told)
        return result

    def close(self) -> None:
        self._process.communicate()


def on_each(
    folder: Path, cores: list[int], repetitions: int, *, free: bool
) -> list[dict[str, Any]]:
    """The best checks on so many cores each, taking turns: the machine varies with time."""
    sessions = []
    best: list[dict[str, Any]] = []
    for many in cores:
        sessions.append(Apart(folder, many, free=free))
        best.append(sessions[-1].check())  # one after the other: none starts beside another
    for _ in range(repetitions):
        for k, each in enumerate(sessions):
            best[k] = min(best[k], each.check(), key=lambda told: told["seconds"])
    for each in sessions:
        each.close()
    return best


# -- tables ------------------------------------------------------------------------------------


def shapes_table(
    folder: Path, shapes: list[Shape], cores: list[int], repetitions: int, *, free: bool
) -> None:
    print(
        f"{'trace':>28} {'cores':>5} {'M/s':>7} {'local':>7} {'x python':>8} {'x 1 core':>8} "
        f"{'linear':>6} {'task MB':>7} {'kernel':>6} {'reading':>7} {'other':>6} {'start-up':>8} "
        f"{'shuffled':>8}"
    )
    bases: dict[tuple[int, int, int], float] = {}
    python: dict[int, float] = {}
    for shape in shapes:
        place = folder / f"{shape.processes}-{shape.events}-{shape.runs}"
        write(place, shape)
        local, kernel = in_process(place, repetitions)
        n = shape.processes
        python[n] = python.get(n) or in_python(n)
        one: float | None = None
        for many, told in zip(cores, on_each(place, cores, repetitions, free=free), strict=True):
            seconds = told["seconds"]
            one = one or seconds
            base = bases.setdefault((n, shape.runs, many), seconds / shape.events)
            had = many * seconds
            reading = max(0.0, local - kernel)
            print(
                f"{shape.name:>28} {many:5} {shape.events / seconds / 1e6:7.2f} "
                f"{shape.events / local / 1e6:7.2f} "
                f"{python[n] * shape.events / seconds:8.0f} {one / seconds:8.2f} "
                f"{seconds / shape.events / base:6.2f} {told['memory'] / 1e6:7.0f} "
                f"{kernel / had:6.0%} {reading / had:7.0%} "
                f"{max(0.0, 1 - (kernel + reading) / had):6.0%} {told['start']:7.1f}s "
                f"{told['shuffled'] / 1e3:6.1f}kB",
                flush=True,
            )
        for file in place.iterdir():
            file.unlink()


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
    from causewire.check.segments import walk

    cuts, strangers = walk(surveys)
    assert not strangers
    return cuts


def planted_table(folder: Path, events: int) -> None:
    """Violations that were planted, found both ways."""
    from causewire.pipeline import session
    from causewire.pipeline.check import check_paths
    from causewire.pipeline.large import check_large
    from causewire.pipeline.limits import Limits
    from causewire.pipeline.limits import Shape as Ways
    from causewire.pipeline.pieces import layout

    place = folder / "planted"
    write(place, Shape(100, events), wrong=1e-3)
    local = check(place)
    print(f"\nplanted: n=100, {events / 1e6:g} M events: {local.violations:,} violations")
    files = [str(file) for file in sorted(place.iterdir())]
    with session("local[2]"):
        same = check_paths([place], limits=Limits(large=events // 2)) == local
        print(f"  as it is stored: {'the same report' if same else 'ANOTHER REPORT'}")
    with session("local[2]") as spark:
        for ways in (Ways(2, 1), Ways(1, 8)):
            row = check_large(spark, "run-000000", layout(files), shape=ways)
            same = row["violations"] == local.violations and row["examples"] == [
                violation.to_json() for violation in local.examples
            ]
            print(f"  {ways}: {'the same violations' if same else 'OTHER VIOLATIONS'}")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--processes", type=int, nargs="*", default=[100, 1000])
    parser.add_argument("--events", type=int, nargs="+", default=[1_000_000, 10_000_000])
    parser.add_argument("--runs", type=int, default=10_000, help="runs of 1,000 events")
    parser.add_argument("--cores", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--segments", type=int, nargs="+", default=[1, 4, 16, 64])
    parser.add_argument("--repetitions", type=int, default=2)
    parser.add_argument("--only", choices=("shapes", "scan", "planted"))
    parser.add_argument("--full", action="store_true", help="with 100 million events")
    parser.add_argument(
        "--free", action="store_true", help="let the driver and Java use all cores of the machine"
    )
    parser.add_argument("--folder", help="where traces go; default: a temporary directory")
    parser.add_argument("--apart", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.apart:
        on_spark(Path(options.apart[0]), int(options.apart[1]), free=options.free)
        return
    events = sorted({*options.events, *([100_000_000] if options.full else [])})
    shapes = [Shape(n, many) for n in options.processes for many in events]
    if options.runs:
        shapes.append(Shape(20, options.runs * 1000, options.runs))
    with tempfile.TemporaryDirectory(dir=options.folder) as place:
        folder = Path(place)
        if options.only in (None, "shapes"):
            write(folder / SMALL, Shape(10, 10_000))
            in_process(folder / SMALL, 1)  # compile everything
            shapes_table(folder, shapes, options.cores, options.repetitions, free=options.free)
        if options.only in (None, "scan"):
            scan_table(folder, min(max(events), 20_000_000), options.segments)
        if options.only in (None, "planted"):
            planted_table(folder, min(max(events), 10_000_000))


if __name__ == "__main__":
    main()
