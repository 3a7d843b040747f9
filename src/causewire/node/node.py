"""What an application imports: a process that sends and gets messages in causal order.

The transport decides everything, the bridge moves datagrams; here are those who wait:
for a message, for room, for a receipt, for an event.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
import os
import secrets
import socket
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping
from heapq import heappop
from types import TracebackType
from typing import Any, Self

from ..core.endpoint import Delivery, LocalProtocolError
from ..transport import Address, Config, Event, Reason, Transport
from .addresses import Place, bind, lookup
from .bridge import Bridge
from .metrics import metrics
from .receipt import Closed, Full, NodeError, Receipt

__all__ = ["Message", "Node", "Resolver"]

Message = Delivery
"""A message that was delivered: `source`, `mid` (its number there), `payload`."""

Resolver = Callable[[str], Place | Awaitable[Place | None] | None]
"""Tells where a process is, or None if it does not know."""

PATIENCE = 64
"""Messages that are sent the long way before others get their turn."""

_new = tuple.__new__
_log = logging.getLogger("causewire")


def new_incarnation() -> int:
    """A number that no start of a process has had: later ones are higher."""
    return (time.time_ns() // 1_000_000) << 20 | secrets.randbits(20)


class Node:
    """A process that sends and gets messages in causal order.

    `peers` says where others are; more can be added, or asked of a `resolver`, and
    those who make themselves known are known. `key` is the cluster's, at least 16
    random bytes: without one the node stays on loopback, unless `insecure`. `drain`
    is how long leaving an `async with` may take to get everything delivered.
    """

    def __init__(
        self,
        name: str,
        *,
        listen: Place = "127.0.0.1:0",
        peers: Mapping[str, Place] | None = None,
        protocol: str = "csps",
        key: bytes | None = None,
        resolver: Resolver | None = None,
        trace: str | os.PathLike[str] | None = None,
        run: str = "node",
        config: Config | None = None,
        drain: float = 5.0,
        insecure: bool = False,
        sock: socket.socket | None = None,
        incarnation: int | None = None,
        **options: Any,
    ) -> None:
        self._listen = listen
        self._places = dict(peers or {})
        self._resolver = resolver
        self._insecure = insecure or key is not None
        self._drain = drain
        self._socket = sock
        self._recorder = None
        life = 1
        if trace is not None:
            from .recorder import Recorder, lives_in

            life += lives_in(trace, name)
        self._transport = Transport(
            name,
            incarnation=incarnation or new_incarnation(),
            protocol=protocol,
            peers=self._places,
            key=key,
            config=config,
            life=life,
            **options,
        )
        if trace is not None:
            self._recorder = self._transport.observer = Recorder(trace, run, name, life)
        self._live = self._transport.live
        self._queue = self._transport.queue
        self._bridge: Bridge | None = None
        self._readers: list[asyncio.Future[None]] = []
        self._senders: list[asyncio.Future[None]] = []
        self._watchers: list[asyncio.Queue[Event | None]] = []
        self._resolving: asyncio.Task[None] | None = None
        self._closing = False
        self._turns = PATIENCE
        self.drained: bool | None = None
        """After closing: whether all that was accepted had been delivered by then."""

    # -- from beginning to end ------------------------------------------------

    async def start(self) -> Self:
        """Open the socket and look for the peers."""
        if self._bridge is not None or self._closing:
            raise NodeError(f"{self.name} has been started before")
        places = {name: await lookup(place) for name, place in self._places.items()}
        if self._socket is None:
            self._socket = bind(await lookup(self._listen), self._insecure)
        bridge = self._bridge = Bridge(
            self._transport, self._socket, self._wake_readers, self._notice
        )
        for name, address in places.items():
            self._transport.add_peer(name, address, bridge.loop.time())
        if self._resolver is not None:
            self._resolving = bridge.loop.create_task(self._resolve_lost())
        bridge.soon()
        return self

    async def close(self, drain: float | None = None) -> bool:
        """Stop accepting; wait until all is delivered, or `drain` seconds; say which."""
        bridge = self._bridge
        if bridge is None or self._closing:
            self._closing = True
            return bool(self.drained)
        self._closing = True
        self._transport.call_in()
        _wake(self._senders)
        clock = bridge.loop.time
        deadline = clock() + (self._drain if drain is None else drain)
        while not self._quiet() and clock() < deadline:
            await asyncio.sleep(min(0.01, max(0.0, deadline - clock())))
        self.drained = not self._transport.has_messages
        if not self.drained:
            left = {name: s.has_messages for name, s in self._live.items() if s.has_messages}
            _log.warning("%s closes, and these were not delivered: %s", self.name, left)
        self._transport.close()
        bridge.flush()
        bridge.stop()
        self._bridge = None
        if self._resolving is not None:
            self._resolving.cancel()
        if self._recorder is not None:
            self._recorder.close()
        _wake(self._readers)
        for watcher in self._watchers:
            watcher.put_nowait(None)
        return self.drained

    def _quiet(self) -> bool:
        return not self._transport.has_messages and not any(
            session.recovery.sent for session in self._live.values() if not session.silent
        )

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

    async def send(self, to: str | Collection[str], payload: bytes) -> Receipt:
        """Send to one process or a set of them; waits only for room."""
        if to.__class__ is str and payload.__class__ is bytes:
            # The short way, on credit: see `transport.ledger`.
            session = self._live.get(to)
            if session is not None and session.credit:
                size = len(payload)
                if size <= session.credit_bytes:
                    mid = session.send(session.alias, payload)
                    session.credit -= 1
                    session.credit_bytes -= size
                    bridge = self._bridge
                    if not bridge.due:  # type: ignore[union-attr]
                        bridge.soon()  # type: ignore[union-attr]
                    return _new(Receipt, (mid, session.alone))
        return await self._send_slowly(to, payload)

    async def _send_slowly(self, to: str | Collection[str], payload: bytes) -> Receipt:
        names = (to,) if isinstance(to, str) else tuple(to)
        for name in names:
            if name not in self._transport.peers and name != self.name:
                await self._resolve(name)
        while self._bridge is not None and not self._closing and not self._transport.room(names):
            future = self._bridge.loop.create_future()
            self._senders.append(future)
            await future
        receipt = self.send_nowait(to if isinstance(to, str) else names, payload)
        self._turns -= 1
        session = self._live.get(to) if isinstance(to, str) else None
        if session is not None:
            if session.lent:  # and used up
                self._turns = 0
            self._transport.lend(session)
        if self._turns <= 0:
            # Who sends without a pause would keep the loop from sending, and from acks.
            self._turns = PATIENCE
            await asyncio.sleep(0)
        return receipt

    def send_nowait(self, to: str | Collection[str], payload: bytes) -> Receipt:
        """Send if there is room; `Full` if there is none."""
        if self._bridge is None or self._closing:
            raise Closed(f"{self.name} is not running")
        if not isinstance(payload, bytes):
            if not isinstance(payload, bytearray | memoryview):
                raise TypeError(f"a payload is bytes, not {type(payload).__name__}")
            payload = bytes(payload)
        if not self._transport.room((to,) if isinstance(to, str) else to):
            raise Full(f"no room for another message to {to}")
        mid, sessions = self._transport.send(to, payload)
        self._bridge.soon()
        return _new(Receipt, (mid, sessions))

    # -- receiving ------------------------------------------------------------

    async def receive(self, timeout: float | None = None) -> Message:
        """The next message; `Closed` when there will be none, `TimeoutError` if none comes."""
        async with asyncio.timeout(timeout):
            while not self._queue:
                if self._bridge is None:
                    raise Closed(f"{self.name} is not running")
                await self._more(self._bridge)
        return self._queue.popleft()

    async def __aiter__(self) -> AsyncIterator[Message]:
        queue = self._queue
        while True:
            while queue:
                yield queue.popleft()
            if self._bridge is None:
                return
            await self._more(self._bridge)

    async def _more(self, bridge: Bridge) -> None:
        """Wait until there may be something in the queue, which is empty."""
        if self._transport.stalled:
            self._transport.admit()
            bridge.soon()
        if not self._queue:
            future = bridge.loop.create_future()
            self._readers.append(future)
            await future

    async def events(self) -> AsyncIterator[Event]:
        """What happens to peers and messages, from now on."""
        watcher: asyncio.Queue[Event | None] = asyncio.Queue()
        self._watchers.append(watcher)
        try:
            while (event := await watcher.get()) is not None:
                yield event
        finally:
            self._watchers.remove(watcher)

    # -- what people ask ------------------------------------------------------

    @property
    def name(self) -> str:
        return self._transport.name

    @property
    def address(self) -> Address:
        """Where this node listens."""
        if self._socket is None:
            raise NodeError(f"{self.name} has not been started")
        host, port = self._socket.getsockname()[:2]
        return host, port

    async def add_peer(self, name: str, place: Place) -> None:
        """Get to know a process, or where it is now."""
        address = await lookup(place)
        if self._bridge is not None:
            self._transport.add_peer(name, address, self._bridge.loop.time())
            self._bridge.soon()

    def peers_up(self) -> list[str]:
        """Those that have been reached, and answer."""
        return [name for name, s in self._live.items() if s.established and not s.silent]

    def blocked(self) -> list[Reason]:
        """Why has this not arrived? Each reason is text as well."""
        return [] if self._bridge is None else self._transport.blocked(self._bridge.loop.time())

    def stats(self) -> dict[str, Any]:
        """Counters since the start."""
        return self._transport.counters()

    def metrics(self) -> str:
        """The same, and more, in the text format of Prometheus."""
        return metrics(self._transport)

    # -- those who wait -------------------------------------------------------

    def _wake_readers(self) -> None:
        if self._queue and self._readers:
            _wake(self._readers)

    def _notice(self) -> None:
        """The end of a turn: who can go on?"""
        transport = self._transport
        if transport.events:
            for event in transport.events:
                for watcher in self._watchers:
                    watcher.put_nowait(event)
            transport.events.clear()
        if transport.progressed:
            for session in transport.progressed:
                waiters = session.waiters
                while waiters and (session.over or waiters[0][0] <= session.confirmed):
                    future = heappop(waiters)[2]
                    if not future.done():
                        future.set_result(None)
            transport.progressed.clear()
            _wake(self._senders)
        self._wake_readers()
        if self._recorder is not None:
            self._recorder.flush()

    async def _resolve(self, name: str) -> None:
        """Find out where a process is."""
        place = self._resolver(name) if self._resolver is not None else None
        if inspect.isawaitable(place):
            place = await place
        if place is None:
            raise LocalProtocolError(f"nobody knows where {name!r} is")
        await self.add_peer(name, place)

    async def _resolve_lost(self) -> None:
        """Ask again and again where those are that do not answer."""
        while True:
            await asyncio.sleep(self._transport.config.silent_after)
            for name in self._transport.unreached():
                try:
                    await self._resolve(name)
                except (LocalProtocolError, OSError, ValueError):
                    continue


def _wake(waiting: list[asyncio.Future[None]]) -> None:
    for future in waiting:
        if not future.done():
            future.set_result(None)
    waiting.clear()
