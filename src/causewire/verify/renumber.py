"""Message numbers that start anew: what makes an endless run a finite system.

The numbers of messages grow for ever, and with them the number of states of a
process that never stops sending. But a protocol only ever compares a number with
others of the same sender. So a state of the whole system is the same as another
if all numbers of a sender are shifted by the same amount, and the state that has
each sender's oldest number still in use at 0 can stand for all of them.

Here an endpoint, or a packet, is taken apart into a *shape* and the numbers in it,
each with the sender whose message it is a number of. 0, which means "none", is
part of the shape. Nothing is changed in the endpoint itself: the numbers are
shifted in what states are compared by, and nowhere else.

Known are the protocols with acks: `cykas` and its kin, `mf`, `csps` and `sps`.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from typing import Any, NamedTuple, TypeAlias

from ..core.csps import Csps
from ..core.cykas import Cykas
from ..core.endpoint import Endpoint, LocalProtocolError, Packet
from ..core.hybrid import HybridEndpoint
from ..core.mf import Mf
from ..core.sps import Sps

__all__ = ["Described", "canonical", "described", "described_packet"]

Number: TypeAlias = tuple[str, int]
"""A sender, and the number of a message of its."""


class Described(NamedTuple):
    """Something with message numbers in it, taken apart."""

    shape: Hashable
    numbers: tuple[Number, ...]


_Note: TypeAlias = Callable[[str, int], str]


def _describe(take_apart: Callable[[_Note], Hashable]) -> Described:
    numbers: list[Number] = []

    def note(sender: str, number: int) -> str:
        if not number:
            return "none"
        numbers.append((sender, number))
        return "#"

    shape = take_apart(note)
    return Described(shape, tuple(numbers))


def described(endpoint: Endpoint) -> Described:
    """An endpoint, taken apart."""
    if isinstance(endpoint, Cykas):
        return _describe(lambda note: _cykas(endpoint))
    if isinstance(endpoint, Mf):
        return _describe(lambda note: _mf(endpoint, note))
    if isinstance(endpoint, Csps):
        return _describe(lambda note: (_hybrid(endpoint, note), _csps(endpoint, note)))
    if isinstance(endpoint, Sps):
        return _describe(lambda note: (_hybrid(endpoint, note), _sps(endpoint, note)))
    raise LocalProtocolError(
        f"how to renumber the messages of {type(endpoint).__name__} is not known; "
        "it is of cykas, mf, csps and sps"
    )


def described_packet(source: str, destination: str, packet: Packet) -> Described:
    """A packet, taken apart: what acks number are messages of those they go to."""

    def take_apart(note: _Note) -> Hashable:
        sender = destination if packet.kind in ("ack", "ask") else source
        parts: list[Any] = [packet.kind]
        for field, value in zip(type(packet).fields, packet[1:], strict=True):
            if field == "payload":
                continue
            parts.append(note(sender, value) if field in ("mid", "pid") else value)
        return tuple(parts)

    if packet.kind in ("normal", "eager"):
        return Described((packet.kind,), ())  # nobody looks at the number
    return _describe(take_apart)


def canonical(parts: Iterable[Described]) -> Hashable:
    """What a state is compared by: shapes, and numbers from each sender's oldest on."""
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


# -- one by one ---------------------------------------------------------------


def _cykas(endpoint: Cykas) -> Hashable:
    """Cykas compares no numbers at all; they are there to name messages."""
    buffer, *rest = _flat_state(endpoint)
    return (tuple(receiver for receiver, _, _ in buffer), *rest)


def _flat_state(endpoint: Cykas) -> tuple[Any, ...]:
    """The state of `Cykas`, with what a subclass adds behind it."""
    state: Any = endpoint._state()
    if len(state) == 2 and isinstance(state[0], tuple) and len(state[0]) == 4:
        return (*state[0], state[1])
    return tuple(state)


def _mf(endpoint: Mf, note: _Note) -> Hashable:
    me = endpoint.me

    def queue(outgoing: Iterable[tuple[str, Packet]]) -> Hashable:
        return tuple([(name, note(me, packet[1])) for name, packet in outgoing])

    acked = [(name, note(me, n)) for name, n in sorted(endpoint._acked.items())]
    got = [(name, note(name, n)) for name, n in sorted(endpoint._got.items())]
    return (queue(endpoint._ob), queue(endpoint._posted), tuple(acked), tuple(got))


def _hybrid(endpoint: HybridEndpoint[Any], note: _Note) -> Hashable:
    me = endpoint.me
    peers = []
    for name, peer in sorted(endpoint._peers.items()):
        messages = [
            (note(me, message[1]), note(me, message[2]), message[4])
            for message in endpoint._messages(peer, peer.head)
        ]
        early = [
            (note(name, pid), note(name, message[1]), message[4])
            for pid, message in sorted(peer.early.items())
        ]
        permit = peer.permit if peer.permit > peer.delivered else 0
        peers.append(
            (
                name,
                note(me, peer.acked),
                note(me, peer.granted),
                tuple(messages),
                note(name, peer.delivered),
                note(name, permit),
                tuple(early),
            )
        )
    return (tuple(peers), _waits(endpoint, note), note(me, endpoint._mid))


def _waits(endpoint: HybridEndpoint[Any], note: _Note, per: int | None = None) -> Hashable:
    return tuple([(name, note(name, mid)) for name, mid in sorted(endpoint._waits(per).items())])


def _csps(endpoint: Csps, note: _Note) -> Hashable:
    me = endpoint.me
    held = [
        (_waits(endpoint, note, held.per), note(me, mid), names)
        for held in endpoint._held
        for mid, names in held.messages()
    ]
    left = [
        (note(me, mid), names) for mid, names in endpoint._receivers() if mid >= endpoint._oldest
    ]
    return (tuple(left), tuple(held))


def _sps(endpoint: Sps, note: _Note) -> Hashable:
    me = endpoint.me
    buffer: list[Hashable] = []
    for entry in endpoint._buffer:
        if isinstance(entry, str):
            buffer.append(entry)
        else:
            unsent = tuple(sorted(entry.unsent))
            waits = _waits(endpoint, note, entry.per) if unsent else ()
            buffer.append((entry.names, unsent, waits))
    return (note(me, endpoint._buffer.first), tuple(buffer))
