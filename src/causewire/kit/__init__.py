"""What applications are made of, on top of a node: requests and groups.

async with Node("alice", ordered_events=True) as node, Kit(node, codec="json") as kit:
    answer = await kit.request("bob", {"add": [1, 2]}, timeout=5)
"""

from __future__ import annotations

from .errors import KitError, PeerLost, RequestFailed
from .kit import Kit
from .requests import Request

__all__ = ["Kit", "KitError", "PeerLost", "Request", "RequestFailed"]
