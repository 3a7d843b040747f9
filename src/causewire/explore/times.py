"""Times in words, in the unit that suits them."""

from __future__ import annotations

__all__ = ["duration"]

_UNITS = ((10**9, "s"), (10**6, "ms"), (10**3, "µs"), (1, "ns"))


def duration(ns: float) -> str:
    """Return a length of time with three significant digits."""
    if ns < 0:
        return "-" + duration(-ns)
    for size, unit in _UNITS:
        if ns >= size:
            value = ns / size
            return f"{value:.0f} {unit}" if value >= 999.5 else f"{value:.3g} {unit}"
    return "0 s"
