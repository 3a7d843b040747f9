"""What a sender gets back: a receipt, and the errors that sending can raise."""

from __future__ import annotations

from ..core.errors import CausewireError
from ..transport import Accepted

__all__ = ["BaseReceipt", "Closed", "DeliveryFailed", "Full", "NodeError"]


class NodeError(CausewireError):
    """A node cannot do what it was asked to do."""


class Closed(NodeError):  # noqa: N818 - it names a state, like asyncio.QueueEmpty
    """The node is closed, or closing."""


class Full(NodeError):  # noqa: N818
    """There is no room for another message now."""


class DeliveryFailed(NodeError):  # noqa: N818
    """A message is not known to have been delivered, and nothing more will be heard of it.

    Attributes:
        mid: The number of the message.
        names: The receivers that are not known to have delivered it.
    """

    def __init__(self, mid: int, names: tuple[str, ...]) -> None:
        super().__init__(mid, names)
        self.mid = mid
        self.names = names

    def __str__(self) -> str:
        return f"message {self.mid} is not known to have been delivered by {', '.join(self.names)}"


class BaseReceipt(Accepted):
    """A message that was accepted; the two kinds of node add how to wait for its delivery."""

    __slots__ = ()

    def _check(self) -> None:
        """Raise `DeliveryFailed` unless every receiver is known to have delivered it."""
        lacking = tuple([s.name for s in self[1] if s.confirmed < self[0]])
        if lacking:
            raise DeliveryFailed(self[0], lacking)
