"""Causal message delivery: a message is never delivered before one it may depend on.

`Node` is what an application uses to exchange messages over a network; `protocols`
creates the state machines behind it. The other tools live in packages of their own:
`causewire.blocking`, `causewire.sim`, `causewire.trace`, `causewire.check`,
`causewire.verify`, `causewire.pipeline`, `causewire.report`, `causewire.testing`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from . import _source

_source.prefer_sources()  # before any module is imported that may be compiled

from . import protocols  # noqa: E402
from .core import (  # noqa: E402
    CausewireError,
    Delivery,
    Endpoint,
    LocalProtocolError,
    Packet,
    RemoteProtocolError,
)

if TYPE_CHECKING:
    from .node import Node

    __version__: str

__all__ = [
    "CausewireError",
    "Delivery",
    "Endpoint",
    "LocalProtocolError",
    "Node",
    "Packet",
    "RemoteProtocolError",
    "__version__",
    "protocols",
]


def __getattr__(name: str) -> Any:
    """Import on first use what the protocols do not need: asyncio, package metadata."""
    if name == "Node":
        from .node import Node

        return Node
    if name == "__version__":
        from importlib.metadata import version

        return version("causewire")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
