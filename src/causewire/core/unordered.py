"""No order at all: a message is delivered when it arrives.

The endpoint keeps no state and has no defence against faults: what the network loses
is lost, and what it duplicates is delivered twice. It is the known-bad that every check
of any order must catch, and the lower bound of cost.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable
from typing import Any, Self

from .endpoint import (
    Blocked,
    Endpoint,
    Footprint,
    NumberedMessage,
    Packet,
    RemoteProtocolError,
    destinations,
)

__all__ = ["Datagram", "Unordered"]

_new = tuple.__new__


class Datagram(NumberedMessage):
    """Message `mid`, on its own."""

    __slots__ = ()
    kind = "msg"


class Unordered(Endpoint):
    """Delivers on arrival: no state, no order, and no defence against faults."""

    __slots__ = ()

    def send(self, to: str | Collection[str], payload: Any) -> int:
        names = (to,) if isinstance(to, str) and to else destinations(to)
        if self._forgotten:
            self._refuse_forgotten(names)
        mid = self._mid = self._mid + 1
        message = _new(Datagram, ("msg", mid, payload))
        for name in names:
            if name != self.me:
                self._packets.append((name, message))
        if self.me in names:
            self._deliver(self.me, mid, payload)
        return mid

    def receive(self, source: str, packet: Packet) -> None:
        if packet.__class__ is not Datagram or source == self.me:
            raise RemoteProtocolError(
                f"{source!r} sent {packet!r}, which is not a packet of unordered"
            )
        if source not in self._forgotten:
            self._deliver(source, packet[1], packet[2])

    def _forget(self, peer: str) -> tuple[int, ...]:
        return ()

    def blocked(self) -> list[Blocked]:
        return []

    def footprint(self) -> Footprint:
        return Footprint(1, {"msg": Datagram.integers})

    def _state(self) -> Hashable:
        return ()

    def _copy_into(self, twin: Self) -> None:
        pass
