"""Going on without a process: causal order among all, and nothing stuck among the living.

The driver here follows the two rules that `Endpoint.forget` asks for: a packet carries the
names of those that its sender has forgotten, and whoever gets it forgets them before it
handles the packet; nothing from or to a forgotten process is handled or sent.
"""

from __future__ import annotations

import copy
from random import Random
from typing import Any, NamedTuple

import pytest

from causewire import protocols
from causewire.core import LocalProtocolError, Packet
from causewire.core.csps import Csps
from causewire.core.fifo import Ack, FifoEndpoint
from causewire.core.hybrid import HybridMessage, Permit
from causewire.testing import VARIANTS, Oracle
from causewire.testing.promises import promised

FORGETTING = [name for name in protocols.names() if protocols.describe(name).forgets]
EVERYTHING: list[tuple[str, dict[str, Any]]] = [(name, {}) for name in FORGETTING]
EVERYTHING += [
    (name, options)
    for name, variants in VARIANTS.items()
    for options in variants
    if promised(name, options).forgets
]


class Parcel(NamedTuple):
    source: str
    to: str
    packet: Packet
    obituaries: frozenset[str]


class World:
    """Processes that forget one another at any moment."""

    def __init__(self, protocol: str, options: dict[str, Any], seed: int) -> None:
        self.chance = Random(f"{protocol} {options} {seed}")
        self.about = promised(protocol, options)
        self.names = [f"p{k}" for k in range(self.chance.choice([3, 3, 4, 5]))]
        self.endpoints = {
            name: protocols.create(self.about, name, self.names) for name in self.names
        }
        for name, endpoint in self.endpoints.items():
            endpoint.on_delivery = lambda d, me=name: self.delivered(me, *d)
        self.oracle = Oracle()
        self.mids = dict.fromkeys(self.names, 0)
        self.wire: list[Parcel] = []
        self.dead: set[str] = set()
        self.released = 0

    def delivered(self, me: str, source: str, mid: int, payload: Any) -> None:
        self.oracle.delivered(me, source, mid, payload)
        if self.chance.random() < 0.15 and self.mids[me] < 12:
            self.send(me)

    def send(self, me: str) -> None:
        endpoint, chance = self.endpoints[me], self.chance
        others = [name for name in self.names if name != me and name not in endpoint.forgotten]
        if not others:
            return
        to = others
        if self.about.multicast:
            to = chance.sample(others, chance.choice([1, 1, 1, len(others)]))
        elif self.about.unicast:
            to = [chance.choice(others)]
        if chance.random() < 0.1 and (self.about.multicast or not self.about.unicast):
            to = [*to, me]
        mid = self.mids[me] = self.mids[me] + 1
        self.oracle.sent(me, mid, to, mid)
        assert endpoint.send(to, mid) == mid

    def take(self, me: str) -> None:
        endpoint = self.endpoints[me]
        for to, packet in endpoint.take_packets():
            assert to not in endpoint.forgotten, "it sends to a process that it has forgotten"
            self.wire.append(Parcel(me, to, packet, endpoint.forgotten))

    def arrive(self, k: int) -> None:
        if self.about.needs_fifo:
            link = self.wire[k][:2]
            k = next(i for i, parcel in enumerate(self.wire) if parcel[:2] == link)
        source, to, packet, obituaries = self.wire.pop(k)
        endpoint = self.endpoints[to]
        if to in obituaries:
            return  # it learns that others have forgotten it, and stops
        for name in sorted(obituaries):
            self.forget(to, name)
        endpoint.receive(source, packet)

    def forget(self, me: str, gone: str) -> None:
        self.dead.add(gone)
        endpoint = self.endpoints[me]
        before = endpoint.held_back
        failed = endpoint.forget(gone)
        assert list(failed) == sorted(set(failed))
        self.released += endpoint.held_back < before

    def step(self, forgetting: bool) -> None:
        chance, me = self.chance, self.chance.choice(self.names)
        action = chance.random()
        if action < 0.3 and self.mids[me] < 10:
            self.send(me)
        elif action < 0.8 and self.wire:
            self.arrive(chance.randrange(len(self.wire)))
        elif action < 0.95:
            self.take(me)
        elif action < 0.97:
            self.endpoints[me].retransmit()
        elif forgetting:
            some = self.names if len(self.dead) < len(self.names) - 2 else sorted(self.dead)
            others = [name for name in some if name != me]
            if others:
                self.forget(me, chance.choice(others))
        if self.about.tolerates_loss and self.wire and chance.random() < 0.05:
            self.wire.pop(chance.randrange(len(self.wire)))

    def swap_for_copies(self) -> None:
        """Put an equal copy in the place of each endpoint."""
        for name, endpoint in self.endpoints.items():
            twin = copy.copy(endpoint)
            assert twin == endpoint
            assert hash(twin) == hash(endpoint)
            assert twin.blocked() == endpoint.blocked()
            assert len(twin.blocked()) == twin.held_back
            twin.on_delivery, endpoint.on_delivery = endpoint.on_delivery, None
            self.endpoints[name] = twin

    def finish(self) -> list[str]:
        """Everybody hears of everybody that is dead; everything arrives."""
        living = [name for name in self.names if name not in self.dead]
        for name in living:
            for gone in sorted(self.dead):
                self.forget(name, gone)
        for _ in range(60):
            for name in living:
                self.take(name)
            while self.wire:
                self.arrive(self.chance.randrange(len(self.wire)))
                for name in living:
                    self.take(name)
            for name in living:
                self.endpoints[name].retransmit()
            if all(self.endpoints[name].idle for name in living):
                break
        return living


def violations(world: World) -> list[str]:
    """What was delivered in the wrong order: both messages were delivered in the end."""
    oracle = world.oracle
    never = {(v.process, v.message) for v in oracle.undelivered()}
    wrong = [
        violation
        for violation in oracle.violations
        if violation.kind != "causal" or (violation.process, violation.earlier) not in never
    ]
    return [oracle.explain(violation) for violation in wrong]


@pytest.mark.parametrize(("protocol", "options"), EVERYTHING, ids=str)
def test_forgetting_at_any_moment(protocol: str, options: dict[str, Any]) -> None:
    about = promised(protocol, options)
    died = released = 0
    for seed in range(60):
        world = World(protocol, options, seed)
        for k in range(120):
            world.step(forgetting=k > 15)
            if k % 40 == 39:
                world.swap_for_copies()
        living = world.finish()
        died += len(world.dead)
        released += world.released
        if about.causal:
            assert not violations(world), f"seed {seed}"
        if about.live:
            for name in living:
                endpoint = world.endpoints[name]
                assert endpoint.idle, f"seed {seed}: {endpoint} {endpoint.blocked()}"
                assert endpoint.forgotten == world.dead
            lost = [
                violation
                for violation in world.oracle.undelivered()
                if violation.process in living and violation.message.origin in living
            ]
            assert not lost, f"seed {seed}"
    assert died > 30
    assert protocol in ("fifo", "unordered") or released > 0, "nobody was ever waited for"


@pytest.mark.parametrize("protocol", FORGETTING)
def test_what_forgetting_refuses(protocol: str) -> None:
    group = ["a", "b", "c"]
    endpoint = protocols.create(protocol, "a", group)
    before = copy.copy(endpoint)
    for wrong in ("a", "", None):
        with pytest.raises(LocalProtocolError):
            endpoint.forget(wrong)  # type: ignore[arg-type]
    if protocols.describe(protocol).fixed_group:
        with pytest.raises(LocalProtocolError):
            endpoint.forget("stranger")
    assert endpoint == before
    assert endpoint.forget("c") == ()
    assert endpoint.forgotten == {"c"}
    assert endpoint != before
    after = copy.copy(endpoint)
    assert endpoint.forget("c") == ()
    for to in ("c", ["b", "c"]):
        with pytest.raises(LocalProtocolError):
            endpoint.send(to, "x")
    assert endpoint == after
    assert endpoint.send("b", "x") == 1
    assert [to for to, _ in endpoint.take_packets()] == ["b"]
    if protocol not in ("fifo", "csps", "sps", "adaptive"):
        with pytest.raises(LocalProtocolError):
            endpoint.readmit("c")
        assert endpoint.forgotten == {"c"}


@pytest.mark.parametrize("protocol", FORGETTING)
def test_packets_of_the_forgotten_are_ignored(protocol: str) -> None:
    group = ["a", "b", "c"]
    a, c = (protocols.create(protocol, name, group) for name in "ac")
    about = protocols.describe(protocol)
    c.send(["a", "b"] if not about.unicast else "a", "x")
    [packet] = [packet for to, packet in c.take_packets() if to == "a"]
    a.forget("c")
    before = copy.copy(a)
    a.receive("c", packet)
    assert a == before
    assert a.take_deliveries() == []


@pytest.mark.parametrize("protocol", ["fifo", "csps", "sps"])
def test_messages_that_failed_and_a_name_that_comes_back(protocol: str) -> None:
    a = protocols.create(protocol, "a")
    assert isinstance(a, FifoEndpoint)
    for to in ("b", "c", ["b", "c"], "b"):
        a.send(to, "x")
    a.take_packets()
    a.receive("b", Ack(1))
    assert a.forget("b") == (3, 4)
    a.receive("b", Ack(4))
    assert a.take_acks() == {}
    a.receive("c", Ack(3))
    a.take_packets()
    assert a.idle
    a.readmit("b")
    assert a.forgotten == frozenset()
    assert a.send("b", "y") == 5
    [(_, packet)] = a.take_packets()
    assert packet[1:3] == (5, 0), "a new incarnation: the first message to it"


@pytest.mark.parametrize("many", [32, 2])
def test_csps_lets_go_what_waited_for_an_ack(many: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Permits for others follow when the only process that has not acked is forgotten."""
    monkeypatch.setattr(Csps, "many", many)
    a = protocols.create("csps", "a")
    for to in ("gone", "b", "c", "gone", ["b", "gone"], "c"):
        a.send(to, "x")
    a.take_packets()
    a.receive("b", Ack(2))
    a.receive("c", Ack(3))
    assert not [p for _, p in a.take_packets() if p.kind == "permit"]
    assert a.forget("gone") == (1, 4, 5)
    assert {to: p[1] for to, p in a.take_packets() if p.kind == "permit"} == {"b": 5, "c": 3}
    a.receive("b", Ack(5))
    assert {to: p[1] for to, p in a.take_packets() if p.kind == "permit"} == {"c": 6}


@pytest.mark.parametrize("protocol", ["csps", "sps"])
def test_what_is_held_for_the_forgotten_is_dropped(protocol: str) -> None:
    a = protocols.create(protocol, "a")
    a.receive("b", HybridMessage(2, 0, "x", True))
    a.receive("d", HybridMessage(2, 0, "x", True))
    for to in ("gone", "c", "gone", ["c", "gone"], ["gone", "e"], "gone"):
        a.send(to, "y")
    assert a.forget("gone") == (1, 3, 4, 5, 6)
    assert [(each.mid, each.destination) for each in a.blocked()] == [(2, "c"), (4, "c"), (5, "e")]
    assert a.forget("d") == ()
    assert {wait.peer for each in a.blocked() for wait in each.waits} == {"b"}
    a.receive("b", Permit(2))
    messages = [(to, p[1], p[4]) for to, p in a.take_packets() if p.kind == "msg"]
    assert sorted(messages) == [("c", 2, False), ("c", 4, protocol == "csps"), ("e", 5, True)]
    a.receive("c", Ack(4))
    a.receive("e", Ack(5))
    a.take_packets()
    a.take_deliveries()
    assert a.idle


@pytest.mark.parametrize("options", [{}, {"complement": True}, {"hardware_multicast": True}])
def test_ks_refuses_to_forget(options: dict[str, Any]) -> None:
    """A message of a dead process may be the only one that others have to wait for.

    `a` sends 1 to `c`, then tells `x`, who sends something to `c` and tells `b`. What `b`
    then sends to `c` says that `x` has to be waited for, and `a` no longer: `x` took that
    over. If `c` forgets `x`, nothing is left that makes it wait for `a`.
    """
    group = ["a", "b", "c", "x"]
    a, b, c, x = (protocols.create("ks", name, group, **options) for name in group)
    a.send("c", "late")
    a.send("x", "I wrote to c")
    x.receive("a", dict(a.take_packets())["x"])
    x.send("c", "so did I")
    x.take_packets()
    x.send("b", "we both did")
    b.receive("x", dict(x.take_packets())["b"])
    b.send("c", "what they said")
    c.receive("b", dict(b.take_packets())["c"])
    [blocked] = c.blocked()
    assert [wait.peer for wait in blocked.waits] == ["x"]
    before = copy.copy(c)
    with pytest.raises(LocalProtocolError, match="cannot go on without 'x'"):
        c.forget("x")
    assert c == before
    assert not promised("ks", options).forgets


@pytest.mark.parametrize("protocol", ["fifo", "csps", "sps"])
def test_a_function_that_sends_to_the_forgotten_refuses(protocol: str) -> None:
    a = protocols.create(protocol, "a")
    assert isinstance(a, FifoEndpoint)
    send = a.sender_to("b")
    assert send("x") == 1
    assert a.forget("b") == (1,)
    before = copy.copy(a)
    with pytest.raises(LocalProtocolError):
        send("y")
    assert a == before
    assert a.send("c", "z") == 2
    assert [to for to, _ in a.take_packets()] == ["c"]
