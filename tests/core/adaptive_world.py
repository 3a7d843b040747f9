"""What the tests of `adaptive` share: invariants judged with global knowledge, and mutants.

`Invariants` is a probe for runs (`causewire.testing.run`). After every step it compares
what each endpoint knows with what the oracle knows of the whole system:

    I1  completeness: everything undelivered in the past of a process is listed, or a later
        message on the same channel is
    I2  truth: everything that is listed happened before, or was sent by the same process before
        the list left; everything in news is delivered
    I4  a message carries at most `cap` entries
    I5  a message waits for nobody but its destination
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from copy import copy
from typing import Any

from causewire import protocols
from causewire.core.adaptive import Adaptive, AdaptiveMessage, News
from causewire.core.adaptive_packets import Dest, Entry
from causewire.testing import Network, Play, tolerated_networks
from causewire.testing.oracle import Oracle, SentMessage

CAPS = [0, 1, 2, 4, 8, 16, 64, None]
PROFILES = [profile.name for profile in tolerated_networks("adaptive")]


def adaptive(**options: Any) -> protocols.Protocol:
    """Return the protocol with options."""
    return protocols.describe("adaptive").with_options(**options)


def endpoint_of(network: Network, name: str) -> Adaptive:
    endpoint = network.endpoints[name]
    assert isinstance(endpoint, Adaptive)
    return endpoint


def arrive_where(network: Network, admitted: Callable[[str, str], bool]) -> None:
    """Let packets arrive in order, those on admitted links only, until no more are there."""
    while True:
        ready = (k for k, f in enumerate(network.in_flight) if admitted(f.source, f.destination))
        k = next(ready, None)
        if k is None:
            return
        network.arrive(k)


def at_rest(network: Network) -> None:
    """Assert that everything was delivered, and nothing is remembered but what is delivered."""
    assert not network.oracle.violations
    assert not network.oracle.undelivered()
    for name in network.endpoints:
        endpoint = endpoint_of(network, name)
        assert endpoint.idle
        assert not list(endpoint._past)
        assert not list(endpoint._past.owed())
        assert not endpoint._indexed
        assert not endpoint._open
        assert not endpoint._copies
        assert not any(p.sent or p.parts or p.lane for p in endpoint._peers.values())


def destinations_of(origin: str, dest: Dest) -> tuple[str, ...]:
    return (dest,) if isinstance(dest, str) else tuple(name for name in dest if name != origin)


class Invariants:
    """Asserts the invariants after every step of a run."""

    def __init__(self, bursts: bool = False) -> None:
        self.bursts = bursts
        """Whether several messages may leave together. They share a list then, which may name
        a later one among them: an earlier message of its sender happened before."""
        self.listed = 0
        """Entries that were looked at: a check that saw none proves nothing."""
        self.undelivered = 0
        """Undelivered messages in the past of some process, likewise."""

    def __call__(self, play: Play) -> None:
        self.judge(play.network)

    def judge(self, network: Network) -> None:
        """Check all endpoints, and all packets in flight."""
        oracle = network.oracle
        for endpoint in network.endpoints.values():
            assert isinstance(endpoint, Adaptive)
            if endpoint._burst:
                endpoint = copy(endpoint)
                endpoint._flush()  # what a driver does when it takes messages
            if not endpoint._deliveries:
                self.complete(oracle, endpoint)
            self.true(oracle, endpoint)
            self.waits(endpoint)
        for source, _, _, packet in network.in_flight:
            endpoint = network.endpoints[source]
            assert isinstance(endpoint, Adaptive)
            if isinstance(packet, News):
                for origin, dest, mid in packet[2]:
                    message = oracle.messages[origin, mid]
                    for name in destinations_of(origin, dest):
                        assert oracle._got[name] & message.bit, f"{source} reports {message!r}"
            elif isinstance(packet, AdaptiveMessage):
                assert endpoint._cap is None or len(packet[5]) <= endpoint._cap, packet

    def complete(self, oracle: Oracle, endpoint: Adaptive) -> None:
        """I1, for one process."""
        me = endpoint.me
        past = oracle._past[me]
        newest: dict[tuple[str, str], int] = {}
        for origin, dest, mid in endpoint._past:
            self.listed += 1
            for name in destinations_of(origin, dest):
                newest[origin, name] = max(mid, newest.get((origin, name), 0))
        for message in oracle.messages.values():
            if not message.bit & past:
                continue
            for name in message.to:
                if name == me or oracle._got[name] & message.bit:
                    continue
                self.undelivered += 1
                listed = newest.get((message.origin, name), 0)
                assert listed >= message.mid, f"{me} does not list {message!r} for {name}"

    def true(self, oracle: Oracle, endpoint: Adaptive) -> None:
        """I2, for one process: what it knows, and the lists of its messages."""
        me = endpoint.me
        for origin, dest, mid in endpoint._past:
            message = oracle.messages[origin, mid]
            happened = self.happened(oracle, message, oracle._past[me])
            assert happened, f"{me} lists {message!r}, not in its past"
            assert set(destinations_of(origin, dest)) <= set(message.to)
        for entry, listing in lists(endpoint):
            origin, _, mid = entry
            cause, effect = oracle.messages[origin, mid], oracle.messages[me, listing]
            happened = cause is effect or self.happened(oracle, cause, effect.past | effect.bit)
            assert happened, f"{effect!r} lists {cause!r}"

    def happened(self, oracle: Oracle, message: SentMessage, past: int) -> bool:
        """Whether a message is in a past or, with bursts, an earlier one of its sender is."""
        if message.bit & past or not self.bursts:
            return bool(message.bit & past)
        earlier = (oracle.messages.get((message.origin, k)) for k in range(1, message.mid))
        return any(each is not None and each.bit & past for each in earlier)

    @staticmethod
    def waits(endpoint: Adaptive) -> None:
        """I5: at its sender, a message waits for its destination alone."""
        for blocked in endpoint.blocked():
            if blocked.where == "sender":
                assert [wait.peer for wait in blocked.waits] == [blocked.destination]


def lists(endpoint: Adaptive) -> Iterator[tuple[Entry, int]]:
    """Every entry in a list of an endpoint's messages, with the message."""
    for peer in endpoint._peers.values():
        for mid, listing in peer.sent.items():
            for entry in (*listing.parts, *listing.entries):
                yield entry, mid
        for waiting in peer.lane:
            for entry in (*waiting.parts, *waiting.rest):
                yield entry, waiting.mid
