"""How many bytes things take on the network.

A packet says itself how much metadata it carries, in integers and identifiers;
here is what one of each weighs. Nothing is computed from the name of a protocol.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

from ..core.endpoint import Packet
from .settings import Settings, by, data_size

__all__ = ["Shape", "Shapes", "Sizes"]

_PERMITS = ("permit", "yct")
"""Kinds of packet that give leave to send: Almeida's PERMIT, Cykas's YCT."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes(Settings):
    """Bytes of each thing that a packet is made of.

    `message`, `ack`, `permit` and `control` are what a packet of that sort takes
    before its payload, integers and identifiers: addresses, kind, framing.
    """

    label: ClassVar[str] = "sizes"
    payload: int = field(default=100, metadata=by(data_size))
    integer: int = field(default=4, metadata=by(data_size))
    identifier: int = field(default=4, metadata=by(data_size))
    message: int = field(default=16, metadata=by(data_size))
    ack: int = field(default=16, metadata=by(data_size))
    permit: int = field(default=16, metadata=by(data_size))
    control: int = field(default=16, metadata=by(data_size))


class Shape:
    """What the simulator has to know of one class of packets, looked up once.

    `sort` is `message`, `ack`, `permit` or `control`. Metadata that is the same
    for all packets of the class is weighed once.
    """

    __slots__ = (
        "_identifier",
        "_integer",
        "count",
        "fixed",
        "kind",
        "mid",
        "payload",
        "sort",
        "varies",
        "weigh",
    )

    def __init__(self, packet: type[Packet], sizes: Sizes, weigh: bool) -> None:
        fields = packet.fields
        self.kind = packet.kind
        self.payload = fields.index("payload") + 1 if "payload" in fields else 0
        """Where in the packet the message is; 0: it carries none."""
        self.mid = fields.index("mid") + 1 if "mid" in fields else 0
        if self.payload:
            self.sort = "message"
        elif packet.kind == "ack":
            self.sort = "ack"
        else:
            self.sort = "permit" if packet.kind in _PERMITS else "control"
        self._integer = sizes.integer
        self._identifier = sizes.identifier
        self.fixed: int = getattr(sizes, self.sort)
        """Bytes of metadata that all packets of this class have."""
        self.varies = not (isinstance(packet.integers, int) and isinstance(packet.identifiers, int))
        if not self.varies:
            self.fixed += packet.integers * sizes.integer + packet.identifiers * sizes.identifier
        self.weigh = weigh or self.varies
        """Whether each packet has to be weighed as it leaves."""
        self.count = 0
        """Packets of this class that were put on the network."""

    def metadata(self, packet: Any) -> int:
        """The bytes of a packet that are not payload."""
        if not self.varies:
            return self.fixed
        carried: int = packet.integers * self._integer + packet.identifiers * self._identifier
        return self.fixed + carried


class Shapes(dict[type[Packet], Shape]):
    """The shapes of all classes of packets met so far."""

    __slots__ = ("_sizes", "_weigh")

    def __init__(self, sizes: Sizes, weigh: bool) -> None:
        super().__init__()
        self._sizes = sizes
        self._weigh = weigh

    def __missing__(self, packet: type[Packet]) -> Shape:
        shape = self[packet] = Shape(packet, self._sizes, self._weigh)
        return shape
