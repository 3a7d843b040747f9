"""Two groups of one name that were begun without knowing of each other, and meet."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import pytest

from causewire.kit import Entered, Group, Interrupted, Joined, Kit, Left, SecondGroup
from causewire.testing.virtual import VirtualLoop, run

from .helper import PORTS, kit


class Watcher:
    """An application that notes everything but messages."""

    def __init__(self) -> None:
        self.group: Group
        self.seconds: list[SecondGroup] = []

    async def join(self, made: Kit, *seeds: str) -> Group:
        self.group = await made.join("room", seeds)
        self.task = asyncio.create_task(self.read())
        return self.group

    async def read(self) -> None:
        async for item in self.group:
            if isinstance(item, SecondGroup):
                self.seconds.append(item)

    @property
    def sources(self) -> list[str]:
        return [second.member.name for second in self.seconds]


def warnings(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [
        record.getMessage()
        for record in caplog.records
        if record.name == "causewire.kit" and record.levelno == logging.WARNING
    ]


def test_a_founder_that_is_restarted_without_seeds_begins_a_second_group_and_all_learn_it(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def main(loop: VirtualLoop) -> None:
        settings: dict[str, Any] = {"node_": {"give_up_after": 2.0}}
        first, bob, carol = Watcher(), Watcher(), Watcher()
        async with kit(loop, "bob", **settings) as b, kit(loop, "carol", **settings) as c:
            async with kit(loop, "alice", **settings) as a:
                await first.join(a)
                await bob.join(b, "alice")
                await carol.join(c, "alice")
                await asyncio.sleep(10)
                first.task.cancel()
                await a.node.close(0, leave=False)
            async with kit(loop, "alice", 1, **settings) as a:
                again = Watcher()
                await again.join(a)
                await asyncio.sleep(20)
                assert again.sources in (["bob"], ["carol"])
                assert "alice" in (*bob.sources, *carol.sources)
                assert max(len(bob.seconds), len(carol.seconds)) == 1
                (said,) = [second.reason for second in again.seconds]
                assert "another group that is named 'room' too" in said
                assert "join this one with seeds" in said
                assert any("alice is in another group" in text for text in warnings(caplog))
                assert f"alice: {said}" in warnings(caplog)
                # What it says is what to do:
                await again.group.leave()
                await again.join(a, "bob")
                assert len(bob.group.members) == 3

    run(main)


def test_two_founders_that_could_not_reach_each_other() -> None:
    async def main(loop: VirtualLoop) -> None:
        parts = [{PORTS["alice"], PORTS["carol"]}, {PORTS["bob"]}]

        def fate(source: Any, to: Any, _: bytes) -> list[float]:
            return [0.001] if any({source[1], to[1]} <= part for part in parts) else []

        loop.network.fate = fate
        alice, bob, carol = Watcher(), Watcher(), Watcher()
        async with kit(loop, "alice") as a, kit(loop, "bob") as b, kit(loop, "carol") as c:
            await alice.join(a)
            await bob.join(b)
            await carol.join(c, "alice", "bob")  # bob is one of her seeds
            await asyncio.sleep(10)
            assert not alice.seconds + bob.seconds + carol.seconds
            loop.network.fate = lambda *_: [0.001]
            await asyncio.sleep(60)
            assert carol.sources == ["bob"]
            assert bob.sources == ["carol"]

    run(main)


def test_one_group_is_not_taken_for_two() -> None:
    """Processes that come late, leave, or are given up and come back are in the same group."""

    async def main(loop: VirtualLoop) -> None:
        settings: dict[str, Any] = {"node_": {"give_up_after": 1.0, "rejoin": True}}
        async with (
            kit(loop, "alice", **settings) as a,
            kit(loop, "bob", **settings) as b,
            kit(loop, "carol", **settings) as c,
        ):
            rooms = [
                made.stay("room", ["alice", "bob", "carol"], begin=made is a) for made in (a, b, c)
            ]
            kinds: set[type] = set()

            async def read(room: Any) -> None:
                async for item in room:
                    kinds.add(type(item))

            tasks = [asyncio.create_task(read(room)) for room in rooms]
            await asyncio.sleep(20)
            port = PORTS["carol"]
            loop.network.fate = lambda x, y, _: [] if port in (x[1], y[1]) else [0.001]
            await asyncio.sleep(20)
            assert len(rooms[0].members) == 2
            loop.network.fate = lambda *_: [0.001]
            await asyncio.sleep(20)
            assert len(rooms[0].members) == 3
            await rooms[1].leave()
            await asyncio.sleep(20)
            assert kinds == {Entered, Interrupted, Joined, Left}
            for task in tasks:
                task.cancel()

    run(main)
