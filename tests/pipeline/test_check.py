"""The check on Spark against the check in this process, whichever way it is shared out."""

from __future__ import annotations

import gc
import random
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from causewire.check import Stream, check
from causewire.pipeline import large, parts, prepare
from causewire.pipeline.check import check_paths, check_runs
from causewire.pipeline.large import check_large
from causewire.pipeline.limits import Limits, Shape, choose
from causewire.pipeline.outcomes import ORDER, OUTCOME, outcome, report_of
from causewire.pipeline.pieces import Runs, by_process, layout
from causewire.pipeline.tasks import ask
from causewire.pipeline.trouble import Trouble
from causewire.trace import Event, TraceError, trace_of, write_trace

from ..check.campaign import MODES, ORDERS, arranged, one_run
from .runs import SMALL, frame_of, long_run, noting, planted, write

# -- many runs, one job ------------------------------------------------------------------


def test_hundreds_of_random_traces_in_one_job(spark: SparkSession) -> None:
    events, runs = [], {}
    for k in range(240):
        mode, order = MODES[k % 4], ORDERS[k // 4 % 3]
        rows, _ = one_run(mode, f"spark/{k}", f"r{k:04}")
        if rows:
            runs[f"r{k:04}"] = arranged(order, str(k), rows)
            events += runs[f"r{k:04}"]
    random.Random(5).shuffle(events)
    frame = frame_of(spark, events)
    outcomes = {row.run: row.asDict(recursive=True) for row in check_runs(frame).collect()}
    assert outcomes.keys() == runs.keys()
    seen = set()
    for name, rows in runs.items():
        found = outcomes[name]
        if found["trouble"] is not None:
            with pytest.raises(TraceError, match="cycle"):
                check(rows)
            assert "cycle" in found["detail"], name
            seen.add("cycle")
            continue
        wanted = check(rows)
        told = wanted.to_json()
        for field in ("events", "messages", "processes", "violations", "duplicates", "undelivered"):
            assert found[field] == told[field], (name, field)
        assert found["bad"] == told["reasons"], name
        assert len(found["examples"]) == len(told["examples"]), name
        seen |= {field for field in ("violations", "duplicates", "bad") if told[field]}
    assert seen == {"cycle", "violations", "duplicates", "bad"}


def test_small_runs_as_they_are_stored(spark: SparkSession, tmp_path: Path) -> None:
    """Runs that end inside of row groups, and go on over several of them."""
    events = []
    for k in range(40):
        events += one_run("anyhow", f"stored/{k}", f"r{k:02}")[0]
        if k % 13 == 0:
            events += long_run(k, name=f"r{k:02}-long", steps=60, causal=False)
    path = write(tmp_path / "runs.parquet", events, rows=50)
    limits = Limits(large=10_000, share=100, enough=200)
    assert check_paths([path], limits=limits) == check(str(path))


@pytest.mark.parametrize("shares", [1, 2, 7, 30])
def test_each_run_begins_in_one_share(tmp_path: Path, shares: Any) -> None:
    events = [e for k in range(30) for e in one_run("causal", f"share/{k}", f"r{k:02}")[0]]
    pieces = layout([str(write(tmp_path / "a.parquet", events, rows=20))])
    bounds = [len(pieces) * k // shares for k in range(shares + 1)]
    parts = [list(Runs(pieces, a, b, {"r03"})) for a, b in pairwise(bounds) if a < b]
    held = [(run.name, run.rows) for part in parts for run in part]
    rows: dict[Any, Any] = {}
    for event in events:
        rows[event.run] = rows.get(event.run, 0) + 1
    del rows["r03"]
    assert held == list(rows.items())


# -- one long run --------------------------------------------------------------------------


@pytest.mark.parametrize("shape", [Shape(), Shape(blocks=2), Shape(stretches=5)])
def test_a_long_run_each_way(spark: SparkSession, tmp_path: Path, shape: Any) -> None:
    events = planted(long_run(1, processes=40, steps=700, causal=False), 100, seed=1)
    again = next(e for e in reversed(events) if e.kind == "deliver")
    events.append(again._replace(seq=again.seq + 1000, lamport=again.lamport + 1000))
    path = write(tmp_path / "long.parquet", events)
    wanted = check(str(path))
    assert wanted.violations > 10
    assert wanted.duplicates == 1
    assert check_large(spark, "long", layout([str(path)]), shape=shape) == wanted


def test_a_large_trace_with_planted_violations(spark: SparkSession, tmp_path: Path) -> None:
    """Found in whichever way it is shared out: by origins, time, stretches, as it is."""
    events = planted(long_run(11, processes=64, steps=6000), 2000, seed=11)
    path = write(tmp_path / "long.parquet", events, rows=4096)
    wanted = check(str(path))
    assert len(events) > 15_000
    assert wanted.violations > 40
    pieces = layout([str(path)])
    for shape in (Shape(blocks=2), Shape(stretches=4)):
        assert check_large(spark, "long", pieces, shape=shape) == wanted
    assert check_paths([path]) == wanted


def test_second_deliveries_and_bad_rows_far_from_their_sends(
    spark: SparkSession, tmp_path: Path
) -> None:
    """Stretches have to tell them from deliveries of what was sent earlier."""
    events = planted(long_run(2, steps=500, causal=False), 3, seed=2)
    for k in (300, 700, 1100):
        old = next(e for e in events[20:] if e.kind == "deliver")
        last = max((e.seq, e.lamport) for e in events[:k] if e.process == old.process)
        for j in range(k, len(events)):
            if events[j].process == old.process:
                events[j] = events[j]._replace(seq=events[j].seq + 2)
        events.insert(k, old._replace(seq=last[0] + 1, lamport=last[1]))
    nobody = events[50]._replace(kind="deliver", origin="p1", mid=100_000, seq=10**6)
    events.append(nobody)
    path = write(tmp_path / "long.parquet", events)
    wanted = check(str(path))
    assert wanted.duplicates == 3
    assert wanted.bad.total() == 1
    assert check_large(spark, "long", layout([str(path)]), shape=Shape(stretches=6)) == wanted


def test_stretches_number_processes_as_one_task_would(spark: SparkSession, tmp_path: Path) -> None:
    """One delivery overtakes many messages of processes that are mentioned late, in an order
    that the last stretch alone would not know: the same of them are shown."""
    events: list[Any] = []
    seq: dict[str, int] = {}

    def add(process: str, kind: str, origin: str, mid: int, *peers: Any) -> None:
        seq[process] = seq.get(process, -1) + 1
        at = len(events)
        events.append(Event("long", process, seq[process], at, at, kind, origin, mid, peers))

    late = [f"z{k}" for k in range(30)]
    for mid in range(1, 40):
        add("a", "send", "a", mid, "b")
        add("b", "deliver", "a", mid)
    for name in late:
        add("a", "send", "a", 100 + len(events), name)
        add(name, "deliver", "a", events[-1].mid)
    for mid in range(1000, 1100):
        add("a", "send", "a", mid, "b")
        add("b", "deliver", "a", mid)
    for name in reversed(late):
        add(name, "send", name, 1, "b")
        add(name, "send", name, 2, "a")
        add("a", "deliver", name, 2)
    add("a", "send", "a", 2000, "b")
    add("b", "deliver", "a", 2000)
    path = write(tmp_path / "late.parquet", events)
    wanted = check(str(path))
    assert wanted.violations == len(late)
    assert check_large(spark, "long", layout([str(path)]), shape=Shape(stretches=2)) == wanted


def test_much_in_flight_is_not_for_stretches(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All is sent before anything is delivered: blocks of origins do it."""
    events = long_run(12, processes=6, steps=300)
    first = [e for e in events if e.kind == "send"]
    events = first + [e for e in events if e.kind == "deliver"]
    seq: dict[str, int] = {}
    for k, event in enumerate(events):
        seq[event.process] = seq.get(event.process, -1) + 1
        events[k] = event._replace(seq=seq[event.process], lamport=k, time_ns=k)
    path = write(tmp_path / "long.parquet", events)
    wanted = check(str(path))
    pieces = layout([str(path)])
    asked: list[Any] = []
    monkeypatch.setattr(
        large,
        "over_origins",
        noting(asked, 2, parts.over_origins),
    )
    for most in (10**6, 50):
        limits = Limits(flight=most)
        shape = Shape(stretches=3)
        assert check_large(spark, "long", pieces, limits=limits, shape=shape) == wanted
    assert asked == [1]


@pytest.mark.parametrize("what", ["seq", "mid"])
def test_rows_that_do_not_follow_from_one_stretch_to_the_next(
    spark: SparkSession, tmp_path: Path, what: Any
) -> None:
    """Inside of each all is well."""
    events = [Event("long", "a", k, k, k, "send", "a", k + 1, ("b",)) for k in range(128)]
    path = write(tmp_path / "long.parquet", events)
    pieces = layout([str(path)])
    assert check_large(spark, "long", pieces, shape=Shape(stretches=2)).undelivered == 128
    events[64:] = [e._replace(**{what: getattr(e, what) - 1}) for e in events[64:]]
    pieces = layout([str(write(tmp_path / "worse.parquet", events))])
    with pytest.raises(Trouble) as trouble:
        check_large(spark, "long", pieces, shape=Shape(stretches=2))
    assert trouble.value.what == ORDER


def test_long_and_small_runs_together(spark: SparkSession, tmp_path: Path) -> None:
    parts = [
        long_run(3, name="a", steps=20),
        long_run(4, name="b", steps=300, causal=False),
        long_run(5, name="c", steps=20, causal=False),
        long_run(6, name="d", steps=250),
    ]
    path = write(tmp_path / "runs.parquet", [e for part in parts for e in part])
    assert check_paths([path], limits=SMALL) == check(str(path))


def test_answers_are_in_the_order_of_the_works_and_workers_settle(spark: SparkSession) -> None:
    works = [5, 3, 4, 1]
    assert ask(spark, works, abs) == works
    assert ask(spark, [], abs) == []
    (frozen,) = ask(spark, [None], lambda _: gc.get_freeze_count())
    assert frozen > 0


def test_how_a_run_is_shared_out() -> None:
    limits = Limits()
    assert choose(10**8, 100, 1, limits) == Shape()
    assert choose(10**8, 100, 2, limits) == Shape(stretches=2)
    assert choose(10**8, 100, 16, limits) == Shape(stretches=16)
    assert choose(10**9, 100, 16, limits).stretches == 32
    assert choose(10**8, 1000, 1, limits) == Shape()
    assert choose(10**8, 1000, 16, limits) == Shape(stretches=16)
    assert choose(10**8, 10_000, 16, limits) == Shape(blocks=16)  # or clocks would not fit
    assert choose(10**8, 30_000, 2, limits).blocks == 11
    assert choose(10**6, 100, 16, limits) == Shape()


@pytest.mark.parametrize(
    ("processes", "lost", "stretches", "blocks"),
    [
        (100, 0, 0.17, 0.94),
        (100, 0.0001, 0.48, 0.40),
        (100, 0.01, 0.48, 0.35),
        (100, 0.3, 0.74, 0.26),
        (1000, 0, 0.17, 0.33),
        (1000, 0.0001, 0.27, 0.24),
        (1000, 0.01, 0.72, 0.21),
        (1000, 0.3, 0.46, 0.18),
    ],
)
def test_the_shape_is_the_one_that_won_in_the_measurements(
    processes: int, lost: float, stretches: float, blocks: float
) -> None:
    """The columns *longest* of docs/measurements/pipeline.md."""
    shape = choose(10**8, processes, 8, Limits(), lost)
    assert (shape.stretches > 1) == (stretches < blocks)
    assert (shape.blocks > 1) == (blocks < stretches)


@pytest.mark.parametrize(("every", "shape"), [(0, Shape(stretches=14)), (50, Shape(blocks=2))])
def test_lost_messages_are_noticed_before_the_shape_is_chosen(
    every: int, shape: Shape, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Chosen(Exception):  # noqa: N818
        pass

    def chosen(*arguments: Any) -> Any:
        raise Chosen(choose(*arguments))

    events = long_run(3, processes=40, steps=900)
    if every:
        deliveries = [e for e in events if e.kind == "deliver"]
        lost = set(deliveries[::every])
        events = [e for e in events if e not in lost]
    pieces = layout([str(write(tmp_path / "long.parquet", events, rows=len(events)))])
    no_session: Any = None
    monkeypatch.setattr(large, "parallelism", lambda spark: 2)
    monkeypatch.setattr(large, "choose", chosen)
    with pytest.raises(Chosen) as found:
        check_large(no_session, "long", pieces, limits=SMALL)
    assert found.value.args == (shape,)


@pytest.mark.parametrize(
    ("sends", "delivers", "share"),
    [
        ([], [], 0.0),
        ([("b",), ("b",)], [], 1.0),
        ([("b", "b")], [("b", 1)], 0.0),  # named twice, and there is one copy
        ([("b", "c"), ("c",)], [("b", 1), ("c", 2), ("c", 2)], 1 / 3),
    ],
)
def test_the_share_of_copies_that_are_overdue(sends: Any, delivers: Any, share: float) -> None:
    rows = [Event("r", "a", k, None, None, "send", "a", k, to) for k, to in enumerate(sends, 1)]
    rows += [
        Event("r", d, k, None, None, "deliver", "a", mid, ("a",))
        for k, (d, mid) in enumerate(delivers)
    ]
    rows += [Event("r", "z", k, None, None, "ack", "", 0) for k in range(len(rows) + 1)]
    (chunk,) = Stream(trace_of(rows)).chunks()
    assert large.overdue_share(chunk.columns) == pytest.approx(share)


def test_bad_rows_are_counted_when_none_is_to_be_shown() -> None:
    """`check` does so, and so must the sum of what tasks found."""
    events = [Event("r", "b", k, k, k, "deliver", "a", k, ("a",)) for k in (1, 2)]
    wanted = check(events, examples=0)
    assert wanted.bad.total() == 2
    row = outcome("r", Stream(trace_of(events)), 0)
    assert report_of(pa.Table.from_pylist([row], OUTCOME), 0) == wanted


# -- rows in no order -------------------------------------------------------------------------


def test_files_of_nodes_are_sorted_once(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Java sorts them, and nothing is read by Python but the rows in order."""
    events = long_run(7, steps=300, causal=False)
    for name in sorted({event.process for event in events}):
        suffix = "jsonl" if name == "p0" else "parquet"
        write_trace(tmp_path / f"{name}.{suffix}", [e for e in events if e.process == name])
    monkeypatch.setattr(prepare, "read", None)
    said: list[str] = []
    assert check_paths([tmp_path], limits=SMALL, progress=said.append) == check(str(tmp_path))
    assert said == ["sorting and checking", "sorting run 'long'", "checking run 'long'"]


def test_the_footers_say_that_rows_are_stored_by_process(tmp_path: Path) -> None:
    events = long_run(7, steps=100)
    write_trace(tmp_path / "whole.parquet", events)
    assert not by_process(layout([str(tmp_path / "whole.parquet")]))
    files = []
    for name in sorted({event.process for event in events})[:2]:
        files.append(str(tmp_path / f"{name}.parquet"))
        write_trace(files[-1], [e for e in events if e.process == name])
    assert by_process(layout(files))
    assert not by_process(layout(files[:1]))


def test_files_of_nodes_side_by_side(spark: SparkSession, tmp_path: Path) -> None:
    """Each node wrote a file of its own, and some of it as JSON lines."""
    events = long_run(7, steps=300, causal=False)
    for name in sorted({event.process for event in events}):
        suffix = "jsonl" if name == "p0" else "parquet"
        write_trace(tmp_path / f"{name}.{suffix}", [e for e in events if e.process == name])
    assert check_paths([tmp_path], limits=SMALL) == check(str(tmp_path))
    assert check_paths([tmp_path]) == check(str(tmp_path))


def test_a_long_run_without_times_and_with_messages_sent_twice(
    spark: SparkSession, tmp_path: Path
) -> None:
    events = long_run(8, steps=250, causal=False)
    twice = next(e for e in events if e.kind == "send")
    events.append(twice._replace(seq=10**6))
    events = arranged("without times", "8", events)
    path = write(tmp_path / "long.parquet", events)
    wanted = check(str(path))
    assert wanted.bad == {"sent a second time": 1}
    found = check_paths([path], limits=SMALL)
    assert found.to_json() == wanted.to_json()


@pytest.mark.parametrize("timed", [True, False])
def test_lamport_times_by_going_round(spark: SparkSession, tmp_path: Path, timed: Any) -> None:
    """Clocks that are a little off are put right; without times it takes one task."""
    events = long_run(9, steps=60)
    rng = random.Random(9)
    skew = {f"p{k}": rng.randint(-30_000, 30_000) for k in range(5)}
    spoilt = [
        e._replace(lamport=None, time_ns=e.time_ns + skew[e.process] if timed else None)
        for e in events
    ]
    frame = frame_of(spark, spoilt)
    assert not prepare.usable(frame)
    times = prepare.with_lamport(frame, tmp_path, rounds=6 if timed else 1)
    assert times.columns == frame.columns
    assert prepare.usable(times)
    assert times.count() == len(events)
    assert len(list(tmp_path.iterdir())) in (range(2, 6) if timed else [1])
