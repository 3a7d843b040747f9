"""`Kit`: what applications are made of, on top of a node.

The kit takes all messages of its node and passes each on: requests and answers to `Requests`,
messages of a group to that group, and what the application sent with `Node.send` itself to
whoever iterates over the kit.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import AsyncIterator, Callable
from types import TracebackType
from typing import Any, ClassVar, Self
from weakref import WeakSet

from ..core.endpoint import Delivery
from ..node import (
    Claim,
    Closed,
    Message,
    Node,
    NodeCutOff,
    NodeRejoined,
    NodeSuperseded,
    PeerForgotten,
    PeerLeft,
    PeerRestarted,
    PeerUp,
)
from ..node import Superseded as NodeGivenUp
from ..store import StoreFailed
from ..transport import PeerName, message_id
from .codecs import CodecSpec, codec_of
from .errors import KitError
from .frames import MARK, Headers, Kind, MalformedError, Reader
from .group import Group
from .groups import Groups
from .history import HISTORY
from .presence import Entered, Presence
from .requests import Handler, Requests
from .seeds import Seeds
from .tasks import Tasks
from .tracing import tracing_of
from .transfer import Restore, Since, Snapshot, Transfer

__all__ = ["Kit"]

_log = logging.getLogger("causewire.kit")

_AT = len(MARK)

LARGEST_STATE = 256 << 20
"""How many bytes the state of a group may have by default."""

LEAVE_WITHIN = 2.0
"""Seconds that leaving all groups may take when the kit or its node is closed."""


class Kit:
    """Requests and groups for a node.

        async with Node("alice", ordered_events=True) as node, Kit(node, codec="json") as kit:
            answer = await kit.request("bob", {"add": [1, 2]}, timeout=5)

    The kit reads all messages of the node. What the application itself sent with `Node.send`
    comes out of `async for message in kit`.

    Args:
        node: A node that was made with `ordered_events=True`.
        codec: How payloads become bytes: `"json"`, `"msgpack"`, a pair of functions, or None
            for payloads that are bytes. All processes need the same.
        tracing: Whether to make OpenTelemetry spans, with the tracer provider in use, or the
            provider to make them with. It needs `opentelemetry-api`.
        handlers: How many requests are handled at the same time.
        waiting: How many further requests may wait; more are answered by the error `Busy`.
        advertise: The address at which other members of a group reach this process, as
            `"host:port"`; by default the one that they see.
        queue: How many messages may wait here for the application before the kit stops
            reading, so that senders wait. While this process waits for an answer, it goes on
            reading.
        read_within: How soon the application promises to take what is there, in seconds: items
            of groups, messages, and requests that wait because all handlers are busy. If it
            breaks the promise, the kit stops reading; then `Node(read_within=...)` notices. The
            promise is suspended while this process itself waits for an answer, or for a group.
        history: How many bytes of messages each group keeps for members that come back with
            their state (see `since` of `join`). Those who miss more get the whole state.
        largest_state: How many bytes the state of a group may have, encoded. A process that
            joins by way of a member with a larger one is refused.

    Raises:
        KitError: The node was made without `ordered_events=True`, or is not for asyncio.
        ValueError: The codec is not known, or `read_within` is not above 0.
    """

    _nodes: ClassVar[WeakSet[Node]] = WeakSet()
    """The nodes that have a kit."""

    def __init__(
        self,
        node: Node,
        *,
        codec: CodecSpec = None,
        tracing: Any = False,
        handlers: int = 64,
        waiting: int = 1024,
        advertise: str = "",
        queue: int = 8192,
        read_within: float | None = None,
        history: int = HISTORY,
        largest_state: int = LARGEST_STATE,
    ) -> None:
        if not isinstance(node, Node):
            raise KitError(f"the kit is for causewire.Node (asyncio), not for {type(node)}")
        if not node.ordered_events:
            raise KitError("the kit needs a node that was made with ordered_events=True")
        if read_within is not None and not read_within > 0:
            raise ValueError(f"read_within must be above 0, not {read_within!r}")
        self.node = node
        self._read_within = read_within
        self._stuck = False
        """Whether the application has broken its promise to read."""
        self._codec = codec_of(codec)
        self._tasks = Tasks()
        spans = self._spans = tracing_of(tracing)
        spans.watch(node)
        self._taken = asyncio.Event()
        claim = self._claim = Claim(node, self._settle)
        self._requests = Requests(claim, self._codec, self._tasks, spans, handlers, waiting)
        self._groups = Groups(
            claim, self._codec, self._tasks, spans, advertise, self._taken, history, largest_state
        )
        self._queue = queue
        self._messages: deque[Message] = deque()
        self._reported: set[tuple[str, int, int]] = set()
        """Those of them of which the application says when they are handled, with a store."""
        self._in_hand: list[Message] = []
        """Messages that the application has taken, and may not have handled."""
        self._arrived = asyncio.Event()
        self._over: Exception | None = None

    async def start(self) -> Self:
        """Begin to read the messages of the node; `async with` does the same.

        From now on, `node.close()` leaves all groups first, so that the other members do not
        take this process for one that has crashed.

        Raises:
            KitError: The node has a kit already.
        """
        if self.node in self._nodes:
            raise KitError(f"{self.node.name} has a kit already, which reads its messages")
        self._nodes.add(self.node)
        self.node.farewell = self._say_farewell
        self._claim.begin()
        self._requests.begin()
        self._tasks.spawn(self._read())
        self._tasks.spawn(self._watch())
        if self._read_within is not None:
            self._tasks.spawn(self._hold_to_promise(self._read_within))
        return self

    async def __aenter__(self) -> Self:
        return await self.start()

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Leave all groups, and end: requests fail, handlers are cancelled. The node runs on.

        Leaving takes two seconds at most.
        """
        await self._leave(LEAVE_WITHIN)
        self._end(Closed("the kit is closed"))
        await self._tasks.cancel()
        if self.node.farewell == self._say_farewell:
            self.node.farewell = None
            self._claim.end()
            self._nodes.discard(self.node)

    async def _say_farewell(self, drain: float | None) -> None:
        """Leave all groups, as the node is about to close."""
        await self._leave(LEAVE_WITHIN if drain is None else min(drain, LEAVE_WITHIN))

    async def _leave(self, timeout: float) -> None:
        if self._over is None:
            await self._groups.leave(timeout)

    # -- requests -------------------------------------------------------------

    async def request(
        self,
        peer: str,
        payload: Any,
        *,
        service: str = "",
        timeout: float | None = None,
        headers: Headers | None = None,
    ) -> Any:
        """Ask another process, and return its answer.

        If the caller is cancelled, or the time is over, the handler there is cancelled.

        Args:
            peer: The name of the process.
            payload: The request.
            service: Which of its services to ask.
            timeout: How many seconds to wait for the answer, or None for no limit.
            headers: Small values to send along.

        Returns:
            What the handler there returned.

        Raises:
            Closed: The node or the kit is not running.
            PeerLost: The process left, was given up or was restarted before it answered.
            RequestFailed: Its handler raised an error, or it does not serve such requests.
            Superseded: Others have given this process up, and it is not back yet.
            TimeoutError: It has not answered in time.
            UnknownPeer: No address is known for the process.
        """
        if self._over is not None:
            raise self._over
        self._taken.set()  # the reader goes on while somebody waits for an answer
        return await self._requests.request(
            peer, payload, service=service, timeout=timeout, headers=headers
        )

    def serves(self, service: str = "") -> Callable[[Handler], Handler]:
        """Return a decorator for the handler of a service: it returns the answer to a request.

            @kit.serves("add")
            async def add(request: Request) -> int:
                return sum(request.payload)

        Args:
            service: The name that callers give; by default the one of requests without a name.

        Raises:
            KitError: Another handler serves these requests.
        """

        def register(handler: Handler) -> Handler:
            self._requests.serve(service, handler)
            return handler

        return register

    # -- groups ---------------------------------------------------------------

    async def join(
        self,
        group: str,
        seeds: Seeds = (),
        *,
        snapshot: Snapshot | None = None,
        restore: Restore | None = None,
        since: Since | None = None,
        timeout: float = 30.0,
        retry: float = 2.0,
    ) -> Group:
        """Join a group by way of one of its members, or begin it.

        With `snapshot` and `restore`, a process that joins gets the state of the application
        at a causal cut, and then every message that is not in it, once. `snapshot` is called
        between two items of the iteration over the group, when everything before was handled.

        Args:
            group: The name of the group.
            seeds: Processes that may be members: names that the node knows,
                `"name@host:port"`, or `SeedFile`. Without any other process, the group begins
                here.
            snapshot: Returns the state of the application, for others that join.
            restore: Takes that state, before this method returns. It has to *replace* the state
                of the application: a process that joins again already has one.
            since: Returns the position that the application has kept with its state
                (`Group.position`), or None if it has no state. If a member still has all
                messages after that position, they come as messages, and `restore` is not called.
            timeout: How many seconds to try.
            retry: After how many seconds to ask another seed.

        Returns:
            The group, which this process is a member of.

        Raises:
            Closed: The node or the kit is not running.
            JoinFailed: No seed has let this process in.
            KitError: This process is in the group already, or `since` returned no position.
        """
        if self._over is not None:
            raise self._over
        transfer = Transfer(snapshot, restore, since)
        return await self._groups.join(group, seeds, transfer, timeout, retry)

    def stay(
        self,
        group: str,
        seeds: Seeds = (),
        *,
        snapshot: Snapshot | None = None,
        restore: Restore | None = None,
        since: Since | None = None,
        begin: bool = False,
        retry: float = 2.0,
    ) -> Presence:
        """Return a place in a group that is taken when iterated over, and again when it is lost.

            room = kit.stay("room", ["ann", "bob", "cy"], snapshot=..., restore=...)
            async for item in room:
                ...

        When nobody is a member, the process that knows most begins the group, as soon as all
        that may be members have said that they are not; `causewire.kit.founding` says how.

        Args:
            group: The name of the group.
            seeds: Processes that may be members, as for `join`. Those who may begin the group
                have their own names in it, and need the same list. A process that is not in
                its own list only joins. Without seeds, the group begins here.
            snapshot: Returns the state of the application, for others that join.
            restore: Takes that state, each time that this process has joined. It has to
                *replace* the state of the application.
            since: Returns the position of the state that the application has, as for `join`,
                each time that this process joins. `lambda: room.position` does, where `room` is
                what this method returned, for an application that keeps its state in memory.
            begin: Begin the group, the first time, without asking anybody. At most one process
                may do so, and only if the group has never existed. Call this method directly
                after the kit was started.
            retry: After how many seconds to ask another seed.

        Returns:
            The place; iterate over it.
        """
        seeds = list(seeds)
        transfer = Transfer(snapshot, restore, since)
        if begin:
            self._groups.reserve(group, seeds)

        async def enter(known: tuple[str, ...]) -> Entered:
            nonlocal begin
            if self._over is not None:
                raise self._over
            if begin:
                begin = False
                made = await self._groups.join(group, (), transfer, None, retry)
                return Entered(made, True)
            return await self._groups.enter(group, seeds, known, transfer, retry)

        return Presence(group, enter, lambda: self._groups.answers(group))

    # -- other messages -------------------------------------------------------

    async def __aiter__(self) -> AsyncIterator[Message]:
        """Yield what was sent with `Node.send`, until the kit or the node is closed.

        Raises:
            StoreFailed: The store of the node could not be written.
            Superseded: Others have given this process up, and it does not come back.
        """
        while True:
            self._settle()  # who asks for the next has handled those before
            if self._messages:
                message = self._messages.popleft()
                if type(message) is Message:  # not one of which the application says so itself
                    self._in_hand.append(message)
                elif self._reported:
                    self._reported.discard(message_id(message))
                self._taken.set()
                yield message
            elif isinstance(self._over, Closed):
                return
            elif self._over is not None:
                raise self._over
            else:
                self._arrived.clear()
                await self._arrived.wait()

    def _settle(self) -> None:
        """Note that the messages that the application has taken are handled."""
        taken, self._in_hand = self._in_hand, []
        for message in taken:
            self._claim.finish(message)

    # -- reading --------------------------------------------------------------

    async def _read(self) -> None:
        error: Exception = Closed(f"{self.node.name} is not running")
        receive = self._spans.around(self._received)
        try:
            item: Any
            async for item in self.node:
                if isinstance(item, Delivery):
                    receive(item)
                else:
                    self._claim.finish(item)
                if isinstance(item, PeerForgotten | PeerLeft | PeerRestarted):
                    name = item.name
                    born = name.incarnation if isinstance(name, PeerName) else 0
                    self._requests.lost(str(name), born)
                    self._groups.lost(str(name), born)
                elif isinstance(item, PeerUp) and isinstance(item.name, PeerName):
                    self._groups.met(str(item.name), item.name.incarnation)
                while self._full():
                    self._taken.clear()
                    await self._taken.wait()
        except (NodeGivenUp, StoreFailed) as failed:
            error = failed
        self._end(error)

    def _full(self) -> bool:
        """Return whether the application has to take something before reading continues.

        It does not have to while it waits itself for something that others send.
        """
        if self._stuck and self._over is None:
            return True
        groups = self._groups.all
        backlog = len(self._messages) + sum([group.backlog for group in groups])
        if backlog < self._queue or self._over is not None:
            return False
        return not self._requests.outstanding and not any(group.waiting for group in groups)

    async def _hold_to_promise(self, seconds: float) -> None:
        """Notice when the application does not take what is there."""
        since: dict[int, tuple[Any, float]] = {}
        while True:
            await asyncio.sleep(seconds / 4)
            now = asyncio.get_running_loop().time()
            groups = self._groups.all
            first = [group.first for group in groups] + [self._requests.first]
            first += [self._messages[0]] if self._messages else []
            if self._requests.outstanding or any(group.waiting > group.idle for group in groups):
                first = []
            since = {id(item): since.get(id(item), (item, now)) for item in first if item}
            stuck = any(now - begun >= seconds for _, begun in since.values())
            if stuck and not self._stuck:
                _log.warning(
                    "%s does not read: its application has taken nothing, or finished no request, "
                    "for %s s",
                    self.node.name,
                    seconds,
                )
            self._stuck = stuck
            if not stuck:
                self._taken.set()

    def _received(self, message: Message) -> None:
        payload = message.payload
        if not payload.startswith(MARK):
            if type(message) is not Message and self._claim.durable:
                if (known := message_id(message)) in self._reported:
                    return  # it came again, as this process has rejoined
                self._reported.add(known)
            self._messages.append(message)
            self._arrived.set()
            return
        try:
            kind, reader = Kind(payload[_AT]), Reader(payload, _AT + 1)
            if kind not in (Kind.GROUP, Kind.PART):
                if self._requests.received(message, kind, reader):
                    return  # it is handled when it was answered
            elif self._claim.is_left_over(message):
                pass  # memberships end with the process, and this was meant for a former one
            elif kind is Kind.GROUP:
                self._groups.received(message.source, reader)
            else:
                self._groups.received_part(message.source, reader)
        except (MalformedError, ValueError, IndexError):
            pass
        self._claim.finish(message)

    async def _watch(self) -> None:
        """Notice when this process was given up, and when it goes on as a new incarnation."""
        async for event in self.node.events():
            if isinstance(event, NodeSuperseded | NodeCutOff):
                self._groups.superseded()
            elif isinstance(event, NodeRejoined):
                self._requests.lost("", 0)
                self._groups.rejoined()
                self._spans.forget()

    def _end(self, error: Exception) -> None:
        if self._over is None:
            self._over = error
            self._requests.end(error)
            self._groups.end(error)
            self._arrived.set()
            self._taken.set()
