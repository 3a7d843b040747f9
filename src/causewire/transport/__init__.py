"""Causal messages on datagrams, sans-IO: see `transport`."""

from .acceptance import Accepted, UnknownPeer
from .config import TransportConfig
from .events import (
    Address,
    Confirmed,
    Delivered,
    Event,
    MessageBlocked,
    PeerEvent,
    PeerLeft,
    PeerMoved,
    PeerRefused,
    PeerRestarted,
    PeerSilent,
    PeerUp,
    Room,
    Superseded,
)
from .observer import Observer
from .session import Session
from .stats import DropReason, Stats
from .status import PeerStatus, Status
from .transport import Transport
from .watch import Reason

__all__ = [
    "Accepted",
    "Address",
    "Confirmed",
    "Delivered",
    "DropReason",
    "Event",
    "MessageBlocked",
    "Observer",
    "PeerEvent",
    "PeerLeft",
    "PeerMoved",
    "PeerRefused",
    "PeerRestarted",
    "PeerSilent",
    "PeerStatus",
    "PeerUp",
    "Reason",
    "Room",
    "Session",
    "Stats",
    "Status",
    "Superseded",
    "Transport",
    "TransportConfig",
    "UnknownPeer",
]
