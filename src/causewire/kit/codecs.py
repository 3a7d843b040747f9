"""Payloads that are not bytes: JSON, MessagePack, or a pair of functions."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple, TypeAlias

__all__ = ["Codec", "CodecSpec", "codec_of"]


class Codec(NamedTuple):
    """How an application's values become bytes, and bytes values."""

    encode: Callable[[Any], bytes]
    decode: Callable[[bytes], Any]


CodecSpec: TypeAlias = str | tuple[Callable[[Any], bytes], Callable[[bytes], Any]] | None
"""`None` for bytes, `"json"`, `"msgpack"`, or a pair of functions that encode and decode."""


def _bytes(value: Any) -> bytes:
    if value is None:
        return b""
    if isinstance(value, bytes | bytearray | memoryview):
        return bytes(value)
    raise TypeError(f"a payload is bytes unless there is a codec, not {type(value).__name__}")


def _json(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()


def codec_of(spec: CodecSpec) -> Codec:
    """Return the codec that an application has chosen.

    Raises:
        ModuleNotFoundError: It is `"msgpack"`, which is not installed.
        ValueError: It is not known.
    """
    if spec is None:
        return Codec(_bytes, bytes)
    if spec == "json":
        return Codec(_json, json.loads)
    if spec == "msgpack":
        import msgpack

        # What was encoded can be decoded: by default, `unpackb` refuses keys that are numbers.
        return Codec(msgpack.packb, partial(msgpack.unpackb, strict_map_key=False))
    if isinstance(spec, tuple) and len(spec) == 2 and all(map(callable, spec)):
        return Codec(*spec)
    raise ValueError(f"a codec is 'json', 'msgpack' or a pair of functions, not {spec!r}")
