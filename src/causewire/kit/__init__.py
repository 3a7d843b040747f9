"""What applications are made of, on top of a node: requests and groups.

async with Node("alice", ordered_events=True) as node, Kit(node, codec="json") as kit:
    answer = await kit.request("bob", {"add": [1, 2]}, timeout=5)
    room = await kit.join("room", seeds=["bob"])
    await room.send("hello")
    async for item in room:
        ...
"""

from __future__ import annotations

from .entries import Joined, Left, Member, SecondGroup
from .errors import GroupClosed, JoinFailed, KitError, PeerLost, RequestFailed
from .group import Group
from .kit import Kit
from .messages import GroupMessage, MessageId, Undecodable
from .presence import Entered, Interrupted, Presence
from .requests import Request
from .seeds import SeedFile

__all__ = [
    "Entered",
    "Group",
    "GroupClosed",
    "GroupMessage",
    "Interrupted",
    "JoinFailed",
    "Joined",
    "Kit",
    "KitError",
    "Left",
    "Member",
    "MessageId",
    "PeerLost",
    "Presence",
    "Request",
    "RequestFailed",
    "SecondGroup",
    "SeedFile",
    "Undecodable",
]
