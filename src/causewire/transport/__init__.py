"""Causal messages on datagrams, sans-IO: see `transport`."""

from .config import Config
from .events import (
    Address,
    Event,
    MessageBlocked,
    PeerLeft,
    PeerMoved,
    PeerRefused,
    PeerRestarted,
    PeerSilent,
    PeerUp,
    Superseded,
)
from .session import Session
from .stats import Stats
from .transport import NATIVE, Observer, Transport
from .watch import Reason

__all__ = [
    "NATIVE",
    "Address",
    "Config",
    "Event",
    "MessageBlocked",
    "Observer",
    "PeerLeft",
    "PeerMoved",
    "PeerRefused",
    "PeerRestarted",
    "PeerSilent",
    "PeerUp",
    "Reason",
    "Session",
    "Stats",
    "Superseded",
    "Transport",
]
