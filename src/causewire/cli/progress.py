"""Progress of long work: what is being done and when it will be done, on a terminal only.

With rich (`pip install "causewire[cli]"`) it is a bar, without it a line. Either is erased at
the end, and neither is written to a pipe.
"""

from __future__ import annotations

import sys
import time
from importlib.util import find_spec
from types import TracebackType
from typing import TYPE_CHECKING, Protocol, Self

if TYPE_CHECKING:
    from rich.progress import Progress as RichProgress

__all__ = ["Progress"]

_PAUSE = 0.1
"""Seconds between two updates."""

_ESTIMATE = 2.0
"""Seconds after which the remaining time is estimated."""


class _Shown(Protocol):
    """What a terminal shows."""

    def show(self, text: str, done: int | None, total: int | None) -> None: ...

    def erase(self) -> None: ...


class _Line:
    """One line that is overwritten."""

    def __init__(self, what: str) -> None:
        self._what = what
        self._begun = time.monotonic()

    def show(self, text: str, done: int | None, total: int | None) -> None:
        spent = time.monotonic() - self._begun
        if done is not None and total:
            text += f"  {100 * done // total} %"
            if spent > _ESTIMATE and 0 < done < total:
                text += f", {spent * (total - done) / done:.0f} s left"
        sys.stderr.write(f"\r\x1b[K{self._what}: {text}")
        sys.stderr.flush()

    def erase(self) -> None:
        sys.stderr.write("\r\x1b[K")
        sys.stderr.flush()


class _Bar:
    """A bar that moves on its own; its colours follow NO_COLOR."""

    def __init__(self, what: str) -> None:
        from rich.console import Console
        from rich.progress import (
            BarColumn,
            Progress,
            SpinnerColumn,
            TextColumn,
            TimeElapsedColumn,
            TimeRemainingColumn,
        )

        self._bar: RichProgress = Progress(
            SpinnerColumn(),
            TextColumn("{task.description}", markup=False),
            BarColumn(bar_width=20),
            TextColumn("{task.fields[said]}", markup=False),
            TimeElapsedColumn(),
            TextColumn("left:"),
            TimeRemainingColumn(),
            console=Console(stderr=True),
            transient=True,
        )
        self._task = self._bar.add_task(what, total=None, said="")
        self._bar.start()

    def show(self, text: str, done: int | None, total: int | None) -> None:
        self._bar.update(self._task, said=text, completed=done or 0, total=total)

    def erase(self) -> None:
        self._bar.stop()


class Progress:
    """How far some work is, on standard error if that is a terminal."""

    def __init__(self, what: str) -> None:
        self._what = what
        self._terminal = sys.stderr.isatty()
        self._begun = time.monotonic()
        self._next = self._begun + 2 * _PAUSE  # quick work needs none
        self._shown: _Shown | None = None

    def of(self, done: int, total: int, unit: str) -> None:
        """Show how many of a known number of units are done, and when the rest will be."""
        if self._due():
            self._show(f"{done:,} of {total:,} {unit}", done, total)

    def done(self, done: int, unit: str) -> None:
        """Show how many units are done, if their total is unknown."""
        if self._due():
            rate = done / max(time.monotonic() - self._begun, _PAUSE)
            self._show(f"{done:,} {unit}, {rate:,.0f} a second")

    def say(self, text: str) -> None:
        """Show what is being done now."""
        if self._terminal:
            self._show(text)

    def _due(self) -> bool:
        if not self._terminal or time.monotonic() < self._next:
            return False
        self._next = time.monotonic() + _PAUSE
        return True

    def _show(self, text: str, done: int | None = None, total: int | None = None) -> None:
        if self._shown is None:
            self._shown = _Line(self._what) if find_spec("rich") is None else _Bar(self._what)
        self._shown.show(text, done, total)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._shown is not None:
            self._shown.erase()
            self._shown = None
