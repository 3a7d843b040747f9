"""How a member gives its state to the processes that it lets in."""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections import deque
from collections.abc import Callable

from ..core.errors import CausewireError
from ..node import Node, Receipt
from .codecs import Codec
from .entries import Frame, Member, Refused, Welcome
from .parts import Lane, cut, part_size
from .tasks import Tasks
from .transfer import Snapshot
from .wire import put_frame

__all__ = ["Sponsoring", "written"]

_log = logging.getLogger("causewire.kit")

WINDOW = 16
"""Parts of a state that may be on their way at a time."""

TRANSFERS = 4
"""States that are sent in parts at a time, for each group."""


class Sponsoring:
    """Sends the state of the application to new members.

    A state that is short is one message. A longer one is sent in parts, in the background, and
    only a few parts at a time are handed to the node. Meanwhile this member goes on as usual,
    and the new one keeps what it gets. If the state cannot be sent, the new member is refused.

    Args:
        group: The name of the group.
        node: The node of this process.
        codec: How the state becomes bytes.
        snapshot: Returns the state, if the application has any.
        largest: How many bytes the state may have.
        tasks: Where to run what is sent in the background.
        post: Sends a frame to processes.
        wanted: Tells whether a member still has to get its state from this process.
    """

    def __init__(
        self,
        group: str,
        node: Node,
        codec: Codec,
        snapshot: Snapshot | None,
        largest: int,
        tasks: Tasks,
        post: Callable[[tuple[str, ...], Frame], None],
        wanted: Callable[[Member], bool],
    ) -> None:
        self.snapshot = snapshot
        self._group = group
        self._node = node
        self._codec = codec
        self._largest = largest
        self._tasks = tasks
        self._post = post
        self._wanted = wanted
        self._size = part_size(node)
        self._transfers: dict[str, tuple[Member, asyncio.Task[None]]] = {}
        """What is being sent, by the name of the process."""

    async def send_state(self, welcome: Welcome, generation: int) -> None:
        """Send the state of the application, which is at the cut now, to a new member."""
        member = welcome.member
        if len(self._transfers) >= TRANSFERS and member.name not in self._transfers:
            others = ", ".join(sorted(self._transfers))
            self._refuse(member, f"it is still sending its state to {others}")
            return
        assert self.snapshot is not None
        try:
            state = self.snapshot()
            if inspect.isawaitable(state):
                state = await state
            data = self._codec.encode(state)
            size = len(data)
            if size <= self._largest:
                self.welcome(welcome, generation, data)
                return
        except Exception as error:
            reason = f"its snapshot failed: {type(error).__name__}: {error}"[:500]
            cause: Exception | None = error
        else:
            reason = f"its state has {size} bytes, {self._largest} are allowed"
            cause = None
        _log.error(
            "%s cannot let %s into %s: %s",
            self._node.name,
            member,
            self._group,
            reason,
            exc_info=cause,
        )
        self._refuse(member, reason)

    def _refuse(self, member: Member, reason: str) -> None:
        self._post((member.name,), Refused(member, False, reason))

    def welcome(self, welcome: Welcome, generation: int, state: bytes | None) -> None:
        """Send a new member what it begins with."""
        member = welcome.member
        if not self._wanted(member):
            return
        view = {}
        for one, (address, author, number) in welcome.view.items():
            seen = None if address else self._node.address_of(one.name)
            view[one] = (address if seen is None else written(seen)), author, number
        welcome = welcome._replace(view=view, state=state, generation=generation)
        data = put_frame(welcome)
        self._stop(member.name)
        if len(data) <= self._size // 2:  # so it is short enough with its head
            self._post((member.name,), welcome)
            return
        task = self._tasks.spawn(self._transfer(member, data))
        self._transfers[member.name] = member, task
        task.add_done_callback(lambda task: self._ended(member.name, task))

    async def _transfer(self, member: Member, data: bytes) -> None:
        receipts: deque[Receipt] = deque()
        try:
            for part in cut(self._group, Lane.STATE, data, self._size):
                if len(receipts) == WINDOW:
                    await receipts.popleft().delivered()
                if not self._wanted(member):
                    return
                receipts.append(await self._node.send(member.name, part, wait_for_peer=True))
        except CausewireError as error:  # one of the two is gone
            _log.debug("%s stops sending its state to %s: %s", self._node.name, member, error)

    def _ended(self, name: str, task: asyncio.Task[None]) -> None:
        if name in self._transfers and self._transfers[name][1] is task:
            del self._transfers[name]

    def _stop(self, name: str) -> None:
        if name in self._transfers:
            self._transfers.pop(name)[1].cancel()

    def entered(self, member: Member) -> None:
        """Stop what is under way: the member has got the state, from this process or another."""
        if member.name in self._transfers and self._transfers[member.name][0] <= member:
            self._stop(member.name)

    def gone(self, name: str, incarnation: int) -> None:
        """Stop what is under way, as an incarnation of a process is gone."""
        if name in self._transfers and self._transfers[name][0].incarnation <= incarnation:
            self._stop(name)


def written(address: tuple[str, int]) -> str:
    """Return an address as `host:port`."""
    host, port = address
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
