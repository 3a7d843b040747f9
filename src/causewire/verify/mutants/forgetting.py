"""Protocols that forget a process in a wrong way."""

from __future__ import annotations

from typing import Any

from ...core.csps import Csps
from ...core.endpoint import Packet
from ...core.fifo import Ack
from ...core.hybrid import HybridEndpoint
from ...core.sps import Sps
from .table import Mutant

__all__ = ["TABLE"]


class _Unfenced(HybridEndpoint[Any]):
    """What a forgotten process sent is still accepted (F1 left out)."""

    __slots__ = ()

    def forget(self, peer: str) -> tuple[int, ...]:
        before = self._peers.get(peer)
        failed = super().forget(peer)
        self._forgotten.discard(peer)
        if before is not None:
            self._peer(peer).delivered = before.delivered
        return failed

    def receive(self, source: str, packet: Packet) -> None:
        peer = self._peers.get(source)
        if isinstance(packet, Ack) and peer is not None and not peer.mids:
            return  # of a message that counts as failed
        super().receive(source, packet)


class CspsUnfenced(_Unfenced, Csps):
    """`csps` without F1."""

    __slots__ = ()


class SpsUnfenced(_Unfenced, Sps):
    """`sps` without F1."""

    __slots__ = ()


class _StillWaiting(HybridEndpoint[Any]):
    """What was sent to a forgotten process still withholds permits."""

    __slots__ = ()

    def forget(self, peer: str) -> tuple[int, ...]:
        self._forgotten.add(peer)
        return ()


class CspsStillWaiting(_StillWaiting, Csps):
    """`csps` that goes on waiting for acks of a forgotten process."""

    __slots__ = ()


TABLE = (
    Mutant(
        "csps-unfenced",
        "csps",
        CspsUnfenced,
        "",
        "messages of a forgotten process are still accepted",
        "0>1,2; 1>; 2>1",
        {"forgets": 1, "fence": False},
    ),
    Mutant(
        "sps-unfenced",
        "sps",
        SpsUnfenced,
        "",
        "messages of a forgotten process are still accepted",
        "0>1,2; 1>; 2>1",
        {"forgets": 1, "fence": False},
    ),
    Mutant(
        "csps-still-waiting",
        "csps",
        CspsStillWaiting,
        "",
        "what was sent to a forgotten process still withholds permits",
        "0>1,2; 1>; 2>0",
        {"forgets": 1},
    ),
)
