"""What a sender gets back: a receipt, and the errors that sending can raise."""

from __future__ import annotations

from ..core.errors import CausewireError
from ..transport import Accepted, Session

__all__ = ["BaseReceipt", "Closed", "DeliveryFailed", "Full", "NodeError", "Receipt"]


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
        what: `delivered`, or `handled` if that was asked for.
    """

    def __init__(self, mid: int, names: tuple[str, ...], what: str = "delivered") -> None:
        super().__init__(mid, names, what)
        self.mid = mid
        self.names = names
        self.what = what

    def __str__(self) -> str:
        names = ", ".join(self.names)
        return f"message {self.mid} is not known to have been {self.what} by {names}"


class BaseReceipt(Accepted):
    """A message that was accepted; the two kinds of node add how to wait for its delivery."""

    __slots__ = ()

    def _check(self) -> None:
        """Raise `DeliveryFailed` unless every receiver is known to have delivered it."""
        lacking = tuple([s.name for s in self[1] if s.confirmed < self[0]])
        if lacking:
            raise DeliveryFailed(self[0], lacking)

    def unhandled(self) -> list[Session]:
        """Return the sessions with receivers that may still report the message as handled.

        Raises:
            NodeError: A receiver does not report that.
        """
        lacking = [s for s in self[1] if s.handled is None or self[0] not in s.handled]
        for session in lacking:
            if session.established and session.handled is None:
                raise NodeError(
                    f"{session.name} does not report what its application has handled: "
                    "it needs Node(reports_handled=True)"
                )
        return [session for session in lacking if not session.over]

    def _check_handled(self) -> None:
        """Raise `DeliveryFailed` unless every receiver is known to have handled it."""
        lacking = tuple([s.name for s in self[1] if s.handled is None or self[0] not in s.handled])
        if lacking:
            raise DeliveryFailed(self[0], lacking, "handled")


class Receipt(BaseReceipt):
    """A message that was accepted: what `Node.send` returns."""

    __slots__ = ()

    async def delivered(self) -> None:
        """Wait until every receiver has delivered the message.

        Raises:
            DeliveryFailed: A receiver is gone, or the node was closed before.
        """
        mid, sessions, node = self
        for session in sessions:
            if node._bridge is not None and session.confirmed < mid and not session.over:
                await node._receipts.delivered(session, mid)
        self._check()

    async def handled(self) -> None:
        """Wait until the application of every receiver says that it has handled the message.

        Raises:
            DeliveryFailed: A receiver is gone, or the node was closed before.
            NodeError: A receiver does not report what its application has handled.
        """
        mid, _, node = self
        while node._bridge is not None and (lacking := self.unhandled()):
            await node._receipts.handled(lacking[0], mid)
        self._check_handled()

    async def stored(self) -> None:
        """Wait until the message is in the store of its sender, so that it survives a crash.

        `await node.send(...)` has waited for that; after `send_nowait` it is up to you.

        Raises:
            NodeError: The node has no store, or was closed before.
            StoreFailed: The store could not be written, and the message is not in it.
        """
        await self[2]._in_store(self)
