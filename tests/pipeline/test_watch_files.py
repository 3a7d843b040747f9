"""Files that are rotated, replaced or deleted while they are watched."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql.streaming.datasource import ReadAllAvailable

from causewire.pipeline.sources.follow import Follower

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
