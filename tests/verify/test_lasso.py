"""Starvation is found where it is, and printed; where it is not, nothing is found."""

from __future__ import annotations

import random
from functools import cache

import pytest

from causewire.core.cykas import Cykas
from causewire.core.endpoint import LocalProtocolError
from causewire.verify.cycle import Need, components, cycle_through
from causewire.verify.endless import VICTIM, EndlessSystem, Turn
from causewire.verify.lasso import Lasso, StarvationResult, find_starvation, rounds_of
from causewire.verify.setup import NetworkModel, Setup


@cache
def cykas() -> StarvationResult:
    return find_starvation("cykas")


def lasso_of_cykas() -> Lasso:
    lasso = cykas().lasso
    assert lasso is not None
    return lasso


def modes(steps: int) -> list[int]:
    """MODE of the victim after each step from the given one on."""
    lasso = lasso_of_cykas()
    turns = [*lasso.stem, *lasso.cycle]
    found = []
    for k in range(steps, len(turns) + 1):
        victim = lasso.system.replay(turns[:k]).clients[VICTIM].endpoint
        assert isinstance(victim, Cykas)
        found.append(victim.mode)
    return found


# -- Cykas ----------------------------------------------------------------------------


def test_cykas_starves_between_two_senders() -> None:
    result = cykas()
    assert not result.passed
    assert result.lasso is not None
    assert result.complete


def test_on_the_cycle_the_mode_alternates_and_is_never_normal() -> None:
    assert set(modes(len(lasso_of_cykas().stem))) == {1, 2}


def test_the_cycle_can_be_gone_round_for_ever() -> None:
    """Twenty times, and the victim's messages are still where they were."""
    lasso = lasso_of_cykas()
    run = lasso.run(times=20)
    assert run.replay.error is None
    assert len(run.steps) == len(lasso.stem) + 20 * len(lasso.cycle)
    sent = {h.message for h in run.replay.happened if h.kind == "send" and h.process == VICTIM}
    left = {h.message for h in run.replay.happened if h.kind == "release"}
    assert sent == {"p0:1", "p0:2"}
    assert not sent & left
    others = [h for h in run.replay.happened if h.kind == "deliver"]
    assert len(others) > 20 * 3


def test_the_cycle_is_fair() -> None:
    """Each sender sends on it, and whatever it puts into a channel is read on it."""
    lasso = lasso_of_cykas()
    assert {Turn(1, -1), Turn(2, -1)} <= set(lasso.cycle)
    once, twice = (len(lasso.run(times).replay._flying) for times in (1, 2))
    assert once == twice


def test_the_cycle_is_printed() -> None:
    words = cykas().words().splitlines()
    stem, cycle = words.index("the stem:"), words.index("the cycle, for ever:")
    assert stem < cycle
    assert "waits for permit p1:" in words[cycle + 1]
    assert words[-1] == (
        "STARVATION: every packet arrives, all keep sending, "
        "and p0:1 to p1 and p0:2 to p2 never leave"
    )


def test_one_sender_alone_starves_nobody() -> None:
    result = find_starvation("cykas", senders=1)
    assert result.passed
    assert result.held > 0


# -- the others -----------------------------------------------------------------------


@pytest.mark.parametrize("protocol", ["csps", "sps", "mf"])
def test_the_others_starve_nobody_within_the_same_bounds(protocol: str) -> None:
    result = find_starvation(protocol)
    assert result.complete
    assert result.lasso is None
    assert result.held > 100, "or there was nothing that could have starved"
    assert result.passed
    assert (result.rounds, result.window) == (cykas().rounds, cykas().window)


def test_a_search_that_is_cut_short_proves_nothing() -> None:
    result = find_starvation("csps", limit=1000)
    assert not result.complete
    assert not result.passed
    assert "INCOMPLETE" in result.words()


def test_a_protocol_that_holds_nothing_proves_nothing() -> None:
    result = find_starvation("cykas", processes=2, senders=1)
    assert result.held or "VACUOUS" in result.words()


def test_a_protocol_whose_numbers_are_not_understood_is_refused() -> None:
    with pytest.raises(LocalProtocolError, match="does not implement relative_state"):
        find_starvation("rst")


# -- the finite system ----------------------------------------------------------------


@pytest.mark.parametrize("protocol", ["cykas", "csps", "sps", "mf"])
@pytest.mark.parametrize("seed", range(5))
def test_remembered_steps_are_those_of_the_endpoints(protocol: str, seed: int) -> None:
    """A run that is taken in the finite system is taken by real endpoints, too."""
    system = EndlessSystem(Setup(protocol, 3, NetworkModel(fifo=True)), rounds_of(3, 2), window=2)
    chance = random.Random(seed)
    state = system.initial
    for _ in range(100):
        choices = list(system.turns(state))
        if not choices:
            break  # every step would put too much into a channel
        _, state = chance.choice(choices)
    replay = system.replay(state.way())
    assert replay.error is None
    for client, held in zip(replay.clients, state.held, strict=True):
        assert any(each.where == "sender" for each in client.endpoint.blocked()) == held
    pending = [0] * 9
    for flying in replay._flying:
        pending[3 * flying.source + flying.destination] += 1
    assert pending == [len(queue) for queue in state.channels]


# -- graphs ---------------------------------------------------------------------------

EDGES = [
    [("a", 1)],
    [("b", 2), ("c", 0)],
    [("d", 3)],
    [("e", 2), ("f", 4)],
    [],
]


def test_components() -> None:
    found = sorted(map(sorted, components(EDGES, [True] * 5)))
    assert found == [[0, 1], [2, 3], [4]]
    assert sorted(map(sorted, components(EDGES, [True, False, True, True, True]))) == [
        [0],
        [2, 3],
        [4],
    ]


def test_a_cycle_meets_all_needs() -> None:
    ring = [[("a", 1), ("x", 0)], [("b", 2)], [("c", 0)]]
    everything = {0, 1, 2}
    assert cycle_through(ring, everything, 0, [Need(edges=("x",))]) == ["x"]
    assert cycle_through(ring, everything, 0, [Need(nodes={2})]) == ["a", "b", "c"]
    both = cycle_through(ring, everything, 0, [Need(edges=("x",)), Need(nodes={1})])
    assert sorted(both) == ["a", "b", "c", "x"]


def test_a_need_that_cannot_be_met_is_an_error() -> None:
    with pytest.raises(ValueError, match="no way"):
        cycle_through(EDGES, {0, 1}, 0, [Need(edges=("b",))])
