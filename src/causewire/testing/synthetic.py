"""Large traces for the benchmarks of the check on Spark.

They are causally ordered (but for what is planted), in the order of their Lamport times,
and written as the package writes them.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from .._compiled import compiled
from ..trace import arrow_schema
from ..trace.parquet import FILE_ROWS, ParquetWriter

__all__ = ["Maker", "Shape", "seed", "write", "write_by_node"]

BLOCK = 1 << 20


class Shape(NamedTuple):
    """Some runs of some events among some processes."""

    processes: int
    events: int
    runs: int = 1

    @property
    def name(self) -> str:
        """A short description, for tables."""
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
def seed(value: int) -> None:
    np.random.seed(value)


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
        """Return the next rows, as an array of numbers."""
        out = np.empty((many, 7), np.int64)
        _more(many, self._most, self._wrong, *self._state, out)
        return out


def write(folder: Path, shape: Shape, wrong: float = 0.0) -> None:
    """A trace as files of the package's usual size."""
    seed(1)
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


def write_by_node(folder: Path, ordered: Path) -> None:
    """Write the rows of a trace again, with a file for each process, as nodes write them."""
    folder.mkdir(parents=True)
    rows = pq.read_table(ordered)
    processes = rows["process"].combine_chunks().dictionary_encode()
    codes = processes.indices.to_numpy()
    order = np.argsort(codes, kind="stable")
    bounds = np.searchsorted(codes[order], np.arange(len(processes.dictionary) + 1))
    for k, name in enumerate(processes.dictionary.to_pylist()):
        with ParquetWriter(folder / f"{name}.parquet") as writer:
            mine = rows.take(pa.array(np.sort(order[bounds[k] : bounds[k + 1]])))
            for batch in mine.combine_chunks().to_batches():
                writer.write_batch(batch)


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
