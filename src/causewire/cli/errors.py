"""What a command says when it cannot do what it was asked to."""

from __future__ import annotations

__all__ = ["CommandError"]


class CommandError(Exception):
    """Bad usage or bad input, in one line; the exit status is 2."""
