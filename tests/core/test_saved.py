"""An endpoint that was saved and restored goes on exactly as the original does."""

from __future__ import annotations

import json
from collections import Counter
from random import Random
from typing import Any

import pytest

from causewire.core import LocalProtocolError
from causewire.core.adaptive import Adaptive, AdaptiveMessage
from causewire.core.csps import Csps
from causewire.core.endpoint import Endpoint
from causewire.core.fifo import FifoEndpoint
from causewire.core.run import MessageRun
from causewire.core.saved import Saved, restore, save, standing, unacknowledged
from causewire.core.sps import Sps
from causewire.protocols import Protocol, create, describe

NAMES = ["a", "b", "c", "d"]


def through_json(saved: Saved) -> Saved:
    """What a driver reads back has passed through a file."""
    return Saved(json.loads(json.dumps(saved.state)), saved.payloads)


def reborn(endpoint: Endpoint, protocol: str | Protocol) -> Endpoint:
    fresh = create(protocol, endpoint.me)
    restore(fresh, through_json(save(endpoint)))
    return fresh


class LockStep:
    """Every process twice: one that runs on, and one that is restored again and again."""

    def __init__(self, protocol: str, seed: int, **options: Any) -> None:
        self.protocol = describe(protocol).with_options(**options)
        self.random = Random(seed)
        self.one = {name: create(self.protocol, name) for name in NAMES}
        self.two = {name: create(self.protocol, name) for name in NAMES}
        self.flying: list[tuple[str, str, Any]] = []
        self.seen: Counter[str] = Counter()
        self.alive = list(NAMES)
        self.aliases: set[tuple[str, str]] = set()
        """Who calls whom by an alias."""

    def both(self, name: str, method: str, *args: Any) -> None:
        results = [getattr(each[name], method)(*args) for each in (self.one, self.two)]
        assert results[0] == results[1]
        if self.random.random() < 0.7:
            self.take(name)

    def take(self, name: str) -> None:
        first, second = self.one[name], self.two[name]
        packets = first.take_packets()
        assert packets == second.take_packets()
        assert first.take_deliveries() == second.take_deliveries()
        self.flying += [
            (name, to, packet) for to, packet in packets if (name, to) not in self.aliases
        ]

    def step(self) -> None:
        draw = self.random.random
        name = self.random.choice(self.alive)
        if self.protocol.name == "adaptive" and draw() < 0.1:
            self.name_somebody(name)
        elif draw() < 0.35:
            others = [n for n in self.alive if n != name or draw() < 0.2]
            others += [alias for who, alias in self.aliases if who == name]
            count = 1 if draw() < 0.7 else self.random.randint(1, len(others))
            to = self.random.sample(others, count)
            self.both(name, "send", to[0] if count == 1 else to, f"{draw():.6f}")
        elif self.flying and draw() < 0.85:
            source, destination, packet = self.flying.pop(self.random.randrange(len(self.flying)))
            if draw() < 0.9:
                self.arrive(source, destination, packet)
        elif draw() < 0.2:
            self.both(name, "retransmit")
        elif draw() < 0.02 and len(self.alive) > 2:
            gone = self.alive.pop()
            for other in self.alive:
                self.both(other, "forget", gone)
            self.flying = [each for each in self.flying if gone not in each[:2]]
        if draw() < 0.3:
            self.restore(name)
        assert self.one[name].value() == self.two[name].value()
        assert self.one[name].blocked() == self.two[name].blocked()

    def arrive(self, source: str, destination: str, packet: Any) -> None:
        """Let a packet arrive: one at a time, or two messages as a run."""
        behind = next(
            (
                each
                for each in self.flying
                if each[:2] == (source, destination)
                and type(packet) is type(each[2]) is AdaptiveMessage
                and each[2][2] == packet[1]
                and not (packet[4] or packet[5] or each[2][4] or each[2][5])
            ),
            None,
        )
        if behind is None:
            self.both(destination, "receive", source, packet)
            return
        self.flying.remove(behind)
        (_, mid, pid, payload, *_), (_, after, _, other, *_) = packet, behind[2]
        run = MessageRun([mid, after], pid, [payload, other])
        self.both(destination, "receive_run", source, run)

    def name_somebody(self, name: str) -> None:
        """Send to somebody who was not met, give him a name, or go on without him."""
        mine = sorted(alias for who, alias in self.aliases if who == name)
        if not mine:
            alias = self.random.choice("xyz") + "\0\0"
            self.aliases.add((name, alias))
            self.both(name, "expect", alias)
            return
        self.aliases.remove((name, mine[0]))
        if self.random.random() < 0.5:
            self.both(name, "abandon", mine[0])
            self.seen["abandoned"] += 1
            return
        self.seen["identified"] += 1
        known = f"{mine[0][0]}{self.seen['identified']}"
        self.both(name, "identify", mine[0], known)
        self.both(name, "forget", known)  # nobody plays its part

    def restore(self, name: str) -> None:
        """Save an endpoint, and go on with another one."""
        self.take(name)
        self.two[name] = reborn(self.two[name], self.protocol)
        self.seen["restored"] += 1
        endpoint = self.two[name]
        if isinstance(endpoint, Adaptive):
            self.seen["past"] += len(endpoint._past)
            self.seen["owed"] += len([*endpoint._past.owed()])
            self.seen["held"] += len(endpoint._held)
            self.seen["behind"] += endpoint._held._behind
            self.seen["groups"] += len(endpoint._open)
            self.seen["lanes"] += sum(len(peer.lane) for peer in endpoint._peers.values())
            self.seen["news"] += sum(len(peer.unseen) for peer in endpoint._peers.values())

    def calm_down(self) -> None:
        """Repeat what is lost until nobody has anything to send."""
        for name, alias in sorted(self.aliases):
            self.both(name, "abandon", alias)
        self.aliases.clear()
        for _ in range(100):
            for name in self.alive:
                self.restore(name)
                self.both(name, "retransmit")
                self.take(name)
            if not self.flying:
                return
            while self.flying:
                source, destination, packet = self.flying.pop(0)
                self.both(destination, "receive", source, packet)
        raise AssertionError("no rest")


@pytest.mark.parametrize("many", [2, 32])
@pytest.mark.parametrize("protocol", ["fifo", "csps", "sps"])
def test_lock_step(protocol: str, many: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Csps, "many", many)
    monkeypatch.setattr(Sps, "many", many)
    for seed in range(3):
        world = LockStep(protocol, seed)
        for _ in range(150):
            world.step()
        assert world.seen["restored"] > 20


ADAPTIVE = [{"cap": 0}, {"cap": 1, "groups": 1}, {"cap": 2, "groups": 0}, {}, {"cap": None}]


@pytest.mark.parametrize("options", ADAPTIVE, ids=str)
def test_lock_step_of_adaptive(options: dict[str, Any]) -> None:
    seen: Counter[str] = Counter()
    for seed in range(4):
        world = LockStep("adaptive", seed, **options)
        for _ in range(150):
            world.step()
        seen += world.seen
    assert seen["restored"] > 80
    assert all(seen[what] for what in ("past", "owed", "held", "news", "identified", "abandoned"))
    assert bool(seen["lanes"]) == (options.get("cap", 128) in (0, 1, 2))
    assert bool(seen["groups"]) == bool(options.get("groups", 16))
    assert seen["behind"] or "cap" in options


@pytest.mark.parametrize("options", ADAPTIVE, ids=str)
def test_what_was_restored_comes_to_rest(options: dict[str, Any]) -> None:
    """Nothing is left in the past, the lanes or the debts of news, and all is delivered."""
    for seed in range(4):
        world = LockStep("adaptive", seed, **options)
        for _ in range(80):
            world.step()
        world.calm_down()
        for name in world.alive:
            endpoint = world.two[name]
            assert isinstance(endpoint, Adaptive)
            assert not list(endpoint._past)
            assert not list(endpoint._past.owed())
            assert not endpoint.held_back
            for peer in endpoint._peers.values():
                assert not any((peer.lane, peer.sent, peer.news, peer.unseen, peer.parts))


@pytest.mark.parametrize("protocol", ["fifo", "csps", "sps", "adaptive"])
def test_what_was_not_acknowledged_leaves_again(protocol: str) -> None:
    endpoint = create(protocol, "a")
    assert isinstance(endpoint, FifoEndpoint)
    for k in range(4):
        endpoint.send("b", b"%d" % k)
    runs = endpoint.take_runs()
    first = runs[0][1].mids[0]
    assert [mid for _, run in runs for mid in run.mids] == [1, 2, 3, 4]
    again = reborn(endpoint, protocol)
    assert isinstance(again, FifoEndpoint)
    assert again.take_runs() == []
    assert [mid for run in unacknowledged(again, "b") for mid in run.mids] == [1, 2, 3, 4]
    assert unacknowledged(again, "b")[0].payloads[0] == b"0"
    assert standing(again, "b")[:2] == (0, 0)
    assert standing(again, "b").unacked == [(k + 1, b"%d" % k) for k in range(4)]
    assert standing(again, "nobody").unacked == []
    assert first == 1


def test_what_cannot_be_saved() -> None:
    with pytest.raises(LocalProtocolError, match="cannot be saved"):
        save(create("mf", "a"))
    endpoint = create("csps", "a")
    endpoint.send("b", b"x")
    with pytest.raises(LocalProtocolError, match="take packets"):
        save(endpoint)
    endpoint.take_packets()
    with pytest.raises(LocalProtocolError, match="cannot become"):
        restore(create("sps", "a"), save(endpoint))
    with pytest.raises(LocalProtocolError, match="cannot become"):
        restore(create("csps", "z"), save(endpoint))
