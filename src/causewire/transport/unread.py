"""Noticing that the application of this process has stopped reading.

A process can be alive, answer every ping, and still be of no use: its application is stuck and
takes no messages. Its peers cannot tell that from a long piece of work, and as long as its
queue has room they see nothing at all. Therefore it is the process itself that promises how
soon its application reads (`read_within`), and that *stands down* if the promise is broken:
it tells everybody its own obituary, as if somebody had given it up.

Whether the application has taken anything shows at the head of its queue, so taking a message
costs nothing.
"""

from __future__ import annotations

from collections import deque
from typing import Any

from .peers import Peers

__all__ = ["Unread"]

LOOKS = 8
"""How many times to look at the queue within the time that the application has."""

LATE = 0.5
"""A look that comes this many seconds late shows that the process did not run meanwhile."""


class Unread:
    """Watches the queue of an application that has promised to read.

    Args:
        peers: The other processes, and who this one is.
        messages: The queue that the application takes messages from.
        read_within: How many seconds messages may wait without any of them being taken; None
            for ever.

    Raises:
        ValueError: That time is not positive.
    """

    def __init__(self, peers: Peers, messages: deque[Any], read_within: float | None) -> None:
        if read_within is not None and not read_within > 0:
            raise ValueError(f"read_within must be above 0, not {read_within!r}")
        self._peers = peers
        self._messages = messages
        self._patience = read_within or 0.0
        self._head: object = None
        """The message that was first in the queue at the last look."""
        self._since = 0.0
        """Since when it has been the first one."""
        self.next: float | None = None
        """When to look again; None if the queue is not watched."""

    def begin(self, now: float) -> None:
        """Watch the queue if it is not watched and has messages."""
        if self._patience and self.next is None and self._messages:
            self._head, self._since = self._first(), now
            self.next = now + self._patience / LOOKS

    def run(self, now: float) -> None:
        """Look at the queue if it is time, and stand down if the application has not read."""
        if self.next is None or self.next > now:
            return
        if now - self.next > LATE:
            self._since += now - self.next  # the application could not run, either
        head, me = self._first(), self._peers.me
        if head is not self._head or head is None:
            self._head, self._since = head, now
            me.unread = False
        elif now - self._since >= self._patience and not (me.superseded or self._peers.closing):
            self._peers.stand_down(now - self._since)
        self.next = None if head is None else now + self._patience / LOOKS

    def _first(self) -> object:
        """Return the first message in the queue, or None; another thread may take it."""
        try:
            return self._messages[0]
        except IndexError:
            return None
