"""Addresses from which datagrams arrive that do not verify."""

from __future__ import annotations

from collections.abc import Callable

from .events import Address, Event, VerificationFailed

__all__ = ["Suspects"]

MOST = 64
"""The most addresses that are remembered."""


class Suspects:
    """Counts datagrams that do not verify, and reports them at each power of ten.

    There is one report a second at the most, so that a flood does not cause another one. A
    report that is due earlier waits until a datagram arrives, from any such address, after that.
    """

    __slots__ = ("_counts", "_emit", "_next", "_waiting")

    def __init__(self, emit: Callable[[Event], None]) -> None:
        self._counts: dict[Address, int] = {}
        self._emit = emit
        self._next = float("-inf")
        """When the next report is allowed."""
        self._waiting: dict[Address, None] = {}
        """Addresses whose report is due, in that order."""

    def note(self, address: Address, now: float) -> None:
        """Count a datagram from an address."""
        counts = self._counts
        count = counts.pop(address, 0) + 1
        if len(counts) >= MOST:
            oldest = next(iter(counts))
            del counts[oldest]
            self._waiting.pop(oldest, None)
        counts[address] = count
        if count in _REPORTED:
            self._waiting[address] = None
        if self._waiting and now >= self._next:
            self._next = now + 1.0
            first = next(iter(self._waiting))
            del self._waiting[first]
            self._emit(VerificationFailed(first, counts[first]))


_REPORTED = frozenset(10**k for k in range(12))
