"""Peers that leave, names that are used twice, keys that differ."""

from __future__ import annotations

import pytest

from causewire.transport import (
    NameInUse,
    NodeSuperseded,
    PeerForgotten,
    PeerGone,
    PeerLeft,
    VerificationFailed,
)
from causewire.transport.obituaries import LEFT

from .pair import A, B, Pair, events, payloads
from .three import C, Three, transport

# -- leaving -----------------------------------------------------------------------


def test_a_goodbye_is_acknowledged_and_repeated_until_it_is() -> None:
    pair = Pair().meet()
    pair.bob.close()
    assert pair.out(pair.bob)  # lost
    for _ in range(4):
        assert pair.bob.unheard == ["ann"]
        pair.later(0.5)
        lost = pair.out(pair.bob)
    pair.give(pair.ann, *lost)
    assert any(isinstance(event, PeerLeft) for event in events(pair.ann))
    assert pair.out(pair.ann)  # the ack, lost
    pair.later(2.0)
    pair.give(pair.ann, *pair.out(pair.bob))
    pair.give(pair.bob, *pair.out(pair.ann))
    assert pair.bob.unheard == []


def test_what_is_sent_after_a_goodbye_fails_at_once_unless_it_is_to_wait() -> None:
    pair = Pair().meet()
    pair.bob.close()
    pair.exchange()
    with pytest.raises(PeerGone, match="bob"):
        pair.ann.try_send("bob", b"x")
    with pytest.raises(PeerGone, match="bob"):
        pair.ann.send(["bob"], b"x")
    assert pair.ann.idle
    assert pair.ann.send("bob", b"for the next one", wait_for_peer=True) is not None
    with pytest.raises(PeerGone):
        pair.ann.try_send("bob", b"x")
    pair.bob = pair.start("bob", 9 << 20)
    pair.bob.add_peer("ann", A, pair.now)
    pair.bob.timer_fired(pair.now)
    pair.exchange()
    assert payloads(pair.bob) == [b"for the next one"]
    pair.send(b"and more")


def test_who_left_properly_has_left_whoever_says_so() -> None:
    """bob hears of it from ann, and carol's own goodbye to bob is lost."""
    three = Three()
    three.cut = {("carol", "bob"), ("bob", "carol")}
    three["carol"].close()
    three.run(0.5)
    for name in ("ann", "bob"):
        assert PeerLeft("carol", 0) in events(three[name])
        assert not [e for e in events(three[name]) if isinstance(e, PeerForgotten)]
    assert three["carol"].unheard == ["bob"]
    three.cut.clear()
    three.run(3.0)
    assert three["carol"].unheard == []  # the repeated goodbye is acknowledged


def test_who_heard_of_a_goodbye_from_another_says_so_and_is_not_waited_for() -> None:
    """carol leaves; bob hears it from ann, before carol's own goodbye, and may leave as well."""
    three = Three()
    three.cut = {("carol", "bob")}
    three["carol"].close()
    three.run(0.3)
    assert PeerLeft("carol", 0) in events(three["bob"])
    assert three["carol"].unheard == []
    assert not [e for e in events(three["carol"]) if isinstance(e, NodeSuperseded | PeerLeft)]


def test_a_newcomer_hears_who_left_and_who_was_given_up() -> None:
    three = Three()
    three["carol"].close()
    three.run(0.5)
    session = three["ann"]._peers.live["bob"]
    assert not session.obituaries
    three.all["bob"] = transport("bob", incarnation=9 << 20, **three.settings)
    three.introduce("bob")
    three.run(1.0)
    assert three["bob"]._peers.floors["carol"] == (3 << 20) + 1
    assert (
        three["bob"]._peers.obituaries.word("carol")
        == three["ann"]._peers.obituaries.word("carol")
        >= LEFT
    )
    assert three["ann"]._peers.obituaries.word("bob") < LEFT


# -- names and numbers -------------------------------------------------------------


def test_two_living_processes_with_one_name_are_both_told() -> None:
    three = Three()
    former = three["carol"]
    newcomer = transport("carol", incarnation=9 << 20)
    elsewhere = ("127.0.0.1", 77)
    newcomer.add_peer("ann", A, three.now)
    newcomer.timer_fired(three.now)
    for _ in range(4):
        for data, _ in newcomer.datagrams_to_send(three.now):
            three["ann"].datagram_received(data, elsewhere, three.now)
        for data, place in three["ann"].datagrams_to_send(three.now):
            target = {elsewhere: newcomer, C: former, B: three["bob"]}[place]
            target.datagram_received(data, A, three.now)
        for data, place in former.datagrams_to_send(three.now):
            if place == A:
                three["ann"].datagram_received(data, C, three.now)
    assert NodeSuperseded("carol", 9 << 20) in events(former)
    for _ in range(6):  # the former one goes on for a while
        three.now += 0.5
        former.timer_fired(three.now)
        for data, place in former.datagrams_to_send(three.now):
            if place == A:
                three["ann"].datagram_received(data, C, three.now)
        for data, place in three["ann"].datagrams_to_send(three.now):
            if place == elsewhere:
                newcomer.datagram_received(data, A, three.now)
    assert NameInUse("carol", "ann") in events(newcomer)


def test_another_key_is_reported_with_its_address() -> None:
    pair = Pair(key=b"sixteen bytes or more")
    pair.ann = pair.start("ann", 1 << 20, key=b"another key altogether")
    pair.ann.add_peer("bob", B, pair.now)
    for _ in range(40):
        pair.later(2.0)
        pair.give(pair.bob, *pair.out(pair.ann))
    found = [event for event in events(pair.bob) if isinstance(event, VerificationFailed)]
    assert found == [VerificationFailed(A, 1), VerificationFailed(A, 10)]
