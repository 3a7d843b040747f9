"""Traces as pieces: which rows lie where, so that a task can read its own.

A piece is a row group of a Parquet file. Where it begins in the trace, and
mostly also which runs it has, is known from the footers of the files; nothing
is read to plan with it. A task gets a list of pieces and reads the columns that it
needs from the files themselves: events do not pass through Spark.

Runs end inside of pieces. So for small runs a task takes what *begins* in its
pieces: it leaves out the rest of a run that began before, and goes on beyond its
last piece until the run that it is in is over.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from ..check import BadRow, Chunk, Encoder, OrderError, RunColumns
from ..check.collisions import Starts
from ..check.columns import COLUMNS, values_of
from ..trace import NAMES, Event, Trace, TraceError, trace_of
from ..trace.parquet import opened, partitions_of, read_group
from ..trace.reader import BATCH_ROWS, TraceBatch, accepted, events_of
from ..trace.storage import locate, source_of

__all__ = [
    "Piece",
    "PieceTrace",
    "Region",
    "RunInMemory",
    "Runs",
    "batches_of",
    "by_process",
    "layout",
    "long_runs",
    "runs_in",
    "without",
]


class Piece(NamedTuple):
    """A row group: where it is, its first row in its file and in the trace."""

    file: str
    group: int
    row: int
    position: int
    rows: int
    run: str | None
    """The run that all its rows belong to, if it is one."""
    process: str | None = None
    """The process that all its rows belong to, if the footer says so."""
    lamport: tuple[int, int] | None = None
    """The least and the greatest Lamport time, if the footer says that every row has one."""


def layout(files: Sequence[str]) -> list[Piece]:
    """The pieces of a trace, file by file."""
    pieces = []
    position = 0
    for file in files:
        metadata = pq.read_metadata(source_of(locate(file)))
        paths = [metadata.schema.column(k).path for k in range(metadata.num_columns)]
        column = paths.index("run") if "run" in paths else None
        partition = partitions_of(locate(file)).get("run")
        row = 0
        for group in range(metadata.num_row_groups):
            about = metadata.row_group(group)
            if about.num_rows:
                piece = Piece(file, group, row, position, about.num_rows, None)
                runs = {partition} if column is None and partition is not None else None
                if column is not None:
                    runs = _bounds_of(about.column(column).statistics)
                if runs is None:
                    runs = set(runs_in(piece))
                process = None
                if "process" in paths:
                    names = _bounds_of(about.column(paths.index("process")).statistics)
                    process = names.pop() if names is not None and len(names) == 1 else None
                lamport = None
                if "lamport" in paths:
                    lamport = _times_of(about.column(paths.index("lamport")).statistics)
                run = runs.pop() if len(runs) == 1 else None
                pieces.append(piece._replace(run=run, process=process, lamport=lamport))
            row += about.num_rows
            position += about.num_rows
    return pieces


def by_process(pieces: Sequence[Piece]) -> bool:
    """Whether rows are stored process after process, as nodes write them into files.

    Then it is known from the footers alone that they cannot be checked in this order.
    """
    processes: dict[str, set[str]] = {}
    for piece in pieces:
        if piece.run is not None and piece.process is not None:
            processes.setdefault(piece.run, set()).add(piece.process)
    return any(len(names) > 1 for names in processes.values())


def _bounds_of(statistics: pq.Statistics | None) -> set[str] | None:
    """The least and the greatest name; long ones may have been cut."""
    if statistics is None or not statistics.has_min_max:
        return None
    bounds = {statistics.min, statistics.max}
    whole = all(isinstance(name, str) and len(name) <= 60 for name in bounds)
    return bounds if whole else None


def _times_of(statistics: pq.Statistics | None) -> tuple[int, int] | None:
    """The least and the greatest number, if no row is without one."""
    if statistics is None or not statistics.has_min_max or statistics.null_count != 0:
        return None
    bounds = statistics.min, statistics.max
    return bounds if all(isinstance(bound, int) for bound in bounds) else None


def batches_of(pieces: Sequence[Piece], columns: Sequence[str]) -> Iterator[tuple[int, TraceBatch]]:
    """The rows of pieces, and the position of the first of each batch.

    Raises:
        TraceError: A file is damaged.
    """
    file: pq.ParquetFile | None = None
    name = ""
    try:
        for piece in pieces:
            if file is None or piece.file != name:
                if file is not None:
                    file.close()
                name = piece.file
                file = opened(locate(name))
            done = 0
            for batch in read_group(file, locate(name), piece.group, columns, BATCH_ROWS):
                row = piece.row + done + 1
                batch = accepted(batch, name, row)
                yield piece.position + done, TraceBatch(name, row, batch)
                done += batch.num_rows
    except (pa.ArrowException, OSError) as error:
        raise TraceError(name, None, f"damaged: {error}") from None
    finally:
        if file is not None:
            file.close()


def _runs_along(batch: TraceBatch) -> tuple[list[int], list[str]]:
    """Where in a batch runs begin, its end added, and their names."""
    column = batch.columns["run"]
    codes = values_of(column.indices)
    changes = (np.flatnonzero(codes[1:] != codes[:-1]) + 1).tolist()
    bounds = [0, *changes, len(codes)]
    names = column.dictionary.to_pylist()
    return bounds, [names[codes[start]] for start in bounds[:-1]]


def _part(batch: TraceBatch, start: int, end: int) -> TraceBatch:
    if start == 0 and end == batch.columns.num_rows:
        return batch
    return TraceBatch(batch.file, batch.row + start, batch.columns.slice(start, end - start))


class Region:
    """The rows of one run in some pieces: a `Source` for the check.

    Positions are those of the trace. `processes` numbers those who are known
    already, so that everyone who reads a part of the run gives the same numbers.
    """

    unique = False
    identical = 0
    repeated = 0

    def __init__(self, run: str, pieces: Sequence[Piece], processes: Sequence[str] = ()) -> None:
        self.name = run
        self.rows = 0
        self._pieces = tuple(pieces)
        self._processes = tuple(processes)

    def repeated_rows(self, limit: int) -> list[BadRow]:
        """None that are known."""
        return []

    def chunks(self) -> Iterator[Chunk]:
        """The rows of the run; `ScatteredRunError` if another one's come between."""
        self.rows = 0
        encoder = Encoder()
        if self._processes:
            known = (Event(self.name, p, 0, None, None, "known") for p in self._processes)
            for batch in trace_of(known).batches(COLUMNS):
                for _ in encoder.chunks(batch):
                    pass
        for position, batch in batches_of(self._pieces, COLUMNS):
            bounds, names = _runs_along(batch)
            for (start, end), name in zip(pairwise(bounds), names, strict=True):
                if name == self.name:
                    for chunk in encoder.chunks(_part(batch, start, end)):
                        yield Chunk(chunk.run, position + start, chunk.columns)
                        self.rows += end - start


class PieceTrace(Trace):
    """The rows of some pieces as a trace."""

    def __init__(self, name: str, pieces: Sequence[Piece]) -> None:
        self.name = f"run {name!r}"
        self._pieces = tuple(pieces)

    def events(self) -> Iterator[Event]:
        """The rows as they are stored."""
        for batch in self.batches():
            yield from events_of(batch.columns)

    def batches(self, columns: Sequence[str] = NAMES) -> Iterator[TraceBatch]:
        """The same as columns."""
        return (batch for _, batch in batches_of(self._pieces, columns))


class RunInMemory:
    """The rows of one run in memory, as a `Source` for the check."""

    identical = 0
    repeated = 0

    def __init__(self, run: RunColumns, chunks: Sequence[Chunk], *, unique: bool = False) -> None:
        self.name = run.name
        self.unique = unique
        self.rows = sum(len(chunk.columns.kind) for chunk in chunks)
        self._chunks = chunks

    def repeated_rows(self, limit: int) -> list[BadRow]:
        """None that are known."""
        return []

    def chunks(self) -> Iterator[Chunk]:
        """The rows, as they are held."""
        return iter(self._chunks)


class Runs:
    """The runs that begin in some pieces of a trace, one after the other."""

    def __init__(self, pieces: Sequence[Piece], start: int, end: int, skip: Collection[str]):
        """`pieces` is the trace; ours are those from `start` to `end`.

        Runs of the names in `skip` are looked at by others. Iterating raises `OrderError` if a
        process starts twice under one name.
        """
        self._pieces, self._start, self._end = pieces, start, end
        self._skip = frozenset(skip)

    def __iter__(self) -> Iterator[RunInMemory]:
        encoder = Encoder()
        run: RunColumns | None = None
        held: list[Chunk] = []
        for chunk in self._chunks(encoder):
            if run is None or chunk.run is not run:
                if run is not None:
                    yield RunInMemory(run, held)
                run, held = chunk.run, []
            held.append(Chunk(chunk.run, chunk.position, chunk.columns.copy()))
        if run is not None:
            yield RunInMemory(run, held)

    def _chunks(self, encoder: Encoder) -> Iterator[Chunk]:
        starts = Starts()
        for position, batch in self.batches(COLUMNS):
            if starts.again(batch.columns):
                raise OrderError("a process starts twice under one name")
            for chunk in encoder.chunks(batch):
                yield Chunk(chunk.run, position, chunk.columns)
                position += len(chunk.columns.kind)

    def batches(self, columns: Sequence[str]) -> Iterator[tuple[int, TraceBatch]]:
        """Their rows, with the position of the first of each batch.

        Batches are as long as possible: to encode one has its price.
        """
        before = self._run_before()
        last: str | None = None
        until = self._pieces[self._end - 1]
        for position, batch in batches_of(self._pieces[self._start :], columns):
            beyond = position >= until.position + until.rows
            bounds, names = _runs_along(batch)
            stretches: list[list[int]] = []
            over = False
            for (start, end), name in zip(pairwise(bounds), names, strict=True):
                over = beyond and (name != last or before is not None)
                if over:
                    break
                last = name
                if name == before:
                    continue
                before = None
                if name in self._skip:
                    continue
                if stretches and stretches[-1][1] == start:
                    stretches[-1][1] = end
                else:
                    stretches.append([start, end])
            for start, end in stretches:
                yield position + start, _part(batch, start, end)
            if over:
                return

    def _run_before(self) -> str | None:
        """The run of the row before ours."""
        if self._start == 0:
            return None
        piece = self._pieces[self._start - 1]
        if piece.run is not None:
            return piece.run
        for _, batch in batches_of([piece], ("run",)):
            last = batch.columns["run"][-1].as_py()
        return str(last)


def runs_in(piece: Piece) -> list[str]:
    """The runs of a piece, in their order."""
    runs: list[str] = []
    for _, batch in batches_of([piece], ("run",)):
        runs += [name for name in _runs_along(batch)[1] if runs[-1:] != [name]]
    return runs


def long_runs(pieces: Sequence[Piece], limit: int) -> dict[str, list[Piece]]:
    """Long runs and where they are: pieces of their own, and adjacent ones.

    A run that shares a piece with others may have its first rows there, or its
    last.
    """
    rows: dict[str, int] = {}
    for piece in pieces:
        if piece.run is not None:
            rows[piece.run] = rows.get(piece.run, 0) + piece.rows
    result: dict[str, list[Piece]] = {}
    for run, many in rows.items():
        if many >= limit:
            mine = [k for k, piece in enumerate(pieces) if piece.run == run]
            adjacent = {mine[0] - 1, mine[-1] + 1} & set(range(len(pieces)))
            mixed = [k for k in adjacent if pieces[k].run is None and run in runs_in(pieces[k])]
            result[run] = [pieces[k] for k in sorted({*mine, *mixed})]
    return result


def without(pieces: Sequence[Piece], large: Iterable[str]) -> list[Piece]:
    """The pieces that have something else."""
    runs = set(large)
    return [piece for piece in pieces if piece.run not in runs]
