"""What a protocol calls the processes that its packets name, and who they are for everybody.

The packets of `adaptive` name third processes. On the wire a process is a name and an
incarnation. An endpoint has one string for each such process. It is the plain name for the first
incarnation that this process hears of, which is nearly always the only one, and a longer string
for later ones. A string never comes to mean another process, as long as anything refers to it: a
plain name that was dropped is not given to a later incarnation before all tables for writing
have begun anew (`retired`).

A process of which the incarnation is not known has incarnation 0 on the wire, and two strings
here: one for messages of this process to it (`alias`), one for messages of others.
"""

from __future__ import annotations

from typing import Any

from ..core.adaptive import UNMET
from .identity import Identity
from .lists import Process

__all__ = ["Identities"]


class Identities:
    """The strings that an endpoint uses, and the processes for which they stand."""

    def __init__(self, me: Identity) -> None:
        self._me = me
        self._strings: dict[str, dict[int, str]] = {}
        """By name and incarnation."""
        self._processes: dict[str, Process] = {}
        self.floors: dict[str, int] = {}
        """Incarnations of a process below this one are gone."""
        self.retired: set[str] = set()
        """Plain names that were dropped, and that tables for writing may still have."""

    def of(self, me: Identity) -> None:
        """Note who this process is, as its driver says; the name is the same."""
        self._me = me

    def saved(self) -> list[Any]:
        """Return the strings, and who is gone, as lists, strings and numbers."""
        strings = [[*process, string] for string, process in self._processes.items()]
        return [strings, self.floors, sorted(self.retired)]

    def restore(self, saved: list[Any]) -> None:
        """Continue with what was saved."""
        strings, floors, retired = saved
        for name, incarnation, string in strings:
            self._strings.setdefault(name, {})[incarnation] = string
            self._processes[string] = (name, incarnation)
        self.floors = dict(floors)
        self.retired = set(retired)

    @staticmethod
    def alias(name: str) -> str:
        """Return what this process calls one that it has not met."""
        return f"{name}\0\0"

    def process(self, string: str) -> Process:
        """Return the process for which a string of the endpoint stands."""
        if string == self._me.name:
            return string, self._me.incarnation
        if string.endswith("\0\0"):
            return string[:-2], 0
        if string == UNMET:
            return self._me.name, 0
        if string.endswith("\0"):
            return string[:-1], 0
        return self._processes[string]

    def gone(self, process: Process) -> bool:
        """Return whether a process is known to be gone."""
        name, incarnation = process
        if name == self._me.name:
            return incarnation not in (0, self._me.incarnation)
        return 0 < incarnation < self.floors.get(name, 0)

    def string(self, process: Process) -> str:
        """Return what the endpoint calls a process."""
        name, incarnation = process
        if name == self._me.name and incarnation in (0, self._me.incarnation):
            return name
        if not incarnation:
            return f"{name}\0"  # it says all, so that nothing is kept of names that others dial
        strings = self._strings.get(name)
        if strings is None:
            strings = self._strings[name] = {}
        string = strings.get(incarnation)
        if string is None:
            taken = name in self._processes or name in self.retired or name == self._me.name
            string = f"{name}\0{incarnation:x}" if taken else name
            strings[incarnation] = string
            self._processes[string] = process
        return string

    def below(self, name: str, floor: int) -> list[str]:
        """Return the strings of a process's incarnations below a number."""
        strings = self._strings.get(name, {})
        return [string for incarnation, string in strings.items() if 0 < incarnation < floor]

    def drop(self, string: str) -> None:
        """Drop a string that nothing mentions."""
        process = self._processes.pop(string, None)
        if process is not None:
            name, incarnation = process
            if string == name:
                self.retired.add(name)
            del self._strings[name][incarnation]
            if not self._strings[name]:
                del self._strings[name]
