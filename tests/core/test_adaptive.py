"""`adaptive`: what a message waits for, what it lists, and what is left when all is done."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

import pytest

from causewire import protocols
from causewire.core.adaptive import Part
from causewire.core.endpoint import LocalProtocolError
from causewire.testing import Network, run

from .adaptive_world import CAPS, PROFILES, Invariants, adaptive, arrive_where, at_rest, endpoint_of

Link = tuple[str, str]


# -- invariants ---------------------------------------------------------------


@pytest.mark.parametrize("cap", CAPS)
def test_invariants_after_every_step(cap: int | None) -> None:
    invariants = Invariants(bursts=True)
    for seed in range(42):
        profile = PROFILES[seed % len(PROFILES)]
        outcome = run(adaptive(cap=cap, groups=seed % 3), profile, seed, probe=invariants)
        assert outcome.ok, (profile, seed, outcome.explain())
        at_rest(outcome.play.network)
    assert min(invariants.listed, invariants.undelivered) > 1000


class Program:
    """Random sends that relay, cross and reach a third party late, with invariants checked.

    Links to one process are slow, so that much is undelivered there; each other process
    answers, relays or writes to the slow one.
    """

    def __init__(self, protocol: protocols.Protocol, seed: int) -> None:
        self.random = random = Random(f"program {seed}")
        n = random.choice([4, 4, 5])
        self.names = [f"p{k}" for k in range(n)]
        self.network = Network.of(protocol, self.names)
        self.slow = self.names[-1]
        self.left = random.randint(5, 8)
        self.last: dict[str, str] = {}
        self.network.react = self.react
        self.size = random.choice([1, 1, 2, 3])

    def send(self, name: str) -> None:
        if not self.left:
            return
        self.left -= 1
        random = self.random
        others = [each for each in self.names if each != name]
        if random.random() < 0.35 and name != self.slow:
            to = {self.slow}
        elif name in self.last and random.random() < 0.3:
            to = {self.last[name]}
        else:
            to = set(random.sample(others, min(self.size, len(others))))
        self.network.send(name, to, name=f"m{self.left}")

    def react(self, process: str, message: Any) -> None:
        self.last[process] = message.origin
        if self.random.random() < 0.5:
            self.send(process)

    def play(self, probe: Callable[[Network], None]) -> Network:
        random, network = self.random, self.network
        while self.left or network.in_flight:
            if self.left and random.random() < 0.3:
                self.send(random.choice(self.names))
            fast = [k for k, f in enumerate(network.in_flight) if self.slow not in f[:2]]
            if fast and random.random() < 0.93:
                network.arrive(random.choice(fast))
            elif network.in_flight:
                network.arrive(random.randrange(len(network.in_flight)))
            probe(network)
        return network


@pytest.mark.parametrize("cap", [0, 1, 2, None])
def test_relays_crossings_and_late_third_parties(cap: int | None) -> None:
    invariants = Invariants()
    for seed in range(60):
        network = Program(adaptive(cap=cap, groups=seed % 2), seed).play(invariants.judge)
        at_rest(network)
    assert min(invariants.listed, invariants.undelivered) > 300


# -- without a cap it is optimal ----------------------------------------------


class Twins:
    """The same sends and arrivals of messages under `ks` and `adaptive`, compared each time."""

    def __init__(self, seed: int) -> None:
        self.random = random = Random(f"twins {seed}")
        self.names = [f"p{k}" for k in range(random.randint(3, 6))]
        self.ks = Network.of("ks", self.names)
        self.ours = Network.of(adaptive(cap=None, groups=seed % 3), self.names)
        self.multicast = random.random() * (seed % 2)
        self.held = 0

    def send(self) -> None:
        random = self.random
        name = random.choice(self.names)
        size = random.randint(2, len(self.names)) if random.random() < self.multicast else 1
        to = random.sample(self.names, size)
        for network in (self.ks, self.ours):
            network.send(name, to)

    def arrive(self) -> None:
        """A copy of a message arrives in both worlds, and control packets in one of them."""
        random, ours = self.random, self.ours
        control = [k for k, f in enumerate(ours.in_flight) if f.packet.kind != "msg"]
        while control and random.random() < 0.6:
            ours.arrive(random.choice(control))
            control = [k for k, f in enumerate(ours.in_flight) if f.packet.kind != "msg"]
        copies = self.copies(self.ks)
        if copies:
            copy = random.choice(sorted(copies))
            self.ks.arrive(copies[copy])
            ours.arrive(self.copies(ours)[copy])
        self.compare()

    @staticmethod
    def copies(network: Network) -> dict[tuple[str, str, int], int]:
        """Where in flight each copy of a message is."""
        return {
            (f.source, f.destination, f.packet[1]): k
            for k, f in enumerate(network.in_flight)
            if f.packet.kind == "msg"
        }

    def compare(self) -> None:
        assert self.ks.oracle._got == self.ours.oracle._got
        self.held += sum(e.held_back for e in self.ours.endpoints.values())


def test_without_a_cap_everything_is_delivered_at_the_same_step_as_under_ks() -> None:
    held = 0
    for seed in range(150):
        twins = Twins(seed)
        for _ in range(14):
            twins.send()
            while twins.random.random() < 0.6:
                twins.arrive()
        while twins.ks.in_flight:
            twins.arrive()
        assert not twins.ours.oracle.violations
        held += twins.held
    assert held > 1000, "hardly any message had to wait"


def test_messages_sent_in_one_turn_count_as_one() -> None:
    """What depends on one of them may wait for another, for which `ks` does not wait."""

    def delivered(protocol: str, **options: Any) -> list[bytes]:
        a, c, d = (protocols.create(protocol, name, tuple("acd"), **options) for name in "acd")
        a.send("d", b"1")
        a.send("c", b"2")
        d.receive("a", dict(a.take_packets())["d"])
        d.send("c", b"3")
        c.receive("d", dict(d.take_packets())["c"])
        return [delivery.payload for delivery in c.take_deliveries()]

    assert delivered("ks") == [b"3"]
    assert delivered("adaptive", cap=None) == []


# -- parts --------------------------------------------------------------------


def overflowing(cap: int, others: int) -> Network:
    """A network in which `a` has unacked messages to many, and one for `z` on top."""
    names = ["a", "z", *(f"p{k}" for k in range(others))]
    network = Network.of(adaptive(cap=cap), names)
    for k in range(others):
        network.send("a", f"p{k}")
    network.send("a", "z")
    return network


def test_a_long_list_travels_in_parts_and_its_message_waits_for_its_destination_alone() -> None:
    network = overflowing(cap=4, others=5)
    (blocked,) = endpoint_of(network, "a").blocked()
    assert (blocked.destination, blocked.where) == ("z", "sender")
    assert [(wait.kind, wait.peer) for wait in blocked.waits] == [("ack", "z")]
    arrive_where(network, lambda source, to: {source, to} == {"a", "z"})
    parts = [packet for packet in network.links["a", "z"] if isinstance(packet, Part)]
    assert [len(part[3]) for part in parts] == [0, 4]
    assert [event.process for event in network.oracle.history if event.kind == "deliver"] == ["z"]
    assert len(endpoint_of(network, "z")._past) == 5
    network.arrive_all()
    at_rest(network)


def test_acks_shorten_the_list_of_a_waiting_message() -> None:
    network = overflowing(cap=4, others=5)
    assert endpoint_of(network, "a").blocked()
    arrive_where(network, lambda source, to: "p1" in (source, to))
    assert not endpoint_of(network, "a").blocked()
    parts = [packet for packet in network.links["a", "z"] if isinstance(packet, Part)]
    assert [len(part[3]) for part in parts] == [0]


@pytest.mark.parametrize("cap", [0, 1, 2])
@pytest.mark.parametrize("groups", [0, 16])
def test_a_multicast_larger_than_the_cap(cap: int, groups: int) -> None:
    """Its copies do not wait for each other: nothing but parts has to be confirmed."""
    names = [f"p{k}" for k in range(6)]
    network = Network.of(adaptive(cap=cap, groups=groups), names)
    network.send("p0", names)
    network.arrive_all()
    at_rest(network)


# -- groups -------------------------------------------------------------------


def test_a_broadcast_lists_one_entry_for_each_process_heard_from() -> None:
    names = [f"p{k}" for k in range(12)]
    network = Network.of("adaptive", names)
    most = 0
    random = Random(3)
    for _ in range(60):
        name = random.choice(names)
        network.send(name, [each for each in names if each != name])
        for _ in range(random.randint(0, 14)):
            if network.in_flight:
                network.arrive(random.randrange(len(network.in_flight)))
        most = max(most, *(len(f.packet[5]) for f in network.in_flight if f.packet.kind == "msg"))
    assert 3 < most < len(names)
    network.arrive_all()
    at_rest(network)


def test_groups_beyond_the_limit_are_listed_by_member() -> None:
    names = [f"p{k}" for k in range(5)]
    network = Network.of(adaptive(groups=1), names)
    network.send("p0", ["p1", "p2"])
    network.send("p0", ["p3", "p4"])
    group, members = (network.links["p0", name][0] for name in ("p1", "p3"))
    assert group[4] == ("p0", "p1", "p2")
    assert members[4] == ()
    assert members[5] == (("p0", ("p0", "p1", "p2"), 1), ("p0", "p4", 2))
    network.arrive_all()
    at_rest(network)


# -- metadata -----------------------------------------------------------------


def test_two_processes_that_talk_list_nothing() -> None:
    network = Network.of("adaptive", ["a", "b"])
    for k in range(40):
        network.send("ab"[k % 2], "ba"[k % 2])
        if k % 5 == 0:
            network.arrive(len(network.in_flight) - 1)
    network.arrive_all()
    packets = [packet for link in network.links.values() for packet in link]
    assert {packet.kind for packet in packets} == {"msg", "ack"}
    assert not any(packet[5] for packet in packets if packet.kind == "msg")


def test_nothing_is_listed_twice_to_the_same_process() -> None:
    network = Network.of("adaptive", ["a", "b", "c"])
    network.send("a", "c")
    for _ in range(5):
        network.send("a", "b")
    listed = [packet[5] for packet in network.links["a", "b"]]
    assert listed == [(("a", "c", 1),), (), (), (), ()]


def test_ping_pong_with_side_messages_takes_one_hop() -> None:
    """Each player sends to its own sink before every stroke; no stroke waits anywhere."""
    network = Network.of(adaptive(cap=1), ["a", "b", "x", "y"])
    for k in range(30):
        player, other, sink = ("a", "b", "x") if k % 2 == 0 else ("b", "a", "y")
        network.send(player, sink)
        stroke = network.send(player, other)
        arrive_where(network, lambda source, to: {source, to} == {"a", "b"})
        last = network.oracle.history[-1]
        assert (last.kind, last.message) == ("deliver", stroke)
    network.arrive_all()
    at_rest(network)


# -- state --------------------------------------------------------------------


def test_state_stays_flat_while_a_process_is_frozen() -> None:
    """Apart from its own lane: one entry for each process that wrote to it, however often."""
    names = [f"p{k}" for k in range(6)]
    network = Network.of("adaptive", names)
    random = Random(1)
    sizes: list[int] = []
    for k in range(1200):
        source = random.choice(names[1:])
        network.send(source, random.choice([each for each in names if each != source]))
        arrive_where(network, lambda _, to: to != "p0")
        if k % 300 == 299:
            endpoints = [endpoint_of(network, name) for name in names[1:]]
            sizes.append(max(e.footprint().state - e._peers["p0"].footprint() for e in endpoints))
    assert max(sizes) < 1.1 * sizes[0], sizes
    network.arrive_all()
    at_rest(network)


# -- options ------------------------------------------------------------------


@pytest.mark.parametrize("options", [{"cap": -1}, {"cap": 1.5}, {"cap": "8"}, {"groups": None}])
def test_options_that_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(LocalProtocolError, match="must be an integer"):
        protocols.create("adaptive", "a", **options)
