"""`Presence`: a place in a group that survives being given up."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any, NamedTuple, TypeAlias

from ..node import Closed
from .entries import Joined, Left, Member, SecondGroup
from .errors import GroupClosed
from .frames import Headers
from .group import Group
from .messages import GroupMessage, MessageId, Undecodable

__all__ = ["Enter", "Entered", "Interrupted", "Presence", "PresenceItem"]


class Entered(NamedTuple):
    """This process has become a member, for the first time or again.

    If others were members, `restore` was called before. Messages that were sent while this
    process was out are in the restored state, or missing if there is no `restore`. If this
    process has said how far its state goes (`since`), they may follow as messages instead.

    Attributes:
        group: The new membership.
        began: Whether this process has begun the group, with its own state.
    """

    group: Group
    began: bool


class Interrupted(NamedTuple):
    """This process is not a member any more; it tries to become one again.

    Messages that it has sent and that were not stable may have reached nobody.

    Attributes:
        reason: What happened, in words.
    """

    reason: str


Enter = Callable[[tuple[str, ...]], Awaitable[Entered]]
"""Becomes a member; takes the names of those who were members when this process was one."""


PresenceItem: TypeAlias = (
    GroupMessage | Undecodable | Joined | Left | SecondGroup | Entered | Interrupted
)
"""What happens in a group, and to the place of this process in it."""


class Presence:
    """A place in a group, which is taken again when it is lost: what `Kit.stay` returns.

    `async for item in presence` makes this process a member, and yields `Entered`, what `Group`
    yields, `Interrupted` when the others have given this process up, `Entered` when it is back,
    and so on. It ends when this process leaves or its node is closed.

    Args:
        name: The name of the group.
        enter: Becomes a member.
        answers: Returns what those said who were asked, in words.
    """

    def __init__(self, name: str, enter: Enter, answers: Callable[[], str]) -> None:
        self.name = name
        self._enter = enter
        self._answers = answers
        self._group: Group | None = None
        self._last: Group | None = None
        self._known: tuple[str, ...] = ()
        self._left = False
        self._entering: asyncio.Timeout | None = None

    @property
    def group(self) -> Group | None:
        """The group, or None while this process is not a member."""
        return None if self._group is None or self._group.over is not None else self._group

    @property
    def members(self) -> tuple[Member, ...]:
        """The members as of what was delivered here; none while this process is out."""
        return () if self.group is None else self.group.members

    @property
    def position(self) -> bytes | None:
        """How far the application has come, also while it is out; see `Group.position`."""
        return None if self._last is None else self._last.position

    async def send(self, payload: Any, headers: Headers | None = None) -> MessageId:
        """Send a message to all members; see `Group.send`.

        Raises:
            GroupClosed: This process is not a member at the moment.
        """
        if self._group is None:
            again = "again" if self._last is not None else "yet"
            raise GroupClosed(f"not in {self.name} {again}", self._answers())
        try:
            return await self._group.send(payload, headers)
        except GroupClosed as closed:
            raise GroupClosed(closed.reason) from None

    async def __aiter__(
        self,
    ) -> AsyncIterator[PresenceItem]:
        """Yield what happens in the group, until this process leaves or closes.

        Raises:
            KitError: This process is in the group already, by another call.
            StoreFailed: The store of the node could not be written.
            Superseded: The node was given up by others, and does not start over.
        """
        while not self._left:
            if self._group is None:
                try:
                    async with asyncio.timeout(None) as self._entering:
                        entered = await self._enter(self._known)
                except Closed:
                    return
                except TimeoutError:
                    if self._left:
                        return
                    raise
                finally:
                    self._entering = None
                self._group = self._last = entered.group
                yield entered
            try:
                async for item in self._group:
                    yield item
                return
            except GroupClosed as closed:
                self._known = tuple([member.name for member in self._group.members])
                self._group = None
                interrupted = Interrupted(closed.reason)
            yield interrupted

    async def leave(self, timeout: float = 5.0) -> bool:
        """Leave the group for good, and wait until all others have delivered that.

        Args:
            timeout: How many seconds to wait at most.

        Returns:
            Whether all others have delivered everything that was sent here; False if this
            process is out at the moment.
        """
        self._left = True
        if self._entering is not None:
            self._entering.reschedule(asyncio.get_running_loop().time())
        return self.group is not None and await self.group.leave(timeout)
