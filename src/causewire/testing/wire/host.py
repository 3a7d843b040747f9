"""A process on the wire."""

from __future__ import annotations

from ...transport import Address, Event, Transport

__all__ = ["Host"]


class Host:
    """A transport, an application, and what the judge keeps of them."""

    __slots__ = (
        "address",
        "backlog",
        "delivered",
        "events",
        "index",
        "knows",
        "life",
        "name",
        "overtaken",
        "paused_until",
        "timer_at",
        "to_send",
        "transport",
        "up",
    )

    def __init__(
        self, name: str, index: int, address: Address, transport: Transport, life: int
    ) -> None:
        self.name = name
        self.index = index
        """Its place among the processes: what the simulator's network goes by."""
        self.address = address
        self.transport = transport
        self.life = life
        self.up = True
        self.paused_until = 0.0
        self.backlog: list[tuple[bytes, Address]] = []
        """What waits in its socket while it stands still."""
        self.timer_at: float | None = None
        self.to_send = 0
        self.events: list[Event] = []
        self.knows = 0
        """What has happened before whatever it sends now, as bits."""
        self.delivered = 0
        self.overtaken = 0
        """What may not be delivered any more: it comes before something delivered."""
