"""Traces as Parquet: one file, or a directory of files.

Written with everything fixed that could make two files of the same rows differ:
row groups of `ROW_GROUP` rows whatever the caller does, one codec, names
dictionary-encoded, numbers as deltas, no Arrow schema stored. What remains is
the library's own version string in the footer. Pages have checksums, so that a
damaged file is known for one.

Delta coding makes the numbers of a trace nearly free (they grow by little from
row to row), and dictionaries let a reader work on codes instead of strings; the
check's speed rests on both. They leave little to compress: Snappy, since zstd
saves one byte in a hundred and takes half as long again to read.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Sequence
from urllib.parse import unquote

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from .schema import COLUMNS, NAMES, Event, TraceError, arrow_schema, because
from .storage import Location, source_of
from .writer import TraceWriter, partial_name

__all__ = [
    "FILE_ROWS",
    "ROW_GROUP",
    "ParquetDirectoryWriter",
    "ParquetWriter",
    "opened",
    "parquet_schema",
    "partitions_of",
    "read_group",
    "read_parquet",
    "row_count",
]

ROW_GROUP = 1 << 16
"""Rows in a row group, and so in the writer's buffer."""

FILE_ROWS = ROW_GROUP * 64
"""Rows in one file of a directory."""

_DAMAGE = (pa.ArrowException, OSError, UnicodeDecodeError, KeyError)
"""What Arrow raises for files that are not what they should be."""

_PEERS = "peers.list.element"
_DICTIONARIES = [*(c.name for c in COLUMNS if c.type == "string"), _PEERS]
_TEXTS = [c.name for c in COLUMNS if c.type == "string"]
_DELTAS = {c.name: "DELTA_BINARY_PACKED" for c in COLUMNS if c.type.startswith("int")}


class ParquetWriter(TraceWriter):
    """One Parquet file."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        super().__init__(path)
        self._schema = arrow_schema()
        self._partial = partial_name(self.path)
        self._buffer: list[Event] = []
        self._held: list[pa.RecordBatch] = []
        self._held_rows = 0
        try:
            self._file = pq.ParquetWriter(
                self._partial,
                self._schema,
                compression="snappy",
                use_dictionary=_DICTIONARIES,
                column_encoding=_DELTAS,
                store_schema=False,
                write_page_checksum=True,
            )
        except OSError as error:
            raise TraceError(path, None, f"cannot be written: {because(error)}") from None

    def write(self, event: Event) -> None:
        self._buffer.append(event)
        self.rows += 1
        if self._held_rows + len(self._buffer) == ROW_GROUP:
            self._hold_buffer()
            self._write_group()

    def write_batch(self, batch: pa.RecordBatch) -> None:
        """Add rows that are in columns already; for the file it is all the same."""
        self._hold_buffer()
        self.rows += batch.num_rows
        batch = pa.record_batch(
            [batch[field.name].cast(field.type) for field in self._schema], schema=self._schema
        )
        while batch.num_rows:
            part = batch.slice(0, ROW_GROUP - self._held_rows)
            batch = batch.slice(part.num_rows)
            self._held.append(part)
            self._held_rows += part.num_rows
            if self._held_rows == ROW_GROUP:
                self._write_group()

    def flush(self) -> None:
        """Nothing: a row group is written when it is full."""

    def _hold_buffer(self) -> None:
        if self._buffer:
            columns = zip(*self._buffer, strict=True)
            arrays = [pa.array(c, f.type) for c, f in zip(columns, self._schema, strict=True)]
            self._held.append(pa.record_batch(arrays, schema=self._schema))
            self._held_rows += len(self._buffer)
            self._buffer.clear()

    def _write_group(self) -> None:
        self._file.write_table(pa.Table.from_batches(self._held).combine_chunks())
        self._held.clear()
        self._held_rows = 0

    def _finish(self) -> None:
        self._hold_buffer()
        if self._held:
            self._write_group()
        self._file.close()
        os.replace(self._partial, self.path)

    def _discard(self) -> None:
        self._file.close()
        self._partial.unlink(missing_ok=True)


class ParquetDirectoryWriter(TraceWriter):
    """A directory of Parquet files of at most `FILE_ROWS` rows each."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        super().__init__(path)
        if self.path.exists() and not (self.path.is_dir() and not any(self.path.iterdir())):
            raise TraceError(path, None, "exists already")
        self._partial = partial_name(self.path)
        try:
            shutil.rmtree(self._partial, ignore_errors=True)
            self._partial.mkdir()
        except OSError as error:
            raise TraceError(path, None, f"cannot be written: {because(error)}") from None
        self._parts = 0
        self._part = self._next_part()

    def _next_part(self) -> ParquetWriter:
        part = ParquetWriter(self._partial / f"part-{self._parts:05}.parquet")
        self._parts += 1
        return part

    def write(self, event: Event) -> None:
        if self._part.rows == FILE_ROWS:
            self._part.close()
            self._part = self._next_part()
        self._part.write(event)
        self.rows += 1

    def flush(self) -> None:
        """Nothing: a row group is written when it is full."""

    def _finish(self) -> None:
        self._part.close()
        if self.path.exists():
            self.path.rmdir()
        os.replace(self._partial, self.path)

    def _discard(self) -> None:
        self._part.discard()
        shutil.rmtree(self._partial, ignore_errors=True)


def read_parquet(path: Location, columns: Sequence[str], rows: int) -> Iterator[pa.RecordBatch]:
    """The named columns of one file, strings as dictionaries, `rows` at a time.

    Columns that the file may lack and does lack are left out, and `peers` are
    plain strings where Arrow cannot do better. One core: the caller has better
    use for the others.

    Raises:
        TraceError: The file is damaged.
    """
    done = 0
    try:
        with opened(path) as file:
            for group in range(file.num_row_groups):
                for batch in read_group(file, path, group, columns, rows):
                    yield batch
                    done += batch.num_rows
    except _DAMAGE as error:
        raise TraceError(path, done + 1, f"damaged from here on: {error}") from None


def opened(path: Location, dictionaries: Sequence[str] = _DICTIONARIES) -> pq.ParquetFile:
    """A file in which flipped bits are found, and names are read as codes."""
    try:
        return pq.ParquetFile(
            source_of(path), read_dictionary=dictionaries, page_checksum_verification=True
        )
    except KeyError:  # a column is missing, and may be in the path
        present = {str(column.path) for column in pq.ParquetFile(source_of(path)).schema}
        found = [name for name in dictionaries if name in present]
        return pq.ParquetFile(
            source_of(path), read_dictionary=found, page_checksum_verification=True
        )


def read_group(
    file: pq.ParquetFile, path: Location, group: int, columns: Sequence[str], rows: int
) -> Iterator[pa.RecordBatch]:
    """Yield the named columns of one row group.

    Columns that the file lacks are taken from its path, if that names them (`run=x`), or
    left out. Arrow reads lists of dictionary codes only from one row group at a time, and
    only if the group's dictionary did not overflow while it was written.
    """
    present = [name for name in columns if name in file.schema_arrow.names]
    constant = {
        name: value
        for name, value in partitions_of(path).items()
        if name in columns and name not in present
    }
    done = 0
    try:
        for batch in file.iter_batches(rows, [group], present, use_threads=False):
            yield _with(batch, constant, columns)
            done += batch.num_rows
    except pa.ArrowNotImplementedError:
        with opened(path, _DICTIONARIES[:-1]) as plain:
            for batch in plain.iter_batches(rows, [group], present, use_threads=False):
                skipped = min(done, batch.num_rows)
                done -= skipped
                yield _with(batch.slice(skipped), constant, columns)


def partitions_of(path: Location) -> dict[str, str]:
    """Return the columns that a path names, as Hive and Spark write them: `run=x/part.parquet`."""
    parts = (part.partition("=") for part in str(path).split("/")[:-1])
    return {name: unquote(value) for name, mark, value in parts if mark and name in _TEXTS}


def _with(
    batch: pa.RecordBatch, constant: dict[str, str], columns: Sequence[str]
) -> pa.RecordBatch:
    """Return the batch with columns that have one value, in the order of the columns."""
    if not constant:
        return batch
    arrays = {name: batch[name] for name in batch.schema.names}
    zeros = pa.array(np.zeros(batch.num_rows, np.int32))
    for name, value in constant.items():
        arrays[name] = pa.DictionaryArray.from_arrays(zeros, pa.array([value], pa.string()))
    names = [name for name in columns if name in arrays]
    return pa.record_batch([arrays[name] for name in names], names=names)


def parquet_schema(path: Location) -> pa.Schema:
    """The columns of a file, if it is a Parquet file at all.

    Raises:
        TraceError: The file cannot be read, or is not a Parquet file.
    """
    try:
        schema = pq.read_schema(source_of(path))
        str(schema)  # names are decoded when they are asked for
        return schema
    except _DAMAGE as error:
        if isinstance(error, OSError) and error.errno:
            raise TraceError(path, None, f"cannot be read: {because(error)}") from None
        with path.open("rb") as file:
            begun = file.read(4) == b"PAR1"
            file.seek(-min(4, path.stat().st_size), os.SEEK_END)
            ended = file.read() == b"PAR1"
        if not begun:
            reason = "not a Parquet file"
        elif not ended:
            reason = "cut short: its footer is missing"
        else:
            reason = "its footer is damaged"
        raise TraceError(path, None, reason) from None


def row_count(path: Location) -> int | None:
    """Return the number of rows that the footer of a file states, or None if it is damaged."""
    try:
        return int(pq.read_metadata(source_of(path)).num_rows)
    except _DAMAGE:
        return None


assert set(_DELTAS) | {n.split(".")[0] for n in _DICTIONARIES} == set(NAMES)
