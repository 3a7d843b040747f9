"""Counters of what happened, for people and for monitoring."""

from __future__ import annotations

from enum import StrEnum
from typing import Any

__all__ = ["DropReason", "Stats"]


class DropReason(StrEnum):
    """Why a datagram, or something inside one, was dropped. Values are metric labels."""

    MALFORMED = "malformed"
    OTHER_VERSION = "other_version"
    NOT_FOR_US = "not_for_us"
    UNVERIFIED = "unverified"
    TOO_MANY_GREETINGS = "too_many_greetings"
    UNKNOWN_SESSION = "unknown_session"
    DUPLICATE = "duplicate"
    NO_ROOM = "no_room"
    PROTOCOL_VIOLATION = "protocol_violation"
    TOO_MANY_PEERS = "too_many_peers"
    STALE_INCARNATION = "stale_incarnation"
    REFUSED_PEER = "refused_peer"
    IMPLAUSIBLE_OBITUARY = "implausible_obituary"
    NOT_SENT = "not_sent"
    NOT_RECEIVED = "not_received"


_COUNTERS = (
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
    "trace_failed",
)


class Stats:
    """Counters of one transport since it was made; they only grow."""

    __slots__ = _COUNTERS

    def __init__(self) -> None:
        self.sent = 0
        """Messages accepted; a multicast counts once."""
        self.delivered = 0
        """Messages delivered here."""
        self.failed = 0
        """Copies of messages whose receiver is gone."""
        self.datagrams_in = self.datagrams_out = 0
        self.bytes_in = self.bytes_out = 0
        self.payload_bytes_in = 0
        self.lost = 0
        """Datagrams considered lost."""
        self.resent = 0
        """Messages and parts of messages that were in them."""
        self.timeouts = 0
        """Retransmission timers that expired."""
        self.trace_failed = 0
        """Traces that ended because they could not be written; the driver counts them."""
        self.dropped: dict[str, int] = {}
        """Datagrams, and packets in them, that were dropped, by `DropReason`."""

    def drop(self, reason: DropReason) -> None:
        """Count one drop."""
        self.dropped[reason.value] = self.dropped.get(reason.value, 0) + 1

    def as_dict(self) -> dict[str, Any]:
        """Return all counters by name."""
        counts: dict[str, Any] = {name: getattr(self, name) for name in _COUNTERS}
        counts["dropped"] = dict(self.dropped)
        return counts
