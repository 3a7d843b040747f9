"""Those who watch what happens to the peers of a node."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

from ..transport import PeerEvent
from .base import BaseNode
from .bridge import Bridge
from .receipt import Receipt

__all__ = ["Watching"]


class Watching(BaseNode[Receipt]):
    """The part of a node that tells events."""

    _bridge: Bridge | None

    def _prepare(self) -> None:
        super()._prepare()
        self._watchers: list[asyncio.Queue[PeerEvent | None]] = []

    async def events(self) -> AsyncIterator[PeerEvent]:
        """Yield what happens to peers and messages from now on, until the node is closed."""
        if self._closing and self._bridge is None:
            return
        watcher: asyncio.Queue[PeerEvent | None] = asyncio.Queue()
        self._watchers.append(watcher)
        try:
            while (event := await watcher.get()) is not None:
                yield event
        finally:
            self._watchers.remove(watcher)

    def _publish(self, event: PeerEvent) -> None:
        """Log an event, and pass it on to those who watch."""
        self._event_log.write(event)
        for watcher in self._watchers:
            watcher.put_nowait(event)

    def _end_events(self) -> None:
        """Let those who watch know that there are no more."""
        for watcher in self._watchers:
            watcher.put_nowait(None)
