"""Numbers on their way to the page: one header in JSON, then arrays as they lie in memory.

4 bytes   length of the header, little-endian
header    {"facts": ..., "arrays": [[name, type, offset, length], ...]}, padded with spaces
arrays    each at a multiple of 8 bytes after the header
"""

from __future__ import annotations

import json
import struct
from typing import Any

import numpy as np

__all__ = ["pack"]

_TYPES = {"f8": "f8", "f4": "f4", "u4": "u4", "i4": "i4", "u2": "u2", "u1": "u1"}


def pack(facts: dict[str, Any], arrays: dict[str, Any]) -> bytes:
    """Return facts and arrays as bytes, in the form that `static/api.js` reads."""
    listed, parts, offset = [], [], 0
    for name, array in arrays.items():
        kind = np.dtype(array.dtype).newbyteorder("<").str[1:]
        data = np.ascontiguousarray(array, f"<{_TYPES[kind]}").tobytes()
        listed.append([name, kind, offset, int(array.size)])
        padding = -len(data) % 8
        parts.append(data + b"\0" * padding)
        offset += len(data) + padding
    header = json.dumps({"facts": facts, "arrays": listed}).encode()
    header += b" " * (-(len(header) + 4) % 8)
    return struct.pack("<I", len(header)) + header + b"".join(parts)
