"""A process that starts again is another process: restarts, old greetings, equal numbers."""

from __future__ import annotations

from typing import Any

import pytest

from causewire.transport import (
    NodeRenumbered,
    NodeSuperseded,
    PeerLeft,
    PeerRefused,
    PeerRestarted,
    Superseded,
    Transport,
)

from .pair import KEY, PLAIN_AND_SEALED, A, B, Pair, events, payloads


@PLAIN_AND_SEALED
def test_a_peer_that_restarts_is_another_process(key: bytes | None) -> None:
    pair = Pair(key=key).meet()
    pair.send(b"one")
    pair.exchange()
    payloads(pair.bob)
    failing = pair.send(b"lost with the first bob")
    session = pair.session
    stale = pair.out(pair.ann)
    pair.bob = pair.start("bob", 2002)
    pair.bob.add_peer("ann", A, pair.now)
    pair.bob.timer_fired(pair.now)
    pair.exchange()
    assert PeerRestarted("bob", 1) in events(pair.ann)
    assert session.over
    assert session.confirmed < failing
    assert pair.ann.idle  # nobody waits for the dead
    pair.give(pair.bob, *stale)
    assert pair.bob.stats.dropped["unknown_session"] == 1
    pair.send(b"two")
    pair.exchange()
    assert payloads(pair.bob) == [b"two"]
    pair.bob.send("ann", b"three")
    pair.exchange()
    assert [(d.source, d.payload) for d in pair.ann.messages] == [("bob", b"three")]


def test_a_dead_peer_is_found_out_by_whoever_sends_to_it() -> None:
    """The new bob knows nobody; ann's timer brings them together."""
    pair = Pair().meet()
    pair.bob = pair.start("bob", 2002)
    pair.send(b"x")
    for _ in range(8):
        pair.exchange()
        pair.later(0.5)
    assert any(isinstance(event, PeerRestarted) for event in events(pair.ann))


@PLAIN_AND_SEALED
def test_recorded_greetings_are_of_no_use(key: bytes | None) -> None:
    """Of an incarnation that is gone: they change nothing."""
    pair = Pair(key=key)
    recorded = []
    pair.ann.add_peer("bob", B, pair.now)
    pair.ann.timer_fired(pair.now)
    for _ in range(3):
        for transport in (pair.ann, pair.bob):
            for data in pair.out(transport):
                recorded.append((transport, data))
                pair.give(pair.other(transport), data)
    assert pair.session.established
    pair.bob = pair.start("bob", 2002)
    pair.bob.add_peer("ann", A, pair.now)
    pair.bob.timer_fired(pair.now)
    pair.exchange()
    session = pair.session
    events(pair.ann).clear()
    for transport, data in recorded:
        pair.give(pair.bob if transport is pair.ann else pair.ann, data)
    pair.exchange()
    assert pair.session is session
    assert not events(pair.ann)
    pair.send(b"all is well")
    pair.exchange()
    assert payloads(pair.bob) == [b"all is well"]


def test_an_old_greeting_does_not_fool_one_who_just_started() -> None:
    pair = Pair(key=KEY)
    pair.bob.add_peer("ann", A, pair.now)
    pair.bob.timer_fired(pair.now)
    (old,) = pair.out(pair.bob)
    pair.bob = pair.start("bob", 2002)
    pair.give(pair.ann, old)
    assert "bob" not in pair.ann._live


def meet_again(pair: Pair, newcomer: Transport[Any]) -> Transport[Any]:
    """Let another bob meet ann; returns the former one."""
    former, pair.bob = pair.bob, newcomer
    newcomer.add_peer("ann", A, pair.now)
    newcomer.timer_fired(pair.now)
    pair.exchange()
    pair.later(0.01)
    pair.exchange()
    return former


def test_a_number_that_is_too_low_is_raised() -> None:
    """The clock was set back before a restart: a peer knows better, and says so."""
    pair = Pair().meet()
    pair.send(b"x")
    pair.exchange()
    meet_again(pair, pair.start("bob", 1999))
    assert pair.bob.me.incarnation > 2001
    assert NodeRenumbered("bob", pair.bob.me.incarnation) in events(pair.bob)
    assert PeerRestarted("ann", 0) not in events(pair.bob)
    assert pair.session.incarnation == pair.bob.me.incarnation
    pair.send(b"to the new one")
    pair.exchange()
    assert payloads(pair.bob) == [b"to the new one"]


def test_a_number_that_is_too_low_is_not_raised_beyond_reason() -> None:
    pair = Pair()
    pair.ann._peers.floors["bob"] = (1 << 63) - 1
    pair.bob.add_peer("ann", A, pair.now)
    pair.bob.timer_fired(pair.now)
    pair.exchange()
    assert pair.bob.me.incarnation == 2001


def test_one_who_was_superseded_is_told_and_cannot_send() -> None:
    pair = Pair().meet()
    former = meet_again(pair, pair.start("bob", 3001))
    told = [data for data, _ in pair.ann.datagrams_to_send(pair.now)]
    assert not told  # that was at once
    former.send("ann", b"x")
    for _ in range(5):
        for data, _ in former.datagrams_to_send(pair.now):
            pair.give(pair.ann, data)
        for data in pair.out(pair.ann):
            former.datagram_received(data, A, pair.now)
        pair.later(0.5)
        former.timer_fired(pair.now)
    assert NodeSuperseded("bob", 3001) in events(former)
    with pytest.raises(Superseded, match="rejoin"):
        former.try_send("ann", b"x")


def test_goodbye() -> None:
    pair = Pair().meet()
    pair.send(b"x")
    pair.exchange()
    mid = pair.send(b"too late")
    session = pair.session
    pair.bob.close()
    pair.give(pair.ann, *pair.out(pair.bob))
    assert events(pair.ann)[-1] == PeerLeft("bob", 1)
    assert session.over
    assert session.confirmed == mid - 1


def test_protocols_must_agree() -> None:
    pair = Pair(protocol="csps")
    pair.bob = pair.start("bob", 2002, protocol="sps")
    pair.ann.add_peer("bob", B, pair.now)
    pair.ann.timer_fired(pair.now)
    pair.exchange()
    assert events(pair.bob) == [PeerRefused("ann", "it runs csps, this is sps")]
