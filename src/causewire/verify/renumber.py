"""Message numbers relative to each other, which make an endless run a finite system.

Message numbers grow without bound, and so does the number of states of a process that
never stops sending. But a protocol only compares a number with other numbers of the
same sender. Two states of the whole system are therefore equivalent if all numbers of
each sender differ by a constant, and the state in which each sender's oldest number in
use is 0 can stand for all of them.

An endpoint or a packet is split into a *shape* and the numbers in it, each with the
sender whose message it counts. 0, which means "none", is part of the shape. Endpoints
are never changed: only the values by which states are compared are shifted.

A protocol takes part by implementing `Endpoint.relative_state`, and by naming the
numbers in its packets (`Packet.numbers` and `Packet.numbered_by`).
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from typing import Any, NamedTuple, TypeAlias

from ..core.endpoint import Endpoint, Note, Packet

__all__ = ["Described", "canonical", "described", "described_packet", "with_numbers"]

Number: TypeAlias = tuple[str, int]
"""A sender and the number of one of its messages."""


class Described(NamedTuple):
    """An endpoint or a packet, split into its shape and its message numbers."""

    shape: Hashable
    numbers: tuple[Number, ...]


def _describe(state: Callable[[Note], Hashable]) -> Described:
    numbers: list[Number] = []

    def note(sender: str, number: int) -> str:
        if not number:
            return "none"
        numbers.append((sender, number))
        return "#"

    shape = state(note)
    return Described(shape, tuple(numbers))


def described(endpoint: Endpoint) -> Described:
    """Return the shape and the numbers of an endpoint.

    Raises:
        LocalProtocolError: The endpoint does not implement `relative_state`.
    """
    return _describe(endpoint.relative_state)


def described_packet(source: str, destination: str, packet: Packet) -> Described:
    """Return the shape and the numbers of a packet; payloads are left out."""
    sender = source if packet.numbered_by == "source" else destination

    def state(note: Note) -> Hashable:
        parts: list[Any] = [packet.kind]
        for field, value in zip(packet.fields, packet[1:], strict=True):
            if field in packet.numbers:
                parts.append(note(sender, value))
            elif field not in ("payload", "mid"):  # `mid` outside `numbers` is only a name
                parts.append(value)
        return tuple(parts)

    return _describe(state)


def with_numbers(packet: Packet, numbers: Iterable[int]) -> Packet:
    """Return a packet like the given one, with other message numbers in place of its own."""
    new = iter(numbers)
    make: Callable[..., Packet] = type(packet)
    fields = zip(packet.fields, packet[1:], strict=True)
    return make(
        *[next(new) if name in packet.numbers and value else value for name, value in fields]
    )


def canonical(parts: Iterable[Described]) -> Hashable:
    """Return the value by which a state is compared.

    That is its shapes, and its numbers relative to the oldest number of each sender.
    """
    shapes = []
    numbers: list[Number] = []
    for part in parts:
        shapes.append(part.shape)
        numbers += part.numbers
    oldest: dict[str, int] = {}
    for sender, number in numbers:
        if number < oldest.get(sender, number + 1):
            oldest[sender] = number
    return (tuple(shapes), tuple([number - oldest[sender] for sender, number in numbers]))
