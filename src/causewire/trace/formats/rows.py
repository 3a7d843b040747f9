"""What a source gives: events, and rows that are no events, with the reason why."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from ..jsonl import checked_event
from ..reader import plain
from ..schema import NAMES, Event, TraceError, arrow_schema
from ..storage import absolute

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = [
    "NO_SPANS",
    "Refused",
    "Row",
    "batches_of_rows",
    "event_of",
    "good_batch",
    "unread_files",
]

NO_SPANS = "not a file of spans, but "
"""How the reason begins why a file of another known format was refused."""

_ROWS = 1 << 14
_TEXT = 200


class Refused(NamedTuple):
    """A row that cannot be understood, or a file.

    `row` is None if it is a whole file, or the rest of one that cannot be read to its end.
    """

    file: str
    row: int | None
    reason: str
    text: str | None = None


class Row(NamedTuple):
    """An event, and where it comes from."""

    file: str
    row: int | None
    event: Event


def schema() -> pa.Schema:
    """Return the Arrow schema of rows and refused rows in one table."""
    import pyarrow as pa

    fields = {field.name: field.type for field in arrow_schema()}
    fields["peers"] = pa.list_(pa.field("element", pa.string()))
    return pa.schema(
        [
            *(pa.field(name, kind) for name, kind in fields.items()),
            pa.field("file", pa.string()),
            pa.field("row", pa.int64()),
            pa.field("reason", pa.string()),
            pa.field("text", pa.string()),
        ]
    )


def unread_files(
    quarantine: Iterable[Refused], understood: Collection[str], paths: Iterable[str]
) -> list[str]:
    """Return the files that could not be read, or not to their end, each with the reason.

    Files of another known format are not among them, if they were found in a directory.

    Args:
        quarantine: What was refused.
        understood: The files of which something was understood.
        paths: The files and directories that were asked for.
    """
    reasons: dict[str, str] = {}
    named = set(map(absolute, paths))
    for one in quarantine:
        if one.reason.startswith(NO_SPANS) and absolute(one.file) not in named:
            continue
        if one.row is None or one.file not in understood:
            reasons.setdefault(one.file, one.reason)
    return [f"{file}: {reason}" for file, reason in sorted(reasons.items())]


def event_of(fields: Mapping[str, Any], file: str, row: int) -> Row | Refused:
    """An event from its fields, or what is wrong with them."""
    try:
        return Row(file, row, checked_event(dict(fields), Path(file), row))
    except TraceError as error:
        return Refused(file, row, error.rule, shown(fields))


def shown(what: Any) -> str:
    """How it begins."""
    text = what.decode("utf-8", "replace") if isinstance(what, bytes) else str(what)
    return text[:_TEXT].rstrip("\n").encode("utf-8", "replace").decode("utf-8")


def batches_of_rows(rows: Iterable[Row | Refused]) -> Iterator[pa.RecordBatch]:
    """Yield the rows as record batches of `schema`."""
    some: list[tuple[Any, ...]] = []
    nothing = (None,) * len(NAMES)
    for item in rows:
        if isinstance(item, Row):
            some.append((*item.event, item.file, item.row, None, None))
        else:
            some.append((*nothing, *item))
        if len(some) == _ROWS:
            yield _batch(some)
            some = []
    if some:
        yield _batch(some)


def _batch(rows: list[tuple[Any, ...]]) -> pa.RecordBatch:
    import pyarrow as pa

    try:
        return _arrays(rows)
    except (pa.ArrowException, ValueError, OverflowError):
        return _arrays([_storable(row) for row in rows])


def _storable(row: tuple[Any, ...]) -> tuple[Any, ...]:
    """A row, or why it cannot be in a table: half a surrogate pair, a time that is too large."""
    import pyarrow as pa

    try:
        _arrays([row])
    except (pa.ArrowException, ValueError, OverflowError) as error:
        file, number = row[len(NAMES) : len(NAMES) + 2]
        about = shown(row[: len(NAMES)])
        return (*(None,) * len(NAMES), shown(file), number, shown(error), about)
    return row


def _arrays(rows: list[tuple[Any, ...]]) -> pa.RecordBatch:
    import pyarrow as pa

    columns = zip(*rows, strict=True)
    arrays = [pa.array(c, field.type) for c, field in zip(columns, schema(), strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=schema())


def good_batch(batch: pa.RecordBatch, file: str, row: int) -> pa.RecordBatch:
    """A batch of a trace, checked already, as one of `schema`."""
    import pyarrow as pa

    rows = batch.num_rows
    arrays = [
        *(array.cast(schema().field(k).type) for k, array in enumerate(plain(batch).columns)),
        pa.array([file], pa.string()).take(pa.array([0] * rows, pa.int32())),
        pa.array(range(row, row + rows), pa.int64()),
        pa.nulls(rows, pa.string()),
        pa.nulls(rows, pa.string()),
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=schema())
