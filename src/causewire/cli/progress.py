"""Progress of long work: a line on a terminal, and nothing in a pipe."""

from __future__ import annotations

import sys
import time
from types import TracebackType
from typing import Self

__all__ = ["Progress"]

_PAUSE = 0.1
"""Seconds between two updates."""

_ESTIMATE = 2.0
"""Seconds after which the remaining time is estimated."""


class Progress:
    """A line on standard error that is overwritten, and erased at the end."""

    def __init__(self, what: str) -> None:
        self._what = what
        self._shown = sys.stderr.isatty()
        self._begun = time.monotonic()
        self._next = self._begun + 2 * _PAUSE  # quick work needs none
        self._dirty = False

    def of(self, done: int, total: int, unit: str) -> None:
        """Show how many of a known number of units are done, and when the rest will be."""
        if self._due():
            share = f"{100 * done // total} %" if total else ""
            spent = time.monotonic() - self._begun
            if spent > _ESTIMATE and 0 < done < total:
                share += f", {spent * (total - done) / done:.0f} s left"
            self._show(f"{done:,} of {total:,} {unit}  {share}")

    def done(self, done: int, unit: str) -> None:
        """Show how many units are done, if their total is unknown."""
        if self._due():
            rate = done / max(time.monotonic() - self._begun, _PAUSE)
            self._show(f"{done:,} {unit}, {rate:,.0f} a second")

    def say(self, text: str) -> None:
        """Show what is being done now."""
        if self._shown:
            self._show(text)

    def _due(self) -> bool:
        if not self._shown or time.monotonic() < self._next:
            return False
        self._next = time.monotonic() + _PAUSE
        return True

    def _show(self, text: str) -> None:
        self._dirty = True
        sys.stderr.write(f"\r\x1b[K{self._what}: {text}")
        sys.stderr.flush()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._dirty:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()
