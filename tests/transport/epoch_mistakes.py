"""Deliberate mistakes in the change of epochs, to see that the seeded runs find them.

    python -m tests.transport.epoch_mistakes [RUNS]

prints in how many runs each of them is found.
"""

from __future__ import annotations

from typing import Any

from causewire.transport.epochs import Epochs
from causewire.transport.link import Link

from .mistakes import Mistake, print_counts


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


def _same_members(self: Epochs, alias: str | None, drained: bool) -> bool:
    """Take what a peer has told of the same members at another time for its consent."""
    view, ready = self._told.get(alias or "", (None, False))
    return view is not None and view.alive == self.known.alive and (ready or not drained)


def _own_number(self: Epochs, alias: str, view: Any, drained: bool) -> None:
    """Take no notice of the numbers of others."""
    self._told[alias] = view, drained


MISTAKES = {
    "views without numbers": Mistake(Epochs, "_agrees", _same_members, "rst"),
    "a number of one's own": Mistake(Epochs, "told", _own_number, "bss"),
    "entering without the others": Mistake(Epochs, "all_told", _at_once, "ks"),
    "entering before all is delivered": Mistake(Link, "_is_drained", _undrained, "rst"),
    "nobody is pulled along": Mistake(Epochs, "pulls", _nobody_pulled, "bss"),
    "held back, in order of arrival": Mistake(Link, "_release", _as_it_comes, "ks"),
    "held back for ever": Mistake(Link, "_release", _never, "ks"),
}


if __name__ == "__main__":
    print_counts(MISTAKES, 200)
