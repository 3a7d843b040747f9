"""Bad usage and bad input: one clear line, status 2, nothing written."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from causewire.cli import bench
from causewire.trace import NAMES, arrow_schema

from .command_line import ORDERED, CommandLine, written


@pytest.fixture(scope="module")
def bad_ones(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with one good trace and many bad ones."""
    tmp_path = tmp_path_factory.mktemp("bad")
    written(tmp_path / "good.parquet", ORDERED)
    written(tmp_path / "good.jsonl", ORDERED)
    whole = (tmp_path / "good.parquet").read_bytes()
    table = pq.read_table(tmp_path / "good.parquet")
    (tmp_path / "text.parquet").write_text("not Parquet at all, but long enough to be looked at")
    (tmp_path / "cut.parquet").write_bytes(whole[: len(whole) // 2])
    (tmp_path / "none.parquet").write_bytes(b"")
    pq.write_table(table.drop_columns(["peers", "kind"]), tmp_path / "columns.parquet")
    seq = NAMES.index("seq")
    texts = table["seq"].cast(pa.string())
    pq.write_table(table.set_column(seq, "seq", texts), tmp_path / "types.parquet")
    pq.write_table(arrow_schema().empty_table(), tmp_path / "empty.parquet")
    (tmp_path / "empty.jsonl").write_text("")
    (tmp_path / "lines.jsonl").write_text("this is not JSON\n")
    (tmp_path / "types.jsonl").write_text(
        (tmp_path / "good.jsonl").read_text().replace('"seq":0', '"seq":"zero"')
    )
    (tmp_path / "columns.jsonl").write_text('{"run":"r","process":"p"}\n')
    (tmp_path / "bare").mkdir()
    (tmp_path / "odd.csv").write_text("a,b\n")
    (tmp_path / "bytes.log").write_bytes(b"\xff\x00\x01")
    (tmp_path / "text.log").write_text("no clocks in here\n")
    (tmp_path / "app.log").write_text('a {"a":1}\nstarts\n')
    (tmp_path / "system.toml").write_text("protocol = 'csps'\nnonsense = 1\n")
    (tmp_path / "broken.toml").write_text("protocol = \n")
    return tmp_path


@pytest.fixture
def here(bad_ones: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The same as the current directory; as nothing is written, all tests can share it."""
    monkeypatch.chdir(bad_ones)
    return bad_ones


TRACES = {
    "missing.parquet": "no such file",
    "missing.jsonl": "no such file",
    "text.parquet": "not a Parquet file",
    "none.parquet": "not a Parquet file",
    "cut.parquet": "cut short",
    "columns.parquet": "no column kind, peers",
    "types.parquet": "column seq is string, not int64",
    "empty.parquet": "the trace is empty",
    "empty.jsonl": "the trace is empty",
    "lines.jsonl": "row 1: not a JSON object",
    "types.jsonl": "row 1: seq must be an integer",
    "columns.jsonl": "row 1: has no kind",
    "bare": "a directory without",
    "odd.csv": "neither .parquet nor .jsonl",
    "bytes.log": "is not text",
    "text.log": "the expression matches no events",
}

COMMANDS = {
    "": "required: COMMAND",
    "frobnicate": "invalid choice: 'frobnicate'",
    "--frobnicate": "causewire --help",
    "protocols nope": "there is no protocol 'nope'",
    "simulate --frobnicate": "unrecognized arguments",
    "simulate --protocol nope": "there is no protocol 'nope'",
    "simulate --workload nope": "nope",
    "simulate --processes -3": "an integer from 1 upward, not -3",
    "simulate --processes three": "invalid int value",
    "simulate --messages -1": "an integer from 0 upward, not -1",
    "simulate --seed -1": "an integer from 0 upward, not -1",
    "simulate --set sizes.payload=-1": "sizes.payload must be bytes from 0 upward",
    "simulate --set sizes.ack=-16": "sizes.ack must be bytes from 0 upward",
    "simulate --loss 2": "a number from 0 to 1",
    "simulate --loss nan": "a number from 0 to 1",
    "simulate --duplicate -0.5": "a number from 0 to 1",
    "simulate --latency soon": "--latency: 'soon' is not a duration such as",
    "simulate --jitter 5parsecs": "--jitter: '5parsecs' is not a duration",
    "simulate --latency -5ms": "--latency must not be negative: -5ms",
    "simulate --jitter -0.5ms": "--jitter must not be negative: -0.5ms",
    "simulate --latency 5": "--latency: 5 is ambiguous: write 5ms or 5us",
    "simulate --set network.latency=5": "network.latency: 5 is ambiguous: write 5ms or 5us",
    "draw good.parquet --from 5": "--from: 5 is ambiguous: write 5ms or 5us",
    "simulate --bandwidth 0": "at least one byte a second",
    "simulate --bandwidth wide": "network.bandwidth must be",
    "simulate --protocol bss --workload uniform": "bss only broadcasts",
    "simulate --protocol newtop --workload relay": "newtop only broadcasts",
    "simulate --protocol mf --workload broadcast": "mf has no multicast",
    "simulate --protocol cykas --workload groups": "cykas has no multicast",
    "simulate --protocol ks --loss 0.1": "ks tolerates no loss",
    "simulate --protocol cykas --duplicate 0.1": "cykas tolerates no duplication",
    "simulate --processes 1": "at least 2 processes",
    "simulate --workload microservices": "needs 'services'",
    "simulate --workload replay": "needs 'trace'",
    "simulate --workload replay --set workload.trace=missing.parquet": "no such file",
    "simulate --config missing.toml": "cannot be read",
    "simulate --config broken.toml": "not TOML",
    "simulate --config system.toml": "no setting 'nonsense'",
    "simulate --set nonsense": "--set takes KEY=VALUE",
    "simulate --set .=1": "--set takes KEY=VALUE",
    "simulate --set messages.x=1 --messages 5": "messages is a value",
    "simulate --trace nowhere/run.parquet": "cannot be written",
    "simulate --trace nowhere/run.jsonl": "cannot be written",
    "simulate --trace run.csv": ".parquet, .jsonl, or a directory",
    "simulate --protocol bss --trace run.parquet": "bss only broadcasts",
    "check": "required: TRACE",
    "check good.parquet --engine local --master local[2]": "--master is for --engine spark",
    "check good.parquet --engine local --conf spark.a=b": "--conf is for --engine spark",
    "check good.parquet --conf spark.a=b": "--conf is for --engine spark",
    "check good.parquet --engine abacus": "invalid choice: 'abacus'",
    "check good.parquet --examples -1": "from 0 upward",
    "check good.parquet missing.jsonl": "no such file",
    "check text.log --regex '('": "bad expression",
    "check text.log --regex '(?<host>.)'": "no group clock, event",
    "draw": "required: TRACE",
    "draw good.parquet --around ann": "--around takes ORIGIN:MID, not 'ann'",
    "draw good.parquet --around ann:one": "--around takes ORIGIN:MID",
    "draw good.parquet --around ann:9": "there is no message ann:9",
    "draw good.parquet --around ann:1 --violation 1": "exclude each other",
    "draw good.parquet --violation 1": "no violation 1 to draw: there is none",
    "draw good.parquet --violation 0": "--violation counts from 1",
    "draw good.parquet --run nope": "there is no run 'nope' (there are 'story')",
    "draw good.parquet --process zoe": "no process 'zoe' (there are ann, bob, cy)",
    "draw good.parquet --from soon": "--from: 'soon' is not a duration",
    "draw good.parquet --from 1s": "no rows in that window",
    "draw good.parquet --to ann:77": "process 'ann' has no row 77",
    "draw good.parquet --events 0": "--events must be from 1 upward",
    "draw good.parquet --axis round": "invalid choice: 'round'",
    "draw good.parquet -o nowhere/out.svg": "cannot be written",
    "draw good.parquet -o bare": "is a directory",
    "convert good.parquet": "required: -o",
    "convert good.parquet -o out.csv": ".parquet, .jsonl, or a directory",
    "convert good.parquet -o nowhere/out.jsonl": "cannot be written",
    "convert good.parquet -o nowhere/out.log": "cannot be written",
    "convert good.parquet --run nope -o out.parquet": "there is no run 'nope'",
    "convert good.parquet --run nope -o out.log": "there is no run 'nope'",
    "bench nope": "no benchmark 'nope'",
    "bench --frobnicate": "unrecognized arguments",
}

COMMANDS |= {
    command.format(trace): reason
    for trace, reason in TRACES.items()
    for command in ("check {}", "check {} --json", "draw {} -o out.svg", "convert {} -o out.jsonl")
}


def _contents(directory: Path) -> dict[str, bytes | None]:
    return {
        str(path): path.read_bytes() if path.is_file() else None for path in directory.rglob("*")
    }


@pytest.mark.parametrize("command", COMMANDS, ids=str)
def test_one_clear_line_and_nothing_written(
    command: str, here: Path, causewire: CommandLine
) -> None:
    before = _contents(here)
    status, out, err = causewire(command)
    assert status == 2
    assert out == ""
    assert COMMANDS[command] in err
    assert err.startswith("causewire")
    assert err.count("\n") == 1
    assert err.endswith("\n")
    assert _contents(here) == before


def test_an_error_names_the_command(here: Path, causewire: CommandLine) -> None:
    assert causewire("check", "missing.parquet").err == (
        "causewire check: missing.parquet: no such file or directory\n"
    )


def test_an_installation_without_benchmarks_says_so(
    here: Path, causewire: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bench, "__file__", str(here / "a" / "b" / "c" / "bench.py"))
    status, out, err = causewire("bench")
    assert (status, out) == (2, "")
    assert err == "causewire bench: this installation has no benchmarks\n"
