"""What the transport sees of a protocol: messages in a chain, acks, permits.

`csps`, `sps` and `fifo` number and chain their messages, acknowledge by watermark
and bear any network: the transport carries just that, and so drives them directly
(`Native`). Every other protocol is made to look so by a link underneath (`link`).

The transport hands messages of each peer over in the order of their chain, and
only when the application has room; a native protocol delivers each at once.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable
from typing import Any

from ..core import fifo, hybrid
from ..core.endpoint import Blocked, Delivery
from ..core.run import MessageRun
from ..protocols import create

__all__ = ["Carrier", "Native"]


class Carrier(ABC):
    """One process's protocol, in the shape that the transport carries."""

    protocol: str
    permits: bool
    """Whether messages have a flag for permits."""
    forgets: bool
    """Whether it can go on without a peer that is gone, and with its successor."""
    ticks: bool = False
    """Whether it wants `tick` from time to time."""
    send: Callable[[str | Collection[str], Any], int]
    """Causal send; returns the number of the message."""

    @abstractmethod
    def receive(self, source: str, run: MessageRun) -> None:
        """Messages that come next in their chain."""

    @abstractmethod
    def acked(self, source: str, mid: int) -> None:
        """All that was released to `source` up to message `mid` has arrived."""

    @abstractmethod
    def permitted(self, source: str, mid: int) -> None:
        """The messages of `source` up to `mid` are permitted."""

    @abstractmethod
    def take_runs(self) -> list[tuple[str, MessageRun]]:
        """Messages to send."""

    @abstractmethod
    def take_acks(self) -> dict[str, int]:
        """Acks to send: to whom, and of which message."""

    @abstractmethod
    def take_permits(self) -> dict[str, int]:
        """Permits to send: to whom, and for which message."""

    @abstractmethod
    def take_deliveries(self) -> list[Delivery]:
        """What the application is to get."""

    @abstractmethod
    def blocked(self) -> list[Blocked]:
        """What is held back, and why."""

    @abstractmethod
    def confirmed(self, peer: str, acked: int) -> int:
        """The last message of ours that the application of `peer` has.

        `acked` is the last that the transport knows to have arrived there.
        """

    @property
    @abstractmethod
    def idle(self) -> bool:
        """Whether nothing is held back, or waits for an answer."""

    def tick(self) -> None:  # noqa: B027 - most have nothing to do
        """Some time has passed."""


class Native(Carrier):
    """`csps`, `sps` or `fifo`."""

    forgets = True

    def __init__(self, protocol: str, me: str) -> None:
        self.protocol = protocol
        endpoint = create(protocol, me)
        assert isinstance(endpoint, fifo.FifoEndpoint)
        self.endpoint: fifo.FifoEndpoint[Any] = endpoint
        self.permits = isinstance(self.endpoint, hybrid.HybridEndpoint)
        self.send = self.endpoint.send

    def receive(self, source: str, run: MessageRun) -> None:
        self.endpoint.receive_run(source, run)

    def acked(self, source: str, mid: int) -> None:
        self.endpoint.receive(source, fifo.Ack(mid))

    def permitted(self, source: str, mid: int) -> None:
        self.endpoint.receive(source, hybrid.Permit(mid))

    def take_runs(self) -> list[tuple[str, MessageRun]]:
        return self.endpoint.take_runs()

    def take_acks(self) -> dict[str, int]:
        return self.endpoint.take_acks()

    def take_permits(self) -> dict[str, int]:
        return self.endpoint.take_permits()

    def take_deliveries(self) -> list[Delivery]:
        return self.endpoint.take_deliveries()

    def blocked(self) -> list[Blocked]:
        return self.endpoint.blocked()

    def confirmed(self, peer: str, acked: int) -> int:
        return acked

    @property
    def idle(self) -> bool:
        return self.endpoint.idle


def group_of(me: str, peers: Iterable[str]) -> tuple[str, ...]:
    """All members of a fixed group, from the point of view of one of them."""
    return tuple(sorted({me, *peers}))
