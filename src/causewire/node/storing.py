"""What a node with a store does in addition: wait for the store, and note what is handled."""

from __future__ import annotations

import asyncio
import logging
import socket
from abc import abstractmethod
from collections.abc import Callable, Collection

from ..transport import Transport
from .base import BaseNode
from .bridge import Bridge
from .receipt import Closed, NodeError, Receipt
from .store_bridge import StoreBridge
from .waiting import wake

__all__ = ["Storing"]

_log = logging.getLogger("causewire.node")


class Storing(BaseNode[Receipt]):
    """The part of a node that deals with its store, if it has one."""

    _receipt = Receipt
    _bridge: Bridge | None
    _readers: list[asyncio.Future[None]]
    _senders: list[asyncio.Future[None]]
    _try_send: Callable[[str | Collection[str], bytes], Receipt | None]
    _settle: Callable[[], object] | None = None
    """Has the reader that has claimed the messages (`Claim`) finish those that are handled."""

    @abstractmethod
    async def send(
        self,
        to: str | Collection[str],
        payload: bytes,
        *,
        wait_for_peer: bool = False,
        ttl: float | None = None,
    ) -> Receipt:
        """Send a message to one process or to several."""

    @abstractmethod
    def _running(self) -> Bridge: ...

    @abstractmethod
    def _refuse(self, to: str | Collection[str], payload: bytes) -> Receipt | None: ...

    @abstractmethod
    def _handle_events(self) -> None: ...

    @abstractmethod
    def _dispatch(self, transport: Transport[Receipt]) -> None: ...

    def _make_bridge(self, sock: socket.socket) -> Bridge:
        if self._gate is None:
            return Bridge(self._transport, sock, self._handle_events)
        return StoreBridge(
            self._transport, sock, self._handle_events, self._gate, self._store_written
        )

    async def _send_stored(
        self,
        to: str | Collection[str],
        payload: bytes,
        *,
        wait_for_peer: bool = False,
        ttl: float | None = None,
    ) -> Receipt:
        """Do what `send` does, and wait until the message is in the store."""
        receipt = await type(self).send(self, to, payload, wait_for_peer=wait_for_peer, ttl=ttl)
        await self._in_store(receipt)
        return receipt

    async def _in_store(self, receipt: Receipt) -> None:
        """Wait until a message is in the store, or its receivers are gone."""
        if self._gate is None:
            raise NodeError(f"{self.name} has no store")
        mid, sessions, _ = receipt
        if self._gate.stored < mid:
            self._gate.check()
        while self._gate.stored < mid and not (sessions and all(s.over for s in sessions)):
            if not isinstance(self._bridge, StoreBridge):
                raise Closed(f"{self.name} is not running")
            await self._bridge.written()
        if receipt.withdrawn and isinstance(self._bridge, StoreBridge):
            await self._bridge.up_to_date()

    async def done(self) -> None:
        """Note that all messages taken so far are handled, and wait until the store has that.

        A node with a store delivers a message again, after a crash, unless it was handled. To
        ask for the next message says the same as this call, without waiting for the store. With
        `reports_handled`, the application says it of each message, and this call only waits.

        Raises:
            NodeError: The node has no store, or is not running.
            StoreFailed: The store could not be written.
        """
        bridge = self._running()
        if self._gate is None or not isinstance(bridge, StoreBridge):
            raise NodeError(f"{self.name} has no store")
        if self._settle is not None:
            self._settle()
        self._gate.inbox.done()
        await bridge.up_to_date()

    def _store_written(self) -> None:
        """Go on after a write to the store has ended."""
        gate = self._gate
        assert gate is not None
        if gate.failure is not None:
            _log.error("%s stops: %s", self.name, gate.failure)
            self._try_send = self._refuse
            self._transport.abort()
            self._dispatch(self._transport)
            wake(self._senders)
            wake(self._readers)
        elif self._messages:
            wake(self._readers)
