"""Traces that cannot be checked, violations as a table, and the command `check` on Spark."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from causewire.check import check
from causewire.cli import check as command
from causewire.cli import main
from causewire.pipeline.check import check_files, check_paths, check_runs, violations
from causewire.pipeline.limits import Limits
from causewire.pipeline.outcomes import report_of
from causewire.trace import NAMES, Event, TraceError, write_trace

from .flipped import flip_a_bit
from .runs import SMALL, frame_of, long_run, noting, planted, write

# -- what cannot be checked ----------------------------------------------------------------------


def test_a_trace_that_cannot_be_read_is_named(spark: SparkSession, tmp_path: Path) -> None:
    good = write(tmp_path / "good.parquet", long_run(1, steps=20))
    bad = tmp_path / "bad.parquet"
    bad.write_bytes(good.read_bytes()[:-100])
    with pytest.raises(TraceError, match=r"bad\.parquet: cut short"):
        check_paths([tmp_path])
    bad.write_bytes(good.read_bytes()[:40] + b"?" * 400 + good.read_bytes()[440:])
    with pytest.raises(TraceError, match=r"bad\.parquet.*damaged"):
        check_paths([tmp_path])
    bad.unlink()
    (tmp_path / "bad.jsonl").write_text('{"run": "r"}\n')
    with pytest.raises(TraceError, match=r"bad\.jsonl: row 1: has no process"):
        check_paths([tmp_path])


def test_a_bit_that_flipped_is_found_by_its_checksum(spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "run.parquet"
    write_trace(path, long_run(3))
    flip_a_bit(path, NAMES.index("seq"))
    for limits in (Limits(), SMALL):
        with pytest.raises(TraceError, match=r"run\.parquet.*damaged"):
            check_paths([path], limits=limits)


def test_a_cycle_is_named(spark: SparkSession, tmp_path: Path) -> None:
    events = [
        Event("r", "a", 0, None, None, "deliver", "b", 1, ("b",)),
        Event("r", "a", 1, None, None, "send", "a", 1, ("b",)),
        Event("r", "b", 0, None, None, "deliver", "a", 1, ("a",)),
        Event("r", "b", 1, None, None, "send", "b", 1, ("a",)),
    ]
    path = write(tmp_path / "cycle.parquet", events)
    with pytest.raises(TraceError, match="cycle"):
        check_paths([path])
    with pytest.raises(TraceError, match="cycle"):
        check_paths([path], limits=Limits(large=2))


def test_violations_as_a_table(spark: SparkSession) -> None:
    events = planted(long_run(1, steps=100), 6, seed=3)
    frame = frame_of(spark, events)
    outcomes = check_runs(frame, examples=100)
    table = violations(outcomes).orderBy("process", "seq").collect()
    wanted = check(events, examples=100)
    assert [row.asDict(recursive=True) for row in table] == sorted(
        (violation.to_json() for violation in wanted.examples),
        key=lambda row: (row["process"], row["seq"]),
    )
    assert report_of(outcomes.toArrow(), 100).violations == wanted.violations


def test_violations_of_files_as_a_table(spark: SparkSession, tmp_path: Path) -> None:
    path = write(tmp_path / "long.parquet", planted(long_run(1, steps=300), 6, seed=3))
    outcomes = check_files(spark, [path], limits=SMALL)
    assert [tuple(row) for row in outcomes.select("run", "processes").collect()] == [("long", 5)]
    found = [row.asDict(recursive=True) for row in violations(outcomes).collect()]
    assert found == [violation.to_json() for violation in check(str(path)).examples]


# -- the command -------------------------------------------------------------------------------


def test_the_engine_makes_no_difference(
    spark: SparkSession, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    write(tmp_path / "long.parquet", planted(long_run(1, steps=100), 6, seed=3))
    told = {}
    for engine in ("local", "spark"):
        assert main(["check", str(tmp_path), "--engine", engine, "--json"]) == 1
        told[engine] = capfd.readouterr().out
    assert told["local"] == told["spark"]


LOG = 'a {"a":1}\nsend m1\na {"a":2}\nsend m2\nb {"b":1,"a":2}\ngot m2\nb {"b":2,"a":2}\ngot m1\n'
NAMED = r"(?<host>\S*) (?<clock>{.*})\n(?<event>send (?<send>\S+)|got (?<deliver>\S+))"


def test_the_engine_makes_no_difference_to_logs(
    spark: SparkSession,
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What was inferred is said to be so, lines between events are counted, and the rest fits."""
    monkeypatch.chdir(tmp_path)  # where executors are not
    good, bad = tmp_path / "good", tmp_path / "bad"
    for name, text in {"a": LOG, "b": "a remark\n" + LOG, "c": "nothing else\n"}.items():
        good.mkdir(exist_ok=True)
        (good / f"{name}.log").write_text(text)
    bad.mkdir()
    (bad / "b.log").write_text(LOG.replace('{"a":1}', '{"a":7}'))
    told: dict[str, list[Any]] = {"local": [], "spark": []}
    for engine, said in told.items():
        for more in (["--format", "shiviz"], ["--regex", NAMED]):
            assert main(["check", "good", "--engine", engine, "--json", *more]) == 1
            found = json.loads(capfd.readouterr().out)
            said.append(found)
            assert found["inferred"] == (more[0] == "--format")
            assert found["violations"] == (0 if found["inferred"] else 2)
            assert ("were inferred" in found["verdict"]) == found["inferred"]
            assert found["quarantined"] == 3
        assert main(["check", "bad", "--engine", engine, "--regex", NAMED]) == 2
        said.append(capfd.readouterr().err)
    assert told["local"] == told["spark"]


def test_spark_is_the_default_for_large_directories(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write(tmp_path / "long.parquet", long_run(1, steps=20))
    asked: list[Any] = []
    monkeypatch.setattr(
        command, "_on_spark", noting(asked, 0, lambda *_: command._Checked(check(str(path))))
    )
    assert main(["check", str(tmp_path)]) == 0
    assert not asked
    monkeypatch.setattr(command, "SPARK_FROM", path.stat().st_size)
    assert main(["check", str(path)]) == 0
    assert main(["check", str(tmp_path), "--engine", "local"]) == 0
    assert main(["check", str(tmp_path), "--tolerate-cut"]) == 0
    assert not asked
    assert main(["check", str(tmp_path)]) == 0
    assert len(asked) == 1
    monkeypatch.setattr(command, "find_spec", lambda _: None)  # PySpark is not there
    assert main(["check", str(tmp_path)]) == 0
    assert len(asked) == 1
    assert capfd.readouterr().err == ""


def test_one_line_for_what_cannot_be_checked(
    spark: SparkSession, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    good = write(tmp_path / "good.parquet", long_run(1, steps=20))
    bad = tmp_path / "worse.parquet"
    for data, problem in (
        (good.read_bytes()[:-100], "worse.parquet: cut short"),
        (good.read_bytes()[:40] + b"?" * 400 + good.read_bytes()[440:], "worse.parquet"),
    ):
        bad.write_bytes(data)
        before = sorted(tmp_path.iterdir())
        assert main(["check", str(tmp_path), "--engine", "spark"]) == 2
        out, err = capfd.readouterr()
        assert out == ""
        assert err.startswith("causewire check: ")
        assert err.count("\n") == 1
        assert problem in err
        assert sorted(tmp_path.iterdir()) == before
