"""Causal messaging over UDP with asyncio.

async with causewire.Node("alice", listen="127.0.0.1:9001", peers={...}) as alice:
    receipt = await alice.send("bob", b"hello")
    async for message in alice:
        print(message.source, message.payload)
"""

from __future__ import annotations

import asyncio
import gc
import threading
from collections.abc import Coroutine
from typing import Any, TypeVar

from ..transport import (
    MessageBlocked,
    PeerEvent,
    PeerLeft,
    PeerMoved,
    PeerRefused,
    PeerRestarted,
    PeerSilent,
    PeerUp,
    Reason,
    Superseded,
    TransportConfig,
    UnknownPeer,
)
from .base import Message
from .node import Node, Receipt
from .receipt import Closed, DeliveryFailed, Full, NodeError

Config = TransportConfig
Event = PeerEvent

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
    "TransportConfig",
    "UnknownPeer",
    "run",
]

T = TypeVar("T")


COLLECT_AFTER = 50_000
"""How many more objects make Python look for reference cycles, under `run`."""


def run(main: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine like `asyncio.run`, in a process that moves many messages.

    It uses uvloop if that is installed. In the main thread, it also makes the garbage
    collector run less often: messages are in no reference cycle and come and go by the
    thousand, so with Python's default of 700 objects it would examine all messages in
    flight again and again without finding anything.

    Args:
        main: The coroutine.

    Returns:
        The result of the coroutine.
    """
    often, *rest = gc.get_threshold()
    if often and threading.current_thread() is threading.main_thread():
        gc.set_threshold(max(often, COLLECT_AFTER), *rest)
        try:
            return _run(main)
        finally:
            gc.set_threshold(often, *rest)
    return _run(main)


def _run(main: Coroutine[Any, Any, T]) -> T:
    try:
        import uvloop
    except ImportError:
        return asyncio.run(main)
    return uvloop.run(main)
