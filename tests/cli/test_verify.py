"""`causewire verify`: what it finds, what it says, what it leaves behind, what it refuses."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from causewire.check import check
from causewire.cli import main, verify
from causewire.verify import MUTANTS, Checker

from .command_line import CommandLine

SMALL = "verify --engine python --jobs 1"
"""Quick in tests: one process, and nothing compiled."""


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


# -- verdicts ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    "protocol", ["cykas", "mf", "csps", "sps", "rst", "ks", "fifo --property undelivered"]
)
def test_what_holds_holds(causewire: CommandLine, protocol: str) -> None:
    done = causewire(SMALL, f"--protocol {protocol} --messages 2,1,0")
    assert (done.status, done.err) == (0, "")
    assert "8 of 8 programs" in done.out
    assert "HOLDS in every run of every program" in done.out


@pytest.mark.parametrize("protocol", ["bss", "pak", "newtop"])
def test_broadcasts_are_for_those_that_only_broadcast(
    causewire: CommandLine, protocol: str
) -> None:
    done = causewire(SMALL, f"--protocol {protocol} --messages 1,1,1 --json")
    assert done.json["complete"]
    assert done.json["violations"] == 0
    assert done.json["workloads"] == 1
    assert ("FIFO" in done.json["network"]) == (protocol != "bss")


def test_all_there_is_to_know_of_a_search(causewire: CommandLine) -> None:
    told = causewire(SMALL, "--protocol cykas --messages 2 --json").json
    assert told["messages"] == [2, 2, 2]
    assert told["workloads"] == told["checked"] == 12
    assert told["complete"]
    assert told["passed"]
    assert told["states"] > 10_000
    assert told["transitions"] > told["states"]
    assert told["depth"] > 10
    assert told["seconds"] > 0
    assert told["peak_bytes"] > 2**20
    assert told["met"] == ["chained", "concurrent", "held", "reaction", "reordered"]
    assert told["example"] is None


def test_the_published_check_is_named_beside_ours(
    causewire: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert verify.PUBLISHED["cykas", (3, 3, 3)] == ("1,945 million", 709)
    monkeypatch.setitem(verify.PUBLISHED, ("mf", (2, 2, 2)), ("17 million", 23))
    done = causewire(SMALL, "--protocol mf --messages 2")
    assert "published for this bound: 23 s on 96 threads, 17 million states" in done.out
    done = causewire(SMALL, "--protocol mf --messages 2,2,1")
    assert "published" not in done.out


def test_a_counterexample_is_told(causewire: CommandLine) -> None:
    done = causewire(SMALL, "--protocol fifo --workload '0>2,1; 1>2; 2>'")
    assert done.status == 1
    assert "VIOLATED (causal order) in 1 of 1 program looked at" in done.out
    assert "5. p2 gets msg p1:1" in done.out
    assert "so p0:1 happened before p1:1, but p2 delivered p1:1 first" in done.out


def test_a_mutant_is_looked_at_where_it_shows(causewire: CommandLine) -> None:
    told = causewire(SMALL, "--protocol csps-unbound-name --json").json
    assert told["network"] == "any order, duplicates up to 1"
    assert told["example"]["workload"] == "0>1; 1>"
    assert told["example"]["kind"] == "error: NameError: name 'b' is not defined"


def test_the_bound_past_the_published_one(causewire: CommandLine) -> None:
    """Cykas as printed, one process that sends five messages (ERRATA 5.2)."""
    where = "--workload '0>2,1,2,1,2; 1>; 2>1' --property 'causal order'"
    assert causewire(SMALL, "--protocol cykas-as-printed", where).status == 1
    assert causewire(SMALL, "--protocol cykas", where).status == 0


def test_what_means_nothing_is_vacuous(causewire: CommandLine) -> None:
    done = causewire(SMALL, "--protocol csps --processes 2 --messages 1,0")
    assert done.status == 1
    assert "VACUOUS, it proves nothing; never met: concurrent, " in done.out


def test_memory_that_does_not_suffice_is_said(causewire: CommandLine) -> None:
    done = causewire(SMALL, "--protocol csps --messages 2 --memory 100K")
    assert done.status == 1
    assert "INCOMPLETE" in done.out


# -- how ----------------------------------------------------------------------------------


@pytest.mark.parametrize("search", ["bfs", "dfs"])
@pytest.mark.parametrize("reductions", ["all", "none", "merge,prune"])
def test_the_verdict_does_not_depend_on_how(
    causewire: CommandLine, search: str, reductions: str
) -> None:
    how = f"--search {search} --reductions {reductions} --messages 2,1,0 --json"
    assert causewire(SMALL, "--protocol csps", how).json["passed"]
    told = causewire(SMALL, "--protocol csps-upcall-first", how, "--keep-going").json
    assert told["violations"] >= 1
    assert told["example"]["length"] == 4


def test_without_symmetry_there_are_more_programs(causewire: CommandLine) -> None:
    for reductions, programs in (("symmetry", 2), ("none", 8)):
        how = f"--messages 1 --reductions {reductions} --json"
        assert causewire(SMALL, "--protocol mf", how).json["workloads"] == programs


def test_random_walks(causewire: CommandLine) -> None:
    walks = "--search walk --walks 200 --seed 3"
    done = causewire(SMALL, "--protocol mf --messages 2,1,0", walks)
    assert done.status == 0
    assert "no violation in 200 random runs of each program" in done.out
    done = causewire(SMALL, "--protocol fifo --messages 2", walks)
    assert done.status == 1
    assert "VIOLATED" in done.out


def test_each_marked_message_by_itself(causewire: CommandLine) -> None:
    told = causewire(SMALL, "--protocol mf --messages 2,1,0 --split --json").json
    assert told["passed"]
    assert told["workloads"] == 8 * 3


def test_several_processes_find_the_same(causewire: CommandLine) -> None:
    one = causewire(SMALL, "--protocol mf --messages 2 --json").json
    two = causewire("verify --engine python --jobs 2 --protocol mf --messages 2 --json").json
    for key in ("workloads", "checked", "states", "transitions", "depth", "passed"):
        assert one[key] == two[key]


def test_loss_and_duplication(causewire: CommandLine) -> None:
    faults = "--workload '0>1,1; 1>' --loss 1 --duplication 1 --json"
    told = causewire(SMALL, "--protocol csps", faults).json
    assert told["network"] == "any order, loss up to 1, duplicates up to 1, rounds up to 3"
    assert told["complete"]
    assert told["violations"] == 0
    told = causewire(SMALL, "--protocol cykas", faults).json
    assert told["violations"] == 1


def test_a_protocol_that_needs_fifo_channels_fails_without(causewire: CommandLine) -> None:
    where = "--protocol pak --workload '0>1,1; 1>'"
    assert causewire(SMALL, where, "--json").json["violations"] == 0
    assert causewire(SMALL, where, "--network unordered").status == 1


def test_programs_in_a_file_and_relays(causewire: CommandLine, elsewhere: Path) -> None:
    (elsewhere / "programs.txt").write_text("# relays\n0>2,1; 1>@0:2 2; 2>\n\n0>1; 1>@0:1 0; 2>\n")
    assert causewire(SMALL, "--protocol csps --program programs.txt --json").json["workloads"] == 2
    told = causewire(SMALL, "--protocol csps --processes 4 --relays 3 --json").json
    assert (told["workloads"], told["violations"]) == (30, 0)
    told = causewire(SMALL, "--protocol csps --relays 5 --sample 3 --seed 4 --json").json
    assert (told["workloads"], told["violations"]) == (3, 0)


def test_forgetting_and_freezing(causewire: CommandLine) -> None:
    told = causewire(SMALL, "--protocol csps --program '0>1,2; 1>; 2>1' --forgets 1 --json").json
    assert told["violations"] == 0
    assert told["network"] == "any order, forgets up to 1"
    done = causewire(SMALL, "--protocol csps --program '0>2,1; 1>3; 2>; 3>' --frozen 2")
    assert done.status == 1
    assert "p1:1 has not been delivered to p3" in done.out


@pytest.mark.parametrize("value", ["none", "None", "null"])
def test_an_option_can_be_none(causewire: CommandLine, value: str) -> None:
    done = causewire(
        f"verify --protocol adaptive --option cap={value} --processes 2 --program '0>1,1; 1>0'"
    )
    assert "1 of 1 program" in done.out
    assert "must be an integer" not in done.err


def test_options_of_a_protocol(causewire: CommandLine) -> None:
    done = causewire(SMALL, "--protocol mf --option fifo=true --workload '0>1,1; 1>'")
    assert done.status == 1  # footnote 4 of Mattern and Fünfrocken, on channels that reorder


def test_a_protocol_value_of_a_module(causewire: CommandLine, elsewhere: Path) -> None:
    (elsewhere / "hasty.py").write_text(
        "from causewire.core.fifo import Unordered\n"
        "from causewire.protocols import Protocol\n"
        "HASTY = Protocol(name='hasty', endpoint=Unordered)\n"
    )
    done = causewire(SMALL, "--protocol hasty:HASTY --program '0>1,1; 1>'")
    assert done.status == 1
    assert "hasty, any order, program 0>1,1; 1>" in done.out


# -- checkpoints ----------------------------------------------------------------------------


def test_interrupted_work_goes_on(
    causewire: CommandLine, elsewhere: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = causewire(SMALL, "--protocol mf --messages 2 --json").json
    check = Checker.check
    calls = []

    def interrupted(*args: Any) -> object:
        calls.append(args)
        if len(calls) == 5:
            raise KeyboardInterrupt
        return check(*args)

    request = "--protocol mf --messages 2 --json --checkpoint work.jsonl"
    monkeypatch.setattr(Checker, "check", interrupted)
    assert causewire(SMALL, request).status == 130
    monkeypatch.undo()
    monkeypatch.chdir(elsewhere)
    again = causewire(SMALL, request).json
    assert again["resumed"] == 4
    for key in ("workloads", "checked", "states", "transitions", "depth", "passed"):
        assert again[key] == whole[key]


def test_a_checkpoint_of_another_check_is_refused(causewire: CommandLine, elsewhere: Path) -> None:
    request = "--messages 2,1,0 --checkpoint work.jsonl"
    assert causewire(SMALL, "--protocol mf", request).status == 0
    before = (elsewhere / "work.jsonl").read_bytes()
    done = causewire(SMALL, "--protocol cykas", request)
    assert done.status == 2
    assert "a checkpoint of another check" in done.err
    assert (elsewhere / "work.jsonl").read_bytes() == before


# -- what is kept of a counterexample ----------------------------------------------------------


def test_a_counterexample_is_kept(causewire: CommandLine, elsewhere: Path) -> None:
    done = causewire(
        SMALL,
        "--protocol csps-permits-ignored --trace run.jsonl --draw run.svg",
        "--regression test_run.py",
    )
    assert done.status == 1
    assert check("run.jsonl").violations == 1
    assert causewire("check run.jsonl").status == 1
    assert "violates causal order" in (elsewhere / "run.svg").read_text()
    names: dict[str, object] = {}
    exec((elsewhere / "test_run.py").read_text(), names)
    names["test_csps_permits_ignored_causal_order"]()  # type: ignore[operator]


def test_nothing_is_written_where_nothing_is_found(causewire: CommandLine, elsewhere: Path) -> None:
    done = causewire(SMALL, "--protocol mf --messages 2,1,0 --trace a.jsonl --draw a.svg")
    assert done.status == 0
    assert list(elsewhere.iterdir()) == []


# -- starvation -----------------------------------------------------------------------------------


def test_the_starvation_of_cykas_is_printed(causewire: CommandLine, elsewhere: Path) -> None:
    done = causewire("verify --protocol cykas --starvation --trace run.jsonl --draw run.svg")
    assert done.status == 1
    assert "the cycle, for ever:" in done.out
    assert "STARVATION: every packet arrives" in done.out
    report = check("run.jsonl")
    assert report.ordered
    assert report.undelivered >= 2


def test_mf_starves_nobody(causewire: CommandLine) -> None:
    told = causewire("verify --protocol mf --starvation --json").json
    assert told["passed"]
    assert told["held"] > 0
    assert told["cycle"] is None


# -- what is refused ----------------------------------------------------------------------------

BAD = {
    "": "required: --protocol",
    "--protocol nope": "there is no protocol 'nope'",
    "--protocol mf --processes 1": "--processes must be from 2 to 6, not 1",
    "--protocol mf --processes 9": "--processes must be from 2 to 6, not 9",
    "--protocol mf --processes two": "invalid int value: 'two'",
    "--protocol mf --messages none": "--messages takes a number, or one for each",
    "--protocol mf --messages 1,2": "does not fit 3 processes",
    "--protocol mf --messages=-1": "does not fit 3 processes",
    "--protocol mf --messages 0": "does not fit 3 processes",
    "--protocol mf --workload nonsense": "--program nonsense: no such file, and no program of",
    "--protocol mf --program missing.txt": "--program missing.txt: no such file, and no program",
    "--protocol mf --program '1>0'": "part 0 of a program must start with '0>'",
    "--protocol mf --frozen 7": "--frozen must be from 0 to 2, not 7",
    "--protocol mf --frozen -1": "--frozen must be from 0 to 2, not -1",
    "--protocol mf --frozen 2 --program '0>1; 1>'": "--frozen must be from 0 to 1, not 2",
    "--protocol mf --workload '0>7; 1>'": "process 0 sends to [7], and not all are there",
    "--protocol mf --workload '0>x; 1>'": "is no send",
    "--protocol mf --workload '0>1; 1>' --workload '0>1; 1>; 2>'": "same number of processes",
    "--protocol mf --workload '0>1+2; 1>; 2>'": "mf is for unicast: p0 cannot send to 1+2",
    "--protocol cykas --kind multicast": "cykas is for unicast",
    "--protocol bss --kind unicast": "bss is for broadcast",
    "--protocol mf --loss -1": "--loss must be from 0 upward",
    "--protocol mf --duplication=-2": "--duplication must be from 0 upward",
    "--protocol mf --rounds=-2": "--rounds must be from 0 upward",
    "--protocol mf --jobs 0": "--jobs must be from 1 upward",
    "--protocol mf --walks 0": "--walks must be from 1 upward",
    "--protocol mf --memory much": "--memory takes a size",
    "--protocol mf --memory -4G": "--memory takes a size such as 500M or 4G, not '-4G'",
    "--protocol mf --memory 0": "--memory takes a size",
    "--protocol mf --memory 3": "--memory takes a size such as 500M or 4G, not '3'",
    "--protocol mf --option fifo": "--option takes K=V",
    "--protocol mf --option speed=9": "mf has no option speed",
    "--protocol mf --reductions magic": "--reductions takes",
    "--protocol mf --search sideways": "invalid choice: 'sideways'",
    "--protocol mf --property beauty": "invalid choice: 'beauty'",
    "--protocol mf --split --ghost past": "--split is by the message that is marked",
    "--protocol mf --trace nowhere/run.jsonl": "there is no directory nowhere",
    "--protocol mf --regression nowhere/test.py": "there is no directory nowhere",
    "--protocol mf --checkpoint nowhere/work": "there is no directory nowhere",
    "--protocol mf --checkpoint text.txt": "text.txt: not a checkpoint",
    "--protocol fifo --trace run.txt --workload '0>2,1; 1>2; 2>'": "run.txt",
    "--protocol no_such_module:X": "No module named 'no_such_module'",
    "--protocol json:X": "has no attribute 'X'",
    "--protocol json:dumps": "not a Protocol",
    "--protocol mf --option speed=3": "mf has no option speed",
    "--protocol csps --relays 0": "--relays and --sample must be from 1 upward",
    "--protocol csps --relays 3 --kind multicast": "with --sample it takes --kind multicast",
    "--protocol csps --driver runs --loss 1": "the driver runs has the links of a node",
    "--protocol csps --driver runs --regression t.py": "drives packets, not runs",
    "--protocol ks --forgets 1": "Ks cannot go on without",
    "--protocol rst --starvation": "Rst does not implement relative_state",
    "--protocol nope --starvation": "there is no protocol 'nope'",
    "--protocol mf --starvation --senders 3": "--senders must be from 1 to 2, not 3",
    "--protocol mf --starvation --window 0": "--window must be from 1 upward",
    "--protocol mf --starvation --processes 1": "--processes must be from 2 to 6",
    "--protocol cykas --starvation --regression test.py": "--regression is for runs that end",
}


@pytest.mark.parametrize("arguments", BAD)
def test_bad_input_gets_one_line(causewire: CommandLine, elsewhere: Path, arguments: str) -> None:
    (elsewhere / "text.txt").write_text("this is no checkpoint\n")
    done = causewire(SMALL, arguments)
    assert done.status == 2
    assert done.out == ""
    assert done.err.startswith("causewire verify: ")
    assert BAD[arguments] in done.err
    assert done.err.count("\n") == 1
    assert [path.name for path in elsewhere.iterdir()] == ["text.txt"]
    assert (elsewhere / "text.txt").read_text() == "this is no checkpoint\n"


def test_help_teaches(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["verify", "--help"]) == 0
    text = capsys.readouterr().out
    for word in (
        "--protocol cykas --processes 3 --messages 3",
        "exit status",
        "1+2 is a multicast",
    ):
        assert word in text


def test_every_argument_is_on_the_page(causewire: CommandLine) -> None:
    page = (Path(__file__).parents[2] / "docs" / "verification.md").read_text(encoding="utf-8")
    flags = set(re.findall(r"--[a-z]+(?:-[a-z]+)*", causewire("verify --help").out)) - {"--help"}
    assert len(flags) > 25
    assert [flag for flag in sorted(flags) if flag not in page] == []
    assert f"{len(MUTANTS)} *mutants*" in page


def test_json_is_json(causewire: CommandLine) -> None:
    done = causewire(SMALL, "--protocol sps-last-only --json")
    assert done.status == 1
    assert json.loads(done.out)["example"]["case"]["protocol"] == "sps"
