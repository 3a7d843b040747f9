"""Forgetting a process at any moment: right with both rules, wrong without either."""

from __future__ import annotations

import pytest

from causewire import protocols
from causewire.core.errors import LocalProtocolError
from causewire.verify import (
    MUTANTS,
    PROPERTIES,
    Counterexample,
    NetworkModel,
    SearchOptions,
    Setup,
    Unit,
    check_unit,
    find,
    parse,
)
from causewire.verify.check import with_m1
from causewire.verify.ghost import Plain
from causewire.verify.machine import Machine, Stage
from causewire.verify.search import explore

CHAIN = "0>1,2; 1>; 2>1"
BOTH_WAYS = "0>1; 1>0; 2>"
FORGETS = NetworkModel(forgets=1)
QUICK = SearchOptions(engine="python")
CAUSAL_ORDER = SearchOptions(engine="python", properties=("causal order",))


def found(setup: Setup, text: str, options: SearchOptions = QUICK) -> Counterexample | None:
    result = check_unit(Unit(setup, parse(text), options))
    if result.violation is None:
        assert result.complete
        return None
    return result.violation.counterexample(setup)


CAUSAL = [name for name in protocols.names() if protocols.describe(name).forgets]


@pytest.mark.parametrize("name", CAUSAL)
def test_nothing_is_found_in_a_protocol_that_can_forget(name: str) -> None:
    about = protocols.describe(name)
    rounds = 2 if about.control_messages == ("null",) else 0
    network = NetworkModel(fifo=about.needs_fifo, rounds=rounds, forgets=1)
    judged = PROPERTIES if about.causal else ("duplicate", "undelivered")
    if name == "cykas-as-printed":
        judged = ("causal order", "duplicate")
    text = CHAIN if about.unicast else "0>1+2; 1>; 2>0+1"
    options = SearchOptions("past", "python", properties=judged)
    assert found(Setup(name, 3, network), text, options) is None


@pytest.mark.parametrize("name", ["csps", "sps", "mf"])
def test_without_obituaries_in_front_causal_order_is_violated(name: str) -> None:
    """F2 left out: obituaries come by notices, which anything may overtake."""
    setup = Setup(name, 3, NetworkModel(forgets=1, obituaries_first=False))
    run = found(setup, CHAIN)
    assert run is not None
    assert run.kind == "causal order"
    assert "without F2" in run.words()
    assert found(Setup(name, 3, FORGETS), CHAIN) is None


@pytest.mark.parametrize("name", ["csps-unfenced", "sps-unfenced"])
def test_without_a_fence_causal_order_is_violated(name: str) -> None:
    """F1 left out: what a process sent is delivered after something that depends on it."""
    mutant = MUTANTS[name]
    run = found(mutant.setup, mutant.program)
    assert run is not None
    assert run.kind == "causal order"
    marked = [
        check_unit(part).violation
        for part in with_m1(Unit(mutant.setup, parse(mutant.program), CAUSAL_ORDER))
    ]
    assert [each is not None for each in marked] == [True, False, False]
    right = Setup(mutant.of, 3, mutant.setup.network)
    parts = with_m1(Unit(right, parse(mutant.program), QUICK))
    assert all(check_unit(part).violation is None for part in parts)


def test_two_that_forget_each_other_both_stop() -> None:
    setup = Setup("csps", 3, NetworkModel(forgets=2))
    assert found(setup, BOTH_WAYS) is None
    stage = Stage(setup)
    assert explore(Machine(stage, parse(BOTH_WAYS), Plain(), "plain")).complete
    known = [{local.known for local in actor.locals} for actor in stage.everybody()]
    assert 0b10 in known[0]  # p0 has forgotten p1
    assert 0b01 in known[1]
    assert 0b11 in known[2]  # p2 has heard of both
    assert any(each == 0b11 for each in known[0])  # p0 has stopped


def test_the_words_tell_who_forgets_whom() -> None:
    run = found(find_setup("csps-still-waiting"), MUTANTS["csps-still-waiting"].program)
    assert run is not None
    text = run.words()
    assert "forgets p0, the obituary of p0 to p0, the obituary of p0 to p" in text
    assert run.kind in ("undelivered", "left over")
    events = run.events()
    assert events  # and it is a trace like any other


def find_setup(name: str) -> Setup:
    assert find(name).name == name
    return MUTANTS[name].setup


def test_a_protocol_that_cannot_forget_is_refused() -> None:
    with pytest.raises(LocalProtocolError, match="Ks cannot go on without"):
        Setup("ks", 3, FORGETS).endpoint(0)


# -- frozen processes ---------------------------------------------------------------------


def test_a_frozen_process_stalls_the_others_under_csps() -> None:
    """p2 receives nothing: what p0 sends after a message to it is never permitted."""
    network = NetworkModel(frozen=(2,))
    run = found(Setup("csps", 4, network), "0>2,1; 1>3; 2>; 3>")
    assert run is not None
    assert run.kind == "undelivered"
    assert "p1:1 has not been delivered to p3" in run.verdict()
    assert found(Setup("rst", 4, network), "0>2,1; 1>3; 2>; 3>") is None


def test_nothing_is_expected_of_a_frozen_process() -> None:
    assert found(Setup("csps", 3, NetworkModel(frozen=(2,))), "0>1,2; 1>; 2>1") is None
