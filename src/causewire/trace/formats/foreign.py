"""One way in for every format: what a file is, its rows, and what could not be understood.

    read = read_foreign(["spans.json.gz"])          # format by content
    check(read.trace), read.quarantine, read.notes

The pieces are used by both engines: `spans_of_file` reads the spans of one file, and
`spans.rows_of_run` makes the rows of one run of them, here in memory and on Spark after
a shuffle by run.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..reader import Trace, trace_of
from ..schema import Event, TraceError, because
from ..storage import Location, expand, locate, read_bytes
from . import jaeger, otlp, zipkin
from .documents import documents, flattened
from .names import SPAN_FORMATS
from .rows import NO_SPANS, Refused, Row, unread_files
from .spans import Span, SpanOptions, rows_of_run, runs_of

__all__ = [
    "Foreign",
    "detect",
    "format_of_paths",
    "name_of",
    "read_foreign",
    "read_rows",
    "spans_of_file",
]

_START = 1 << 16
_OTHERS = ("trace", "shiviz")


@dataclass
class Foreign:
    """The events of some files, and what else there is to say about them."""

    trace: Trace
    quarantine: list[Refused] = field(default_factory=list)
    notes: Counter[str] = field(default_factory=Counter)
    spans: bool = False
    """Whether the rows are made of spans: then each instance has a clock of its own."""
    inferred: bool = False
    """Whether messages were inferred from vector clocks, with which they agree by construction."""
    unread: list[str] = field(default_factory=list)
    """The files of which nothing, or not everything, could be read, each with the reason."""

    @property
    def refused(self) -> Counter[str]:
        """How many rows and files were refused, by reason."""
        return Counter(refused.reason for refused in self.quarantine)


# -- what is it? --------------------------------------------------------------------------


def detect(location: Location) -> str:
    """Return the format of a file, by its content: `json` if it has that of no format.

    Raises:
        TraceError: The file cannot be read.
    """
    return detect_bytes(_content(location))


def _content(location: Location) -> bytes:
    try:
        return otlp.unframed(read_bytes(location))
    except OSError as error:
        raise TraceError(location, None, f"cannot be read: {because(error)}") from None


def format_of_paths(paths: Sequence[str]) -> str:
    """Return the format of some files: one of `SPAN_FORMATS`, or `trace` for anything else.

    Args:
        paths: Files, directories, patterns and URLs. The first file that can be recognised
            decides, files called `.json` or the like before others; a directory may have
            files in it that are something else.

    Raises:
        TraceError: A path does not exist, no file can be read, or all are empty.
    """
    files = [file for path in paths for file in expand(path)]
    json_first = sorted(files, key=lambda file: ".json" not in file.name)
    parquet = any(file.name.endswith(".parquet") for file in files)
    failed: TraceError | None = None
    empty = 0
    for file in json_first:
        is_json = ".json" in file.name
        if file.name.endswith(".parquet") or (parquet and not is_json):
            continue
        try:
            data = _content(file)
        except TraceError as error:
            failed = failed or error
            continue
        found = detect_bytes(data)
        if found in SPAN_FORMATS:
            return found
        if ".jsonl" in file.name:
            return "trace"
        empty += not data.strip()
    if empty and empty == len(files):
        raise TraceError(files[0], None, "empty")
    if failed is not None and not parquet:
        raise failed
    return "trace"


def detect_bytes(data: bytes) -> str:
    """Return the format of this content."""
    if data.startswith(b"PAR1"):
        return "trace"
    if _is_json(data):
        return _detect_json(data)
    return "shiviz" if is_text(data) else "otlp"


def _is_json(data: bytes) -> bool:
    return data[:_START].lstrip()[:1] in (b"{", b"[")


def _has_json(data: bytes) -> bool:
    """Whether a line begins as a JSON document, whatever is before it."""
    return _is_json(data) or re.search(rb"^[ \t]*[{\[]", data, re.MULTILINE) is not None


def is_text(data: bytes) -> bool:
    """Whether the content begins like a text in UTF-8."""
    start = data[:_START]
    try:
        start.decode("utf-8")
    except UnicodeDecodeError as error:
        if error.start < len(start) - 4:
            return False
    return not any(byte < 9 for byte in start)


def _detect_json(data: bytes) -> str:
    first = data.lstrip().partition(b"\n")[0]
    for text in (first, data):
        try:
            value: Any = json.loads(text)
        except (ValueError, RecursionError):
            continue
        return _detect_value(value)
    return "json"


def _detect_value(value: Any) -> str:
    value = next((item for item in flattened([value]) if isinstance(item, dict)), {})
    if otlp.is_document(value):
        return "otlp"
    if "hits" in value or isinstance(value.get("_source"), dict):
        return "jaeger"
    if "spans" in value or "traceID" in value or isinstance(value.get("data"), list):
        return "jaeger"
    if "localEndpoint" in value or {"traceId", "id"} <= value.keys():
        return "zipkin"
    if {"trace_id", "span_id", "process"} <= value.keys() or "spanId" in value:
        return "jaeger"
    return "trace" if {"process", "seq", "kind"} <= value.keys() else "json"


# -- spans --------------------------------------------------------------------------------


def spans_of_file(file: str, kind: str) -> Iterator[Span | Refused]:
    """Yield the spans of one file, and what it refuses."""
    try:
        data = _content(locate(file))
    except TraceError as error:
        yield Refused(file, None, error.reason)
        return
    if kind == "auto" or not _has_json(data):
        there = detect_bytes(data)
        if kind == "auto" or there in _OTHERS:
            kind = there
    if kind == "jaeger":
        found: Iterable[Span | Refused] = jaeger.read_json(file, documents(data))
    elif kind == "zipkin":
        found = zipkin.read_json(file, documents(data))
    elif kind != "otlp":
        found = [Refused(file, None, _other(data, kind))]
    elif _is_json(data) or is_text(data):
        found = otlp.read_json(file, documents(data))
    else:
        found = otlp.read_protobuf(file, data)
    some = False
    for item in found:
        some = True
        yield item
    if not some:
        yield Refused(file, None, "no spans")


def _other(data: bytes, kind: str) -> str:
    """Return why a file is not one of spans."""
    if not data.strip():
        return "empty"
    if kind in _OTHERS:
        return f"{NO_SPANS}{kind}"
    if any(isinstance(document, bytes) for document in documents(data)):
        return "JSON, damaged or cut short"
    return "JSON, but no spans in a format that is known"


def read_rows(
    files: Sequence[str],
    kind: str,
    options: SpanOptions,
    notes: Counter[str],
    progress: Callable[[int], None] | None = None,
) -> Iterator[Row | Refused]:
    """Yield the rows of files of spans, taken together, in memory."""
    runs: dict[str, list[Span]] = {}
    read = 0
    for file in files:
        for item in spans_of_file(file, kind):
            read += 1
            if progress is not None:
                progress(read)
            if isinstance(item, Refused):
                yield item
            else:
                for run in runs_of(item, options):
                    runs.setdefault(run, []).append(item)
    for run, spans in runs.items():
        yield from rows_of_run(run, spans, options, notes)


# -- all of them ----------------------------------------------------------------------------


def read_foreign(
    paths: Sequence[str],
    kind: str = "auto",
    *,
    options: SpanOptions | None = None,
    columns: str | None = None,
    pattern: str | None = None,
    delimiter: str | None = None,
    progress: Callable[[int], None] | None = None,
    reading: Callable[[int, int], None] | None = None,
) -> Foreign:
    """Read files of spans, tables or logs, in memory.

    Args:
        paths: Files, directories, patterns and URLs.
        kind: One of `SPAN_FORMATS`, `table`, `shiviz`, or `auto` for spans of any format.
        options: What is a process and what is a run, for spans.
        columns: The mapping of the columns, as JSON, for tables.
        pattern: The expression for the events of a log; by default that of ShiViz.
        delimiter: The expression for what separates the runs of a log; empty for nothing.
        progress: Called with the number of spans or rows read so far.
        reading: Called with the characters of a log that were read so far, and all.

    Raises:
        TraceError: A path does not exist, the mapping or an expression is wrong, a log is
            inconsistent, or nothing at all could be understood.
    """
    files = [str(file) for path in paths for file in expand(path)]
    if not files:
        raise TraceError(paths[0], None, "no files")
    notes: Counter[str] = Counter()
    if kind == "table":
        from .tables import mapper, table_rows

        apply = mapper(columns or "")
        rows: Iterable[Row | Refused] = (row for file in files for row in table_rows(file, apply))
    elif kind == "shiviz":
        rows = _log_rows(files, pattern, delimiter, reading)
    else:
        rows = read_rows(files, kind, options or SpanOptions(), notes, progress)
    events: list[Event] = []
    quarantine: list[Refused] = []
    understood: set[str] = set()
    inferred = False
    for row in rows:
        if isinstance(row, Refused):
            quarantine.append(row)
        else:
            events.append(row.event)
            understood.add(row.file)
            inferred |= row.row is None
            if progress is not None and kind == "table":
                progress(len(events))
    if not events:
        first = quarantine[0] if quarantine else Refused(str(paths[0]), None, "no rows")
        raise TraceError(first.file, first.row, first.reason)
    return Foreign(
        trace_of(events, name_of(paths)),
        quarantine,
        Counter({k: n for k, n in notes.items() if n}),
        spans=kind not in ("table", "shiviz"),
        inferred=inferred,
        unread=unread_files(quarantine, understood, paths),
    )


def name_of(paths: Sequence[str]) -> str:
    """Return what a trace from these paths is called in errors."""
    return str(paths[0]) if len(paths) == 1 else f"{paths[0]} and {len(paths) - 1} more"


def _log_rows(
    files: Sequence[str],
    pattern: str | None,
    delimiter: str | None,
    progress: Callable[[int, int], None] | None,
) -> Iterator[Row | Refused]:
    from ..shiviz import DELIMITER, PATTERN
    from .shiviz_log import consistent, log_rows

    expression = PATTERN if pattern is None else pattern
    between = DELIMITER if delimiter is None else delimiter or None
    for file in files:
        yield from map(consistent, log_rows(file, expression, between, progress=progress))
