"""Peers that fail, leave, are given up, or cannot be worked with."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from causewire import protocols
from causewire.core.endpoint import LocalProtocolError
from causewire.core.run import MessageRun
from causewire.transport import (
    NameInUse,
    NodeSuperseded,
    PeerForgotten,
    PeerGone,
    PeerLeft,
    PeerRefused,
    PeerSilent,
    Superseded,
    Transport,
    TransportConfig,
    UnknownPeer,
    VerificationFailed,
)
from causewire.transport.frames import put_obituary, put_run
from causewire.transport.session import Session
from causewire.transport.timers import Timers

from .hostile import Target
from .pair import A, B, Pair, events, payloads
from .test_steps import steps

C = ("127.0.0.1", 3)
PLACES = {"ann": A, "bob": B, "carol": C}


def transport(name: str, incarnation: int, **settings: Any) -> Transport[Any]:
    """A transport with random bytes of its own."""
    settings.setdefault("entropy", Random(f"{name} {incarnation}").randbytes)
    return Transport(name, incarnation=incarnation, **settings)


class Three:
    """`ann`, `bob` and `carol`, who know each other, and links that a test can cut."""

    def __init__(self, **settings: Any) -> None:
        self.now = 100.0
        self.cut: set[tuple[str, str]] = set()
        self.settings = settings
        self.all = {
            name: transport(name, incarnation=(k + 1) << 20, **settings)
            for k, name in enumerate(PLACES)
        }
        for name in PLACES:
            self.introduce(name)
        self.run(1.0)

    def introduce(self, name: str) -> None:
        for other, place in PLACES.items():
            if other != name:
                self.all[name].add_peer(other, place, self.now)

    def run(self, seconds: float) -> None:
        """Let datagrams travel and timers fire for some time."""
        end = self.now + seconds
        while self.now < end:
            self.exchange()
            times = [t.next_timer() for t in self.all.values()]
            due = min([when for when in times if when is not None], default=end)
            self.now = min(end, max(due, self.now + 0.001))
            for one in self.all.values():
                when = one.next_timer()
                if when is not None and when <= self.now:
                    one.timer_fired(self.now)
        self.exchange()

    def exchange(self) -> None:
        names = {place: name for name, place in PLACES.items()}
        for _ in range(100):
            some = [
                (name, names[place], data)
                for name, one in self.all.items()
                for data, place in one.datagrams_to_send(self.now)
            ]
            if not some:
                return
            for source, target, data in some:
                if (source, target) not in self.cut and target in self.all:
                    self.all[target].datagram_received(data, PLACES[source], self.now)

    def isolate(self, name: str) -> None:
        for other in PLACES:
            self.cut |= {(name, other), (other, name)}

    def __getitem__(self, name: str) -> Transport[Any]:
        return self.all[name]


# -- the hang ----------------------------------------------------------------------


def test_a_refused_peer_does_not_keep_the_timer_busy() -> None:
    """Under `ks`, a member that restarts is refused; the others must not hang."""
    pair = Pair(protocol="ks", peers=("ann", "bob")).meet()
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
    pair = Pair()
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


def test_one_dead_process_stops_the_others_until_it_is_forgotten() -> None:
    three = Three()
    ann, bob = three["ann"], three["bob"]
    three.isolate("carol")
    receipt = ann.send("carol", b"lost")
    ann.send("bob", b"flagged")
    three.run(1.0)
    assert payloads(bob) == [b"flagged"]
    bob.send("ann", b"held back")
    three.run(5.0)
    assert payloads(ann) == []
    ann.forget("carol", three.now)
    three.run(0.1)
    assert payloads(ann) == [b"held back"]
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


def test_protocols_that_cannot_go_on_refuse_at_construction() -> None:
    with pytest.raises(LocalProtocolError, match="ks cannot continue without a member"):
        transport("ann", incarnation=1, protocol="ks", peers=("ann", "bob"), give_up_after=5.0)
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
    three = Three(protocol=protocol, peers=list(PLACES))
    three.cut = {("carol", "bob"), ("bob", "carol")}
    three["carol"].close()
    three.run(0.2)
    three.cut = set()
    three.run(3.0)
    assert not three["carol"].me.superseded
    told = [event for name in PLACES for event in events(three[name])]
    assert not [event for event in told if isinstance(event, PeerRefused | NodeSuperseded)]


def what_carol_gets() -> list[bytes]:
    """ann forgets carol, who is alive and still talks to bob until bob is told."""
    three = Three()
    ann, bob, carol = three["ann"], three["bob"], three["carol"]
    three.cut = {("ann", "carol"), ("carol", "ann")}
    ann.send("carol", b"m")  # carol will never get this
    ann.send("bob", b"after m")
    three.run(1.0)
    assert payloads(bob) == [b"after m"]
    bob.send("carol", b"depends on m")
    three.run(1.0)
    assert payloads(carol) == []  # held back at bob
    ann.forget("carol", three.now)
    three.run(2.0)
    return payloads(carol)


def test_nothing_leaks_through_the_forgotten() -> None:
    assert what_carol_gets() == []  # bob learned of the obituary before the permit


def test_without_obituaries_it_would(monkeypatch: pytest.MonkeyPatch) -> None:
    def tells_nobody(self: Session, budget: object, sent: object) -> bool:
        self.obituaries = {}
        return True

    monkeypatch.setattr(Session, "_put_obituaries", tells_nobody)
    assert what_carol_gets() == [b"depends on m"]


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


# -- limits that recover -----------------------------------------------------------


def test_members_that_come_and_leave_are_forgotten() -> None:
    """Four thousand of them, one after the other: memory does not grow."""
    config = TransportConfig(peers=50, linger=5.0)
    hub = transport("hub", incarnation=1 << 20, config=config)
    now = 100.0
    for k in range(400):
        name = f"member {k}"
        member = transport(name, incarnation=(k + 2) << 20, config=config)
        member.add_peer("hub", A, now)
        member.timer_fired(now)
        member.send("hub", b"hello")
        for step in range(8):
            for data, _ in member.datagrams_to_send(now):
                hub.datagram_received(data, B, now)
            for message in list(hub.messages):
                hub.messages.clear()
                hub.send(message.source, b"welcome")
            for data, _ in hub.datagrams_to_send(now):
                member.datagram_received(data, A, now)
            if step == 5:
                assert [m.payload for m in member.messages] == [b"welcome"]
                member.close()
        assert not member.unheard
        while hub.next_event() is not None:
            pass
        now += 0.5
        due = hub.next_timer()
        if due is not None and due <= now:
            hub.timer_fired(now)
    assert hub.status().counters["delivered"] == 400
    assert "too_many_peers" not in hub.stats.dropped
    assert len(hub._peers.known) <= 50
    assert len(hub._peers.floors) <= 50
    assert len(hub._peers.by_alias) <= 50
    assert len(hub._peers.departed) <= 50
    assert len(hub._carrier.endpoint._peers) <= 50  # type: ignore[attr-defined]


def test_idle_processes_send_few_datagrams() -> None:
    """In a mesh, each sends a ping a second and as many acks, whatever their number."""
    size, seconds = 16, 60
    places = {f"p{k:02}": ("127.0.0.1", 1000 + k) for k in range(size)}
    mesh: dict[Any, Transport[Any]] = {}
    now = 100.0
    for k, (name, place) in enumerate(places.items()):
        mesh[place] = transport(name, incarnation=(k + 1) << 20)
        for other, there in places.items():
            mesh[place].add_peer(other, there, now)
    count = 0
    for step in range(10 * (seconds + 20)):
        now += 0.1
        for place, one in mesh.items():
            due = one.next_timer()
            if due is not None and due <= now:
                one.timer_fired(now)
            for data, to in one.datagrams_to_send(now):
                mesh[to].datagram_received(data, place, now)
                count += step >= 200
    for one in mesh.values():
        assert sum(peer.up for peer in one.status().peers.values()) == size - 1
    assert 0.5 < count / size / seconds < 2.5


def test_a_path_that_does_not_carry_long_datagrams() -> None:
    """A loopback address behind which datagrams above 1,500 bytes vanish."""
    pair = Pair(config=TransportConfig()).meet()
    sent = [bytes(5000), bytes(200_000), *[b"%d" % k * 300 for k in range(200)]]
    for payload in sent:
        pair.send(payload)
    got: list[bytes] = []
    for _ in range(400):
        for one in (pair.ann, pair.bob):
            for data in pair.out(one):
                if len(data) <= 1500:
                    pair.give(pair.other(one), data)
        got += payloads(pair.bob)
        if len(got) == len(sent):
            break
        pair.later(0.1)
    assert got == sent


def test_long_datagrams_stay_where_they_arrive() -> None:
    pair = Pair(config=TransportConfig()).meet()
    for _ in range(30):
        pair.send(bytes(20_000))
    pair.exchange()
    assert len(payloads(pair.bob)) == 30
    pair.send(bytes(20_000))
    pair.out(pair.ann)  # lost, and again
    for _ in range(3):
        pair.later(1.0)
        pair.out(pair.ann)
    pair.send(bytes(20_000))
    pair.later(3.0)
    assert max(map(len, pair.out(pair.ann))) > 16_000


def test_what_a_member_sends_out_of_order_is_limited() -> None:
    """Under a protocol on a link, too: messages whose past never arrives."""
    config = TransportConfig(peer_messages=10)
    target = Target("rst", config=config)
    endpoint: Any = target.bob._carrier.endpoint  # type: ignore[attr-defined]
    link: Any = target.bob._carrier
    rst = protocols.create("rst", "ann", group=["ann", "bob"])
    for _ in range(3):
        rst.send("bob", b"never arrives")
    rst.take_packets()
    tail = target.bob._peers.session("ann").inbound.tail
    for k in range(100):
        rst.send("bob", b"")
        ((_, packet),) = rst.take_packets()
        payload = b"\0" + link._codec.encode(packet)
        run = MessageRun([tail + 1 + k], tail + k, [payload], False, len(payload))
        target.hit(put_run(run, [len(payload)]))
    assert len(endpoint.blocked()) <= 20
    assert target.bob.stats.dropped["protocol_violation"] >= 70
