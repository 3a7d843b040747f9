"""Watching: rows as they come, each once, whatever happens in between."""

from __future__ import annotations

import json
import os
import pickle
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any, cast

import pyarrow.dataset as ds
import pytest
from pyspark.sql import SparkSession

from causewire.check import check
from causewire.cli import main
from causewire.cli.spark import SparkProgress
from causewire.pipeline import PipelineError
from causewire.pipeline.live import (
    NO_SEND,
    SEND_TOO_LATE,
    TOO_LATE,
    WINDOW_TOLD,
    LateRow,
    LiveRun,
    LiveViolation,
    LiveWindow,
)
from causewire.pipeline.sources.follow import Follower
from causewire.pipeline.watch import WatchSettings, waiting, watch
from causewire.trace import Event, open_writer, write_trace

from ..check.random_traces import random_run
from .conftest import java_options

# -- one run, without Spark ------------------------------------------------------------


def timed(seed: int, steps: int = 80, causal: bool = False) -> Any:
    events = random_run(random.Random(seed), "r", causal=causal, steps=steps)
    return [e._replace(time_ns=k * 1000) for k, e in enumerate(events)]


def shown(told: Any, kind: type) -> Any:
    return [item for item in told if isinstance(item, kind)]


def firsts(report: Any) -> Any:
    """Each message that was overtaken, and where and by whom it was first."""
    return {(v.process, v.seq, tuple(v.first), tuple(v.second)) for v in report.examples}


@pytest.mark.parametrize("seed", range(30))
def test_the_same_violations_as_the_check_in_any_order_within_the_bound(seed: int) -> None:
    """Rows come out of order, in pieces, and the state is stored in between."""
    events = timed(seed)
    rng = random.Random(seed)
    arrivals = sorted(events, key=lambda e: e.time_ns + rng.randint(0, 8000))
    live = LiveRun(bound_ns=10_000, window_ns=20_000)
    told: list[Any] = []
    at = 0
    while at < len(arrivals):
        to = at + rng.randint(1, 20)
        told += live.add(arrivals[at:to])
        told += live.advance()
        live = pickle.loads(pickle.dumps(live))
        at = to
    told += live.advance(ended=True)
    wanted = check(events, examples=10_000)
    found = {(v.process, v.seq, v.first, v.second) for v in shown(told, LiveViolation)}
    # Concurrent rows may go in another order: other deliveries may be the first
    # to overtake a message, but the messages are the same.
    assert {first for *_, first, _ in found} == {first for *_, first, _ in firsts(wanted)}
    assert shown(told, LateRow) == []
    assert live.pending == 0
    windows = shown(told, LiveWindow)
    assert [w.start_ns for w in windows] == sorted({w.start_ns for w in windows})
    assert sum(w.events for w in windows) == len(events)
    assert sum(w.sent for w in windows) == wanted.messages
    assert sum(w.delivered for w in windows) == sum(e.kind == "deliver" for e in events)
    assert sum(w.violations for w in windows) == len(found)
    assert windows[-1].in_flight == wanted.undelivered


def row(
    kind: str, process: str, seq: Any, time: Any, origin: Any = None, mid: Any = None, *peers: Any
) -> Any:
    return Event("r", process, seq, time, None, kind, origin, mid, peers)


def test_nothing_goes_before_the_bound_has_passed() -> None:
    live = LiveRun(bound_ns=100, window_ns=1000)
    assert live.add([row("send", "a", 0, 50, "a", 1, "b")]) == []
    assert live.advance() == []
    assert live.pending == 1
    live.add([row("tick", "b", 0, 149)])
    live.advance()
    assert live.pending == 2
    live.add([row("tick", "c", 0, 150)])
    live.advance()
    assert live.pending == 2


def test_rows_beyond_the_bound_are_counted() -> None:
    live = LiveRun(bound_ns=10, window_ns=100)
    live.add([row("send", "a", 1, 5, "a", 2, "b"), row("tick", "a", 2, 500)])
    (window,) = shown(live.advance(), LiveWindow)
    assert (window.start_ns, window.sent, window.in_flight) == (0, 1, 1)
    assert live.add([row("send", "a", 0, 4, "a", 1, "b")]) == [LateRow("a", 0, 4, TOO_LATE)]
    # In order, but the window was told: checked, not measured.
    live.add([row("deliver", "b", 0, 50, "a", 2)])
    assert live.advance() == [LateRow("b", 0, 50, WINDOW_TOLD)]
    assert cast(LiveWindow, live.advance(ended=True)[-1]).in_flight == 0


def test_a_delivery_does_not_wait_for_its_send_for_ever() -> None:
    live = LiveRun(bound_ns=10, window_ns=100)
    live.add([row("deliver", "b", 0, 50, "a", 1), row("tick", "c", 0, 60)])
    assert live.advance() == [LateRow("b", 0, 50, NO_SEND)]
    live.add([row("send", "a", 0, 40, "a", 1, "b"), row("tick", "c", 1, 90)])
    assert live.advance() == [LateRow("a", 0, 40, SEND_TOO_LATE)]
    assert cast(LiveWindow, live.advance(ended=True)[-1]).in_flight == 0


def test_what_waits_for_one_who_has_time_is_no_cycle() -> None:
    """b waits for a, who waits for c, whose clock is ahead."""
    live = LiveRun(bound_ns=0, window_ns=10**6)
    live.add(
        [
            row("send", "c", 0, 900, "c", 1, "a"),
            row("deliver", "a", 0, 100, "c", 1),
            row("send", "a", 1, 101, "a", 1, "b"),
            row("deliver", "b", 0, 102, "a", 1),
        ]
    )
    live.latest = 500
    assert live.advance() == []
    assert live.pending == 4
    live.add([row("tick", "d", 0, 1000)])
    assert live.advance() == []
    assert live.pending == 0


def test_a_cycle_does_not_stop_the_others() -> None:
    live = LiveRun(bound_ns=0, window_ns=100)
    live.add(
        [
            row("deliver", "a", 0, 1, "b", 1),
            row("send", "a", 1, 2, "a", 1, "b"),
            row("deliver", "b", 0, 3, "a", 1),
            row("send", "b", 1, 4, "b", 1, "a"),
            row("tick", "c", 0, 5),
        ]
    )
    told = live.advance(ended=True)
    assert {item.reason for item in shown(told, LateRow)} == {NO_SEND, SEND_TOO_LATE}
    assert live.pending == 0


def test_state_does_not_grow_with_the_run() -> None:
    def size(rounds: Any) -> Any:
        live = LiveRun(bound_ns=10, window_ns=100)
        for k in range(rounds):
            live.add(
                [
                    row("send", "a", k, 20 * k, "a", k + 1, "b"),
                    row("deliver", "b", k, 20 * k + 1, "a", k + 1),
                ]
            )
            live.advance()
        return len(pickle.dumps(live))

    assert size(300) < size(20) * 1.2


# -- the whole, with Spark ------------------------------------------------------------------

FAST = WatchSettings(window_ns=20_000, late_ns=15_000, idle_ms=1)


def tables(out: Any) -> Any:
    """Everything that was written, as plain rows."""
    found: dict[Any, Any] = {}
    for name in ("violations", "windows", "late", "quarantine"):
        place = out / name
        found[name] = []
        if place.is_dir():
            files = [str(file) for file in sorted(place.rglob("*.parquet"))]
            found[name] = ds.dataset(files).to_table().to_pylist() if files else []
    return found


def observed(progress: Any) -> Counter[str]:
    """Add up what the progress of a query says about what was found."""
    total: Counter[str] = Counter()
    for batch in progress:
        if found := batch["observedMetrics"].get("causewire_found"):
            total.update(found if isinstance(found, dict) else found.asDict())
    return +total


def once(spark: SparkSession, traces: Any, out: Any) -> Any:
    """Take what is there, twice: the second time, nothing comes any more."""
    told = []
    watching = watch(
        spark, traces, out, FAST, once=True, tell=lambda table, row: told.append((table, row))
    )
    watching.query.awaitTermination()
    counted = observed(watching.query.recentProgress)
    assert counted == Counter(table for table, _ in told)
    return told


def test_files_that_grow_and_appear_through_restarts(spark: SparkSession, tmp_path: Path) -> None:
    """Three nodes write; the query is stopped and started again between the parts."""
    events = [e for e in timed(3, steps=120) if e.process in ("p0", "p1", "p2", "p3", "p4")]
    traces, out = tmp_path / "traces", tmp_path / "found"
    traces.mkdir()
    names = sorted({e.process for e in events})
    writers = {name: open_writer(traces / f"{name}.jsonl", live=True) for name in names[1:]}
    half = len(events) // 2
    for part in range(2):
        mine = events[part * half : half if part == 0 else None]
        for event in mine:
            if event.process in writers:
                writers[event.process].write(event)
        for writer in writers.values():
            writer.flush()
        quiet = [e for e in mine if e.process == names[0]]
        if quiet:
            write_trace(traces / f"{names[0]}-{part}.parquet", quiet)
        if part == 0:
            with (traces / f"{names[1]}.jsonl").open("ab") as file:
                file.write(b"half a li")
            (traces / "more.jsonl").write_text('not json\n{"run": "r"}\n')
        once(spark, traces, out)
        if part == 0:
            path = traces / f"{names[1]}.jsonl"
            path.write_bytes(path.read_bytes().removesuffix(b"half a li"))
    for writer in writers.values():
        writer.close()
    # Somebody else's row, much later, moves the watermark past all of them.
    write_trace(
        traces / "last.parquet", [Event("r", "clock", 0, 10**9, None, "tick", None, None, ())]
    )
    once(spark, traces, out)
    found = tables(out)
    wanted = check(events, examples=10_000)
    assert wanted.violations > 0
    assert {(v["first_origin"], v["first_mid"]) for v in found["violations"]} == {
        tuple(v.first) for v in wanted.examples
    }
    assert len(found["violations"]) == len(wanted.examples)
    assert found["late"] == []
    assert sorted(w["start_ns"] for w in found["windows"]) == sorted(
        {w["start_ns"] for w in found["windows"]}
    )
    assert sum(w["events"] for w in found["windows"]) in (len(events), len(events) + 1)
    assert sum(w["sent"] for w in found["windows"]) == wanted.messages
    reasons = sorted((Path(q["file"]).name, q["row"], q["reason"]) for q in found["quarantine"])
    assert reasons == [
        ("more.jsonl", 1, "not a JSON object"),
        ("more.jsonl", 2, "has no process"),
    ]


def test_a_batch_that_is_done_again_is_there_once(spark: SparkSession, tmp_path: Path) -> None:
    """The commit of the last batch is lost, as in a crash right before it."""
    events = timed(3, steps=60)
    traces, out = tmp_path / "traces", tmp_path / "found"
    traces.mkdir()
    write_trace(traces / "a.parquet", [*events, Event("r", "clock", 0, 10**9, None, "tick")])
    once(spark, traces, out)
    before = tables(out)
    assert before["violations"]
    commits = sorted(
        (file for file in (out / "_checkpoint" / "commits").iterdir() if file.name.isdigit()),
        key=lambda file: int(file.name),
    )
    for file in commits[-1:]:
        file.unlink()
        (file.parent / f".{file.name}.crc").unlink(missing_ok=True)
    once(spark, traces, out)
    assert tables(out) == before


def batches(out: Any, kind: str) -> Any:
    """The batches that were begun (`offsets`) or done (`commits`)."""
    place = out / "_checkpoint" / kind
    return {f.name for f in place.iterdir() if f.name.isdigit()} if place.is_dir() else set()


def test_killed_in_the_middle_of_a_batch(spark: SparkSession, tmp_path: Path) -> None:
    """The command, while nodes write; then it goes on, and each row is there once."""
    events = timed(3, steps=600)
    traces, out = tmp_path / "traces", tmp_path / "found"
    traces.mkdir()
    writers = {
        name: open_writer(traces / f"{name}.jsonl", live=True)
        for name in sorted({e.process for e in events})
    }
    parts = [events[k : k + 30] for k in range(0, len(events), 30)]

    def write(part: Any) -> None:
        for event in part:
            writers[event.process].write(event)
        for writer in writers.values():
            writer.flush()

    write(parts.pop(0))
    options = ["--out", str(out), "--window", "20us", "--late", "100us", "--every", "100ms"]
    options += ["--master", "local[2]", "--conf", "spark.sql.shuffle.partitions=2"]
    command = [sys.executable, "-m", "causewire", "watch", str(traces)]
    watcher = subprocess.Popen(
        [*command, *options],
        env=os.environ | {"JAVA_TOOL_OPTIONS": java_options()},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    assert watcher.stderr is not None
    try:
        end = time.monotonic() + 300
        while not (done := batches(out, "commits")) or not batches(out, "offsets") - done:
            assert watcher.poll() is None, watcher.stderr.read().decode()
            assert time.monotonic() < end, "nothing is watched"
            if done and len(parts) > 4:
                write(parts.pop(0))
            time.sleep(0.01)
    finally:
        os.killpg(watcher.pid, signal.SIGKILL)
        watcher.wait()
        watcher.stderr.close()
    assert len(parts) >= 4
    for part in parts:
        write(part)
    for writer in writers.values():
        writer.close()
    write_trace(traces / "last.parquet", [Event("r", "clock", 0, 10**9, None, "tick")])
    settings = WatchSettings(window_ns=20_000, late_ns=100_000, idle_ms=1)
    watch(spark, traces, out, settings, once=True).query.awaitTermination()
    found = tables(out)
    wanted = check(events, examples=10_000)
    assert found["late"] == found["quarantine"] == []
    starts = [w["start_ns"] for w in found["windows"]]
    assert len(starts) == len(set(starts))
    assert sum(w["events"] for w in found["windows"]) == len(events)
    assert sum(w["sent"] for w in found["windows"]) == wanted.messages
    overtaken = [(v["first_origin"], v["first_mid"]) for v in found["violations"]]
    assert len(overtaken) == len(set(overtaken)) > 0
    assert set(overtaken) == {tuple(v.first) for v in wanted.examples}


def test_once_looks_at_every_row(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Rows that would wait for what may still come are checked as well."""
    events = timed(3, steps=60)
    wanted = check(events, examples=10_000)
    assert wanted.violations > 0
    traces = tmp_path / "traces"
    traces.mkdir()
    for name in {e.process for e in events}:
        write_trace(traces / f"{name}.jsonl", [e for e in events if e.process == name])
    assert main(["watch", str(traces), "--once", "--json"]) == 1
    told = json.loads(capsys.readouterr().out)
    assert told["events"] == len(events)
    assert told["violations"] == len(wanted.examples)
    assert waiting(spark, traces / "_watch") == {}
    assert main(["watch", str(traces), "--once", "--json"]) == 1  # nothing is new
    assert json.loads(capsys.readouterr().out) == told
    assert main(["watch", str(traces), "--once"]) == 1
    (line,) = capsys.readouterr().out.splitlines()
    assert line.startswith(f"found before: {told['violations']} violations, in ")


def test_rows_that_wait_are_known(spark: SparkSession, tmp_path: Path) -> None:
    events = timed(3, steps=20)
    traces, out = tmp_path / "traces", tmp_path / "found"
    traces.mkdir()
    write_trace(traces / "a.parquet", events)
    patient = WatchSettings(window_ns=20_000, late_ns=10**9, idle_ms=600_000)
    watch(spark, traces, out, patient, once=True).query.awaitTermination()
    assert waiting(spark, out) == {events[0].run: len(events)}


def test_a_file_that_is_truncated_is_followed_from_its_start(tmp_path: Path) -> None:
    file = tmp_path / "a.jsonl"
    events = timed(3, steps=20)
    write_trace(file, events)
    follower: Any = Follower("all", [str(tmp_path)])
    first = follower.latestOffset({}, None)
    write_trace(file, events[:5])
    second = follower.latestOffset(first, None)
    (partition,) = follower.partitions(first, second)
    rows = [row for batch in follower.read(partition) for row in batch.to_pylist()]
    assert rows[0]["reason"] == "the file was truncated or replaced; it is read from its start"
    assert [row["seq"] for row in rows[1:]] == [event.seq for event in events[:5]]
    third = follower.latestOffset(second, None)
    assert third == second


def test_json_lines_of_violations(tmp_path: Path) -> None:
    """What is told can be printed as it is."""
    live = LiveRun(bound_ns=0, window_ns=100)
    live.add(
        [
            row("send", "a", 0, 1, "a", 1, "b"),
            row("send", "a", 1, 2, "a", 2, "b"),
            row("deliver", "b", 0, 3, "a", 2),
        ]
    )
    (violation,) = shown(live.advance(ended=True), LiveViolation)
    assert json.loads(json.dumps(violation._asdict()))["first"] == ["a", 1]


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ("nowhere", "nowhere: no such directory"),
        ("file", "file is a file: watch follows a directory; check reads a file"),
        (". --window 0s", "--window must be more than nothing"),
        (". --late soon", "--late: 'soon' is not a duration"),
        (". --every soon", "--every: 'soon' is not a duration"),
        (". --out file", "file: cannot be written"),
    ],
)
def test_bad_input_is_one_line(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
    arguments: Any,
    problem: Any,
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").touch()
    assert main(["watch", *arguments.split()]) == 2
    out, err = capfd.readouterr()
    assert out == ""
    assert err.startswith("causewire watch: ")
    assert problem in err
    assert err.count("\n") == 1
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


@pytest.mark.parametrize(
    ("given", "memory", "collectors"),
    [
        ("", "1g", ["-XX:+UseSerialGC"]),
        ("--conf spark.driver.memory=2g", "2g", ["-XX:+UseSerialGC"]),
        ("--conf spark.driver.extraJavaOptions=-XX:+UseZGC", "1g", ["-XX:+UseZGC"]),
    ],
)
def test_java_has_a_bounded_heap(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, given: str, memory: str, collectors: list[str]
) -> None:
    settings: dict[str, str] = {}

    def session(self: SparkProgress, master: str | None, config: dict[str, str], **_: Any) -> Any:
        settings.update(config)
        raise PipelineError("enough")

    monkeypatch.setattr(SparkProgress, "session", session)
    assert main(["watch", str(tmp_path), *given.split()]) == 2
    options = " ".join(v for k, v in sorted(settings.items()) if k.endswith("JavaOptions"))
    assert settings["spark.driver.memory"] == memory
    assert [option for option in options.split() if option.endswith("GC")] == collectors
    assert int(settings["spark.sql.ui.retainedExecutions"]) <= 100
