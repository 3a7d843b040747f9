"""The rows of a sweep: one for each run, made of its summary.

The columns follow `sim.Summary`, field by field, so that what a summary gains
the table gains: `latency` becomes `latency_mean_ns`, `latency_p99_ns` and so on,
`undelivered` becomes `undelivered_copies`, ... What the grid knows already (the
protocol, the seed, ...) is not repeated.
"""

from __future__ import annotations

import dataclasses
import types
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, get_args, get_origin, get_type_hints

from ...sim import Summary

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["DONE", "FAILED", "RESULTS", "arrow_schema", "ddl", "done", "failed"]

DONE = "done"
FAILED = "failed"

_IN_GRID = ("protocol", "workload", "processes", "seed")
_RENAMED = {"messages": "messages_sent"}
_TYPES: dict[object, str] = {str: "string", int: "bigint", float: "double", bool: "boolean"}


def _columns(cls: type, prefix: str = "") -> Iterator[tuple[str, str]]:
    hints = get_type_hints(cls)
    for field in dataclasses.fields(cls):
        if not prefix and field.name in _IN_GRID:
            continue
        hint = hints[field.name]
        if get_origin(hint) is types.UnionType:  # X | None
            (hint,) = (arm for arm in get_args(hint) if arm is not type(None))
        name = prefix + _RENAMED.get(field.name, field.name)
        if dataclasses.is_dataclass(hint):
            assert isinstance(hint, type)
            yield from _columns(hint, f"{name}_")
        elif get_origin(hint) is dict:
            yield name, "map<string,bigint>"
        elif get_origin(hint) is tuple:
            yield name, "array<string>"
        else:
            yield name, _TYPES[hint]


RESULTS: tuple[tuple[str, str], ...] = (
    ("run", "string"),
    ("status", "string"),
    ("error", "string"),
    *_columns(Summary),
)
"""Names and types of the columns. `status` is `done` or `failed`, `error` says why."""


def ddl(between: str = " ") -> str:
    """The columns as Spark writes a schema."""
    return ", ".join(f"{name}{between}{kind}" for name, kind in RESULTS)


def arrow_schema() -> pa.Schema:
    """The columns for pyarrow."""
    import pyarrow as pa

    kinds = {
        "string": pa.string(),
        "bigint": pa.int64(),
        "double": pa.float64(),
        "boolean": pa.bool_(),
        "map<string,bigint>": pa.map_(pa.string(), pa.int64()),
        "array<string>": pa.list_(pa.string()),
    }
    return pa.schema([(name, kinds[kind]) for name, kind in RESULTS])


def done(run: str, summary: Summary) -> dict[str, Any]:
    """The row of a run that came to its end."""
    row: dict[str, Any] = {"run": run, "status": DONE, "error": None}

    def fill(prefix: str, values: dict[str, Any]) -> None:
        for key, value in values.items():
            name = prefix + _RENAMED.get(key, key)
            if isinstance(value, dict) and key != "packets":
                fill(f"{name}_", value)
            else:
                row[name] = value

    fill("", summary.to_dict())
    return {name: row.get(name) for name, _ in RESULTS}


def failed(run: str, error: str) -> dict[str, Any]:
    """The row of a run that did not."""
    row: dict[str, Any] = {name: None for name, _ in RESULTS}
    return row | {"run": run, "status": FAILED, "error": error}
