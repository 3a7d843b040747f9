"""Many units: spread over the cores of the machine, and resumed from a checkpoint.

A check is a list of units. They are given to worker processes, one by one and in
order, since neighbours share most of their tables; what comes back is summed up.
With a checkpoint, each result is written down as it comes, and a check that is started
again with the same file leaves out what is there. A unit that was under way when a
check was interrupted is done again.

Units and results can be pickled, and a `Checker` needs nothing else; so `elsewhere` may
be any function that has units checked on other machines.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

from ..core.errors import CausewireError
from .check import Checker, Result, Unit, cores
from .programs import written
from .sometimes import SOMETIMES, needed
from .workers import Numbered, spread

__all__ = ["Checkpoint", "CheckpointError", "Progress", "Summary", "run_units"]


_NUMBERS = ("states", "transitions", "depth", "ends", "seconds", "bytes", "compiled")
"""The fields of a result that a checkpoint stores unchanged."""


class CheckpointError(CausewireError):
    """A checkpoint cannot be read, or belongs to another check."""


@dataclass(slots=True)
class Summary:
    """The sum of the results of all units."""

    units: int = 0
    done: int = 0
    resumed: int = 0
    """Of the units done, those that were in the checkpoint."""
    complete: bool = True
    states: int = 0
    transitions: int = 0
    depth: int = 0
    bytes: int = 0
    """The most that one search needed."""
    cpu_seconds: float = 0.0
    seconds: float = 0.0
    violating: int = 0
    """Programs with a violation."""
    shortest: Result | None = None
    met: set[str] = field(default_factory=set)
    required: frozenset[str] = frozenset()

    def take(self, result: Result) -> None:
        """Add the result of one unit."""
        self.done += 1
        self.complete &= result.complete
        self.states += result.states
        self.transitions += result.transitions
        self.depth = max(self.depth, result.depth)
        self.bytes = max(self.bytes, result.bytes)
        self.cpu_seconds += result.seconds
        self.met |= result.met
        if result.violation is not None:
            self.violating += 1
            best = self.shortest
            if best is None or _length(result) < _length(best):
                self.shortest = result

    @property
    def vacuous(self) -> list[str]:
        """What should have happened at least once and did not; see `sometimes`.

        Empty if a violation was found.
        """
        if self.shortest is not None:
            return []
        return [each for each in SOMETIMES if each in self.required - self.met]

    @property
    def passed(self) -> bool:
        """Whether the search was complete, found no violation, and was not vacuous."""
        return (
            self.complete and self.done == self.units and self.shortest is None and not self.vacuous
        )


def _length(result: Result) -> int:
    assert result.violation is not None
    return len(result.violation.steps)


class Checkpoint:
    """Results in a file, one line each, after a line that identifies the check.

    Kept is what holds. A unit with a violation is soon done again, and its
    counterexample is made of packets, which a file of plain numbers has no words for.
    """

    def __init__(self, path: str | Path, units: Sequence[Unit]) -> None:
        self.path = Path(path)
        self.units = units
        self.name = _fingerprint(units)
        self.results: dict[int, Result] = {}
        if self.path.exists():
            self._read()
        else:
            self._write({"check": self.name, "units": len(units)})

    def _read(self) -> None:
        whole = self.path.read_text(encoding="utf-8")
        lines = whole.splitlines()
        if not whole.endswith("\n"):
            lines = lines[:-1]  # cut short: it was being written when all stopped
        try:
            head, *entries = map(json.loads, lines)
            if head["check"] != self.name:
                raise CheckpointError(f"{self.path}: a checkpoint of another check")
            for entry in entries:
                self._take(**entry)
        except (LookupError, ValueError, TypeError) as error:
            raise CheckpointError(f"{self.path}: not a checkpoint: {error}") from None
        if not whole.endswith("\n"):
            self.path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")

    def _take(self, unit: int, program: str, met: list[str], **numbers: Any) -> None:
        known = self.units[unit].program
        self.results[unit] = Result(known, complete=True, met=frozenset(met), **numbers)

    def add(self, k: int, result: Result) -> None:
        """Store a result without a violation; an incomplete one is left out, to be redone."""
        if not result.complete or result.violation is not None:
            return
        numbers = {name: getattr(result, name) for name in _NUMBERS}
        program, met = written(result.program), sorted(result.met)
        self._write({"unit": k, "program": program, "met": met, **numbers})

    def _write(self, entry: dict[str, Any]) -> None:
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(entry) + "\n")


def _fingerprint(units: Sequence[Unit]) -> str:
    """Return an identifier of a check: equal for equal units."""
    text = repr([(unit.setup, unit.program, unit.options.ghost, unit.options.properties, unit.m1)
                 for unit in units])  # fmt: skip
    return hashlib.sha256(text.encode()).hexdigest()[:16]


Elsewhere: TypeAlias = Callable[[list[Numbered]], Iterable[tuple[int, Result]]]
"""A function that checks units and returns their results, each with its number."""

Progress = Callable[[Summary, int, int, int], None]
"""Called now and then with the results so far, and with the numbers of states and
transitions and the depth of the searches that are running."""


def run_units(
    units: Sequence[Unit],
    *,
    workers: int | None = None,
    checkpoint: Checkpoint | None = None,
    keep_going: bool = False,
    progress: Progress | None = None,
    elsewhere: Elsewhere | None = None,
) -> Summary:
    """Return the results of all units, summed up.

    Args:
        units: What to check.
        workers: How many processes to use; one for each core if None.
        checkpoint: Where results are stored, and read from if the file exists.
        keep_going: Whether to go on after the first unit with a violation.
        progress: Called now and then.
        elsewhere: Checks the units instead of processes of this machine.

    Raises:
        WorkerLostError: A worker process was killed.
    """
    start = time.perf_counter()
    summary = Summary(units=len(units))
    if units:
        summary.required = needed(units[0].setup, units[0].options.ghost)
    todo: list[Numbered] = list(enumerate(units))
    if checkpoint is not None:
        for result in checkpoint.results.values():
            summary.take(result)
            summary.resumed += 1
        todo = [(k, unit) for k, unit in todo if k not in checkpoint.results]
    workers = min(workers or cores(), max(1, len(todo) // 2))
    results: Iterator[tuple[int, Result]]
    if not todo or (summary.shortest is not None and not keep_going):
        results = iter(())
    elif elsewhere is not None:
        results = iter(elsewhere(todo))
    elif workers > 1:

        def show(states: int, transitions: int, depth: int) -> None:
            if progress is not None:
                progress(summary, states, transitions, depth)

        results = spread(todo, workers, show)
    else:
        results = _here(todo, summary, progress)
    for k, result in results:
        summary.take(result)
        if checkpoint is not None:
            checkpoint.add(k, result)
        if progress is not None:
            progress(summary, 0, 0, 0)
        if summary.shortest is not None and not keep_going:
            break
    if isinstance(results, Generator):
        results.close()
    summary.seconds = time.perf_counter() - start
    return summary


def _here(
    todo: list[Numbered], summary: Summary, progress: Progress | None
) -> Generator[tuple[int, Result], None, None]:
    """Yield the results of units that are checked in this process."""
    checker = Checker()
    for k, unit in todo:
        watch = None
        if progress is not None:

            def watch(states: int, transitions: int, depth: int) -> None:
                progress(summary, states, transitions, depth)

        yield k, checker.check(unit, watch)
