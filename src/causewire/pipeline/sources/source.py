"""The sources as a Spark data source, `causewire`, to read and to follow.

Options:

    kind        trace (the default), shiviz, otlp, jaeger, zipkin, spans (one of these
                three, by content), table
    show        events (the default), quarantine, or all: both in one table, where
                `reason` is missing in events
    pattern     shiviz: the regular expression of an event
    delimiter   shiviz: that of the lines between runs; empty for none
    run         shiviz, spans: what to call a run that has no name
    runBy       spans: `trace` (the default) or `all`
    processBy   spans: `request` (the default), `instance`, `service` or `thread`
    columns     table: the mapping, as JSON

As a stream (`spark.readStream`) it follows traces that are still being written:
lines that are added to `.jsonl` files, and `.parquet` files as they appear. A
line counts when its end is there. Other files go to the quarantine, once.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, MutableMapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    InputPartition,
)
from pyspark.sql.streaming.datasource import SupportsTriggerAvailableNow

from ...trace import NAMES, TraceError
from ...trace.formats.foreign import read_rows
from ...trace.formats.rows import Refused, batches_of_rows
from ...trace.formats.shiviz_log import read_log
from ...trace.formats.spans import SpanOptions
from ...trace.formats.tables import mapper, read_table
from ...trace.formats.traces import lines_between, read_parquet_file, read_trace_file
from ...trace.shiviz import DELIMITER, PATTERN
from ...trace.storage import absolute, expand
from ..schemas import ALL, EVENTS, QUARANTINE

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.datasource import ReadLimit
    from pyspark.sql.types import StructType

__all__ = ["CausewireSource", "TraceFollower", "register"]

_SHOWN = {"events": EVENTS, "quarantine": QUARANTINE, "all": ALL}
_FOLLOWED = (".parquet", ".jsonl")
"""Suffixes of the files that a stream follows."""
SPAN_KINDS = ("otlp", "jaeger", "zipkin", "spans")
_KINDS = ("trace", "shiviz", *SPAN_KINDS, "table")
_OPTIONS = {
    "kind",
    "show",
    "pattern",
    "delimiter",
    "run",
    "runby",
    "processby",
    "columns",
    "path",
    "paths",
    "whole",
}
_BLOCK = 64 << 20
"""Bytes of lines that one task of a stream reads."""


def register(spark: SparkSession) -> None:
    """Make `format("causewire")` known to a session."""
    spark.dataSource.register(CausewireSource)


class CausewireSource(DataSource):
    """`spark.read.format("causewire")`."""

    def __init__(self, options: MutableMapping[str, str]) -> None:
        super().__init__(options)
        self._options = {key.lower(): value for key, value in options.items()}
        unknown = set(self._options) - _OPTIONS
        if unknown:
            raise TraceError("causewire source", None, f"no such option: {min(unknown)}")
        self._kind = self._choice("kind", "trace", _KINDS)
        self._show = self._choice("show", "events", tuple(_SHOWN))

    def _choice(self, name: str, default: str, known: Sequence[str]) -> str:
        value = self._options.get(name, default)
        if value not in known:
            what = f"{name} must be one of {', '.join(known)}, not {value!r}"
            raise TraceError("causewire source", None, what)
        return value

    @classmethod
    def name(cls) -> str:
        """What it is called in `format`."""
        return "causewire"

    def schema(self) -> str:
        """By what is to be shown."""
        return _SHOWN[self._show]

    def reader(self, schema: StructType) -> DataSourceReader:
        """For `spark.read`."""
        return _Reader(self._kind, self._show, self._options)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802 - Spark's
        """For `spark.readStream`.

        Raises:
            TraceError: The source is not a trace.
        """
        if self._kind != "trace":
            raise TraceError("causewire source", None, "only traces can be followed")
        whole = self._options.get("whole") == "true"
        return TraceFollower(self._show, _paths(self._options), whole=whole)


def _paths(options: Mapping[str, str]) -> list[str]:
    paths = [*json.loads(options.get("paths", "[]"))]
    if "path" in options:
        paths.append(options["path"])
    if not paths:
        raise TraceError("causewire source", None, "no path to load from")
    return [absolute(path.removeprefix("file:") if "://" not in path else path) for path in paths]


def _files(paths: Sequence[str]) -> list[str]:
    """Return files, and those in directories; dots and underscores are hidden."""
    files = []
    for path in map(Path, paths):
        if not path.is_dir():
            if not path.exists():
                raise TraceError(path, None, "no such file or directory")
            files.append(str(path))
            continue
        files += sorted(
            str(file)
            for file in path.rglob("*")
            if file.is_file() and not any(part[0] in "._" for part in file.relative_to(path).parts)
        )
    return files


def _shown(batches: Iterator[pa.RecordBatch], show: str) -> Iterator[pa.RecordBatch]:
    """Only the rows and columns that were asked for."""
    for batch in batches:
        if show == "all":
            yield batch
            continue
        bad = pc.is_valid(batch["reason"])
        if show == "events":
            yield batch.filter(pc.invert(bad)).select(list(NAMES))
        else:
            yield batch.filter(bad).select(["file", "row", "reason", "text"])


class _Reader(DataSourceReader):
    def __init__(self, kind: str, show: str, options: Mapping[str, str]) -> None:
        self._kind, self._show, self._options = kind, show, dict(options)
        self._files = [str(file) for path in _paths(options) for file in expand(path)]
        if kind == "table":
            mapper(self._options.get("columns", ""))  # raises now if it is wrong
        self._span_options = SpanOptions.checked(
            self._options.get("processby"), self._options.get("runby"), self._options.get("run")
        )

    def partitions(self) -> list[InputPartition]:
        """A task for each file; spans are looked at together (`ingest` does it in parallel)."""
        if self._kind in SPAN_KINDS:
            return [InputPartition(self._files)]
        return [InputPartition([file]) for file in self._files] or [InputPartition([])]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """What one task reads."""
        if self._kind in SPAN_KINDS:
            kind = "auto" if self._kind == "spans" else self._kind
            rows = read_rows(partition.value, kind, self._span_options, Counter())
            yield from _shown(batches_of_rows(rows), self._show)
            return
        for file in partition.value:
            yield from _shown(self._read_file(file), self._show)

    def _read_file(self, file: str) -> Iterator[pa.RecordBatch]:
        options = self._options
        if self._kind == "shiviz":
            pattern, delimiter = options.get("pattern", PATTERN), options.get("delimiter")
            between = DELIMITER if delimiter is None else delimiter or None
            return read_log(file, pattern, between, options.get("run"))
        if self._kind == "table":
            return read_table(file, mapper(options["columns"]))
        return read_trace_file(file)


# -- traces that are still being written ---------------------------------------------------


class TraceFollower(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """An offset is, for each file: how many bytes are done, how many lines, and its life.

    A file that has become shorter was truncated and written anew: it begins another life,
    and is read from its start. Parquet files appear whole: they are done, or not. So are
    files in directories that cannot be followed, which are in the quarantine once.
    """

    def __init__(self, show: str, paths: Sequence[str], *, whole: bool = False) -> None:
        self._show, self._paths = show, paths
        self._block = sys.maxsize if whole else _BLOCK
        self._until: dict[str, int] | None = None
        """If what is there is all that is wanted: the sizes of the files."""

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802 - Spark's
        """Note what is there."""
        self._until = {
            file: Path(file).stat().st_size if self._has_lines(file) else 0
            for file in _files(self._paths)
        }

    def _has_lines(self, file: str) -> bool:
        """Return whether a file grows by lines: by its suffix, or because it was named."""
        return file.endswith(".jsonl") or (file in self._paths and not file.endswith(".parquet"))

    def initialOffset(self) -> dict[str, list[int]]:  # noqa: N802 - Spark's
        """Nothing is done."""
        return {}

    def latestOffset(  # noqa: N802 - Spark's
        self, start: dict[str, list[int]], limit: ReadLimit
    ) -> dict[str, list[int]]:
        """Whole lines, a block of each file at a time, and all files that are there."""
        end = dict(start)
        files = _files(self._paths) if self._until is None else self._until
        for file in files:
            if not self._has_lines(file):
                end[file] = [1, 0, 0]
                continue
            bytes_done, lines_done, life = _offset(start, file)
            size = Path(file).stat().st_size
            if size < bytes_done:
                bytes_done, lines_done, life = 0, 0, life + 1
            most = self._block if self._until is None else min(size, self._until[file]) - bytes_done
            upto, lines = _whole_lines(file, bytes_done, min(most, self._block, size - bytes_done))
            if upto > bytes_done:
                end[file] = [upto, lines_done + lines, life]
        return end

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
        file, (begin, lines, life), (end, _, new_life) = partition.value
        if file.endswith(".parquet"):
            yield from _shown(read_parquet_file(file), self._show)
            return
        if not self._has_lines(file):
            told = Refused(file, None, f"not followed: only {' and '.join(_FOLLOWED)} files are")
            yield from _shown(batches_of_rows([told]), self._show)
            return
        if new_life != life:
            begin, lines = 0, 0
            told = Refused(file, None, "the file has become shorter; it is read from its start")
            yield from _shown(batches_of_rows([told]), self._show)
        with Path(file).open("rb") as stream:
            batches = lines_between(file, stream, begin, end, lines + 1, to_the_end=False)
            yield from _shown(batches, self._show)


def _offset(offsets: Mapping[str, list[int]], file: str) -> list[int]:
    """Return how far a file was read: bytes, lines, life."""
    found = offsets.get(file, [0, 0, 0])
    return [*found, 0][:3]  # offsets of older checkpoints have no life


def _whole_lines(file: str, start: int, most: int) -> tuple[int, int]:
    """Where the last whole line of the next bytes ends, and how many lines there are."""
    with Path(file).open("rb") as stream:
        stream.seek(start)
        data = stream.read(max(0, most))
    last = data.rfind(b"\n")
    return start + last + 1, data.count(b"\n", 0, last + 1)
