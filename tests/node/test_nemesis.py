"""The nemesis: its judge finds what it is there to find, and a short round of all its faults."""

from __future__ import annotations

import asyncio
from pathlib import Path
from random import Random

import pytest

from campaigns.failures.nemesis import Nemesis, judge, round_of
from causewire.trace import Event

LIVING = {"a": "a", "b": "b", "c": "c"}


def send(process: str, mid: int, *to: str) -> Event:
    return Event("r", process, 0, 0, 0, "send", process, mid, to)


def deliver(process: str, origin: str, mid: int) -> Event:
    return Event("r", process, 0, 0, 0, "deliver", origin, mid, (origin,))


RIGHT = [
    send("a", 1, "b", "c"),
    deliver("b", "a", 1),
    send("b", 1, "c"),
    deliver("c", "a", 1),
    deliver("c", "b", 1),
]


def problems(*events: Event, failed: bool = False, parted: bool = False) -> list[str]:
    lost = {("a", 1, "c")} if failed else set()
    told = {("a", "c")} if parted else set()
    return [problem.partition(":")[0] for problem in judge(events, LIVING, lost, told).problems]


def test_what_is_right() -> None:
    verdict = judge(RIGHT, LIVING, set(), set())
    assert (verdict.sends, verdict.deliveries, verdict.problems) == (2, 3, [])


def test_an_effect_before_its_cause() -> None:
    assert problems(*RIGHT[:3], RIGHT[4], RIGHT[3]) == ["order"]


def test_a_message_that_comes_twice() -> None:
    assert problems(*RIGHT, RIGHT[4]) == ["duplicate"]


def test_a_message_that_nobody_sent() -> None:
    assert problems(*RIGHT, deliver("a", "c", 7)) == ["unsent"]


def test_a_message_that_is_lost() -> None:
    """It may be if its receipt says so, and one of the two has given the other up."""
    assert problems(*RIGHT[:2]) == ["lost"]
    assert problems(*RIGHT[:2], parted=True) == ["lost"]
    assert problems(*RIGHT[:2], failed=True) == ["failed without a reason"]
    assert problems(*RIGHT[:2], failed=True, parted=True) == []


@pytest.mark.slow
def test_a_short_round_with_a_fault_of_every_kind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The faults come in turn; at the end everybody is at rest, and the judge has no complaint."""
    done: list[str] = []

    async def strike(self: Nemesis) -> None:
        kinds = ["kill_link", "flood", "stranger", "twin", "heal", "cut", "forget", "heal"]
        if len(done) < len(kinds):
            done.append(kinds[len(done)])
            await getattr(self, done[-1])()

    monkeypatch.setattr(Nemesis, "strike", strike)
    monkeypatch.setattr(Random, "uniform", lambda *_: 0.2)
    names = ["p0", "p1", "p2", "p3"]
    assert asyncio.run(round_of("adaptive", names, 6.0, 1, tmp_path)) == []
    assert len(done) == 8
