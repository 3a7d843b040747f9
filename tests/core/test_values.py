"""Endpoints and packets as values: copied, compared, hashed, pickled.

A model checker keeps endpoints by the thousand, and a network keeps packets; both
rely on a copy having nothing in common with its original but its future.
"""

from __future__ import annotations

import copy
import pickle
from collections.abc import Hashable
from random import Random
from typing import Any

import pytest

from causewire import protocols
from causewire.core.endpoint import Endpoint, Packet
from causewire.testing import VARIANTS, run, tolerated_networks
from causewire.testing.play import Outcome, Play

NAMES = protocols.names()
SEEDS = range(10)


def profile_for(protocol: str, seed: int, **options: object) -> str:
    profiles = tolerated_networks(protocol, options)
    return profiles[seed % len(profiles)].name


def history(play: Play) -> list[tuple[str, str, str]]:
    """What the application saw."""
    return [(e.process, e.kind, e.message.name) for e in play.network.oracle.history]


def condition(endpoint: Endpoint) -> tuple[Hashable, ...]:
    """All that can be seen of an endpoint, by itself."""
    return (
        hash(endpoint),
        repr(endpoint),
        tuple(endpoint.blocked()),
        repr(endpoint.footprint()),
        endpoint.idle,
    )


class Copier:
    """Copies a whole run at some of its steps."""

    def __init__(self, seed: int, often: float = 0.1) -> None:
        self.rng = Random(f"copier {seed}")
        self.often = often
        self.copies: list[Play] = []

    def __call__(self, play: Play) -> None:
        if self.rng.random() < self.often:
            self.copies.append(copy.copy(play))


def sampled(protocol: str, seed: int, **options: object) -> tuple[Outcome, list[Play]]:
    copier = Copier(seed)
    profile = profile_for(protocol, seed, **options)
    outcome = run(protocol, profile, seed, probe=copier, protocol_options=options)
    return outcome, copier.copies


EVERYTHING: Any = [(name, {}) for name in NAMES]
EVERYTHING += [(name, options) for name in NAMES for options in VARIANTS.get(name, ())]


@pytest.mark.parametrize(("protocol", "options"), EVERYTHING, ids=str)
def test_a_copy_goes_the_same_way(protocol: str, options: dict[str, object]) -> None:
    """Copies, made on the way, replay the rest of the run just as it went."""
    compared = 0
    for seed in SEEDS:
        outcome, copies = sampled(protocol, seed, **options)
        play = outcome.play
        for twin in copies:
            assert len(twin.schedule) < len(play.schedule) + 1
            for action in play.schedule[len(twin.schedule) :]:
                assert twin.act(action), f"seed {seed}: the copy could not do {action}"
            twin.finish()
            assert history(twin) == history(play), f"seed {seed}"
            assert twin.network.links == play.network.links, f"seed {seed}: other packets"
            for name, endpoint in play.network.endpoints.items():
                assert twin.network.endpoints[name] == endpoint
                assert condition(twin.network.endpoints[name]) == condition(endpoint)
            compared += 1
    assert compared > 5


class Meddler:
    """Runs copies of all endpoints far away from the originals, which must not mind."""

    def __init__(self, seed: int) -> None:
        self.rng = Random(f"meddler {seed}")
        self.changed = 0

    def __call__(self, play: Play) -> None:
        if self.rng.random() < 0.85:
            return
        originals = play.network.endpoints
        before = {name: condition(endpoint) for name, endpoint in originals.items()}
        twins = {name: copy.copy(endpoint) for name, endpoint in originals.items()}
        play_on = copy.copy(play)
        in_flight = play_on.network.in_flight
        for name in originals:
            everybody = [other for other in originals if other != name]
            to = everybody if not protocols.describe(play.protocol).unicast else everybody[:1]
            play_on.network.send(name, to, "meddled")
            play_on.tick(name)
            play_on.take(name)
            for _ in range(min(3, len(in_flight))):
                play_on.arrive(play_on.oldest(self.rng.randrange(len(in_flight))))
        for name, endpoint in originals.items():
            assert condition(endpoint) == before[name], f"{name} was changed through its copy"
            assert endpoint == twins[name]
            self.changed += play_on.network.endpoints[name] != endpoint


@pytest.mark.parametrize("protocol", NAMES)
def test_what_is_done_to_a_copy_does_not_reach_its_original(protocol: str) -> None:
    changed = 0
    for seed in SEEDS:
        meddler = Meddler(seed)
        profile = profile_for(protocol, seed)
        outcome = run(protocol, profile, seed, probe=meddler)
        assert history(outcome.play) == history(run(protocol, profile, seed).play)
        changed += meddler.changed
    assert changed > 10, "the copies were hardly used"


@pytest.mark.parametrize("protocol", NAMES)
def test_a_copy_is_wired_to_no_application(protocol: str) -> None:
    endpoint = protocols.create(protocol, "p0", ["p0", "p1"])
    endpoint.on_delivery = lambda delivery: None
    assert copy.copy(endpoint).on_delivery is None
    assert copy.copy(endpoint) == endpoint


@pytest.mark.parametrize("protocol", NAMES)
def test_equal_states_have_equal_hashes(protocol: str) -> None:
    """Of all endpoints at all points of some runs: equal, and so alike in every way, or not."""
    group = [f"p{k}" for k in range(3)]
    new = [protocols.create(protocol, name, group) for name in group]
    assert [a == b for a in new for b in new] == [a is b for a in new for b in new]
    assert new[0] == protocols.create(protocol, "p0", reversed(group))
    assert new[0] != "p0"
    states: list[Endpoint] = []
    for seed in range(3):
        copier = Copier(seed, 0.5)
        run(protocol, profile_for(protocol, seed), seed, probe=copier)
        for play in copier.copies:
            states += play.network.endpoints.values()
    equal = 0
    some = Random(protocol).sample(states, 60)
    for a in some[::2]:
        for b in some[1::2]:
            if a == b:
                equal += 1
                assert hash(a) == hash(b)
                assert (a.me, a.idle) == (b.me, b.idle)
    assert equal, "no two were equal"
    assert len(set(some)) > 10


@pytest.mark.parametrize("protocol", NAMES)
def test_no_dictionary_anywhere(protocol: str) -> None:
    endpoint = protocols.create(protocol, "p0", ["p0", "p1"])
    assert not hasattr(endpoint, "__dict__"), "some class has no __slots__"


def all_packets(protocol: str, **options: object) -> set[Packet]:
    packets: set[Packet] = set()
    for seed in range(30):
        profile = profile_for(protocol, seed, **options)
        for sent in run(
            protocol, profile, seed, protocol_options=options
        ).play.network.links.values():
            packets.update(sent)
    return packets


@pytest.mark.parametrize(("protocol", "options"), EVERYTHING, ids=str)
def test_packets(protocol: str, options: dict[str, object]) -> None:
    packets = all_packets(protocol, **options)
    group = ["p0", "p1", "p2"]
    kinds = protocols.create(protocol, "p0", group, **options).footprint().packet
    assert packets
    for packet in packets:
        again = pickle.loads(pickle.dumps(packet))
        assert type(again) is type(packet)
        assert again == packet
        assert hash(again) == hash(packet)
        assert copy.copy(packet) == copy.deepcopy(packet) == packet
        assert packet[0] == packet.kind
        assert len(packet.fields) == len(packet) - 1
        assert type(packet)(**dict(zip(packet.fields, packet[1:], strict=True))) == packet
        assert type(packet.integers) is int
        assert type(packet.identifiers) is int
        assert min(packet.integers, packet.identifiers) >= 0
        assert packet.kind in kinds, "the footprint does not know of it"
        assert not hasattr(packet, "__dict__")
        with pytest.raises(AttributeError):
            packet.kind = "other"  # type: ignore[misc]
    assert len({type(packet) for packet in packets}) == len({packet.kind for packet in packets})
