"""What a sender gets back: a receipt, and the errors that sending can raise."""

from __future__ import annotations

from ..core.errors import CausewireError
from ..transport import Accepted, Session

__all__ = [
    "BaseReceipt",
    "Closed",
    "DeliveryFailed",
    "Full",
    "MessageCancelled",
    "MessageExpired",
    "NodeError",
    "Receipt",
]


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


class MessageCancelled(DeliveryFailed):
    """A message was cancelled before it left. No receiver delivers it."""

    def __str__(self) -> str:
        return f"message {self.mid} to {', '.join(self.names)} was cancelled"


class MessageExpired(DeliveryFailed):
    """The time to live of a message passed before it left. No receiver delivers it.

    `mid` is 0 if it was not accepted, for lack of room.
    """

    def __str__(self) -> str:
        return f"the message to {', '.join(self.names)} expired before it left"


class BaseReceipt(Accepted):
    """A message that was accepted; the two kinds of node add how to wait for its delivery."""

    def cancel(self) -> bool:
        """Cancel the message, if it has not left this process.

        It then fails with `MessageCancelled`, and no receiver ever delivers it. All other
        messages keep their order. Messages that wait can be cancelled: for permits of the
        protocol, for room at the receiver, or for a receiver that has not been reached. A
        multicast is cancelled for all its receivers or for none.

        With a store, `stored` waits until a crash cannot undo this.

        Returns:
            Whether the message will not be delivered, since it was cancelled, now or before,
            or has expired. If False, it has left, or its receiver is gone, or this process is
            among the receivers, or the protocol sends every message at once
            (those other than csps, sps, fifo and adaptive do).
        """
        return bool(self[2]._withdraw(self))

    def _check_withdrawn(self) -> None:
        """Raise an error if the message was cancelled, or has expired."""
        if self.withdrawn:
            names = tuple([session.name for session in self[1]])
            kind = MessageExpired if self.withdrawn == "expired" else MessageCancelled
            raise kind(self[0], names)

    def _check(self) -> None:
        """Raise `DeliveryFailed` unless every receiver is known to have delivered it."""
        self._check_withdrawn()
        lacking = tuple([s.name for s in self[1] if s.confirmed < self[0]])
        if lacking:
            raise DeliveryFailed(self[0], lacking)

    def unhandled(self) -> list[Session]:
        """Return the sessions with receivers that may still report the message as handled.

        Raises:
            NodeError: A receiver does not report that.
        """
        if self.withdrawn:
            return []
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
        self._check_withdrawn()
        lacking = tuple([s.name for s in self[1] if s.handled is None or self[0] not in s.handled])
        if lacking:
            raise DeliveryFailed(self[0], lacking, "handled")


class Receipt(BaseReceipt):
    """A message that was accepted: what `Node.send` returns."""

    async def delivered(self) -> None:
        """Wait until every receiver has delivered the message.

        Raises:
            DeliveryFailed: A receiver is gone, or the node was closed or given up before.
            MessageCancelled: The message was cancelled.
            MessageExpired: Its time to live passed before it left.
        """
        mid, sessions, node = self
        for session in sessions:
            if self.withdrawn:
                break
            if node._settles and session.confirmed < mid and not session.over:
                await node._receipts.delivered(session, mid)
        self._check()

    async def handled(self) -> None:
        """Wait until the application of every receiver says that it has handled the message.

        Raises:
            DeliveryFailed: A receiver is gone, or the node was closed or given up before.
            NodeError: A receiver does not report what its application has handled.
        """
        mid, _, node = self
        while node._settles and (lacking := self.unhandled()):
            await node._receipts.handled(lacking[0], mid)
        self._check_handled()

    async def stored(self) -> None:
        """Wait until the message is in the store of its sender, so that it survives a crash.

        `await node.send(...)` has waited for that; after `send_nowait` it is up to you. After
        `cancel`, wait until the store has that.

        Raises:
            NodeError: The node has no store, or was closed before.
            StoreFailed: The store could not be written, and the message is not in it.
        """
        await self[2]._in_store(self)
