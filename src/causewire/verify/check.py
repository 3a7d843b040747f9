"""One unit of a check: an exhaustive search of one program.

Programs are independent of each other, so a check of many programs is many units. A unit
and its result are plain values, which can be sent to other processes and machines. A
`Checker` keeps the tables of a setup from one unit to the next, as far as memory allows.

By default a unit is one search with the ghost `marked`. It covers FIFO order, duplicates,
delivery of everything in the end, and causal order for whichever copy is marked. With
the option `commuting` it is two searches: a full one without a ghost, which also proves
which packets commute, and one with the ghost, reduced by that (see `reduction`).
"""

from __future__ import annotations

import os
import time
from dataclasses import dataclass, field, replace
from importlib.util import find_spec
from typing import Any

from .counterexample import Counterexample, Step, steps_of
from .ghost import Ghost, History, Marked, Past, Plain
from .machine import Machine, Stage
from .programs import Program
from .reduction import Commuting
from .replay import ReplayError
from .search import Exploration, Watch, explore, shortest, walk
from .selfcheck import EndpointError
from .setup import PROPERTIES, Setup
from .sometimes import met, needed

__all__ = ["GHOSTS", "Checker", "Result", "SafetyViolation", "SearchOptions", "Unit", "check_unit"]

GHOSTS = ("marked", "past", "plain", "history")

_MANY = 50_000
"""The number of states after which `auto` changes to the compiled kernel for good."""

_LOCAL_BYTES = 6_000
"""The approximate size of a local state in the tables, with its endpoint and outcomes."""


@dataclass(frozen=True, slots=True)
class SearchOptions:
    """How to search; nothing here changes what is found, but `properties` and bounds."""

    ghost: str = "marked"
    engine: str = "auto"
    """`python`, `compiled`, or `auto`: begin in plain Python, and go over to the
    kernel when there is more to do, if Numba is there."""
    order: str = "breadth"
    """`breadth`, `depth` (less memory for what waits), or `random` walks."""
    commuting: bool = False
    merge_reactions: bool = True
    forget: bool = True
    prune: bool = True
    properties: tuple[str, ...] = PROPERTIES
    keep_going: bool = False
    """Count all violations of a program instead of stopping at the first."""
    memory: int = 4 << 30
    """Bytes for states and tables of one process."""
    walks: int = 1000
    seed: int = 0


@dataclass(frozen=True, slots=True)
class Unit:
    """One program to check.

    Attributes:
        setup: The protocol, the number of processes and the network.
        program: What each process sends.
        options: How to search.
        m1: The message to mark, by sender and number; any message if None.
    """

    setup: Setup
    program: Program
    options: SearchOptions = field(default_factory=SearchOptions)
    m1: tuple[int, int] | None = None


@dataclass(frozen=True, slots=True)
class SafetyViolation:
    """A violation of a property, with a shortest run that leads to it."""

    kind: str
    program: Program
    steps: tuple[Step, ...]

    def counterexample(self, setup: Setup) -> Counterexample:
        """Return the violation as a run that can be replayed, printed and drawn."""
        return Counterexample(setup, self.program, self.steps, self.kind)


@dataclass(slots=True)
class Result:
    """The result of a unit: what was searched, and what was found."""

    program: Program
    states: int = 0
    transitions: int = 0
    depth: int = 0
    ends: int = 0
    seconds: float = 0.0
    complete: bool = False
    bytes: int = 0
    compiled: bool = False
    violations: int = 0
    violation: SafetyViolation | None = None
    met: frozenset[str] = frozenset()
    """Which of `sometimes.SOMETIMES` happened."""

    def take(self, seen: Exploration) -> None:
        """Add the counts of one exploration."""
        self.states += seen.states
        self.transitions += seen.transitions
        self.depth = max(self.depth, seen.depth)
        self.ends = max(self.ends, seen.ends)
        self.complete = seen.complete
        self.bytes = max(self.bytes, seen.bytes)
        self.violations += len(seen.found)


def _can_commute(setup: Setup) -> bool:
    """Return whether `reduction` knows the events of a setup."""
    network = setup.network
    plain = network.reliable and not network.forgets and not network.frozen
    return plain and setup.calls.reacts


def _ghost(unit: Unit) -> tuple[Ghost, object]:
    """Return the ghost of a unit, and a name for it."""
    n = unit.setup.processes
    messages = max([len(sends) for sends in unit.program], default=1)
    name = unit.options.ghost
    if unit.setup.network.forgets and unit.m1 is None and name == "marked":
        name = "past"  # who sent the marked message makes a difference
    if name == "marked":
        return Marked(n, unit.m1), (name, unit.m1)
    if name == "past":
        return Past(n, messages), (name, messages)
    return (Plain() if name == "plain" else History()), name


class Checker:
    """Checks units one after another, and keeps the tables of one for the next like it.

    The tables are dropped when a unit needs others, or when they have grown too large.
    """

    def __init__(self) -> None:
        self._stage: Stage | None = None
        self._library: Any = None
        self._states = 0
        """How many states have been searched with these tables."""
        self._met: frozenset[str] = frozenset()
        """Which of `SOMETIMES` have happened with these tables."""

    def check(self, unit: Unit, watch: Watch | None = None) -> Result:
        """Return what a search of one program finds.

        Args:
            unit: What to search, and how.
            watch: Called now and then with the numbers of states and transitions, and
                the depth.

        Raises:
            EndpointError: Copies or states of the endpoint are wrong, so that a search of it
                means nothing (see `selfcheck`).
        """
        start = time.perf_counter()
        stage = self._stage_for(unit)
        result = Result(unit.program)
        ghost, name = _ghost(unit)
        prune = unit.options.prune
        machine = Machine(stage, unit.program, ghost, name, prune=prune)
        if unit.options.order == "random":
            _walk(unit, machine, result)
        elif unit.options.commuting and _can_commute(unit.setup):
            plain = Machine(stage, unit.program, Plain(), "plain")
            reached: list[list[int]] = []
            result.take(self._explore(unit, plain, result, watch, reached))
            if result.complete and (unit.options.keep_going or not result.violations):
                rule = Commuting(plain.actors, reached, machine.actors)
                reduced = Machine(stage, unit.program, ghost, name, eager=rule, prune=prune)
                result.take(self._explore(unit, reduced, result, watch, None))
        else:
            result.take(self._explore(unit, machine, result, watch, None))
        if result.violations and result.violation is None:
            result.violation = _shortest(unit, machine)
        if result.violation is not None:
            _confirm(result.violation, machine)
        lacking = needed(unit.setup, unit.options.ghost) - self._met
        self._met |= met(stage, lacking)
        result.met = self._met
        result.seconds = time.perf_counter() - start
        return result

    def _stage_for(self, unit: Unit) -> Stage:
        options = unit.options
        stage = self._stage
        if (
            stage is None
            or stage.setup != unit.setup
            or stage.merge_reactions != options.merge_reactions
            or stage.forget != options.forget
            or stage.judged != frozenset(options.properties)
            or stage.local_states * _LOCAL_BYTES > options.memory // 2
        ):
            stage = self._stage = Stage(
                unit.setup,
                merge_reactions=options.merge_reactions,
                forget=options.forget,
                judged=options.properties,
            )
            self._library, self._states, self._met = None, 0, frozenset()
        return stage

    def _explore(
        self,
        unit: Unit,
        machine: Machine,
        result: Result,
        watch: Watch | None,
        reached: list[list[int]] | None,
    ) -> Exploration:
        """Search with the engine that the options name, or that suits the size."""
        options = unit.options
        bounds: dict[str, Any] = {
            "keep_going": options.keep_going,
            "memory": options.memory // 2,
            "watch": watch,
        }
        leave = options.engine == "auto" and options.order != "depth" and has_numba()
        if options.engine != "compiled" and not (leave and self._states >= _MANY):
            seen = explore(
                machine,
                depth_first=options.order == "depth",
                limit=_MANY if leave else None,
                **bounds,
            )
            self._states += seen.states
            if seen.complete or seen.found or not leave:
                if reached is not None:
                    reached[:] = machine.reached()
                seen.seen = set()
                return seen
        from .compiled import explore_compiled
        from .library import Library

        if self._library is None:
            self._library = Library(machine.stage.post)
        result.compiled = True
        return explore_compiled(machine, self._library, reached=reached, **bounds)


def check_unit(unit: Unit, watch: Watch | None = None) -> Result:
    """Return what a search of one program finds; a `Checker` is faster for many units."""
    return Checker().check(unit, watch)


def has_numba() -> bool:
    """Return whether Numba is installed, which the compiled kernel needs."""
    return find_spec("numba") is not None


def _walk(unit: Unit, machine: Machine, result: Result) -> None:
    seen, way = walk(machine, walks=unit.options.walks, seed=unit.options.seed)
    result.take(seen)
    if seen.found:
        steps = tuple(steps_of(machine, way))
        result.violation = SafetyViolation(seen.found[0].kind, unit.program, steps)


def _shortest(unit: Unit, machine: Machine) -> SafetyViolation | None:
    """Return a shortest run to a violation, by a plain breadth-first search."""
    found = shortest(machine)
    if found is None:
        return None
    way, kind = found
    return SafetyViolation(kind, unit.program, tuple(steps_of(machine, way)))


def _confirm(violation: SafetyViolation, machine: Machine) -> None:
    """Replay a violation on endpoints that are never copied."""
    try:
        violation.counterexample(machine.setup).confirm()
    except ReplayError as error:
        name = machine.setup.about.endpoint.__name__
        lost = sorted(set().union(*(actor.lost_fields() for actor in machine.actors)))
        hint = " and ".join(f"`{field}`" for field in lost)
        hint = f"; endpoints that `_state` calls equal differ in {hint}" if hint else ""
        raise EndpointError(
            f"the counterexample cannot be replayed ({error}): `_state` or `_copy_into` of {name} "
            f"is incomplete{hint}"
        ) from None


def cores() -> int:
    """Return the number of cores that this process may use."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:
        return os.cpu_count() or 1


def with_m1(unit: Unit) -> list[Unit]:
    """Return one unit for each message that may be marked: smaller searches, but more."""
    return [
        replace(unit, m1=(i, mid))
        for i, sends in enumerate(unit.program)
        for mid in range(1, len(sends) + 1)
    ]
