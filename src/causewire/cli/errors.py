"""The error of commands."""

from __future__ import annotations

from ..core.errors import CausewireError

__all__ = ["CommandError"]


class CommandError(CausewireError):
    """Bad usage or bad input, in one line; the exit status is 2."""
