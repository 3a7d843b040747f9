"""Going through the states of a machine: breadth first, depth first, at random.

Breadth first finds shortest counterexamples; depth first keeps few states waiting
(it takes the newest states first, a handful at a time, through the same loop);
random walks get deep where the whole is out of reach.

What has been seen is a set of integers. A search that has to report the path to
a state goes breadth first and keeps the predecessor of each state.
"""

from __future__ import annotations

import gc
import random
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TypeAlias

from .actor import Move
from .machine import Found, Machine, Row

__all__ = ["Exploration", "Watch", "Way", "explore", "paused_collector", "shortest", "walk"]

STATE_BYTES = 110
"""What a state costs in a set and in the list that waits, about, in plain Python."""

_HANDFUL = 256
_SLICE = 1 << 13
"""States that are expanded between two looks at the bounds: depth first, breadth first."""


@dataclass(slots=True)
class Exploration:
    """The size and the findings of one search."""

    states: int = 0
    transitions: int = 0
    depth: int = 0
    ends: int = 0
    """States in which nothing more can happen."""
    seconds: float = 0.0
    complete: bool = False
    """Whether all reachable states were searched."""
    found: list[Found] = field(default_factory=list)
    bytes: int = 0
    """Memory for states; the tables are not counted."""
    seen: set[int] = field(default_factory=set, repr=False)


Watch = Callable[[int, int, int], None]
"""Called now and then with the numbers of states and transitions, and the depth."""


@contextmanager
def paused_collector() -> Iterator[None]:
    """Pause the cyclic garbage collector in the body.

    A search keeps nearly everything that it makes, and its garbage has no cycles. Looking for
    some takes a third of the time in which the tables are filled.
    """
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


@paused_collector()
def explore(
    machine: Machine,
    *,
    depth_first: bool = False,
    limit: int | None = None,
    keep_going: bool = False,
    memory: int | None = None,
    watch: Watch | None = None,
) -> Exploration:
    """Look at all states; stop at the first violation unless told to keep going.

    `limit` is a number of states after which to give up, `memory` one of bytes.
    """
    start = time.perf_counter()
    result = Exploration(seen={machine.initial}, depth=0)
    seen = result.seen
    fresh: set[int] = set()
    """What was found since `seen` was last brought up to date: most of what is found is
    found again soon, and a small set is looked up faster."""
    waiting = [machine.initial]
    if memory is not None:
        most = memory // STATE_BYTES
        limit = most if limit is None else min(limit, most)
    level: list[int] = []
    """Breadth first: what is left to expand of the states at one distance."""
    while waiting or level:
        if depth_first:
            states = waiting[-_HANDFUL:]
            del waiting[-_HANDFUL:]
            seen |= fresh
            fresh = set()
        else:
            if not level:
                level, waiting = waiting[::-1], []
                seen |= fresh
                fresh = set()
            states = level[: -_SLICE - 1 : -1]
            del level[-_SLICE:]
        ended: list[int] = []
        special: list[tuple[int, int]] = []
        result.transitions += _expand(machine, states, seen, fresh, waiting, ended, special)
        for state, process in special:
            _look(machine, state, process, result)
        result.ends += len(ended)
        _end(machine, ended, seen, fresh, waiting, result)
        count = len(seen) + len(fresh)
        result.depth += bool(waiting) and not level and not depth_first
        if watch is not None:
            watch(count, result.transitions, result.depth)
        if (result.found and not keep_going) or (limit is not None and count > limit):
            break
    else:
        result.complete = True
    seen |= fresh
    result.states = len(seen)
    result.bytes = len(seen) * STATE_BYTES
    result.seconds = time.perf_counter() - start
    return result


_OfPhase: TypeAlias = Sequence[tuple[dict[int, Row], int]]
"""For each process its rows by station, and where that lies in the state."""


def _expand(
    machine: Machine,
    states: Iterable[int],
    seen: set[int],
    fresh: set[int],
    waiting: list[int],
    ended: list[int],
    special: list[tuple[int, int]],
) -> int:
    """Put those successors of `states` that are new into `fresh` and `waiting`.

    Returns how many transitions there were.
    """
    rows, top, mask, hot = machine.rows, machine.top, machine.mask, machine.hot
    eager = machine.eager is not None
    learn, wait = fresh.add, waiting.append
    transitions = 0
    for state in states:
        moves = 0
        of_phase: _OfPhase = rows[state >> top]
        if eager:
            of_phase = _first(of_phase, state, mask)
        for of_station, shift in of_phase:
            inner, single, several, count, ends, _ = of_station[(state >> shift) & mask]
            moves += count
            for change in inner:
                then = state + change
                if then not in fresh and then & hot and then not in seen:
                    learn(then)
                    wait(then)
            for at, entries in single:
                other = (state >> at) & mask
                for change, arrivals in entries:
                    then = state + change + arrivals[other]
                    if then not in fresh and then & hot and then not in seen:
                        learn(then)
                        wait(then)
            for change, parts in several:
                then = state + change
                for at, arrivals in parts:
                    then += arrivals[(state >> at) & mask]
                if then not in fresh and then & hot and then not in seen:
                    learn(then)
                    wait(then)
            if ends:
                special.append((state, shift))
        if not moves:
            ended.append(state)
        transitions += moves
    return transitions


def _first(of_phase: _OfPhase, state: int, mask: int) -> _OfPhase:
    """The one process that has a move which goes before all others, or all of them."""
    for each in of_phase:
        of_station, shift = each
        if of_station[(state >> shift) & mask].eager:
            return (each,)
    return of_phase


def _look(machine: Machine, state: int, shift: int, result: Exploration) -> None:
    """Note the violations among the moves that end there."""
    phase, stations = machine.unpack(state)
    process = machine.shifts.index(shift)
    row = machine.rows[phase][process][0][stations[process]]
    for move in row.special:
        if move.violation is not None:
            result.found.append(Found(move.violation, state, process, move))


def _end(
    machine: Machine,
    ended: list[int],
    seen: set[int],
    fresh: set[int],
    waiting: list[int],
    result: Exploration,
) -> None:
    """Judge states without moves, or let the drivers go another round."""
    for state in ended:
        verdict = machine.verdict(state)
        if isinstance(verdict, Found):
            result.found.append(verdict)
        elif verdict is not None and verdict not in seen and verdict not in fresh:
            fresh.add(verdict)
            waiting.append(verdict)


# -- how it came to it --------------------------------------------------------


Way = list[tuple[int, Move | None]]
"""A run: for each step the process and its move; no move is a round of `retransmit`."""


def shortest(
    machine: Machine,
    wanted: Callable[[str], bool] = lambda kind: True,
    *,
    bound: int | None = None,
) -> tuple[Way, str] | None:
    """Return a shortest run to a violation, and its kind; None if there is no violation.

    A violation that takes more than `bound` steps is not looked for.
    """
    before: dict[int, tuple[int, int, Move | None]] = {machine.initial: (-1, -1, None)}
    level = [machine.initial]
    steps = 0
    while level and (bound is None or steps <= bound):
        steps += 1
        following = []
        for state in level:
            some = False
            for process, move, then in machine.successors(state):
                some = True
                if move.violation is not None:
                    if wanted(move.violation):
                        return [*_way(before, state), (process, move)], move.violation
                elif not move.over and then not in before and then & machine.hot:
                    before[then] = (state, process, move)
                    following.append(then)
            if not some:
                verdict = machine.verdict(state)
                if isinstance(verdict, Found):
                    if wanted(verdict.kind):
                        return _way(before, state), verdict.kind
                elif verdict is not None and verdict not in before:
                    before[verdict] = (state, -1, None)
                    following.append(verdict)
        level = following
    return None


def _way(before: dict[int, tuple[int, int, Move | None]], state: int) -> Way:
    way = []
    while before[state][0] >= 0:
        state, process, move = before[state]
        way.append((process, move))
    return way[::-1]


def walk(machine: Machine, *, walks: int, seed: int) -> tuple[Exploration, Way]:
    """Return what random runs to their end find, and the last run: one that goes wrong, if any."""
    start = time.perf_counter()
    chance = random.Random(seed)
    result = Exploration()
    way: Way = []
    for _ in range(walks):
        way = []
        state = machine.initial
        while True:
            options = list(machine.successors(state))
            if not options:
                result.ends += 1
                verdict = machine.verdict(state)
                if verdict is None:
                    break
                if isinstance(verdict, Found):
                    result.found.append(verdict)
                    break
                way.append((-1, None))
                state = verdict
                continue
            process, move, then = options[chance.randrange(len(options))]
            way.append((process, move))
            result.transitions += 1
            if move.violation is not None:
                result.found.append(Found(move.violation, state, process, move))
                break
            if move.over or not then & machine.hot:
                break
            state = then
        result.states += len(way) + 1
        result.depth = max(result.depth, len(way))
        if result.found:
            break
    result.seconds = time.perf_counter() - start
    return result, way
