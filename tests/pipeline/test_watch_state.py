"""What a watch keeps of runs that have ended, and which files it follows."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from pyspark.sql import SparkSession
from pyspark.sql.streaming.datasource import ReadAllAvailable
from pyspark.sql.streaming.state import GroupState, GroupStateTimeout
from pyspark.sql.streaming.tws_tester import TwsTester

from causewire.pipeline import PipelineError
from causewire.pipeline.sources.follow import Follower
from causewire.pipeline.watch import WatchSettings, watch
from causewire.pipeline.watch_state import STATE, Runs, check_state
from causewire.trace import NAMES, Event, write_trace

SETTINGS = WatchSettings(window_ns=10, late_ns=0, idle_ms=7)
PROVIDER = "spark.sql.streaming.stateStore.providerClass"


def rows(*events: Event) -> pd.DataFrame:
    return pd.DataFrame([event._asdict() for event in events], columns=list(NAMES), dtype=object)


def test_the_state_of_a_run_that_has_ended_is_removed() -> None:
    """At once if nothing is in flight; else after a long while, unless a row comes."""
    runs = Runs(late_ns=0, window_ns=10, idle_ms=7)
    tester = TwsTester(runs, timeMode="ProcessingTime", outputMode="Append")
    sent = Event("r", "a", 0, 1, None, "send", "a", 1, ("b",))
    delivered = Event("r", "b", 0, 2, None, "deliver", "a", 1, ("a",))

    def kept() -> tuple[bool, list[int]]:
        """Whether there is a state, and the times of its timers."""
        return tester.peekValueState(STATE, "r") is not None, list(tester.handle.listTimers())

    def windows(told: Any) -> int:
        return int((told["table"] == "windows").sum()) if len(told) else 0

    tester.setProcessingTime(100)
    tester.testInPandas("r", rows(sent, delivered))
    assert kept() == (True, [107])
    assert windows(tester.setProcessingTime(106)) == 0
    assert windows(tester.setProcessingTime(107)) == 1
    assert kept() == (False, [])

    tester.testInPandas("r", rows(sent))
    tester.setProcessingTime(114)
    assert kept() == (True, [114 + 20 * 7])  # somebody may still deliver it
    tester.setProcessingTime(120)
    tester.testInPandas("r", rows(delivered))
    assert kept() == (True, [127])
    tester.setProcessingTime(127)
    assert kept() == (False, [])

    tester.testInPandas("r", rows(sent))
    tester.setProcessingTime(134)
    tester.setProcessingTime(134 + 20 * 7 - 1)
    assert kept() == (True, [134 + 20 * 7])
    tester.setProcessingTime(134 + 20 * 7)
    assert kept() == (False, [])


def test_a_run_does_not_end_while_rows_come() -> None:
    """Its timer stays where it is until it expires, and is then set anew."""
    tester = TwsTester(Runs(late_ns=0, window_ns=10, idle_ms=7), timeMode="ProcessingTime")
    for k, now in enumerate((100, 104, 106)):
        tester.setProcessingTime(now)
        told = tester.testInPandas("r", rows(Event("r", "a", k, k, None, "tick")))
        assert len(told) == 0
        assert list(tester.handle.listTimers()) == [107]
    assert len(tester.setProcessingTime(108)) == 0
    assert tester.peekValueState(STATE, "r") is not None
    assert list(tester.handle.listTimers()) == [113]
    told = tester.setProcessingTime(113)
    assert isinstance(told, pd.DataFrame)
    (window,) = told.to_dict("records")
    assert (window["table"], window["events"]) == ("windows", 3)
    assert tester.peekValueState(STATE, "r") is None
    assert list(tester.handle.listTimers()) == []


def stored(spark: SparkSession, out: Path) -> tuple[list[str], list[str]]:
    """The runs in Spark's state store that have a value, and those that have a timer."""
    values, timers = (
        spark.read.format("statestore").option(*option).load(str(out / "_checkpoint"))
        for option in (("stateVarName", STATE), ("readRegisteredTimers", "true"))
    )
    both = values.selectExpr("key.run", "true").union(timers.selectExpr("key.run", "false"))
    rows = both.collect()
    return sorted(run for run, value in rows if value), sorted(
        run for run, value in rows if not value
    )


def test_removal_is_seen_in_the_store_of_spark(spark: SparkSession, tmp_path: Path) -> None:
    """Also in a session that has another kind of store, which has no timers."""
    traces, out = tmp_path / "traces", tmp_path / "out"
    traces.mkdir()

    def batch(**runs: tuple[str, ...]) -> Any:
        for run, kinds in runs.items():
            events = [
                Event(run, process, 0, k, None, kind, "a", 1, (peer,))
                for k, (process, kind, peer) in enumerate(
                    {"send": ("a", "send", "b"), "deliver": ("b", "deliver", "a")}[kind]
                    for kind in kinds
                )
            ]
            write_trace(traces / f"{run}.jsonl", events)
        watching = watch(spark, traces, out, SETTINGS, once=True)
        watching.query.awaitTermination()
        progress = watching.progress()
        assert progress is not None
        return progress.state_rows

    usual = str(spark.conf.get(PROVIDER))
    spark.conf.set(PROVIDER, usual.replace("RocksDB", "HDFSBacked"))
    try:
        assert batch(ended=("send", "deliver"), flying=("send",)) == 2
        assert spark.conf.get(PROVIDER) == usual.replace("RocksDB", "HDFSBacked")
        time.sleep(SETTINGS.idle_ms / 1000)
        assert batch(second=("send", "deliver")) == 2
        assert stored(spark, out) == (["flying", "second"], ["flying", "second"])
        time.sleep(20 * SETTINGS.idle_ms / 1000)
        assert batch(third=("send",)) == 1
        assert stored(spark, out) == (["third"], ["third"])
    finally:
        spark.conf.set(PROVIDER, usual)


def test_a_run_ends_although_no_row_of_any_run_comes(spark: SparkSession, tmp_path: Path) -> None:
    """Its last window is reported, and its state is removed, in batches without rows."""
    traces, out = tmp_path / "traces", tmp_path / "out"
    traces.mkdir()
    write_trace(traces / "r.jsonl", [Event("r", "a", 0, 1, None, "tick", None, None, ())])
    told: list[str] = []
    watching = watch(
        spark, traces, out, SETTINGS, every=1, tell=lambda table, _: told.append(table)
    )
    try:
        end = time.monotonic() + 300
        while not told or (progress := watching.progress()) is None or progress.state_rows:
            assert time.monotonic() < end, "the run does not end"
            assert not watching.wait(1)
    finally:
        watching.stop()
    assert told == ["windows"]


def test_what_an_earlier_version_has_left_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    """It kept its state by another interface, whose checkpoints Spark cannot continue."""
    traces, out = tmp_path / "traces", tmp_path / "out"
    traces.mkdir()
    (traces / "a.jsonl").write_text('{"run": "r"}\n')

    def step(key: Any, parts: Any, state: GroupState) -> Iterator[pd.DataFrame]:
        state.update((b"",))
        yield pd.DataFrame({"run": list(key)})

    lines = spark.readStream.schema("run string").json(str(traces))
    earlier = lines.groupBy("run").applyInPandasWithState(
        step, "run string", "live binary", "append", GroupStateTimeout.ProcessingTimeTimeout
    )
    writer = earlier.writeStream.foreachBatch(lambda frame, _: frame.toArrow())
    writer = writer.option("checkpointLocation", str(out / "_checkpoint"))
    writer.trigger(once=True).start().awaitTermination()
    with pytest.raises(PipelineError) as raised:
        watch(spark, traces, out, SETTINGS, once=True)
    assert str(raised.value) == (
        f"{out} is from an earlier version of Causewire and cannot be continued: remove it to "
        "check everything from its beginning, or write to another directory"
    )


def test_what_pyspark_needs_for_its_state_is_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "google.protobuf", None)
    with pytest.raises(PipelineError, match=r"^watch needs protobuf: pip install"):
        check_state(tmp_path)


def test_files_that_are_not_followed_are_told_of_once(tmp_path: Path) -> None:
    row = {"run": "r", "process": "a", "seq": 0, "kind": "tick"}
    (tmp_path / "a.jsonl").write_text(json.dumps(row) + "\n")
    (tmp_path / "spans.json").write_text("{}")
    (tmp_path / "old").mkdir()
    (tmp_path / "old" / "a.jsonl.gz").write_bytes(b"")
    (tmp_path / "_watch").mkdir()
    (tmp_path / "_watch" / "part.txt").write_text("")
    for now in (False, True):
        follower = Follower("all", [str(tmp_path)])
        if now:
            follower.prepareForTriggerAvailableNow()
        end = follower.latestOffset({}, ReadAllAvailable())
        read = [
            (Path(row["file"]).name if row["reason"] else row["process"], row["reason"])
            for part in follower.partitions({}, end)
            for found in follower.read(part)
            for row in found.to_pylist()
        ]
        compressed = "not followed: compressed; `check` reads it, and --once"
        why = "not followed: only .parquet and .jsonl files are"
        assert sorted(read) == [("a", None), ("a.jsonl.gz", compressed), ("spans.json", why)]
        assert follower.latestOffset(end, ReadAllAvailable()) == end
        assert follower.partitions(end, end) == []


def test_a_batch_has_its_counts_by_name(spark: SparkSession, tmp_path: Path) -> None:
    """In the progress of the query, and in the description of its job."""
    traces = tmp_path / "traces"
    traces.mkdir()
    write_trace(
        traces / "run.jsonl",
        [
            Event("r", "a", 0, 1, None, "send", "a", 1, ("b",)),
            Event("r", "a", 1, 2, None, "send", "a", 2, ("b",)),
            Event("r", "b", 0, 3, None, "deliver", "a", 2, ("a",)),
            Event("r", "b", 1, 4, None, "deliver", "a", 1, ("a",)),
        ],
    )
    (traces / "bad.jsonl").write_text("not JSON\n")
    watching = watch(spark, traces, tmp_path / "out", SETTINGS, once=True, final=True)
    watching.query.awaitTermination()
    progress = watching.progress()
    assert progress is not None
    assert progress._replace(seconds=0.0)._asdict() == {
        "batch": 0,
        "rows": 5,
        "violations": 1,
        "windows": 1,
        "late": 0,
        "quarantine": 1,
        "state_rows": 1,
        "seconds": 0.0,
    }
    context: Any = spark.sparkContext._jsc
    jobs = context.sc().statusStore().jobsList(None)
    described = [str(jobs.apply(k).description()) for k in range(jobs.size())]
    assert any("watch: batch 0; since the start: 0 violations" in text for text in described)
