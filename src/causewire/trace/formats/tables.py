"""Any table, with a mapping that says which column is what.

    {"process": "host", "seq": "n", "time_ns": "ts",
     "kind": {"column": "op", "values": {"PUB": "send", "SUB": "deliver"}},
     "origin": "sender", "mid": "number",
     "peers": {"column": "to", "split": ","},
     "run": {"value": "production"}}

For each column of a trace: the name of a column; or an object with `column`, and
what is done to it: `values` translates (what is not in it stays as it is),
`split` makes a list of a text; or `value`, the same for all rows. What is not
named is missing. Numbers may come as text, and `time_ns` as a date (ISO 8601, or a
timestamp of Parquet; without a zone, it is UTC).
"""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple, TextIO

import pyarrow as pa
import pyarrow.parquet as pq

from ..schema import NAMES, TraceError
from ..storage import locate, open_binary, source_of
from .rows import Refused, Row, batches_of_rows, event_of, shown
from .traces import fields_of, parquet_rows, the_rest

__all__ = ["Mapper", "mapped", "mapper", "read_table", "table_rows"]

_NUMBERS = ("seq", "time_ns", "lamport", "mid", "payload_bytes", "metadata_bytes")
_DATE = re.compile(r"\d{4}-?\d\d-?\d\d[T ]")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_KEYS = {"column", "values", "split", "value"}


class Mapper(NamedTuple):
    """Makes the columns of a trace from a row of a table."""

    parts: Mapping[str, Callable[[Mapping[str, Any]], Any]]
    columns: tuple[str, ...]
    """The columns of the table that it uses."""

    def __call__(self, row: Mapping[str, Any]) -> dict[str, Any]:
        """Return the columns of a trace."""
        return {name: part(row) for name, part in self.parts.items()}

    def problem(self, header: Sequence[str]) -> str:
        """Return what is wrong with a table that has these columns; nothing, if all are there."""
        missing = [name for name in self.columns if name not in header]
        if not missing:
            return ""
        have = ", ".join(header[:8]) + (", ..." if len(header) > 8 else "")
        return f"no column {', '.join(map(repr, missing))} (it has {have})"


def mapper(mapping: str | Mapping[str, Any]) -> Mapper:
    """The function that a mapping describes; `TraceError` if it is none.

    Raises:
        TraceError: The mapping is malformed.
    """
    if isinstance(mapping, str):
        try:
            mapping = json.loads(mapping)
        except ValueError as error:
            raise TraceError("column mapping", None, f"not JSON: {error}") from None
    if not isinstance(mapping, Mapping) or not mapping:
        raise TraceError("column mapping", None, "must be an object: column of a trace -> column")
    parts = {name: _part(name, how) for name, how in mapping.items()}
    used = [how if isinstance(how, str) else how.get("column") for how in mapping.values()]
    return Mapper(parts, tuple(dict.fromkeys(name for name in used if name is not None)))


def _part(name: str, how: Any) -> Callable[[Mapping[str, Any]], Any]:
    if name not in NAMES:
        raise TraceError("column mapping", None, f"a trace has no column {name!r}")
    if isinstance(how, str):
        how = {"column": how}
    if not isinstance(how, Mapping) or not how or set(how) - _KEYS:
        keys = ", ".join(sorted(_KEYS))
        raise TraceError("column mapping", None, f"{name}: a name, or an object with {keys}")
    if "value" in how:
        constant = how["value"]
        return lambda row: constant
    if "column" not in how:
        raise TraceError("column mapping", None, f"{name}: which column?")
    column, values, split = how["column"], how.get("values", {}), how.get("split")
    if not isinstance(values, Mapping) or not (split is None or (isinstance(split, str) and split)):
        what = f"{name}: values must be an object, and split a text"
        raise TraceError("column mapping", None, what)

    def part(row: Mapping[str, Any]) -> Any:
        value = row.get(column)
        if values and value is not None:
            value = values.get(str(value), value)
        if split is not None and isinstance(value, str):
            value = [item.strip() for item in value.split(split) if item.strip()]
        if name == "time_ns":
            value = _nanoseconds(value)
        if name in _NUMBERS:
            return _number(value)
        if name == "peers" and isinstance(value, list):
            return [item if item is None else str(item) for item in value]
        return value if value is None or name == "peers" else str(value)

    return part


def _nanoseconds(value: Any) -> Any:
    """Return a date, also one in ISO 8601, as nanoseconds since 1970; anything else as it is."""
    if isinstance(value, str) and _DATE.match(value):
        try:
            value = datetime.fromisoformat(value)
        except ValueError:
            return value
    if not isinstance(value, datetime):
        return value
    if value.tzinfo is None:
        value = value.replace(tzinfo=UTC)
    since = value - _EPOCH
    seconds = since.days * 86_400 + since.seconds
    return seconds * 10**9 + since.microseconds * 1000 + int(getattr(value, "nanosecond", 0))


def _number(value: Any) -> Any:
    """An integer where there is one; what is none is told apart later."""
    if isinstance(value, str):
        try:
            return int(value)
        except ValueError:
            return value
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value


def mapped(
    rows: Iterable[Mapping[str, Any] | Refused], apply: Mapper, file: str, first: int = 1
) -> Iterator[Row | Refused]:
    """Yield the rows of a table as events, or as refused rows."""
    for number, row in enumerate(rows, first):
        if isinstance(row, Refused):
            yield row
            continue
        item = event_of(apply(row), file, number)
        yield item._replace(text=shown(row)) if isinstance(item, Refused) else item


def table_rows(file: str, apply: Mapper) -> Iterator[Row | Refused]:
    """Yield the rows of a file: Parquet, JSON lines, or CSV with a header.

    Parquet is known by its content; JSON lines by the name, or by how the file begins.
    """
    place = locate(file)
    try:
        with open_binary(place) as stream:
            start = stream.read(4096)
    except OSError as error:
        yield Refused(file, None, f"cannot be read: {error}")
        return
    text = ".json" in place.name or ".csv" in place.name
    if start.startswith(b"PAR1") and not text:
        read = _parquet
    elif ".json" in place.name or (start.lstrip()[:1] == b"{" and ".csv" not in place.name):
        read = _lines
    else:
        read = _csv
    yield from _to_the_end(file, read(file, apply))


def _to_the_end(file: str, rows: Iterator[Row | Refused]) -> Iterator[Row | Refused]:
    """Yield rows, and a refusal for the rest of a file that cannot be read to its end."""
    try:
        yield from rows
    except OSError as error:
        yield Refused(file, None, f"cannot be read to its end: {error}")


def read_table(file: str, apply: Mapper) -> Iterator[pa.RecordBatch]:
    """Yield the rows of `table_rows` as record batches."""
    return batches_of_rows(table_rows(file, apply))


def _parquet(file: str, apply: Mapper) -> Iterator[Row | Refused]:
    done = 0
    try:
        with pq.ParquetFile(source_of(locate(file))) as stream:
            if problem := apply.problem(stream.schema_arrow.names):
                yield Refused(file, None, problem)
                return
            for batch in stream.iter_batches(use_threads=False):
                yield from mapped(parquet_rows(batch, file, done + 1), apply, file, done + 1)
                done += batch.num_rows
    except (pa.ArrowException, OSError) as error:
        yield from the_rest(file, done, f"damaged: {error}")


def _lines(file: str, apply: Mapper) -> Iterator[Row | Refused]:
    with open_binary(locate(file)) as stream:
        for number, line in enumerate(stream, 1):
            if not line.isspace():
                yield from mapped([fields_of(line, file, number)], apply, file, number)


def _csv(file: str, apply: Mapper) -> Iterator[Row | Refused]:
    with (
        open_binary(locate(file)) as raw,
        io.TextIOWrapper(raw, newline="", encoding="utf-8-sig", errors="surrogateescape") as stream,
    ):
        yield from mapped(_records(file, stream, apply), apply, file)


def _records(file: str, stream: TextIO, apply: Mapper) -> Iterator[dict[str, Any] | Refused]:
    """The records of a CSV file: nothing is guessed, a field is a text, or missing if empty."""
    records = csv.reader(stream)
    header: list[str] = []
    number = 0
    while True:
        try:
            fields = next(records)
            "".join(fields).encode("utf-8")
            problem = ""
        except StopIteration:
            return
        except csv.Error as error:
            fields, problem = [str(error)], str(error)
        except UnicodeEncodeError:
            problem = "not UTF-8"
        if not fields:  # a blank line
            continue
        if not header:
            header = fields
            if not problem and (problem := apply.problem(header)):
                yield Refused(file, None, problem)
                return
            continue
        number += 1
        if not problem and len(fields) != len(header):
            problem = f"{len(fields)} fields, where the header has {len(header)}"
        if problem:
            yield Refused(file, number, problem, shown(",".join(fields)))
        else:
            yield {name: value or None for name, value in zip(header, fields, strict=True)}
