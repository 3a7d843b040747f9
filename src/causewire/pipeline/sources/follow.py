"""Files that are still being written, as a stream: lines as they are added, Parquet as it appears.

Rows of traces and of tables are events line by line. Spans are not: which process and which
message a span belongs to depends on the other spans of its trace, wherever they are. So they
are passed on as they are (`schemas.SPANS`), and `watch` makes rows of them when the trace ends.
"""

from __future__ import annotations

import json
import os
import pickle
import sys
import zlib
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import SupportsTriggerAvailableNow

from ...trace import NAMES, TraceError
from ...trace.formats import jaeger, otlp, zipkin
from ...trace.formats.documents import documents
from ...trace.formats.foreign import spans_of_file
from ...trace.formats.names import SPAN_FORMATS
from ...trace.formats.rows import Refused, Row, batches_of_rows
from ...trace.formats.spans import Span, SpanOptions, runs_of
from ...trace.formats.tables import mapped, mapper, read_table
from ...trace.formats.traces import fields_of, lines_between, read_parquet_file, read_trace_file
from ...trace.reader import LINES

if TYPE_CHECKING:
    from pyspark.sql.streaming.datasource import ReadLimit

__all__ = ["NOT_A_TRACE", "REPLACED", "Follower", "selected"]

_BLOCK = 64 << 20
"""Bytes of lines that one task of a stream reads."""
_END = 256
"""Bytes at each end of what is done of a file, by which it is known again."""
_REFUSED, _READ = [1, 0, 0], [2, 0, 0]
NOT_A_TRACE = "not followed: only .parquet and .jsonl files are"
REPLACED = "the file was truncated or replaced; it is read from its start"
_GONE = "the file is gone, or another one, since it was found"
_ROWS = 4096
_READERS: dict[str, Callable[[str, Iterable[Any]], Iterator[Span | Refused]]] = {
    "otlp": otlp.read_json,
    "jaeger": jaeger.read_json,
    "zipkin": zipkin.read_json,
}
_SPANS = pa.schema(
    [
        ("run", pa.string()),
        ("span", pa.binary()),
        ("file", pa.string()),
        ("row", pa.int64()),
        ("reason", pa.string()),
        ("text", pa.string()),
    ]
)


def selected(batches: Iterator[pa.RecordBatch], show: str) -> Iterator[pa.RecordBatch]:
    """Yield only the rows and columns that were asked for."""
    for batch in batches:
        if show == "all":
            yield batch
            continue
        bad = pc.is_valid(batch["reason"])
        if show == "events":
            yield batch.filter(pc.invert(bad)).select(list(NAMES))
        else:
            yield batch.filter(bad).select(["file", "row", "reason", "text"])


class Follower(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """An offset is, for each file: how many bytes are done, how many lines, its life, its mark.

    The mark is a checksum of the bytes at both ends of what is done. A file that does not have
    it was truncated, or rotated (renamed and made anew): it begins another life, and is read
    from its start. An inode would not do: a file that is truncated keeps its own, and so may
    one that is made after another was deleted.

    Parquet files appear whole: they are done, or not. So are files in directories that cannot
    be followed, which are in the quarantine once, or are read as `check` does if what is there
    is all (`_REFUSED`, `_READ`).

    Args:
        show: The rows and columns that are wanted; of spans there is no choice.
        paths: Files and directories.
        kind: `trace`, `table`, or the format of spans.
        whole: Whether what is there is all that there will be, so it is read in one batch.
        columns: The mapping of the columns of a table, as JSON.
        options: What is a process and what is a run, for spans.
    """

    def __init__(
        self,
        show: str,
        paths: Sequence[str],
        kind: str = "trace",
        *,
        whole: bool = False,
        columns: str = "",
        options: SpanOptions | None = None,
    ) -> None:
        self._show, self._paths, self._kind, self._whole = show, paths, kind, whole
        self._block = sys.maxsize if whole else _BLOCK
        self._columns, self._options = columns, options or SpanOptions()
        if kind == "table":
            mapper(columns)  # raises now if it is wrong
        self._followed = (
            *(() if kind in SPAN_FORMATS else (".parquet",)),
            *(() if kind == "trace" else (".json",)),
            ".jsonl",
        )
        """Suffixes of the files in directories that are followed."""
        self._until: dict[str, int] | None = None
        """If what is there is all that is wanted: the sizes of the files."""

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802 - Spark's
        """Note what is there."""
        self._until = {}
        for file in _files(self._paths):
            with suppress(FileNotFoundError):
                self._until[file] = Path(file).stat().st_size if self._has_lines(file) else 0

    def _has_lines(self, file: str) -> bool:
        """Return whether a file grows by lines: by its suffix, or because it was named."""
        if file.endswith(".parquet"):
            return False
        return file.endswith(self._followed) or file in self._paths

    def _done(self, file: str) -> list[int]:
        """Return the offset of a file without lines that are followed, when it is done."""
        if self._kind == "trace":
            return _READ if self._whole and file.endswith(LINES) else _REFUSED
        return _READ if self._whole and not file.endswith(self._followed) else _REFUSED

    def initialOffset(self) -> dict[str, list[int]]:  # noqa: N802 - Spark's
        """Nothing is done."""
        return {}

    def latestOffset(  # noqa: N802 - Spark's
        self, start: dict[str, list[int]], limit: ReadLimit
    ) -> dict[str, list[int]]:
        """Whole lines, a block of each file at a time, and all files that are there."""
        end = dict(start)
        files = _files(self._paths, start) if self._until is None else self._until
        for file in files:
            if not self._has_lines(file):
                end[file] = max(start.get(file, []), self._done(file))
                continue
            with suppress(FileNotFoundError):  # it is gone since it was listed
                end[file] = self._offset_in(file, start)
        return {file: offset for file, offset in end.items() if any(offset)}

    def _offset_in(self, file: str, start: dict[str, list[int]]) -> list[int]:
        """Return the offset of a file with the whole lines that are new."""
        before = _offset(start, file)
        bytes_done, lines_done, life, _ = before
        with Path(file).open("rb") as stream:
            size = os.fstat(stream.fileno()).st_size
            if size < bytes_done or not _is_same(stream, before):
                bytes_done, lines_done, life = 0, 0, life + 1
            most = self._block if self._until is None else min(size, self._until[file]) - bytes_done
            most = min(most, self._block, size - bytes_done)
            upto, lines = self._whole_lines(stream, bytes_done, most)
            if upto == bytes_done:
                return start.get(file, [0, 0, 0, 0])
            return [upto, lines_done + lines, life, _mark(stream, upto)]

    def _whole_lines(self, stream: IO[bytes], start: int, most: int) -> tuple[int, int]:
        """Return where the last whole line of the next bytes ends, and how many lines there are.

        If nothing follows, a last line of another tool's file needs no end if it is a JSON
        document: such files are often one document, on one line.
        """
        stream.seek(start)
        data = stream.read(max(0, most))
        last = data.rfind(b"\n")
        upto, lines = start + last + 1, data.count(b"\n", 0, last + 1)
        rest = data[last + 1 :]
        if self._whole and rest.strip() and _is_json(rest):
            return upto + len(rest), lines + 1
        return upto, lines

    def partitions(
        self, start: dict[str, list[int]], end: dict[str, list[int]]
    ) -> list[InputPartition]:
        """A task for each file that has something new."""
        return [
            InputPartition((file, _offset(start, file), upto))
            for file, upto in sorted(end.items())
            if upto != start.get(file)
        ]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """What one task reads."""
        file, start, end = partition.value
        if self._has_lines(file):
            yield from self._new_lines(file, start, _offset({file: end}, file))
        elif end == _READ:
            yield from self._all_of(file)
        elif file.endswith(".parquet") and self._kind == "trace":
            yield from selected(read_parquet_file(file), self._show)
        elif file.endswith(".parquet") and self._kind == "table":
            yield from selected(read_table(file, mapper(self._columns)), self._show)
        elif file.endswith(LINES):
            yield from self._refuse(file, "not followed: compressed; `check` reads it, and --once")
        else:
            known = " and ".join(self._followed)
            yield from self._refuse(file, f"not followed: only {known} files are")

    def _all_of(self, file: str) -> Iterator[pa.RecordBatch]:
        """Yield what `check` reads in a file."""
        if self._kind == "trace":
            return selected(read_trace_file(file), self._show)
        if self._kind == "table":
            return selected(read_table(file, mapper(self._columns)), self._show)
        return _batches_of_spans(spans_of_file(file, self._kind), self._options)

    def _new_lines(
        self, file: str, start: Sequence[int], upto: Sequence[int]
    ) -> Iterator[pa.RecordBatch]:
        """Yield what is between two offsets of a file, if it is still the same file."""
        begin, lines, life, _ = start
        end, last, new_life, _ = upto
        if new_life != life:
            begin, lines = 0, 0
            yield from self._refuse(file, REPLACED)
        try:
            with Path(file).open("rb") as stream:
                if _is_same(stream, upto):
                    yield from self._lines(file, stream, begin, end, lines + 1)
                    return
        except FileNotFoundError:
            pass
        yield from self._refuse(file, f"{_GONE}; lines {lines + 1} to {last} were not read")

    def _refuse(self, file: str, reason: str) -> Iterator[pa.RecordBatch]:
        """Yield why a file is not read, or not as it was before."""
        refused = Refused(file, None, reason)
        if self._kind in SPAN_FORMATS:
            return _batches_of_spans([refused], self._options)
        return selected(batches_of_rows([refused]), self._show)

    def _lines(
        self, file: str, stream: IO[bytes], begin: int, end: int, number: int
    ) -> Iterator[pa.RecordBatch]:
        """Yield what is in the lines from one byte of a file to another."""
        if self._kind == "trace":
            stream.seek(begin)
            batches = lines_between(file, stream, begin, end, number, to_the_end=self._whole)
            yield from selected(batches, self._show)
            return
        stream.seek(0)
        first = stream.readline()
        if first.lstrip()[:1] in (b"{", b"[") and not _is_json(first):
            if self._whole and begin == 0:
                yield from self._all_of(file)
            elif begin == 0:
                reason = "a JSON document of several lines cannot be followed; `check` reads it"
                yield from self._refuse(file, reason)
            return
        lines = _lines_between(stream, begin, end, number)
        if self._kind == "table":
            rows = _table_rows(file, lines, self._columns)
            yield from selected(batches_of_rows(rows), self._show)
        else:
            yield from _batches_of_spans(_spans(file, lines, self._kind), self._options)


# -- lines of other tools' files -----------------------------------------------------------


class _Line(NamedTuple):
    number: int
    at: int
    """The byte of the file where it begins."""
    text: bytes


def _lines_between(stream: IO[bytes], begin: int, end: int, number: int) -> Iterator[_Line]:
    """Yield the lines from one byte to another; `number` is that of the first."""
    stream.seek(begin)
    for found, text in enumerate(stream, number):
        if begin + len(text) > end:
            return
        if not text.isspace():
            yield _Line(found, begin, text)
        begin += len(text)


def _table_rows(file: str, lines: Iterable[_Line], columns: str) -> Iterator[Row | Refused]:
    apply = mapper(columns)
    for line in lines:
        fields = fields_of(line.text, file, line.number)
        yield from mapped([fields], apply, file, line.number)


def _spans(file: str, lines: Iterable[_Line], kind: str) -> Iterator[Span | Refused]:
    """Yield the spans of each line, with numbers that sort as they do in the file.

    How many spans the lines before have is not known here, so the numbers are not those that
    `check` gives. What is refused has the number of its line.
    """
    for line in lines:
        for k, item in enumerate(_READERS[kind](file, documents(line.text))):
            yield item._replace(row=line.number if isinstance(item, Refused) else line.at + k)


def _batches_of_spans(
    items: Iterable[Span | Refused], options: SpanOptions
) -> Iterator[pa.RecordBatch]:
    rows: list[tuple[object, ...]] = []
    for item in items:
        if isinstance(item, Refused):
            rows.append((None, None, *item))
        else:
            stored = pickle.dumps(item)
            rows += [(run, stored, None, None, None, None) for run in runs_of(item, options)]
        if len(rows) >= _ROWS:
            yield _batch(rows)
            rows = []
    if rows:
        yield _batch(rows)


def _batch(rows: list[tuple[object, ...]]) -> pa.RecordBatch:
    columns = zip(*rows, strict=True)
    arrays = [pa.array(c, field.type) for c, field in zip(columns, _SPANS, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=_SPANS)


def _is_json(text: bytes) -> bool:
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


def _files(paths: Sequence[str], known: Container[str] = ()) -> list[str]:
    """Return files, and those in directories; dots and underscores are hidden.

    A path that is `known` need not be there: it may be in the middle of its rotation.
    """
    files = []
    for path in map(Path, paths):
        if not path.is_dir():
            if path.exists():
                files.append(str(path))
            elif str(path) not in known:
                raise TraceError(path, None, "no such file or directory")
            continue
        files += sorted(
            str(file)
            for file in path.rglob("*")
            if file.is_file() and not any(part[0] in "._" for part in file.relative_to(path).parts)
        )
    return files


def _offset(offsets: Mapping[str, list[int]], file: str) -> list[int]:
    """Return how far a file was read: bytes, lines, life, mark."""
    found = offsets.get(file, [])
    return [*found, 0, 0, 0, 0][:4]  # offsets of older checkpoints have no life, or no mark


def _mark(stream: IO[bytes], upto: int) -> int:
    """Return a checksum of the bytes at both ends of what is done of a file."""
    stream.seek(0)
    first = stream.read(min(_END, upto))
    stream.seek(max(0, upto - _END))
    return zlib.crc32(stream.read(min(_END, upto)), zlib.crc32(first))


def _is_same(stream: IO[bytes], offset: Sequence[int]) -> bool:
    """Return whether a file has the mark of an offset, if there is one."""
    upto, _, _, mark = offset
    return not mark or _mark(stream, upto) == mark
