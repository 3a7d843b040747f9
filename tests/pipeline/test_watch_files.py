"""Files that are rotated, replaced or deleted while they are watched."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from pyspark.sql.streaming.datasource import ReadAllAvailable

from causewire.cli import main
from causewire.pipeline.sources.follow import Follower
from causewire.pipeline.watch_tables import totals, write_batch
from causewire.trace import Event, write_trace

from ..trace import shop

REPLACED = "the file was truncated or replaced; it is read from its start"
GONE = "the file is gone, or another one, since it was found; lines {} to {} were not read"


def lines(run: str, count: int) -> str:
    """Return rows of a process that only sends; those of all runs are equally long."""
    rows = (
        {"run": run, "process": "a", "seq": k, "kind": "send", "origin": "a", "mid": k, "peers": []}
        for k in range(count)
    )
    return "".join(json.dumps(row) + "\n" for row in rows)


class Reading:
    """A watch that is asked again and again; after a restart, it has another follower."""

    def __init__(self, *paths: Path, **settings: Any) -> None:
        self.follower = Follower("all", [str(path) for path in paths], **settings)
        self.offset: dict[str, list[int]] = {}
        self.parts: Any = []

    def plan(self) -> None:
        end = self.follower.latestOffset(self.offset, ReadAllAvailable())
        self.parts = self.follower.partitions(self.offset, end)
        self.offset = json.loads(json.dumps(end))  # as in a checkpoint

    def read(self) -> list[Any]:
        rows = (row for p in self.parts for b in self.follower.read(p) for row in b.to_pylist())
        return [row["reason"] or (row["run"], row["seq"], row["row"]) for row in rows]

    def more(self) -> list[Any]:
        self.plan()
        return self.read()


def rows(run: str, first: int, end: int) -> list[Any]:
    return [(run, k, k + 1) for k in range(first, end)]


@pytest.mark.parametrize("new", [5, 9], ids=["as long", "longer"])
@pytest.mark.parametrize("how", ["renamed", "copied"])
def test_a_file_that_is_rotated_is_read_from_its_start(tmp_path: Path, new: int, how: str) -> None:
    """It has reached its former length before it is looked at again."""
    file = tmp_path / "a.jsonl"
    file.write_text(lines("old", 5))
    reading = Reading(tmp_path)
    assert reading.more() == rows("old", 0, 5)
    if how == "renamed":
        file.rename(tmp_path / ".a.jsonl.1")
    file.write_text(lines("new", new))
    assert reading.more() == [REPLACED, *rows("new", 0, new)]
    assert reading.more() == []
    with file.open("a") as stream:
        stream.write(lines("new", new + 2)[len(lines("new", new)) :])
    assert reading.more() == rows("new", new, new + 2)


def test_a_file_that_begins_like_the_one_before_is_another(tmp_path: Path) -> None:
    file = tmp_path / "a.jsonl"
    file.write_text(lines("run", 1) + lines("old", 5))
    reading = Reading(tmp_path)
    assert len(reading.more()) == 6
    file.write_text(lines("run", 1) + lines("new", 7))
    assert reading.more()[:3] == [REPLACED, ("run", 0, 1), ("new", 0, 2)]


def test_a_copy_of_the_same_rows_in_its_place_is_the_same(tmp_path: Path) -> None:
    """As `rsync` and writers of whole files make it."""
    file = tmp_path / "a.jsonl"
    file.write_text(lines("run", 5))
    reading = Reading(tmp_path)
    assert len(reading.more()) == 5
    (tmp_path / ".part").write_text(lines("run", 7))
    (tmp_path / ".part").replace(file)
    assert reading.more() == rows("run", 5, 7)


@pytest.mark.parametrize("end", ["deleted", "rotated", "truncated"])
def test_a_file_that_is_gone_before_it_is_read_is_told(tmp_path: Path, end: str) -> None:
    file = tmp_path / "a.jsonl"
    file.write_text(lines("old", 2))
    reading = Reading(tmp_path)
    assert len(reading.more()) == 2
    file.write_text(lines("old", 6))
    reading.plan()
    if end == "truncated":
        file.write_text(lines("new", 3))
    else:
        file.unlink()
    if end == "rotated":
        file.write_text(lines("new", 8))
    assert reading.read() == [GONE.format(3, 6)]
    assert reading.read() == [GONE.format(3, 6)]  # the batch is done again
    new = {"deleted": 0, "rotated": 8, "truncated": 3}[end]
    assert reading.more() == ([REPLACED, *rows("new", 0, new)] if new else [])


def test_a_file_that_is_gone_before_a_batch_is_planned(tmp_path: Path) -> None:
    """Also one that was named, which may be in the middle of its rotation."""
    file = tmp_path / "a.jsonl"
    file.write_text(lines("old", 2))
    reading = Reading(file)
    assert len(reading.more()) == 2
    file.unlink()
    assert reading.more() == []
    file.write_text(lines("new", 3))
    reading.follower.prepareForTriggerAvailableNow()
    assert reading.more() == [REPLACED, *rows("new", 0, 3)]
    reading.follower.prepareForTriggerAvailableNow()
    file.unlink()
    assert reading.more() == []


def test_a_checkpoint_without_marks_goes_on(tmp_path: Path) -> None:
    file = tmp_path / "a.jsonl"
    file.write_text(lines("run", 4))
    reading = Reading(tmp_path)
    size = len(lines("run", 2))
    reading.offset = {str(file): [size, 2, 0]}
    assert reading.more() == rows("run", 2, 4)


# -- what is there is all that there will be -------------------------------------------------


def test_a_last_line_without_an_end_counts_if_it_is_all(tmp_path: Path) -> None:
    file = tmp_path / "a.jsonl"
    file.write_text(lines("run", 4).rstrip())
    assert Reading(tmp_path).more() == rows("run", 0, 3)
    whole = Reading(tmp_path, whole=True)
    whole.follower.prepareForTriggerAvailableNow()
    assert whole.more() == rows("run", 0, 4)
    assert whole.more() == []
    file.write_text(lines("run", 4).rstrip()[:-1])
    assert Reading(tmp_path, whole=True).more() == rows("run", 0, 3)


def test_compressed_lines_are_read_if_they_are_all(tmp_path: Path) -> None:
    data = lines("run", 3).encode()
    (tmp_path / "a.jsonl.gz").write_bytes(gzip.compress(data))
    (tmp_path / "b.jsonl.zst").write_bytes(pa.compress(data, "zstd", asbytes=True))
    live, later = Reading(tmp_path), Reading(tmp_path, whole=True)
    why = "not followed: compressed; `check` reads it, and --once"
    assert live.more() == [why, why]
    later.offset = live.offset
    assert later.more() == 2 * rows("run", 0, 3)
    live.offset = later.offset
    assert live.more() == later.more() == []


@pytest.mark.parametrize("name", ["spans.json.gz", "pretty.json", "spans.pb"])
def test_all_files_of_spans_are_read_if_they_are_all(tmp_path: Path, name: str) -> None:
    """Those that can only be read as a whole."""
    ops = shop.in_order()
    document = json.dumps(json.loads(shop.otlp(ops)), indent=1).encode()
    data = gzip.compress(document) if name.endswith(".gz") else document
    (tmp_path / name).write_bytes(shop.otlp_protobuf(ops) if name.endswith(".pb") else data)
    follower = Follower("spans", [str(tmp_path)], "otlp", whole=True)
    follower.prepareForTriggerAvailableNow()
    end = follower.latestOffset({}, ReadAllAvailable())
    found = [
        r for p in follower.partitions({}, end) for b in follower.read(p) for r in b.to_pylist()
    ]
    assert [row["reason"] for row in found] == [None] * len(ops)


def test_once_says_what_check_says_of_a_compressed_trace(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    place = tmp_path / "traces"
    place.mkdir()
    events = [
        Event("r", "a", 0, 1, None, "send", "a", 1, ("b",)),
        Event("r", "a", 1, 2, None, "send", "a", 2, ("b",)),
        Event("r", "b", 0, 3, None, "deliver", "a", 2, ("a",)),
        Event("r", "b", 1, 4, None, "deliver", "a", 1, ("a",)),
    ]
    write_trace(tmp_path / "n.jsonl", events)
    (place / "n.jsonl.gz").write_bytes(gzip.compress((tmp_path / "n.jsonl").read_bytes()))
    (place / "notes.txt").write_text("not a trace: it changes nothing about the verdict\n")
    assert main(["check", str(place)]) == 1
    capsys.readouterr()
    assert main(["watch", str(place), "--once", "--json"]) == 1
    told = json.loads(capsys.readouterr().out)
    assert (told["events"], told["violations"], told["unread"]) == (4, 1, 0)
    (place / "n.jsonl.gz").write_bytes(b"\x1f\x8b damaged")
    other = ["--out", str(tmp_path / "other")]
    assert main(["watch", str(place), "--once", "--json", *other]) == 1
    told = json.loads(capsys.readouterr().out)
    assert (told["events"], told["violations"], told["unread"]) == (0, 0, 1)


def test_the_totals_of_a_watch_count_each_row_once(tmp_path: Path) -> None:
    """Also if it was killed after batches were put together, before their places were removed."""
    schema = pa.schema([("file", pa.string()), ("row", pa.int64()), ("reason", pa.string())])

    def batch(number: int) -> pa.Table:
        return pa.Table.from_pylist([{"file": "f", "row": None, "reason": f"no {number}"}], schema)

    for number in range(4):
        write_batch(tmp_path / "quarantine", number, batch(number), many=3)
    assert len(list((tmp_path / "quarantine").iterdir())) == 2
    write_batch(tmp_path / "quarantine", 1, batch(1))
    assert totals(tmp_path) == {"quarantine": 4, "unread": 4}
