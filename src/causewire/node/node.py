"""`Node`: a process that sends and receives messages in causal order, on asyncio.

The transport makes all decisions, and the bridge moves datagrams. This module contains those
who wait: for a message, for room, for a receipt, for an event.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Collection
from contextlib import suppress
from types import TracebackType
from typing import Any, ClassVar, Self
from weakref import WeakSet

from ..core.endpoint import destinations
from ..core.errors import CausewireError
from ..store import StoreFailed
from ..transport import (
    Confirmed,
    Delivered,
    Handled,
    MessageWithdrawn,
    NodeRejoined,
    NodeSuperseded,
    PeerUp,
    Reason,
    Room,
    Session,
    Transport,
    UnknownPeer,
)
from .addresses import bind, lookup
from .base import GOODBYE, BaseNode, Message
from .bridge import Bridge
from .receipt import Closed, Full, MessageExpired, NodeError, Receipt
from .resolving import Resolving
from .store_bridge import StoreBridge
from .storing import Storing
from .waiting import ReceiptWaiters, wake
from .watching import Watching

__all__ = ["Node", "Receipt"]


class Node(Storing, Resolving, Watching):
    __doc__ = BaseNode.__doc__
    _started: ClassVar[WeakSet[Node]] = WeakSet()
    """All nodes that have been started and are not closed."""

    def _prepare(self) -> None:
        super()._prepare()
        self._try_send: Callable[[str | Collection[str], bytes], Receipt | None] = self._refuse
        self._bridge: Bridge | None = None
        self._readers: list[asyncio.Future[None]] = []
        self._senders: list[asyncio.Future[None]] = []
        self._receipts = ReceiptWaiters()
        self._pause_timer: asyncio.TimerHandle | None = None
        """Ends a pause before rejoining."""
        self._closes = asyncio.Lock()
        self.farewell: Callable[[float | None], Awaitable[None]] | None = None
        """What `close` awaits first, with its `drain`, while messages can still be sent."""
        if self._gate is not None:
            self.send = self._send_stored  # type: ignore[method-assign]

    # -- from start to close --------------------------------------------------

    async def start(self) -> Self:
        """Open the socket, and look for the peers; `async with` does the same.

        Raises:
            NodeError: The node was started before.
            OSError: The address of `listen` is not available, or its name does not resolve.
            ValueError: An address is malformed, or is not loopback and there is no key.
        """
        if self._bridge is not None or self._closing:
            raise NodeError(f"{self.name} has been started before")
        places = {name: await self._find(name, place) for name, place in self._places.items()}
        if self._socket is None:
            self._socket = bind(await lookup(self._listen), self._insecure)
        bridge = self._bridge = self._make_bridge(self._socket)
        self._event_log.clock = bridge.loop.time
        self._try_send = self._transport.try_send
        self._started.add(self)
        known = {} if self._gate is None else self._gate.addresses
        for name, address in {**known, **places}.items():
            self._meet(name, address or known.get(name), bridge.loop.time())
        self._resume(bridge.loop.time())
        if self._resolves:
            self._look_again()
        bridge.soon()
        return self

    async def close(self, drain: float | None = None, *, leave: bool | None = None) -> bool:
        """Accept no more messages, wait until all are delivered, and leave.

        A node with a store only stops: its peers see a silence, and a node that is started with
        the store continues. A second call waits for the first one.

        Args:
            drain: How many seconds to wait; by default the node's `drain`.
            leave: Whether to say goodbye, so that nobody waits for this process; by default
                only a node without a store does. After that, a node that is started with the
                store is a new incarnation, which still has the messages that were not handled.

        Returns:
            Whether every accepted message was delivered.
        """
        async with self._closes:
            if self.farewell is not None and leave is not False and not self._closing:
                with suppress(CausewireError):
                    await self.farewell(drain)
            return await self._close(drain, leave)

    async def _close(self, drain: float | None, leave: bool | None) -> bool:
        bridge = self._bridge
        if bridge is None or self._closing:
            if bridge is None and self._gate is not None:
                self._gate.close()  # it was not started, or that failed
            self._closing = True
            return bool(self.drained)
        self._closing = True
        self._try_send = self._refuse
        wake(self._senders)
        clock = bridge.loop.time
        deadline = clock() + (wait := self._drain if drain is None else drain)
        while not self._transport.settled and clock() < deadline:
            await asyncio.sleep(min(0.01, max(0.0, deadline - clock())))
        drained = self._end_drain()
        if leave if leave is not None else self._gate is None:
            self._transport.close()
            bridge.flush()
            deadline = max(deadline, clock() + min(GOODBYE, wait))
            while self._goodbye_goes_on and clock() < deadline:
                await asyncio.sleep(min(0.01, max(0.0, deadline - clock())))
            self._end_goodbye()
            bridge.flush()  # others who leave may wait for an answer
            if self._gate is not None:
                self._next_life(clock())
                bridge.transport = self._transport
        if isinstance(bridge, StoreBridge):
            with suppress(StoreFailed):
                await bridge.up_to_date()
            self._gate.close()  # type: ignore[union-attr]
        bridge.stop()
        self._bridge = None
        self._started.discard(self)
        self._end_resolving()
        if self._recorder is not None:
            self._recorder.close()
            self._check_trace()
        wake(self._readers)
        self._receipts.wake_all()
        self._end_events()
        return drained

    async def __aenter__(self) -> Self:
        return await self.start()

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.close(0.0 if kind is not None else None)

    # -- sending --------------------------------------------------------------

    async def send(
        self,
        to: str | Collection[str],
        payload: bytes,
        *,
        wait_for_peer: bool = False,
        ttl: float | None = None,
    ) -> Receipt:
        """Send a message to one process or to several; waits only while there is no room.

        Args:
            to: The name of a process, or several names.
            payload: The message.
            wait_for_peer: Whether to keep the message for the next incarnation of a
                destination that is gone, rather than to raise `PeerGone`.
            ttl: How many seconds the message may wait here: for permits of the protocol, for
                room, for a receiver that has not been reached. A message that has not left by
                then is not sent, and its receipt fails with `MessageExpired`. One that has left
                is not affected. A node with a store does not support this.

        Returns:
            A receipt; `await receipt.delivered()` waits for the delivery.

        Raises:
            Closed: The node is not running.
            NodeError: The node runs on another event loop.
            UnknownPeer: Nobody knows where a destination is to be looked for.
            MessageExpired: There was no room within the time to live.
            PeerGone: A destination left, or was given up.
            Superseded: The peers of this node have given it up.
            ValueError: The payload is too long.
        """
        if wait_for_peer or ttl is not None:
            return await self._send_in_time(to, payload, wait_for_peer, ttl)
        bridge = self._bridge
        if bridge is not None and not bridge.due:
            bridge.soon()  # first, since it raises an error if another loop runs
        try:
            receipt = self._try_send(to, payload)
        except UnknownPeer:
            receipt = None
        if receipt is None:
            return await self._send_slowly(to, payload)
        return receipt

    async def _send_in_time(
        self, to: str | Collection[str], payload: bytes, wait_for_peer: bool, ttl: float | None
    ) -> Receipt:
        """Send a message that may wait for a limited time only, if `ttl` is not None."""
        if ttl is None:
            return await self._send_slowly(to, payload, wait_for_peer)
        self._check_ttl(ttl)
        bridge = self._running()
        bridge.check_loop()
        deadline = bridge.loop.time() + ttl
        try:
            async with asyncio.timeout_at(deadline) as limit:
                receipt = await self._send_slowly(to, payload, wait_for_peer)
        except TimeoutError:
            if not limit.expired():
                raise
            raise MessageExpired(0, destinations(to)) from None
        self._expire(receipt, ttl, deadline, bridge.loop.time())
        return receipt

    async def _send_slowly(
        self, to: str | Collection[str], payload: bytes, wait_for_peer: bool = False
    ) -> Receipt:
        """Send when the address of the destination is known, and there is room."""
        if not isinstance(to, str):
            to = tuple(to)
        while True:
            try:
                if wait_for_peer:
                    self._running().soon()
                    receipt = self._transport.send(to, payload, True)
                else:
                    receipt = self._try_send(to, payload)
            except UnknownPeer as unknown:
                for name in unknown.names:
                    await self._resolve(name)
                continue
            bridge = self._running()
            bridge.soon()
            if receipt is not None:
                return receipt
            future = bridge.loop.create_future()
            self._senders.append(future)
            await future

    def send_nowait(
        self, to: str | Collection[str], payload: bytes, *, ttl: float | None = None
    ) -> Receipt:
        """Send a message at once; `ttl` is that of `send`.

        Raises:
            Full: There is no room.
            Closed: The node is not running.
            UnknownPeer: No address is known for a destination.
            PeerGone: A destination left, or was given up.
            Superseded: The peers of this node have given it up.
            ValueError: The payload is too long.
        """
        bridge = self._running()
        if ttl is not None:
            self._check_ttl(ttl)
        bridge.soon()
        receipt = self._transport.send(to, payload)
        if receipt is None:
            raise Full(f"no room for another message to {to}")
        if ttl is not None:
            now = bridge.loop.time()
            self._expire(receipt, ttl, now + ttl, now)
        return receipt

    @property
    def _loop(self) -> asyncio.AbstractEventLoop | None:
        """The event loop that the node runs on, or None if it does not run."""
        return None if self._bridge is None else self._bridge.loop

    def _running(self) -> Bridge:
        if self._bridge is None or self._closing:
            raise Closed(f"{self.name} is not running")
        if self._gate is not None:
            self._gate.check()
        return self._bridge

    def _refuse(self, to: str | Collection[str], payload: bytes) -> Receipt | None:
        """Stand in for `Transport.try_send` while the node is not running."""
        if self._gate is not None:
            self._gate.check()
        raise Closed(f"{self.name} is not running")

    # -- receiving ------------------------------------------------------------

    async def receive(self, timeout: float | None = None) -> Message:
        """Return the next message.

        Args:
            timeout: How many seconds to wait, or None for no limit.

        Raises:
            Closed: The node is closed, and all messages have been taken.
            Superseded: The peers of this node have given it up.
            TimeoutError: No message was delivered in time.
        """
        messages = self._messages
        if not messages:
            if timeout is None:
                await self._first_message()
            else:
                async with asyncio.timeout(timeout):
                    await self._first_message()
        return messages.popleft()

    async def _first_message(self) -> None:
        """Wait until there is a message."""
        while not self._messages:
            if self._bridge is None:
                raise Closed(f"{self.name} is not running")
            await self._more(self._bridge)

    async def __aiter__(self) -> AsyncIterator[Message]:
        """Yield messages until the node is closed."""
        messages = self._messages
        while True:
            while messages:
                yield messages.popleft()
            if self._bridge is None:
                return
            await self._more(self._bridge)

    async def _more(self, bridge: Bridge) -> None:
        """Wait until there may be a message."""
        if self._gate is not None:  # who asks for the next has handled those before
            self._gate.check()
            self._gate.inbox.done()
            bridge.soon()
        if self._transport.refill():
            bridge.soon()
        if not self._messages:
            if self._must_rejoin:  # it had stood down, and the application reads again
                self._rejoin_in_time()
            else:
                self._check_superseded()
            future = bridge.loop.create_future()
            self._readers.append(future)
            try:
                await future
            except RuntimeError:  # asyncio's, if another loop runs
                bridge.check_loop()
                raise

    # -- peers and status -----------------------------------------------------

    async def forget(self, name: str) -> None:
        """Give a peer up: treat it as dead, and tell all others.

        Messages to it fail, and nothing waits for it any longer. If it is alive after all,
        it learns that, and may come back as a new incarnation.

        Raises:
            Closed: The node is not running.
            UnknownPeer: There is no such peer.
        """
        bridge = self._running()
        self._transport.forget(name, bridge.loop.time())
        bridge.flush()

    async def rejoin(self) -> None:
        """Continue as a new incarnation, after peers have given this process up.

        Receipts that are not settled fail. Messages that were delivered and not taken yet
        can still be received.

        Raises:
            Closed: The node is not running.
        """
        self._rejoin(self._running())

    def _rejoin_in_time(self) -> None:
        """Rejoin, if that has to be done by itself, and is not too soon after the last time."""
        bridge = self._bridge
        if bridge is None or self._closing or not self._must_rejoin:
            return
        if self._rejoining.now(bridge.loop.time()):
            self._rejoin(bridge)
        elif self._pause_timer is None and (until := self._rejoining.until) is not None:
            self._pause_timer = bridge.loop.call_at(until, self._pause_over)

    def _pause_over(self) -> None:
        self._pause_timer = None
        self._rejoin_in_time()  # which waits again if the timer was early

    def _rejoin(self, bridge: Bridge) -> None:
        old, now = self._transport, bridge.loop.time()
        self._next_life(now)
        self._rejoining.rejoined(now)
        bridge.transport = self._transport
        self._try_send = self._transport.try_send
        self._dispatch(old)
        self._publish(NodeRejoined(self.name, self.incarnation))
        wake(self._senders)
        wake(self._readers)
        if isinstance(bridge, StoreBridge):
            bridge.wake()
        bridge.soon()

    def peers_up(self) -> list[str]:
        """Return the names of the peers that were reached, and answer."""
        return self._peers_up()

    def blocked(self) -> list[Reason]:
        """Return why messages have not arrived; `str()` of a reason is a sentence."""
        return [] if self._bridge is None else self._transport.blocked(self._bridge.loop.time())

    def stats(self) -> dict[str, Any]:
        """Return counters since the start."""
        return self._stats()

    def metrics(self) -> str:
        """Return counters and gauges in the text format of Prometheus."""
        return self._metrics()

    # -- those who wait -------------------------------------------------------

    def _report(self, session: Session, mid: int) -> None:
        if self._bridge is not None:
            self._transport.handled(session, mid)
            self._bridge.soon()

    def _withdraw(self, receipt: Receipt) -> bool:
        if self._bridge is None or not self._transport.withdraw(receipt):
            return False
        self._bridge.soon()
        return True

    def _handle_events(self) -> None:
        """Wake whoever can continue."""
        transport = self._transport
        self._dispatch(transport)
        if self._recorder is not None:
            self._recorder.flush()
            self._check_trace()
        if transport.me.superseded:
            self._rejoin_in_time()

    def _dispatch(self, transport: Transport[Receipt]) -> None:
        next_event = transport.next_event
        while (event := next_event()) is not None:
            if isinstance(event, Delivered):
                wake(self._readers)
            elif isinstance(event, Confirmed):
                self._receipts.confirmed(event.session)
            elif isinstance(event, Room):
                wake(self._senders)
            elif isinstance(event, Handled):
                self._receipts.reported(*event)
            elif isinstance(event, MessageWithdrawn):
                self._receipts.withdrawn(*event)
            else:
                self._publish(event)
                if isinstance(event, PeerUp):
                    self._receipts.met(event.name)
                if isinstance(event, NodeSuperseded):
                    wake(self._senders)
                    wake(self._readers)
                    self._receipts.wake_all()

    @property
    def _settles(self) -> bool:
        """Whether anything is still to be heard of messages: not after it was given up."""
        return self._bridge is not None and not self._transport.me.superseded
