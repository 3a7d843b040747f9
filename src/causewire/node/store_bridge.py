"""The bridge of a node with a store, and those who wait for the store."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from typing import Any

from ..transport import Transport
from .bridge import Bridge
from .gate import Gate

__all__ = ["StoreBridge"]


class StoreBridge(Bridge):
    """Drives a transport whose datagrams leave when the store has what they follow from.

    Args:
        transport: The transport.
        sock: Its socket.
        notice: Is called when the transport may have events.
        gate: Holds back what is not in the store.
        stored: Is called when a write to the store has ended.
    """

    __slots__ = ("_gate", "_stored", "_waiting")

    def __init__(
        self,
        transport: Transport[Any],
        sock: socket.socket,
        notice: Callable[[], None],
        gate: Gate,
        stored: Callable[[], None],
    ) -> None:
        super().__init__(transport, sock, notice)
        self._gate = gate
        self._stored = stored
        self._waiting: list[asyncio.Future[None]] = []
        gate.notice = self._written

    def flush(self) -> None:
        """Do what a bridge does, unless the store has failed: then nothing happens any more."""
        if self._gate.failure is None:
            super().flush()

    def _transmit(self) -> None:
        self._send(self._gate.turn(self.transport.datagrams_to_send(self.loop.time())))

    def _written(self, future: Future[None]) -> None:
        with suppress(RuntimeError):  # the loop is closed
            self.loop.call_soon_threadsafe(self._finish, future)

    def _finish(self, future: Future[None]) -> None:
        datagrams = self._gate.finish(future)
        if self._gate.failure is not None:
            self.loop.remove_reader(self.sock)  # what is known here is ahead of the store
            self._disarm()
        if self.sock.fileno() >= 0:
            self._send(datagrams)
            self._stored()
            if not self._gate.idle:
                self.soon()
        self.wake()

    def wake(self) -> None:
        """Let those who wait for the store look again."""
        waiting, self._waiting = self._waiting, []
        for future in waiting:
            if not future.done():
                future.set_result(None)

    async def written(self) -> None:
        """Wait until a write to the store has ended.

        Raises:
            StoreFailed: The store could not be written.
        """
        self._gate.check()
        future = self.loop.create_future()
        self._waiting.append(future)
        await future
        self._gate.check()

    async def up_to_date(self) -> None:
        """Wait until everything that has happened is in the store.

        Raises:
            StoreFailed: The store could not be written.
        """
        self._gate.check()
        while not self._gate.idle:
            if not self._gate.writing:
                self.flush()
            if self._gate.writing:
                await self.written()
