"""Durations in arguments of commands."""

from __future__ import annotations

from ..durations import DurationError, parse_duration
from .errors import CommandError

__all__ = ["nanoseconds"]


def nanoseconds(text: str, what: str) -> int:
    """Return the duration that an argument gives, in nanoseconds.

    Args:
        text: A number with a unit, such as 250us, 5ms or 1.5s.
        what: The argument's name, for the error.

    Raises:
        CommandError: The text is not a duration, is negative, or has no unit.
    """
    if text.startswith("-"):
        raise CommandError(f"{what} must not be negative: {text}")
    try:
        return parse_duration(text)
    except DurationError as error:
        raise CommandError(f"{what}: {error}") from None
