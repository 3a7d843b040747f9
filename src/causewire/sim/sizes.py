"""How many bytes packets take on the network.

A packet says how many integers, identifiers and flags its metadata has, and the
endpoint says how many bits that takes (`Endpoint.metadata_bits`): a flag takes one
bit, and an integer modulo k takes as many bits as k needs. `Sizes` says how large an
integer without a bound and an identifier are. The bits of a packet are rounded up to
whole bytes. Nothing is computed from the name of a protocol.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

from ..core.endpoint import Endpoint, Packet
from .settings import Settings, by, data_size

__all__ = ["Shape", "Shapes", "Sizes"]

_PERMITS = ("permit", "yct")
"""Kinds of packet that permit a send: Almeida's PERMIT, Cykas's YCT."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes(Settings):
    """Bytes of each thing that a packet consists of.

    `message`, `ack`, `permit` and `control` are the bytes of a packet of that sort
    apart from its payload, integers and identifiers: addresses, kind, framing.
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
    """What the simulator has to know about one class of packets, looked up once.

    `sort` is `message`, `ack`, `permit` or `control`. If all packets of the class
    have metadata of the same size, it is computed once.
    """

    __slots__ = (
        "_bits_of",
        "_identifier",
        "_integer",
        "bits",
        "count",
        "head",
        "kind",
        "mid",
        "payload",
        "sort",
        "varies",
        "weigh",
    )

    def __init__(self, packet: type[Packet], sizes: Sizes, endpoint: Endpoint, weigh: bool) -> None:
        fields = packet.fields
        self.kind = packet.kind
        self.payload = fields.index("payload") + 1 if "payload" in fields else 0
        """The position of the message in the packet; 0 if it carries no message."""
        self.mid = fields.index("mid") + 1 if "mid" in fields else 0
        if self.payload:
            self.sort = "message"
        elif packet.kind == "ack":
            self.sort = "ack"
        else:
            self.sort = "permit" if packet.kind in _PERMITS else "control"
        self._bits_of = endpoint.metadata_bits
        self._integer = 8 * sizes.integer
        self._identifier = 8 * sizes.identifier
        self.head: int = getattr(sizes, self.sort)
        """Bytes of addresses, kind and framing."""
        self.varies = not (isinstance(packet.integers, int) and isinstance(packet.identifiers, int))
        self.bits = 0 if self.varies else self.metadata_bits(packet)
        """Bits of metadata of each packet, if that does not vary."""
        self.weigh = weigh or self.varies
        """Whether the size of each packet has to be computed when it is sent."""
        self.count = 0
        """Packets of this class that were put on the network."""

    def metadata_bits(self, packet: Any) -> int:
        """Return the bits of integers, identifiers and flags in a packet."""
        return self._bits_of(packet, self._integer, self._identifier)

    def metadata(self, packet: Any) -> int:
        """Return the bytes of a packet that are not payload."""
        bits = self.metadata_bits(packet) if self.varies else self.bits
        return self.head - (-bits // 8)


class Shapes(dict[type[Packet], Shape]):
    """The shapes of all classes of packets seen so far."""

    __slots__ = ("_endpoint", "_sizes", "_weigh")

    def __init__(self, sizes: Sizes, endpoint: Endpoint, weigh: bool) -> None:
        super().__init__()
        self._sizes = sizes
        self._endpoint = endpoint
        self._weigh = weigh

    def __missing__(self, packet: type[Packet]) -> Shape:
        shape = self[packet] = Shape(packet, self._sizes, self._endpoint, self._weigh)
        return shape
