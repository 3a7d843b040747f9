"""Files of nodes: each row is read by a task that sorts it, and no row goes through Java."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from causewire.check import check
from causewire.pipeline import check as check_module
from causewire.pipeline import merge, prepare, ranges
from causewire.pipeline.check import check_paths
from causewire.pipeline.large import check_large, check_ranges
from causewire.pipeline.limits import Limits
from causewire.pipeline.outcomes import ORDER
from causewire.pipeline.pieces import Piece, layout
from causewire.pipeline.trouble import Trouble
from causewire.trace import Event, write_trace

from .runs import SMALL, long_run, noting


def by_node(folder: Path, events: Sequence[Event]) -> Path:
    """Write a file for each process."""
    folder.mkdir()
    for name in sorted({event.process for event in events}):
        mine = [event for event in events if event.process == name]
        write_trace(folder / f"{name}.parquet", mine)
    return folder


@contextmanager
def jobs_of(spark: SparkSession, name: str) -> Iterator[list[int]]:
    """The jobs of a block, and at the end how many bytes they shuffled."""
    context: Any = spark.sparkContext
    store = context._jsc.sc().statusStore()

    def shuffled() -> int:
        executors = store.executorList(True)
        return sum(executors.apply(k).totalShuffleWrite() for k in range(executors.size()))

    before = shuffled()
    context.setJobGroup(name, name)
    jobs: list[int] = []
    yield jobs
    jobs += context.statusTracker().getJobIdsForGroup(name)
    context.setLocalProperty("spark.jobGroup.id", None)
    assert shuffled() == before


@pytest.fixture
def no_java(monkeypatch: pytest.MonkeyPatch) -> None:
    """No row is read by Spark, or taken to Spark by Python."""
    monkeypatch.setattr(prepare, "read", None)
    monkeypatch.setattr(prepare, "read_by_java", None)


@pytest.mark.usefixtures("no_java")
def test_a_long_run_in_order_takes_one_job(spark: SparkSession, tmp_path: Path) -> None:
    folder = by_node(tmp_path / "clean", long_run(7, steps=300))
    with jobs_of(spark, "clean") as jobs:
        found = check_paths([folder], limits=SMALL)
    assert found == check(str(folder))
    assert found.ordered
    assert len(jobs) == 1


@pytest.mark.usefixtures("no_java")
def test_violations_are_the_same(spark: SparkSession, tmp_path: Path) -> None:
    folder = by_node(tmp_path / "bad", long_run(7, steps=300, causal=False))
    found = check_paths([folder], limits=SMALL)
    assert found == check(str(folder))
    assert found.violations > 0


@pytest.mark.usefixtures("no_java")
def test_small_runs_take_one_job(spark: SparkSession, tmp_path: Path) -> None:
    place = tmp_path / "small"
    place.mkdir()
    for seed in range(3):
        run = [e._replace(run=f"r{seed}") for e in long_run(seed, steps=60, causal=False)]
        by_node(place / f"{seed}", run)
    with jobs_of(spark, "small") as jobs:
        found = check_paths([place])
    assert found == check(str(place))
    assert len(jobs) == 1


def test_wrong_lamport_times_are_found_out(spark: SparkSession, tmp_path: Path) -> None:
    events = long_run(7, steps=200)
    wrong = [e._replace(lamport=1 + (e.lamport or 0) * 7 % 50) for e in events]
    folder = by_node(tmp_path / "wrong", wrong)
    pieces = layout([str(file) for file in sorted(folder.iterdir())])
    places = ranges.cut(pieces, 2, SMALL)
    with pytest.raises(Trouble) as trouble:
        check_ranges(spark, "long", places, examples=10, limits=SMALL)
    assert trouble.value.what == ORDER
    files = merge.merged(spark, "long", places, tmp_path / "rows")
    with pytest.raises(Trouble) as trouble:
        check_large(spark, "long", layout(files), limits=SMALL)
    assert trouble.value.what == ORDER


def test_ranges_have_about_as_many_rows() -> None:
    rng = random.Random(1)
    pieces = []
    for number in range(50):
        start = rng.randrange(10_000)
        times = (start, start + rng.randrange(1, 5000))
        pieces.append(Piece(f"{number}", 0, 0, 0, rng.randrange(1, 1000), "r", None, times))
    cut = ranges.ranges(pieces, 8)
    known = [piece.lamport for piece in pieces if piece.lamport is not None]
    assert cut[0][0] == min(lo for lo, _ in known)
    assert cut[-1][1] == max(hi for _, hi in known) + 1
    assert all(a[1] == b[0] for a, b in pairwise(cut))
    sizes = []
    for lo, hi in cut:
        parts = ((p, p.lamport) for p in pieces if p.lamport is not None)
        sizes.append(
            sum(
                p.rows * max(0, min(hi, t[1] + 1) - max(lo, t[0])) / (t[1] + 1 - t[0])
                for p, t in parts
            )
        )
    assert max(sizes) < 1.1 * min(sizes)


@pytest.mark.usefixtures("no_java")
@pytest.mark.parametrize("seed", range(6))
def test_what_is_checked_while_it_is_sorted_is_what_one_process_finds(
    spark: SparkSession, tmp_path: Path, seed: int
) -> None:
    """In many ranges, with messages that are late, arrive twice, or were never sent."""
    rng = random.Random(seed)
    events = long_run(seed, steps=250, causal=seed % 2 == 0)
    folder = by_node(tmp_path / "damaged", list(damaged(rng, events)))
    pieces = layout([str(file) for file in sorted(folder.iterdir())])
    wanted = check(str(folder), examples=3)
    assert wanted.duplicates > 0
    assert wanted.undelivered > 0
    assert wanted.bad
    for many in (1, 2, 3, 7):
        places = in_ranges(pieces, many)
        found = check_ranges(spark, "long", places, examples=3, limits=Limits(overdue=2.0))
        assert found == wanted


def damaged(rng: random.Random, events: Sequence[Event]) -> Iterator[Event]:
    """Remove, repeat and invent a few deliveries; times and `seq` still grow along processes."""
    late = {(e.origin, e.mid) for e in rng.sample(list(events), 5)}
    for event in events:
        event = event._replace(seq=3 * event.seq, lamport=3 * (event.lamport or 0))
        after = event._replace(seq=event.seq + 1, lamport=(event.lamport or 0) + 1)
        if event.kind != "deliver":
            yield event
            if rng.random() < 0.02:
                yield after._replace(kind="deliver", mid=10**6, peers=())
        elif (event.origin, event.mid) not in late:
            yield event
            if rng.random() < 0.02:
                yield after


def in_ranges(pieces: Sequence[Piece], many: int) -> list[ranges.Range]:
    """Return the pieces in `many` ranges, or in one fewer."""
    return [
        ranges.Range(tuple(pieces), lo, hi, k * ranges.POSITIONS)
        for k, (lo, hi) in enumerate(ranges.ranges(pieces, many))
    ]


def test_a_run_that_loses_messages_is_sorted_first(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tasks that sorted on and on for what never arrives would read rows many times."""
    rng = random.Random(3)
    events = long_run(3, steps=300)
    lossy = [e for e in events if e.kind != "deliver" or rng.random() < 0.9]
    folder = by_node(tmp_path / "lossy", lossy)
    written: list[Any] = []
    monkeypatch.setattr(check_module, "merged", noting(written, 1, merge.merged))
    found = check_paths([folder], limits=replace(SMALL, soon=20))
    assert found == check(str(folder))
    assert found.undelivered > 0
    assert written == ["long"]


def test_rows_that_would_be_read_too_often_are_left_to_spark(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = by_node(tmp_path / "few", long_run(7, steps=300))
    pieces = layout([str(file) for file in sorted(folder.iterdir())])
    many = Limits(large=300, stretch=10, sort=10)  # row groups are much longer than ranges
    places = ranges.cut(pieces, 2, many)
    assert ranges.rows_read(places) > ranges.TOO_OFTEN * sum(piece.rows for piece in pieces)
    monkeypatch.setattr(check_module, "check_ranges", None)
    assert check_paths([folder], limits=many).ordered
