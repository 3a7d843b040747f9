"""How a blocking node finds the addresses of its peers; the same as `causewire.node.resolving`."""

from __future__ import annotations

import inspect
import threading
import time

from ..node.addresses import Place, lookup_now, split
from ..transport import Address, UnknownPeer
from .driver import Driver

__all__ = ["Resolving"]


class Resolving(Driver):
    """The part of a blocking node that finds addresses."""

    def _prepare(self) -> None:
        super()._prepare()
        self._resolving: threading.Thread | None = None

    def add_peer(self, name: str, place: Place) -> None:
        """Make a process known, or its new address.

        While the name of its host does not resolve, messages to it are kept. A host name is
        looked up again whenever the peer does not answer.

        Raises:
            ValueError: The name or the address is malformed, or there are too many peers.
        """
        split(place)
        if self._waker is None:
            self._places[name] = place
            return
        with self._lock:
            changes = self._remember(name, place)
        self._look_up(name, place)
        if changes:
            with self._lock:
                self._look_again()

    def _find(self, name: str, place: Place) -> Address | None:
        """Return the address of a peer, or None if it cannot be resolved yet."""
        try:
            return lookup_now(place, self._here)
        except OSError as error:
            self._event_log.no_address(name, error)
            return None

    def _look_up(self, name: str, place: Place) -> None:
        """Have the transport know a process at the address that its place has now."""
        address = self._find(name, place)
        with self._lock:
            if self._open:
                self._meet(name, address, time.monotonic())
                self._wake()

    def _resolve(self, name: str) -> None:
        """Find the address of a process."""
        place = self._resolver(name) if self._resolver is not None else None
        if inspect.isawaitable(place):
            raise TypeError("the resolver of a blocking node must not be a coroutine function")
        if place is None:
            place = self._places.get(name)
        if place is None:
            raise UnknownPeer([name])
        self._look_up(name, place)

    def _look_again(self) -> None:
        """Look from now on again and again for peers that do not answer."""
        if self._resolving is None and self._open:
            self._resolving = threading.Thread(target=self._resolve_lost, daemon=True)
            self._resolving.start()

    def _resolve_lost(self) -> None:
        while not self._stopping.wait(self._transport.config.silent_after):
            with self._lock:
                names = self._lost()
            for name in names:
                try:
                    self._resolve(name)
                except Exception as error:
                    self._event_log.no_address(name, error)
