"""What commands say about input that they cannot read as it was given, and how to read it."""

from __future__ import annotations

import gzip
import json
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from causewire.trace.formats.rows import Refused
from causewire.trace.formats.tables import mapper, table_rows

from ..trace.shop import in_order, otlp
from .command_line import ORDERED, VIOLATING, CommandLine, written
from .test_foreign_input import COLUMNS

ROWS = [
    ("api", "2026-01-01T00:00:00Z", 1, "OUT", "api", 1, "idx|mail"),
    ("mail", "2026-01-01T00:00:01Z", 1, "IN", "api", 1, ""),
    ("mail", "2026-01-01T00:00:02Z", 2, "OUT", "mail", 1, "idx"),
    ("idx", "2026-01-01T00:00:03Z", 1, "IN", "mail", 1, ""),
    ("idx", "2026-01-01T00:00:04.000005Z", 2, "IN", "api", 1, ""),
]
HEADER = ("svc", "ts", "pos", "what", "snd", "msg", "dst")
TIMED = json.dumps({**COLUMNS, "time_ns": "ts"})
FIRST = 1_767_225_600 * 10**9


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    lines = [",".join(map(str, row)) for row in (HEADER, *ROWS)]
    Path("tab.csv").write_text("\n".join(lines) + "\n")
    Path("my columns.json").write_text(TIMED)
    return tmp_path


def times_of(file: str) -> list[int | None]:
    rows = list(table_rows(file, mapper(TIMED)))
    return [None if isinstance(row, Refused) else row.event.time_ns for row in rows]


def test_dates_in_tables(here: Path) -> None:
    assert times_of("tab.csv")[0] == FIRST
    assert times_of("tab.csv")[4] == FIRST + 4_000_005_000
    columns = dict(zip(HEADER, zip(*ROWS, strict=True), strict=True))
    for zone in (UTC, None):
        dates = [datetime.fromisoformat(row[1]).replace(tzinfo=zone) for row in ROWS]
        pq.write_table(pa.table(columns | {"ts": dates}), "tab.parquet")
        assert times_of("tab.parquet") == times_of("tab.csv")


def test_the_hint_reads_the_input_in_the_same_way(here: Path, causewire: CommandLine) -> None:
    done = causewire("check tab.csv --columns 'my columns.json'")
    assert done.status == 1
    hint = "causewire draw tab.csv --columns 'my columns.json' --violation 1"
    assert done.out.splitlines()[-1] == f"{hint} shows the first"
    assert causewire(hint.removeprefix("causewire "), "-o x.svg").status == 0


def test_a_wrong_name_of_a_column(here: Path, causewire: CommandLine) -> None:
    Path("wrong.json").write_text(json.dumps({**COLUMNS, "process": "service"}))
    done = causewire("check tab.csv --columns wrong.json")
    said = "no column 'service' (it has svc, ts, pos, what, snd, msg, dst)"
    assert (done.status, done.err) == (2, f"causewire check: tab.csv: {said}\n")


def test_files_that_are_not_traces(here: Path, causewire: CommandLine) -> None:
    Path("cut.json").write_bytes(otlp(in_order())[:-200])
    assert "; a table needs --columns FILE\n" in causewire("check tab.csv").err
    assert "; JSON, damaged or cut short?" in causewire("check cut.json").err
    Path("other.json").write_text('{"a": 1}\n{"a": 2}\n')
    assert "; JSON, but no spans in a format that is known" in causewire("check other.json").err
    written(Path("run.jsonl"), ORDERED)
    Path("spans.json").write_bytes(otlp(in_order()))
    said = causewire("check run.jsonl spans.json").err
    assert said.endswith("; spans (otlp), which are checked apart from traces\n")
    assert causewire("check ''").err == "causewire check: '': no name of a file\n"
    Path("app.log.gz").write_bytes(gzip.compress(b'a {"a":1}\nhello\nb {"a":1,"b":1}\nwell\n'))
    assert causewire("check app.log.gz").out.startswith("2 events, 1 message, ")


@pytest.mark.parametrize("engine", ["local", "spark"])
def test_the_hint_does_not_depend_on_the_engine(
    engine: str, here: Path, causewire: CommandLine
) -> None:
    Path("logs").mkdir()
    Path("logs/app.log").write_text('a {"a":1}\nhello\n')
    done = causewire(f"check logs --engine {engine}")
    assert done.err.endswith("; logs need --format shiviz, tables --columns FILE\n")
    done = causewire(f"check tab.csv --engine {engine}")
    assert done.err.endswith("; a table needs --columns FILE\n")
    written(Path("run.parquet"), ORDERED)
    Path("run.parquet").rename("run.pq")
    done = causewire(f"check run.pq --engine {engine}")
    assert "; Parquet by its content: name it .parquet" in done.err


def test_traces_with_names_of_old_logs(here: Path, causewire: CommandLine) -> None:
    """JSON lines are known by their content: a log that was rotated is part of the trace."""
    lines = written(Path("all.jsonl"), VIOLATING).read_bytes().splitlines(keepends=True)
    Path("all.jsonl").unlink()
    Path("nodes").mkdir()
    Path("nodes/n.jsonl").write_bytes(b"".join(lines[3:]))
    Path("nodes/n.jsonl.1").write_bytes(b"".join(lines[1:3]))
    Path("nodes/old.gz").write_bytes(gzip.compress(lines[0]))
    Path("nodes/notes.json").write_text('{"process": "of making tea"}')
    for names in ("nodes", "nodes/n.jsonl nodes/n.jsonl.1 nodes/old.gz"):
        found = causewire(f"check {names} --json").json
        assert (found["events"], found["violations"], found["bad"]) == (5, 1, 0)
    assert causewire("check nodes --json").json["quarantined"] == 1  # the notes


def test_a_directory_with_something_else_in_it(here: Path, causewire: CommandLine) -> None:
    for folder in map(Path, ("traces", "spans")):
        folder.mkdir()
        (folder / "README.txt").write_text("what this is")
        (folder / "picture.png").write_bytes(b"\x89PNG\r\n\x1a\n\0\0")
    written(Path("traces/run.jsonl"), ORDERED)
    Path("spans/x.json").write_bytes(otlp(in_order()))
    said = "2 files not understood: neither .parquet nor .jsonl, in a directory of traces (traces/"
    done = causewire("check traces")
    assert (done.status, said in done.out) == (0, True)
    found = causewire("check traces --json").json
    assert (found["verdict"], found["quarantined"], found["unread"]) == ("causally ordered", 2, [])
    done = causewire("check spans")  # the first file by name says nothing about the format
    assert "1 file not understood: not a file of spans, but shiviz (spans/README.txt)" in done.out


def test_strict_refuses_spans_that_are_there_twice(here: Path, causewire: CommandLine) -> None:
    Path("spans.json").write_bytes(otlp(in_order(), lines=True) + otlp(in_order()[:1]))
    assert causewire("check spans.json").status == 0
    done = causewire("check spans.json --strict")
    said = "causewire check: --strict: there are spans that were recorded twice (1)\n"
    assert (done.status, done.err) == (2, said)
