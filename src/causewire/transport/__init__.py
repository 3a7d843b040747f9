"""Causal messages on datagrams, sans-IO: see `transport`."""

from . import varint
from .accepted import Accepted
from .config import TransportConfig
from .errors import PeerGone, Superseded, UnknownPeer
from .events import (
    Address,
    Confirmed,
    Delivered,
    Event,
    Handled,
    MessageBlocked,
    MessageWithdrawn,
    NameInUse,
    NodeCutOff,
    NodeRejoined,
    NodeRenumbered,
    NodeSuperseded,
    NodeUnread,
    PeerEvent,
    PeerForgotten,
    PeerLeft,
    PeerMoved,
    PeerRefused,
    PeerRestarted,
    PeerSilent,
    PeerUp,
    Room,
    TraceFailed,
    VerificationFailed,
)
from .names import PeerName, message_id
from .observer import Observer
from .policy import GiveUpAfter
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
    "GiveUpAfter",
    "Handled",
    "MessageBlocked",
    "MessageWithdrawn",
    "NameInUse",
    "NodeCutOff",
    "NodeRejoined",
    "NodeRenumbered",
    "NodeSuperseded",
    "NodeUnread",
    "Observer",
    "PeerEvent",
    "PeerForgotten",
    "PeerGone",
    "PeerLeft",
    "PeerMoved",
    "PeerName",
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
    "TraceFailed",
    "Transport",
    "TransportConfig",
    "UnknownPeer",
    "VerificationFailed",
    "message_id",
    "varint",
]
