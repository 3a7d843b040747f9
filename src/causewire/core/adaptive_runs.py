"""The part of `adaptive` that accepts runs: messages in a row, as a driver carries them.

Most messages have no list and wait for their predecessor alone. A run of such messages is
delivered, or held, as one. What a run leads to is the same as what its messages lead to when
they arrive one after the other (`tests/core/test_adaptive_runs.py`).
"""

from __future__ import annotations

from abc import abstractmethod
from itertools import repeat
from typing import Any

from .adaptive_aliases import AliasEndpoint
from .adaptive_packets import AdaptiveMessage, Checked, Listed
from .adaptive_peer import AdaptivePeer
from .endpoint import Delivery, Packet, RemoteProtocolError
from .held import Need
from .run import MessageRun

__all__ = ["RunEndpoint"]

_new = tuple.__new__


class RunEndpoint(AliasEndpoint):
    """Accepts messages in runs."""

    __slots__ = ()

    @abstractmethod
    def _needs_of(self, source: str, message: Packet) -> list[Need] | None:
        """Return what a message has to wait for, or None if it is here already."""

    @abstractmethod
    def _receive_message(self, source: str, message: Packet) -> None:
        """Deliver or hold a message."""

    @abstractmethod
    def _accept(self, source: str, peer: AdaptivePeer, message: Packet) -> None:
        """Deliver a message."""

    def receive_run(self, source: str, run: MessageRun) -> None:
        mids, pid, payloads, per, _ = run
        run.check(source)
        if source in self._forgotten:
            return
        peer = self._peers.get(source)
        held = self._held
        if (
            not per
            and peer is not None
            and pid >= peer.delivered
            and not peer.parts
            and self.on_delivery is None
            and not held.holds_any(source, mids)
        ):
            if pid > peer.delivered:
                held.hold_run(source, run)
                return
            start = 0
            while start < len(mids):
                end = held.awaited(source, mids, start)
                self._deliver_run(source, peer, run, start, end)
                self._settle()
                start = end
            return
        if len(mids) == 1:
            self._receive_message(source, self._arrived(mids[0], pid, payloads[0], per))
            return
        messages = []
        for mid, payload in zip(mids, payloads, strict=True):
            message = self._arrived(mid, pid, payload, per)
            self._needs_of(source, message)
            messages.append(message)
            pid = mid
        for message in messages:
            self._receive_message(source, message)

    @staticmethod
    def _arrived(mid: int, pid: int, payload: Any, listed: bool) -> Packet:
        """Return a message of a run as a packet."""
        if not listed:
            return _new(AdaptiveMessage, ("msg", mid, pid, payload, (), ()))
        if payload.__class__ is Checked:
            return _new(AdaptiveMessage, ("msg", mid, pid, *payload))
        if payload.__class__ is not Listed:
            raise RemoteProtocolError(f"message {mid} has no list")
        return AdaptiveMessage(mid, pid, *payload)

    def _settle(self) -> None:
        """Deliver everything that can be delivered now."""
        for name, message in self._held.take():
            run = self._held.take_run(name, message[1])
            if run is None:
                self._accept(name, self._peers[name], message)
            else:
                self._accept_held(name, self._peers[name], *run)

    def _accept_held(self, source: str, peer: AdaptivePeer, run: MessageRun, start: int) -> None:
        """Deliver the messages of a run that was held, from an index on."""
        end = len(run.mids)
        if self.on_delivery is not None and start + 1 < end:  # one by one, since it may fail
            end = start + 1
            self._held.hold_run(source, run, end)
        self._deliver_run(source, peer, run, start, end)

    def _deliver_run(
        self, source: str, peer: AdaptivePeer, run: MessageRun, start: int, end: int
    ) -> None:
        """Deliver messages of a run, which have no lists."""
        mids, payloads = run.mids, run.payloads
        peer.delivered = self._acks[source] = mids[end - 1]
        self._held.delivered(source, mids[end - 1])
        if end == start + 1:
            self._deliver(source, mids[start], payloads[start])
            return
        if end - start < len(mids):
            mids, payloads = mids[start:end], payloads[start:end]
        self._deliveries += map(_new, repeat(Delivery), zip(repeat(source), mids, payloads))
