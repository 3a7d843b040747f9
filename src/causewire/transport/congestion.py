"""How many bytes a session may have in flight: what the algorithms have in common.

One file for each algorithm: `newreno` and `cubic`. A window doubles each round trip until
something is lost (slow start); how it shrinks and grows after that is up to the algorithm.
Loss of several datagrams that were in flight together is one event. An event that turns out
to have been a false alarm is undone (RFC 4015).
"""

from __future__ import annotations

from abc import ABC, abstractmethod

__all__ = ["CongestionWindow"]


class CongestionWindow(ABC):
    """How many bytes may be in flight."""

    def __init__(self, unit: int) -> None:
        self.unit = unit
        """The size of a full datagram."""
        self.least = 4 * unit
        self.size = 16 * unit
        self.threshold = 1 << 60
        """Below this size the window doubles each round trip."""
        self._recovering = -1
        """Losses up to this number belong to an event that has been handled."""
        self._before = (self.size, self.threshold)
        """What the window was before that event."""

    def use(self, unit: int) -> None:
        """Note that full datagrams have another size now."""
        self.unit = unit
        self.least = 4 * unit

    def acked(self, number: int, size: int, now: float, round_trip: float) -> None:
        """Grow, as a datagram has arrived while the window was in use.

        Args:
            number: The number of the datagram.
            size: Its bytes.
            now: The time.
            round_trip: The estimated round-trip time.
        """
        if number <= self._recovering:
            return
        if self.size < self.threshold:
            self.size += size
        else:
            self._grow(size, now, round_trip)

    def lost(self, number: int, next_number: int) -> None:
        """Shrink, once for all datagrams that were in flight with a lost one."""
        if number > self._recovering:
            self._before = (self.size, self.threshold)
            self._recovering = next_number - 1
            self.threshold = self.size = max(self._shrunk(), self.least)

    def expired(self, number: int, next_number: int) -> None:
        """Start again with the least window, as a timeout has expired."""
        if number > self._recovering:
            self._before = (self.size, self.threshold)
        self._recovering = next_number - 1
        self.threshold = max(self._shrunk(), self.least)
        self.size = self.least

    def undo(self) -> None:
        """Return to the size before the last loss, which was a false alarm."""
        size, threshold = self._before
        self.size = max(self.size, size)
        self.threshold = max(self.threshold, threshold)
        self._recovering = -1

    @abstractmethod
    def _grow(self, size: int, now: float, round_trip: float) -> None:
        """Grow after slow start, as `size` bytes have arrived."""

    @abstractmethod
    def _shrunk(self) -> int:
        """Return the size after a loss, and remember what growing again needs to know."""
