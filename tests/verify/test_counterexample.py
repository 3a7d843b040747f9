"""A counterexample as words, as a trace, as a picture and as a test."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from types import FunctionType

import pytest

from causewire.check import check
from causewire.core.errors import LocalProtocolError
from causewire.report import draw
from causewire.testing import Case, replay
from causewire.trace import open_trace, write_trace
from causewire.verify import (
    MUTANTS,
    Counterexample,
    NetworkModel,
    SearchOptions,
    Setup,
    Unit,
    check_unit,
    parse,
)
from causewire.verify.counterexample import Step
from causewire.verify.regression import case_of, regression_test, repeatable
from causewire.verify.replay import ReplayError

AS_PRINTED = "0>2,1,2,1,2; 1>; 2>1"


@cache
def found_in(protocol: str, program: str, kind: str | None = None) -> Counterexample:
    """The shortest counterexample of a protocol in a program."""
    parsed = parse(program)
    setup = MUTANTS[protocol].setup if protocol in MUTANTS else Setup(protocol, len(parsed))
    how = SearchOptions(engine="python")
    if kind is not None:
        how = replace(how, properties=(kind,))
    violation = check_unit(Unit(setup, parsed, how)).violation
    assert violation is not None
    return violation.counterexample(setup)


def of_mutant(name: str) -> Counterexample:
    return found_in(name, MUTANTS[name].program)


WHY = (
    "p0 sent p0:1 to p2; p0 then sent p0:2 to p1; p1 delivered p0:2 and then sent p1:1 to p2; "
    "so p0:1 happened before p1:1, but p2 delivered p1:1 first, and p0:1 never"
)

# -- states -------------------------------------------------------------------------


def test_the_state_of_each_endpoint_after_each_step() -> None:
    found = of_mutant("sps-unsent-not-counted")
    states = found.states()
    assert len(states) == len(found)
    assert set(states[0]) == set(found.setup.names)
    sent = [state["p0"]["mid"] for state in states]
    assert sent == sorted(sent)
    assert (sent[0], sent[-1]) == ("1", "3")
    assert "p0:1" in states[0]["p0"]["peers[p2]"]
    held = next(k for k, line in enumerate(found.lines()) if "which is held back" in line)
    assert states[held]["p1"]["held"] == "1"
    assert "held" not in states[held - 1]["p1"]


# -- words --------------------------------------------------------------------------


def test_words_tell_the_run_step_by_step() -> None:
    assert of_mutant("csps-permits-ignored").words().splitlines() == [
        "csps-permits-ignored, any order, program 0>2,1; 1>2; 2>",
        "   1. p0 sends p0:1 to p2, msg p0:1 (pid=0, per=False) leaves for p2",
        "   2. p0 sends p0:2 to p1, msg p0:2 (pid=0, per=True) leaves for p1",
        "   3. p1 gets msg p0:2 (pid=0, per=True) from p0, delivers p0:2, ack (mid=2) to p0",
        "   4. p1 sends p1:1 to p2, msg p1:1 (pid=0, per=False) leaves for p2",
        "   5. p2 gets msg p1:1 (pid=0, per=False) from p1, delivers p1:1, ack (mid=1) to p1",
        f"      {WHY}",
    ]


def test_a_send_inside_a_delivery_is_told_there() -> None:
    lines = of_mutant("csps-upcall-first").lines()
    assert any("delivers p0:2, sends p1:1 to p2" in line for line in lines)


def test_what_is_stuck_is_told_with_its_reason() -> None:
    found = found_in("cykas-as-printed", "0>1,1; 1>")
    assert found.kind == "undelivered"
    assert found.lines()[1] == "p0 sends p0:2 to p1, which is held back"
    assert found.verdict() == (
        "nothing more can happen; p0:2 has not been delivered to p1; "
        "p0:2 to p1 is held at its sender, for nothing that will come"
    )


def test_an_exception_is_told() -> None:
    verdict = of_mutant("sps-m2-below-window").verdict()
    assert verdict == "an endpoint fails: IndexError: m2 is 1, and the buffer starts at 2"


def test_a_duplicate_is_told() -> None:
    found = of_mutant("bss-twice")
    assert found.verdict() == "p1 delivers p0:1 a second time"


def test_losses_and_rounds_are_told() -> None:
    program = parse("0>1; 1>")
    setup = Setup("unordered", 2, NetworkModel(loss=1))
    violation = check_unit(Unit(setup, program, SearchOptions(engine="python"))).violation
    assert violation is not None
    found = violation.counterexample(setup)
    assert "msg p0:1 from p0 to p1 is lost" in found.lines()
    kinds = [event.kind for event in found.events()]
    assert kinds == ["send", "release", "drop"]


def test_steps_of_another_run_are_refused() -> None:
    steps = [Step("receive", 1, 0, None, ())]
    with pytest.raises(ReplayError, match="step 1: no such packet"):
        Counterexample(Setup("csps", 2), parse("0>1; 1>"), steps, "undelivered")


# -- a trace ------------------------------------------------------------------------


@pytest.mark.parametrize("name", MUTANTS)
def test_rows_are_those_of_a_trace(name: str, tmp_path: Path) -> None:
    """They can be written, read and checked; sequence and Lamport numbers are in order."""
    events = of_mutant(name).events()
    path = tmp_path / "run.jsonl"
    write_trace(path, events)
    assert list(open_trace(path).events()) == events
    assert not check(str(path)).bad
    seq: dict[str, int] = {}
    lamport: dict[str, int] = {}
    for event in events:
        assert event.seq == seq.get(event.process, 0)
        seq[event.process] = event.seq + 1
        assert event.lamport is not None
        assert event.lamport > lamport.get(event.process, 0)
        lamport[event.process] = event.lamport


def test_what_comes_again_is_another_kind_of_row() -> None:
    again = [event.kind for event in of_mutant("bss-twice").events()]
    assert again == ["send", "release", "receive", "deliver", "duplicate", "deliver"]
    lost = Step("lose", 1, 0, None, ())
    steps = [Step("send", 0, -1, None, (0,)), lost, Step("round", -1, -1, None, ())]
    run = Counterexample(
        Setup("csps", 2, NetworkModel(loss=1)), parse("0>1; 1>"), steps, "undelivered"
    )
    assert [event.kind for event in run.events()] == ["send", "release", "drop", "retransmit"]
    assert [event.process for event in run.events()] == ["p0"] * 4
    assert run.lines()[1:] == [
        "msg p0:1 (pid=0, per=False) from p0 to p1 is lost",
        "p0 retransmits, msg p0:1 (pid=0, per=False) leaves for p1, p1 retransmits",
    ]


def test_a_trace_is_drawn_with_its_violation() -> None:
    found = found_in("cykas-as-printed", AS_PRINTED, "causal order")
    svg = draw(found.events(), axis="order", note=found.verdict())
    assert "violates causal order" in svg
    assert svg.count("head-red") > 2
    assert all(f">{name}<" in svg for name in ("p0", "p1", "p2"))


# -- a test -------------------------------------------------------------------------


def functions_of(text: str) -> list[Callable[[], None]]:
    """The tests of a file, to be called."""
    names: dict[str, object] = {}
    exec(compile(text, "test_regression.py", "exec"), names)
    return [f for k, f in names.items() if k.startswith("test_") and isinstance(f, FunctionType)]


@pytest.mark.parametrize("name", [n for n, each in MUTANTS.items() if repeatable(each.setup)])
def test_the_test_fails_with_the_mistake_and_passes_without(name: str) -> None:
    found = of_mutant(name)
    [test] = functions_of(regression_test(found))
    test()
    case = Case.from_json(case_of(found))
    assert replay(case).ok
    broken = MUTANTS[name].protocol
    assert not replay(replace(case, protocol=broken, options=dict(broken.chosen))).ok


@pytest.mark.parametrize(
    ("protocol", "program", "repaired"),
    [("cykas-as-printed", AS_PRINTED, "cykas"), ("fifo", "0>2,1; 1>2; 2>", "csps")],
)
def test_a_known_bad_must_go_on_failing(protocol: str, program: str, repaired: str) -> None:
    found = found_in(protocol, program, "causal order")
    text = regression_test(found)
    [test] = functions_of(text)
    test()
    [on_the_right_one] = functions_of(
        text.replace(f"'protocol': {protocol!r}", f"'protocol': {repaired!r}")
    )
    with pytest.raises(AssertionError):
        on_the_right_one()


def test_the_file_is_one_for_pytest(tmp_path: Path) -> None:
    path = tmp_path / "test_found.py"
    path.write_text(regression_test(of_mutant("sps-unsent-not-counted")))
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", path.name]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
    assert "1 passed" in done.stdout


def test_a_run_of_runs_is_told_and_is_no_case_of_the_testing_kit() -> None:
    found = of_mutant("csps-run-first-permit")
    lines = found.lines()
    assert "p1 gets msg p0:2 (pid=0, per=True) from p0, gets msg p0:4 (pid=2, per=True), " in str(
        lines
    )
    assert found.words().startswith("csps-run-first-permit, driven in runs, program 0>2,1,2,1;")
    with pytest.raises(LocalProtocolError, match="the testing kit drives single packets"):
        case_of(found)


def test_reactions_are_part_of_the_case() -> None:
    case = case_of(of_mutant("sps-upcall-first"))
    assert case["protocol"] == "sps"
    assert case["reactions"] == [["p0:2", 1, [2], "p1:1"]]
    assert ["send", 1, [2], "p1:1"] not in case["schedule"]
