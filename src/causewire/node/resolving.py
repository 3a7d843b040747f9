"""How a node finds the addresses of its peers, and looks again for those that do not answer."""

from __future__ import annotations

import asyncio
import inspect
from abc import abstractmethod

from ..transport import Address, UnknownPeer
from .addresses import Place, lookup
from .base import BaseNode
from .receipt import Receipt

__all__ = ["Resolving"]


class Resolving(BaseNode[Receipt]):
    """The part of a node that finds addresses."""

    @abstractmethod
    async def add_peer(self, name: str, place: Place) -> None:
        """Make a process known, or its new address."""

    async def _find(self, name: str, place: Place) -> Address | None:
        """Return the address of a peer, or None if it cannot be resolved yet."""
        try:
            return await lookup(place)
        except OSError as error:
            self._event_log.no_address(name, error)
            return None

    async def _resolve(self, name: str) -> None:
        """Find the address of a process."""
        place = self._resolver(name) if self._resolver is not None else None
        if inspect.isawaitable(place):
            place = await place
        if place is None:
            place = self._places.get(name)
        if place is None:
            raise UnknownPeer([name])
        await self.add_peer(name, place)

    async def _resolve_lost(self) -> None:
        """Ask the resolver again and again for peers that do not answer."""
        while True:
            await asyncio.sleep(self._transport.config.silent_after)
            for name in sorted({*self._unreached(), *self._unresolved()}):
                try:
                    await self._resolve(name)
                except Exception as error:
                    self._event_log.no_address(name, error)
