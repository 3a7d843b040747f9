"""What no correct peer could send is refused, and so is misuse; nothing changes by either.

Forgeries are mixed into good runs: each must raise `RemoteProtocolError` and leave
the endpoint as it was, and the run must end as well as it would have without them.
"""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Iterator
from functools import cache, partial
from random import Random
from typing import Any

import pytest

from causewire import protocols
from causewire.core.endpoint import Endpoint, LocalProtocolError, Packet, RemoteProtocolError
from causewire.testing import Network, admits, run, tolerated_networks
from causewire.testing.forgery import HUGE, STRANGER, Forgery, forgeries
from causewire.testing.play import Play

NAMES = protocols.names()
HOLDING = ("adaptive", "csps", "sps", "fifo", "rst", "ks", "bss")
"""Protocols that hold messages at the receiver, by number, and bear duplicates."""
SEEDS = range(24)


@cache
def packets_of_all() -> tuple[Packet, ...]:
    """One packet of each kind that any protocol sends."""
    samples: dict[type, Packet] = {}
    for name in NAMES:
        for seed in range(30):
            network = run(name, tolerated_networks(name)[-1].name, seed).play.network
            for packets in network.links.values():
                for packet in packets:
                    samples.setdefault(type(packet), packet)
    return tuple(samples.values())


def forgeries_of_its_own(protocol: str, network: Network, process: str) -> Iterator[Forgery]:
    """What is impossible under one protocol, beyond what is under all."""
    endpoint: Any = network.endpoints[process]
    for (source, destination), packets in network.links.items():
        if destination != process:
            continue
        packet = packets[-1]
        kind: Any = type(packet)
        if protocol.startswith("cykas") and packet.kind == "yct":
            yield Forgery(STRANGER, partial(copy.copy, packet), "a YCT for no message")
        if protocol == "rst":
            _, mid, dests, matrix, payload = packet
            i = endpoint.group.index(process)
            claim = tuple(0 if k == i else HUGE for k in range(len(matrix)))
            forged = (*matrix[:i], claim, *matrix[i + 1 :])
            make = partial(kind, mid, dests, forged, payload)
            yield Forgery(source, make, "claims to know messages never sent")
        if protocol == "ks":
            _, mid, dests, log, payload = packet
            rows = dict(log)
            rows[process] = ((HUGE, frozenset()),)
            make = partial(kind, mid, dests, tuple(sorted(rows.items())), payload)
            yield Forgery(source, make, "claims to know a message never sent")
        if protocol == "adaptive" and packet.kind in ("msg", "news"):
            entry = (process, source, HUGE)
            make = partial(kind, *packet[1:-1], (*packet[-1], entry))
            yield Forgery(source, make, "claims to know a message never sent")
        if protocol in ("adaptive", "fifo", "csps", "sps") and packet.kind == "msg":
            got = [
                event.message.mid
                for event in network.oracle.history
                if event.kind == "deliver" and event.process == process
                if event.message.origin == source
            ]
            if got:
                _, _, _, *rest = packet
                make = partial(kind, max(got) + HUGE, 0, *rest)
                yield Forgery(source, make, "comes after another message than it should")


def second_versions(network: Network, process: str) -> Iterator[Forgery]:
    """Of a message that is held here, another one of the same number."""
    for blocked in network.endpoints[process].blocked():
        for packet in network.links.get((blocked.origin, process), ()):
            if blocked.where == "receiver" and packet[:2] == ("msg", blocked.mid):
                fields = dict(zip(packet.fields, packet[1:], strict=True))
                fields["payload"] = "another"
                make = partial(type(packet), **fields)
                yield Forgery(blocked.origin, make, "not the message of that number")


def appearance(endpoint: Endpoint) -> tuple[Any, ...]:
    """All that can be seen of an endpoint without changing it."""
    return (hash(endpoint), repr(endpoint), endpoint.blocked(), endpoint.footprint(), endpoint.idle)


class Forger:
    """Tries forgeries on a run, at each of its steps."""

    def __init__(self, protocol: str, seed: int, tried: Counter[str]) -> None:
        self.protocol = protocol
        self.rng = Random(f"forger {seed}")
        self.tried = tried

    def __call__(self, play: Play) -> None:
        if self.rng.random() < 0.7:
            return
        network = play.network
        process = self.rng.choice(tuple(network.endpoints))
        endpoint = network.endpoints[process]
        before = copy.copy(endpoint)
        seen = appearance(endpoint)
        # Some kinds have many members, and others few: first choose a kind.
        kinds: dict[str, list[Forgery]] = {}
        for forgery in self.all_forgeries(network, process):
            kinds.setdefault(forgery.why.split(":")[0], []).append(forgery)
        for _ in range(12):
            kind = self.rng.choice(tuple(kinds))
            source, make, why = self.rng.choice(kinds[kind])
            self.tried[kind] += 1
            try:
                packet = make()
                endpoint.receive(source, packet)
            except RemoteProtocolError:
                assert endpoint == before, f"{process} was changed by a packet that is {why}"
            else:
                pytest.fail(f"{process} took {packet!r} from {source}, though it is {why}")
        assert appearance(endpoint) == seen

    def all_forgeries(self, network: Network, process: str) -> Iterator[Forgery]:
        fixed_group = protocols.describe(self.protocol).fixed_group
        yield from forgeries(network, process, fixed_group=fixed_group, aliens=packets_of_all())
        yield from forgeries_of_its_own(self.protocol, network, process)
        if self.protocol in HOLDING:
            yield from second_versions(network, process)


LIES = {
    "fifo": "comes after another message than it should",
    "csps": "comes after another message than it should",
    "sps": "comes after another message than it should",
    "mf": "the ack of a message never sent",
    "cykas": "a YCT for no message",
    "rst": "claims to know messages never sent",
    "ks": "claims to know a message never sent",
    "adaptive": "claims to know a message never sent",
    "pak": "the ack of a message never sent",
    "newtop": "from a stranger",
    "bss": "from a stranger",
}
"""A forgery that must have come up, in which nothing is malformed."""


@pytest.mark.parametrize("protocol", NAMES)
def test_what_no_correct_peer_could_send(protocol: str) -> None:
    tried: Counter[str] = Counter()
    profiles = tolerated_networks(protocol)
    for seed in SEEDS:
        profile = profiles[seed % len(profiles)].name
        outcome = run(protocol, profile, seed, probe=Forger(protocol, seed, tried))
        assert set(outcome.kinds) <= admits(protocol), (profile, seed, outcome.explain())
        assert outcome.kinds == run(protocol, profile, seed).kinds, "forgeries made a difference"
    seen = {"no packet of any protocol", "of another protocol", "malformed"}
    if protocol in LIES:
        seen.add(LIES[protocol])
    if protocol in HOLDING:
        seen.add("not the message of that number")
    assert seen <= tried.keys(), "some kind of forgery was never tried"
    assert sum(tried.values()) > 300


def misuses(about: protocols.Protocol) -> list[Any]:
    """Destinations that `p0` of the group p0, p1, p2 must refuse."""
    wrong: list[Any] = ["", (), [], set(), [""], ["p1", ""], None, 3, [3], [["p1"]], ["p1", None]]
    if about.fixed_group:
        wrong += ["p3", ["p1", "p2", "p3"]]
    if not about.multicast and about.unicast:
        wrong += [["p1", "p2"], ("p0", "p1", "p2")]
    if not about.unicast:
        wrong += ["p0", "p1", ["p2"], ["p0", "p2"]]
    return wrong


@pytest.mark.parametrize("protocol", NAMES)
def test_misuse(protocol: str) -> None:
    about = protocols.describe(protocol)
    group = ["p0", "p1", "p2"]
    network = Network.of(protocol, group)
    good = ["p1"] if about.unicast else ["p1", "p2"]
    for expected in (1, 2, 3):
        endpoint = network.endpoints["p0"]
        before = copy.copy(endpoint)
        seen = appearance(endpoint)
        for to in misuses(about):
            with pytest.raises(LocalProtocolError):
                endpoint.send(to, "x")
            assert endpoint == before, f"send to {to!r} was refused and changed something"
            assert appearance(endpoint) == seen
        assert network.send("p0", good, "y").mid == expected, "a refused message got a number"
    if about.live:
        assert network.settle()
        assert not network.oracle.undelivered()


@pytest.mark.parametrize("protocol", NAMES)
def test_endpoints_that_cannot_be_made(protocol: str) -> None:
    about = protocols.describe(protocol)
    wrong: list[Any] = ["", None, 7, ["p0"]]
    for me in wrong:
        with pytest.raises(LocalProtocolError):
            protocols.create(protocol, me, ["p0", "p1"])
    with pytest.raises(LocalProtocolError, match="no_such_option"):
        protocols.create(protocol, "p0", ["p0", "p1"], no_such_option=1)
    if about.fixed_group:
        with pytest.raises(LocalProtocolError):
            protocols.create(protocol, "p0")
        with pytest.raises(LocalProtocolError):
            protocols.create(protocol, "p0", ["p1", "p2"])
    else:
        assert protocols.create(protocol, "p0").idle


def test_protocols_that_do_not_exist() -> None:
    for name in ("", "no such protocol", None, ["fifo"]):
        with pytest.raises(LocalProtocolError, match="csps"):
            protocols.describe(name)  # type: ignore[arg-type]
