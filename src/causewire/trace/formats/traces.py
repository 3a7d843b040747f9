"""Our own traces: Parquet and JSON lines."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

import pyarrow as pa
import pyarrow.parquet as pq

from ..parquet import opened, parquet_schema
from ..reader import accepted, check_schema
from ..schema import NAMES, TraceError, because
from ..storage import locate, open_binary, source_of
from .rows import Refused, Row, batches_of_rows, event_of, good_batch, shown

__all__ = [
    "fields_of",
    "lines_between",
    "parquet_rows",
    "read_lines",
    "read_parquet_file",
    "read_trace_file",
    "the_rest",
]

_BATCH = 1 << 15


def read_trace_file(file: str) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a file that is Parquet or JSON lines, by its content."""
    try:
        with open_binary(locate(file)) as stream:
            start = stream.read(4)
    except OSError:
        start = b""
    if start == b"PAR1" or file.endswith(".parquet"):
        return read_parquet_file(file)
    if start.lstrip()[:1] == b"{" or file.endswith(".jsonl"):
        return read_lines(file)
    return batches_of_rows([Refused(file, None, "neither Parquet nor JSON lines")])


def read_lines(file: str) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a file of JSON lines, which may be compressed."""
    try:
        with open_binary(locate(file)) as stream:
            yield from lines_between(file, stream, 0, sys.maxsize, 1, to_the_end=True)
    except OSError as error:
        yield from batches_of_rows([Refused(file, None, f"cannot be read: {because(error)}")])


def lines_between(
    file: str, stream: IO[bytes], start: int, end: int, row: int, *, to_the_end: bool
) -> Iterator[pa.RecordBatch]:
    """The rows from one byte of a file to another; `row` is the number of the first.

    The stream stands at the first. If these are all that there will be (`to_the_end`), a last
    line that was cut short is one that cannot be understood.
    """

    def rows() -> Iterator[Row | Refused]:
        left = end - start
        for number, line in enumerate(stream, row):
            left -= len(line)
            if left < 0 or (not to_the_end and not line.endswith(b"\n")):
                return
            if not line.isspace():
                yield _row(line, file, number)

    return batches_of_rows(rows())


def fields_of(line: bytes, file: str, number: int) -> dict[str, Any] | Refused:
    """A line that is a JSON object."""
    try:
        fields = json.loads(line)
    except (ValueError, RecursionError):
        whole = line.endswith(b"\n")
        reason = "not a JSON object" if whole else "the last line is cut short"
        return Refused(file, number, reason, shown(line))
    if not isinstance(fields, dict):
        return Refused(file, number, "a row must be a JSON object", shown(line))
    return fields


def _row(line: bytes, file: str, number: int) -> Row | Refused:
    fields = fields_of(line, file, number)
    if isinstance(fields, Refused):
        return fields
    item = event_of(fields, file, number)
    return item._replace(text=shown(line)) if isinstance(item, Refused) else item


def read_parquet_file(file: str) -> Iterator[pa.RecordBatch]:
    """A Parquet file; one that cannot be read at all is one row of the quarantine."""
    path = locate(file)
    done = 0
    try:
        check_schema(path, parquet_schema(path))
        with opened(path, ()) as stream:
            present = [name for name in NAMES if name in stream.schema_arrow.names]
            for batch in stream.iter_batches(_BATCH, columns=present, use_threads=False):
                yield from _checked(batch, file, done + 1)
                done += batch.num_rows
    except TraceError as error:
        yield from batches_of_rows(the_rest(file, done, error.reason))
    except (pa.ArrowException, OSError) as error:
        yield from batches_of_rows(the_rest(file, done, f"damaged: {error}"))


def _checked(batch: pa.RecordBatch, file: str, row: int) -> Iterator[pa.RecordBatch]:
    """All at once, or row by row if something is wrong."""
    try:
        yield good_batch(accepted(batch, Path(file), row), file, row)
    except (TraceError, pa.ArrowException):
        yield from batches_of_rows(
            fields if isinstance(fields, Refused) else event_of(fields, file, number)
            for number, fields in enumerate(parquet_rows(batch, file, row), row)
        )


def parquet_rows(
    batch: pa.RecordBatch, file: str, first: int
) -> Iterator[dict[str, Any] | Refused]:
    """Yield the rows of a batch as objects; a row with text that is not UTF-8 is refused."""
    try:
        yield from batch.to_pylist()
    except ValueError:
        for k in range(batch.num_rows):
            try:
                yield from batch.slice(k, 1).to_pylist()
            except ValueError as error:
                yield Refused(file, first + k, f"not UTF-8: {error}")


def the_rest(file: str, done: int, reason: str) -> Iterator[Refused]:
    """Rows that the file has according to its footer, but that cannot be read.

    Without a footer nobody knows how many: that is one row, without a number.
    """
    reason = shown(" ".join(reason.split()))
    try:
        rows = int(pq.read_metadata(source_of(locate(file))).num_rows)
    except (pa.ArrowException, OSError):
        yield Refused(file, None, reason)
        return
    for row in range(done + 1, rows + 1):
        yield Refused(file, row, reason)
