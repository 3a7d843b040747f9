"""What a member keeps for others that come back: the last messages of a group.

A process that was a member, and has kept its state, lacks only the messages that were delivered
since. It says how far its state goes (`Position`). A member that still has all messages after
that position sends these; otherwise it sends the whole state. Messages suffice if two things hold:

- The member has delivered everything that is in the position. If not, the group has lost
  something that the process has in its state, and the state has to be replaced.
- The member still has every message that is not in the position. `_floor` says, for each author,
  up to which number messages were dropped here, or were part of the state that this member
  itself began with.

Since the numbers of an author have no gaps, and no number is used twice in one group, the
messages after the position are exactly those that the process lacks.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

from .entries import Cut, Member, Missed

__all__ = ["HISTORY", "History"]

HISTORY = 1 << 20
"""How many bytes of messages are kept by default."""

OVERHEAD = 64
"""Bytes that a message counts for in addition to its payload."""


class History:
    """The last messages that were delivered here, and which ones are not among them.

    Args:
        limit: How many bytes to keep.
    """

    def __init__(self, limit: int = HISTORY) -> None:
        self.limit = limit
        self._size = 0
        self._messages: deque[Missed] = deque()
        self._floor: dict[Member, int] = {}

    def begin(self, cut: Cut, missed: Iterable[Missed]) -> None:
        """Begin at a cut, with all messages before it from some place on."""
        self._floor = dict(cut)
        missed = list(missed)
        for message in reversed(missed):
            self._floor[message.author] = message.number - 1
        for message in missed:
            self.add(message)

    def add(self, message: Missed) -> None:
        """Keep a message that was delivered, and drop the oldest ones if there are too many."""
        self._messages.append(message)
        self._size += len(message.payload) + OVERHEAD
        while self._size > self.limit:
            oldest = self._messages.popleft()
            self._size -= len(oldest.payload) + OVERHEAD
            self._floor[oldest.author] = oldest.number

    def since(self, cut: Cut, delivered: Cut) -> tuple[Missed, ...] | None:
        """Return the messages that are not in a cut, in causal order; None if that is not possible.

        Args:
            cut: How far the state of somebody else goes.
            delivered: What was delivered here.
        """
        if any(count > delivered.get(author, 0) for author, count in cut.items()):
            return None
        if any(last > cut.get(author, 0) for author, last in self._floor.items()):
            return None
        return tuple([m for m in self._messages if m.number > cut.get(m.author, 0)])
