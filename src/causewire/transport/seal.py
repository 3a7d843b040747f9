"""Sealing datagrams: who may have written this, and is it whole?

A datagram begins with a head that everybody can read (docs/wire.md) and ends with its
sealed contents. There are two ways to seal:

    without a key   a checksum (CRC-32) over everything. It detects accidents and stops
                    no attacker, so such a node stays on loopback.
    with a key      AES-256-GCM; the head is the associated data.

**Sessions.** The keys of a session come from a Noise handshake (`noise`) that the two
processes make while they greet each other: each contributes a fresh ephemeral key, and
the cluster key is mixed in. So every session has its own keys, one for each direction;
the number of a datagram, which only grows, is a nonce that never repeats; and a cluster
key that is stolen later does not decrypt recorded sessions. After every `EPOCH`
datagrams a direction moves on to another key, from which the former one cannot be
computed. The eight-byte `tag` in the head of a datagram stands for the session and
the direction.

**Greetings** come before there is a session. Their key is derived from the cluster key
and their head, and their nonces are random. A short keyed checksum at the end lets a
receiver drop forgeries for the price of one hash.

**Several cluster keys** make it possible to change the key without stopping: the first
one seals, all of them open.
"""

from __future__ import annotations

import struct
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from hashlib import blake2b
from typing import TYPE_CHECKING, TypeAlias
from zlib import crc32

from .heads import HEAD
from .noise import Handshake, HandshakeError, SessionKeys
from .varint import put, put_text

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

__all__ = ["EPOCH", "Exchange", "Keyed", "Plain", "Seal", "Sealer", "sealer"]

EPOCH = 1 << 22
"""Datagrams that are sealed with one key. With 32,768 bytes each that is a fraction of
what AES-GCM allows for one key."""

Entropy: TypeAlias = Callable[[int], bytes]
"""Returns that many random bytes."""

_CRC = struct.Struct(">I")
_NONCE = struct.Struct(">IQ")
_STAMP = 8
"""Bytes of the keyed checksum at the end of a greeting."""


class Seal(ABC):
    """Protects the datagrams that go one way in a session."""

    __slots__ = ("tag",)

    overhead: int
    """Bytes that sealing adds."""

    tag: bytes

    @abstractmethod
    def close(self, number: int, head: bytes, contents: bytes) -> bytes:
        """Return the whole datagram."""

    @abstractmethod
    def open(self, number: int, datagram: bytes) -> bytes | None:
        """Return the contents of a datagram, or None if they are not what was sealed."""


class Exchange(ABC):
    """The agreement on session keys with one incarnation of a peer, made by greetings."""

    message: bytes = b""
    """What greetings to the peer carry, as far as it is known."""

    @abstractmethod
    def received(self, message: bytes, secret: bytes, born: int) -> None:
        """Process what a greeting of the peer's incarnation `born` carried.

        `secret` is what `open_greeting` returned for that greeting. A message that was
        made with other keys changes nothing.
        """

    @abstractmethod
    def seals(self, born: int) -> tuple[Seal, Seal] | None:
        """Return the seals to send and to receive with, or None before the agreement."""


class Sealer(ABC):
    """Seals greetings, and begins the agreement on session keys."""

    encrypts: bool

    @abstractmethod
    def close_greeting(self, head: bytes, contents: bytes) -> bytes:
        """Return a whole greeting."""

    @abstractmethod
    def open_greeting(self, data: bytes, at: int) -> tuple[bytes, bytes] | None:
        """Return the contents of a greeting, from `at` on, and the secret that opened it.

        The result is None if the greeting was not sealed by a member of the cluster.
        """

    @abstractmethod
    def genuine(self, data: bytes) -> bool:
        """Return whether a greeting may be genuine, by a check that costs little."""

    @abstractmethod
    def exchange(self, me: str, born: int, peer: str, connection: int = 0) -> Exchange:
        """Begin an agreement between an incarnation of this process and a peer.

        `connection` is how many times this incarnation has come back with its memory.

        Raises:
            HandshakeError: The public key of the peer is not known, though members of
                this cluster need one.
        """


class Plain(Sealer):
    """No key: checksums."""

    encrypts = False

    def close_greeting(self, head: bytes, contents: bytes) -> bytes:
        return b"%b%b%b" % (head, contents, _CRC.pack(crc32(contents, crc32(head))))

    def open_greeting(self, data: bytes, at: int) -> tuple[bytes, bytes] | None:
        return (data[at:-4], b"") if _CRC.pack(crc32(data[:-4])) == data[-4:] else None

    def genuine(self, data: bytes) -> bool:
        return True

    def exchange(self, me: str, born: int, peer: str, connection: int = 0) -> Exchange:
        return _PlainExchange(me, born, peer, connection)


class _PlainExchange(Exchange):
    """Each side states its connection, so that every connection has tags of its own."""

    def __init__(self, me: str, born: int, peer: str, connection: int) -> None:
        self.message = put(connection) if connection else b""
        self._me = put_text(me) + born.to_bytes(8, "big") + self.message
        self._peer = put_text(peer)
        self._theirs = b""

    def received(self, message: bytes, secret: bytes, born: int) -> None:
        self._theirs = message

    def seals(self, born: int) -> tuple[Seal, Seal] | None:
        peer = self._peer + born.to_bytes(8, "big") + self._theirs
        return _Checksum(self._me + peer), _Checksum(peer + self._me)


class _Checksum(Seal):
    __slots__ = ()
    overhead = 4

    def __init__(self, who: bytes) -> None:
        self.tag = _tag(who)

    def close(self, number: int, head: bytes, contents: bytes) -> bytes:
        return b"%b%b%b" % (head, contents, _CRC.pack(crc32(contents, crc32(head))))

    def open(self, number: int, datagram: bytes) -> bytes | None:
        if _CRC.pack(crc32(datagram[:-4])) != datagram[-4:]:
            return None
        return datagram[HEAD.size : -4]


class Keyed(Sealer):
    """Cluster keys that all members share, and optionally a key pair for each member.

    Args:
        keys: The cluster keys, each of 16 bytes or more. The first one seals.
        entropy: Returns random bytes.
        identity: This member's private key, if members have key pairs.
        identities: The public keys of the others, by name, in that case.

    Raises:
        ValueError: A key is too short, or there is none.
        RuntimeError: The package `cryptography` is not installed.
    """

    encrypts = True

    def __init__(
        self,
        keys: Sequence[bytes],
        entropy: Entropy,
        identity: bytes | None = None,
        identities: Mapping[str, bytes] | None = None,
    ) -> None:
        if not keys or not all(isinstance(key, bytes) and len(key) >= 16 for key in keys):
            raise ValueError("a cluster key must be bytes, at least 16 of them")
        try:
            import cryptography  # noqa: F401
        except ImportError:
            raise RuntimeError(
                "a cluster key needs the package cryptography: pip install cryptography"
            ) from None
        self._secrets = [_derive(key, b"secret") for key in keys]
        self._stamps = [_derive(secret, b"stamp") for secret in self._secrets]
        self._identity = identity
        self._identities = identities or {}
        self._entropy = entropy

    def close_greeting(self, head: bytes, contents: bytes) -> bytes:
        nonce = self._entropy(12)
        sealed = _aead(_derive(self._secrets[0], head)).encrypt(nonce, contents, head)
        greeting = b"%b%b%b" % (head, nonce, sealed)
        return greeting + _stamp(greeting, self._stamps[0])

    def open_greeting(self, data: bytes, at: int) -> tuple[bytes, bytes] | None:
        from cryptography.exceptions import InvalidTag

        head, nonce, sealed = data[:at], data[at : at + 12], data[at + 12 : -_STAMP]
        for secret, stamp in zip(self._secrets, self._stamps, strict=True):
            if _stamp(data[:-_STAMP], stamp) == data[-_STAMP:] and len(nonce) == 12:
                try:
                    return _aead(_derive(secret, head)).decrypt(nonce, sealed, head), secret
                except InvalidTag:
                    continue
        return None

    def genuine(self, data: bytes) -> bool:
        body, stamp = data[:-_STAMP], data[-_STAMP:]
        return any(_stamp(body, key) == stamp for key in self._stamps)

    def exchange(self, me: str, born: int, peer: str, connection: int = 0) -> Exchange:
        statics: dict[str, bytes] = {}
        if self._identity is not None:
            if peer not in self._identities:
                raise HandshakeError(f"the public key of {peer!r} is not known here")
            statics = {"static": self._identity, "peer": self._identities[peer]}
        return _NoiseExchange(me, born, peer, self._secrets[0], statics, self._entropy)


class _NoiseExchange(Exchange):
    """A Noise handshake whose messages ride on greetings.

    The process with the lesser name is the initiator, whoever greets first, so two
    processes that greet each other at the same time make one handshake. Its message is
    the same in all greetings to this peer; the responder answers each different message
    with a handshake of its own, so a recording costs it a computation and no session.
    """

    def __init__(
        self,
        me: str,
        born: int,
        peer: str,
        secret: bytes,
        statics: dict[str, bytes],
        entropy: Entropy,
    ) -> None:
        self._names = min(me, peer), max(me, peer)
        self._statics = statics
        self._entropy = entropy
        self._answered = b""
        """The peer's message that `message` answers, or that finished the handshake."""
        self._born = 0
        """The incarnation of the peer that the keys are shared with."""
        self._keys: SessionKeys | None = None
        self._first: Handshake | None = None
        if me < peer:
            self._first = self._handshake(True, secret, born)
            self.message = self._first.write()

    def _handshake(self, initiator: bool, secret: bytes, born: int) -> Handshake:
        lesser, greater = self._names
        prologue = b"causewire 2" + put_text(lesser) + born.to_bytes(8, "big") + put_text(greater)
        return Handshake(initiator, secret, self._entropy(32), prologue, **self._statics)

    def received(self, message: bytes, secret: bytes, born: int) -> None:
        if not message or (message == self._answered and born == self._born):
            return
        try:
            if self._first is not None:
                handshake = copy(self._first)
                handshake.read(message)
            else:
                handshake = self._handshake(False, secret, born)
                handshake.read(message)
                self.message = handshake.write()
        except HandshakeError:
            return
        self._keys = handshake.finish()
        self._answered, self._born = message, born

    def seals(self, born: int) -> tuple[Seal, Seal] | None:
        if self._keys is None or born != self._born:
            return None
        return _Aead(self._keys.sending), _Aead(self._keys.receiving)


class _Aead(Seal):
    """AES-256-GCM with a key for each epoch; the key of an epoch gives that of the next."""

    __slots__ = ("_decrypt", "_encrypt", "_epoch", "_invalid", "_key", "_previous")
    overhead = 16

    def __init__(self, key: bytes) -> None:
        from cryptography.exceptions import InvalidTag

        self._invalid = InvalidTag
        self.tag = _tag(key)
        self._key = key
        self._epoch = 0
        cipher = _aead(key)
        self._encrypt, self._decrypt = cipher.encrypt, cipher.decrypt
        self._previous = self._decrypt

    def close(self, number: int, head: bytes, contents: bytes) -> bytes:
        if number // EPOCH != self._epoch:
            self._advance()
        return head + self._encrypt(_NONCE.pack(0, number), contents, head)

    def open(self, number: int, datagram: bytes) -> bytes | None:
        behind = self._epoch - number // EPOCH
        if behind == 0:
            decrypt = self._decrypt
        elif behind == 1:
            decrypt = self._previous
        elif behind == -1:
            decrypt = _aead(self._next_key()).decrypt
        else:
            return None
        try:
            head, sealed = datagram[: HEAD.size], datagram[HEAD.size :]
            contents = decrypt(_NONCE.pack(0, number), sealed, head)
        except self._invalid:
            return None
        if behind == -1:
            self._advance()
        return contents

    def _next_key(self) -> bytes:
        """Return the next key as Noise does (section 4.2, Rekey)."""
        return _aead(self._key).encrypt(_NONCE.pack(0, (1 << 64) - 1), bytes(32), b"")[:32]

    def _advance(self) -> None:
        self._key = self._next_key()
        self._epoch += 1
        self._previous = self._decrypt
        cipher = _aead(self._key)
        self._encrypt, self._decrypt = cipher.encrypt, cipher.decrypt


def _aead(key: bytes) -> AESGCM:
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

    return AESGCM(key)


def _derive(key: bytes, info: bytes) -> bytes:
    """Return a key of 32 bytes that is as good as `key`, and differs for each `info`."""
    from cryptography.hazmat.primitives.hashes import SHA256
    from cryptography.hazmat.primitives.kdf.hkdf import HKDF

    return HKDF(SHA256(), 32, b"causewire 2", info).derive(key)


def _stamp(data: bytes, key: bytes) -> bytes:
    return blake2b(data, digest_size=_STAMP, key=key).digest()


def _tag(secret: bytes) -> bytes:
    return blake2b(secret, digest_size=8, person=b"causewire tag").digest()


def sealer(
    key: bytes | Sequence[bytes] | None,
    entropy: Entropy,
    identity: bytes | None = None,
    identities: Mapping[str, bytes] | None = None,
) -> Sealer:
    """Return what seals a cluster's datagrams.

    Args:
        key: The cluster key, or several of which the first seals, or None.
        entropy: Returns random bytes.
        identity: This member's private key, if members have key pairs.
        identities: The public keys of the others, by name, in that case.

    Raises:
        ValueError: A key is too short, or there are key pairs without a cluster key.
    """
    if key is None:
        if identity is not None or identities:
            raise ValueError("key pairs of members need a cluster key as well")
        return Plain()
    return Keyed([key] if isinstance(key, bytes) else list(key), entropy, identity, identities)
