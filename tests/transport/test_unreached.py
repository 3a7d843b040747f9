"""A peer that is looked for in vain is reported although there is no message for it."""

from __future__ import annotations

import pytest

from causewire.transport import (
    MessageBlocked,
    PeerForgotten,
    PeerRefused,
    PeerSilent,
    PeerUp,
    TransportConfig,
)

from .pair import KEY, A, B, Pair, events, payloads


def lonely(seconds: float, **settings: object) -> Pair:
    """Ann looks for bob, and nothing that she sends arrives."""
    pair = Pair(**settings)
    pair.ann.add_peer("bob", B, pair.now)
    alone(pair, seconds)
    return pair


def alone(pair: Pair, seconds: float) -> None:
    """Let time pass; nothing that ann sends arrives."""
    end = pair.now + seconds
    while (due := pair.ann.next_timer()) is not None and due <= end:
        pair.now = max(due, pair.now)
        pair.ann.timer_fired(pair.now)
        pair.out(pair.ann)
    pair.now = end


def test_it_is_silent_after_silent_after() -> None:
    pair = lonely(2.99)
    assert not events(pair.ann)
    alone(pair, 0.02)
    assert events(pair.ann) == [PeerSilent("bob", 3.0)]
    alone(pair, 1.0)
    (reason,) = pair.ann.blocked(pair.now)
    assert (reason.where, reason.peer, reason.messages) == ("under way", "bob", 0)
    assert reason.seconds == pytest.approx(4.01)
    assert reason.why == (
        "bob has not been reached yet, tried for 4.0 s (a wrong address, nobody there, or another "
        "key)"
    )


def test_it_is_reported_with_the_likely_causes_and_not_given_up() -> None:
    pair = lonely(120.0, give_up_after=30.0)
    silent, blocked = events(pair.ann)
    assert isinstance(silent, PeerSilent)
    assert isinstance(blocked, MessageBlocked)
    assert "a wrong address, nobody there, or another key" in str(blocked.reason)
    assert 5.0 <= blocked.reason.seconds <= 6.25
    assert "bob" in pair.ann._peers.known
    pair.exchange()
    for _ in range(30):
        pair.later(0.1)
        pair.exchange()
    assert events(pair.ann)[2:] == [PeerUp("bob")]
    assert not pair.ann.blocked(pair.now)


def test_a_message_makes_no_second_report_and_has_all_its_time() -> None:
    pair = lonely(20.0, give_up_after=30.0)
    events(pair.ann).clear()
    pair.send(b"late")
    alone(pair, 28.0)
    (reason,) = pair.ann.blocked(pair.now)
    assert reason.messages == 1
    assert not [event for event in events(pair.ann) if not isinstance(event, MessageBlocked)]
    alone(pair, 6.0)
    assert PeerForgotten("bob", 1) in events(pair.ann)


def test_another_address_is_given_its_time() -> None:
    pair = lonely(20.0)
    events(pair.ann).clear()
    pair.ann.add_peer("bob", A, pair.now)
    alone(pair, 2.9)
    assert not events(pair.ann)
    assert not pair.ann.blocked(pair.now)
    alone(pair, 0.2)
    assert events(pair.ann) == [PeerSilent("bob", 3.0)]
    assert pair.ann.blocked(pair.now)[0].seconds == pytest.approx(3.1)


def test_another_key() -> None:
    pair = Pair(config=TransportConfig())
    pair.bob = pair.start("bob", 2002, key=KEY)
    pair.ann.add_peer("bob", B, pair.now)
    for _ in range(100):
        pair.later(0.1)
        pair.exchange()
    assert [type(event) for event in events(pair.ann)] == [PeerSilent, MessageBlocked]


def test_a_peer_that_is_reached_in_time_is_not_reported() -> None:
    pair = lonely(1.0)
    for _ in range(200):
        pair.later(0.1)
        pair.exchange()
    assert events(pair.ann) == [PeerUp("bob")]


def test_a_peer_that_left_is_not_reported() -> None:
    pair = Pair().meet()
    pair.bob.close()
    pair.exchange()
    events(pair.ann).clear()
    alone(pair, 30.0)
    assert not events(pair.ann)
    assert not pair.ann.blocked(pair.now)


def test_a_refusal_says_enough() -> None:
    pair = Pair(protocol="csps")
    pair.bob = pair.start("bob", 2002, protocol="sps")
    pair.ann.add_peer("bob", B, pair.now)
    for _ in range(200):
        pair.later(0.1)
        pair.exchange()
    assert [type(event) for event in events(pair.ann)] == [PeerRefused, MessageBlocked]
    (reason,) = pair.ann.blocked(pair.now)
    assert reason.why == "bob was refused: it runs sps, this is csps"


def test_who_is_not_wanted_is_not_reported() -> None:
    """Bob knows ann from a greeting, and does not look for her."""
    pair = Pair()
    pair.ann.add_peer("bob", B, pair.now)
    pair.ann.timer_fired(pair.now)
    pair.give(pair.bob, *pair.out(pair.ann))
    for _ in range(100):
        pair.later(0.1)
        pair.out(pair.bob)
    assert not events(pair.bob)
    assert not pair.bob.blocked(pair.now)


def test_a_process_that_did_not_run_does_not_blame_its_peers() -> None:
    pair = lonely(0.5)
    pair.now += 60.0
    pair.ann.timer_fired(pair.now)
    assert not events(pair.ann)
    pair.send(b"x")
    pair.exchange()
    assert payloads(pair.bob) == [b"x"]


def test_a_message_for_the_next_incarnation_says_that_the_peer_is_gone() -> None:
    pair = Pair().meet()
    pair.bob.close()
    pair.exchange()
    pair.ann.send("bob", b"x", wait_for_peer=True)
    pair.later(3.0)
    (why,) = pair.ann.blocked(pair.now)
    assert "bob is gone; messages wait for its next incarnation" in str(why)
