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


COLLECT_AFTER = 50_000
"""Objects more than before that make Python look for cycles among them, under `run`."""


def run(main: Coroutine[Any, Any, T]) -> T:
    """`asyncio.run` for a process that moves many messages.

    On uvloop, where it is installed; and, in the main thread, with a garbage collector
    that looks less often: messages are in no cycle, and come and go by the thousand,
    so that at the 700 objects of Python's default it would look at all that are under
    way again and again, and never find anything.
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
