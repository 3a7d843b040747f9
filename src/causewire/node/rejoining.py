"""When a node that was given up continues as a new incarnation: at once, unless that does not last.

If another living process has the same name, and continues by itself as well, each of the two puts
the other one out as soon as it is back. So whoever is put out again soon waits before it
continues, twice as long each time.
"""

from __future__ import annotations

__all__ = ["Rejoining"]

LASTS = 10.0
"""An incarnation that was accepted for this number of seconds, and for ten times the last pause,
was not put out by a process that does the same."""

FIRST, LONGEST = 0.5, 60.0
"""The first pause, and the longest, in seconds."""


class Rejoining:
    """Decides when to continue."""

    __slots__ = ("_last", "_pause", "until")

    def __init__(self) -> None:
        self._pause = 0.0
        self._last: float | None = None
        """When this process has continued the last time."""
        self.until: float | None = None
        """While it pauses, or has not continued since: the end of the pause."""

    def now(self, now: float) -> bool:
        """Return whether to continue now, and to call `rejoined`; or else ask again at `until`."""
        if self.until is None:
            soon = self._last is not None and now - self._last < max(LASTS, 10 * self._pause)
            self._pause = min(max(FIRST, 2 * self._pause), LONGEST) if soon else 0.0
            self.until = now + self._pause
        return now >= self.until

    def rejoined(self, now: float) -> None:
        """Note that this process continues, whether it was asked to or not."""
        self.until, self._last = None, now
