"""Causal messaging over UDP with asyncio.

async with causewire.Node("alice", listen="127.0.0.1:9001", peers={...}) as alice:
    receipt = await alice.send("bob", b"hello")
    async for message in alice:
        print(message.source, message.payload)
"""

from __future__ import annotations

from ..transport import (
    MessageBlocked,
    NameInUse,
    NodeCutOff,
    NodeRejoined,
    NodeRenumbered,
    NodeSuperseded,
    NodeUnread,
    PeerEvent,
    PeerForgotten,
    PeerGone,
    PeerLeft,
    PeerMoved,
    PeerRefused,
    PeerRestarted,
    PeerSilent,
    PeerUp,
    Reason,
    Superseded,
    TraceFailed,
    TransportConfig,
    UnknownPeer,
    VerificationFailed,
    message_id,
)
from .base import Message
from .claim import Claim
from .held import Held
from .node import Node, Receipt
from .receipt import (
    Closed,
    DeliveryFailed,
    Full,
    MessageCancelled,
    MessageExpired,
    NodeError,
)
from .running import run

Config = TransportConfig
Event = PeerEvent

__all__ = [
    "Claim",
    "Closed",
    "Config",
    "DeliveryFailed",
    "Event",
    "Full",
    "Held",
    "Message",
    "MessageBlocked",
    "MessageCancelled",
    "MessageExpired",
    "NameInUse",
    "Node",
    "NodeCutOff",
    "NodeError",
    "NodeRejoined",
    "NodeRenumbered",
    "NodeSuperseded",
    "NodeUnread",
    "PeerForgotten",
    "PeerGone",
    "PeerLeft",
    "PeerMoved",
    "PeerRefused",
    "PeerRestarted",
    "PeerSilent",
    "PeerUp",
    "Reason",
    "Receipt",
    "Superseded",
    "TraceFailed",
    "TransportConfig",
    "UnknownPeer",
    "VerificationFailed",
    "message_id",
    "run",
]
