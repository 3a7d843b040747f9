"""An endpoint that was saved and restored goes on exactly as the original does."""

from __future__ import annotations

import json
from random import Random
from typing import Any

import pytest

from causewire.core import LocalProtocolError
from causewire.core.csps import Csps
from causewire.core.endpoint import Endpoint
from causewire.core.fifo import FifoEndpoint
from causewire.core.saved import Saved, restore, save, standing, unacknowledged
from causewire.core.sps import Sps
from causewire.protocols import create

NAMES = ["a", "b", "c", "d"]


def through_json(saved: Saved) -> Saved:
    """What a driver reads back has passed through a file."""
    return Saved(json.loads(json.dumps(saved.state)), saved.payloads)


def reborn(endpoint: Endpoint, protocol: str) -> Endpoint:
    fresh = create(protocol, endpoint.me)
    restore(fresh, through_json(save(endpoint)))
    return fresh


class LockStep:
    """Every process twice: one that runs on, and one that is restored again and again."""

    def __init__(self, protocol: str, seed: int) -> None:
        self.protocol = protocol
        self.random = Random(seed)
        self.one = {name: create(protocol, name) for name in NAMES}
        self.two = {name: create(protocol, name) for name in NAMES}
        self.flying: list[tuple[str, str, Any]] = []
        self.restored = 0
        self.alive = list(NAMES)

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
        self.flying += [(name, to, packet) for to, packet in packets]

    def step(self) -> None:
        draw = self.random.random
        name = self.random.choice(self.alive)
        if draw() < 0.35:
            others = [n for n in self.alive if n != name or draw() < 0.2]
            count = 1 if draw() < 0.7 else self.random.randint(1, len(others))
            to = self.random.sample(others, count)
            self.both(name, "send", to[0] if count == 1 else to, f"{draw():.6f}")
        elif self.flying and draw() < 0.85:
            source, destination, packet = self.flying.pop(self.random.randrange(len(self.flying)))
            if draw() < 0.9:
                self.both(destination, "receive", source, packet)
        elif draw() < 0.2:
            self.both(name, "retransmit")
        elif draw() < 0.02 and len(self.alive) > 2:
            gone = self.alive.pop()
            for other in self.alive:
                self.both(other, "forget", gone)
            self.flying = [each for each in self.flying if gone not in each[:2]]
        if draw() < 0.3:
            self.take(name)
            self.two[name] = reborn(self.two[name], self.protocol)
            self.restored += 1
        assert self.one[name].value() == self.two[name].value()
        assert self.one[name].blocked() == self.two[name].blocked()


@pytest.mark.parametrize("many", [2, 32])
@pytest.mark.parametrize("protocol", ["fifo", "csps", "sps"])
def test_lock_step(protocol: str, many: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Csps, "many", many)
    monkeypatch.setattr(Sps, "many", many)
    for seed in range(3):
        world = LockStep(protocol, seed)
        for _ in range(150):
            world.step()
        assert world.restored > 20


@pytest.mark.parametrize("protocol", ["fifo", "csps", "sps"])
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
    assert standing(again, "b").last == 4
    assert standing(again, "nobody").last == 0
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
