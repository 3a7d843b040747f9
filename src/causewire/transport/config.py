"""The settings of a transport. Times are in seconds, sizes in bytes."""

from __future__ import annotations

from dataclasses import dataclass, fields
from ipaddress import ip_address

from .heads import LEAST_DATAGRAM

__all__ = ["TransportConfig"]


@dataclass(frozen=True, slots=True, kw_only=True)
class TransportConfig:
    """All settings of a transport; the defaults suit local and wide-area networks."""

    # -- room: messages, and bytes of payload
    peer_messages: int = 8192
    """Messages accepted for one peer and not yet delivered there."""
    peer_bytes: int = 4 << 20
    total_messages: int = 262144
    """The same for all peers together."""
    total_bytes: int = 64 << 20
    queue_messages: int = 8192
    """Messages delivered here and not yet taken by the application."""
    queue_bytes: int = 16 << 20
    early_bytes: int = 64 << 20
    """Arrived from all peers and waiting for a predecessor or for room in the queue; each
    message is charged its payload and a fixed overhead."""
    message: int = 16 << 20
    """The longest payload."""
    peers: int = 4096
    """The most peers that are known at a time."""

    # -- greetings: how many are looked at, per second
    greetings: int = 1000
    """From all addresses together."""
    greetings_per_address: int = 40
    """From one address."""

    # -- datagrams
    datagram: int = 1232
    """How long datagrams to other machines are at first. If longer ones than 1,232 bytes, which
    every IPv6 path carries, vanish, a session goes back to that. It never goes below: on a path
    that carries less (IPv4 with an MTU below 1,260), this has to be what the path carries."""
    longest_datagram: int = 8972
    """How long datagrams to other machines may become if the path is found to carry them; this is
    an Ethernet with jumbo frames. If it is not above `datagram`, nothing longer is searched for."""
    local_datagram: int = 32768
    """The longest datagram to a loopback address."""

    congestion: str = "cubic"
    """How the number of datagrams in flight adapts to losses: `cubic`, or `newreno`."""

    # -- time
    first_timeout: float = 0.25
    """Retransmission timeout before the first measurement (RFC 6298 says one second)."""
    least_timeout: float = 0.02
    longest_timeout: float = 2.0
    ack_delay: float = 0.01
    """How long the arrival of a datagram without messages may remain unacknowledged while
    nothing else is sent to its sender. All nodes of a system should have the same value:
    a sender waits that much longer before it repeats such a datagram. A permit that nobody
    waits for leaves alone after the same time."""
    greet_again: float = 0.1
    """First pause between greetings that are not answered; it doubles."""
    greet_at_most: float = 2.0
    keepalive: float | None = None
    """A peer from which nothing arrived for that long is sent a ping. By default 0.4
    of `silent_after`, or half a second for each peer beyond 20 if that is longer: a process
    with very many peers sends two pings a second, and one with 22 sends less than 20."""
    silent_after: float = 3.0
    """A peer that has not answered for that long is reported as silent."""
    blocked_after: float = 5.0
    """Messages held back for that long are reported."""
    linger: float = 60.0
    """How long a peer that is gone is remembered at least. Without a key, this has to be longer
    than any datagram may be under way: a late greeting of a process that has left, and late
    messages behind it, are taken for those of another one if nobody remembers it. With a key they
    cannot be, as both sides agree on new keys."""
    tick: float = 0.05
    """How often a protocol that has to send while idle is given the opportunity."""

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if isinstance(value, str):
                if value not in ("cubic", "newreno"):
                    raise ValueError(f"{field.name} must be 'cubic' or 'newreno', not {value!r}")
            elif value is not None and not value > 0:
                raise ValueError(f"{field.name} must be above 0, not {value!r}")
        for name in ("datagram", "longest_datagram", "local_datagram"):
            if not LEAST_DATAGRAM <= getattr(self, name) <= 65507:
                raise ValueError(f"{name} must be from {LEAST_DATAGRAM} to 65507")
        if self.least_timeout > self.longest_timeout:
            raise ValueError("least_timeout is above longest_timeout")

    def datagrams_to(self, host: str) -> tuple[int, int]:
        """Return how long datagrams to an address are at first, and may become."""
        try:
            local = ip_address(host).is_loopback
        except ValueError:
            local = False
        if local:
            return self.local_datagram, self.local_datagram
        return self.datagram, max(self.datagram, self.longest_datagram)

    @property
    def accepted_datagram(self) -> int:
        """The longest datagram that peers may send to this process."""
        return max(self.datagram, self.longest_datagram, self.local_datagram)
