"""Long runs in files of nodes, put in order by tasks that read the files themselves.

Each node writes a file of its own, so the rows of a run are spread over many files, in each
of which they are nearly in order. The footers of Parquet files say which Lamport times a row
group has. So the time of the run is cut into ranges with about as many rows in each, and a
task gets a range: it reads the row groups that have rows of it, sorts these rows, and writes
them. No row goes through a shuffle or through Java, and few are read twice, unless there
are many more ranges than row groups in a file; then Spark sorts (`prepare.py`).

Nothing here relies on Lamport times to be right: the check that follows finds out.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from math import ceil
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from .._compiled import Longs
from ..check.columns import COLUMNS, values_of
from .limits import Limits
from .pieces import Piece, batches_of
from .session import parallelism
from .trouble import answers, guarded

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["merged", "ranges", "rows_read", "runs_of_pieces"]

TWICE = 3.0
"""How often a row may be read on average before it is better to let Spark sort."""

_GROUP = 1 << 18
"""Rows of a row group that is written."""


def runs_of_pieces(pieces: Sequence[Piece]) -> dict[str, list[Piece]] | None:
    """Return the pieces of each run; None if a piece has several, or no Lamport times."""
    result: dict[str, list[Piece]] = {}
    for piece in pieces:
        if piece.run is None or piece.lamport is None:
            return None
        result.setdefault(piece.run, []).append(piece)
    return result


def merged(
    spark: SparkSession, run: str, pieces: Sequence[Piece], place: Path, limits: Limits
) -> list[str] | None:
    """Write the rows of a run in the order of their Lamport times.

    Args:
        spark: The session.
        run: The name of the run, for the description of the job.
        pieces: All its row groups; they have no other rows.
        place: The directory to write to, which executors see.
        limits: The sizes that decide how the work is shared out.

    Returns:
        The files in order; None if rows would have to be read too often.

    Raises:
        Trouble: A file cannot be read.
    """
    works = _works(pieces, parallelism(spark), limits, place)
    if _read(works) > TWICE * sum(piece.rows for piece in pieces):
        return None
    place.mkdir(parents=True, exist_ok=True)
    written = answers(spark, works, _sort_range, f"check: sort run {run}")
    return [work.file for work, size in zip(works, written, strict=True) if size]


def rows_read(pieces: Sequence[Piece], cores: int, limits: Limits) -> int:
    """Return how many rows the tasks of `merged` read, those counted twice that two of them do."""
    return _read(_works(pieces, cores, limits, Path()))


class _Work(NamedTuple):
    """A range of Lamport times, up to but not including `hi`, and where its rows may be."""

    pieces: tuple[Piece, ...]
    lo: int
    hi: int
    file: str


def _works(pieces: Sequence[Piece], cores: int, limits: Limits, place: Path) -> list[_Work]:
    rows = sum(piece.rows for piece in pieces)
    many = max(1, min(rows // limits.stretch, cores * ceil(rows / cores / limits.sort)))
    works = []
    for number, (lo, hi) in enumerate(ranges(pieces, many)):
        mine = tuple(piece for piece in pieces if _overlaps(piece, lo, hi))
        works.append(_Work(mine, lo, hi, str(place / f"part-{number:05}.parquet")))
    return works


def _read(works: Sequence[_Work]) -> int:
    return sum(piece.rows for work in works for piece in work.pieces)


def _overlaps(piece: Piece, lo: int, hi: int) -> bool:
    assert piece.lamport is not None
    return piece.lamport[0] < hi and lo <= piece.lamport[1]


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


@guarded
def _sort_range(work: _Work) -> int:
    """Sort the rows of a range, write them, and return how many there are."""
    names: dict[str, int] = {}
    kinds: dict[str, int] = {}
    parts: list[tuple[Any, ...]] = []
    run = ""
    for _, batch in batches_of(work.pieces, (*COLUMNS, "lamport")):
        columns = batch.columns
        lamport = values_of(columns["lamport"], np.int64)
        inside = (lamport >= work.lo) & (lamport < work.hi)
        if not inside.any():
            continue
        if not inside.all():
            columns = columns.filter(pa.array(inside))
            lamport = lamport[inside]
        run = columns["run"][0].as_py()
        lists = columns["peers"]
        offsets = values_of(lists.offsets)
        peers = values_of(lists.values.indices)[offsets[0] : offsets[-1]]
        parts.append(
            (
                _codes(names, columns["process"]),
                _codes(kinds, columns["kind"]),
                _codes(names, columns["origin"]),
                values_of(columns["seq"], np.int64),
                values_of(columns["mid"].fill_null(-1), np.int64),
                lamport,
                np.diff(offsets),
                _numbers(names, lists.values.dictionary)[peers],
            )
        )
    if not parts:
        return 0
    return _write(work.file, run, names, kinds, parts)


def _codes(ids: dict[str, int], column: pa.Array) -> Any:
    indices = column.indices
    if indices.null_count:
        indices = indices.fill_null(len(column.dictionary))
    return _numbers(ids, column.dictionary)[values_of(indices)]


def _numbers(ids: dict[str, int], dictionary: pa.Array) -> Any:
    """Return the number of each name; one more, -1, for none."""
    return np.array([*(ids.setdefault(x, len(ids)) for x in dictionary.to_pylist()), -1], np.int32)


def _write(
    file: str, run: str, names: dict[str, int], kinds: dict[str, int], parts: list[tuple[Any, ...]]
) -> int:
    whole: list[Any] = [np.concatenate(column) for column in zip(*parts, strict=True)]
    parts.clear()
    process, kind, origin, seq, mid, lamport, count, peers = whole
    everyone = list(names)
    rank = np.empty(len(everyone), np.int64)
    rank[sorted(range(len(everyone)), key=everyone.__getitem__)] = np.arange(len(everyone))
    order = _order(lamport, rank[process], seq)
    if (count == 1).all():
        offsets, places = np.arange(len(order) + 1, dtype=np.int32), order
    else:
        first = np.cumsum(count) - count
        offsets = np.zeros(len(order) + 1, np.int32)
        np.cumsum(count[order], out=offsets[1:])
        starts = first[order] - offsets[:-1]
        places = np.repeat(starts, count[order]) + np.arange(offsets[-1])
    known = pa.array(everyone, pa.string())
    mids, origins = mid[order], origin[order]
    table = pa.table(
        {
            "run": pa.DictionaryArray.from_arrays(np.zeros(len(order), np.int32), [run]),
            "process": pa.DictionaryArray.from_arrays(process[order], known),
            "seq": seq[order],
            "kind": pa.DictionaryArray.from_arrays(kind[order], pa.array(list(kinds))),
            "origin": pa.DictionaryArray.from_arrays(pa.array(origins, mask=origins < 0), known),
            "mid": pa.array(mids, mask=mids < 0),
            "peers": pa.ListArray.from_arrays(
                pa.array(offsets), pa.DictionaryArray.from_arrays(peers[places], known)
            ),
        }
    )
    pq.write_table(
        table,
        file,
        row_group_size=_GROUP,
        compression="none",
        use_dictionary=["run", "process", "kind", "origin", "peers.list.element"],
        data_page_size=1 << 20,
        store_schema=False,
        write_statistics=["run", "process"],
    )
    return len(order)


def _order(lamport: Longs, process: Longs, seq: Longs) -> Any:
    """Return the order by Lamport time, process and `seq`."""
    least = lamport.min()
    width = int(process.max()) + 1
    if (int(lamport.max()) - int(least) + 1) * width < 1 << 62:
        key = (lamport - least) * width + process
        order = np.argsort(key, kind="stable")
        key = key[order]
        if (key[1:] != key[:-1]).all():
            return order
    return np.lexsort((seq, process, lamport))
