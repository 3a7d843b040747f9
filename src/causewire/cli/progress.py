"""Progress of long work: what is being done and when it will be done, on a terminal only.

With rich (`pip install "causewire[cli]"`) it is a bar, without it a line. Either is erased at
the end, and neither is written to a pipe.
"""

from __future__ import annotations

import shutil
import sys
import threading
import time
from importlib.util import find_spec
from types import TracebackType
from typing import TYPE_CHECKING, Protocol, Self

if TYPE_CHECKING:
    from rich.progress import Progress as RichProgress

__all__ = ["Progress", "remaining", "shortened"]

_PAUSE = 0.1
"""Seconds between two updates."""

_ESTIMATE = 2.0
"""Seconds after which the remaining time is estimated."""

_WIDEST = 100
"""Columns of a bar, at most."""


_AROUND = 22
"""Columns of what is around the words: a bar, the time that has passed, gaps."""


class _Shown(Protocol):
    """What a terminal shows."""

    def show(self, text: str, share: float | None, left: str) -> None: ...

    def erase(self) -> None: ...


class _Line:
    """One line that is overwritten."""

    def __init__(self, what: str) -> None:
        self._what = what

    def show(self, text: str, share: float | None, left: str) -> None:
        if share is not None:
            text += f"  {100 * share:.0f} %"
        if left:
            text += f", {left} left"
        width = shutil.get_terminal_size().columns - 1
        sys.stderr.write(f"\r\x1b[K{f'{self._what}: {text}'[:width]}")
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
        )

        console = Console(stderr=True)
        console.width = min(console.width, _WIDEST)
        self._bar: RichProgress = Progress(
            SpinnerColumn(),
            TextColumn("{task.description}", markup=False),
            BarColumn(bar_width=None),
            TextColumn("{task.fields[said]}", markup=False),
            TimeElapsedColumn(),
            TextColumn("{task.fields[left]}", markup=False),
            console=console,
            transient=True,
            expand=True,
            redirect_stdout=False,  # which may be a file
        )
        self._what, self._width = what, console.width
        self._task = self._bar.add_task(what, total=None, said="", left="")
        self._bar.start()

    def show(self, text: str, share: float | None, left: str) -> None:
        left = f"left: {left}" if left else ""
        self._bar.update(
            self._task,
            description=shortened(self._what, self._width - _AROUND - len(text) - len(left)),
            said=text,
            completed=share or 0.0,
            total=None if share is None else 1.0,
            left=left,
        )

    def erase(self) -> None:
        self._bar.stop()


class Progress:
    """How far some work is, on standard error if that is a terminal."""

    def __init__(self, what: str) -> None:
        self._what = what
        self._terminal = sys.stderr.isatty()
        self._begun = time.monotonic()
        self._before = 0.0
        self._next = self._begun + 2 * _PAUSE  # quick work needs none
        self._shown: _Shown | None = None
        self._lock = threading.Lock()

    def of(self, done: int, total: int, unit: str) -> None:
        """Show how many of a known number of units are done, and when the rest will be."""
        if self._due():
            self._part(f"{done:,} of {total:,} {unit}", done, total)

    def about(self, done: int, total: int | None, unit: str) -> None:
        """Show how many units are done, and when the rest will be if their number is known.

        A number of units that is smaller than the one before it begins another pass.
        """
        if total is None:
            self.done(done, unit)
        elif self._due():
            self._part(f"{done:,} {unit}", min(done, total), total)

    def done(self, done: int, unit: str, more: str = "") -> None:
        """Show how many units are done, and how fast, if their total is unknown."""
        if self._due():
            rate = done / max(time.monotonic() - self._begun, _PAUSE)
            text = f"{done:,} {unit}, {rate:,.0f} a second"
            self._show(f"{text}, {more}" if more else text, left="unknown")

    def share(self, text: str, done: float, total: float) -> None:
        """Show a text, which part of the work is done, and when the rest will be."""
        if self._due():
            self._part(text, done, total)

    def part(self, text: str, share: float, seconds: float) -> None:
        """Show a text, which part of the work is done, and when the rest will be.

        Args:
            text: What is being done.
            share: The part that is done, from 0 to 1.
            seconds: The time that it took.
        """
        if self._due():
            self._show(text, share, remaining(seconds, share))

    def say(self, text: str) -> None:
        """Show what is being done now."""
        if self._terminal:
            self._show(text)

    def clear(self) -> None:
        """Erase what is shown, so that something else can be printed; it comes back later."""
        with self._lock:
            if self._shown is not None:
                self._shown.erase()
                self._shown = None

    def _due(self) -> bool:
        if not self._terminal or time.monotonic() < self._next:
            return False
        self._next = time.monotonic() + _PAUSE
        return True

    def _part(self, text: str, done: float, total: float) -> None:
        if done < self._before:  # another pass
            self._begun = time.monotonic()
        self._before = done
        share = done / total if total else 0.0
        self._show(text, share, remaining(time.monotonic() - self._begun, share))

    def _show(self, text: str, share: float | None = None, left: str = "") -> None:
        with self._lock:
            if self._shown is None:
                self._shown = _Line(self._what) if find_spec("rich") is None else _Bar(self._what)
            self._shown.show(text, share, left)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.clear()


def shortened(text: str, width: int) -> str:
    """Return text that takes at most this many columns, and at least eight."""
    width = max(width, 8)
    return text if len(text) <= width else f"{text[: width - 1].rstrip(' ,')}…"


def remaining(spent: float, share: float) -> str:
    """Return how long the rest of some work will take, in words.

    Args:
        spent: The seconds that were spent on the part that is done.
        share: The part that is done, from 0 to 1.

    Returns:
        A duration, or "unknown" while nothing is done; nothing while it is too early to tell.
    """
    if share >= 1 or spent < _ESTIMATE:
        return ""
    if share <= 0:
        return "unknown"
    seconds = round(spent * (1 - share) / share)
    if seconds < 60:
        return f"{seconds} s"
    if seconds < 3600:
        return f"{seconds // 60} min {seconds % 60} s"
    return f"{seconds // 3600} h {seconds % 3600 // 60} min"
