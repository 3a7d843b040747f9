"""`causewire demo`: real processes, a bad network, and what people are shown of it."""

from __future__ import annotations

import html
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from causewire.check import check
from causewire.cli import demo
from causewire.demo import stage
from causewire.demo.chat import CONVERSATIONS, FRIENDS, Line
from causewire.demo.judge import isolation, judge_here
from causewire.demo.page import told_freeze
from causewire.protocols import DEFAULT
from causewire.trace import Event, open_trace, write_trace

from .command_line import CommandLine


@pytest.mark.slow
def test_fifo_breaks_and_the_default_holds(causewire: CommandLine, tmp_path: Path) -> None:
    out = tmp_path / "out"
    status, said, err = causewire(f"demo --engine local --conversations 8 --out {out}")
    assert (status, err) == (0, "")
    violations = re.search(r"lines read before what they answer +([\d,]+) +0\n", said)
    assert violations is not None
    assert int(violations[1].replace(",", "")) > 0
    assert "reads, too late, “" in said
    assert said.index("reads, too late") < said.index("Now the same chat")  # the story comes first
    assert "eve's process stood still" in said
    assert f"causewire explore {out / 'fifo'}" in said
    assert max(map(len, said.replace(str(out), "OUT").splitlines())) <= 80

    fifo, causal, frozen = (
        check(open_trace(out / name)) for name in ("fifo", DEFAULT, f"{DEFAULT}-frozen")
    )
    assert not fifo.ordered
    assert fifo.messages == causal.messages == 8 * len(CONVERSATIONS[0]) * len(FRIENDS)
    for report in (causal, frozen):
        assert report.ordered
        assert (report.undelivered, report.duplicates, report.bad.total()) == (0, 0, 0)

    page = (out / "index.html").read_text()
    assert "happened before" in page
    body = re.sub(r"<script>.*?</script>", "", page, flags=re.DOTALL)
    for link in re.findall(r'(?:src|href)="([^"]+)"', body):
        assert link.startswith("data:") or (out / link).is_file(), link
    assert "too early" in (out / "violation.svg").read_text()
    for line in said.splitlines():
        if " reads" in line:
            at, what = line.strip().split("  ", 1)
            assert f"<span>{at}</span> {what}</li>" in html.unescape(page)


@pytest.mark.slow
def test_json_and_a_second_time(causewire: CommandLine, tmp_path: Path) -> None:
    out = tmp_path / "out"
    for many in (1, 2):  # a report takes the place of an older one
        done = causewire(
            f"demo --engine local --conversations {many} --loss 0 --freeze 0 --protocol csps "
            f"--json --out {out}"
        )
        assert (done.status, done.err) == (0, "")
        fifo, csps = done.json["runs"]
        assert (fifo["protocol"], csps["protocol"]) == ("fifo", "csps")
        assert done.json["freeze"] is None
        assert 0 < csps["unavoidable_mean_ns"] <= csps["latency_mean_ns"]
        assert csps["violations"] == 0
        assert fifo["messages"] == csps["messages"] == many * 3 * 5
        assert fifo["lost"] == csps["lost"] == 0
        assert 0 < csps["latency_p50_ns"] <= csps["latency_p99_ns"]
        assert done.json["page"] == str(out / "index.html")
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


@pytest.mark.slow
def test_without_spark_it_says_so_and_goes_on(
    causewire: CommandLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(demo, "find_spec", lambda _: None)
    done = causewire(f"demo --conversations 1 --protocol sps --freeze 0 --out {tmp_path / 'out'}")
    assert (done.status, done.err) == (0, "")
    said = " ".join(done.out.split())
    assert "checked in this process, since PySpark is not installed: pip install" in said


@pytest.mark.slow
def test_interrupted(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "causewire", "demo", "--out", str(tmp_path / "out")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        while not list(tmp_path.glob(".out.partial/fifo/*.jsonl")) and process.poll() is None:
            time.sleep(0.01)
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=60)
    assert (process.returncode, err) == (130, b"")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_when_it_takes_too_long(
    causewire: CommandLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stage, "PATIENCE", 0.01)
    done = causewire(f"demo --engine local --out {tmp_path / 'out'}")
    assert done.status == 2
    assert done.err.startswith("causewire demo: the friends were not done in time")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ("--protocol fifo", "must be causal"),
        ("--protocol mf", "tell everybody"),
        ("--protocol nonsense", "nonsense"),
        ("--conversations 0", "from 1 upward"),
        ("--loss 2", "from 0 to 0.5"),
        ("--freeze 99", "from 0 to 10"),
        ("--engine local --master local[1]", "--engine spark"),
        ("--out {there}", "is not a report"),
        ("--out {there}/file/out", "cannot be written"),
    ],
)
def test_bad_usage_is_one_line(
    causewire: CommandLine, tmp_path: Path, arguments: str, reason: str
) -> None:
    (tmp_path / "file").write_text("precious")
    base = "" if "--out" in arguments else f"--out {tmp_path / 'out'} "
    done = causewire(f"demo {base}{arguments.format(there=tmp_path)}")
    assert done.status == 2
    assert done.err.count("\n") == 1
    assert done.err.startswith("causewire demo: ")
    assert reason in done.err
    assert [path.read_text() for path in tmp_path.iterdir()] == ["precious"]


def test_what_answers_what() -> None:
    question = Line("I lost my ring.", 6, 0, ("ann", "bob"), 3)
    answer = question._replace(text="I found it!", turn=1)
    assert answer.answers(question)
    assert not question.answers(answer)
    assert not answer._replace(number=4).answers(question)


def row(
    process: str, seq: int, at: int, lamport: int, kind: str, message: str, *peers: str
) -> Event:
    origin, mid = message.split(":")
    return Event("r", process, seq, at, lamport, kind, origin, int(mid), peers, 1, 0)


def test_what_is_unavoidable(tmp_path: Path) -> None:
    """The answer overtakes the question; causal order has to wait for the question alone."""
    rows = [
        row("a", 0, 0, 1, "send", "a:1", "b", "c"),
        row("a", 1, 0, 2, "release", "a:1", "b"),
        row("a", 2, 0, 3, "release", "a:1", "c"),
        row("b", 0, 10, 4, "receive", "a:1", "a"),
        row("b", 1, 10, 5, "deliver", "a:1", "a"),
        row("b", 2, 10, 6, "send", "b:1", "c"),
        row("b", 3, 15, 7, "release", "b:1", "c"),
        row("c", 0, 20, 8, "receive", "b:1", "b"),
        row("c", 1, 40, 9, "receive", "a:1", "a"),
        row("c", 2, 40, 10, "deliver", "a:1", "a"),
        row("c", 3, 45, 11, "deliver", "b:1", "b"),
    ]
    write_trace(tmp_path / "t.jsonl", rows)
    judged = judge_here(tmp_path)
    assert judged.mean_ns == (10 + 40 + 35) / 3
    assert judged.unavoidable_ns == (10 + 40 + 30) / 3
    found = isolation(tmp_path, "a", (5, 60))
    assert (found.lines, found.read, found.median_ns) == (1, 1, 35)

    freeze = stage.Freeze("a", after=0.5, lasting=1.5)
    assert "read 100% of the lines" in told_freeze(freeze, "csps", found)
    nothing = isolation(tmp_path, "a", (50, 60))
    assert (nothing.lines, nothing.read, nothing.median_ns) == (0, 0, None)
    said = told_freeze(freeze, "csps", nothing)
    assert "the others wrote nothing to each other" in said
    assert "100%" not in said


def test_the_chat_outlasts_the_freeze() -> None:
    freeze = stage.Freeze("eve", after=0.5, lasting=1.5)
    assert freeze.conversations(40, pause=0.1) == 40
    assert freeze.conversations(2, pause=0.1) * 0.1 > 2.0


def test_the_explorer_is_offered_as_it_can_be_called(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda _: "/usr/bin/causewire")
    assert demo._command() == "causewire"
    monkeypatch.setattr(shutil, "which", lambda _: None)  # after `make demo`: not on the PATH
    monkeypatch.setattr(sys, "argv", [".venv/bin/causewire", "demo"])
    assert demo._command() == ".venv/bin/causewire"
    monkeypatch.setattr(sys, "argv", ["src/causewire/__main__.py", "demo"])
    assert demo._command() == "python -m causewire"
