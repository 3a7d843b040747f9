"""Causal messaging over UDP with asyncio.

async with causewire.Node("alice", listen="127.0.0.1:9001", peers={...}) as alice:
    receipt = await alice.send("bob", b"hello")
    async for message in alice:
        print(message.source, message.payload)
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

from ..transport import (
    Config,
    Event,
    MessageBlocked,
    PeerLeft,
    PeerMoved,
    PeerRefused,
    PeerRestarted,
    PeerSilent,
    PeerUp,
    Reason,
    Superseded,
)
from .node import Message, Node
from .receipt import Closed, DeliveryFailed, Full, NodeError, Receipt

__all__ = [
    "Closed",
    "Config",
    "DeliveryFailed",
    "Event",
    "Full",
    "Message",
    "MessageBlocked",
    "Node",
    "NodeError",
    "PeerLeft",
    "PeerMoved",
    "PeerRefused",
    "PeerRestarted",
    "PeerSilent",
    "PeerUp",
    "Reason",
    "Receipt",
    "Superseded",
    "run",
]

T = TypeVar("T")


def run(main: Coroutine[Any, Any, T]) -> T:
    """`asyncio.run`, on uvloop where it is installed."""
    try:
        import uvloop
    except ImportError:
        return asyncio.run(main)
    return uvloop.run(main)
