"""Sweeps that are stopped, or lose their workers, and are started again."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from causewire.pipeline.sweep import results as columns
from causewire.pipeline.sweep import sweep
from causewire.pipeline.sweep.journal import Journal, JournalWriter
from causewire.pipeline.sweep.simulation import (
    JournalSettings,
    TaskAttempt,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
from .conftest import java_options
from .experiments import SMALL, Write, journal_lines, rows, simulated


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
        env=os.environ | {"JAVA_TOOL_OPTIONS": java_options()},
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
    assert complaint == "interrupted: the same command goes on where this one was\n"
    assert (program.returncode, told) == (130, "")
