"""Packets of any protocol as bytes, for the link (`link`). The layout is in docs/wire.md.

A packet is the index of its kind among those of its protocol, then its fields, each with a
byte in front that states its type. Nothing is looked up by a name that came from the network,
and nothing is executed: the result can only be a packet of a kind in the table, and its class
checks its fields as it does everywhere.

The table is written down, since the order in it is part of the format. A protocol of another
package states its kinds of packet, in order, as the attribute `packets` of its endpoint class.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..core import adaptive, bss, cykas, fifo, hybrid, ks, mf, newtop, pak, rst
from ..core.endpoint import Packet, RemoteProtocolError
from ..core.errors import LocalProtocolError
from ..protocols import Protocol
from .varint import LARGEST, MalformedError, get, get_bytes, put

__all__ = ["Codec", "kinds"]

_CYKAS: tuple[type[Packet], ...] = (cykas.Normal, cykas.Eager, cykas.Ack, cykas.Yct)
_PAK: tuple[type[Packet], ...] = (pak.PakMessage, pak.Ack)
_HYBRID: tuple[type[Packet], ...] = (hybrid.HybridMessage, fifo.Ack, hybrid.Permit, hybrid.Ask)

_ADAPTIVE: tuple[type[Packet], ...] = (
    adaptive.AdaptiveMessage,
    fifo.Ack,
    adaptive.Part,
    adaptive.Got,
    adaptive.News,
    adaptive.Seen,
)

_KINDS: dict[str, tuple[type[Packet], ...]] = {
    "adaptive": _ADAPTIVE,
    "csps": _HYBRID,
    "sps": _HYBRID,
    "fifo": (fifo.FifoMessage, fifo.Ack),
    "mf": (mf.MfMessage, mf.Ack),
    "cykas": _CYKAS,
    "cykas-as-printed": _CYKAS,
    "cykas-secret-sends": _CYKAS,
    "rst": (rst.RstMessage,),
    "ks": (ks.KsMessage,),
    "newtop": (newtop.NewtopMessage, newtop.Null),
    "pak": _PAK,
    "pak-credit": _PAK,
    "pak-nak": _PAK,
    "bss": (bss.BssMessage,),
    "unordered": (fifo.Datagram,),
}

FALSE, TRUE, NUMBER, BIG, TEXT, BYTES, TUPLE, SET, ALL_BUT, VECTOR = range(10)

_EMPTY: frozenset[Any] = frozenset()
"""Two bytes suffice to ask for one, so all share one object."""

DEEPEST = 6
"""The deepest nesting of tuples and sets."""


def kinds(protocol: Protocol) -> tuple[type[Packet], ...]:
    """Return the kinds of packet that a protocol has, in the order of the format.

    Raises:
        LocalProtocolError: The protocol does not state them.
    """
    stated = getattr(protocol.endpoint, "packets", None)
    if stated is not None:
        return tuple(stated)
    if protocol.name in _KINDS:
        return _KINDS[protocol.name]
    raise LocalProtocolError(
        f"the protocol {protocol.name!r} cannot run on a network: its endpoint class "
        f"{protocol.endpoint.__name__} has no attribute `packets` that lists its kinds of packet"
    )


class Codec:
    """Writes and reads the packets of one protocol."""

    __slots__ = ("_index", "_kinds", "_name")

    def __init__(self, protocol: Protocol) -> None:
        self._name = protocol.name
        self._kinds = kinds(protocol)
        self._index = {kind: bytes((k,)) for k, kind in enumerate(self._kinds)}

    def encode(self, packet: Packet) -> bytes:
        """Return a packet as bytes; its payload must be bytes.

        Raises:
            TypeError: It contains something that has no form on the wire.
        """
        kind = type(packet)
        if kind not in self._index:
            raise TypeError(f"{packet!r} is no packet of {self._name}")
        parts = [self._index[kind]]
        if kind is pak.PakMessage:
            _put_vector(parts, packet[1])
            _put(parts, packet[2])
        else:
            for field in packet[1:]:
                _put(parts, field)
        return b"".join(parts)

    def decode(self, data: bytes) -> Packet:
        """Return the packet in these bytes.

        Raises:
            MalformedError: There is none that is well formed.
        """
        if not data or data[0] >= len(self._kinds):
            raise MalformedError("no such kind of packet")
        made = self._kinds[data[0]]
        fields = []
        at = 1
        for _ in made.fields:
            field, at = _get(data, at, DEEPEST)
            fields.append(field)
        if at != len(data):
            raise MalformedError("bytes after a packet")
        payload = dict(zip(made.fields, fields, strict=True)).get("payload", b"")
        if type(payload) is not bytes:
            raise MalformedError("a payload that is not bytes")
        make: Callable[..., Packet] = made
        try:
            return make(*fields)
        except RemoteProtocolError as error:
            raise MalformedError(str(error)) from None


def _put_vector(parts: list[bytes], vector: tuple[int, ...]) -> None:
    """Write small integers with as many bits each as the largest needs.

    The entries of a vector of PAK are below k, so this takes at most n * ceil(log2 k) bits
    in addition to the number of entries and of bits.
    """
    bits = max(1, max(vector, default=0).bit_length())
    parts += (b"\x09", put(len(vector)), put(bits))
    for first in range(0, len(vector), 8):  # eight entries fill as many bytes as each has bits
        some = vector[first : first + 8]
        packed = 0
        for entry in reversed(some):
            packed = packed << bits | entry
        parts.append(packed.to_bytes((bits * len(some) + 7) // 8, "little"))


def _get_vector(data: bytes, at: int) -> tuple[tuple[int, ...], int]:
    count, at = get(data, at)
    bits, at = get(data, at)
    if not 0 < bits <= 62:
        raise MalformedError("a vector with an impossible width")
    end = at + (bits * count + 7) // 8
    if end > len(data):
        raise MalformedError("cut short")
    mask = (1 << bits) - 1
    shifts = range(0, 8 * bits, bits)
    entries: list[int] = []
    for start in range(at, end, bits):
        packed = int.from_bytes(data[start : min(start + bits, end)], "little")
        entries += [packed >> shift & mask for shift in shifts]
    del entries[count:]
    return tuple(entries), end


def _put(parts: list[bytes], value: Any) -> None:
    kind = value.__class__
    if kind is bool:
        parts.append(b"\x01" if value else b"\x00")
    elif kind is int and 0 <= value <= LARGEST:
        parts += (b"\x02", put(value))
    elif kind is int and value > 0:
        raw = value.to_bytes((value.bit_length() + 7) // 8, "big")
        parts += (b"\x03", put(len(raw)), raw)
    elif kind is str:
        raw = value.encode()
        parts += (b"\x04", put(len(raw)), raw)
    elif kind is bytes:
        parts += (b"\x05", put(len(value)), value)
    elif kind is tuple:
        parts += (b"\x06", put(len(value)))
        for item in value:
            _put(parts, item)
    elif kind is frozenset:
        parts += (b"\x07", put(len(value)))
        for item in sorted(value):
            _put(parts, item)
    elif kind is ks.AllBut:
        parts.append(b"\x08")
        _put(parts, value.names)
    else:
        raise TypeError(f"{value!r} in a packet has no form on the wire")


def _get(data: bytes, at: int, depth: int) -> tuple[Any, int]:
    if at >= len(data):
        raise MalformedError("cut short")
    if not depth:
        raise MalformedError("nested too deeply")
    kind = data[at]
    at += 1
    if kind == NUMBER:
        return get(data, at)
    if kind == BYTES:
        return get_bytes(data, at, len(data))
    if kind == TEXT:
        raw, at = get_bytes(data, at, len(data))
        try:
            return raw.decode(), at
        except UnicodeDecodeError:
            raise MalformedError("not text") from None
    if kind in (TUPLE, SET):
        count, at = get(data, at)
        if count > len(data) - at:
            raise MalformedError("cut short")
        items = []
        for _ in range(count):
            item, at = _get(data, at, depth - 1)
            items.append(item)
        if kind == TUPLE:
            return tuple(items), at
        return frozenset(items) if items else _EMPTY, at
    if kind == VECTOR:
        return _get_vector(data, at)
    if kind == ALL_BUT:
        names, at = _get(data, at, depth - 1)
        return ks.AllBut(names), at
    if kind == BIG:
        raw, at = get_bytes(data, at, 64)
        return int.from_bytes(raw, "big"), at
    if kind in (FALSE, TRUE):
        return kind == TRUE, at
    raise MalformedError(f"unknown type of field, {kind}")
