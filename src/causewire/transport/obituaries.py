"""Obituaries: which incarnations of a process are gone, and how long that is remembered.

An obituary is the lowest number of a process that may be alive, and whether the last of those
below it left properly or was given up. Memory, and what a new peer hears first, do not grow with
all who have ever come and gone:

    who left          does not come back under its old number. That obituary is dropped some time
                      (`linger`) later, when every peer has confirmed it: until then a peer may
                      still name the process in a list (`listing`).
    who was given up  may wake up at any time. That obituary is dropped when there are many later
                      ones and every peer has confirmed it, and it leaves a trace: from then on,
                      a process of which nothing is known is only accepted with a number that is
                      not below it (`lowest`). So the one that was given up is still refused
                      here, and learns that it has to come back with a higher number. The price:
                      so does a living process with a lower number that was never met here.

What follows an obituary is accepted only if there is room for the obituary.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Container
from itertools import islice

from .config import TransportConfig

__all__ = ["LEFT", "LOWEST", "Obituaries"]

LEFT = 1 << 63
"""The bit of an obituary that says that the process left properly; no incarnation has it."""

LOWEST = ""
"""What stands for all unknown processes in a store; no process has this name."""

MANY = 1 / 4
"""From how many obituaries on some are dropped, for each peer that there may be."""

MOST = 16
"""How many obituaries of strangers are accepted, for each peer that there may be."""


class Obituaries:
    """Who is gone."""

    def __init__(self, config: TransportConfig) -> None:
        self._config = config
        self.floors: dict[str, int] = {}
        """All incarnations of a process below this one are gone."""
        self.departures: set[str] = set()
        """Names whose obituary is that of a process that left properly."""
        self.lowest = 0
        """Incarnations below this one are refused, of processes of which nothing is known."""
        self._given_up: dict[str, None] = {}
        """Names whose obituary is that of a process that was given up, the next to drop first."""
        self._strangers: dict[str, float] = {}
        """When processes left that this one never met, the first one first."""

    def put(self, name: str, floor: int, left: bool) -> int:
        """Note that a process is gone; return its obituary as it is sent to others."""
        self.floors[name] = floor
        self._given_up.pop(name, None)
        if left:
            self.departures.add(name)
        else:
            self.departures.discard(name)
            self._given_up[name] = None
        return self.word(name)

    def word(self, name: str) -> int:
        """Return the obituary of a process as it is sent to others."""
        return self.floors[name] | (LEFT if name in self.departures else 0)

    def drop(self, name: str) -> None:
        """Remember the name of a process that is gone no longer."""
        floor = self.floors.pop(name, 0)
        if name in self._given_up:
            del self._given_up[name]
            self.lowest = max(self.lowest, floor)
        self.departures.discard(name)

    def stranger_left(self, name: str, now: float) -> None:
        """Note that a process has left that was never met here."""
        self._strangers[name] = now

    def drop_old(self, now: float, unbury: Callable[[str], bool], known: Container[str]) -> None:
        """Drop some of those that are old, or many: up to two of each kind.

        This is called for each obituary that comes, so they do not become much more than that
        for longer than it takes all peers to confirm them.

        Args:
            now: The time.
            unbury: Drops the obituary of a process, if nobody needs it; returns whether it did.
            known: Those that are known by now.
        """
        for name in list(islice(self._strangers, 2)):
            if now < self._strangers[name] + self._config.linger:
                break
            if name in known or name not in self.departures or unbury(name):
                self._strangers.pop(name, None)
        for name in list(islice(self._given_up, 2)):
            if len(self.floors) <= MANY * self._config.peers:
                break
            if not unbury(name):
                del self._given_up[name]
                self._given_up[name] = None

    def room_for(self, obituaries: Collection[tuple[str, int]], live: Container[str]) -> bool:
        """Return whether there is room for obituaries; always for those of peers in `live`."""
        spare = MOST * self._config.peers - len(self.floors)
        if len(obituaries) <= spare:
            return True
        return sum(n not in self.floors and n not in live for n, _ in obituaries) <= spare
