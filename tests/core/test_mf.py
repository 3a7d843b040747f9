"""The buffer protocol: its state, its faults to bear, and what it tells of itself."""

from __future__ import annotations

import copy
import pickle
import random
from functools import partial
from typing import Any

import pytest

from causewire.core.endpoint import (
    Blocked,
    Delivery,
    Endpoint,
    LocalProtocolError,
    Packet,
    RemoteProtocolError,
    Wait,
)
from causewire.core.fifo import Ack as OtherAck
from causewire.core.mf import Ack, Mf, MfMessage


def numbers(endpoint: Endpoint) -> list[tuple[str, str, int]]:
    """The packets that an endpoint has to send: to whom, kind, message number."""
    return [(to, packet.kind, packet[1]) for to, packet in endpoint.take_packets()]


def busy(*, fifo: bool = False) -> Mf:
    """Has got message 4 of dave, and sent 1 and 2 to bob, 3 to carol, 4 and 5 to bob."""
    alice = Mf("alice", fifo=fifo)
    alice.receive("dave", MfMessage(4, "hello"))
    for to in ("bob", "bob", "carol", "bob", "bob"):
        alice.send(to, "x")
    return alice


# -- sending ------------------------------------------------------------------


def test_one_message_at_a_time() -> None:
    alice = busy()
    assert numbers(alice) == [("dave", "ack", 4), ("bob", "msg", 1)]
    for mid, (peer, following) in enumerate(
        [("bob", "bob"), ("bob", "carol"), ("carol", "bob")], 1
    ):
        alice.receive(peer, Ack(mid))
        assert numbers(alice) == [(following, "msg", mid + 1)]


def test_fifo_posts_a_run_to_one_receiver_and_no_more() -> None:
    alice = busy(fifo=True)
    assert numbers(alice) == [("dave", "ack", 4), ("bob", "msg", 1), ("bob", "msg", 2)]
    alice.receive("bob", Ack(1))
    assert numbers(alice) == []
    alice.send("bob", "must not overtake the one to carol, nor 4 and 5")
    assert numbers(alice) == []
    alice.receive("bob", Ack(2))
    assert numbers(alice) == [("carol", "msg", 3)]
    alice.receive("carol", Ack(3))
    assert numbers(alice) == [("bob", "msg", mid) for mid in (4, 5, 6)]


def test_a_copy_to_oneself_is_delivered_inside_send_and_waits_for_nothing() -> None:
    alice = Mf("alice")
    alice.send("bob", "x")
    assert alice.send("alice", "note") == 2
    assert alice.send({"alice", "carol"}, "both") == 3
    assert alice.take_deliveries() == [Delivery("alice", 2, "note"), Delivery("alice", 3, "both")]
    assert [b[:3] for b in alice.blocked()] == [("alice", 3, "carol")]


def test_a_message_sent_from_inside_a_delivery_comes_after_it() -> None:
    bob = Mf("bob")
    bob.on_delivery = lambda delivery: bob.send("alice", ("re", delivery.payload)) and None
    bob.receive("alice", MfMessage(1, "x"))
    bob.receive("alice", MfMessage(2, "y"))
    assert numbers(bob) == [("alice", "ack", 1), ("alice", "msg", 1), ("alice", "ack", 2)]
    assert [b.waits for b in bob.blocked()] == [(Wait("ack", "alice", 1),)]


@pytest.mark.parametrize("to", [[], {"bob", "carol"}, "", 7, {"bob", ""}, [["bob"]]])
def test_misuse_changes_nothing(to: Any) -> None:
    alice = busy()
    before = copy.copy(alice)
    with pytest.raises(LocalProtocolError):
        alice.send(to, "x")
    assert alice == before
    assert alice.send("bob", "x") == 6


# -- loss and duplication -----------------------------------------------------


def test_retransmits_what_is_posted_and_only_that() -> None:
    alice = busy()
    alice.take_packets()
    alice.retransmit()
    assert numbers(alice) == [("bob", "msg", 1)]
    alice.receive("bob", Ack(1))
    alice.take_packets()
    alice.retransmit()
    assert numbers(alice) == [("bob", "msg", 2)]


def test_a_repeated_message_is_acked_again_and_not_delivered_again() -> None:
    bob = Mf("bob")
    bob.receive("alice", MfMessage(2, "x"))
    bob.receive("alice", MfMessage(2, "x"))
    bob.receive("alice", MfMessage(5, "y"))
    bob.receive("alice", MfMessage(2, "x"))
    assert [d.mid for d in bob.take_deliveries()] == [2, 5]
    assert numbers(bob) == [("alice", "ack", mid) for mid in (2, 2, 5, 2)]


def test_a_repeated_ack_does_nothing() -> None:
    alice = busy()
    alice.receive("bob", Ack(1))
    alice.receive("bob", Ack(2))
    before = copy.copy(alice)
    for mid in (1, 2):
        alice.receive("bob", Ack(mid))
        assert alice == before


def test_fifo_a_channel_that_breaks_is_made_up_for() -> None:
    """All that was under way is lost, acks too; `retransmit` starts from there."""
    alice, bob = Mf("alice", fifo=True), Mf("bob", fifo=True)
    for payload in "vwxyz":
        alice.send("bob", payload)
    for _, packet in alice.take_packets()[:4]:
        bob.receive("alice", packet)
    for _, packet in bob.take_packets()[:2]:
        alice.receive("bob", packet)
    alice.retransmit()
    resent = alice.take_packets()
    assert [packet[1] for _, packet in resent] == [3, 4, 5]
    for _, packet in resent:
        bob.receive("alice", packet)
    for _, packet in bob.take_packets():
        alice.receive("bob", packet)
    assert [d.payload for d in bob.take_deliveries()] == list("vwxyz")
    assert alice.idle


def test_fifo_a_channel_with_a_gap_is_noticed() -> None:
    alice, bob = Mf("alice", fifo=True), Mf("bob", fifo=True)
    alice.send("bob", "lost, or late")
    alice.send("bob", "x")
    bob.receive("alice", alice.take_packets()[1][1])
    ((_, ack),) = bob.take_packets()
    with pytest.raises(RemoteProtocolError, match="not next"):
        alice.receive("bob", ack)


# -- bad input ----------------------------------------------------------------


@pytest.mark.parametrize(
    ("source", "packet"),
    [
        ("bob", Ack(2)),  # in the buffer
        ("bob", Ack(9)),
        ("carol", Ack(1)),  # was for bob
        ("carol", Ack(3)),
        ("stranger", Ack(1)),
        ("alice", MfMessage(1, "x")),  # from oneself
        ("", MfMessage(1, "x")),
        ("bob", OtherAck(1)),  # of another protocol
        ("bob", ("ack", 1)),
        ("bob", None),
    ],
)
def test_what_no_correct_peer_sends_changes_nothing(source: str, packet: Any) -> None:
    alice = busy()
    before = copy.copy(alice)
    with pytest.raises(RemoteProtocolError):
        alice.receive(source, packet)
    assert alice == before
    alice.receive("bob", Ack(1))


@pytest.mark.parametrize("mid", [0, -1, 1.0, "1", None, True])
def test_malformed_packets_cannot_be_made(mid: Any) -> None:
    with pytest.raises(RemoteProtocolError):
        MfMessage(mid, "x")
    with pytest.raises(RemoteProtocolError):
        Ack(mid)


# -- what it tells of itself --------------------------------------------------


def held(mid: int, to: str, *ack: Any) -> Blocked:
    return Blocked("alice", mid, to, "sender", (Wait("ack", *ack),))


def test_blocked_names_the_ack_that_lets_a_message_go() -> None:
    assert busy().blocked() == [
        held(2, "bob", "bob", 1),
        held(3, "carol", "bob", 2),
        held(4, "bob", "carol", 3),
        held(5, "bob", "bob", 4),
    ]
    assert busy(fifo=True).blocked() == [
        held(3, "carol", "bob", 2),
        held(4, "bob", "carol", 3),
        held(5, "bob", "carol", 3),
    ]
    assert Mf("alice").blocked() == []


def test_footprint() -> None:
    assert Mf("alice").footprint()[:2] == (1, {"msg": 1, "ack": 1})
    alice = busy()
    assert alice.footprint().state == 1 + 5 * 2 + 2  # 5 messages; the last number of dave
    alice.receive("bob", Ack(1))
    assert alice.footprint().state == 1 + 4 * 2 + 2 + 2  # the last number that bob acked
    assert (MfMessage.integers, Ack.integers) == (1, 1)


def test_a_copy_is_equal_and_independent() -> None:
    alice = busy()
    twin = copy.copy(alice)
    assert twin == alice
    assert hash(twin) == hash(alice)
    twin.receive("bob", Ack(1))
    twin.receive("erin", MfMessage(1, "x"))
    twin.send("bob", "y")
    assert twin != alice
    assert alice == busy()


def test_state_has_no_history_of_order() -> None:
    one, other = Mf("alice"), Mf("alice")
    for endpoint, names in ((one, ("bob", "carol")), (other, ("carol", "bob"))):
        for name in names:
            endpoint.receive(name, MfMessage(1, "x"))
        endpoint.take_packets()
        endpoint.take_deliveries()
    assert one == other
    assert hash(one) == hash(other)
    assert one != Mf("alice")
    assert Mf("alice") != Mf("alice", fifo=True)


def test_packets_are_values() -> None:
    for packet in (MfMessage(3, ("x", None)), Ack(3)):
        again = pickle.loads(pickle.dumps(packet))
        assert again == packet
        assert type(again) is type(packet)
        assert hash(again) == hash(packet)
    assert MfMessage(3, "x") != MfMessage(3, "y")
    assert repr(MfMessage(3, "x")) == "MfMessage(mid=3, payload='x')"


# -- random runs --------------------------------------------------------------


class Judge:
    """Causal order by its definition, with a set of messages for each process."""

    def __init__(self) -> None:
        self.past: dict[str, set[str]] = {}
        self.of: dict[str, tuple[str, frozenset[str]]] = {}
        """Destination and causal past of each message."""
        self.got: dict[str, list[str]] = {}

    def sent(self, source: str, destination: str, name: str) -> None:
        past = self.past.setdefault(source, set())
        self.of[name] = (destination, frozenset(past))
        past.add(name)

    def delivered(self, process: str, name: str) -> None:
        destination, past = self.of[name]
        got = self.got.setdefault(process, [])
        assert destination == process
        assert name not in got, f"{name} delivered twice"
        missing = {m for m in past if self.of[m][0] == process} - set(got)
        assert not missing, f"{process} delivered {name} before {missing}"
        got.append(name)
        self.past.setdefault(process, set()).update(past, [name])


class Run:
    """A few processes that send at random over a network that does what it likes."""

    def __init__(self, seed: int, *, fifo: bool) -> None:
        self.rng = random.Random(seed)
        self.names = "abcde"[: self.rng.randint(2, 5)]
        self.judge = Judge()
        self.flight: list[tuple[str, str, Packet]] = []
        self.arrived: list[tuple[str, str, Packet]] = []
        self.acks: set[tuple[str, str, int]] = set()
        self.waiting: dict[tuple[str, int], set[tuple[str, str, int]]] = {}
        self.order: dict[str, list[int]] = {name: [] for name in self.names}
        self.left = 20
        self.held = False
        """Whether some message was ever held back."""
        self.fifo = fifo
        self.endpoints = {name: Mf(name, fifo=fifo) for name in self.names}
        for name, endpoint in self.endpoints.items():
            endpoint.on_delivery = partial(self.deliver, name)

    def send(self, name: str) -> None:
        self.left -= 1
        to = self.rng.choice(self.names.replace(name, ""))
        payload = f"message {self.left}"
        self.judge.sent(name, to, payload)
        self.endpoints[name].send(to, payload)

    def deliver(self, name: str, delivery: Delivery) -> None:
        self.judge.delivered(name, delivery.payload)
        self.order[delivery.source].append(delivery.mid)
        if self.left and self.rng.random() < 0.5:
            self.send(name)

    def collect(self, name: str) -> None:
        """Also checks that `blocked` is exact: what waits, waits for acks that have
        not come, and what all acks have come for has left."""
        for to, packet in self.endpoints[name].take_packets():
            self.flight.append((name, to, packet))
            if type(packet) is MfMessage:
                assert self.waiting.pop((name, packet[1]), set()) <= self.acks
        for blocked in self.endpoints[name].blocked():
            waits = {(name, peer, mid) for kind, peer, mid in blocked.waits if kind == "ack"}
            self.held = True
            assert waits
            assert not waits & self.acks
            assert self.waiting.setdefault((name, blocked.mid), waits) == waits

    def arrive(self, source: str, to: str, packet: Packet) -> None:
        if type(packet) is Ack:
            self.acks.add((to, source, packet[1]))
        self.arrived.append((source, to, packet))
        self.endpoints[to].receive(source, packet)
        self.collect(to)

    def step(self) -> None:
        rng = self.rng
        choice = rng.random()
        if self.left and choice < 0.2:
            name = rng.choice(self.names)
            self.send(name)
            self.collect(name)
        elif self.flight and choice < 0.7:
            k = rng.randrange(len(self.flight))
            if self.fifo:
                k = [f[:2] for f in self.flight].index(self.flight[k][:2])
            self.arrive(*self.flight.pop(k))
        elif self.flight and choice < 0.85 and not self.fifo:
            del self.flight[rng.randrange(len(self.flight))]
        elif self.arrived and choice < 0.95:
            self.arrive(*rng.choice(self.arrived))
        else:
            name = rng.choice(self.names)
            self.endpoints[name].retransmit()
            self.collect(name)

    def finish(self) -> None:
        for _ in range(100):
            while self.flight:
                self.arrive(*self.flight.pop(0))
            for name, endpoint in self.endpoints.items():
                endpoint.retransmit()
                self.collect(name)
        assert all(endpoint.idle for endpoint in self.endpoints.values())
        assert not self.waiting
        assert sum(map(len, self.judge.got.values())) == len(self.judge.of)


@pytest.mark.parametrize("fifo", [False, True])
def test_random_runs(fifo: bool) -> None:
    """Loss, duplication, replay and reordering; with `fifo`, duplication and replay."""
    lively = 0
    for seed in range(150):
        run = Run(seed, fifo=fifo)
        try:
            for _ in range(150):
                run.step()
                posted = [endpoint._posted for endpoint in run.endpoints.values()]
                assert all(len({to for to, _ in out}) <= 1 for out in posted)
                assert fifo or all(len(out) <= 1 for out in posted)
            run.finish()
            # Lemma 3, wherever the messages went.
            assert fifo or all(mids == sorted(mids) for mids in run.order.values())
        except BaseException:
            print(f"seed {seed}, fifo={fifo}")
            raise
        lively += run.left == 0 and run.held
    assert lively > 100, "most runs must send all they can, and hold some of it back"
