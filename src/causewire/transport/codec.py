"""Packets of any protocol as bytes, for the link (`link`). The layout is in docs/wire.md.

A packet is the index of its kind among those of its protocol, then its fields,
each with a byte in front that says what it is. Nothing is ever looked up by a name
that came from the network, and nothing is run: what can be made is a packet of a
kind in the table, and its class checks its fields as it does everywhere.

The table is written down, since the order in it is part of the format.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..core import bss, cykas, fifo, hybrid, ks, mf, newtop, pak, rst
from ..core.endpoint import Packet, RemoteProtocolError
from .varint import LARGEST, MalformedError, get, get_bytes, put

__all__ = ["decode", "encode", "kinds"]

_CYKAS: tuple[type[Packet], ...] = (cykas.Normal, cykas.Eager, cykas.Ack, cykas.Yct)
_PAK: tuple[type[Packet], ...] = (pak.PakMessage, pak.Ack)
_HYBRID: tuple[type[Packet], ...] = (hybrid.HybridMessage, fifo.Ack, hybrid.Permit, hybrid.Ask)

_KINDS: dict[str, tuple[type[Packet], ...]] = {
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

FALSE, TRUE, NUMBER, BIG, TEXT, BYTES, TUPLE, SET, ALL_BUT = range(9)

_EMPTY: frozenset[Any] = frozenset()
"""Made by two bytes, so one for all."""

DEEPEST = 6
"""How deep tuples and sets may be nested."""


def kinds(protocol: str) -> tuple[type[Packet], ...]:
    """The kinds of packet that a protocol has, in the order of the format."""
    return _KINDS[protocol]


def encode(protocol: str, packet: Packet) -> bytes:
    """A packet of that protocol as bytes; payloads must be bytes."""
    parts = [bytes((_KINDS[protocol].index(type(packet)),))]
    for field in packet[1:]:
        _put(parts, field)
    return b"".join(parts)


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
        raise TypeError(f"a packet cannot have {value!r} in it on the wire")


def decode(protocol: str, data: bytes) -> Packet:
    """The packet in these bytes, well formed; `MalformedError` if there is none."""
    classes = _KINDS[protocol]
    if not data or data[0] >= len(classes):
        raise MalformedError("no such kind of packet")
    made = classes[data[0]]
    fields = []
    at = 1
    for _ in made.fields:
        field, at = _get(data, at, DEEPEST)
        fields.append(field)
    if at != len(data):
        raise MalformedError("bytes behind a packet")
    payload = dict(zip(made.fields, fields, strict=True)).get("payload", b"")
    if type(payload) is not bytes:
        raise MalformedError("a payload that is not bytes")
    make: Callable[..., Packet] = made
    try:
        return make(*fields)
    except RemoteProtocolError as error:
        raise MalformedError(str(error)) from None


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
    if kind == ALL_BUT:
        names, at = _get(data, at, depth - 1)
        return ks.AllBut(names), at
    if kind == BIG:
        raw, at = get_bytes(data, at, 64)
        return int.from_bytes(raw, "big"), at
    if kind in (FALSE, TRUE):
        return kind == TRUE, at
    raise MalformedError(f"an unknown kind of field, {kind}")
