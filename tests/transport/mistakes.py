"""Deliberate mistakes, and which seeded runs find them."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple
from unittest.mock import patch

from causewire.testing.wire import play

__all__ = ["Mistake", "found", "print_counts"]


class Mistake(NamedTuple):
    """A method that is replaced by a wrong one, and the protocol with which that is tried."""

    where: type
    what: str
    instead: Callable[..., Any]
    protocol: str = "csps"

    def made(self) -> Any:
        """Return a context in which the mistake is made."""
        return patch.object(self.where, self.what, self.instead)


def found(mistake: Mistake, seeds: Iterable[int], disturb: bool = False) -> Iterator[int]:
    """Yield the seeds whose runs find a mistake; an exception counts as well."""
    for seed in seeds:
        with mistake.made():
            try:
                fine = play(seed, mistake.protocol, failures=True, disturb=disturb).fine
            except (AssertionError, KeyError, IndexError, OverflowError):
                fine = False
        if not fine:
            yield seed


def print_counts(mistakes: Mapping[str, Mistake], runs: int) -> None:
    """Print in how many runs each mistake is found; the command line may say another number."""
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else runs
    for name, mistake in mistakes.items():
        seeds = list(found(mistake, range(runs)))
        print(f"{name}: found in {len(seeds)} of {runs} runs, first {seeds[:1]}", flush=True)
