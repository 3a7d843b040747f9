"""Counts of what happened, for people and for monitoring."""

from __future__ import annotations

__all__ = ["Stats"]


class Stats:
    """Counters of one transport, from its start; they only grow."""

    __slots__ = (
        "bytes_in",
        "bytes_out",
        "datagrams_in",
        "datagrams_out",
        "delivered",
        "dropped",
        "failed",
        "lost",
        "payload_bytes_in",
        "resent",
        "sent",
        "timeouts",
    )

    def __init__(self) -> None:
        self.sent = 0
        """Messages accepted, a multicast as one."""
        self.delivered = 0
        """Messages delivered here."""
        self.failed = 0
        """Copies of messages accepted for a peer that is gone."""
        self.datagrams_in = self.datagrams_out = 0
        self.bytes_in = self.bytes_out = 0
        self.payload_bytes_in = 0
        self.lost = 0
        """Datagrams taken for lost."""
        self.resent = 0
        """Messages and parts of messages that were in them."""
        self.timeouts = 0
        """Retransmission timers that expired."""
        self.dropped: dict[str, int] = {}
        """Datagrams, and packets in them, that were dropped, by reason."""

    def drop(self, reason: str) -> None:
        self.dropped[reason] = self.dropped.get(reason, 0) + 1

    def as_dict(self) -> dict[str, int | dict[str, int]]:
        """All counters by name."""
        counts = {name: getattr(self, name) for name in self.__slots__}
        counts["dropped"] = dict(self.dropped)
        return counts
