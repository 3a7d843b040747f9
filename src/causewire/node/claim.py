"""A reader that stands between a node and its application."""

from __future__ import annotations

from collections.abc import Callable

from ..core.endpoint import Delivery
from ..transport import Event
from .node import Node
from .receipt import Receipt

__all__ = ["Claim"]


class Claim:
    """Takes all messages of a node, and says of each when it is handled. `Kit` has one.

    On a node with a store, what was taken and not handled is delivered again after a crash.

    Args:
        node: The node that is read.
        settle: Called by `Node.done`, to finish what the application has handled.
    """

    def __init__(self, node: Node, settle: Callable[[], object]) -> None:
        self.node = node
        self._settle = settle

    @property
    def durable(self) -> bool:
        """Whether the node has a store."""
        return self.node._gate is not None

    @property
    def runs(self) -> int:
        """How many earlier runs of this process its store continues."""
        gate = self.node._gate
        return 0 if gate is None else gate.connection

    async def stored(self, receipt: Receipt) -> None:
        """Wait until a message is in the store.

        Raises:
            Closed: The node was closed before.
            StoreFailed: The store could not be written, now or before.
        """
        if self.node._gate is not None:
            self.node._gate.check()
            await receipt.stored()

    def begin(self) -> None:
        """Take the messages of the node from now on."""
        self.node._settle = self._settle
        if self.node._gate is not None:
            self.node._gate.inbox.claim()

    def end(self) -> None:
        """Let others read. What is not finished by then stays in the store."""
        self.node._settle = None
        if self.node._gate is not None:
            self.node._gate.inbox.release()

    def finish(self, item: Delivery | Event) -> None:
        """Note that a message, or an event among the messages, is handled."""
        if isinstance(item, Delivery):
            item.done()
        if self.node._gate is not None:
            self.node._gate.inbox.finish(item)
            if self.node._bridge is not None:
                self.node._bridge.soon()

    def is_left_over(self, message: Delivery) -> bool:
        """Return whether a message was delivered to an earlier run of this process."""
        gate = self.node._gate
        return gate is not None and gate.inbox.is_left_over(message)
