"""Deliberate mistakes in the change of epochs, to see that the seeded runs find them.

    python -m tests.transport.epoch_mistakes [RUNS]

prints in how many runs each of them is found.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

from causewire.testing.wire import play
from causewire.transport.epochs import Epochs
from causewire.transport.link import Link


def _at_once(self: Epochs, *, drained: bool) -> bool:
    """Enter the new epoch without waiting for the others."""
    return True


def _undrained(self: Link) -> bool:
    """Say that everything is delivered when it is not."""
    return True


def _nobody_pulled(self: Epochs, view: Any) -> bool:
    """Take no notice of a peer that has entered."""
    return False


def _as_it_comes(self: Link) -> None:
    """Deliver what is held back in the order of arrival."""
    held, self._undelivered = self._undelivered, {}
    for (name, number), data in held.items():
        self._deliver(name, number, data)


def _never(self: Link) -> None:
    """Keep what is held back."""


MISTAKES: dict[str, tuple[str, type, str, Callable[..., Any]]] = {
    "entering without the others": ("ks", Epochs, "all_told", _at_once),
    "entering before all is delivered": ("rst", Link, "_is_drained", _undrained),
    "nobody is pulled along": ("bss", Epochs, "pulls", _nobody_pulled),
    "held back, in order of arrival": ("ks", Link, "_release", _as_it_comes),
    "held back for ever": ("ks", Link, "_release", _never),
}
"""The protocol with which each is tried, and what is replaced."""


@contextmanager
def mistake(name: str) -> Iterator[None]:
    """Make a mistake for a while."""
    _, where, what, instead = MISTAKES[name]
    with patch.object(where, what, instead):
        yield


def found(name: str, seeds: Iterable[int]) -> Iterator[int]:
    """Yield the seeds whose runs find a mistake; an exception counts as well."""
    for seed in seeds:
        with mistake(name):
            try:
                fine = play(seed, MISTAKES[name][0], failures=True).fine
            except (AssertionError, KeyError, IndexError):
                fine = False
        if not fine:
            yield seed


if __name__ == "__main__":
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 200
    for mistaken in MISTAKES:
        seeds = list(found(mistaken, range(runs)))
        print(f"{mistaken}: found in {len(seeds)} of {runs} runs, first {seeds[:1]}", flush=True)
