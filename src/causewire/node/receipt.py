"""What a sender gets back: a receipt, and the ways in which sending can fail."""

from __future__ import annotations

import asyncio
from heapq import heappush

from ..core.errors import CausewireError
from ..transport import Session

__all__ = ["Closed", "DeliveryFailed", "Full", "NodeError", "Receipt"]


class NodeError(CausewireError):
    """Something that a node cannot do."""


class Closed(NodeError):  # noqa: N818 - it names a state, like asyncio.QueueEmpty
    """The node is closed, or closing."""


class Full(NodeError):  # noqa: N818
    """There is no room for another message now."""


class DeliveryFailed(NodeError):  # noqa: N818
    """A receiver is gone, and is not known to have delivered the message."""

    def __init__(self, mid: int, names: tuple[str, ...]) -> None:
        super().__init__(mid, names)
        self.mid = mid
        self.names = names

    def __str__(self) -> str:
        return f"message {self.mid} is not known to have been delivered by {', '.join(self.names)}"


class Receipt(tuple[int, tuple[Session, ...]]):
    """A message that was accepted.

    A receipt costs next to nothing while nobody asks it anything.
    """

    __slots__ = ()

    @property
    def mid(self) -> int:
        """The number of the message among all that this node sent."""
        return self[0]

    @property
    def missing(self) -> tuple[str, ...]:
        """Receivers that are not known to have delivered it, and may still do so."""
        return tuple([s.name for s in self[1] if s.confirmed < self[0] and not s.over])

    @property
    def failed(self) -> tuple[str, ...]:
        """Receivers that are gone, and are not known to have delivered it."""
        return tuple([s.name for s in self[1] if s.confirmed < self[0] and s.over])

    async def delivered(self) -> None:
        """Wait until every receiver has delivered it; `DeliveryFailed` if one is gone."""
        loop = asyncio.get_running_loop()
        mid, sessions = self
        for session in sessions:
            if session.confirmed < mid and not session.over:
                future = loop.create_future()
                heappush(session.waiters, (mid, id(future), future))
                await future
        if failed := self.failed:
            raise DeliveryFailed(mid, failed)

    def __repr__(self) -> str:
        state = "failed" if self.failed else "under way" if self.missing else "delivered"
        return f"<Receipt {self.mid}: {state}>"
