"""How a node finds the addresses of its peers, and looks again for those that do not answer."""

from __future__ import annotations

import asyncio
import inspect

from ..transport import Address, UnknownPeer
from .addresses import Place, lookup, split
from .base import BaseNode
from .bridge import Bridge
from .receipt import Closed, Receipt

__all__ = ["Resolving"]


class Resolving(BaseNode[Receipt]):
    """The part of a node that finds addresses."""

    _bridge: Bridge | None

    def _prepare(self) -> None:
        super()._prepare()
        self._resolving: asyncio.Task[None] | None = None

    async def add_peer(self, name: str, place: Place) -> None:
        """Make a process known, or its new address.

        While the name of its host does not resolve, messages to it are kept. A host name is
        looked up again whenever the peer does not answer.

        Raises:
            Closed: The node is closed.
            ValueError: The name or the address is malformed, or there are too many peers.
        """
        split(place)
        if self._bridge is None and not self._closing:
            self._places[name] = place
            return
        changes = self._remember(name, place)
        await self._look_up(name, place)
        if changes:
            self._look_again()

    async def _find(self, name: str, place: Place) -> Address | None:
        """Return the address of a peer, or None if it cannot be resolved yet."""
        try:
            return await lookup(place, self._here)
        except OSError as error:
            self._event_log.no_address(name, error)
            return None

    async def _look_up(self, name: str, place: Place) -> None:
        """Have the transport know a process at the address that its place has now."""
        address = await self._find(name, place)
        bridge = self._bridge
        if bridge is None:
            raise Closed(f"{self.name} is not running")
        self._meet(name, address, bridge.loop.time())
        bridge.soon()

    async def _resolve(self, name: str) -> None:
        """Find the address of a process."""
        place = self._resolver(name) if self._resolver is not None else None
        if inspect.isawaitable(place):
            place = await place
        if place is None:
            place = self._places.get(name)
        if place is None:
            raise UnknownPeer([name])
        await self._look_up(name, place)

    def _look_again(self) -> None:
        """Look from now on again and again for peers that do not answer."""
        if self._resolving is None and self._bridge is not None:
            self._resolving = self._bridge.loop.create_task(self._resolve_lost())

    def _end_resolving(self) -> None:
        if self._resolving is not None:
            self._resolving.cancel()

    async def _resolve_lost(self) -> None:
        while True:
            await asyncio.sleep(self._transport.config.silent_after)
            for name in self._lost():
                try:
                    await self._resolve(name)
                except Exception as error:
                    self._event_log.no_address(name, error)
