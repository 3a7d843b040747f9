"""The arrival of acks and permits is acknowledged late, and never later than the bound."""

from __future__ import annotations

import pytest

from causewire.transport import Session, TransportConfig

from .pair import Pair, payloads

DELAY = TransportConfig().ack_delay


def answered(pair: Pair) -> None:
    """Let ann send a message, and bob acknowledge its delivery with nothing else to say."""
    pair.send()
    pair.give(pair.bob, *pair.out(pair.ann))
    assert payloads(pair.bob) == [b"x"]
    pair.give(pair.ann, *pair.out(pair.bob))


def of_bob(pair: Pair) -> Session:
    return pair.bob._peers.session("ann")


@pytest.fixture
def pair() -> Pair:
    pair = Pair().meet()
    answered(pair)
    return pair


def test_an_ack_of_acks_alone_is_not_sent_at_once(pair: Pair) -> None:
    assert pair.session.outbound.acked == 1
    assert not pair.out(pair.ann)
    assert of_bob(pair).recovery.sent


def test_it_is_sent_when_its_time_has_come(pair: Pair) -> None:
    assert not pair.out(pair.ann)
    due = pair.ann.next_timer()
    assert due is not None
    assert due <= pair.now + DELAY
    pair.later(DELAY)
    (late,) = pair.out(pair.ann)
    pair.give(pair.bob, late)
    assert not of_bob(pair).recovery.sent
    assert not pair.out(pair.bob)


def test_it_rides_on_the_next_message(pair: Pair) -> None:
    pair.send()
    (datagram,) = pair.out(pair.ann)
    pair.give(pair.bob, datagram)
    assert not of_bob(pair).recovery.sent
    pair.later(DELAY)
    assert not pair.out(pair.ann)


def test_nothing_is_repeated_meanwhile(pair: Pair) -> None:
    pair.later(DELAY)
    due = of_bob(pair).recovery.deadline
    assert due is not None
    assert due > pair.now
    assert not pair.out(pair.bob)


def test_more_acks_do_not_move_the_bound(pair: Pair) -> None:
    assert not pair.out(pair.ann)
    pair.later(DELAY / 2)
    pair.give(pair.ann, of_bob(pair).single(b"\x02\x01"))
    assert not pair.out(pair.ann)
    pair.later(0.51 * DELAY)
    assert len(pair.out(pair.ann)) == 1


def test_late_acks_do_not_make_the_round_trip_seem_longer(pair: Pair) -> None:
    trip = of_bob(pair).recovery.round_trip
    trip.measured(0.001)
    for _ in range(40):
        trip.measured(0.001)
    for _ in range(20):
        answered(pair)
        pair.later(DELAY)
        pair.exchange()
    assert trip.smoothed < 0.002
