"""Mistakes that can be made in `csps` and in `sps` alike, to be mixed into either."""

from __future__ import annotations

from ...core.endpoint import Packet
from ...core.hybrid import HybridEndpoint, HybridPeer, Message, Permit

__all__ = ["EarlyPermitsDropped", "PermitsIgnored", "UpcallFirst", "reflagged"]


def reflagged(endpoint: HybridEndpoint, mid: int, flag: bool) -> None:
    """Make the packets of a message that are about to leave bear this flag."""
    for k, (to, packet) in enumerate(endpoint._packets):
        if packet.__class__ is Message and packet[1] == mid:
            changed = Message(mid, packet[2], packet[3], flag)
            endpoint._packets[k] = (to, changed)
            endpoint._peers[to].flight[mid] = changed


def _unflagged(message: Packet) -> Packet:
    return Message(message[1], message[2], message[3], False)


class PermitsIgnored(HybridEndpoint):
    """Sends at once, whatever it may have learned."""

    __slots__ = ()

    def _accept(self, source: str, peer: HybridPeer, message: Packet) -> None:
        super()._accept(source, peer, _unflagged(message))


class EarlyPermitsDropped(HybridEndpoint):
    """A permit that overtakes its message is forgotten."""

    __slots__ = ()

    def receive(self, source: str, packet: Packet) -> None:
        if isinstance(packet, Permit):
            peer = self._peers.get(source)
            if peer is None or not peer.delivered:
                return
            packet = Permit(min(packet[1], peer.delivered))
        super().receive(source, packet)


class UpcallFirst(HybridEndpoint):
    """The application gets a message before its permit is known to be missing."""

    __slots__ = ()

    def _accept(self, source: str, peer: HybridPeer, message: Packet) -> None:
        super()._accept(source, peer, _unflagged(message))
        if message[4] and message[1] > peer.permit:
            self._missing.add((source, message[1]))
