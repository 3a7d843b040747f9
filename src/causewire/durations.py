"""Durations as people write them: "250us", "5ms", "1.5s", "2min".

This is the only parser of durations in Causewire: settings of a simulation,
experiment files and the command line all use it. A number without a unit is
refused, because its meaning would depend on the place where it is written.
"""

from __future__ import annotations

import re
from fractions import Fraction

from .core.errors import CausewireError

__all__ = ["UNITS", "DurationError", "format_duration", "parse_duration"]

UNITS = {"ns": 1, "us": 10**3, "ms": 10**6, "s": 10**9, "min": 60 * 10**9}
"""Nanoseconds in each unit."""

_DURATION = re.compile(r"([0-9]+(?:\.[0-9]+)?)\s*([a-z]*)", re.ASCII)


class DurationError(CausewireError, ValueError):
    """A duration cannot be understood; the message is one line that says what to write."""


def parse_duration(value: object) -> int:
    """Return a duration in nanoseconds.

    Args:
        value: A string of a number and a unit: ns, us, ms, s or min.

    Raises:
        DurationError: `value` has no unit, has an unknown unit, or is not a whole
            number of nanoseconds.

    Example:
        >>> parse_duration("1.5ms")
        1500000
    """
    if isinstance(value, int | float) and not isinstance(value, bool) and value >= 0:
        raise _ambiguous(f"{value:g}" if isinstance(value, float) else str(value))
    match = _DURATION.fullmatch(value.strip()) if isinstance(value, str) else None
    if match is None or (match[2] and match[2] not in UNITS):
        raise DurationError(f"{value!r} is not a duration such as 250us, 5ms or 1.5s")
    if not match[2]:
        raise _ambiguous(match[1])
    exact = Fraction(match[1]) * UNITS[match[2]]
    if exact.denominator != 1:
        raise DurationError(f"{value!r} is not a whole number of nanoseconds")
    return exact.numerator


def format_duration(nanoseconds: int) -> str:
    """Return the shortest exact text that `parse_duration` reads back as this duration."""
    for unit, size in (("s", 10**9), ("ms", 10**6), ("us", 10**3)):
        if nanoseconds and nanoseconds % size == 0:
            return f"{nanoseconds // size}{unit}"
    return f"{nanoseconds}ns"


def _ambiguous(number: str) -> DurationError:
    problem = "is ambiguous" if float(number) else "has no unit"
    return DurationError(f"{number} {problem}: write {number}ms or {number}us")
