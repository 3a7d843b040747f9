"""One unit of a check: one workload, looked at to the end.

Workloads have nothing to do with one another, so a check of many is many units,
each a value that can be sent anywhere, with a result that can be sent back. The
tables of a setup are kept from one unit to the next in the same process, as far
as memory allows.

A unit is one search with the ghost `marked`, unless something else is asked for:
it covers delivery in order, no message twice, everything delivered in the end, and
causal order for whichever copy is marked. With `commuting` it is two: one without
ghost, in full, which also proves which packets commute, and one with the ghost,
reduced by that (see `reduction`).
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from importlib.util import find_spec
from typing import Any

from .counterexample import Counterexample, Step, steps_of
from .ghost import Ghost, History, Marked, Past, Plain
from .machine import Machine, Stage
from .reduction import Commuting
from .search import Exploration, Watch, explore, shortest, walk
from .setup import PROPERTIES, Setup
from .sometimes import met, needed
from .workloads import Workload

__all__ = ["GHOSTS", "How", "Result", "Unit", "Violation", "check_unit"]

GHOSTS = ("marked", "past", "plain", "history")

_MANY = 50_000
"""States after which `auto` leaves plain Python for the kernel, for good."""

_LOCAL_BYTES = 6_000
"""What a local state costs in the tables, about, with its endpoint and its outcomes."""


@dataclass(frozen=True, slots=True)
class How:
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
    """Count all violations of a workload instead of stopping at the first."""
    memory: int = 4 << 30
    """Bytes for states and tables of one process."""
    walks: int = 1000
    seed: int = 0


@dataclass(frozen=True, slots=True)
class Unit:
    """One workload to check, and with `m1` for one marked message only."""

    setup: Setup
    workload: Workload
    how: How = field(default_factory=How)
    m1: tuple[int, int] | None = None


@dataclass(frozen=True, slots=True)
class Violation:
    """A violation, with a shortest run that leads to one of its kind."""

    kind: str
    workload: Workload
    steps: tuple[Step, ...]

    def counterexample(self, setup: Setup) -> Counterexample:
        return Counterexample(setup, self.workload, self.steps, self.kind)


@dataclass(slots=True)
class Result:
    """What came of a unit."""

    workload: Workload
    states: int = 0
    transitions: int = 0
    depth: int = 0
    ends: int = 0
    seconds: float = 0.0
    complete: bool = False
    bytes: int = 0
    compiled: bool = False
    violations: int = 0
    violation: Violation | None = None
    met: frozenset[str] = frozenset()
    """What happened at least once: see `sometimes`."""

    def take(self, seen: Exploration) -> None:
        self.states += seen.states
        self.transitions += seen.transitions
        self.depth = max(self.depth, seen.depth)
        self.ends = max(self.ends, seen.ends)
        self.complete = seen.complete
        self.bytes = max(self.bytes, seen.bytes)
        self.violations += len(seen.found)


class _Kept:
    """The stage of the last unit, for the next one like it."""

    stage: Stage | None = None
    library: Any = None
    states = 0
    """How many states were looked at with it."""
    met: frozenset[str] = frozenset()
    """What has happened: what is there already is not looked for again."""


def _stage(unit: Unit) -> Stage:
    how = unit.how
    kept = _Kept.stage
    if (
        kept is None
        or kept.setup != unit.setup
        or kept.merge_reactions != how.merge_reactions
        or kept.forget != how.forget
        or kept.judged != frozenset(how.properties)
        or kept.local_states * _LOCAL_BYTES > how.memory // 2
    ):
        kept = Stage(
            unit.setup,
            merge_reactions=how.merge_reactions,
            forget=how.forget,
            judged=how.properties,
        )
        _Kept.stage, _Kept.library, _Kept.states, _Kept.met = kept, None, 0, frozenset()
    return kept


def _ghost(unit: Unit) -> tuple[Ghost, object]:
    """The ghost of a unit, and a name for it."""
    n = unit.setup.processes
    messages = max([len(program) for program in unit.workload], default=1)
    name = unit.how.ghost
    if name == "marked":
        return Marked(n, unit.m1), (name, unit.m1)
    if name == "past":
        return Past(n, messages), (name, messages)
    return (Plain() if name == "plain" else History()), name


def check_unit(unit: Unit, watch: Watch | None = None) -> Result:
    """Look at one workload."""
    start = time.perf_counter()
    stage = _stage(unit)
    result = Result(unit.workload)
    ghost, name = _ghost(unit)
    prune = unit.how.prune
    machine = Machine(stage, unit.workload, ghost, name, prune=prune)
    if unit.how.order == "random":
        _walk(unit, machine, result)
    elif unit.how.commuting and unit.setup.network.reliable:
        plain = Machine(stage, unit.workload, Plain(), "plain")
        reached: list[list[int]] = []
        result.take(_explore(unit, plain, result, watch, reached))
        if result.complete and (unit.how.keep_going or not result.violations):
            rule = Commuting(plain.actors, reached, machine.actors)
            reduced = Machine(stage, unit.workload, ghost, name, eager=rule, prune=prune)
            result.take(_explore(unit, reduced, result, watch, None))
    else:
        result.take(_explore(unit, machine, result, watch, None))
    if result.violations and result.violation is None:
        result.violation = _shortest(unit, machine)
    lacking = needed(unit.setup.network, unit.how.ghost) - _Kept.met
    _Kept.met |= met(stage, lacking)
    result.met = _Kept.met
    result.seconds = time.perf_counter() - start
    return result


def _explore(
    unit: Unit,
    machine: Machine,
    result: Result,
    watch: Watch | None,
    reached: list[list[int]] | None,
) -> Exploration:
    """Search with the engine that is asked for, or that suits."""
    how = unit.how
    options: dict[str, Any] = {
        "keep_going": how.keep_going,
        "memory": how.memory // 2,
        "watch": watch,
    }
    seen = None
    leave = how.engine == "auto" and how.order != "depth" and has_numba()
    if how.engine != "compiled" and not (leave and _Kept.states >= _MANY):
        python = partial(explore, machine, depth_first=how.order == "depth", **options)
        seen = _in_python(python, leave)
    if seen is None:
        from .compiled import explore_compiled
        from .library import Library

        stage = _stage(unit)
        if _Kept.library is None or _Kept.library.post is not stage.post:
            _Kept.library = Library(stage.post)
        result.compiled = True
        return explore_compiled(machine, _Kept.library, reached=reached, **options)
    if reached is not None:
        reached[:] = machine.reached()
    seen.seen = set()
    return seen


def _in_python(python: Callable[..., Exploration], leave: bool) -> Exploration | None:
    """A search in plain Python; None if it is one for the kernel."""
    seen = python(limit=_MANY if leave else None)
    _Kept.states += seen.states
    return None if leave and not seen.complete and not seen.found else seen


def has_numba() -> bool:
    """Whether the kernel can be used here."""
    return find_spec("numba") is not None


def _walk(unit: Unit, machine: Machine, result: Result) -> None:
    seen, way = walk(machine, walks=unit.how.walks, seed=unit.how.seed)
    result.take(seen)
    if seen.found:
        steps = tuple(steps_of(machine, way))
        result.violation = Violation(seen.found[0].kind, unit.workload, steps)


def _shortest(unit: Unit, machine: Machine) -> Violation | None:
    """A shortest run to a violation, by the plainest search there is."""
    found = shortest(machine)
    if found is None:
        return None
    way, kind = found
    return Violation(kind, unit.workload, tuple(steps_of(machine, way)))


def cores() -> int:
    """How many processes may run at once here."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:
        return os.cpu_count() or 1


def with_m1(unit: Unit) -> list[Unit]:
    """The unit cut into one for each message that may be marked."""
    return [
        replace(unit, m1=(i, mid))
        for i, program in enumerate(unit.workload)
        for mid in range(1, len(program) + 1)
    ]
