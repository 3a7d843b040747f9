"""Long runs in files of nodes, written in order by tasks that read the files themselves.

A task gets a range of Lamport times (`ranges.py`), sorts its rows and writes them. This is for
runs that are read more than once: by blocks of origins, mostly. Others are checked as they are
sorted (`large.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from ..check.columns import DELIVER, OTHER, SEND, Columns
from ..trace.schema import DELIVER as DELIVER_KIND
from ..trace.schema import SEND as SEND_KIND
from .pieces import Piece
from .ranges import Range, RangeRows
from .trouble import answers, guarded

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["merged", "runs_of_pieces"]

_GROUP = 1 << 18
"""Rows of a row group that is written."""

_KINDS = ["other", SEND_KIND, DELIVER_KIND]
assert (_KINDS[SEND], _KINDS[DELIVER], OTHER) == (SEND_KIND, DELIVER_KIND, 0)


def runs_of_pieces(pieces: Sequence[Piece]) -> dict[str, list[Piece]] | None:
    """Return the pieces of each run; None if a piece has several, or no Lamport times."""
    result: dict[str, list[Piece]] = {}
    for piece in pieces:
        if piece.run is None or piece.lamport is None:
            return None
        result.setdefault(piece.run, []).append(piece)
    return result


def merged(spark: SparkSession, run: str, places: Sequence[Range], folder: Path) -> list[str]:
    """Write the rows of a run in the order of their Lamport times.

    Args:
        spark: The session.
        run: The name of the run.
        places: Ranges that together are the run.
        folder: The directory to write to, which executors see.

    Returns:
        The files in order.

    Raises:
        Trouble: A file cannot be read.
    """
    folder.mkdir(parents=True, exist_ok=True)
    works = [
        _Work(run, place, str(folder / f"part-{number:05}.parquet"))
        for number, place in enumerate(places)
    ]
    written = answers(spark, works, _sort_range, f"check: sort run {run}")
    return [work.file for work, size in zip(works, written, strict=True) if size]


class _Work(NamedTuple):
    """A range to sort, and the file to write."""

    run: str
    place: Range
    file: str


@guarded
def _sort_range(work: _Work) -> int:
    """Sort the rows of a range, write them, and return how many there are."""
    source = RangeRows(work.run, [work.place])
    writer: pq.ParquetWriter | None = None
    held: list[Columns] = []
    names: list[str] = []
    try:
        for chunk in source.chunks():
            names = chunk.run.processes
            held.append(chunk.columns)
            if sum(len(columns.kind) for columns in held) >= _GROUP:
                writer = _write(writer, work, held, names)
        if held:
            writer = _write(writer, work, held, names)
    finally:
        if writer is not None:
            writer.close()
    return source.rows


def _write(
    writer: pq.ParquetWriter | None, work: _Work, held: list[Columns], names: list[str]
) -> pq.ParquetWriter:
    """Write a row group of the rows that are held."""
    table = _table(work.run, Columns.joined(held), pa.array(names, pa.string()))
    held.clear()
    if writer is None:
        writer = pq.ParquetWriter(
            work.file,
            table.schema,
            compression="none",
            use_dictionary=["run", "process", "kind", "origin", "peers.list.element"],
            data_page_size=1 << 20,
            store_schema=False,
            write_statistics=["run", "process"],
        )
    writer.write_table(table, row_group_size=table.num_rows)
    return writer


def _table(run: str, rows: Columns, names: pa.Array) -> pa.Table:
    other = rows.kind == OTHER
    zeros = pa.array(rows.kind * 0)
    return pa.table(
        {
            "run": pa.DictionaryArray.from_arrays(zeros, pa.array([run])),
            "process": pa.DictionaryArray.from_arrays(rows.process, names),
            "seq": rows.seq,
            "kind": pa.DictionaryArray.from_arrays(rows.kind, pa.array(_KINDS)),
            "origin": pa.DictionaryArray.from_arrays(pa.array(rows.origin, mask=other), names),
            "mid": pa.array(rows.mid, mask=other),
            "peers": pa.ListArray.from_arrays(
                pa.array(rows.first), pa.DictionaryArray.from_arrays(rows.peers, names)
            ),
        }
    )
