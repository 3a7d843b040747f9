"""Numbers of variable length: those of QUIC (RFC 9000, section 16).

The two highest bits of the first byte say how many bytes there are, 1, 2, 4 or 8; the rest
is the number, most significant byte first. Readers accept any length that holds the number;
writers use the shortest.
"""

from __future__ import annotations

import struct

from ..core.errors import CausewireError

__all__ = ["LARGEST", "MalformedError", "get", "get_bytes", "get_text", "put", "put_text"]

LARGEST = (1 << 62) - 1
"""The largest number that can be written."""

_four = struct.Struct(">I").unpack_from

_SMALL = tuple(bytes((n,)) for n in range(64))


class MalformedError(CausewireError):
    """Bytes that no correct peer would have written."""


def put(n: int) -> bytes:
    """Return a number as bytes."""
    if n < 64:
        return _SMALL[n]
    if n < 1 << 14:
        return (n | 1 << 14).to_bytes(2, "big")
    if n < 1 << 30:
        return (n | 2 << 30).to_bytes(4, "big")
    return (n | 3 << 62).to_bytes(8, "big")


def get(data: bytes, at: int) -> tuple[int, int]:
    """Return the number at an index, and the index after it.

    Raises:
        MalformedError: The data ends too early.
    """
    try:
        first = data[at]
        if first < 64:
            return first, at + 1
        if first < 128:
            return (first & 63) << 8 | data[at + 1], at + 2
    except IndexError:
        raise MalformedError("cut short") from None
    end = at + (4 if first < 192 else 8)
    if end > len(data):
        raise MalformedError("cut short")
    if first < 192:
        return _four(data, at)[0] & 0x3FFF_FFFF, end
    return int.from_bytes(data[at:end], "big") & LARGEST, end


def get_bytes(data: bytes, at: int, most: int) -> tuple[bytes, int]:
    """Return bytes after their length, at most `most`, and the index after them.

    Raises:
        MalformedError: The data ends too early, or there are too many bytes.
    """
    size, at = get(data, at)
    end = at + size
    if end > len(data):
        raise MalformedError("cut short")
    if size > most:
        raise MalformedError("too long")
    return data[at:end], end


def put_text(text: str) -> bytes:
    """Return a string as bytes, after their length."""
    raw = text.encode()
    return put(len(raw)) + raw


def get_text(data: bytes, at: int, most: int = 255) -> tuple[str, int]:
    """Return a string that is not empty, and the index after it.

    Raises:
        MalformedError: The data ends too early, or is not text.
    """
    raw, at = get_bytes(data, at, most)
    try:
        text = raw.decode()
    except UnicodeDecodeError:
        raise MalformedError("not text") from None
    if not text:
        raise MalformedError("an empty name")
    return text, at
