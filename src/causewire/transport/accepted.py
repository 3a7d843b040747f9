"""`Accepted`: a message that the transport has accepted, and what is known of its delivery."""

from __future__ import annotations

from typing import Any, TypeVar

from .session import Session

__all__ = ["A", "Accepted"]


class Accepted(tuple[int, tuple[Session, ...], Any]):
    """A message that was accepted: its number, the sessions with its receivers, its driver.

    Drivers derive their receipts from this class. It costs next to nothing while nobody asks
    it anything: an instance has attributes of its own only if it differs from these.
    """

    withdrawn: str = ""
    """Why it will not be delivered: `cancelled` or `expired`; empty if it may be."""
    local: bool = False
    """Whether this process is among its receivers, and so has delivered it at once."""

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
        if self.withdrawn:
            return ()
        return tuple([s.name for s in self[1] if s.confirmed < self[0] and not s.over])

    @property
    def failed(self) -> tuple[str, ...]:
        """Receivers that have not delivered it, as far as is known, and will not."""
        if self.withdrawn:
            return tuple([s.name for s in self[1]])
        return tuple([s.name for s in self[1] if s.confirmed < self[0] and s.over])

    @property
    def gone(self) -> tuple[str, ...]:
        """Receivers that are gone, or came back without their memory, delivered or not."""
        return tuple([s.name for s in self[1] if s.over])

    def __repr__(self) -> str:
        state = "failed" if self.failed else "under way" if self.missing else "delivered"
        state = self.withdrawn or state
        return f"<{type(self).__name__} {self.mid}: {state}>"


A = TypeVar("A", bound=Accepted)
