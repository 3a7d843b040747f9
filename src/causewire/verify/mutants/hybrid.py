"""Mistakes that can be made in `csps` and in `sps` alike, to be mixed into either."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

from ...core.endpoint import Outgoing, Packet
from ...core.hybrid import HybridEndpoint, HybridMessage, HybridPeer, Permit

__all__ = ["EarlyPermitsDropped", "FlagsDropped", "PermitsIgnored", "UpcallFirst"]


def _unflagged(message: Packet) -> Packet:
    return HybridMessage(message[1], message[2], message[3], False)


class FlagsDropped(HybridEndpoint[Any]):
    """Some messages leave without the flag that they need."""

    __slots__ = ()

    @abstractmethod
    def _drops(self, to: str, mid: int) -> bool:
        """Whether the flag of a message that leaves now is dropped."""

    def take_packets(self) -> list[Outgoing]:
        return [
            (to, _unflagged(packet))
            if packet.__class__ is HybridMessage and self._drops(to, packet[1])
            else (to, packet)
            for to, packet in super().take_packets()
        ]


class PermitsIgnored(HybridEndpoint[Any]):
    """Sends at once, whatever it may have learned."""

    __slots__ = ()

    def _accept(self, source: str, peer: HybridPeer, message: Packet) -> None:
        super()._accept(source, peer, _unflagged(message))


class EarlyPermitsDropped(HybridEndpoint[Any]):
    """A permit that overtakes its message is forgotten."""

    __slots__ = ()

    def receive(self, source: str, packet: Packet) -> None:
        if isinstance(packet, Permit):
            peer = self._peers.get(source)
            if peer is None or not peer.delivered:
                return
            packet = Permit(min(packet[1], peer.delivered))
        super().receive(source, packet)


class UpcallFirst(HybridEndpoint[Any]):
    """The application gets a message before its permit is known to be missing."""

    __slots__ = ()

    def _accept(self, source: str, peer: HybridPeer, message: Packet) -> None:
        super()._accept(source, peer, _unflagged(message))
        if message[4] and message[1] > peer.permit:
            self._missing.add((source, message[1]))
