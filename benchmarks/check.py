"""How fast traces are checked, from Parquet and in memory, beside plain Python.

    python benchmarks/check.py [--processes N ...] [--events M ...] [--repetitions R]

The traces are causally ordered, the kernel's usual case: at random, a process
sends to another, or one of those with something pending delivers what was sent
to it first. Some hundreds of messages are in flight at any time. They are written
with the package's own writer, all columns included.

    parquet   million events a second, from the file to the verdict
    memory    the same, from columns in memory (the kernel alone)
    x python  ratio to a check written in plain Python: a vector clock for each
              process and for each message in flight, and the lowest undelivered
              message for each pair; measured in the same run, on fewer events
    linear    time per event, relative to the fewest events of that row's n
    state     megabytes kept from event to event, where it was most

One core; the best of several repetitions counts, of CPU time, not of the clock
on the wall: the machine may be shared. Compilation is not counted.
"""

from __future__ import annotations

import argparse
import gc
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from causewire._compiled import compiled
from causewire.check import Columns, Kernel, Stream, check, scan
from causewire.trace import Trace, arrow_schema, open_trace
from causewire.trace.parquet import ParquetWriter

Arrays = tuple[Any, ...]
PLAIN = 20_000_000
"""Clock entries that the plain check may touch: it is slow."""


def generate(processes: int, events: int) -> Arrays:
    """Kind, process, seq, lamport, origin, mid, first and peers of a causal trace."""
    return _generate(processes, events, 3 * processes, 1)


@compiled
def _generate(n: int, events: int, most: int, seed: int) -> Arrays:
    np.random.seed(seed)
    kind = np.empty(events, np.int8)
    process = np.empty(events, np.int32)
    seq = np.empty(events, np.int64)
    lamport = np.empty(events, np.int64)
    origin = np.empty(events, np.int32)
    mid = np.empty(events, np.int64)
    first = np.arange(events + 1).astype(np.int32)
    peers = np.empty(events, np.int32)
    rows = np.zeros(n, np.int64)
    clock = np.zeros(n, np.int64)
    sent = np.zeros(n, np.int64)
    room = 256
    queue = np.empty((n, room, 3), np.int64)  # origin, mid, lamport
    head = np.zeros(n, np.int64)
    tail = np.zeros(n, np.int64)
    flying = 0
    for t in range(events):
        if flying == 0 or (flying < most and np.random.randint(0, 2) == 0):
            p = np.random.randint(0, n)
            q = np.random.randint(0, n)
            while q == p or tail[q] - head[q] == room:
                q = np.random.randint(0, n)
            sent[p] += 1
            clock[p] += 1
            kind[t], origin[t], mid[t], peers[t] = 1, p, sent[p], q
            queue[q, tail[q] % room] = np.array((p, sent[p], clock[p]))
            tail[q] += 1
            flying += 1
        else:
            p = np.random.randint(0, n)
            while head[p] == tail[p]:
                p = np.random.randint(0, n)
            message = queue[p, head[p] % room]
            head[p] += 1
            flying -= 1
            clock[p] = max(clock[p], message[2]) + 1
            kind[t], origin[t], mid[t], peers[t] = 2, message[0], message[1], message[0]
        process[t] = p
        seq[t] = rows[p]
        rows[p] += 1
        lamport[t] = clock[p]
    return kind, process, seq, lamport, origin, mid, first, peers


def write(path: Path, processes: int, arrays: Arrays) -> None:
    """The trace as a simulator would have written it."""
    kind, process, seq, lamport, origin, mid, first, peers = arrays
    names = pa.array([f"p{k}" for k in range(processes)])

    def named(codes: Any, values: pa.Array = names) -> pa.Array:
        codes = pa.array(codes.astype(np.int32))
        return pa.DictionaryArray.from_arrays(codes, values).cast(pa.string())

    rows = len(kind)
    with ParquetWriter(path) as writer:
        for start in range(0, rows, 1 << 18):
            part = slice(start, min(rows, start + (1 << 18)))
            size = part.stop - part.start
            arrow = [
                named(np.zeros(size), pa.array(["run"])),
                named(process[part]),
                pa.array(seq[part]),
                pa.array(np.arange(part.start, part.stop) * 1000),
                pa.array(lamport[part]),
                named(kind[part] - 1, pa.array(["send", "deliver"])),
                named(origin[part]),
                pa.array(mid[part]),
                pa.ListArray.from_arrays(pa.array(first[: size + 1]), named(peers[part])).cast(
                    arrow_schema().field("peers").type
                ),
                pa.array(np.full(size, 100, np.int32)),
                pa.array(np.full(size, 16, np.int32)),
            ]
            writer.write_batch(pa.record_batch(arrow, schema=arrow_schema()))


def plain(processes: int, arrays: Arrays) -> int:
    """Vector clocks in plain Python; returns the number of violations."""
    kind, process, _, _, origin, mid, first, peers = (array.tolist() for array in arrays)
    clocks = [[0] * processes for _ in range(processes)]
    never = 1 << 60
    low = [[never] * processes for _ in range(processes)]
    pending: list[dict[int, dict[int, None]]] = [{} for _ in range(processes)]
    flying: dict[tuple[int, int], list[int]] = {}
    violations = 0
    for t in range(len(kind)):
        p, i, m = process[t], origin[t], mid[t]
        if kind[t] == 1:
            clocks[p][p] += 1
            flying[i, m] = clocks[p][:]
            for q in peers[first[t] : first[t + 1]]:
                pending[q].setdefault(i, {})[m] = None
                if m < low[q][i]:
                    low[q][i] = m
        else:
            theirs = flying.pop((i, m))
            waiting = pending[p][i]
            del waiting[m]
            low[p][i] = next(iter(waiting), never)
            theirs[i] -= 1
            for known, lowest in zip(theirs, low[p], strict=True):
                if lowest <= known:
                    violations += 1
            theirs[i] += 1
            clocks[p] = list(map(max, clocks[p], theirs))
    return violations


def chunks_of(trace: Trace) -> list[Columns]:
    """The columns of a trace with one run, all in memory."""
    return [chunk.columns.copy() for chunk in Stream(trace).chunks()]


def best(repetitions: int, job: Callable[[], None]) -> float:
    """Seconds of CPU time, at best."""
    times = []
    for _ in range(repetitions):
        gc.collect()
        start = time.process_time()
        job()
        times.append(time.process_time() - start)
    return min(times)


def measure(folder: Path, processes: int, events: int, repetitions: int) -> tuple[float, ...]:
    """Seconds per event from Parquet, in memory and in plain Python; bytes of state."""
    path = folder / f"{processes}-{events}.parquet"
    arrays = generate(processes, events)
    write(path, processes, arrays)
    trace = open_trace(path)
    state = scan(Stream(trace)).state
    columns = chunks_of(trace)

    def from_parquet() -> None:
        report = check(trace)
        assert report.ordered
        assert report.events == events

    def in_memory() -> None:
        kernel = Kernel()
        position = 0
        for part in columns:
            kernel.feed(part, processes, position)
            position += len(part.kind)
        assert kernel.violations == 0

    few = min(events, PLAIN // processes)
    some = (*(array[:few] for array in arrays[:-2]), arrays[-2][: few + 1], arrays[-1])

    def in_python() -> None:
        assert plain(processes, some) == 0

    result = (
        best(repetitions, from_parquet) / events,
        best(repetitions, in_memory) / events,
        best(1, in_python) / few,
        float(state),
    )
    path.unlink()
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--processes", type=int, nargs="+", default=[100, 1000])
    parser.add_argument("--events", type=int, nargs="+", default=[1_000_000, 5_000_000])
    parser.add_argument("--repetitions", type=int, default=5)
    options = parser.parse_args()
    print(
        f"{'n':>6} {'events':>11} {'parquet':>9} {'memory':>8} {'x python':>9}"
        f" {'linear':>7} {'state':>7}"
    )
    with tempfile.TemporaryDirectory() as folder:
        measure(Path(folder), 10, 10_000, 1)  # compile everything
        for processes in options.processes:
            base: float | None = None
            for events in sorted(options.events):
                parquet, memory, python, state = measure(
                    Path(folder), processes, events, options.repetitions
                )
                base = base or parquet
                print(
                    f"{processes:6} {events:11,} {1e-6 / parquet:9.2f} {1e-6 / memory:8.2f}"
                    f" {python / parquet:9.0f} {parquet / base:7.2f} {state / 1e6:7.1f}",
                    flush=True,
                )


if __name__ == "__main__":
    main()
