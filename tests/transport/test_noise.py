"""Noise handshakes against messages made by another implementation, and what must fail."""

from __future__ import annotations

from typing import Any

import pytest
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from causewire.transport.noise import Handshake, HandshakeError, public_key

PSK = b"\x07" * 32
PROLOGUE = b"causewire 2 ann bob"
EPHEMERAL = bytes(range(32)), bytes(range(32, 64))
STATIC = bytes(range(64, 96)), bytes(range(96, 128))

# Made with the package noiseprotocol 0.3.1 from the keys above: both handshake messages
# (payloads "hello" and "welcome"), the handshake hash, and "first" and "second" sealed
# with the session keys of either side.
VECTORS = {
    "NNpsk0": (
        (
            "8f40c5adb68f25624ae5b214ea767a6ec94d829d3d7b5e1ad1ba6f3e2138285f81e4a0672848c5f9b6f3"
            "53748146e0b371e555d74f"
        ),
        (
            "358072d6365880d1aeea329adf9121383851ed21a28e3b75e965d0d2cd1662548e39f80b821104618388"
            "bb472b618b6b4ebad401ac8451"
        ),
        "74c6ecd727eb068e47f9f2699fff85fd9d0c50583d0f33aed513396510c00793",
        "075e97443872ae1204f388b918e2a569d02309d126",
        "9de0b44d3242cc1e29c9028c7674fad58e76fb526432",
    ),
    "KKpsk0": (
        (
            "8f40c5adb68f25624ae5b214ea767a6ec94d829d3d7b5e1ad1ba6f3e2138285f2d49a1c6ef19037fb28d"
            "9c5ee48449fa62df4b4163"
        ),
        (
            "358072d6365880d1aeea329adf9121383851ed21a28e3b75e965d0d2cd1662541d04ee1bb56ae21ba349"
            "59d0a9fd3e4c2b095b4290ce33"
        ),
        "131b1c7dba6e13f32a406c29f7f9db7df6160b329d7f53a0013d1c67d2a10d7a",
        "5ebff92989f1e3518acdd6e617ece3e3633cd13edc",
        "107bdde44983ffea956daa3692538df4c675704bff8d",
    ),
}


def side(index: int, known: bool, **changes: Any) -> Handshake:
    keys: dict[str, Any] = {}
    if known:
        keys = {"static": STATIC[index], "peer": public_key(STATIC[1 - index])}
    settings: dict[str, Any] = {"psk": PSK, "ephemeral": EPHEMERAL[index], "prologue": PROLOGUE}
    return Handshake(not index, **(settings | keys | changes))


@pytest.mark.parametrize("pattern", VECTORS)
def test_messages_and_keys_are_those_of_another_implementation(pattern: str) -> None:
    known = pattern == "KKpsk0"
    initiator, responder = side(0, known), side(1, known)
    first = initiator.write(b"hello")
    assert responder.read(first) == b"hello"
    second = responder.write(b"welcome")
    assert initiator.read(second) == b"welcome"
    ours, theirs = initiator.finish(), responder.finish()
    assert (ours.sending, ours.receiving) == (theirs.receiving, theirs.sending)
    sealed = [
        AESGCM(keys.sending).encrypt(bytes(12), text, b"")
        for keys, text in ((ours, b"first"), (theirs, b"second"))
    ]
    told = [first, second, ours.binding, *sealed]
    assert tuple(part.hex() for part in told) == VECTORS[pattern]


@pytest.mark.parametrize(
    "changes",
    [
        {"psk": b"\x08" * 32},
        {"prologue": b"causewire 2 ann eve"},
        {"static": bytes(range(1, 33))},
        {"peer": public_key(bytes(range(1, 33)))},
    ],
    ids=["another secret", "another prologue", "another static key", "another peer"],
)
def test_a_side_with_anything_else_is_refused(changes: dict[str, Any]) -> None:
    with pytest.raises(HandshakeError):
        side(1, True, **changes).read(side(0, True).write())


@pytest.mark.parametrize("known", [False, True])
def test_a_message_with_any_bit_changed_is_refused(known: bool) -> None:
    message = side(0, known).write(b"hello")
    for at in range(0, len(message), 5):
        damaged = bytearray(message)
        damaged[at] ^= 1
        with pytest.raises(HandshakeError):
            side(1, known).read(bytes(damaged))
    with pytest.raises(HandshakeError):
        side(1, known).read(message[:40])


def test_a_public_key_of_small_order_is_refused() -> None:
    initiator = side(0, False)
    initiator.write()
    with pytest.raises(HandshakeError, match="invalid public key"):
        initiator.read(bytes(32) + bytes(16))


def test_an_unfinished_handshake_gives_no_keys() -> None:
    initiator = side(0, False)
    initiator.write()
    with pytest.raises(HandshakeError, match="not finished"):
        initiator.finish()


def test_keys_of_the_wrong_length_or_half_a_pair_are_refused() -> None:
    for changes in ({"psk": b"short"}, {"ephemeral": b"short"}, {"peer": None}):
        with pytest.raises(ValueError, match=r"bytes|go together"):
            side(0, True, **changes)
