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

As a stream (`spark.readStream`) it follows traces and tables that are still being written:
lines that are added to `.jsonl` files (of tables, also `.json` files), and `.parquet` files
as they appear. A line counts when its end is there. Other files go to the quarantine, once.
Spans are followed by `watch` (`show` is `spans`), which makes events of a trace when it ends.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, MutableMapping, Sequence
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    InputPartition,
)

from ...trace import TraceError
from ...trace.formats.foreign import read_rows
from ...trace.formats.names import SPAN_FORMATS
from ...trace.formats.rows import batches_of_rows
from ...trace.formats.shiviz_log import read_log
from ...trace.formats.spans import SpanOptions
from ...trace.formats.tables import mapper, read_table
from ...trace.formats.traces import read_trace_file
from ...trace.shiviz import DELIMITER, PATTERN
from ...trace.storage import absolute, expand
from ..schemas import ALL, EVENTS, QUARANTINE, SPANS
from .follow import Follower, selected

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.types import StructType

__all__ = ["CausewireSource", "register"]

_SHOWN = {"events": EVENTS, "quarantine": QUARANTINE, "all": ALL, "spans": SPANS}
SPAN_KINDS = (*SPAN_FORMATS, "spans")
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
        """For `spark.read`.

        Raises:
            TraceError: Spans are wanted as they are, which only a stream gives.
        """
        if self._show == "spans":
            raise TraceError("causewire source", None, "only a stream shows spans")
        return _Reader(self._kind, self._show, self._options)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802 - Spark's
        """For `spark.readStream`.

        Raises:
            TraceError: The source cannot be followed, or not as events.
        """
        if self._kind in ("shiviz", "spans"):
            what = f"{self._kind} cannot be followed: only trace, table, otlp, jaeger and zipkin"
            raise TraceError("causewire source", None, what)
        if (self._kind in SPAN_FORMATS) != (self._show == "spans"):
            raise TraceError("causewire source", None, "spans are followed by `watch`")
        return Follower(
            self._show,
            _paths(self._options),
            self._kind,
            whole=self._options.get("whole") == "true",
            columns=self._options.get("columns", ""),
            options=_span_options(self._options),
        )


def _span_options(options: Mapping[str, str]) -> SpanOptions:
    return SpanOptions.checked(options.get("processby"), options.get("runby"), options.get("run"))


def _paths(options: Mapping[str, str]) -> list[str]:
    paths = [*json.loads(options.get("paths", "[]"))]
    if "path" in options:
        paths.append(options["path"])
    if not paths:
        raise TraceError("causewire source", None, "no path to load from")
    return [absolute(path.removeprefix("file:") if "://" not in path else path) for path in paths]


class _Reader(DataSourceReader):
    def __init__(self, kind: str, show: str, options: Mapping[str, str]) -> None:
        self._kind, self._show, self._options = kind, show, dict(options)
        self._files = [str(file) for path in _paths(options) for file in expand(path)]
        if kind == "table":
            mapper(self._options.get("columns", ""))  # raises now if it is wrong
        self._span_options = _span_options(self._options)

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
            yield from selected(batches_of_rows(rows), self._show)
            return
        for file in partition.value:
            yield from selected(self._read_file(file), self._show)

    def _read_file(self, file: str) -> Iterator[pa.RecordBatch]:
        options = self._options
        if self._kind == "shiviz":
            pattern, delimiter = options.get("pattern", PATTERN), options.get("delimiter")
            between = DELIMITER if delimiter is None else delimiter or None
            return read_log(file, pattern, between, options.get("run"))
        if self._kind == "table":
            return read_table(file, mapper(options["columns"]))
        return read_trace_file(file)
