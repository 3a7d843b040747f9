"""`adaptive` tells when messages begin to wait, and why, to a driver that asks for it."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from causewire.core.adaptive import Adaptive
from causewire.core.adaptive_held import RunBuffer
from causewire.core.run import MessageRun

Key = tuple[str, int, str, str]


class World:
    """Processes whose packets arrive in any order, and what each has told."""

    def __init__(self, cap: int | None, runs: bool, seed: int) -> None:
        self.random = Random(seed)
        self.runs = runs
        self.endpoints = {name: Adaptive(name, cap=cap) for name in "abcd"}
        self.under_way: list[tuple[str, str, Any]] = []
        self.blocked: dict[str, set[Key]] = {name: set() for name in self.endpoints}
        self.told: set[tuple[str, Key]] = set()
        for endpoint in self.endpoints.values():
            endpoint.tell_waits()

    def send(self) -> None:
        name, *others = self.random.sample("abcd", 4)
        for _ in range(self.random.choice([1, 1, 3])):
            self.endpoints[name].send(self.random.choice(others), b"")
        self.leave(name)

    def arrive(self) -> None:
        at = self.random.randrange(len(self.under_way))
        source, name, item = self.under_way.pop(at)
        endpoint = self.endpoints[name]
        if isinstance(item, MessageRun):
            endpoint.receive_run(source, item)
        else:
            endpoint.receive(source, item)
        self.check(name)
        self.leave(name)

    def leave(self, name: str) -> None:
        endpoint = self.endpoints[name]
        if self.runs:
            self.under_way += [(name, *taken) for taken in endpoint.take_runs()]
        self.under_way += [(name, *taken) for taken in endpoint.take_packets()]
        self.check(name)

    def check(self, name: str) -> None:
        """Compare what an endpoint tells with what has become blocked."""
        told = {wait[:4]: wait for wait in self.endpoints[name].take_waits()}
        now = {wait[:4]: wait for wait in self.endpoints[name].blocked()}
        assert told.keys() >= now.keys() - self.blocked[name]
        assert all(told[key] == now[key] for key in told.keys() & now.keys())
        new = {(name, key) for key in told}
        assert not new & self.told, "told twice"
        self.blocked[name] = set(now)
        self.told |= new


@pytest.mark.parametrize("cap", [0, 1, None])
@pytest.mark.parametrize("runs", [False, True])
def test_each_wait_is_told_once_when_it_begins(cap: int | None, runs: bool) -> None:
    places: set[str] = set()
    for seed in range(4):
        world = World(cap, runs, seed)
        for _ in range(20):
            world.send()
            world.arrive()
        while world.under_way:
            world.arrive()
        places |= {key[3] for _, key in world.told}
    assert places == ({"sender", "receiver"} if cap is not None else {"receiver"})


def test_nothing_is_told_and_nothing_kept_unless_asked_for() -> None:
    a, b, c = (Adaptive(name, cap=0) for name in "abc")
    a.send("c", b"x")
    a.send("b", b"y")
    for to, packet in a.take_packets():
        if to == "b":
            b.receive("a", packet)
    b.send("c", b"z")
    b.take_packets()
    assert a.blocked()
    assert type(a._held) is RunBuffer
    for endpoint in (a, b, c):
        assert endpoint.take_waits() == []


def test_what_waited_before_is_not_told() -> None:
    c = Adaptive("c")
    c.receive_run("a", MessageRun([2], 1, [b""]))
    c.tell_waits()
    c.receive_run("a", MessageRun([3, 4], 2, [b"", b""]))
    assert [wait[:4] for wait in c.take_waits()] == [
        ("a", 3, "c", "receiver"),
        ("a", 4, "c", "receiver"),
    ]
    assert [wait.mid for wait in c.blocked()] == [2, 3, 4]
    c.receive_run("a", MessageRun([1], 0, [b""]))
    assert len(c.take_deliveries()) == 4
    assert c.take_waits() == []
