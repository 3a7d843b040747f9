"""What the messages accepted for one peer take of the room that there is (`ledger`)."""

from __future__ import annotations

from .outbound import Outbound

__all__ = ["COST", "Account"]

COST = 64
"""What a message costs of a credit in addition to its payload."""


class Account:
    """Messages that were accepted for a peer and are not known to be delivered."""

    __slots__ = (
        "accepted",
        "credit",
        "credit_left",
        "lent",
        "lent_in",
        "outbound",
        "taken",
        "taken_bytes",
    )

    def __init__(self) -> None:
        self.outbound = Outbound()
        self.accepted = 0
        """Messages accepted for this peer since the start, unused credit included."""
        self.taken = 0
        """Room taken in the ledger, unused credit included."""
        self.taken_bytes = 0
        self.credit = 0
        """Messages that may be accepted without asking the ledger."""
        self.credit_left = 0
        """What is left of the credit, in bytes: see `ledger`."""
        self.lent = 0
        """The size of the credit when it was given."""
        self.lent_in = -1
        """The turn in which it was given."""

    @property
    def has_messages(self) -> int:
        """Messages that were accepted and are not known to be delivered."""
        return self.taken - self.credit

    @property
    def wanted(self) -> int:
        """Room taken by messages that have not been withdrawn, unused credit included."""
        return self.taken - len(self.outbound.withdrawn)

    @property
    def held(self) -> int:
        """Messages accepted for this peer that the protocol has not released."""
        return self.accepted - self.credit - self.outbound.released

    @property
    def credit_bytes(self) -> int:
        """Bytes of payload that were reserved for the credit and not used."""
        return self.credit_left + COST * (self.lent - self.credit)

    @property
    def has_bytes(self) -> int:
        """The bytes of these messages."""
        return self.taken_bytes - self.credit_bytes
