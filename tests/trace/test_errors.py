"""What is wrong with a file is said in one line, with its name and the row."""

from __future__ import annotations

import gzip
import json
import random
from operator import methodcaller
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from causewire.trace import (
    Event,
    TraceError,
    arrow_schema,
    open_trace,
    open_writer,
    write_trace,
)
from causewire.trace.formats.foreign import spans_of_file
from causewire.trace.formats.rows import Refused
from causewire.trace.formats.shiviz_log import log_rows
from causewire.trace.formats.tables import mapper, table_rows

GOOD: dict[str, Any] = {
    "run": "r",
    "process": "a",
    "seq": 0,
    "time_ns": 1,
    "lamport": 1,
    "kind": "send",
    "origin": "a",
    "mid": 1,
    "peers": ["b"],
    "payload_bytes": 1,
    "metadata_bytes": 1,
}


def complaint(path: Path) -> Any:
    with pytest.raises(TraceError) as info:
        list(open_trace(path).events())
    text = str(info.value)
    assert "\n" not in text
    assert text.startswith(str(path))
    with pytest.raises(TraceError) as again:
        list(open_trace(path).batches())
    assert str(again.value) == text
    return text.removeprefix(str(path)).removeprefix(": ")


def jsonl(path: Path, *rows: dict[str, Any]) -> Any:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def parquet(path: Path, *rows: dict[str, Any], schema: Any = None) -> Any:
    if schema is None:
        schema = pa.schema([field.with_nullable(True) for field in arrow_schema()])
    pq.write_table(pa.Table.from_pylist(list(rows), schema), path)
    return path


def test_missing(tmp_path: Path) -> None:
    assert complaint(tmp_path / "none.parquet") == "no such file or directory"
    assert complaint(tmp_path / "none.jsonl") == "no such file or directory"


def test_no_trace_at_all(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("a,b")
    assert complaint(tmp_path / "t.csv").startswith("neither .parquet nor .jsonl")
    (tmp_path / "t.parquet").write_text("this is not it, however long it may be")
    assert complaint(tmp_path / "t.parquet") == "not a Parquet file"
    (tmp_path / "e.parquet").write_bytes(b"")
    assert complaint(tmp_path / "e.parquet") == "not a Parquet file"
    (tmp_path / "d").mkdir()
    assert complaint(tmp_path / "d") == "a directory without .parquet or .jsonl files"
    with pytest.raises(ValueError, match="no trace"):
        open_trace()


@pytest.mark.parametrize("cut", [True, False])
def test_damaged_gzip(cut: bool, tmp_path: Path) -> None:
    """It is cut short, or its bytes are wrong: one line says so, whoever reads it."""
    lines = "".join(json.dumps({**GOOD, "seq": seq}) + "\n" for seq in range(5000))
    whole = gzip.compress(lines.encode(), mtime=0)
    path = tmp_path / "t.jsonl.gz"
    path.write_bytes(whole[:-2000] if cut else whole[:12] + b"\xff" * 100 + whole[112:])
    assert complaint(path).startswith("cannot be read: ")
    (tmp_path / "a.jsonl").write_text(json.dumps({**GOOD, "process": "b"}) + "\n")
    with pytest.raises(TraceError, match="cannot be read: "):
        list(open_trace(tmp_path).events())
    mapping = json.dumps({key: key for key in ("process", "seq", "kind", "origin", "mid", "peers")})
    for rows in (
        table_rows(str(path), mapper(mapping)),
        spans_of_file(str(path), "auto"),
        log_rows(str(path)),
    ):
        *_, last = rows
        assert isinstance(last, Refused)
        assert last.row is None
        assert last.reason.startswith("cannot be read")


def test_truncated_parquet(tmp_path: Path) -> None:
    path = parquet(tmp_path / "t.parquet", GOOD)
    whole = path.read_bytes()
    for size in (len(whole) // 2, len(whole) - 1, 8):
        path.write_bytes(whole[:size])
        assert complaint(path) == "cut short: its footer is missing"


def test_damaged_parquet_names_the_row(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    rows: list[dict[str, Any]] = [
        {**GOOD, "seq": k, "mid": k * k * 7919 % 10007} for k in range(3000)
    ]
    table = pa.Table.from_pylist(rows, arrow_schema())
    pq.write_table(table, path, row_group_size=1000, use_dictionary=False, compression="snappy")
    with pq.ParquetFile(path) as file:
        column = file.metadata.row_group(1).column(7)
    data = bytearray(path.read_bytes())
    start = column.data_page_offset
    data[start : start + column.total_compressed_size] = b"\xff" * column.total_compressed_size
    path.write_bytes(bytes(data))
    told = complaint(path)
    assert told.startswith("row 1")
    assert "damaged from here on" in told


@pytest.mark.parametrize("ours", [True, False])
def test_whatever_is_flipped_is_an_error_or_harmless(tmp_path: Path, ours: Any) -> None:
    """A segmentation fault would show as well."""
    rng = random.Random(1)
    path = tmp_path / "t.parquet"
    rows = [{**GOOD, "seq": k, "mid": k + 1, "peers": ["b", f"p{k % 5}"]} for k in range(200)]
    if ours:
        write_trace(path, [Event(**{**row, "peers": tuple(row["peers"])}) for row in rows])
    else:
        parquet(path, *rows)
    whole = path.read_bytes()
    errors = 0
    for _ in range(150):
        data = bytearray(whole)
        data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
        path.write_bytes(data)
        for read in (methodcaller("events"), methodcaller("batches")):
            try:
                list(read(open_trace(path)))
            except TraceError:
                errors += 1
    assert errors > 100


def test_wrong_columns(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    pq.write_table(pa.table({"x": [1], "y": [2]}), path)
    assert complaint(path) == (
        "no column run, process, seq, kind, origin, mid, peers (it has x, y)"
    )


@pytest.mark.parametrize(
    ("column", "values", "told"),
    [
        ("seq", ["0"], "column seq is string, not int64"),
        ("seq", [0.5], "column seq is double, not int64"),
        ("process", [1], "column process is int64, not string"),
        ("peers", ["b"], "column peers is string, not list<string>"),
        ("peers", [[1]], "column peers is list<element: int64>, not list<string>"),
        ("kind", [None], "column kind is int32, not string"),  # all null is written as int32
    ],
)
def test_wrong_types(tmp_path: Path, column: Any, values: Any, told: Any) -> None:
    good = pa.Table.from_pylist([GOOD], arrow_schema())
    at = good.schema.get_field_index(column)
    pq.write_table(good.set_column(at, column, pa.array(values)), tmp_path / "t.parquet")
    found = complaint(tmp_path / "t.parquet")
    assert found == told or (column == "kind" and found.startswith("column kind is"))


BAD_VALUES = [
    ("seq", -1, "seq is negative"),
    ("mid", -7, "mid is negative"),
    ("run", None, "has no run"),
    ("process", None, "has no process"),
    ("kind", None, "has no kind"),
    ("seq", None, "has no seq"),
    ("origin", None, "a send row needs origin and mid"),
    ("mid", None, "a send row needs origin and mid"),
    ("peers", None, "a send row needs peers, its destinations"),
]


@pytest.mark.parametrize(("column", "value", "told"), BAD_VALUES)
def test_bad_values_in_parquet(tmp_path: Path, column: Any, value: Any, told: Any) -> None:
    rows = [GOOD, {**GOOD, "seq": 1}, {**GOOD, "seq": 2, column: value}, GOOD]
    assert complaint(parquet(tmp_path / "t.parquet", *rows)) == f"row 3: {told}"


@pytest.mark.parametrize(
    ("column", "value", "told"),
    [
        ("seq", -1, "seq is negative: -1"),
        ("mid", -7, "mid is negative: -7"),
        ("run", None, "run must be a string, not None"),
        ("process", 5, "process must be a string, not 5"),
        ("seq", "1", "seq must be an integer, not '1'"),
        ("seq", 1.5, "seq must be an integer, not 1.5"),
        ("seq", True, "seq must be an integer, not True"),
        ("seq", 2**63, "seq is too large: 9223372036854775808"),
        ("payload_bytes", 2**31, "payload_bytes is too large: 2147483648"),
        ("origin", ["a"], "origin must be a string, not ['a']"),
        ("peers", "b", "peers must be a list of strings, not 'b'"),
        ("peers", [1], "peers must be a list of strings, not [1]"),
        ("origin", None, "a send row needs origin and mid"),
        ("peers", None, "a send row needs peers, its destinations"),
    ],
)
def test_bad_values_in_json_lines(tmp_path: Path, column: Any, value: Any, told: Any) -> None:
    rows = [GOOD, {**GOOD, "seq": 1}, {**GOOD, "seq": 2, column: value}, GOOD]
    assert complaint(jsonl(tmp_path / "t.jsonl", *rows)) == f"row 3: {told}"


def test_missing_fields_in_json_lines(tmp_path: Path) -> None:
    for name in ("run", "process", "seq", "kind"):
        row = {key: value for key, value in GOOD.items() if key != name}
        assert complaint(jsonl(tmp_path / "t.jsonl", row)) == f"row 1: has no {name}"
    few = {key: GOOD[key] for key in ("run", "process", "seq", "kind", "origin", "mid", "peers")}
    (event,) = open_trace(jsonl(tmp_path / "t.jsonl", few)).events()
    assert event == Event("r", "a", 0, None, None, "send", "a", 1, ("b",))


def test_broken_json_lines(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    jsonl(path, GOOD)
    good = path.read_text()
    path.write_text(good + "nonsense\n" + good)
    assert complaint(path) == "row 2: not a JSON object: 'nonsense'"
    path.write_text(good + "[1, 2]\n")
    assert complaint(path) == "row 2: a row must be a JSON object"
    path.write_text(good + "\n" + good[:-20])
    assert complaint(path) == "row 3: the last line is cut short"
    path.write_text(good + "[" * 100_000 + "\n")
    assert complaint(path).startswith("row 2: not a JSON object: '[[[[")
    path.write_bytes(b"\xff\xfe\x00\n")
    assert complaint(path).startswith("row 1: not a JSON object")
    path.write_text(good.rstrip("\n"))  # no newline at the end, but complete
    assert len(list(open_trace(path).events())) == 1


def test_where_nothing_can_be_written(tmp_path: Path) -> None:
    for name in ("none/t.parquet", "none/t.jsonl", "none/t"):
        with pytest.raises(TraceError, match="cannot be written: No such file or directory"):
            open_writer(tmp_path / name)
    with pytest.raises(TraceError, match=r"t\.csv: a trace is written as"):
        open_writer(tmp_path / "t.csv")


def test_an_error_is_a_value() -> None:
    error = TraceError("file", 3, "two\nlines")
    assert (error.file, error.row, error.reason) == ("file", 3, "two lines")
    assert str(error) == "file: row 3: two lines"
    assert str(TraceError("file", None, "why")) == "file: why"


def test_unknown_columns_are_our_own_mistake(tmp_path: Path) -> None:
    write_trace(tmp_path / "t.jsonl", [])
    with pytest.raises(ValueError, match="no such columns"):
        list(open_trace(tmp_path / "t.jsonl").batches(["colour"]))
