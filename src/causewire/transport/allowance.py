"""How many greetings a process looks at, so that a flood of them costs little.

A greeting is more expensive than other datagrams, and everybody can send one. Token
buckets limit how many are processed per second: one for each address, and one for all
together. What exceeds them is dropped; genuine peers greet again.
"""

from __future__ import annotations

from .events import Address

__all__ = ["Allowance"]

ADDRESSES = 4096
"""Addresses that are remembered; the ones that have been seen least recently are dropped."""


class Allowance:
    """Token buckets that hold up to two seconds' worth of greetings.

    Args:
        total: Greetings per second from all addresses together.
        each: Greetings per second from one address.
    """

    def __init__(self, total: int, each: int) -> None:
        self._total = float(total)
        self._each = float(each)
        self._all = (2 * self._total, 0.0)
        """Tokens left, and at what time."""
        self._addresses: dict[Address, tuple[float, float]] = {}

    def take(self, address: Address, now: float) -> bool:
        """Return whether a greeting from an address may be processed now, and count it."""
        tokens, then = self._all
        tokens = min(2 * self._total, tokens + (now - then) * self._total)
        own, then = self._addresses.pop(address, (2 * self._each, now))
        own = min(2 * self._each, own + (now - then) * self._each)
        allowed = tokens >= 1 and own >= 1
        if allowed:
            tokens -= 1
            own -= 1
        self._all = (tokens, now)
        self._addresses[address] = (own, now)
        if len(self._addresses) > ADDRESSES:
            del self._addresses[next(iter(self._addresses))]
        return allowed
