"""What is written is read back, in both formats, in bounded memory."""

from __future__ import annotations

import hashlib
import subprocess
import sys
import textwrap
from collections import deque
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from causewire.trace import (
    NAMES,
    Event,
    TraceError,
    arrow_schema,
    open_trace,
    open_writer,
    trace_of,
    write_trace,
)
from causewire.trace.parquet import ROW_GROUP, ParquetWriter

EVENTS = [
    Event("run 1", "a", 0, 10, 1, "send", "a", 1, ("b", "c"), 100, 8),
    Event("run 1", "a", 1, 11, 2, "release", "a", 1, ("b", "c"), 100, 8),
    Event("run 1", "b", 0, 20, 3, "receive", "a", 1, ("a",), 100, 8),
    Event("run 1", "b", 1, 20, 4, "deliver", "a", 1, ("a",), None, None),
    Event("run 1", "b", 2, -5, 5, "job_start"),
    Event("ünïcode ☃", "c\n", 0, None, None, "send", "c\n", 2**40, (), 0, 0),
]


def many(count: Any) -> Iterator[Any]:
    for k in range(count):
        p = f"p{k % 7}"
        yield Event("r", p, k // 7, k, k + 1, "send", p, k // 7 + 1, (f"p{k % 5}",), k % 100, 8)


def interrupted() -> Iterator[Any]:
    yield EVENTS[0]
    raise ZeroDivisionError


@pytest.mark.parametrize("name", ["t.parquet", "t.jsonl", "directory"])
def test_round_trip(tmp_path: Path, name: str) -> None:
    assert write_trace(tmp_path / name, EVENTS) == len(EVENTS)
    assert list(open_trace(tmp_path / name).events()) == EVENTS


@pytest.mark.parametrize("name", ["t.parquet", "t.jsonl"])
def test_columns_have_our_types(tmp_path: Path, name: str) -> None:
    write_trace(tmp_path / name, EVENTS)
    (batch,) = open_trace(tmp_path / name).batches()
    assert batch.row == 1
    assert tuple(batch.columns.schema.names) == NAMES
    for column in ("run", "process", "kind", "origin"):
        assert batch.columns[column].type == pa.dictionary(pa.int32(), pa.string())
    assert pa.types.is_dictionary(batch.columns["peers"].type.value_type)
    for column in ("seq", "time_ns", "lamport", "mid", "payload_bytes"):
        assert batch.columns[column].type == pa.int64()
    assert batch.columns["peers"].to_pylist() == [list(event.peers) for event in EVENTS]
    (few,) = open_trace(tmp_path / name).batches(["mid", "run"])
    assert few.columns.schema.names == ["run", "mid"]


def test_memory_looks_like_a_file(tmp_path: Path) -> None:
    write_trace(tmp_path / "t.parquet", EVENTS)
    (stored,) = open_trace(tmp_path / "t.parquet").batches()
    (held,) = trace_of(EVENTS).batches()
    assert held.columns.to_pylist() == stored.columns.to_pylist()
    assert list(trace_of(iter(EVENTS)).events()) == EVENTS


def test_row_groups_and_batches_are_bounded(tmp_path: Path) -> None:
    count = ROW_GROUP + 10
    write_trace(tmp_path / "t.parquet", many(count))
    with pq.ParquetFile(tmp_path / "t.parquet") as file:
        sizes = [file.metadata.row_group(k).num_rows for k in range(file.num_row_groups)]
    assert sizes == [ROW_GROUP, 10]
    batches = list(open_trace(tmp_path / "t.parquet").batches(["seq"]))
    assert sum(batch.columns.num_rows for batch in batches) == count
    assert max(batch.columns.num_rows for batch in batches) <= ROW_GROUP
    assert [batch.row for batch in batches] == [1, ROW_GROUP + 1]


def test_a_directory_has_several_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("causewire.trace.parquet.FILE_ROWS", 4)
    write_trace(tmp_path / "t", EVENTS)
    names = sorted(path.name for path in (tmp_path / "t").iterdir())
    assert names == ["part-00000.parquet", "part-00001.parquet"]
    assert list(open_trace(tmp_path / "t").events()) == EVENTS


def test_an_empty_trace_can_be_written(tmp_path: Path) -> None:
    for name in ("t.parquet", "t.jsonl", "t"):
        write_trace(tmp_path / name, [])
        assert list(open_trace(tmp_path / name).events()) == []


def test_the_same_rows_give_the_same_bytes_whatever_the_hash_seed(tmp_path: Path) -> None:
    program = textwrap.dedent(
        """
        import sys
        from causewire.trace import Event, write_trace
        rows = [Event("r", f"p{k % 7}", k // 7, k, k, "send", f"p{k % 7}", k // 7 + 1,
                      tuple(sorted({f"p{k % 5}", "x"})), k, 8) for k in range(300)]
        write_trace(sys.argv[1] + ".parquet", rows)
        write_trace(sys.argv[1] + ".jsonl", rows)
        """
    )
    digests = []
    for seed in ("1", "2"):
        name = tmp_path / seed
        subprocess.run(
            [sys.executable, "-c", program, str(name)], check=True, env={"PYTHONHASHSEED": seed}
        )
        files = [name.with_suffix(suffix) for suffix in (".parquet", ".jsonl")]
        digests += [hashlib.sha256(file.read_bytes()).digest() for file in files]
    assert digests[:2] == digests[2:]


def test_columns_and_events_give_the_same_bytes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("causewire.trace.parquet.ROW_GROUP", 64)
    rows = list(many(200))
    write_trace(tmp_path / "a.parquet", rows)
    with ParquetWriter(tmp_path / "b.parquet") as writer:
        for event in rows[:10]:
            writer.write(event)
        for start, end in ((10, 11), (11, 150), (150, 190)):
            (batch,) = trace_of(rows[start:end]).batches()
            writer.write_batch(batch.columns)
        for event in rows[190:]:
            writer.write(event)
    assert writer.rows == 200
    assert (tmp_path / "a.parquet").read_bytes() == (tmp_path / "b.parquet").read_bytes()


def test_no_pyarrow_is_needed_for_json_lines(tmp_path: Path) -> None:
    program = textwrap.dedent(
        """
        import sys
        sys.modules["pyarrow"] = sys.modules["numpy"] = None
        from causewire.trace import Event, open_trace, write_trace
        rows = [Event("r", "a", 0, 1, 1, "send", "a", 1, ("b",), 5, 5)]
        write_trace(sys.argv[1], rows)
        assert list(open_trace(sys.argv[1]).events()) == rows
        """
    )
    subprocess.run([sys.executable, "-c", program, str(tmp_path / "t.jsonl")], check=True)


# -- unfinished business ---------------------------------------------------------------


@pytest.mark.parametrize("name", ["t.parquet", "t.jsonl", "directory"])
def test_nothing_appears_until_a_trace_is_complete(tmp_path: Path, name: str) -> None:
    writer = open_writer(tmp_path / name)
    for event in EVENTS:
        writer.write(event)
    writer.flush()
    assert not (tmp_path / name).exists()
    with pytest.raises(TraceError):
        open_trace(tmp_path)  # what is there is not taken for a trace
    writer.close()
    writer.close()
    assert list(open_trace(tmp_path).events()) == EVENTS


@pytest.mark.parametrize("name", ["t.parquet", "t.jsonl", "directory"])
def test_an_exception_leaves_nothing(tmp_path: Path, name: str) -> None:
    with pytest.raises(ZeroDivisionError):
        write_trace(tmp_path / name, interrupted())
    assert list(tmp_path.iterdir()) == []


def test_a_file_is_replaced_but_a_directory_is_not(tmp_path: Path) -> None:
    for name in ("t.parquet", "t.jsonl"):
        write_trace(tmp_path / name, EVENTS)
        write_trace(tmp_path / name, EVENTS[:1])
        assert list(open_trace(tmp_path / name).events()) == EVENTS[:1]
    (tmp_path / "d").mkdir()
    write_trace(tmp_path / "d", EVENTS)
    with pytest.raises(TraceError, match="exists already"):
        write_trace(tmp_path / "d", EVENTS)


def test_a_live_file_grows_and_is_mended(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    writer = open_writer(path, live=True)
    writer.write(EVENTS[0])
    writer.flush()
    assert list(open_trace(path).events()) == EVENTS[:1]
    writer.close()
    whole = path.read_bytes()
    path.write_bytes(whole + b'{"run":"r')  # killed here
    with pytest.raises(TraceError, match=r"t.jsonl: row 2: the last line is cut short"):
        list(open_trace(path).events())
    assert list(open_trace(path, tolerate_cut=True).events()) == EVENTS[:1]
    with open_writer(path, live=True) as writer:
        writer.write(EVENTS[1])
    assert list(open_trace(path).events()) == EVENTS[:2]


def test_a_live_file_keeps_its_rows_after_an_exception(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    with pytest.raises(ZeroDivisionError), open_writer(path, live=True) as writer:
        deque(map(writer.write, interrupted()))
    assert list(open_trace(path).events()) == EVENTS[:1]


def test_live_is_for_json_lines(tmp_path: Path) -> None:
    with pytest.raises(TraceError, match=r"must be a \.jsonl"):
        open_writer(tmp_path / "t.parquet", live=True)


# -- other people's Parquet ----------------------------------------------------------------


def test_other_widths_and_encodings_are_taken(tmp_path: Path) -> None:
    table = pa.Table.from_pylist([event._asdict() for event in EVENTS[:5]], arrow_schema())
    other = pa.table(
        {
            "peers": table["peers"].cast(pa.large_list(pa.large_string())),
            "mid": table["mid"].cast(pa.uint32()),
            "origin": table["origin"].cast(pa.large_string()),
            "kind": table["kind"].dictionary_encode(),
            "seq": table["seq"].cast(pa.int16()),
            "process": table["process"],
            "run": table["run"],
            "unknown": table["seq"],
        }
    )
    pq.write_table(other, tmp_path / "t.parquet", row_group_size=2)
    events = list(open_trace(tmp_path / "t.parquet").events())
    expected = [e._replace(time_ns=None, lamport=None) for e in EVENTS[:5]]
    expected = [e._replace(payload_bytes=None, metadata_bytes=None) for e in expected]
    assert events == expected


def test_several_paths_are_one_trace(tmp_path: Path) -> None:
    write_trace(tmp_path / "a.jsonl", EVENTS[:2])
    write_trace(tmp_path / "b.parquet", EVENTS[2:])
    trace = open_trace(tmp_path / "a.jsonl", tmp_path / "b.parquet")
    assert list(trace.events()) == EVENTS
    assert [batch.columns.num_rows for batch in trace.batches()] == [2, 4]
    (tmp_path / "_SUCCESS.jsonl").write_text("no trace")
    (tmp_path / "notes.txt").write_text("no trace")
    assert list(open_trace(tmp_path).events()) == EVENTS


def test_a_dictionary_that_overflowed_is_read_all_the_same(tmp_path: Path) -> None:
    rows = [
        Event("r", f"p{k}", 0, k, k, "send", f"p{k}", 1, (f"a-rather-long-name-{k}", "b"))
        for k in range(5000)
    ]
    table = pa.Table.from_pylist([event._asdict() for event in rows], arrow_schema())
    pq.write_table(
        table, tmp_path / "t.parquet", dictionary_pagesize_limit=1000, data_page_size=1000
    )
    assert list(open_trace(tmp_path / "t.parquet").events()) == rows
