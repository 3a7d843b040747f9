"""Quantities as people type them."""

from __future__ import annotations

import re
from fractions import Fraction

from .errors import CommandError

__all__ = ["nanoseconds"]

_UNITS = {"ns": 1, "us": 10**3, "ms": 10**6, "s": 10**9, "min": 60 * 10**9}
_DURATION = re.compile(r"([0-9]+(?:\.[0-9]+)?)\s*([a-z]*)", re.ASCII)


def nanoseconds(text: str, what: str) -> int:
    """A duration: 250us, 5ms, 1.5s; a number alone is milliseconds."""
    match = _DURATION.fullmatch(text.strip())
    unit = _UNITS.get(match[2] or "ms") if match else None
    if match is None or unit is None:
        raise CommandError(f"{what} takes a duration such as 250us, 5ms or 1.5s, not {text!r}")
    return round(Fraction(match[1]) * unit)
