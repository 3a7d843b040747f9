"""Random runs of Cykas and its broken variants, judged by invariants after every step."""

from __future__ import annotations

import random
from collections import Counter, deque
from functools import partial

import pytest

from causewire.core.cykas import (
    Ack,
    Cykas,
    CykasAsPrinted,
    CykasSecretSends,
    Eager,
    Normal,
    Yct,
)
from causewire.core.endpoint import (
    Delivery,
    Packet,
    Wait,
)


class CausalViolationError(Exception):
    pass


class Run:
    """Processes that send at random over a reliable network that reorders at will,
    judged by the definition of causal order, with a set of messages per process."""

    def __init__(self, seed: int, make: type[Cykas]) -> None:
        self.rng = random.Random(seed)
        self.names = "abcd"[: self.rng.randint(2, 4)]
        self.left = 16
        self.eager = 0
        self.flight: list[tuple[str, str, Packet]] = []
        self.of: dict[str, tuple[str, set[str]]] = {}
        """Destination and causal past of each message."""
        self.past: dict[str, set[str]] = {name: set() for name in self.names}
        self.heard: dict[str, set[str]] = {name: set() for name in self.names}
        """What a process has delivered, and all that happened before that."""
        self.got: set[str] = set()
        self.waits: dict[tuple[str, int], set[Wait]] = {}
        self.unacked: dict[tuple[str, str], int] = {}
        self.secrets: dict[tuple[str, str], deque[int]] = {}
        self.endpoints = {name: make(name) for name in self.names}
        for name, endpoint in self.endpoints.items():
            endpoint.on_delivery = partial(self.deliver, name)

    def send(self, name: str) -> None:
        self.left -= 1
        to = self.rng.choice(self.names.replace(name, ""))
        payload = f"message {self.left}"
        self.of[payload] = (to, self.past[name].copy())
        self.past[name].add(payload)
        self.endpoints[name].send(to, payload)

    def deliver(self, name: str, delivery: Delivery) -> None:
        to, past = self.of[delivery.payload]
        assert to == name
        assert delivery.payload not in self.got
        overtaken = {message for message in past - self.got if self.of[message][0] == name}
        if overtaken:
            raise CausalViolationError(f"{name} delivered {delivery.payload} before {overtaken}")
        self.got.add(delivery.payload)
        self.heard[name] |= past | {delivery.payload}
        self.past[name] |= self.heard[name]
        if self.left and self.rng.random() < 0.5:
            self.send(name)

    def step(self) -> None:
        if self.left and self.rng.random() < 0.4:
            name = self.rng.choice(self.names)
            self.send(name)
            self.collect(name, set(), secret=False)
        elif self.flight:
            self.arrive(self.rng.randrange(len(self.flight)))

    def arrive(self, k: int) -> None:
        source, name, packet = self.flight.pop(k)
        arrived = set()
        if type(packet) is Ack:
            arrived = {Wait("ack", source, self.unacked[name, source])}
        elif type(packet) is Yct:
            arrived = {Wait("permit", source, self.secrets[name, source].popleft())}
        elif type(packet) is Eager:
            self.eager += 1
            self.secrets.setdefault((name, source), deque()).append(packet[1])
        self.endpoints[name].receive(source, packet)
        self.collect(name, arrived, secret=type(packet) is Eager)

    def collect(self, name: str, arrived: set[Wait], *, secret: bool) -> None:
        """Also follows what `blocked` says: what has left, had nothing else to wait
        for; what has not, waits for what it did before, without what has come."""
        exact = type(self.endpoints[name]) is Cykas
        for to, packet in self.endpoints[name].take_packets():
            self.flight.append((name, to, packet))
            if type(packet) in (Normal, Eager):
                self.unacked[name, to] = packet[1]
                assert not exact or self.waits.pop((name, packet[1]), set()) <= arrived
        for blocked in self.endpoints[name].blocked() if exact else ():
            waits = set(blocked.waits)
            assert waits
            if not secret:
                assert waits == self.waits.get((name, blocked.mid), waits) - arrived
            self.waits[name, blocked.mid] = waits

    def check(self) -> None:
        """What section 2.2.1 says of UNACK, MODE and EAGER_SENT, seen from above."""
        flying = Counter((source, to, packet.kind) for source, to, packet in self.flight)
        for i, sender in self.endpoints.items():
            for j, receiver in self.endpoints.items():
                messages = flying[i, j, "normal"] + flying[i, j, "eager"]
                assert (j in sender._unack) == messages + flying[j, i, "ack"]
                told = len(sender._eager_sent.get(j, ())) + flying[i, j, "yct"]
                assert told == len(receiver._secrets.get(i, ())) + flying[i, j, "eager"]
            for queue in sender._eager_sent.values():
                assert queue
                assert all(waiting <= sender._unack.keys() for waiting in queue)
            assert sender.mode or self.heard[i] <= self.got, "the invariant of the module"


def test_random_runs() -> None:
    lively = 0
    for seed in range(100):
        try:
            run = Run(seed, Cykas)
            while run.left or run.flight:
                run.step()
                run.check()
            assert all(endpoint.idle for endpoint in run.endpoints.values())
            assert run.got == set(run.of)
            lively += run.eager > 2
        except BaseException:
            print(f"seed {seed}")
            raise
    assert lively > 50, "most runs must have eager messages"


@pytest.mark.parametrize("make", [CykasAsPrinted, CykasSecretSends])
def test_random_runs_catch_the_known_bads(make: type[Cykas]) -> None:
    """The same runs, by the same judgement; what is caught first differs."""
    stuck = violations = 0
    for seed in range(400):
        run = Run(seed, make)
        try:
            while run.left or run.flight:
                run.step()
        except CausalViolationError:
            violations += 1
        else:
            stuck += run.got != set(run.of)
    if make is CykasAsPrinted:
        assert stuck
    else:
        assert violations
        assert not stuck
