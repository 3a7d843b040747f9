"""`Group`: a membership of this process, on asyncio.

The machine decides everything. This module moves frames between it and the node, keeps what the
application has not taken yet, and waits.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import AsyncIterator, Callable, Mapping
from secrets import token_bytes
from typing import Any

from ..node import Claim
from .codecs import Codec
from .entries import (
    Ask,
    Frame,
    Have,
    Joined,
    Left,
    Member,
    Posted,
    Refused,
    SecondGroup,
    Sponsor,
    Welcome,
)
from .errors import GroupClosed
from .frames import Headers, Reader, put_headers
from .machine import Machine
from .messages import GroupMessage, MessageId, Undecodable
from .outbox import Outbox
from .sponsoring import Sponsoring, written
from .tasks import Tasks
from .tracing import Tracing
from .transfer import Snapshot
from .wire import put_position

__all__ = ["Group"]

_log = logging.getLogger("causewire.kit")

BACKLOG = 256
"""Frames that may wait for room before `send` waits."""


class Group:
    """A group of processes that this process is a member of: what `Kit.join` returns.

    `async for item in group` yields messages (`GroupMessage`), the own ones included, and
    changes of the membership (`Joined`, `Left`) in causal order, until this process leaves or
    its node is closed, and `SecondGroup` if there is another group of the same name. It raises
    `GroupClosed` when the others have given this process up.
    """

    def __init__(
        self,
        name: str,
        claim: Claim,
        codec: Codec,
        machine: Machine,
        snapshot: Snapshot | None,
        largest_state: int,
        tasks: Tasks,
        tracing: Tracing,
        taken: asyncio.Event,
    ) -> None:
        self.name = name
        self._claim = claim
        self._node = node = claim.node
        self._codec = codec
        self._machine = machine
        self._outbox = Outbox(name, node, tracing, self._wake, self._lost)
        self._sponsoring = Sponsoring(
            name, node, codec, snapshot, largest_state, tasks, self._outbox.post, self._lets_in
        )
        self._tracing = tracing
        self._contexts: dict[MessageId, Any] = {}
        """The trace context of each message that waits for the application."""
        self._queue: deque[GroupMessage | Undecodable | Joined | Left | SecondGroup | Sponsor] = (
            deque()
        )
        self._changed: list[asyncio.Future[None]] = []
        self._callbacks: list[Callable[[Mapping[Member, int]], object]] = []
        self._stable: dict[Member, int] = {}
        self._ended: str | None = None
        self._left = False
        self.waiting = 0
        """How many calls of this process wait for something that others send."""
        self.idle = 0
        """How many of these are iterations for which there is nothing to yield."""
        self.taken = taken
        """Set when the application has taken something."""
        self.generation = 0
        """How many times the group was begun, up to this one."""

    # -- what an application uses -----------------------------------------------

    @property
    def me(self) -> Member:
        """This process as a member."""
        return self._machine.me

    def __repr__(self) -> str:
        return f"<Group {self.name!r}, members {', '.join([one.name for one in self.members])}>"

    @property
    def members(self) -> tuple[Member, ...]:
        """The members as of what has arrived here in order; the iteration may be behind."""
        return self._machine.members

    async def send(self, payload: Any, headers: Headers | None = None) -> MessageId:
        """Send a message to all members, this one included; waits only while there is no room.

        If the caller is cancelled while it waits, the message is not sent. On a node with a
        store, this returns when the message is in the store.

        Returns:
            The id of the message.

        Raises:
            GroupClosed: This process is not a member any more.
            TypeError: A header has a type that cannot travel.
            StoreFailed: The store of the node could not be written.
            ValueError: The message or its headers are too long. Nothing was sent.
        """
        self._check()
        encoded = self._codec.encode(payload)
        body = put_headers(headers) + encoded
        if len(body) > self._node.longest_message:
            raise ValueError(f"a message of {len(body)} bytes is too long for {self._node.name}")
        while len(self._outbox) > BACKLOG:
            await self._change()
            self._check()
        with self._tracing.sending(self.name, headers) as traced:
            sent = MessageId(self.me, self._machine.post(put_headers(traced) + encoded))
            self.pump()
        if self._claim.durable:
            await self._stored()
        return sent

    async def _stored(self) -> None:
        """Wait until the node has everything that was sent so far in its store."""
        outbox, last = self._outbox, self._outbox.kept
        while outbox.gone_on < last:
            if self._ended is not None:
                raise self._closed()
            await self._change()
        if outbox.receipt is not None:
            await self._claim.stored(outbox.receipt)

    async def __aiter__(
        self,
    ) -> AsyncIterator[GroupMessage | Undecodable | Joined | Left | SecondGroup]:
        """Yield messages and changes of the membership, until this process leaves or closes.

        Raises:
            GroupClosed: The other members have given this process up.
        """
        while True:
            while self._queue:
                item = self._queue.popleft()
                self.taken.set()
                if isinstance(item, Sponsor):
                    if self._ended is None:  # nobody joins by way of a process that is out
                        await self._sponsoring.send_state(item.welcome, self.generation)
                elif isinstance(item, GroupMessage) and item.id in self._contexts:
                    with self._tracing.handling(self.name, self._contexts.pop(item.id)):
                        yield item
                else:
                    yield item
            if self._ended in ("left", "closed"):
                return
            if self._ended is not None:
                raise self._closed()
            self.idle += 1
            try:
                await self._change()
            finally:
                self.idle -= 1

    async def leave(self, timeout: float = 5.0) -> bool:
        """Leave the group, and wait until all others have delivered that.

        Args:
            timeout: How many seconds to wait at most.

        Returns:
            Whether all others have delivered everything that was sent here, as far as is known:
            False after the timeout, and if the others do not wait for this process any more.
        """
        if self._ended is None and not self._left:
            self._left = True
            self._machine.leave()
            self.pump()
        try:
            async with asyncio.timeout(timeout):
                while self._ended is None:
                    await self._change()
        except TimeoutError:
            self.end("left")
        return self._machine.over == "left"

    @property
    def stable(self) -> Mapping[Member, int]:
        """The causal cut that everybody has delivered: for each author, up to which number."""
        return self._stable

    @property
    def position(self) -> bytes:
        """How far the application has come: everything that it has taken from the iteration.

        If it keeps these bytes together with its state, it can come back with both: see `since`
        of `Kit.join`. They are to be read after an item was processed and before the next one.
        """
        kinds = GroupMessage | Undecodable
        waiting = [item.id for item in self._queue if isinstance(item, kinds)]
        return put_position(self._machine.position(waiting))

    @property
    def kept(self) -> int:
        """How many messages and changes are kept here because a member may lack them."""
        return self._machine.kept

    async def until_stable(self, message: GroupMessage | MessageId) -> None:
        """Wait until all members have delivered a message.

        Raises:
            GroupClosed: This process is not a member any more.
        """
        author, number = message.id if isinstance(message, GroupMessage) else message
        while self._stable.get(author, 0) < number:
            self._check()
            await self._change()

    def on_stable(self, callback: Callable[[Mapping[Member, int]], object]) -> None:
        """Have a function called with the stable cut each time that it has grown."""
        self._callbacks.append(callback)

    def _check(self) -> None:
        if self._ended is not None or self._left:
            raise self._closed()

    def _closed(self) -> GroupClosed:
        """Return the error that says why this process is not a member any more."""
        reason, advice = self._ended or "left", ""
        if reason == "evicted":
            reason, advice = "the others gave it up", "join again, or use stay"
        return GroupClosed(f"{self._node.name} is not in {self.name}: {reason}", advice)

    async def _change(self) -> None:
        """Wait until something has changed."""
        future = asyncio.get_running_loop().create_future()
        self._changed.append(future)
        self.waiting += 1
        self.taken.set()
        try:
            await future
        finally:
            self.waiting -= 1

    # -- for the kit --------------------------------------------------------------

    def found(self, address: str, generation: int) -> None:
        """Begin the group, with this process as its only member."""
        self.generation = generation
        self._machine.found(address, token_bytes(8))
        self.pump()

    @property
    def identity(self) -> bytes:
        """What distinguishes the group from others of the same name."""
        return self._machine.identity

    @property
    def former(self) -> set[str]:
        """The names of processes that were members, as far as is known."""
        return {member.name for member in self._machine.past}

    @property
    def joined(self) -> bool:
        """Whether the state of the group is here."""
        return self._machine.joined

    @property
    def delivered(self) -> int:
        """How many entries of the log were delivered, those before the cut included."""
        return sum(self._machine.delivered.values())

    @property
    def backlog(self) -> int:
        """How many items wait for the application."""
        return len(self._queue)

    @property
    def first(self) -> Any:
        """What the application has to take next, or None."""
        return self._queue[0] if self._queue else None

    @property
    def over(self) -> str | None:
        """Why this membership has ended, or None."""
        return self._ended

    def received(self, frame: Frame) -> None:
        """Process a frame of another process."""
        machine = self._machine
        if isinstance(frame, Ask):
            if machine.joined and not self._left:
                seen = self._node.address_of(frame.member.name)
                address = frame.address or ("" if seen is None else written(seen))
                machine.ask(frame.member, address, frame.left, frame.since)
            else:
                self._outbox.post((frame.member.name,), Refused(frame.member, False))
        else:
            joined = machine.joined
            machine.received(frame)
            if isinstance(frame, Have):
                self._sponsoring.entered(frame.sender)
            if isinstance(frame, Welcome) and machine.joined:
                self.generation = self.generation if joined else frame.generation
                self._meet(frame)
        self.pump()

    def notice(self, second: SecondGroup) -> None:
        """Tell the application of another group of the same name."""
        self._queue.append(second)
        self._wake()

    def doubt(self, other: Member) -> None:
        """Find out whether this process and another one, who do not agree, are in one branch."""
        self._machine.doubt(other)
        self.pump()

    def gone(self, name: str, incarnation: int) -> None:
        """Act on the event that an incarnation of a process is gone."""
        self._machine.gone(name, incarnation)
        self._sponsoring.gone(name, incarnation)
        self.pump()

    def met(self, name: str) -> None:
        """Act on the event that a process is not gone after all."""
        self._machine.met(name)

    def tick(self) -> None:
        """Report what was delivered, and notice what has become stable."""
        machine = self._machine
        machine.tick()
        self.pump()
        if machine.stable != self._stable:
            self._stable = dict(machine.stable)
            for callback in self._callbacks:
                callback(self._stable)
            self._wake()

    def end(self, reason: str) -> None:
        """End this membership, as far as this process is concerned.

        One that leaves has left, even if the others have given it up meanwhile.
        """
        if self._ended is None:
            self._ended = "left" if self._left else reason
            self._outbox.end()
            self._wake()
            self.taken.set()

    def pump(self) -> None:
        """Take what the machine has put out."""
        machine = self._machine
        items, machine.items = machine.items, []
        for item in items:
            if isinstance(item, Posted):
                reader = Reader(item.payload)
                headers = reader.headers()
                number = MessageId(item.author, item.number)
                data = reader.rest()
                try:
                    payload = self._codec.decode(data)
                except Exception as error:
                    reason = f"{type(error).__name__}: {error}"[:500]
                    _log.error(
                        "%s cannot decode message %d of %s to %s: %s",
                        self._node.name,
                        item.number,
                        item.author,
                        self.name,
                        reason,
                    )
                    self._queue.append(Undecodable(item.author, number, data, reason))
                    continue
                self._queue.append(GroupMessage(self, number, payload, headers, item.members))
                context = None
                if item.author != machine.me:
                    context = self._tracing.delivered(self.name, item.author.name, headers)
                if context is not None:
                    self._contexts[number] = context
            elif isinstance(item, Sponsor):
                if self._sponsoring.snapshot is None or item.welcome.missed is not None:
                    self._sponsoring.welcome(item.welcome, self.generation, None)
                else:
                    self._queue.append(item)
            else:
                self._queue.append(item)
                if isinstance(item, Joined) and item.member in machine.view:
                    self._outbox.introduce(item.member.name, machine.view[item.member][0])
        out, machine.out = machine.out, []
        for to, frame in out:
            self._outbox.post(tuple([member.name for member in to]), frame)
        if machine.over is not None:
            self.end(machine.over)
        elif items:
            self._wake()

    def _wake(self) -> None:
        waiting, self._changed = self._changed, []
        for future in waiting:
            if not future.done():
                future.set_result(None)

    def _lets_in(self, member: Member) -> bool:
        """Return whether a process is a member here, and this one too."""
        machine = self._machine
        return self._ended is None and member in machine.view and member not in machine.dead

    async def work(self) -> None:
        """Send what could not be sent at once."""
        await self._outbox.work()

    def _lost(self, name: str) -> None:
        self._machine.gone(name, 0)
        self.pump()

    def _meet(self, welcome: Welcome) -> None:
        for member, (address, _, _) in welcome.view.items():
            self._outbox.introduce(member.name, address)
