"""The application's queue, bounded in messages and bytes.

The application takes messages out of the deque itself, the quickest way there is;
how many it has taken shows in what is left. Bytes are counted by batch.
"""

from __future__ import annotations

from collections import deque

from ..core.endpoint import Delivery

__all__ = ["Inbox"]


class Inbox:
    """Messages that were delivered and not yet taken."""

    __slots__ = ("_batches", "_bytes", "_most_bytes", "_most_messages", "_put", "messages")

    def __init__(self, most_messages: int, most_bytes: int) -> None:
        self._most_messages = most_messages
        self._most_bytes = most_bytes
        self.messages: deque[Delivery] = deque()
        self._put = 0
        """Messages put in, ever."""
        self._batches: deque[tuple[int, int]] = deque()
        """For each batch: how many had been put in after it, and its bytes."""
        self._bytes = 0

    def put(self, deliveries: list[Delivery], size: int) -> None:
        """Add a batch; `size` is how many bytes its payloads have."""
        self.messages += deliveries
        self._put += len(deliveries)
        self._bytes += size
        self._batches.append((self._put, size))

    @property
    def room(self) -> int:
        """For how many messages there is room; 0 or less: for none."""
        batches = self._batches
        taken = self._put - len(self.messages)
        while batches and batches[0][0] <= taken:
            self._bytes -= batches.popleft()[1]
        return self._most_messages - len(self.messages) if self._bytes < self._most_bytes else 0
