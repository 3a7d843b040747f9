"""What an application gives, so that its state is transferred to processes that join."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, NamedTuple

from .entries import Position
from .errors import KitError
from .frames import MalformedError
from .wire import get_position

__all__ = ["Restore", "Since", "Snapshot", "Transfer"]

Snapshot = Callable[[], Any]
"""Returns the state of the application, or an awaitable of it."""

Restore = Callable[[Any], Any]
"""Replaces the state of the application by this one; may be a coroutine function."""

Since = Callable[[], bytes | None]
"""Returns how far the state of the application goes (`Group.position`), or None."""


class Transfer(NamedTuple):
    """The functions that an application has given to `Kit.join` or `Kit.stay`."""

    snapshot: Snapshot | None = None
    restore: Restore | None = None
    since: Since | None = None

    def position(self) -> Position | None:
        """Return how far the state of the application goes, if it says so.

        Raises:
            KitError: What `since` returned is not a position.
        """
        data = None if self.since is None else self.since()
        if not data:
            return None
        try:
            return get_position(data)
        except (MalformedError, TypeError, AttributeError):
            raise KitError(f"since() returned {data!r:.40}, not a position of a group") from None

    async def restored(self, state: Any) -> None:
        """Replace the state of the application."""
        if self.restore is not None:
            done = self.restore(state)
            if inspect.isawaitable(done):
                await done
