"""How the kit writes its messages: a mark, the kind, and fields.

A message of the kit begins with `MARK`, which distinguishes it from what an application sends
with `Node.send` directly. Numbers are those of the transport (`varint`); text and bytes follow
their length. A frame that is cut short or malformed raises `MalformedError`, and is dropped.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from enum import IntEnum
from typing import TypeAlias

from ..transport import varint

__all__ = [
    "HEADERS_MOST",
    "MARK",
    "HeaderValue",
    "Headers",
    "Kind",
    "MalformedError",
    "Reader",
    "put_blob",
    "put_headers",
    "put_number",
    "put_text",
]

MARK = b"\xcaW\x01"
"""The first bytes of every message of the kit; the last one is the version."""

HEADERS_MOST = 16 << 10
"""The most bytes that headers may take."""

HeaderValue: TypeAlias = str | int | float | bool | bytes
Headers: TypeAlias = Mapping[str, HeaderValue]

put_number = varint.put
MalformedError = varint.MalformedError


class Kind(IntEnum):
    """What a message of the kit is."""

    REQUEST = 1
    ANSWER = 2
    ERROR = 3
    CANCEL = 4
    GROUP = 5
    PART = 6


def put_blob(data: bytes) -> bytes:
    """Return bytes after their length."""
    return put_number(len(data)) + data


def put_text(text: str) -> bytes:
    """Return a string, which may be empty, after its length."""
    return put_blob(text.encode())


def put_headers(headers: Headers | None) -> bytes:
    """Return headers as bytes.

    Raises:
        TypeError: A key or a value has another type than `HeaderValue` allows.
        ValueError: They are too long.
    """
    if not headers:
        return b"\0"
    parts = [put_number(len(headers))]
    for key, value in headers.items():
        if not isinstance(key, str):
            raise TypeError(f"the name of a header is a string, not {key!r}")
        parts.append(put_text(key))
        if isinstance(value, str):
            parts += b"s", put_text(value)
        elif isinstance(value, bool):
            parts.append(b"t" if value else b"f")
        elif isinstance(value, int):
            size = value.bit_length() // 8 + 1
            parts += b"i", put_blob(value.to_bytes(size, "big", signed=True))
        elif isinstance(value, float):
            parts += b"d", struct.pack(">d", value)
        elif isinstance(value, bytes):
            parts += b"b", put_blob(value)
        else:
            raise TypeError(f"the header {key!r} has a value of type {type(value).__name__}")
    data = b"".join(parts)
    if len(data) > HEADERS_MOST:
        raise ValueError(f"headers take {len(data)} bytes, more than {HEADERS_MOST}")
    return data


class Reader:
    """Reads fields one after another."""

    __slots__ = ("_at", "_data")

    def __init__(self, data: bytes, at: int = 0) -> None:
        self._data = data
        self._at = at

    def number(self) -> int:
        """Return the next field, a number.

        Raises:
            MalformedError: The data ends too early.
        """
        n, self._at = varint.get(self._data, self._at)
        return n

    def blob(self) -> bytes:
        """Return the next field, bytes.

        Raises:
            MalformedError: The data ends too early.
        """
        data, self._at = varint.get_bytes(self._data, self._at, len(self._data))
        return data

    def text(self) -> str:
        """Return the next field, a string.

        Raises:
            MalformedError: The data ends too early, or is not text.
        """
        try:
            return self.blob().decode()
        except UnicodeDecodeError:
            raise MalformedError("not text") from None

    def headers(self) -> dict[str, HeaderValue]:
        """Return the next field, headers.

        Raises:
            MalformedError: The data ends too early, or a type is not known.
        """
        headers: dict[str, HeaderValue] = {}
        for _ in range(self.number()):
            key = self.text()
            tag = self.take(1)
            if tag == b"s":
                headers[key] = self.text()
            elif tag == b"i":
                headers[key] = int.from_bytes(self.blob(), "big", signed=True)
            elif tag == b"d":
                headers[key] = float(struct.unpack(">d", self.take(8))[0])
            elif tag == b"b":
                headers[key] = self.blob()
            elif tag in (b"t", b"f"):
                headers[key] = tag == b"t"
            else:
                raise MalformedError(f"a header of the unknown type {tag!r}")
        return headers

    def rest(self) -> bytes:
        """Return everything that is left."""
        return self._data[self._at :]

    def take(self, size: int) -> bytes:
        """Return the next bytes.

        Raises:
            MalformedError: The data ends too early.
        """
        data = self._data[self._at : self._at + size]
        if len(data) < size:
            raise MalformedError("cut short")
        self._at += size
        return data
