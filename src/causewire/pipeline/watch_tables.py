"""The tables of a watch: one place for each batch, and many batches put together.

Only the last batch can be done again after a crash. Earlier ones never change, so once
there are `MANY` of them they are put together, `batch=FIRST-LAST`. If the command is killed
before their own places are removed, that is made up for when the next batch is written.
"""

from __future__ import annotations

import os
import re
import shutil
from collections import Counter
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from .sources.follow import NOT_A_TRACE, REPLACED

__all__ = ["MANY", "totals", "write_batch"]

MANY = 32
"""Batches that are put together."""

_LARGE = 64 << 20
"""Bytes from which on a file does not grow any more."""

_PLACE = re.compile(r"batch=(\d+)(?:-(\d+))?")


def write_batch(table: Path, batch: int, rows: pa.Table, *, many: int = MANY) -> None:
    """Write the rows of a batch, in place of what an earlier attempt has written.

    Args:
        table: The directory of the table.
        batch: The number of the batch; later batches have greater numbers.
        rows: Its rows; nothing is written if there are none.
        many: From how many earlier batches on they are put together.
    """
    place = table / f"batch={batch:08}"
    shutil.rmtree(place, ignore_errors=True)
    if rows.num_rows:
        _write(place, rows)
        _compact(table, batch, many)


def totals(out: Path) -> Counter[str]:
    """Count the rows of each table of a watch, since its first start.

    Also counted are `events`, those of all windows, and `unread`: files of which nothing, or
    not everything, could be read.
    """
    found: Counter[str] = Counter()
    for table in (path for path in out.iterdir() if path.is_dir() and path.name[0] not in "._"):
        for place in _places(table)[0]:
            rows = pq.ParquetFile(place.path / "part.parquet").read()
            found[table.name] += rows.num_rows
            if table.name == "windows":
                found["events"] += pc.sum(rows["events"]).as_py()
            elif table.name == "quarantine":
                reasons = rows.filter(pc.is_null(rows["row"]))["reason"].to_pylist()
                found["unread"] += sum(why not in (NOT_A_TRACE, REPLACED) for why in reasons)
    return found


class _Place(NamedTuple):
    """Where the rows of some batches are."""

    first: int
    last: int
    path: Path
    together: bool
    """Whether they were put together."""


def _places(table: Path) -> tuple[list[_Place], list[_Place]]:
    """Return the places of a table, and those whose rows are in one of these as well."""
    found = [
        _Place(int(match[1]), int(match[2] or match[1]), path, bool(match[2]))
        for path in sorted(table.iterdir())
        if (match := _PLACE.fullmatch(path.name))
    ]
    covered = [
        place
        for place in found
        if any(
            other.together and other.first <= place.first and place.last <= other.last
            for other in found
            if other is not place
        )
    ]
    return [place for place in found if place not in covered], covered


def _write(place: Path, rows: pa.Table) -> None:
    place.mkdir(parents=True, exist_ok=True)
    partial = place / ".part.parquet.partial"
    pq.write_table(rows, partial)
    os.replace(partial, place / "part.parquet")


def _compact(table: Path, batch: int, many: int) -> None:
    """Put the batches before this one together, if they are many."""
    places, covered = _places(table)
    for place in covered:
        shutil.rmtree(place.path, ignore_errors=True)
    singles = [place for place in places if not place.together and place.first < batch]
    groups = [place for place in places if place.together]
    if len(singles) < many:
        return
    first, last = singles[0].first, singles[-1].last
    parts = [place.path for place in singles]
    if groups and (groups[-1].path / "part.parquet").stat().st_size < _LARGE:
        first = groups[-1].first
        parts.insert(0, groups[-1].path)
    whole = pa.concat_tables(pq.ParquetFile(place / "part.parquet").read() for place in parts)
    hidden = table / f".batch={first:08}-{last:08}"
    shutil.rmtree(hidden, ignore_errors=True)
    _write(hidden, whole)
    os.replace(hidden, table / f"batch={first:08}-{last:08}")
    for part in parts:
        shutil.rmtree(part, ignore_errors=True)
