"""A check in which nothing happened proves nothing, and says so."""

from __future__ import annotations

import pytest

from causewire.verify import NetworkModel, SearchOptions, Setup, Unit, parse, run_units


def vacuous(protocol: str, text: str, *, fifo: bool = False, ghost: str = "marked") -> set[str]:
    program = parse(text)
    setup = Setup(protocol, len(program), NetworkModel(fifo=fifo))
    unit = Unit(setup, program, SearchOptions(ghost=ghost))
    summary = run_units([unit], workers=1)
    assert summary.complete
    assert summary.shortest is None
    assert summary.passed == (not summary.vacuous)
    return set(summary.vacuous)


def test_a_check_that_met_everything_passes() -> None:
    assert vacuous("csps", "0>2,1; 1>2,0; 2>") == set()


@pytest.mark.parametrize(
    ("text", "lacks"),
    [
        ("0>1; 1>", {"concurrent", "reordered", "held", "chained", "reaction"}),
        ("0>1; 1>0", {"concurrent", "held", "chained"}),
        ("0>2; 1>2; 2>", {"reordered", "held", "chained", "reaction"}),
    ],
)
def test_what_never_happened_is_named(text: str, lacks: set[str]) -> None:
    assert vacuous("csps", text) == lacks


def test_channels_that_keep_their_order_need_not_have_reordered() -> None:
    assert vacuous("csps", "0>2,1; 1>2,0; 2>", fifo=True) == set()


def test_a_search_without_marks_needs_no_chains() -> None:
    assert vacuous("csps", "0>2,1; 1>2,0; 2>", ghost="plain") == set()


def test_a_violation_is_never_vacuous() -> None:
    unit = Unit(Setup("unordered", 2), parse("0>1,1; 1>"))
    summary = run_units([unit], workers=1)
    assert summary.shortest is not None
    assert summary.vacuous == []
    assert not summary.passed
