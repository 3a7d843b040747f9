"""Sweeps that write to an object store: the same rows, resumed, one driver at a time."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from causewire.pipeline import PipelineError
from causewire.pipeline.sweep import finished, sweep
from causewire.pipeline.sweep.bucket import EXPIRES
from causewire.pipeline.sweep.folder import output_at
from causewire.pipeline.sweep.journal import Journal, JournalWriter
from causewire.pipeline.sweep.objects import Objects
from causewire.trace import open_trace

from ..bucket import Bucket, empty_bucket
from .experiments import SMALL, Write, rows


def table(objects: Objects) -> list[dict[str, Any]]:
    """The rows of the table of runs."""
    files = sorted(found.name for found in objects.list("runs/"))
    contents = [objects.get(name) or b"" for name in files]
    return [row for data in contents for row in pq.read_table(io.BytesIO(data)).to_pylist()]


@pytest.mark.slow
def test_a_sweep_in_a_store(
    spark: SparkSession, bucket: Bucket, written: Write, tmp_path: Path
) -> None:
    """It has the rows and traces of one in a directory, and goes on where it was stopped."""
    experiment = written(SMALL)
    place = "s3://runs/a sweep/out"
    wanted = sweep(spark, experiment, tmp_path / "out", traces=True)
    told = sweep(spark, experiment, place, traces=True)
    assert (told.runs, told.simulated, told.kept, told.failed) == (wanted.runs, wanted.runs, 0, 0)
    objects = Objects(place)
    found = table(objects)
    assert found == rows(tmp_path / "out")
    run = found[0]["run"]
    local = list(open_trace(tmp_path / "out" / "traces" / f"run={run}").events())
    assert list(open_trace(f"{place}/traces/run={run}").events()) == local
    again = finished(experiment, place, traces=True)
    assert again is not None
    assert (again.simulated, again.kept) == (0, wanted.runs)
    # Two runs are lost: one from the journal, of the other its trace.
    objects.delete("_SUCCESS", f"traces/run={found[1]['run']}/_SUCCESS")
    for name in [entry.name for entry in objects.list("_journal/")]:
        lines = (objects.get(name) or b"").splitlines(keepends=True)
        objects.put(name, b"".join(line for line in lines if run.encode() not in line))
    assert finished(experiment, place, traces=True) is None
    told = sweep(spark, experiment, place, traces=True)
    assert (told.simulated, told.kept) == (2, wanted.runs - 2)
    assert table(objects) == found
    assert not objects.has_any("_journal/lock")


@pytest.fixture
def store(monkeypatch: pytest.MonkeyPatch) -> Any:
    with empty_bucket(monkeypatch) as found:
        yield found


def test_entries_of_a_journal_are_objects(store: Bucket) -> None:
    """The end of a run is written with the beginning of the next one, or when a task ends."""
    place = "s3://runs/out/_journal"
    journal = Journal(place, "code", keep={"a"})
    writer = JournalWriter(place, "code", "start", "00000")
    writer.begin("a")
    journal.refresh()
    assert journal.attempts("start", "a") == 1
    writer.end("a", 1.5, {"status": "done", "events": 7})
    writer.begin("b")
    journal.refresh()
    assert journal.ended["a"] == (False, 1.5, 7)
    assert list(journal.rows) == ["a"]
    writer.end("b", 0.5, {"status": "failed", "events": None})
    writer.close()
    journal.refresh()
    assert journal.ended["b"] == (True, 0.5, 0)
    assert len(list(Objects(place).list())) == 3
    assert journal.entries == 4


def test_two_sweeps_at_once_in_a_store(store: Bucket) -> None:
    first, second = output_at("s3://runs/out"), output_at("s3://runs/out")
    refused = pytest.raises(PipelineError, match="another sweep is writing to s3://runs/out")
    with first.open(), refused, second.open():
        pass
    with second.open():
        pass
    assert list(Objects("s3://runs/out").list()) == []


def test_a_lock_that_was_left_behind_is_taken_by_one(
    store: Bucket, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its former owner, if it still lives, writes no table."""
    objects = Objects("s3://runs/out")
    late, first, second = (output_at("s3://runs/out") for _ in range(3))
    refused = pytest.raises(PipelineError, match="another sweep is writing")
    with late.open():
        found = objects.look("_journal/lock")
        assert found is not None
        assert found.age < EXPIRES
        aged = found._replace(age=EXPIRES + 1)
        with monkeypatch.context() as patch:  # two look at the same time
            patch.setattr(Objects, "look", lambda self, name: aged)
            taken = first.open()
            taken.__enter__()
            with refused, second.open():
                pass
        with pytest.raises(PipelineError, match="another sweep has taken over s3://runs/out"):
            late.finish({})
    assert objects.has_any("_journal/lock")
    assert not objects.has_any("_SUCCESS")
    first.finish({})
    taken.__exit__(None, None, None)
    assert [found.name for found in objects.list()] == ["_SUCCESS", "sweep.json"]


def test_what_a_sweep_cannot_write_to(store: Bucket) -> None:
    with pytest.raises(PipelineError, match="gs://runs/out: a sweep writes to a directory or"):
        output_at("gs://runs/out")
    store.write("thesis/chapter.tex", b"...")
    with pytest.raises(PipelineError, match="exists, and is not the output of a sweep"):
        output_at("s3://runs/thesis").check()
    with pytest.raises(PipelineError, match="s3://nowhere/out cannot be read: "):
        output_at("s3://nowhere/out").check()
    output_at("s3://runs/free").check()
