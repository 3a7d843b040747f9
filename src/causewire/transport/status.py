"""What a transport says about itself and its peers, for monitoring."""

from __future__ import annotations

from typing import Any, NamedTuple

from .arrivals import Arrivals
from .events import Address
from .identity import Peer
from .ledger import Ledger
from .peers import Peers
from .stats import Stats

__all__ = ["PeerStatus", "Status", "status_of"]


class PeerStatus(NamedTuple):
    """What is known of one peer."""

    name: str
    address: Address
    incarnation: int
    """The incarnation that the session is with; 0 if none has been reached."""
    up: bool
    """Whether it was reached, and answers."""
    messages: int
    """Messages accepted for it, not withdrawn, and not yet delivered there."""
    held: int
    """Of these, messages that the protocol holds back."""
    round_trip: float
    """Smoothed round-trip time in seconds."""
    wanted: bool = True
    """Whether the driver has named it."""
    met: bool = True
    """Whether there was a session with it, and it neither left nor was given up."""


class Status(NamedTuple):
    """What is known of a transport."""

    counters: dict[str, Any]
    """Counters since the start, by name."""
    peers: dict[str, PeerStatus]
    """Peers by name, in alphabetical order."""
    accepted: int
    """Messages accepted for all peers and not yet delivered there."""
    accepted_bytes: int
    waiting: int
    """Messages that arrived and wait for a predecessor or for room in the queue."""
    waiting_bytes: int


def _peer_status(peer: Peer) -> PeerStatus:
    """Return the status of a peer."""
    session, met = peer.session, peer.lives > 0 and not peer.gone
    if session is None:
        return PeerStatus(peer.name, peer.address, 0, False, 0, 0, 0.0, peer.wanted, met)
    return PeerStatus(
        peer.name,
        session.address,
        session.incarnation,
        session.established and not session.silent,
        session.has_messages - len(session.outbound.withdrawn),
        session.held,
        session.recovery.round_trip.smoothed,
        peer.wanted,
        met,
    )


def status_of(stats: Stats, ledger: Ledger, peers: Peers, arrivals: Arrivals) -> Status:
    """Return the status of a transport with these parts."""
    ledger.call_in_all(peers.live.values())
    counters = stats.as_dict()
    counters["sent"] += ledger.used
    return Status(
        counters,
        {name: _peer_status(peers.known[name]) for name in sorted(peers.known)},
        ledger.messages,
        ledger.bytes,
        sum([session.inbound.messages for session in peers.live.values()]),
        arrivals.waiting_bytes,
    )
