"""Rows that come out of a shuffle, run by run, as traces."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise

import numpy as np
import pyarrow as pa

from ..check.columns import values_of
from ..trace import NAMES, Event, Trace
from ..trace.reader import TraceBatch, accepted, events_of

__all__ = ["Arrived", "arrived"]


class Arrived(Trace):
    """The rows of one run."""

    def __init__(self, run: str, batches: Sequence[pa.RecordBatch]) -> None:
        self.name = f"run {run!r}"
        self.raw = batches

    def events(self) -> Iterator[Event]:
        """The rows as they came."""
        for batch in self.batches():
            yield from events_of(batch.columns)

    def batches(self, columns: Sequence[str] = NAMES) -> Iterator[TraceBatch]:
        """The same as columns."""
        row = 1
        for batch in self.raw:
            mine = batch.select(
                [name for name in NAMES if name in columns and name in batch.schema.names]
            )
            mine = accepted(mine, self.name, row)
            yield TraceBatch(self.name, row, mine)
            row += batch.num_rows


def arrived(batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[str, Arrived]]:
    """Batches in which the rows of each run are together, run by run."""
    run: str | None = None
    held: list[pa.RecordBatch] = []
    for batch in batches:
        column = batch["run"].dictionary_encode()
        names = column.dictionary.to_pylist()
        codes = values_of(column.indices)
        bounds = [0, *(np.flatnonzero(codes[1:] != codes[:-1]) + 1).tolist(), len(codes)]
        for start, end in pairwise(bounds):
            if start == end:
                continue
            if names[codes[start]] != run:
                if run is not None:
                    yield run, Arrived(run, held)
                run, held = names[codes[start]], []
            held.append(batch.slice(start, end - start))
    if run is not None:
        yield run, Arrived(run, held)
