"""The numbers that a transport is run with. Times are in seconds, sizes in bytes."""

from __future__ import annotations

from dataclasses import dataclass, fields

__all__ = ["Config"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """All settings of a transport; the defaults suit local and wide-area networks."""

    # -- room: what is buffered and under way, in messages and in bytes of payload
    peer_messages: int = 8192
    """Accepted for one peer, and not yet delivered there."""
    peer_bytes: int = 4 << 20
    total_messages: int = 262144
    """The same for all peers together."""
    total_bytes: int = 64 << 20
    queue_messages: int = 8192
    """Delivered, and not yet taken by the application."""
    queue_bytes: int = 16 << 20
    early_bytes: int = 64 << 20
    """Arrived from all peers, and waiting for a predecessor or for room in the queue."""
    message: int = 16 << 20
    """The longest payload."""
    peers: int = 4096
    """Processes that this one knows, or is willing to get to know."""

    # -- datagrams
    datagram: int = 1232
    """The longest datagram to the network: what IPv6 carries everywhere."""
    local_datagram: int = 32768
    """The longest datagram to this machine itself."""

    # -- time
    first_timeout: float = 0.25
    """Before anything was measured (RFC 6298 says one second)."""
    least_timeout: float = 0.02
    longest_timeout: float = 2.0
    greet_again: float = 0.1
    """First pause between greetings that go unanswered; it doubles."""
    greet_at_most: float = 2.0
    keepalive: float = 15.0
    """An established peer from which nothing came for that long is asked for a sign."""
    silent_after: float = 3.0
    """A peer that has owed an answer for that long is reported as silent."""
    blocked_after: float = 5.0
    """A message held back for that long is reported."""
    tick: float = 0.05
    """How often a protocol that must speak up when idle is asked to."""

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if not value > 0:
                raise ValueError(f"{field.name} must be above 0, not {value!r}")
        for name in ("datagram", "local_datagram"):
            if not 256 <= getattr(self, name) <= 65507:
                raise ValueError(f"{name} must be from 256 to 65507")
        if self.least_timeout > self.longest_timeout:
            raise ValueError("least_timeout is above longest_timeout")
