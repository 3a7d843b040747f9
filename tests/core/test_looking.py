"""Looking at an endpoint never changes it, and takes time in proportion to what is held."""

from __future__ import annotations

import copy
import sys
from collections.abc import Callable
from functools import partial
from random import Random
from typing import Any

import pytest

from causewire import protocols
from causewire.core import Endpoint, Packet
from causewire.core.fifo import Ack
from causewire.testing import VARIANTS, Network, run, tolerated_networks
from causewire.testing.play import Play

from ..steps import steps

NAMES = protocols.names()
EVERYTHING: list[tuple[str, dict[str, Any]]] = [(name, {}) for name in NAMES]
EVERYTHING += [(name, options) for name in NAMES for options in VARIANTS.get(name, ())]


def look(endpoint: Endpoint) -> None:
    """Everything that looks at an endpoint, and is not meant to make it do anything."""
    hash(endpoint)
    repr(endpoint)
    assert endpoint == copy.copy(endpoint)
    assert len(endpoint.blocked()) == endpoint.held_back
    endpoint.footprint()
    _ = endpoint.idle


class Onlooker:
    """Looks at endpoints in the middle of a run."""

    def __init__(self, seed: int) -> None:
        self.rng = Random(seed)

    def __call__(self, play: Play) -> None:
        for endpoint in play.network.endpoints.values():
            if self.rng.random() < 0.5:
                look(endpoint)


def packets(play: Play) -> dict[tuple[str, str], list[Packet]]:
    return play.network.links


@pytest.mark.parametrize(("protocol", "options"), EVERYTHING, ids=str)
def test_a_run_that_is_looked_at_goes_the_same_way(protocol: str, options: dict[str, Any]) -> None:
    profiles = tolerated_networks(protocol, options)
    for seed in range(12):
        profile = profiles[seed % len(profiles)].name
        unseen = run(protocol, profile, seed, protocol_options=options).play
        seen = run(protocol, profile, seed, probe=Onlooker(seed), protocol_options=options).play
        assert packets(seen) == packets(unseen), f"seed {seed}"
        for name, endpoint in unseen.network.endpoints.items():
            assert seen.network.endpoints[name] == endpoint, f"seed {seed}"


@pytest.mark.parametrize("protocol", NAMES)
def test_looking_changes_neither_the_value_nor_what_is_sent_next(protocol: str) -> None:
    """Also between a send and the moment when its packets are taken."""
    about = protocols.describe(protocol)
    for seed in range(30):
        chance = Random(seed)
        network = Network.of(protocol, ("p0", "p1", "p2"), lazy=True)
        for _ in range(25):
            name = chance.choice(["p0", "p1", "p2"])
            others = [other for other in network.endpoints if other != name]
            to = others if not about.unicast else [chance.choice(others)]
            if chance.random() < 0.5:
                network.send(name, to, "x")
            else:
                network.collect(name)
            while network.in_flight and chance.random() < 0.6:
                first = network.in_flight[0]
                k = chance.randrange(len(network.in_flight))
                network.arrive(0 if about.needs_fifo and first else k)
            for endpoint in network.endpoints.values():
                unseen = copy.copy(endpoint)
                value = endpoint.value()
                look(endpoint)
                assert endpoint.value() == value, f"seed {seed}"
                assert copy.copy(endpoint).take_packets() == unseen.take_packets(), f"seed {seed}"


def test_hash_does_not_change_what_csps_sends_next() -> None:
    """The case in which it did: a permit was sent for a message that had not left."""
    sent = []
    for looking in (False, True):
        a = protocols.create("csps", "a")
        a.send("b", 1)
        a.take_packets()
        a.send("c", 2)
        if looking:
            hash(a)
        a.receive("b", Ack(1))
        sent.append(a.take_packets())
    assert sent[0] == sent[1]


# -- how long it takes ------------------------------------------------------------------


def csps_or_sps(protocol: str, n: int) -> Endpoint:
    """Everything held waits for another permit than what is before it."""
    endpoint = protocols.create(protocol, "me")
    sender = protocols.create(protocol, "sender")
    for _ in range(n):
        sender.send("other", "y")
        sender.send("me", "x")
    messages = [packet for to, packet in sender.take_packets() if to == "me"]
    for packet in messages:
        endpoint.receive("sender", packet)
        endpoint.send("somebody", "x")
    return endpoint


def early(protocol: str, n: int) -> Endpoint:
    """Everything but the first has arrived."""
    group = ["me", "sender"]
    endpoint = protocols.create(protocol, "me", group)
    sender = protocols.create(protocol, "sender", group)
    for _ in range(n + 1):
        sender.send("me", "x")
    _, *others = sender.take_packets()
    for _, packet in others:
        if packet.kind == "msg":
            endpoint.receive("sender", packet)
    return endpoint


def sending(protocol: str, n: int) -> Endpoint:
    """Nothing is acknowledged."""
    endpoint = protocols.create(protocol, "me", ["me", "a", "b"])
    about = protocols.describe(protocol)
    for k in range(n + 2):
        endpoint.send(["a", "b"] if not about.unicast else "ab"[k % 2], "x")
    return endpoint


def secrets(protocol: str, n: int) -> Endpoint:
    """Many eager messages of one sender, and as many answers that wait for all of them."""
    endpoint, sender = protocols.create(protocol, "me"), protocols.create(protocol, "sender")
    sender.send("silent", "x")
    for _ in range(n):
        sender.send("me", "x")
        [(_, packet)] = [each for each in sender.take_packets() if each[0] == "me"]
        endpoint.receive("sender", packet)
        [(_, ack)] = endpoint.take_packets()
        sender.receive("me", ack)
        endpoint.send("somebody", "x")
    return endpoint


HOLDING: dict[str, Callable[[str, int], Endpoint]] = {
    "csps": csps_or_sps,
    "sps": csps_or_sps,
    "fifo": early,
    "rst": early,
    "ks": early,
    "bss": early,
    "pak-credit": sending,
    "pak": sending,
    "mf": sending,
    "cykas": secrets,
}


@pytest.mark.parametrize("protocol", HOLDING)
def test_looking_takes_time_in_proportion_to_what_is_held(protocol: str) -> None:
    """Sixteen times as many messages cost sixteen times as many steps."""
    few, many = (HOLDING[protocol](protocol, n) for n in (64, 1024))
    assert few.held_back >= 64
    assert many.held_back >= 1024
    ratio = many.held_back / few.held_back
    lookers: dict[str, Callable[[Endpoint], object]] = {
        "blocked": lambda e: sum(len(b.waits) for b in e.blocked()),
        "footprint": lambda e: e.footprint(),
        "hash": hash,
        "idle": lambda e: e.idle,
    }
    for name, looking in lookers.items():
        costs = [steps(partial(looking, endpoint)) for endpoint in (few, many)]
        assert costs[1] < 1.5 * ratio * costs[0] + 50, name
        assert looking(many) is not None


@pytest.mark.parametrize("protocol", HOLDING)
def test_repr_looks_at_no_message(protocol: str) -> None:
    endpoint = HOLDING[protocol](protocol, 1024)
    assert str(endpoint.held_back) in repr(endpoint)
    assert steps(lambda: repr(endpoint)) < 1500
    if not str(sys.modules[type(endpoint).__module__].__file__).endswith(".py"):
        pytest.skip("this protocol is compiled: there are no lines to count")
    assert steps(lambda: repr(endpoint)) < 0.2 * steps(endpoint.blocked)
