"""Obituaries: which incarnations of a process are gone, and how long that is remembered.

An obituary is the lowest number of a process that may be alive, and whether the last of those
below it left properly or was given up. Who was given up may wake up at any time, so that
obituary is kept. Who left does not come back under its old number. That obituary is dropped
some time (`linger`) later, when every peer has confirmed it: until then a peer may still name
the process in a list (`listing`). So memory, and what a new peer hears first, do not grow with all
who have ever come and left.
"""

from __future__ import annotations

from itertools import islice

__all__ = ["LEFT", "Obituaries"]

LEFT = 1 << 63
"""The bit of an obituary that says that the process left properly; no incarnation has it."""


class Obituaries:
    """Who is gone."""

    def __init__(self) -> None:
        self.floors: dict[str, int] = {}
        """All incarnations of a process below this one are gone."""
        self.departures: set[str] = set()
        """Names whose obituary is that of a process that left properly."""
        self._strangers: dict[str, float] = {}
        """When processes left that this one never met, the first one first."""

    def put(self, name: str, floor: int, left: bool) -> int:
        """Note that a process is gone; return its obituary as it is sent to others."""
        self.floors[name] = floor
        (self.departures.add if left else self.departures.discard)(name)
        return self.word(name)

    def word(self, name: str) -> int:
        """Return the obituary of a process as it is sent to others."""
        return self.floors[name] | (LEFT if name in self.departures else 0)

    def drop(self, name: str) -> None:
        """Remember no longer that a process left."""
        self.floors.pop(name, None)
        self.departures.discard(name)

    def stranger_left(self, name: str, now: float) -> None:
        """Note that a process has left that was never met here."""
        self._strangers[name] = now

    def old_strangers(self, before: float) -> list[str]:
        """Return up to two strangers that left before a time: more than come with one obituary."""
        first = islice(self._strangers, 2)
        return [name for name in first if self._strangers[name] < before]

    def done_with(self, name: str) -> None:
        """Note that a stranger is not to be returned again."""
        del self._strangers[name]
