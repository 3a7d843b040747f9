"""What comes out of the iteration over a group."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from .entries import Member
from .frames import Headers, HeaderValue

if TYPE_CHECKING:
    from .group import Group

__all__ = ["GroupMessage", "MessageId", "Undecodable"]


class MessageId(NamedTuple):
    """What identifies a message of a group for ever: its author, and the number there."""

    author: Member
    number: int


class Undecodable(NamedTuple):
    """A message to all members that the codec of this process cannot decode.

    Attributes:
        member: Who has sent it.
        id: What identifies the message.
        data: The payload as it arrived.
        reason: What the codec says.
    """

    member: Member
    id: MessageId
    data: bytes
    reason: str


class GroupMessage(NamedTuple):
    """A message to all members of a group.

    Attributes:
        group: The group.
        id: What identifies the message.
        payload: The message itself, decoded.
        headers: What was sent along.
        members: Who was a member when the message was delivered here.
    """

    group: Group
    id: MessageId
    payload: Any
    headers: dict[str, HeaderValue]
    members: tuple[Member, ...]

    @property
    def source(self) -> str:
        """The name of the process that sent it."""
        return self.id.author.name

    async def reply(self, payload: Any, headers: Headers | None = None) -> MessageId:
        """Send an answer to all members, and return its id; see `Group.send`.

        Raises:
            GroupClosed: This process is not a member any more.
        """
        return await self.group.send(payload, headers)

    def __repr__(self) -> str:
        return f"<GroupMessage {self.id.number} of {self.source}: {self.payload!r}>"
