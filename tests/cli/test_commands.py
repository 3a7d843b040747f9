"""What each command does when all is well, and the contract of its output."""

from __future__ import annotations

import json
import shlex
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from causewire import protocols
from causewire.cli import COMMANDS, bench
from causewire.trace import open_trace

from .command_line import ORDERED, VIOLATING, CommandLine, written


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


# -- help ------------------------------------------------------------------------


def test_help_lists_every_command_and_the_exit_statuses(causewire: CommandLine) -> None:
    status, out, err = causewire("--help")
    assert (status, err) == (0, "")
    for name, sentence in COMMANDS.items():
        assert name in out
        assert sentence in out
    assert "exit status: 0" in out


@pytest.mark.parametrize("command", ["protocols", "simulate", "check", "draw", "convert", "bench"])
def test_help_of_a_command_has_an_example(command: str, causewire: CommandLine) -> None:
    status, out, err = causewire(command, "--help")
    assert (status, err) == (0, "")
    assert f"examples:\n  causewire {command}" in out
    assert max(map(len, out.splitlines())) <= 100


def test_version(causewire: CommandLine) -> None:
    status, out, _ = causewire("--version")
    assert status == 0
    assert out.startswith("causewire ")


# -- protocols ---------------------------------------------------------------------


def test_protocols_fit_on_a_terminal(causewire: CommandLine) -> None:
    status, out, err = causewire("protocols")
    assert (status, err) == (0, "")
    for name in protocols.names():
        assert sum(line.split(" ")[0] == name for line in out.splitlines()) == 4
    assert max(map(len, out.splitlines())) <= 100


def test_protocols_as_json(causewire: CommandLine) -> None:
    status, out, _ = causewire("protocols", "--json")
    assert status == 0
    listed = {entry["name"]: entry for entry in json.loads(out)["protocols"]}
    assert list(listed) == protocols.names()
    assert listed["csps"]["message_space"] == "O(1)"
    assert listed["fifo"]["causal"] is False
    assert listed["bss"]["unicast"] is False


def test_one_protocol_in_full(causewire: CommandLine) -> None:
    status, out, _ = causewire("protocols", "cykas", "newtop")
    assert status == 0
    assert "may wait for ever while others keep sending" in out
    assert "must be reliable, with FIFO links" in out


# -- simulate ----------------------------------------------------------------------


def test_simulate_with_the_flags_of_the_contract(causewire: CommandLine, here: Path) -> None:
    flags = (
        "--protocol csps --processes 4 --messages 30 --workload relay --seed 7 --loss 0.05 "
        "--duplicate 0.05 --latency 2ms --jitter 5ms --bandwidth 1MB/s --trace run.parquet --json"
    )
    status, out, err = causewire("simulate", flags)
    assert (status, err) == (0, "")
    summary = json.loads(out)
    assert (summary["protocol"], summary["workload"], summary["seed"]) == ("csps", "relay", 7)
    assert (summary["processes"], summary["messages"], summary["deliveries"]) == (4, 30, 30)
    assert summary["undelivered"] is None
    assert summary["lost"] > 0
    assert summary["trace"] == "run.parquet"
    assert summary["rows"] == len(list(open_trace(here / "run.parquet").events()))


def test_latency_and_jitter_bound_what_a_packet_takes(causewire: CommandLine) -> None:
    causewire("simulate --messages 300 --latency 2ms --jitter 3ms --trace run.jsonl")
    left = {}
    taken = []
    for event in open_trace("run.jsonl").events():
        if event.kind == "release":
            left[event.origin, event.mid] = event.time_ns or 0
        elif event.kind == "receive":
            taken.append((event.time_ns or 0) - left[event.origin, event.mid])
    assert 2_000_000 <= min(taken) < 2_100_000
    assert 4_900_000 < max(taken) <= 5_000_000


def test_simulate_from_a_file_and_overrides(causewire: CommandLine, here: Path) -> None:
    (here / "system.toml").write_text(
        """
        protocol = "sps"
        messages = 40
        processes = 3
        workload = { kind = "relay", hops = 5 }
        [network.latency]
        kind = "regions"
        names = ["eu", "us"]
        matrix = [["1ms", "40ms"], ["40ms", "1ms"]]
        [[faults]]
        kind = "partition"
        at = "20ms"
        sides = 2
        [[faults]]
        kind = "heal"
        at = "60ms"
        """
    )
    summary = causewire("simulate", "--config", "system.toml", "--json").json
    assert (summary["protocol"], summary["messages"], summary["lost"] > 0) == ("sps", 40, True)
    told = causewire(
        "simulate --config system.toml --protocol csps --messages 12 --processes 5",
        "--workload relay --set workload.hops=2 --set network.loss=0.5 --json",
    ).json
    assert (told["protocol"], told["messages"], told["processes"]) == ("csps", 12, 5)
    assert told["retransmissions"] > 0


def test_simulate_in_words(causewire: CommandLine) -> None:
    status, out, err = causewire("simulate --messages 50 --trace t.jsonl --run mine")
    assert (status, err) == (0, "")
    assert out.startswith("adaptive, uniform: 50 messages among 10 processes, seed 0\n")
    assert "all 50 copies delivered" in out
    assert "causewire check t.jsonl" in out
    assert {event.run for event in open_trace("t.jsonl").events()} == {"mine"}


def test_what_a_fault_makes_unavoidable_is_said(causewire: CommandLine, here: Path) -> None:
    (here / "cut.toml").write_text('[[faults]]\nkind = "partition"\nat = "5ms"\nsides = 2\n')
    status, out, _ = causewire("simulate", "--config", "cut.toml", "--messages", "50")
    assert status == 0
    assert "NOT DELIVERED (unavoidable)" in out
    assert "never healed" in out


def test_replay(causewire: CommandLine) -> None:
    causewire("simulate --protocol fifo --messages 40 --workload relay --trace a.jsonl")
    replayed = causewire("simulate --workload replay --set workload.trace=a.jsonl --json").json
    assert (replayed["protocol"], replayed["messages"]) == ("adaptive", 40)


# -- check -------------------------------------------------------------------------


def test_check_an_ordered_trace(causewire: CommandLine, here: Path) -> None:
    written(here / "good.parquet", ORDERED)
    status, out, err = causewire("check", "good.parquet")
    assert (status, err) == (0, "")
    assert out == "5 events, 2 messages, 3 processes, 1 run\ncausally ordered\n"


@pytest.mark.parametrize("name", ["bad.parquet", "bad.jsonl", "bad"])
def test_check_a_violating_trace(name: str, causewire: CommandLine, here: Path) -> None:
    written(here / name, VIOLATING)
    status, out, err = causewire("check", name)
    assert (status, err) == (1, "")
    assert "NOT causally ordered: 1 violation\n" in out
    assert (
        "1. ann sent ann:1 to bob and cy; bob delivered ann:1 and then sent bob:1 to cy; so ann:1 "
        "happened before bob:1, but cy delivered bob:1 first, and ann:1 only later\n"
    ) in out
    assert f"causewire draw {name} --violation 1" in out


def test_check_as_json(causewire: CommandLine, here: Path) -> None:
    written(here / "bad.parquet", VIOLATING)
    status, out, err = causewire("check", "bad.parquet", "--engine", "local", "--json")
    assert (status, err) == (1, "")
    report = json.loads(out)
    counts = ("events", "messages", "processes", "violations", "duplicates", "undelivered")
    assert [report[name] for name in counts] == [5, 2, 3, 1, 0, 0]
    (example,) = report["examples"]
    assert (example["run"], example["process"]) == ("story", "cy")
    assert example["first"] == {"origin": "ann", "mid": 1}
    assert example["second"] == {"origin": "bob", "mid": 1}
    assert [(link["origin"], link["mid"]) for link in example["chain"]] == [("ann", 1), ("bob", 1)]


def test_files_of_several_nodes_are_one_trace(causewire: CommandLine, here: Path) -> None:
    names = ("cy", "bob", "ann")
    for name in names:
        written(here / f"{name}.jsonl", [e for e in VIOLATING if e.process == name])
    report = causewire("check", *(f"{name}.jsonl" for name in names), "--json").json
    assert (report["events"], report["violations"]) == (5, 1)
    assert causewire("draw", *(f"{name}.jsonl" for name in names)).out.count("<svg") == 1


def test_a_file_that_is_still_written(causewire: CommandLine, here: Path) -> None:
    written(here / "live.jsonl", ORDERED)
    text = (here / "live.jsonl").read_text()
    (here / "live.jsonl").write_text(text[:-20])
    for command in ("check", "draw", "replay", "convert -o out.jsonl", "explore --save out.html"):
        done = causewire(command, "live.jsonl")
        assert done.status == 2
        assert "the last line is cut short (its node was killed, or still writes: " in done.err
        assert "--tolerate-cut" in done.err
    assert causewire("check", "live.jsonl", "--tolerate-cut").status == 0


def test_runs_are_named_where_there_are_several(causewire: CommandLine, here: Path) -> None:
    both = [e._replace(run="second") for e in VIOLATING]
    written(here / "two.parquet", [*ORDERED, *both])
    status, out, _ = causewire("check", "two.parquet")
    assert status == 1
    assert "1. in run second: ann sent ann:1" in out


# -- ShiViz ------------------------------------------------------------------------


def test_shiviz_there_and_back(causewire: CommandLine, here: Path) -> None:
    written(here / "bad.parquet", VIOLATING)
    status, out, err = causewire("convert", "bad.parquet", "-o", "bad.log")
    assert (status, out, err) == (0, "bad.log: 5 rows\n", "")
    assert 'ann {"ann":1}' in (here / "bad.log").read_text()
    report = causewire("check", "bad.log", "--json").json
    assert (report["violations"], report["inferred"]) == (1, False)
    assert causewire("draw", "bad.log").out.count("<svg") == 1


def test_a_foreign_log_with_named_messages(causewire: CommandLine, here: Path) -> None:
    (here / "app.log").write_text(
        'a {"a":1}\nsends m1 to b,c\n'
        'b {"a":1,"b":1}\ngot m1\n'
        'b {"a":1,"b":2}\nsends m2 to c\n'
        'c {"a":1,"b":2,"c":1}\ngot m2\n'
        'c {"a":1,"b":2,"c":2}\ngot m1\n'
    )
    named = (
        r"(?<host>\S+) (?<clock>\{.*\})\n"
        r"(?<event>(?:sends (?<send>\S+) to (?<to>\S+)|got (?<deliver>\S+)))"
    )
    status, out, _ = causewire("check app.log --regex", shlex.quote(named))
    assert status == 1
    assert "a sent a:1 to b and c; b delivered a:1 and then sent b:2 to c" in out
    status, out, _ = causewire("check", "app.log")
    assert status == 1
    assert out.splitlines()[1].startswith("cannot tell: messages were inferred from vector clocks")
    assert "causally ordered" not in out


def test_convert_keeps_every_row(causewire: CommandLine, here: Path) -> None:
    causewire("simulate --messages 60 --trace a.jsonl")
    assert causewire("convert", "a.jsonl", "-o", "b.parquet").status == 0
    assert causewire("convert", "b.parquet", "-o", "c.jsonl").status == 0
    assert (here / "c.jsonl").read_bytes() == (here / "a.jsonl").read_bytes()


# -- draw --------------------------------------------------------------------------


def test_draw_to_a_file(causewire: CommandLine, here: Path) -> None:
    written(here / "bad.parquet", VIOLATING)
    status, out, err = causewire("draw", "bad.parquet", "--violation", "-o", "v.svg")
    assert (status, out, err) == (0, "v.svg: 5 events of run story\n", "")
    root = ET.parse(here / "v.svg").getroot()
    assert root.tag == "{http://www.w3.org/2000/svg}svg"
    assert "cy delivered bob:1 first" in (here / "v.svg").read_text()
    assert sorted(path.name for path in here.iterdir()) == ["bad.parquet", "v.svg"]


@pytest.mark.slow
def test_draw_chooses_a_window(causewire: CommandLine, here: Path) -> None:
    causewire("simulate --processes 30 --messages 900 --workload relay --trace a.jsonl")
    whole = causewire("draw", "a.jsonl").out
    assert "more rows are not shown" in whole
    assert "18 more processes hidden" in whole
    some = causewire("draw a.jsonl --from 20ms --to 30ms --process p03 p01 p02").out
    assert some.index(">p03<") < some.index(">p01<") < some.index(">p02<")
    assert "p04</text>" not in some
    around = causewire("draw a.jsonl --around p07:5 --events 80 --no-control").out
    assert "the message chosen" in around
    assert 'class="ack' not in around
    by_row = causewire("draw a.jsonl --from p03:10 --to p03:20 --axis order").out
    assert "(seq 10)" in by_row
    assert "(seq 20)" in by_row
    assert "not to scale" in by_row


def test_draw_tells_the_run(causewire: CommandLine, here: Path) -> None:
    written(here / "two.parquet", [*ORDERED, *(e._replace(run="second") for e in VIOLATING)])
    assert ">story</text>" in causewire("draw", "two.parquet").out
    assert "one of 2 runs" in causewire("draw", "two.parquet").out
    assert ">second</text>" in causewire("draw", "two.parquet", "--run", "second").out
    assert ">second</text>" in causewire("draw", "two.parquet", "--violation").out
    picked = causewire("draw", "two.parquet", "--run", "story", "--violation", "1")
    assert picked.status == 2


# -- bench -------------------------------------------------------------------------


@pytest.mark.slow
def test_bench_runs_the_programs_of_a_checkout(
    causewire: CommandLine, here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bench, "__file__", str(here / "src" / "causewire" / "cli" / "bench.py"))
    programs = here / "benchmarks"
    programs.mkdir()
    (programs / "plain.py").write_text("print('x fifo 1.5')\n")
    (programs / "json_too.py").write_text(
        "import argparse\np = argparse.ArgumentParser()\n"
        "p.add_argument('--json', action='store_true')\np.parse_args()\nprint('{\"ratio\": 2.0}')\n"
    )
    (programs / "failing.py").write_text("raise SystemExit(3)\n")
    (programs / "alien.py").write_text("raise SystemExit(3)\n")
    monkeypatch.setitem(bench.NEEDS, "alien", ("no_such_package",))
    status, out, err = causewire("bench", "--json")
    assert (status, err) == (1, "causewire bench: failing failed\n")
    results = json.loads(out)["benchmarks"]
    assert results["alien"] == {"status": 0, "skipped": "needs no_such_package"}
    refused = causewire("bench", "alien")
    assert refused.status == 2
    assert 'alien needs no_such_package: pip install "causewire[bench]"' in refused.err
    assert results["plain"]["output"] == ["x fifo 1.5"]
    assert results["json_too"]["result"] == {"ratio": 2.0}
    assert list(results) == ["alien", "failing", "json_too", "plain"]
    status, out, err = causewire("bench", "plain", "failing")
    assert status == 1
    assert "== plain\nx fifo 1.5\n" in out
    assert err == "causewire bench: failing failed\n"


def test_bench_knows_its_own() -> None:
    assert {"check", "core", "sim"} <= set(bench._programs())
