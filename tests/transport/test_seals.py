"""Seals: no change, copy or foreign key goes unnoticed, and nothing can be read."""

from __future__ import annotations

from random import Random

import pytest

from .pair import KEY, PLAIN_AND_SEALED, B, Pair, payloads


@PLAIN_AND_SEALED
def test_any_change_of_a_datagram_is_found_out(key: bytes | None) -> None:
    pair = Pair(key=key).meet()
    pair.send(b"precious")
    (datagram,) = pair.out(pair.ann)
    for k in range(len(datagram)):
        pair.give(pair.bob, datagram[:k] + bytes([datagram[k] ^ 1]) + datagram[k + 1 :])
        pair.give(pair.bob, datagram[:k])
    assert sum(pair.bob.stats.dropped.values()) == 2 * len(datagram)
    assert payloads(pair.bob) == []
    pair.give(pair.bob, datagram)
    assert payloads(pair.bob) == [b"precious"]


@PLAIN_AND_SEALED
def test_a_copy_of_a_datagram_changes_nothing(key: bytes | None) -> None:
    pair = Pair(key=key).meet()
    pair.send(b"once")
    (datagram,) = pair.out(pair.ann)
    pair.give(pair.bob, datagram, datagram)
    pair.exchange()
    pair.give(pair.bob, datagram)
    pair.exchange()
    assert payloads(pair.bob) == [b"once"]
    assert pair.bob.stats.dropped == {"duplicate": 2}


def test_encrypted_means_that_nothing_can_be_read() -> None:
    for key, legible in ((None, True), (KEY, False)):
        pair = Pair(key=key).meet()
        pair.send(b"secret plans")
        assert any(b"secret" in datagram for datagram in pair.out(pair.ann)) is legible


def test_another_key_is_no_key() -> None:
    pair = Pair(key=KEY)
    pair.bob = pair.start("bob", 2002, key=b"another key altogether")
    pair.ann.add_peer("bob", B, pair.now)
    pair.ann.timer_fired(pair.now)
    assert pair.exchange() == 1
    assert pair.bob.stats.dropped == {"unverified": 1}
    assert not pair.bob._peers.known


def test_keys_differ_by_direction_and_incarnation() -> None:
    pair = Pair(key=KEY).meet()
    pair.send(b"x")
    (first,) = pair.out(pair.ann)
    again = Pair(key=KEY)
    again.ann = again.start("ann", 1002, entropy=Random("later").randbytes)
    again.meet()
    again.send(b"x")
    (second,) = again.out(again.ann)
    assert first[1:9] != second[1:9]
    assert first[17:] != second[17:]
    again.give(again.bob, first)
    assert again.bob.stats.dropped["unknown_session"] == 1


def test_a_short_key_is_refused() -> None:
    with pytest.raises(ValueError, match="16"):
        Pair(key=b"short")
