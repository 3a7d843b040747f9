"""`Accepted`: a message that the transport has accepted, and what is known of its delivery."""

from __future__ import annotations

from typing import Any, TypeVar

from .session import Session

__all__ = ["A", "Accepted"]


class Accepted(tuple[int, tuple[Session, ...], Any]):
    """A message that was accepted: its number, the sessions with its receivers, its driver.

    Drivers derive their receipts from this class. It costs next to nothing while nobody asks
    it anything.
    """

    __slots__ = ()

    @property
    def mid(self) -> int:
        """The number of the message among all that this process sent."""
        return self[0]

    @property
    def sessions(self) -> tuple[Session, ...]:
        """The sessions with its receivers."""
        return self[1]

    @property
    def missing(self) -> tuple[str, ...]:
        """Receivers that are not known to have delivered it, and may still do so."""
        return tuple([s.name for s in self[1] if s.confirmed < self[0] and not s.over])

    @property
    def failed(self) -> tuple[str, ...]:
        """Receivers that are gone, and are not known to have delivered it."""
        return tuple([s.name for s in self[1] if s.confirmed < self[0] and s.over])

    def __repr__(self) -> str:
        state = "failed" if self.failed else "under way" if self.missing else "delivered"
        return f"<{type(self).__name__} {self.mid}: {state}>"


A = TypeVar("A", bound=Accepted)
