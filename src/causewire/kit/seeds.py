"""Where a process finds members of a group.

A seed is the name of a process that the node knows, or `"name@host:port"`. A host name is
looked up each time that the seed is tried, so DNS may change. `SeedFile` reads seeds from a
file, one on each line, again before every attempt.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple, TypeAlias

__all__ = ["Seed", "SeedFile", "Seeds", "read_seeds"]


class Seed(NamedTuple):
    """A process that may be a member, and its address if the node does not know it."""

    name: str
    place: str | None


class SeedFile:
    """Seeds in a file, one on each line; empty lines and lines that begin with `#` do not count.

    The file is read again before every attempt to join, so it may change meanwhile. A file that
    does not exist has no seeds yet.

    Args:
        path: The file.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._path = Path(path)

    def lines(self) -> list[str]:
        """Return the seeds that the file has now."""
        try:
            text = self._path.read_text(encoding="utf-8")
        except FileNotFoundError:
            return []
        lines = [line.strip() for line in text.splitlines()]
        return [line for line in lines if line and not line.startswith("#")]


Seeds: TypeAlias = Iterable[str | SeedFile]


def read_seeds(seeds: Seeds) -> list[Seed]:
    """Return the seeds, those in files included."""
    found: list[Seed] = []
    for seed in seeds:
        for text in seed.lines() if isinstance(seed, SeedFile) else [seed]:
            name, at, place = text.partition("@")
            found.append(Seed(name, place if at else None))
    return found
