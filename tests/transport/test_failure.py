"""Peers that fail, are given up, or cannot be worked with."""

from __future__ import annotations

from typing import Any

import pytest

from causewire.transport import (
    NodeSuperseded,
    PeerForgotten,
    PeerGone,
    PeerRefused,
    PeerSilent,
    Superseded,
    UnknownPeer,
)
from causewire.transport.frames import put_obituary
from causewire.transport.session import Session
from causewire.transport.timers import Timers

from ..steps import steps
from .hostile import Target
from .pair import A, B, Pair, events, interpreted, payloads
from .three import PLACES, Three, transport

# -- the hang ----------------------------------------------------------------------


def test_a_refused_peer_does_not_keep_the_timer_busy() -> None:
    """Under `ks`, a member that restarts is refused; the others must not hang."""
    pair = Pair(protocol="ks").meet()
    pair.bob = pair.start("bob", 2 << 20)
    pair.bob.add_peer("ann", A, pair.now)
    pair.bob.timer_fired(pair.now)
    pair.exchange()
    for _ in range(20):
        pair.now += 3.0
        assert steps(lambda: pair.ann.timer_fired(pair.now)) < 1000
        pair.exchange()
        due = pair.ann.next_timer()
        assert due is None or due > pair.now


def test_a_timer_that_does_not_move_forward_is_an_error() -> None:
    pair = Pair().meet()
    peer = pair.ann._peers.known["bob"]
    with pytest.raises(AssertionError, match="does not move forward"):
        Timers().again(peer, 5.0, 5.0)


def test_in_production_it_is_skipped_and_logged(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("causewire.transport.timers.STRICT", False)
    timers = Timers()
    peer = Pair().meet().ann._peers.known["bob"]
    peer.armed = None
    timers.again(peer, 5.0, 5.0)
    assert timers.first is not None
    assert timers.first > 5.0
    assert "does not move forward" in caplog.text


def test_both_sides_of_a_refusal_are_told() -> None:
    pair = Pair(protocol="csps")
    pair.bob = pair.start("bob", 2002, protocol="sps")
    pair.ann.add_peer("bob", B, pair.now)
    pair.send(b"x")
    pair.ann.timer_fired(pair.now)
    pair.exchange()
    assert events(pair.bob) == [PeerRefused("ann", "it runs csps, this is sps")]
    assert events(pair.ann) == [PeerRefused("bob", "it runs sps, this is csps")]
    pair.later(2.0)
    assert "bob was refused: it runs sps, this is csps" in str(pair.ann.blocked(pair.now)[0])


# -- giving up ---------------------------------------------------------------------


@pytest.mark.parametrize("early", [False, True])
def test_one_dead_process_stops_the_others_until_it_is_forgotten(early: bool) -> None:
    """Unless csps may reply early: then an answer does not wait for permits of its receiver."""
    three = Three(protocol="csps", protocol_options={"replies_early": early})
    ann, bob = three["ann"], three["bob"]
    three.isolate("carol")
    receipt = ann.send("carol", b"lost")
    ann.send("bob", b"flagged")
    three.run(1.0)
    assert payloads(bob) == [b"flagged"]
    bob.send("ann", b"answer")
    three.run(5.0)
    first = payloads(ann)
    assert first == ([b"answer"] if early else [])
    ann.forget("carol", three.now)
    three.run(0.1)
    assert first + payloads(ann) == [b"answer"]
    assert receipt is not None
    assert receipt.failed == ("carol",)
    assert PeerForgotten("carol", 1) in events(ann)
    assert PeerForgotten("carol", 0) in events(bob)  # bob is told before anything else
    assert ann.idle
    assert bob.idle


def test_a_peer_is_given_up_after_a_time() -> None:
    three = Three(give_up_after=10.0)
    ann = three["ann"]
    three.isolate("carol")
    ann.send("carol", b"lost")
    three.run(9.0)
    assert any(isinstance(event, PeerSilent) for event in events(ann))
    assert PeerForgotten("carol", 1) not in events(ann)
    three.run(1.5)
    assert PeerForgotten("carol", 1) in events(ann)
    assert ann.idle
    with pytest.raises(PeerGone, match="carol"):
        ann.send("carol", b"x")


def test_an_idle_peer_that_dies_is_given_up_too() -> None:
    three = Three(give_up_after=10.0)
    three.isolate("carol")
    three.run(3.5)
    assert any(isinstance(event, PeerSilent) for event in events(three["ann"]))
    three.run(9.0)
    assert PeerForgotten("carol", 0) in events(three["ann"])


def test_a_peer_that_was_never_reached_is_given_up() -> None:
    pair = Pair(give_up_after=10.0)
    pair.ann.add_peer("bob", B, pair.now)
    receipt = pair.ann.send("bob", b"x")
    for _ in range(22):
        pair.later(0.5)
        pair.out(pair.ann)
    assert PeerForgotten("bob", 1) in events(pair.ann)
    assert receipt is not None
    assert receipt.failed == ("bob",)
    assert pair.ann.idle
    pair.meet()  # it comes after all
    pair.send(b"welcome")
    pair.exchange()
    assert payloads(pair.bob) == [b"welcome"]


def test_times_for_each_peer() -> None:
    three = Three(give_up_after={"carol": 5.0})
    for name in ("bob", "carol"):
        three.isolate(name)
        three["ann"].send(name, b"x")
    three.run(20.0)
    forgotten = [e.name for e in events(three["ann"]) if isinstance(e, PeerForgotten)]
    assert forgotten == ["carol"]


def test_a_time_to_give_up_after_is_positive() -> None:
    with pytest.raises(ValueError, match="above 0"):
        transport("ann", incarnation=1, give_up_after=0.0)


def test_who_is_unknown_cannot_be_forgotten() -> None:
    with pytest.raises(UnknownPeer, match="zoe"):
        Pair().ann.forget("zoe", 1.0)


def test_the_forgotten_is_told_and_can_come_back() -> None:
    three = Three()
    three["ann"].forget("carol", three.now)
    three.run(0.5)
    assert any(isinstance(event, NodeSuperseded) for event in events(three["carol"]))
    floor = three["carol"].me.superseded
    three.all["carol"] = transport("carol", incarnation=floor + 5)
    three.introduce("carol")
    three.run(3.0)
    for name in ("ann", "bob"):
        three[name].send("carol", name.encode())
    three.run(1.0)
    assert sorted(payloads(three["carol"])) == [b"ann", b"bob"]


def test_the_forgotten_gives_nobody_up() -> None:
    """It is not answered any more, because it is not accepted: the others are not dead."""
    three = Three(give_up_after=3.0)
    three["carol"].send("ann", b"x")
    three["ann"].forget("carol", three.now)
    three.run(20.0)
    for name in ("ann", "bob"):
        assert not three[name].me.superseded
    assert not [event for event in events(three["carol"]) if isinstance(event, PeerForgotten)]
    with pytest.raises(Superseded):
        three["carol"].forget("ann", three.now)


@pytest.mark.parametrize("protocol", ["csps", "ks"])
def test_the_news_that_a_peer_left_may_be_faster_than_its_goodbye(protocol: str) -> None:
    """carol leaves; bob hears it from ann first. Nobody is superseded, and nobody refused."""
    three = Three(protocol=protocol)
    three.cut = {("carol", "bob"), ("bob", "carol")}
    three["carol"].close()
    three.run(0.2)
    three.cut = set()
    three.run(3.0)
    assert not three["carol"].me.superseded
    told = [event for name in PLACES for event in events(three[name])]
    assert not [event for event in told if isinstance(event, PeerRefused | NodeSuperseded)]


def what_carol_gets(protocol: str = "csps") -> list[bytes]:
    """ann forgets carol, who is alive and still talks to bob until bob is told."""
    three = Three(protocol=protocol)
    ann, bob, carol = three["ann"], three["bob"], three["carol"]
    three.cut = {("ann", "carol"), ("carol", "ann")}
    ann.send("carol", b"m")  # carol will never get this
    ann.send("bob", b"after m")
    three.run(1.0)
    assert payloads(bob) == [b"after m"]
    bob.send("carol", b"depends on m")
    three.run(1.0)
    assert payloads(carol) == []  # held back at bob, or under adaptive at carol
    ann.forget("carol", three.now)
    three.run(2.0)
    return payloads(carol)


@pytest.mark.parametrize("protocol", ["csps", "sps", "adaptive"])
def test_nothing_leaks_through_the_forgotten(protocol: str) -> None:
    assert what_carol_gets(protocol) == []  # bob learned of the obituary before the permit


@interpreted
def test_without_obituaries_it_would(monkeypatch: pytest.MonkeyPatch) -> None:
    def tells_nobody(self: Session, budget: object, sent: object) -> bool:
        self.obituaries = {}
        return True

    monkeypatch.setattr(Session, "_put_obituaries", tells_nobody)
    assert what_carol_gets() == [b"depends on m"]


@interpreted
def test_and_if_permits_were_told_before_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """F2 is about acks and permits as well: a permit alone would let bob go on."""

    def permits_first(self: Session, budget: Any, sent: Any) -> bool:
        self._put_control(budget, sent)
        self.obituaries = {}
        return False

    monkeypatch.setattr(Session, "_put_obituaries", permits_first)
    assert what_carol_gets() == [b"depends on m"]


def test_two_that_forget_each_other() -> None:
    three = Three()
    three.cut = {("ann", "carol"), ("carol", "ann")}
    three["ann"].forget("carol", three.now)
    three["carol"].forget("ann", three.now)
    three.run(2.0)
    # bob believes the one that he hears of first, and then ignores the other.
    assert [name for name in three.all if three[name].me.superseded] == ["carol"]
    assert three["bob"].idle
    three["ann"].send("bob", b"x")
    three.run(1.0)
    assert payloads(three["bob"]) == [b"x"]


def test_a_busy_process_does_not_blame_its_peers() -> None:
    """The loop stands still for a minute: that is no silence of others."""
    three = Three(give_up_after=10.0)
    three["ann"].send("bob", b"x")
    three["ann"].datagrams_to_send(three.now)
    three.now += 60.0
    three["ann"].timer_fired(three.now)
    three.run(5.0)
    kinds = {type(event) for event in events(three["ann"])}
    assert PeerForgotten not in kinds
    assert payloads(three["bob"]) == [b"x"]


def test_an_absurd_obituary_is_not_believed() -> None:
    target = Target()
    target.hit(put_obituary("carol", (1 << 63) - 1))
    assert "carol" not in target.bob._peers.floors
    assert target.bob.stats.dropped["implausible_obituary"] == 1
    target.hit(put_obituary("carol", 77 << 20))
    assert target.bob._peers.floors["carol"] == 77 << 20


def test_a_peer_that_only_greeted_is_looked_for_and_given_up() -> None:
    """It greeted under a number that is given up, so there is no session; nobody added it."""
    pair = Pair(give_up_after=5.0)
    pair.ann._peers.floors["bob"] = 3000
    pair.bob.add_peer("ann", A, pair.now)
    pair.bob.timer_fired(pair.now)
    pair.give(pair.ann, *pair.out(pair.bob))
    assert not pair.ann._peers.known["bob"].wanted
    pair.out(pair.ann)  # says that bob is superseded
    receipt = pair.ann.send("bob", b"lost")
    assert receipt is not None
    greetings = []
    for _ in range(24):
        greetings += pair.out(pair.ann)
        pair.later(0.25)
    assert len(greetings) == 2  # its address is not proved: no more than three for a greeting
    assert receipt.failed == ("bob",)
