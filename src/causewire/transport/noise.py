"""Handshakes of the Noise protocol framework (revision 34), as values without I/O.

A Noise handshake lets two processes that share a secret agree on fresh session keys.
Each side contributes an ephemeral X25519 key, so a recording of the datagrams cannot
be decrypted later by somebody who steals the shared secret (forward secrecy), and no
key is ever used twice even if a process restarts with the same incarnation number.

Two patterns are used; both take one message in each direction:

    Noise_NNpsk0_25519_AESGCM_SHA256    members share the cluster key and nothing else
        -> psk, e
        <- e, ee

    Noise_KKpsk0_25519_AESGCM_SHA256    members also know each other's public key,
        -> s                            so one member cannot speak for another
        <- s
        ...
        -> psk, e, es, ss
        <- e, ee, se

The names of variables and functions follow the specification: `ck` is the chaining
key, `h` the hash of everything said so far. Randomness comes from the caller, which
passes the ephemeral private key; that keeps runs in virtual time repeatable.
"""

from __future__ import annotations

import hashlib
import hmac
import struct
from typing import TYPE_CHECKING, NamedTuple

from ..core.errors import CausewireError

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

__all__ = ["KEY_BYTES", "Handshake", "HandshakeError", "SessionKeys", "public_key"]

KEY_BYTES = 32
"""Length of a private, public or symmetric key."""
TAG_BYTES = 16

_NONCE = struct.Struct(">IQ")
_ANONYMOUS = (("psk", "e"), ("e", "ee"))
_KNOWN = (("psk", "e", "es", "ss"), ("e", "ee", "se"))


class HandshakeError(CausewireError):
    """A handshake message is malformed, or was made with another key."""


class SessionKeys(NamedTuple):
    """What a finished handshake gives to one side."""

    sending: bytes
    receiving: bytes
    binding: bytes
    """Hash of the whole handshake: equal on both sides, different for every handshake."""


def public_key(private: bytes) -> bytes:
    """Return the public key that belongs to a private one, 32 bytes each."""
    return _private(private).public_key().public_bytes_raw()


class Handshake:
    """One side of a handshake.

    The initiator calls `write`, then `read` with the answer; the responder calls
    `read`, then `write`. After both, `finish` returns the session keys. The object
    must be used for one handshake only. An initiator that may get forged answers
    reads each with a `copy.copy` of the handshake, which is independent.

    Args:
        initiator: Whether this side speaks first.
        psk: The shared secret, 32 bytes.
        ephemeral: A fresh random private key, 32 bytes, never used before.
        prologue: Data that both sides must agree on (names, versions); a handshake
            between sides with different prologues fails.
        static: This side's private key, for the pattern with known public keys.
        peer: The other side's public key, for the same pattern.

    Raises:
        ValueError: A key has the wrong length, or only one of `static` and `peer` is given.
    """

    def __init__(
        self,
        initiator: bool,
        psk: bytes,
        ephemeral: bytes,
        prologue: bytes = b"",
        *,
        static: bytes | None = None,
        peer: bytes | None = None,
    ) -> None:
        if (static is None) is not (peer is None):
            raise ValueError("a static key and the peer's public key go together")
        if len(psk) != KEY_BYTES:
            raise ValueError(f"a shared secret must have {KEY_BYTES} bytes, not {len(psk)}")
        self._initiator = initiator
        self._psk = psk
        self._ephemeral = _private(ephemeral)
        self._static = None if static is None else _private(static)
        self._peer_static = b"" if peer is None else peer
        self._peer_ephemeral = b""
        self._messages = list(_ANONYMOUS if static is None else _KNOWN)
        pattern = "NNpsk0" if static is None else "KKpsk0"
        name = f"Noise_{pattern}_25519_AESGCM_SHA256".encode()
        self._ck = self._h = name.ljust(32, b"\0")
        self._key: bytes | None = None
        self._nonce = 0
        self._mix_hash(prologue)
        if self._static is not None:
            mine = self._static.public_key().public_bytes_raw()
            both = (mine, self._peer_static) if initiator else (self._peer_static, mine)
            self._mix_hash(both[0])
            self._mix_hash(both[1])

    def write(self, payload: bytes = b"") -> bytes:
        """Return this side's handshake message, with `payload` encrypted in it."""
        parts = []
        tokens, *self._messages = self._messages
        for token in tokens:
            if token == "e":
                public = self._ephemeral.public_key().public_bytes_raw()
                parts.append(public)
                self._mix_ephemeral(public)
            else:
                self._mix_token(token)
        parts.append(self._encrypt_and_hash(payload))
        return b"".join(parts)

    def read(self, message: bytes) -> bytes:
        """Return the payload of the other side's handshake message.

        Raises:
            HandshakeError: The message is malformed or was made with other keys. The
                handshake cannot be continued.
        """
        if len(message) < KEY_BYTES + TAG_BYTES:
            raise HandshakeError("a handshake message is too short")
        tokens, *self._messages = self._messages
        for token in tokens:
            if token == "e":
                self._peer_ephemeral = message[:KEY_BYTES]
                self._mix_ephemeral(self._peer_ephemeral)
            else:
                self._mix_token(token)
        return self._decrypt_and_hash(message[KEY_BYTES:])

    def finish(self) -> SessionKeys:
        """Return the session keys; call it after `write` and `read`.

        Raises:
            HandshakeError: The handshake is not finished.
        """
        if self._messages:
            raise HandshakeError("the handshake is not finished")
        first, second = _hkdf(self._ck, b"", 2)
        if self._initiator:
            return SessionKeys(first, second, self._h)
        return SessionKeys(second, first, self._h)

    # -- the symmetric state of the specification -------------------------------------

    def _mix_hash(self, data: bytes) -> None:
        self._h = hashlib.sha256(self._h + data).digest()

    def _mix_key(self, material: bytes) -> None:
        self._ck, self._key = _hkdf(self._ck, material, 2)
        self._nonce = 0

    def _mix_ephemeral(self, public: bytes) -> None:
        self._mix_hash(public)
        self._mix_key(public)  # in patterns with a psk, ephemeral keys enter the key as well

    def _mix_token(self, token: str) -> None:
        if token == "psk":
            self._ck, mixed, self._key = _hkdf(self._ck, self._psk, 3)
            self._nonce = 0
            self._mix_hash(mixed)
            return
        # "es" joins the initiator's ephemeral key with the responder's static key.
        pair = token if self._initiator else token[::-1]
        own = self._ephemeral if pair[0] == "e" else self._static
        other = self._peer_ephemeral if pair[1] == "e" else self._peer_static
        assert own is not None
        self._mix_key(_shared(own, other))

    def _encrypt_and_hash(self, plain: bytes) -> bytes:
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM

        assert self._key is not None
        sealed = AESGCM(self._key).encrypt(_NONCE.pack(0, self._nonce), plain, self._h)
        self._nonce += 1
        self._mix_hash(sealed)
        return sealed

    def _decrypt_and_hash(self, sealed: bytes) -> bytes:
        from cryptography.exceptions import InvalidTag
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM

        assert self._key is not None
        try:
            plain = AESGCM(self._key).decrypt(_NONCE.pack(0, self._nonce), sealed, self._h)
        except InvalidTag:
            raise HandshakeError("a handshake message was made with another key") from None
        self._nonce += 1
        self._mix_hash(sealed)
        return plain


def _hkdf(chaining: bytes, material: bytes, outputs: int) -> list[bytes]:
    secret = hmac.digest(chaining, material, "sha256")
    out: list[bytes] = []
    last = b""
    for number in range(1, outputs + 1):
        last = hmac.digest(secret, last + bytes([number]), "sha256")
        out.append(last)
    return out


def _private(key: bytes) -> X25519PrivateKey:
    from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

    if len(key) != KEY_BYTES:
        raise ValueError(f"a private key must have {KEY_BYTES} bytes, not {len(key)}")
    return X25519PrivateKey.from_private_bytes(key)


def _shared(private: X25519PrivateKey, public: bytes) -> bytes:
    from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PublicKey

    try:
        return private.exchange(X25519PublicKey.from_public_bytes(public))
    except ValueError:  # a point of small order, which gives no secret
        raise HandshakeError("a handshake message has an invalid public key") from None
