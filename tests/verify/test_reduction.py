"""Reductions change how much is looked at, and nothing of what is found."""

from __future__ import annotations

import pytest

from causewire.verify import PROPERTIES, Setup, parse
from causewire.verify.ghost import History
from causewire.verify.machine import EagerRule, Machine
from causewire.verify.search import explore

from .systems import SYSTEMS, System, kinds, marked, orders, past, reduced, unreduced

OTHERS = tuple(kind for kind in PROPERTIES if kind != "causal order")


def found(system: System, judged: tuple[str, ...]) -> tuple[set[str], set[str]]:
    """What is wrong with a system, by a search with all reductions and by one with none."""
    small, _ = reduced(system, marked(system), judged)
    return kinds(small), kinds(unreduced(system, past(system), judged))


@pytest.mark.parametrize("system", SYSTEMS, ids=str)
def test_the_same_is_found_with_all_reductions_and_with_none(system: System) -> None:
    some, every = found(system, PROPERTIES)
    assert ("causal order" in some) == ("causal order" in every)
    if "causal order" in every:  # where a run has ended, there is more behind it
        some, every = found(system, OTHERS)
    assert some == every


@pytest.mark.parametrize("system", SYSTEMS, ids=str)
def test_the_same_orders_of_delivery_can_be_reached(system: System) -> None:
    small, _ = reduced(system, History())
    assert orders(small) == orders(unreduced(system, History()))


def broken_diamonds(full: Machine, rule: EagerRule) -> list[str]:
    """Whatever speaks against a rule, in the unreduced system: state by state.

    Where the rule lets a packet go first, every other move must be possible before
    and after it, to the same end, and must leave the rule as it is.
    """
    seen = explore(full, keep_going=True).seen
    wrong = []
    for state in seen:
        moves = list(full.successors(state))
        _, stations = full.unpack(state)
        for i, first, after_first in moves:
            local, _ = full.actors[i].stations.values[stations[i]]
            if first.event < 0 or first.script.count(0) != len(first.script):
                continue
            if not rule(i, local, first.event):
                continue
            if first.violation is not None or first.over:
                wrong.append(f"{first} goes first and ends the run")
                continue
            then = {(j, m.event, m.script, m.cost): s for j, m, s in full.successors(after_first)}
            for j, other, after_other in moves:
                if (j, other.event) == (i, first.event):
                    continue
                if other.violation is not None or other.over:
                    continue
                back = [
                    s
                    for k, m, s in full.successors(after_other)
                    if (k, m.event) == (i, first.event)
                ]
                if not set(back) & set(then.values()):
                    wrong.append(f"{first} and {other} do not commute")
                _, later = full.unpack(after_other)
                local, _ = full.actors[i].stations.values[later[i]]
                if not rule(i, local, first.event):
                    wrong.append(f"{first} may not go first any more after {other}")
    return wrong


def without(small: Machine) -> Machine:
    """The same machine, but that nothing goes first."""
    return Machine(small.stage, small.program, small.ghost, "tagged", prune=True)


DIAMONDS = [
    System(Setup(protocol, 3), parse(text))
    for protocol in ("mf", "cykas", "csps", "sps", "rst", "ks")
    for text in ("0>2,1; 1>2; 2>", "0>1,2; 1>2; 2>0")
] + [System(Setup(protocol, 3), parse("0>1+2; 1>2,0; 2>")) for protocol in ("csps", "sps")]


@pytest.mark.parametrize("system", DIAMONDS, ids=str)
def test_every_commutation_closes_its_diamond_in_the_unreduced_system(system: System) -> None:
    small, rule = reduced(system, marked(system))
    assert rule is not None
    assert explore(small).states < explore(full := without(small)).states
    assert sum(diamond.checked for diamond in rule.diamonds) > 0
    assert broken_diamonds(full, rule) == []


@pytest.mark.parametrize("kind", ["ack", "msg"])
def test_a_rule_that_is_only_plausible_does_not_close_all_diamonds(kind: str) -> None:
    """ "Acks can go first" sounds right, and is wrong while there is something to send."""
    system = System(Setup("csps", 3), parse("0>2,1; 1>2; 2>"))
    full = unreduced(system, marked(system), merge=True)

    def rule(index: int, local: int, packet: int) -> bool:
        return full.actors[index].post.packets[index].values[packet][1].kind == kind

    assert broken_diamonds(full, rule)
