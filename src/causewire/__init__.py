"""Causal message delivery: nothing is delivered before what it may depend on.

`protocols` are the state machines; `Node` is what an application imports to talk
over a network. The rest is in packages of their own: `causewire.sim`,
`causewire.trace`, `causewire.check`, `causewire.testing`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .node import Message, Node, Receipt

__all__ = ["Message", "Node", "Receipt", "protocols"]


def __getattr__(name: str) -> Any:
    """The node is imported when it is asked for: the protocols need no event loop."""
    if name in ("Message", "Node", "Receipt"):
        from . import node

        return getattr(node, name)
    if name == "protocols":
        from importlib import import_module

        return import_module(".protocols", __name__)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
