"""What a terminal shows of long work, and of long lines."""

from __future__ import annotations

import io
import re
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from causewire import cli
from causewire.cli import progress as module
from causewire.cli.output import fitted, table
from causewire.cli.progress import Progress, remaining, shortened
from causewire.cli.spark import SparkProgress
from causewire.pipeline.sweep import SweepState
from causewire.sim import Config, simulate
from causewire.trace import open_trace, open_writer


class Terminal(io.StringIO):
    """A stream that says it is a terminal, and keeps what is written to it."""

    def isatty(self) -> bool:
        return True

    def lines(self) -> list[str]:
        return [line for line in self.getvalue().split("\r\x1b[K") if line]


class Clock:
    """A clock that advances by half a second each time somebody looks."""

    def __init__(self) -> None:
        self.now = 0.0

    def monotonic(self) -> float:
        self.now += 0.5
        return self.now


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    stream = Terminal()
    monkeypatch.setattr(module, "sys", SimpleNamespace(stderr=stream))
    monkeypatch.setattr(module, "time", Clock())
    monkeypatch.setattr(module, "find_spec", lambda _: None)
    monkeypatch.setenv("COLUMNS", "100")
    return stream


def test_the_rest_is_estimated_from_what_is_done() -> None:
    assert remaining(1.0, 0.5) == ""
    assert remaining(4.0, 0.0) == "unknown"
    assert remaining(4.0, 0.25) == "12 s"
    assert remaining(90.0, 0.5) == "1 min 30 s"
    assert remaining(3600.0, 0.25) == "3 h 0 min"
    assert remaining(4.0, 1.0) == ""


def test_another_pass_begins_a_new_estimate(terminal: Terminal) -> None:
    with Progress("checking") as progress:
        for done in range(10, 100, 10):
            progress.about(done, 100, "events")
        first = terminal.lines()[-1]
        for done in range(10, 50, 10):
            progress.about(done, 100, "events")
    assert first.startswith("checking: 90 events  90 %, ")
    assert terminal.lines()[-1].startswith("checking: 40 events  40 %, ")
    assert int(first.split(", ")[1].split()[0]) <= 2
    assert int(terminal.lines()[-1].split(", ")[1].split()[0]) <= 12


def _trace(path: Path, messages: int) -> Path:
    with open_writer(path) as writer:
        simulate(
            Config.from_dict({"protocol": "csps", "processes": 4, "messages": messages}), writer
        )
    return path


def test_about_how_many_rows_a_trace_has(tmp_path: Path) -> None:
    for name in ("run.parquet", "run.jsonl"):
        trace = open_trace(_trace(tmp_path / name, 300))
        rows = sum(1 for _ in trace.events())
        assert trace.about_rows() == pytest.approx(rows, rel=0.2)
    assert open_trace(tmp_path / "run.parquet").about_rows() == rows
    assert open_trace(tmp_path).about_rows() == pytest.approx(2 * rows, rel=0.2)


@pytest.mark.parametrize(
    "command",
    [
        "check {}",
        "convert {} -o out.jsonl",
        "convert {} -o out.shiviz",
        "explore {} --save out.html",
        "replay {} --protocol csps",
        "report {} --out out",
    ],
)
def test_commands_that_read_traces_tell_how_far_they_are(
    command: str, tmp_path: Path, terminal: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    path = _trace(tmp_path / "run.parquet", 200)
    assert cli.main(command.replace("{}", str(path)).split()) == 0
    assert any("% " in f"{line} " for line in terminal.lines())


def test_a_search_tells_how_many_programs_are_left(terminal: Terminal) -> None:
    cli.main(["verify", "--protocol", "mf", "--messages", "1", "--jobs", "1"])
    assert any(" states, depth " in line and " left" in line for line in terminal.lines())


def test_one_search_tells_how_fast_it_is_and_that_nobody_knows_how_long_it_takes(
    terminal: Terminal,
) -> None:
    program = "0>1,2; 1>2,0; 2>0,1"
    cli.main(["verify", "--protocol", "mf", "--program", program, "--jobs", "1"])
    told = terminal.lines()[-1]
    assert re.fullmatch(r"searching: [\d,]+ states, [\d,]+ a second, depth \d+, unknown left", told)


def test_spark_tells_what_it_does_and_how_many_tasks_are_done(terminal: Terminal) -> None:
    with Progress("checking on Spark") as progress:
        shown = SparkProgress(progress)
        shown.tasks(0, 8)
        shown.say("measuring")
        for done in range(1, 7):
            shown.tasks(done, 8)
    assert "checking on Spark: 0 of 8 tasks  0 %" in terminal.lines()
    assert "checking on Spark: measuring" in terminal.lines()
    assert terminal.lines()[-1].startswith("checking on Spark: measuring, 6 of 8 tasks  75 %, ")


def test_a_sweep_tells_how_many_runs_are_done_and_when_the_rest_will_be(
    terminal: Terminal,
) -> None:
    with Progress("sweeping") as progress:
        shown = SparkProgress(progress)
        shown.say("simulating")
        shown.runs(SweepState(done=3, runs=8, failed=1, rate=0.05, share=0.75, seconds=60.0))
        shown.runs(SweepState(done=8, runs=8, failed=1, rate=0.05, share=1.0, seconds=80.0))
    assert terminal.lines() == [
        "sweeping: simulating",
        "sweeping: 3 of 8 runs, 1 failed, 0.05 a second  75 %, 20 s left",
        "sweeping: writing the table of runs",
    ]


def test_reading_another_format_is_told(terminal: Terminal, tmp_path: Path) -> None:
    path = _trace(tmp_path / "run.parquet", 100)
    assert cli.main(["convert", str(path), "-o", str(tmp_path / "run.shiviz")]) == 0
    assert cli.main(["check", str(tmp_path / "run.shiviz")]) == 0
    assert any(line.startswith("reading: the log  ") for line in terminal.lines())


def test_what_is_shown_makes_room_for_what_is_printed(terminal: Terminal) -> None:
    with Progress("watching") as progress:
        progress.say("one")
        progress.clear()
        assert terminal.getvalue().endswith("\r\x1b[K")
        progress.say("two")
    assert terminal.lines() == ["watching: one", "watching: two"]


def test_what_is_done_makes_room_for_how_much_of_it_and_how_long() -> None:
    assert shortened("they chat under csps, eve stands still", 40).endswith("still")
    assert shortened("they chat under csps, eve stands still", 22) == "they chat under csps…"
    assert len(shortened("x" * 50, -3)) == 8


def test_lines_are_wrapped_below_their_beginning() -> None:
    text = "  1. p1 sent p1:1 to p2; p1 then sent p1:2 to p0\nname    what it does for whom"
    assert fitted(text, 30).split("\n") == [
        "  1. p1 sent p1:1 to p2; p1",
        "     then sent p1:2 to p0",
        "name    what it does for whom",
    ]
    assert fitted("name    what it does for whom", 20).split("\n") == [
        "name    what it does",
        "        for whom",
    ]
    assert fitted("a" * 50, 20) == "a" * 50


def test_a_heading_may_have_two_lines() -> None:
    assert table([("who", "held at\nsender"), ("a", "1")]).split("\n") == [
        "     held at",
        "who   sender",
        "a          1",
    ]


def test_a_column_of_numbers_may_have_gaps() -> None:
    assert table([("what", "fifo"), ("violations", "4"), ("least", "")]).split("\n")[1] == (
        "violations     4"
    )


@pytest.mark.parametrize(
    "command",
    [
        "protocols",
        "protocols adaptive csps",
        "check {}",
        "simulate --protocol adaptive --workload broadcast --processes 9 --messages 90 --loss 0.1",
        "verify --protocol sps-unsent-not-counted",
        "replay {}",
        "workload",
    ],
)
def test_output_fits_eighty_columns(
    command: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    with open_writer("run.jsonl") as writer:
        settings = {"protocol": "fifo", "processes": 5, "messages": 200, "seed": 7}
        simulate(Config.from_dict({**settings, "workload": "relay"}), writer)
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    cli.main(command.replace("{}", "run.jsonl").split())
    out, _ = capsys.readouterr()
    assert out
    assert [line for line in out.splitlines() if len(line) > 80] == []
