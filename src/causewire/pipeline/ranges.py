"""Ranges of the Lamport time of a run whose rows are spread over the files of nodes.

Each node writes a file of its own, so the rows of a run are spread over many files, in each
of which they are nearly in order. The footers of Parquet files say which Lamport times a row
group has. So the time of the run is cut into ranges with about as many rows in each. Whoever
needs the rows of a range reads the row groups that have some, and sorts these rows in memory.
No row goes through a shuffle or through Java, and few are read twice, unless there are many
more ranges than row groups in a file.

Nothing here relies on Lamport times to be right: the check of the rows finds out.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from math import ceil
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from .._compiled import Bytes, Longs, Words, compiled
from ..check import BadRow, Chunk, Encoder, RunColumns
from ..check.columns import COLUMNS, OTHER, Columns, values_of
from ..trace import Event, trace_of
from ..trace.reader import BATCH_ROWS, TraceBatch
from .limits import Limits
from .pieces import Piece, Region, batches_of

__all__ = [
    "AHEAD",
    "POSITIONS",
    "TOO_OFTEN",
    "Place",
    "Range",
    "RangeRows",
    "cut",
    "ranges",
    "rows_at",
    "rows_read",
]

POSITIONS = 1 << 40
"""Positions that are set aside for the rows of a range, until it is known how many it has."""

TOO_OFTEN = 3.0
"""How often a row may be read on average before it is better to let Spark sort."""

AHEAD = 16
"""A task that needs a few rows beyond its range reads this share of the range's length more,
with the range itself: the row groups at its end have these rows, too."""


class Range(NamedTuple):
    """A range of Lamport times, up to but not including `hi`, and where its rows may be.

    `position` is that of its first row in the order of the run. Both this and `rows` may be
    greater than they are: all that matters is that ranges do not overlap.
    """

    pieces: tuple[Piece, ...]
    lo: int
    hi: int
    position: int
    rows: int = POSITIONS


Place = Piece | Range
"""Where rows of a run are: as they are stored, or to be sorted."""


def rows_at(run: str, places: Sequence[Place], processes: Sequence[str] = ()) -> Region | RangeRows:
    """Return the rows of a run at these places, as a `Source` for the check.

    Args:
        run: The name of the run.
        places: Row groups whose rows are in order, or ranges; not both.
        processes: Who is known already; they get the first numbers, in this order.
    """
    if any(isinstance(place, Range) for place in places):
        return RangeRows(run, [p for p in places if isinstance(p, Range)], processes)
    return Region(run, [p for p in places if isinstance(p, Piece)], processes)


def cut(pieces: Sequence[Piece], cores: int, limits: Limits) -> list[Range]:
    """Return ranges that together have all rows of a run, each small enough for a task to sort."""
    rows = sum(piece.rows for piece in pieces)
    many = max(1, min(rows // limits.stretch, cores * ceil(rows / cores / limits.sort)))
    return [
        Range(_overlapping(pieces, lo, hi), lo, hi, number * POSITIONS)
        for number, (lo, hi) in enumerate(ranges(pieces, many))
    ]


def rows_read(places: Sequence[Range]) -> int:
    """Return how many rows are read for these ranges, those counted twice that two of them read."""
    return sum(piece.rows for place in places for piece in place.pieces)


def _overlapping(pieces: Sequence[Piece], lo: int, hi: int) -> tuple[Piece, ...]:
    return tuple(p for p in pieces if p.lamport and p.lamport[0] < hi and lo <= p.lamport[1])


def ranges(pieces: Sequence[Piece], many: int) -> list[tuple[int, int]]:
    """Cut the time of a run, as if the times in each piece were spread evenly."""
    times = np.array([piece.lamport for piece in pieces], np.float64)
    rows = np.array([piece.rows for piece in pieces], np.float64)
    start, end = times[:, 0], times[:, 1] + 1
    marks = np.unique(np.concatenate([start, end]))
    # Rows before each mark: they grow by rows / (end - start) within a piece.
    growth = np.zeros(len(marks))
    density = rows / (end - start)
    np.add.at(growth, np.searchsorted(marks, start), density)
    np.add.at(growth, np.searchsorted(marks, end), -density)
    before = np.concatenate([[0.0], np.cumsum(np.cumsum(growth)[:-1] * np.diff(marks))])
    cuts = np.interp(np.arange(1, many) * before[-1] / many, before, marks)
    bounds = [int(start.min()), *np.unique(cuts.astype(np.int64)).tolist(), int(end.max())]
    bounds = sorted(set(bounds))
    return list(pairwise(bounds))


class RangeRows:
    """The rows of consecutive ranges of a run, sorted: a `Source` for the check.

    The order is by Lamport time, then by the name of the process, then by `seq`.
    """

    unique = False
    identical = 0
    repeated = 0

    def __init__(
        self,
        run: str,
        places: Sequence[Range],
        processes: Sequence[str] = (),
        own: int | None = None,
    ) -> None:
        """Rows of the first `own` ranges are wanted, and of the others as many as are taken."""
        self.name = run
        self.rows = 0
        self._places = tuple(places)
        self._processes = tuple(processes)
        self._own = len(places) if own is None else own

    def repeated_rows(self, limit: int) -> list[BadRow]:
        """None that are known."""
        return []

    def chunks(self) -> Iterator[Chunk]:
        """The rows in order; a chunk has rows of one range."""
        self.rows = 0
        encoder = Encoder()
        known = (Event(self.name, p, 0, None, None, "known") for p in self._processes)
        for batch in trace_of(known).batches(COLUMNS):
            for _ in encoder.chunks(batch):
                pass
        # Of each range: how many of its rows have been handed out.
        done = dict.fromkeys((place.lo for place in self._places), 0)
        for lo, hi in self._steps():
            places = [p for p in self._places if p.lo < hi and lo < p.hi]
            pieces = dict.fromkeys(q for p in places for q in _overlapping(p.pieces, lo, hi))
            rows = _sorted(encoder, list(pieces), lo, hi)
            if rows is None:
                continue
            for place in places:
                start, end = np.searchsorted(rows.lamport, (place.lo, place.hi)).tolist()
                for at in range(start, end, BATCH_ROWS):
                    columns = rows.columns(at, min(at + BATCH_ROWS, end))
                    yield Chunk(rows.run, place.position + done[place.lo], columns)
                    done[place.lo] += len(columns.kind)
                    self.rows += len(columns.kind)

    def _steps(self) -> Iterator[tuple[int, int]]:
        """Yield ranges of time to read at once: our own, each, and then growing ones."""
        own, beyond = self._places[: self._own], self._places[self._own :]
        for place in own[:-1]:
            yield place.lo, place.hi
        lo, hi = own[-1].lo, own[-1].hi
        if not beyond:
            yield lo, hi
            return
        length = max(1, (hi - lo) // AHEAD)
        hi = min(hi + length, beyond[0].hi)
        yield lo, hi
        for place in beyond:
            while hi < place.hi:
                length *= 2
                lo, hi = hi, min(hi + length, place.hi)
                yield lo, hi


# -- rows in memory ------------------------------------------------------------------------


class _Sorted(NamedTuple):
    """Rows in memory, the order in which to take them, and their Lamport times in this order."""

    run: RunColumns
    stored: Columns
    order: Words
    lamport: Longs

    def columns(self, start: int, end: int) -> Columns:
        """Some of the rows in order."""
        return _taken(self.stored, self.order[start:end])


def _sorted(encoder: Encoder, pieces: Sequence[Piece], lo: int, hi: int) -> _Sorted | None:
    """Read rows of a range of time; None if there are none.

    Pieces are read in the order of their processes. So in files of nodes, a stable sort by
    time alone leaves rows with the same time in the order of their processes.
    """
    times: list[Longs] = []
    parts: list[Columns] = []
    run: RunColumns | None = None
    for _, batch in batches_of(sorted(pieces, key=_by_process), (*COLUMNS, "lamport")):
        lamport = values_of(batch.columns["lamport"], np.int64)
        if (lamport[1:] >= lamport[:-1]).all():
            start, end = np.searchsorted(lamport, (lo, hi)).tolist()
            rows = batch.columns.slice(start, end - start)
            lamport = lamport[start:end]
        else:
            inside = (lamport >= lo) & (lamport < hi)
            rows, lamport = batch.columns.filter(pa.array(inside)), lamport[inside]
        if rows.num_rows:
            times.append(lamport)
            for chunk in encoder.chunks(TraceBatch(batch.file, batch.row, rows)):
                run = chunk.run
                parts.append(chunk.columns.copy())
    if run is None:
        return None
    stored = Columns.joined(parts)
    parts.clear()
    lamport = np.concatenate(times)
    everyone = run.processes
    rank = np.empty(len(everyone), np.int32)
    rank[sorted(range(len(everyone)), key=everyone.__getitem__)] = np.arange(len(everyone))
    order = _order(lamport, rank, stored.process, stored.seq)
    return _Sorted(run, stored, order, lamport[order])


def _by_process(piece: Piece) -> tuple[str, str, int]:
    return piece.process or "", piece.file, piece.group


def _order(lamport: Longs, rank: Words, process: Words, seq: Longs) -> Words:
    """Return the order by Lamport time, process and `seq`."""
    least = int(lamport.min())
    span = int(lamport.max()) - least + 1
    if span <= 4 * len(lamport) + 1024:
        order = np.empty(len(lamport), np.int32)
        if _order_by_time(lamport, least, span, rank, process, seq, order):
            return order
    return np.lexsort((seq, rank[process], lamport)).astype(np.int32)


@compiled
def _order_by_time(
    lamport: Longs, least: int, span: int, rank: Words, process: Words, seq: Longs, order: Words
) -> bool:
    """Sort by counting; False if rows with the same time do not come in order."""
    place = np.zeros(span + 1, np.int32)
    for t in range(lamport.shape[0]):
        place[lamport[t] - least + 1] += 1
    for k in range(span):
        place[k + 1] += place[k]
    for t in range(lamport.shape[0]):
        k = lamport[t] - least
        order[place[k]] = t
        place[k] += 1
    for k in range(1, order.shape[0]):
        a, b = order[k - 1], order[k]
        if lamport[a] == lamport[b]:
            first, second = rank[process[a]], rank[process[b]]
            if first > second or (first == second and seq[a] > seq[b]):
                return False
    return True


def _taken(stored: Columns, order: Words) -> Columns:
    first = np.empty(len(order) + 1, np.int32)
    copies = _ends(stored.kind, stored.first, order, first)
    out = Columns(
        np.empty(len(order), np.int8),
        np.empty(len(order), np.int32),
        np.empty(len(order), np.int64),
        np.empty(len(order), np.int32),
        np.empty(len(order), np.int64),
        first,
        np.empty(copies, np.int32),
    )
    _take(stored, order, out)
    return out


@compiled
def _ends(kind: Bytes, first: Words, order: Words, ends: Words) -> int:
    """Find where the peers of each row end; only those of sends and deliveries are kept."""
    ends[0] = 0
    for k in range(order.shape[0]):
        t = order[k]
        many = first[t + 1] - first[t] if kind[t] != OTHER else 0
        ends[k + 1] = ends[k] + many
    return int(ends[order.shape[0]])


@compiled
def _take(stored: Columns, order: Words, out: Columns) -> None:
    kind, process, seq, origin, mid = (
        stored.kind,
        stored.process,
        stored.seq,
        stored.origin,
        stored.mid,
    )
    first, peers = stored.first, stored.peers
    out_kind, out_process, out_seq = out.kind, out.process, out.seq
    out_origin, out_mid, out_first, out_peers = out.origin, out.mid, out.first, out.peers
    for k in range(order.shape[0]):
        t = order[k]
        out_kind[k] = kind[t]
        out_process[k] = process[t]
        out_seq[k] = seq[t]
        if kind[t] == OTHER:
            out_origin[k] = 0
            out_mid[k] = -1
        else:
            out_origin[k] = origin[t]
            out_mid[k] = mid[t]
        start = first[t]
        for j in range(out_first[k], out_first[k + 1]):
            out_peers[j] = peers[start + j - out_first[k]]
