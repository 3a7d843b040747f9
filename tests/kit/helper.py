"""Nodes with a kit, in virtual time."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from causewire.kit import Kit
from causewire.node import Node
from causewire.testing.virtual import VirtualLoop

PORTS = {name: port for port, name in enumerate(["alice", "bob", "carol", "dave", "erin"], 1)}


def node(loop: VirtualLoop, name: str, incarnation: int = 0, **more: Any) -> Node:
    """A node that knows all others."""
    peers = {n: f"127.0.0.1:{port}" for n, port in PORTS.items() if n != name}
    sock: Any = loop.network.socket(PORTS[name])
    number = (1000 * PORTS[name]) + incarnation
    settings: dict[str, Any] = {"peers": peers, "ordered_events": True, "drain": 1.0} | more
    return Node(name, sock=sock, incarnation=number, **settings)


@asynccontextmanager
async def kit(
    loop: VirtualLoop, name: str, incarnation: int = 0, *, node_: Any = None, **settings: Any
) -> AsyncIterator[Kit]:
    """A kit on a node that knows all others."""
    async with (
        node(loop, name, incarnation, **(node_ or {})) as made,
        Kit(made, **settings) as made_kit,
    ):
        yield made_kit
