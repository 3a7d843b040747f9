"""Room for messages that are accepted and not yet delivered at their destination.

Each copy of a message takes one message's and its payload's room, of its peer's and
of everybody's, from the moment it is accepted until the peer's application has it.

Counting that four times for each message would cost more than all the rest of
accepting it. So a session is given **credit** for some messages at a time, which
counts as taken; whoever sends takes from the credit of the session, two numbers,
and comes back here when it is used up.
"""

from __future__ import annotations

from collections.abc import Iterable

from .config import Config
from .session import Session

__all__ = ["CHUNK", "Ledger"]

CHUNK = 1024
"""Messages that a session is given credit for, at the most."""

CHUNK_BYTES = 65536


class Ledger:
    """Who has taken how much room."""

    __slots__ = ("_config", "bytes", "messages", "used")

    def __init__(self, config: Config) -> None:
        self._config = config
        self.messages = 0
        """Room taken by all sessions, unused credit included."""
        self.bytes = 0
        self.used = 0
        """Messages that were accepted on credit, ever."""

    def room(self, session: Session) -> bool:
        """Whether there is room for another message to that peer."""
        config = self._config
        return (
            session.has_messages < config.peer_messages
            and session.has_bytes < config.peer_bytes
            and self.messages < config.total_messages
            and self.bytes < config.total_bytes
        )

    def charge(self, session: Session, size: int) -> None:
        """A message was accepted for that peer."""
        session.accepted += 1
        session.taken += 1
        session.taken_bytes += size
        self.messages += 1
        self.bytes += size

    def lend(self, session: Session) -> None:
        """Give a session credit for as many messages as there is room for."""
        self.call_in(session)
        config = self._config
        messages = min(
            CHUNK, config.peer_messages - session.taken, config.total_messages - self.messages
        )
        size = min(
            CHUNK_BYTES, config.peer_bytes - session.taken_bytes, config.total_bytes - self.bytes
        )
        if messages > 0 and size > 0:
            session.credit = session.lent = messages
            session.credit_bytes = size
            session.accepted += messages
            session.taken += messages
            session.taken_bytes += size
            self.messages += messages
            self.bytes += size

    def call_in(self, session: Session) -> None:
        """Take unused credit back."""
        if session.lent:
            credit, size = session.credit, session.credit_bytes
            self.used += session.lent - credit
            session.credit = session.lent = session.credit_bytes = 0
            session.accepted -= credit
            self.release(session, credit, size)

    def call_in_all(self, sessions: Iterable[Session]) -> None:
        for session in sessions:
            self.call_in(session)

    def release(self, session: Session, messages: int, size: int) -> None:
        """These messages take no room any more."""
        session.taken -= messages
        session.taken_bytes -= size
        self.messages -= messages
        self.bytes -= size
