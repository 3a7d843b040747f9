"""One process of a simulated system."""

from __future__ import annotations

from typing import Any

from ...transport import Address, PeerEvent, Transport

__all__ = ["Host"]


class Host:
    """A transport, an application, and the records of the judge about them."""

    __slots__ = (
        "address",
        "backlog",
        "delivered",
        "events",
        "gone",
        "index",
        "knows",
        "life",
        "name",
        "overtaken",
        "paused_until",
        "reads_at",
        "timer_at",
        "to_send",
        "transport",
        "up",
    )

    def __init__(
        self, name: str, index: int, address: Address, transport: Transport[Any], life: int
    ) -> None:
        self.name = name
        self.index = index
        """Its index among the processes, by which the simulator's network knows it."""
        self.address = address
        self.transport = transport
        self.life = life
        self.up = True
        self.gone = False
        """Whether it has left, or is leaving, for good."""
        self.paused_until = 0.0
        self.reads_at = 0.0
        """Its application does not read before this time."""
        self.backlog: list[tuple[bytes, Address]] = []
        """Datagrams that wait in its socket while it is paused."""
        self.timer_at: float | None = None
        self.to_send = 0
        self.events: list[PeerEvent] = []
        self.knows = 0
        """The messages that happened before whatever it sends now, as bits."""
        self.delivered = 0
        self.overtaken = 0
        """The messages that precede a delivered one, and may not be delivered any more."""
