"""Room for messages that were accepted and are not yet delivered at their destination.

Each copy of a message takes the room of one message and of its payload, in the account of
its peer and in the common one, from the moment it is accepted until the peer's application
has it.

Updating four counters for each message would cost more than the rest of accepting it.
Therefore a session is given **credit** for some messages at a time, which counts as taken.
Accepting a message then takes from the credit of the session, and the ledger is asked again
when the credit is used up. One comparison checks both limits of the credit, messages and
bytes: each message costs its payload and `COST`, and the credit is worth no more than `COST`
for each message that it allows.
"""

from __future__ import annotations

from collections.abc import Iterable

from .account import COST
from .config import TransportConfig
from .session import Session

__all__ = ["CHUNK", "COST", "Ledger"]

CHUNK = 2048
"""The most messages that a session is given credit for."""


class Ledger:
    """The room taken by each session, and by all."""

    __slots__ = ("_config", "bytes", "messages", "used")

    def __init__(self, config: TransportConfig) -> None:
        self._config = config
        self.messages = 0
        """Room taken by all sessions, unused credit included."""
        self.bytes = 0
        self.used = 0
        """Messages accepted on credit since the start."""

    def room(self, session: Session) -> bool:
        """Return whether there is room for another message to that peer."""
        config = self._config
        return (
            session.has_messages < config.peer_messages
            and session.has_bytes < config.peer_bytes
            and self.messages < config.total_messages
            and self.bytes < config.total_bytes
        )

    def charge(self, session: Session, size: int) -> None:
        """Take the room of a message that was accepted for that peer."""
        session.accepted += 1
        session.taken += 1
        session.taken_bytes += size
        self.messages += 1
        self.bytes += size

    def charge_many(self, session: Session, messages: int, size: int) -> None:
        """Take the room of messages that were accepted before a crash."""
        session.accepted += messages
        session.taken += messages
        session.taken_bytes += size
        self.messages += messages
        self.bytes += size

    def lend(self, session: Session) -> None:
        """Give a session credit for as many messages as there is room for."""
        self.call_in(session)
        config = self._config
        messages = min(
            CHUNK, config.peer_messages - session.taken, config.total_messages - self.messages
        )
        size = min(
            COST * messages,
            config.peer_bytes - session.taken_bytes,
            config.total_bytes - self.bytes,
        )
        if messages > 0 and size > 0:
            session.credit = session.lent = messages
            session.credit_left = size
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
            session.credit = session.lent = session.credit_left = 0
            session.accepted -= credit
            self.release(session, credit, size)

    def call_in_all(self, sessions: Iterable[Session]) -> None:
        """Take unused credit back from all these sessions."""
        for session in sessions:
            self.call_in(session)

    def release(self, session: Session, messages: int, size: int) -> None:
        """Free the room of messages."""
        session.taken -= messages
        session.taken_bytes -= size
        self.messages -= messages
        self.bytes -= size
