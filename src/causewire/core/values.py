"""The values that cross the interface of an endpoint: packets, deliveries, reasons, sizes.

All of them are immutable and can be compared; packets can be hashed and pickled as well.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any, ClassVar, Literal, NamedTuple, Self, TypeAlias

from .errors import RemoteProtocolError

__all__ = [
    "WORD_BITS",
    "Blocked",
    "Delivery",
    "Footprint",
    "Note",
    "Numbered",
    "NumberedMessage",
    "Outgoing",
    "Packet",
    "Wait",
    "check_number",
]


def check_number(what: str, n: object, least: int) -> None:
    """Check a field of a packet: an integer of at least `least`.

    Raises:
        RemoteProtocolError: It is something else.
    """
    if type(n) is not int or n < least:
        raise RemoteProtocolError(f"{what} must be an integer from {least} upward, not {n!r}")


class Packet(tuple[Any, ...]):
    """What travels between endpoints: an immutable, hashable, picklable value.

    A packet is a tuple. Its first item is its kind, so packets of different kinds are
    never equal; the other items are its fields. Each kind is a subclass that names its
    fields in `__new__` and checks them there. An instance is therefore well formed,
    wherever it came from, and `receive` only has to decide whether a correct peer could
    have sent it.

    An endpoint knows what it puts into a packet, and may skip that check by making
    packets with `tuple.__new__` (this is the hot path).
    """

    __slots__ = ()

    kind: ClassVar[str]
    """Short name of this kind of packet, also its first item."""

    fields: ClassVar[tuple[str, ...]]
    """Names of the other items, in order."""

    integers: int = 0
    """Metadata carried, in integers; flags are not counted as integers."""

    identifiers: int = 0
    """Metadata carried, in process identifiers."""

    flags: int = 0
    """Metadata carried, in flags of one bit."""

    numbers: ClassVar[tuple[str, ...]] = ()
    """Names of the fields with message numbers that endpoints compare with others."""

    numbered_by: ClassVar[Literal["source", "destination"]] = "source"
    """Whose messages these numbers count: an ack carries a number of its destination."""

    def __reduce__(self) -> tuple[type[Self], tuple[Any, ...]]:
        return type(self), tuple(self[1:])

    def __repr__(self) -> str:
        named = zip(self.fields, self[1:], strict=True)
        return f"{type(self).__name__}({', '.join(f'{k}={v!r}' for k, v in named)})"


class Numbered(Packet):
    """A packet about message `mid`, with no other field; its kind says what it means."""

    __slots__ = ()
    fields = ("mid",)
    numbers = ("mid",)
    integers = 1

    def __new__(cls, mid: int) -> Self:
        check_number("mid", mid, 1)
        return tuple.__new__(cls, (cls.kind, mid))


class NumberedMessage(Packet):
    """Message `mid`, with no metadata except its number."""

    __slots__ = ()
    fields = ("mid", "payload")
    numbers: ClassVar[tuple[str, ...]] = ("mid",)
    integers = 1

    def __new__(cls, mid: int, payload: Any) -> Self:
        check_number("mid", mid, 1)
        return tuple.__new__(cls, (cls.kind, mid, payload))


class Delivery(NamedTuple):
    """A message handed to the application.

    An application that reports what it has handled (`Node(reports_handled=True)`) calls
    `done`, or handles the message in a `with` or `async with` block, which calls it at the
    end unless an exception leaves the block. Anywhere else, this does nothing.
    """

    source: str
    mid: int
    payload: Any

    def done(self) -> None:
        """Say that the application has handled the message."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, value: object, traceback: object) -> None:
        if kind is None:
            self.done()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, kind: object, value: object, traceback: object) -> None:
        if kind is None:
            self.done()


class Wait(NamedTuple):
    """One thing that a blocked message waits for.

    `kind` says what is missing: `permit` or `ack` (a control packet from `peer` about
    message `mid`), `predecessor` (message `mid` of `peer`, which must be delivered here
    first) or `word` (any packet from `peer` that shows that its clock has passed `mid`).
    """

    kind: str
    peer: str
    mid: int

    def __str__(self) -> str:
        if self.kind == "predecessor":
            return f"the delivery of message {self.mid} of {self.peer}"
        if self.kind == "word":
            return f"word from {self.peer} that its clock has passed {self.mid}"
        return f"the {self.kind} of {self.peer} for message {self.mid}"


class Blocked(NamedTuple):
    """A message that is held back, where, and why.

    `where` is `sender` if this process has sent the message and has not released it to
    `destination`. It is `receiver` if the message has arrived here, at `destination`.
    """

    origin: str
    mid: int
    destination: str
    where: str
    waits: tuple[Wait, ...]

    def __str__(self) -> str:
        reasons = ", ".join(map(str, self.waits)) or "nothing that will come: it is stuck"
        return (
            f"message {self.mid} from {self.origin} to {self.destination}, "
            f"held at its {self.where}, waits for {reasons}"
        )


WORD_BITS = 64
"""Bits of an integer without a bound, and of a process identifier, in a `Footprint`."""


class _FootprintFields(NamedTuple):
    state: int
    """Integers and identifiers that the endpoint holds."""
    packet: dict[str, int]
    """Integers and identifiers in the metadata of a packet sent now, by kind of packet."""
    state_bits: int
    """Bits that the endpoint holds."""
    packet_bits: dict[str, int]
    """Bits in the metadata of a packet sent now, by kind of packet."""


class Footprint(_FootprintFields):
    """The space that an endpoint and its packets take, payloads not included.

    Almeida's unit of space is the integer or process identifier, Baldoni's is the bit.
    In bits, a flag counts as 1, an entry of a vector modulo k as the logarithm of k
    to base 2, rounded up, and everything else as `WORD_BITS`.

    Args:
        state: Integers and identifiers that the endpoint holds.
        packet: Integers and identifiers in the metadata of a packet sent now, by kind.
        state_bits: Bits that the endpoint holds; by default `WORD_BITS` for each of `state`.
        packet_bits: Bits in the metadata of a packet; by default, likewise.
    """

    __slots__ = ()

    def __new__(
        cls,
        state: int,
        packet: dict[str, int],
        state_bits: int | None = None,
        packet_bits: dict[str, int] | None = None,
    ) -> Self:
        if state_bits is None:
            state_bits = WORD_BITS * state
        if packet_bits is None:
            packet_bits = {kind: WORD_BITS * count for kind, count in packet.items()}
        return super().__new__(cls, state, packet, state_bits, packet_bits)

    def plus(self, state: int) -> Footprint:
        """Return this footprint with `state` more integers or identifiers held."""
        bits = self.state_bits + WORD_BITS * state
        return Footprint(self.state + state, self.packet, bits, self.packet_bits)


Note: TypeAlias = Callable[[str, int], Hashable]
"""Called with a sender and the number of one of its messages; see `relative_state`."""

Outgoing: TypeAlias = tuple[str, Packet]
"""A packet and the process to which the driver is to carry it."""
