"""The searches: breadth first, depth first, at random, plain and compiled."""

from __future__ import annotations

import pytest

from causewire.verify import (
    NetworkModel,
    Program,
    SearchOptions,
    Setup,
    Unit,
    check_unit,
    parse,
    search,
)
from causewire.verify.check import with_m1
from causewire.verify.compiled import explore_compiled
from causewire.verify.ghost import Marked
from causewire.verify.library import Library
from causewire.verify.machine import Machine, Stage
from causewire.verify.search import explore, shortest, walk

from .systems import REGISTERED, System, marked, unreduced

CHAIN = "0>2,1; 1>2; 2>"
FIVE = "0>2,1,2,1,2; 1>; 2>1"
"""A process that sends five messages, of which the third overtakes (ERRATA 5.2)."""


# -- what must be found -------------------------------------------------------


@pytest.mark.parametrize(
    ("protocol", "text", "kind", "steps"),
    [
        ("fifo", CHAIN, "causal order", 5),
        ("unordered", "0>1,1; 1>", "causal order", 3),
        ("cykas-secret-sends", "0>1,2; 1>0,2; 2>0", "causal order", 8),
        ("cykas-as-printed", "0>1,1; 1>", "undelivered", 4),
    ],
)
def test_known_bads_are_found_by_a_shortest_run(
    protocol: str, text: str, kind: str, steps: int
) -> None:
    program = parse(text)
    for engine in ("python", "compiled"):
        result = check_unit(
            Unit(Setup(protocol, len(program)), program, SearchOptions(engine=engine))
        )
        assert result.violation is not None
        assert result.violation.kind == kind
        assert len(result.violation.steps) == steps


@pytest.mark.parametrize("protocol", ["cykas-as-printed", "cykas", "csps", "sps"])
def test_five_messages_from_one_process(protocol: str) -> None:
    """The bound that the published check of Cykas stopped short of."""
    program = parse(FIVE)
    setup = Setup(protocol, 3, NetworkModel(fifo=True))
    result = check_unit(Unit(setup, program, SearchOptions(properties=("causal order",))))
    assert (result.violation is not None) == (protocol == "cykas-as-printed")
    assert result.complete or result.violation is not None


# -- every way to search sees the same ----------------------------------------


@pytest.mark.parametrize("system", REGISTERED, ids=str)
def test_all_searches_see_the_same_states(system: System) -> None:
    stage = Stage(system.setup)
    machine = Machine(stage, system.program, marked(system), "marked", prune=True)
    breadth = explore(machine, keep_going=True)
    depth = explore(machine, keep_going=True, depth_first=True)
    compiled = explore_compiled(machine, Library(stage.post), keep_going=True)
    for other in (depth, compiled):
        assert other.complete
        assert (other.states, other.transitions) == (breadth.states, breadth.transitions)
        assert {found.kind for found in other.found} == {found.kind for found in breadth.found}
        assert other.ends == breadth.ends
    assert compiled.depth == breadth.depth


def test_cutting_by_the_marked_message_finds_what_the_whole_finds() -> None:
    for protocol, wrong in (("fifo", True), ("csps", False)):
        program = parse(CHAIN)
        parts = with_m1(
            Unit(Setup(protocol, 3), program, SearchOptions(properties=("causal order",)))
        )
        assert [part.m1 for part in parts] == [(0, 1), (0, 2), (1, 1)]
        found = [check_unit(part).violation for part in parts]
        assert [each is not None for each in found] == [wrong, False, False]


def test_random_walks_repeat_from_their_seed_and_find_what_is_common() -> None:
    system = System(Setup("fifo", 3), parse(CHAIN))
    runs = []
    for _ in range(2):
        seen, way = walk(unreduced(system, marked(system)), walks=500, seed=7)
        assert seen.found[0].kind == "causal order"
        assert not seen.complete
        runs.append([(process, move.event if move else None) for process, move in way])
    assert runs[0] == runs[1]


def test_shortest_is_none_longer_than_any_random_run() -> None:
    system = System(Setup("fifo", 3), parse(CHAIN))
    machine = unreduced(system, marked(system))
    found = shortest(machine)
    assert found is not None
    for seed in range(20):
        seen, way = walk(machine, walks=200, seed=seed)
        assert not seen.found or len(way) >= len(found[0])
    assert shortest(machine, bound=len(found[0]) - 2) is None


# -- bounds that are kept -----------------------------------------------------


def big() -> tuple[Setup, Program]:
    return Setup("csps", 3), parse("0>1,2; 1>2,0,2; 2>0,1")


@pytest.mark.parametrize("engine", ["python", "compiled"])
def test_a_search_stops_at_its_memory_bound_and_says_so(engine: str) -> None:
    setup, program = big()
    memory = 1 << 23
    part = check_unit(Unit(setup, program, SearchOptions(engine=engine, memory=memory)))
    assert not part.complete
    assert part.violation is None
    assert 0 < part.bytes <= memory


def test_a_limit_on_states_is_kept_within_a_slice(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search, "_SLICE", 10)
    setup, program = big()
    machine = Machine(Stage(setup), program, Marked(3), "marked", prune=True)
    depths: list[int] = []
    seen = explore(machine, limit=1000, watch=lambda states, moves, depth: depths.append(depth))
    assert not seen.complete
    assert 1000 < seen.states < 1100
    assert depths == sorted(depths)
    assert depths[-1] == seen.depth


def test_loss_and_repetition_are_used_up() -> None:
    """With one loss and no retransmission a message is missing; with rounds it is not."""
    program = parse("0>1; 1>")
    lossy = check_unit(Unit(Setup("csps", 2, NetworkModel(loss=1)), program))
    assert lossy.violation is not None
    assert lossy.violation.kind == "undelivered"
    repaired = check_unit(Unit(Setup("csps", 2, NetworkModel(loss=1, rounds=2)), program))
    assert repaired.complete
    assert repaired.violation is None
    assert check_unit(Unit(Setup("csps", 2, NetworkModel(duplicates=1)), program)).violation is None
    twice = check_unit(Unit(Setup("unordered", 2, NetworkModel(duplicates=1)), program))
    assert twice.violation is not None
    assert twice.violation.kind == "duplicate"
