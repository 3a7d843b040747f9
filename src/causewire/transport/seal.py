"""Sealing datagrams: who may have written this, and is it whole?

A datagram begins with a head that is legible to everybody (docs/wire.md) and
ends with its sealed contents. There are two seals:

    without a key   a checksum (CRC-32) over everything. It finds accidents, and
                    stops nobody; that is why such a node stays on loopback.
    with a key      an AEAD (ChaCha20-Poly1305); the head is the associated data.

Keys come from the cluster key by HKDF (RFC 5869), one for each direction between
two *incarnations*: names and incarnation numbers of both sides are in its `info`.
So no key is ever used by two starts of a process, and the number of a datagram,
which only ever grows, is a nonce that does not repeat. The same derivation gives
the eight-byte `tag` that stands in the head for all of that: what belongs to a
former incarnation has a tag that nobody knows any more.

A greeting comes before the other side's incarnation is known, so its key depends
on that of the sender alone.
"""

from __future__ import annotations

import struct
from abc import ABC, abstractmethod
from hashlib import blake2b
from zlib import crc32

from .varint import put_text

__all__ = ["Keyed", "Plain", "Seal", "Sealer", "sealer"]

_CRC = struct.Struct(">I")
_NONCE = struct.Struct(">IQ")


class Seal(ABC):
    """Protects the datagrams that go one way between two incarnations."""

    __slots__ = ("tag",)

    overhead: int
    """Bytes that sealing adds."""

    tag: bytes

    @abstractmethod
    def close(self, number: int, head: bytes, contents: bytes) -> bytes:
        """The whole datagram."""

    @abstractmethod
    def open(self, number: int, head: bytes, sealed: bytes) -> bytes | None:
        """The contents behind a head, or None if they are not what was sealed."""


class _Checksum(Seal):
    __slots__ = ()
    overhead = 4

    def __init__(self, tag: bytes) -> None:
        self.tag = tag

    def close(self, number: int, head: bytes, contents: bytes) -> bytes:
        return b"%b%b%b" % (head, contents, _CRC.pack(crc32(contents, crc32(head))))

    def open(self, number: int, head: bytes, sealed: bytes) -> bytes | None:
        contents = sealed[:-4]
        return contents if _CRC.pack(crc32(contents, crc32(head))) == sealed[-4:] else None


class Sealer(ABC):
    """Makes the seals between this cluster's processes."""

    encrypts: bool

    def session(self, source: str, born: int, target: str, target_born: int) -> Seal:
        """The seal of datagrams from one incarnation to another."""
        return self._seal(b"session" + _who(source, born) + _who(target, target_born))

    def greeting(self, source: str, born: int, target: str) -> Seal:
        """The seal of greetings from an incarnation to a process."""
        return self._seal(b"greeting" + _who(source, born) + put_text(target))

    @abstractmethod
    def _seal(self, info: bytes) -> Seal:
        """The seal for what `info` describes."""


def _who(name: str, born: int) -> bytes:
    return put_text(name) + born.to_bytes(8, "big")


class Plain(Sealer):
    """No key: checksums."""

    encrypts = False

    def _seal(self, info: bytes) -> Seal:
        return _Checksum(blake2b(info, digest_size=8, person=b"causewire 1").digest())


class Keyed(Sealer):
    """A key that all processes of the cluster share."""

    encrypts = True

    def __init__(self, key: bytes) -> None:
        if not isinstance(key, bytes) or len(key) < 16:
            raise ValueError("a cluster key must be bytes, 16 of them at least")
        try:
            import cryptography  # noqa: F401
        except ImportError:
            raise RuntimeError(
                "a cluster key needs the package cryptography: pip install cryptography"
            ) from None
        self._key = key

    def _seal(self, info: bytes) -> Seal:
        from cryptography.hazmat.primitives.hashes import SHA256
        from cryptography.hazmat.primitives.kdf.hkdf import HKDF

        derived = HKDF(SHA256(), 40, b"causewire 1", info).derive(self._key)
        return _Aead(derived[:32], derived[32:])


class _Aead(Seal):
    __slots__ = ("_decrypt", "_encrypt")
    overhead = 16

    def __init__(self, key: bytes, tag: bytes) -> None:
        from cryptography.exceptions import InvalidTag
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM

        cipher = AESGCM(key)
        encrypt, decrypt = cipher.encrypt, cipher.decrypt

        def opened(nonce: bytes, sealed: bytes, head: bytes) -> bytes | None:
            try:
                return decrypt(nonce, sealed, head)
            except InvalidTag:
                return None

        self.tag = tag
        self._encrypt = encrypt
        self._decrypt = opened

    def close(self, number: int, head: bytes, contents: bytes) -> bytes:
        return head + self._encrypt(_NONCE.pack(0, number), contents, head)

    def open(self, number: int, head: bytes, sealed: bytes) -> bytes | None:
        return self._decrypt(_NONCE.pack(0, number), sealed, head)


def sealer(key: bytes | None) -> Sealer:
    """What seals a cluster's datagrams, given its key or none."""
    return Plain() if key is None else Keyed(key)
