"""An address behind which another process is found than the one that was expected there."""

from __future__ import annotations

from typing import Any

import pytest

from causewire.transport import PeerRefused, PeerUp, Transport
from causewire.transport.greeter import CALLERS

from .pair import KEY, PLAIN_AND_SEALED, A, B, Pair, events, payloads

C = ("127.0.0.1", 3)


def wait(pair: Pair, seconds: float) -> list[tuple[str, bytes]]:
    """Let time pass, in which datagrams travel; returns what was sent, and by whom."""
    sent = []
    end = pair.now + seconds
    while pair.now < end:
        pair.later(0.05)
        for name, transport in (("ann", pair.ann), ("bob", pair.bob)):
            for data in pair.out(transport):
                sent.append((name, data))
                pair.give(pair.other(transport), data)
    return sent


@PLAIN_AND_SEALED
@pytest.mark.parametrize("writes", [False, True], ids=["idle", "with a message"])
def test_both_sides_learn_the_names(key: bytes | None, writes: bool) -> None:
    pair = Pair(key=key)
    pair.ann.add_peer("dora", B, pair.now)
    if writes:
        pair.send(to="dora")
    sent = wait(pair, 20.0)
    assert events(pair.bob) == [PeerRefused("ann", "it calls this process 'dora'; this is 'bob'")]
    refused = [event for event in events(pair.ann) if isinstance(event, PeerRefused)]
    assert refused == [PeerRefused("dora", "'bob' is at its address")]
    (reason,) = pair.ann.blocked(pair.now) if writes else [None]
    assert reason is None or "'bob' is at its address" in reason.why
    asked = [data for name, data in sent if name == "ann"]
    told = [data for name, data in sent if name == "bob"]
    assert 0 < len(told) <= len(asked)  # one answer for each greeting
    assert not pair.bob._peers.known
    assert pair.ann._peers.known.keys() == {"dora"}


def test_the_process_is_found_when_its_address_is_corrected() -> None:
    pair = Pair()
    pair.ann.add_peer("dora", A, pair.now)  # which is ann's own, but in this test nobody cares
    pair.ann.timer_fired(pair.now)
    pair.exchange()
    pair.ann.add_peer("bob", B, pair.now)
    wait(pair, 1.0)
    pair.send(b"hello")
    wait(pair, 1.0)
    assert payloads(pair.bob) == [b"hello"]


@PLAIN_AND_SEALED
def test_a_second_name_for_a_peer_that_is_up(key: bytes | None) -> None:
    """The session with its real name goes on, without an error."""
    pair = Pair(key=key).meet()
    pair.ann.add_peer("dora", B, pair.now)
    wait(pair, 20.0)
    up, refused = events(pair.ann)[:2]
    assert (up, refused) == (PeerUp("bob"), PeerRefused("dora", "'bob' is at its address"))
    assert pair.session.established
    assert not pair.session.trouble
    pair.send(b"hello")
    pair.exchange()
    assert payloads(pair.bob) == [b"hello"]


def test_a_peer_that_was_reached_is_not_accused() -> None:
    """Bob has moved, and another process has his former address."""
    pair = Pair().meet()
    carol = pair.start("carol", 3001)
    pair.later(3.0)
    for data, _ in pair.ann.datagrams_to_send(pair.now):
        carol.datagram_received(data, A, pair.now)
    pair.ann._greeter.greet(pair.ann._peers.known["bob"], 0, False, B)
    for data, _ in pair.ann.datagrams_to_send(pair.now):
        carol.datagram_received(data, A, pair.now)
    for data, _ in carol.datagrams_to_send(pair.now):
        pair.ann.datagram_received(data, B, pair.now)
    assert events(carol)  # it was called by another name
    assert not [event for event in events(pair.ann) if isinstance(event, PeerRefused)]
    assert pair.ann._peers.known.keys() == {"bob"}


def calls(pair: Pair, count: int) -> list[PeerRefused]:
    """Many processes call bob by another name."""
    for k in range(count):
        caller: Transport[Any] = pair.start(f"caller {k}", 5001)
        caller.add_peer("dora", B, pair.now)
        caller.timer_fired(pair.now)
        for data, _ in caller.datagrams_to_send(pair.now):
            pair.bob.datagram_received(data, C, pair.now)
        pair.now += 0.1
    return [event for event in events(pair.bob) if isinstance(event, PeerRefused)]


def test_a_flood_of_names_causes_no_flood_of_events_and_no_records() -> None:
    pair = Pair()
    assert len(calls(pair, CALLERS + 50)) == CALLERS
    assert not pair.bob._peers.known


def test_who_does_not_have_the_key_gets_no_answer() -> None:
    pair = Pair()
    pair.bob = pair.start("bob", 2002, key=KEY)
    assert not calls(pair, 3)
    assert not pair.out(pair.bob)


def test_no_answer_to_an_answer() -> None:
    """Nobody is kept busy by two processes that both call the other by a wrong name."""
    pair = Pair()
    pair.ann.add_peer("dora", B, pair.now)
    pair.ann.timer_fired(pair.now)
    (asked,) = pair.out(pair.ann)
    pair.give(pair.bob, asked)
    (told,) = pair.out(pair.bob)
    pair.give(pair.ann, told)
    assert not pair.out(pair.ann)
