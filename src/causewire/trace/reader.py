"""Reading traces: files of either format as columns, or as events.

`open_trace` looks at every file at once, so that a missing file, a foreign one
or a wrong column is found before work begins; rows are read, and checked, as
they are asked for, a batch at a time. A trace can be read again from its start
(the check does so to explain what it found).

Columns are for programs: Arrow record batches in which names are dictionary
codes. Events are for people, and need pyarrow only for Parquet.
"""

from __future__ import annotations

import json
import os
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

from .jsonl import read_jsonl
from .schema import COLUMNS, DELIVER, NAMES, REQUIRED, SEND, Event, TraceError, arrow_schema
from .storage import Location, expand, locate, open_binary, plain_file

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = [
    "BATCH_ROWS",
    "Trace",
    "TraceBatch",
    "accepted",
    "check_schema",
    "events_of",
    "open_trace",
    "plain",
    "trace_files",
    "trace_of",
]

BATCH_ROWS = 1 << 16
"""Rows in a batch, at most."""

LINES = (".jsonl", ".jsonl.gz", ".jsonl.zst")
"""How the names of files with JSON lines end."""

_EVENT = {"process", "seq", "kind"}
"""What every row of a trace has, and the lines of no other format that is known."""

_JSON_BLOCK = 1 << 23  # bytes that Arrow parses at once
_SAMPLE = 1 << 16  # bytes from which the number of lines is estimated


class TraceBatch(NamedTuple):
    """Some rows of a file, as columns; `row` is the number of the first, from 1."""

    file: str
    row: int
    columns: pa.RecordBatch


class Trace(ABC):
    """A trace that can be read, any number of times."""

    name: str
    """What to call it in a message."""

    @abstractmethod
    def events(self) -> Iterator[Event]:
        """The rows as they are stored."""

    @abstractmethod
    def batches(self, columns: Sequence[str] = NAMES) -> Iterator[TraceBatch]:
        """The named columns, in the order of the schema, as they are stored.

        Strings come dictionary-encoded, numbers as int64, `peers` as lists of
        dictionary-encoded strings. `time_ns`, `lamport` and the sizes are
        absent if the file lacks the column.
        """

    def about_rows(self) -> int | None:
        """Return about how many rows there are, or None if that takes reading them."""
        return None


class _Files(Trace):
    def __init__(self, name: str, files: Sequence[Location], tolerate_cut: bool) -> None:
        self.name = name
        self.files = tuple(files)
        self._tolerate_cut = tolerate_cut

    def events(self) -> Iterator[Event]:
        for path in self.files:
            if path.name.endswith(".parquet"):
                for batch in _parquet_batches(path, NAMES):
                    yield from events_of(batch.columns)
            else:
                yield from read_jsonl(path, tolerate_cut=self._tolerate_cut)

    def batches(self, columns: Sequence[str] = NAMES) -> Iterator[TraceBatch]:
        wanted = _in_order(columns)
        for path in self.files:
            if path.name.endswith(".parquet"):
                yield from _parquet_batches(path, wanted)
            else:
                yield from _jsonl_batches(path, wanted, self._tolerate_cut)

    def about_rows(self) -> int | None:
        rows = [_about_rows(path) for path in self.files]
        known = [number for number in rows if number is not None]
        return sum(known) if len(known) == len(rows) else None


class _Memory(Trace):
    def __init__(self, name: str, events: Iterable[Event]) -> None:
        self.name = name
        self._events = tuple(events)

    def events(self) -> Iterator[Event]:
        return iter(self._events)

    def batches(self, columns: Sequence[str] = NAMES) -> Iterator[TraceBatch]:
        return _batches_of(self.name, iter(self._events), _in_order(columns))

    def about_rows(self) -> int:
        return len(self._events)


def trace_of(events: Iterable[Event], name: str = "<events>") -> Trace:
    """Events in memory as a trace; they are taken as well formed."""
    return _Memory(name, events)


def open_trace(*paths: str | os.PathLike[str], tolerate_cut: bool = False) -> Trace:
    """The trace in these files and directories, taken together.

    Rows of one run may be spread over files (one for each live node, say):
    a run is known by its name, not by its file. In a directory, all `.parquet`
    and `.jsonl` files count, and others that begin with a row as a JSON line
    (`x.jsonl.1`, `x.gz`), those below it as well, by their names in order;
    names that begin with a dot or an underscore do not. `tolerate_cut` accepts
    JSON lines whose last line is incomplete.
    """
    files = trace_files(*paths)
    name = os.fspath(paths[0])
    if len(paths) > 1:
        name += f" and {len(paths) - 1} more"
    return _Files(name, files, tolerate_cut)


def trace_files(*paths: str | os.PathLike[str]) -> list[Location]:
    """Return the files of a trace, as `open_trace` would read them.

    Raises:
        TraceError: A path does not exist, has another format, or lacks a column.
    """
    if not paths:
        raise ValueError("no trace to open")
    files = [file for path in paths for file in _files_of(path)]
    for file in files:
        if file.name.endswith(".parquet"):
            from .parquet import parquet_schema

            check_schema(file, parquet_schema(file))
    return files


def other_files(*paths: str | os.PathLike[str]) -> list[Location]:
    """Return the files in directories that `open_trace` passes over, because of their names.

    Raises:
        TraceError: A path does not exist.
    """
    return [file for path in paths for file in expand(path) if not _is_trace(file)]


def _files_of(path: str | os.PathLike[str]) -> list[Location]:
    found = expand(path)
    if len(found) == 1 and str(found[0]) == str(locate(path)):
        if not _is_trace(found[0]):
            raise TraceError(path, None, "neither .parquet nor .jsonl nor a directory of them")
        return found
    traces = [file for file in found if _is_trace(file)]
    if not traces:
        raise TraceError(path, None, "a directory without .parquet or .jsonl files")
    return traces


def _is_trace(file: Location) -> bool:
    return file.name.endswith((".parquet", *LINES)) or _has_events(file)


def _has_events(file: Location) -> bool:
    """Whether a file with another name, `run.jsonl.1` say, begins with a row as a JSON line."""
    try:
        with open_binary(file) as stream:
            line = stream.readline(_SAMPLE)
    except OSError:
        return False  # it is counted as another file
    try:
        row = json.loads(line) if line.lstrip().startswith(b"{") else None
    except (ValueError, RecursionError):
        return False
    return isinstance(row, dict) and row.keys() >= _EVENT


def _about_rows(path: Location) -> int | None:
    """Return the rows that the footer of a Parquet file states, or that JSON lines seem to have."""
    if path.name.endswith(".parquet"):
        from .parquet import row_count

        return row_count(path)
    if not plain_file(path):
        return None
    size = path.stat().st_size
    with open_binary(path) as file:
        start = file.read(_SAMPLE)
    lines = start.count(b"\n")
    return lines * size // len(start) if lines else None


def _in_order(columns: Sequence[str]) -> list[str]:
    unknown = set(columns) - set(NAMES)
    if unknown:
        raise ValueError(f"no such columns: {sorted(unknown)}")
    return [name for name in NAMES if name in columns]


# -- Parquet ----------------------------------------------------------------------


def check_schema(path: Location, schema: pa.Schema) -> None:
    """Raise `TraceError` if a column is missing or has a type that cannot be converted.

    Raises:
        TraceError: A column is missing or has another type.
    """
    import pyarrow.types as t

    from .parquet import partitions_of

    def text(a: pa.DataType) -> bool:
        a = a.value_type if t.is_dictionary(a) else a
        return bool(t.is_string(a) or t.is_large_string(a) or t.is_string_view(a))

    named = {*schema.names, *partitions_of(path)}
    missing = [c.name for c in COLUMNS if not c.may_be_missing and c.name not in named]
    if missing:
        have = ", ".join(schema.names[:8]) + (", …" if len(schema.names) > 8 else "")
        raise TraceError(path, None, f"no column {', '.join(missing)} (it has {have})")
    for column in COLUMNS:
        if column.name not in schema.names:
            continue
        found = schema.field(column.name).type
        if column.type == "string":
            fine = text(found)
        elif column.type == "list<string>":
            fine = (t.is_list(found) or t.is_large_list(found)) and text(found.value_type)
        else:
            fine = t.is_integer(found) or (column.name == "time_ns" and t.is_timestamp(found))
        if not fine and not (t.is_null(found) and not column.required):
            raise TraceError(path, None, f"column {column.name} is {found}, not {column.type}")


def _parquet_batches(path: Location, columns: Sequence[str]) -> Iterator[TraceBatch]:
    from .parquet import read_parquet

    row = 1
    for batch in read_parquet(path, columns, BATCH_ROWS):
        batch = accepted(batch, path, row)
        yield TraceBatch(str(path), row, batch)
        row += batch.num_rows


def accepted(batch: pa.RecordBatch, path: object, row: int) -> pa.RecordBatch:
    """Rows from outside, the first of them `row`, with our types, if they can be of a trace.

    Whoever reads files takes them through here: what is found here is relied on later.
    """
    _check_codes(batch, path, row)
    batch = _ours(batch, path, row)
    _check_rows(batch, path, row)
    return batch


def _types() -> dict[str, pa.DataType]:
    import pyarrow as pa

    text = pa.dictionary(pa.int32(), pa.string())
    of = {"string": text, "list<string>": pa.list_(pa.field("element", text))}
    return {c.name: of.get(c.type, pa.int64()) for c in COLUMNS}


def _ours(batch: pa.RecordBatch, path: object, row: int) -> pa.RecordBatch:
    """The same batch with our types, whatever the widths in the file."""
    import pyarrow as pa

    types = _types()
    arrays = []
    for name, array in zip(batch.schema.names, batch.columns, strict=True):
        try:
            arrays.append(_cast(array, types[name]))
        except pa.ArrowException as error:
            raise TraceError(path, row, f"in column {name}: {error}") from None
    return pa.record_batch(arrays, names=batch.schema.names)


def _cast(array: pa.Array, wanted: pa.DataType) -> pa.Array:
    import pyarrow as pa

    if array.type == wanted:
        return array
    if pa.types.is_dictionary(wanted):
        if pa.types.is_dictionary(array.type):
            array = array.dictionary_decode()
        return array.cast(pa.string()).dictionary_encode()
    if pa.types.is_list(wanted) and not pa.types.is_null(array.type):
        if pa.types.is_large_list(array.type):
            array = array.cast(pa.list_(array.type.value_field))
        if array.offset:
            array = pa.concat_arrays([array])  # a copy that begins at its first value
        values = _cast(array.values, wanted.value_type)
        mask = array.is_null() if array.null_count else None
        return pa.ListArray.from_arrays(array.offsets, values, mask=mask)
    if pa.types.is_timestamp(array.type):
        array = array.cast(pa.timestamp("ns"))
    return array.cast(wanted)


def _check_codes(batch: pa.RecordBatch, path: object, row: int) -> None:
    """Dictionary codes beyond the dictionary, and names that are not text.

    Arrow takes both on trust, and compiled code would, too.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    for name, array in zip(batch.schema.names, batch.columns, strict=True):
        if name == "peers" and not pa.types.is_null(array.type):
            array = array.values
        if not pa.types.is_dictionary(array.type):
            continue
        codes = pc.min_max(array.indices)
        least, most = codes["min"].as_py(), codes["max"].as_py()
        try:
            array.dictionary.validate(full=True)
        except pa.ArrowInvalid:
            raise TraceError(path, row, f"in column {name}: damaged from here on") from None
        if most is not None and not 0 <= least <= most < len(array.dictionary):
            raise TraceError(path, row, f"in column {name}: damaged from here on")


def _check_rows(batch: pa.RecordBatch, path: object, row: int) -> None:
    """Values that no trace can have; cheap where all is well."""
    import pyarrow.compute as pc

    names = set(batch.schema.names)

    def refuse(mask: pa.Array, reason: str) -> None:
        at = pc.index(mask, True).as_py()
        if at >= 0:
            raise TraceError(path, row + at, reason)

    for name in REQUIRED:
        if name in names and batch[name].null_count:
            refuse(batch[name].is_null(), f"has no {name}")
    for name in ("seq", "mid"):
        if name in names:
            least = pc.min(batch[name]).as_py()
            if least is not None and least < 0:
                refuse(pc.less(batch[name], 0).fill_null(False), f"{name} is negative")
    if not names >= {"kind", "origin", "mid", "peers"}:
        return
    if batch["origin"].null_count or batch["mid"].null_count:
        for kind in (SEND, DELIVER):
            absent = pc.or_(batch["origin"].is_null(), batch["mid"].is_null())
            refuse(
                pc.and_(pc.equal(batch["kind"], kind), absent),
                f"a {kind} row needs origin and mid",
            )
    if batch["peers"].null_count:
        refuse(
            pc.and_(pc.equal(batch["kind"], SEND), batch["peers"].is_null()),
            "a send row needs peers, its destinations",
        )
    if batch["peers"].values.null_count:
        raise TraceError(path, row, "a name in peers is missing, here or soon after")


def plain(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return the batch without dictionaries, and with all columns of a trace."""
    import pyarrow as pa

    arrays = []
    for field in arrow_schema():
        if field.name not in batch.schema.names:
            arrays.append(pa.nulls(batch.num_rows, field.type))
            continue
        array = batch[field.name]
        if pa.types.is_dictionary(array.type):
            array = array.dictionary_decode()
        elif pa.types.is_list(array.type):
            values = array.values.dictionary_decode()
            mask = array.is_null() if array.null_count else None
            array = pa.ListArray.from_arrays(array.offsets, values, mask=mask)
        arrays.append(array.cast(field.type))
    return pa.RecordBatch.from_arrays(arrays, schema=arrow_schema())


def events_of(batch: pa.RecordBatch) -> Iterator[Event]:
    """Return the rows of a batch as events."""
    empty = [None] * batch.num_rows
    columns = [batch[name].to_pylist() if name in batch.schema.names else empty for name in NAMES]
    peers = NAMES.index("peers")
    columns[peers] = [tuple(names or ()) for names in columns[peers]]
    return map(Event._make, zip(*columns, strict=True))


# -- JSON lines, and events in memory ---------------------------------------------


def _jsonl_batches(
    path: Location, columns: Sequence[str], tolerate_cut: bool
) -> Iterator[TraceBatch]:
    """Rows parsed by Arrow, as long as nothing is wrong with them.

    Then by our own reader, which is slower, and can tell what it is.
    """
    import pyarrow as pa
    import pyarrow.json

    row = 1
    try:
        reader = pyarrow.json.open_json(
            path if plain_file(path) else open_binary(path),
            pyarrow.json.ReadOptions(block_size=_JSON_BLOCK),
            pyarrow.json.ParseOptions(
                explicit_schema=pa.schema([field.with_nullable(True) for field in arrow_schema()]),
                unexpected_field_behavior="ignore",
            ),
        )
        for block in reader:
            for start in range(0, block.num_rows, BATCH_ROWS):
                batch = accepted(block.slice(start, BATCH_ROWS).select(columns), path, row)
                yield TraceBatch(str(path), row, batch)
                row += batch.num_rows
    except (pa.ArrowException, OSError, TraceError):
        rows = islice(read_jsonl(path, tolerate_cut=tolerate_cut), row - 1, None)
        yield from _batches_of(str(path), rows, columns, row)


def _batches_of(
    file: str, events: Iterator[Event], columns: Sequence[str], row: int = 1
) -> Iterator[TraceBatch]:
    import pyarrow as pa

    types = _types()
    places = [NAMES.index(name) for name in columns]
    while rows := list(islice(events, BATCH_ROWS)):
        every = list(zip(*rows, strict=True))
        arrays = []
        for place in places:
            wanted = types[NAMES[place]]
            if NAMES[place] == "peers":
                array = pa.array(every[place], pa.list_(pa.string()))
            elif pa.types.is_dictionary(wanted):
                array = pa.array(every[place], pa.string())
            else:
                array = pa.array(every[place], wanted)
            arrays.append(_cast(array, wanted))
        yield TraceBatch(file, row, pa.record_batch(arrays, names=list(columns)))
        row += len(rows)
