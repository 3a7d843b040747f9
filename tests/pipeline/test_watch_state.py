"""What a watch keeps of runs that have ended, and which files it follows."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd
from pyspark.sql import SparkSession
from pyspark.sql.streaming.datasource import ReadAllAvailable

from causewire.pipeline.sources.follow import Follower
from causewire.pipeline.watch import WatchSettings, found, watch
from causewire.trace import NAMES, Event, write_trace

SETTINGS = WatchSettings(window_ns=10, late_ns=0, idle_ms=7)


class State:
    """Spark's state of one group, and what was done to it."""

    def __init__(self) -> None:
        self.value: Any = None
        self.timeout: int | None = None
        self.hasTimedOut = False

    @property
    def exists(self) -> bool:
        return self.value is not None

    @property
    def get(self) -> Any:
        return self.value

    def update(self, value: Any) -> None:
        self.value = value

    def remove(self) -> None:
        self.value = self.timeout = None

    def setTimeoutDuration(self, milliseconds: int) -> None:  # noqa: N802 - Spark's
        self.timeout = milliseconds


class Rows:
    """A stream that keeps the function that is applied to its groups."""

    step: Any

    def withColumns(self, columns: Any) -> Rows:  # noqa: N802 - Spark's
        return self

    def groupBy(self, column: str) -> Rows:  # noqa: N802 - Spark's
        return self

    def applyInPandasWithState(self, step: Any, **_: Any) -> None:  # noqa: N802 - Spark's
        self.step = step


def parts(*events: Event) -> Iterator[pd.DataFrame]:
    yield pd.DataFrame([event._asdict() for event in events], columns=list(NAMES), dtype=object)


def test_the_state_of_a_run_that_has_ended_is_removed(spark: SparkSession) -> None:
    """At once if nothing is in flight; else after a long while, unless a row comes."""
    stream: Any = Rows()
    found(stream, SETTINGS)
    sent = Event("r", "a", 0, 1, None, "send", "a", 1, ("b",))
    delivered = Event("r", "b", 0, 2, None, "deliver", "a", 1, ("a",))

    def batch(state: State, *events: Event) -> None:
        state.hasTimedOut = not events
        list(stream.step(("r",), parts(*events), state))

    state = State()
    batch(state, sent, delivered)
    assert (state.exists, state.timeout) == (True, 7)
    batch(state)
    assert not state.exists

    batch(state, sent)
    batch(state)
    assert (state.exists, state.timeout) == (True, 20 * 7)  # somebody may still deliver it
    batch(state, delivered)
    assert (state.exists, state.timeout) == (True, 7)
    batch(state)
    assert not state.exists

    batch(state, sent)
    batch(state)
    batch(state)
    assert not state.exists


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
        why = "not followed: only .parquet and .jsonl files are"
        assert sorted(read) == [("a", None), ("a.jsonl.gz", why), ("spans.json", why)]
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
    # In the next batch, Spark's own store forgets that run, and keeps the one that is new.
    write_trace(traces / "next.jsonl", [Event("s", "a", 0, 1, None, "send", "a", 1, ("b",))])
    watching = watch(spark, traces, tmp_path / "out", SETTINGS, once=True, final=True)
    watching.query.awaitTermination()
    progress = watching.progress()
    assert progress is not None
    assert (progress.batch, progress.rows, progress.state_rows) == (1, 1, 1)
    (kept,) = spark.read.format("statestore").load(str(tmp_path / "out/_checkpoint")).collect()
    assert kept.key.run == "s"
    context: Any = spark.sparkContext._jsc
    jobs = context.sc().statusStore().jobsList(None)
    described = [str(jobs.apply(k).description()) for k in range(jobs.size())]
    assert any("watch: batch 0; since the start: 0 violations" in text for text in described)
