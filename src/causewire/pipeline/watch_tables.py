"""The tables of a watch: one place for each batch, and many batches put together.

Only the last batch can be done again after a crash. Earlier ones never change, so once
there are `MANY` of them they are put together, `batch=FIRST-LAST`. If the command is killed
before their own places are removed, that is made up for when the next batch is written.
"""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

__all__ = ["MANY", "write_batch"]

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


def _write(place: Path, rows: pa.Table) -> None:
    place.mkdir(parents=True, exist_ok=True)
    partial = place / ".part.parquet.partial"
    pq.write_table(rows, partial)
    os.replace(partial, place / "part.parquet")


def _compact(table: Path, batch: int, many: int) -> None:
    """Put the batches before this one together, if they are many."""
    singles: list[tuple[int, Path]] = []
    groups: list[tuple[int, int, Path]] = []
    for place in sorted(table.iterdir()):
        match = _PLACE.fullmatch(place.name)
        if match and match[2] is not None:
            groups.append((int(match[1]), int(match[2]), place))
        elif match and int(match[1]) < batch:
            singles.append((int(match[1]), place))
    # What is in a group already: its own place, and groups that were put together.
    covered = [place for n, place in singles if any(lo <= n <= hi for lo, hi, _ in groups)]
    covered += [
        p for lo, hi, p in groups if any(a <= lo and hi <= b and p != q for a, b, q in groups)
    ]
    for place in covered:
        shutil.rmtree(place, ignore_errors=True)
    singles = [(n, place) for n, place in singles if place not in covered]
    groups = [group for group in groups if group[2] not in covered]
    if len(singles) < many:
        return
    first, last = singles[0][0], singles[-1][0]
    parts = [place for _, place in singles]
    if groups and (groups[-1][2] / "part.parquet").stat().st_size < _LARGE:
        first = groups[-1][0]
        parts.insert(0, groups[-1][2])
    whole = pa.concat_tables(pq.ParquetFile(place / "part.parquet").read() for place in parts)
    hidden = table / f".batch={first:08}-{last:08}"
    shutil.rmtree(hidden, ignore_errors=True)
    _write(hidden, whole)
    os.replace(hidden, table / f"batch={first:08}-{last:08}")
    for place in parts:
        shutil.rmtree(place, ignore_errors=True)
