"""Any table, with a mapping that says which column is what.

    {"process": "host", "seq": "n", "time_ns": "ts",
     "kind": {"column": "op", "values": {"PUB": "send", "SUB": "deliver"}},
     "origin": "sender", "mid": "number",
     "peers": {"column": "to", "split": ","},
     "run": {"value": "production"}}

For each column of a trace: the name of a column; or an object with `column`, and
what is done to it: `values` translates (what is not in it stays as it is),
`split` makes a list of a text; or `value`, the same for all rows. What is not
named is missing. Numbers may come as text.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.json
import pyarrow.parquet as pq

from ...trace import NAMES, TraceError
from .rows import Refused, Row, batches_of_rows, event_of, shown

__all__ = ["Mapper", "mapped", "read_table"]

_NUMBERS = ("seq", "time_ns", "lamport", "mid", "payload_bytes", "metadata_bytes")
_KEYS = {"column", "values", "split", "value"}

Mapper = Callable[[Mapping[str, Any]], dict[str, Any]]


def mapper(mapping: str | Mapping[str, Any]) -> Mapper:
    """The function that a mapping describes; `TraceError` if it is none."""
    if isinstance(mapping, str):
        try:
            mapping = json.loads(mapping)
        except ValueError as error:
            raise TraceError("column mapping", None, f"not JSON: {error}") from None
    if not isinstance(mapping, Mapping) or not mapping:
        raise TraceError("column mapping", None, "must be an object: column of a trace -> column")
    parts = {name: _part(name, how) for name, how in mapping.items()}

    def apply(row: Mapping[str, Any]) -> dict[str, Any]:
        return {name: part(row) for name, part in parts.items()}

    return apply


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

    def part(row: Mapping[str, Any]) -> Any:
        value = row.get(column)
        if values and value is not None:
            value = values.get(str(value), value)
        if split is not None and isinstance(value, str):
            value = [item.strip() for item in value.split(split) if item.strip()]
        if name in _NUMBERS:
            return _number(value)
        if value is None or isinstance(value, (str, list)):
            return value
        return [str(item) for item in value] if name == "peers" else str(value)

    return part


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
    rows: Iterator[Mapping[str, Any]], apply: Mapper, file: str, first: int = 1
) -> Iterator[Row | Refused]:
    """The rows of a table as events, and those that are none."""
    for number, row in enumerate(rows, first):
        item = event_of(apply(row), file, number)
        yield item._replace(text=shown(row)) if isinstance(item, Refused) else item


def read_table(file: str, apply: Mapper) -> Iterator[pa.RecordBatch]:
    """A file: Parquet, CSV, or JSON lines, by its name."""
    return batches_of_rows(_rows(file, apply))


def _rows(file: str, apply: Mapper) -> Iterator[Row | Refused]:
    done = 0
    try:
        for batch in _batches(file):
            yield from mapped(iter(batch.to_pylist()), apply, file, done + 1)
            done += batch.num_rows
    except (pa.ArrowException, OSError) as error:
        yield Refused(file, None, f"cannot be read beyond row {done}: {error}")


def _batches(file: str) -> Iterator[pa.RecordBatch]:
    suffix = Path(file).suffix
    if suffix == ".parquet":
        with pq.ParquetFile(file) as stream:
            yield from stream.iter_batches()
    elif suffix == ".csv":
        nothing = pyarrow.csv.ConvertOptions(null_values=[""], strings_can_be_null=True)
        yield from pyarrow.csv.open_csv(file, convert_options=nothing)
    else:
        yield from pyarrow.json.read_json(file).to_batches()
