"""A sender crashes in the middle of a multicast: all members get its message, or none does."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from random import Random
from typing import Any

import pytest

from campaigns.failures.agreement import group_cost, plain_cost
from causewire import Delivery
from causewire.kit import Group, GroupMessage, Kit, Left
from causewire.testing.virtual import VirtualLoop, run

from .helper import PORTS, kit, node

NAMES = tuple(PORTS)
SOON = 2.0
"""Seconds of silence after which a process is given up."""


class Room:
    """One group of five processes, and what the application of each has got."""

    def __init__(self, loop: VirtualLoop) -> None:
        self.loop = loop
        self.got: dict[str, list[Any]] = {name: [] for name in NAMES}
        self.groups: dict[str, Group] = {}
        self.answering: set[str] = set()
        """Processes that answer to "cause" with "effect"."""
        self._reading: list[asyncio.Task[None]] = []

    async def join(self, name: str, made: Kit) -> None:
        self.groups[name] = await made.join("room", [] if name == NAMES[0] else [NAMES[0]])
        self._reading.append(asyncio.create_task(self._read(name)))

    async def _read(self, name: str) -> None:
        async for item in self.groups[name]:
            if isinstance(item, GroupMessage):
                self.got[name].append(item.payload)
                if item.payload == "cause" and name in self.answering:
                    await item.reply("effect")
            elif isinstance(item, Left):
                self.got[name].append(f"{item.member.name} left")

    def cut(self, links: Iterable[tuple[str, str]]) -> None:
        """Lose everything from the first to the second of each pair."""
        lost = {(PORTS[source], PORTS[to]) for source, to in links}
        self.loop.network.fate = lambda source, to, _: (
            [] if (source[1], to[1]) in lost else [self.loop.random.uniform(0.001, 0.02)]
        )

    def crash(self, *names: str) -> None:
        """Nobody hears of these processes any more; they hear nothing either."""
        everybody = [(a, b) for a in NAMES for b in NAMES if a in names or b in names]
        self.cut(everybody)

    def stop(self) -> None:
        for task in self._reading:
            task.cancel()


async def play(loop: VirtualLoop, protocol: str, reached: set[str], dying: set[str]) -> Room:
    """erin multicasts, reaches some members, and crashes; others may crash with her."""
    room = Room(loop)
    settings = {"protocol": protocol, "give_up_after": SOON}
    kits = [kit(loop, name, codec="json", node_=settings) for name in NAMES]
    made = [await each.__aenter__() for each in kits]
    for name, each in zip(NAMES, made, strict=True):
        await room.join(name, each)
    await room.groups["erin"].send("before")
    await asyncio.sleep(2)
    room.answering = set(reached)
    room.cut([("erin", name) for name in NAMES if name not in reached])
    await room.groups["erin"].send("cause")
    await asyncio.sleep(0.1)
    room.crash("erin", *dying)
    await asyncio.sleep(15)
    room.stop()
    for each in made:
        await each.node.close(0)
    return room


@pytest.mark.parametrize("protocol", ["csps", "sps", "adaptive"])
def test_a_message_that_one_living_member_has_reaches_all_before_its_sender_has_left(
    protocol: str,
) -> None:
    for seed in range(3):
        reached = set(Random(seed).sample(NAMES[:4], 1 + seed % 3))
        room = run(lambda loop, to=reached: play(loop, protocol, to, set()), seed)  # type: ignore[misc]
        for name in NAMES[:4]:
            got = room.got[name]
            assert got[:2] == ["before", "cause"], (seed, name, got)
            assert got.count("effect") == len(reached)
            assert got.count("cause") == got.count("erin left") == 1


@pytest.mark.parametrize("protocol", ["csps", "sps", "adaptive"])
def test_a_message_that_no_living_member_has_reaches_nobody_and_nor_do_answers(
    protocol: str,
) -> None:
    """bob alone got the message, answered to it, and died as well."""
    room = run(lambda loop: play(loop, protocol, {"bob"}, {"bob"}))
    assert room.got["bob"][:2] == ["before", "cause"]
    for name in ("alice", "carol", "dave"):
        assert [item for item in room.got[name] if "left" not in item] == ["before"]
        assert sorted(room.got[name][1:]) == ["bob left", "erin left"]


def test_without_a_group_the_effect_comes_without_its_cause() -> None:
    """The same crash with plain multicasts: what a group is for."""

    async def main(loop: VirtualLoop) -> list[Any]:
        async with (
            node(loop, "alice", give_up_after=SOON) as alice,
            node(loop, "bob", give_up_after=SOON) as bob,
            node(loop, "erin", give_up_after=SOON) as erin,
        ):
            loop.network.fate = lambda x, y, _: [] if (x[1], y[1]) == (5, 1) else [0.001]
            await erin.send(["alice", "bob"], b"cause")
            while not isinstance(item := await bob.receive(), Delivery):
                pass
            assert item.payload == b"cause"
            loop.network.fate = lambda x, y, _: [] if 5 in (x[1], y[1]) else [0.001]
            await bob.send("alice", b"effect")
            await asyncio.sleep(10)
            await erin.close(0)
            await bob.close(0)
            await alice.close(0)
            return [item.payload async for item in alice if isinstance(item, Delivery)]

    assert run(main) == [b"effect"]


def test_members_keep_a_message_until_all_have_it_and_no_longer() -> None:
    async def main(loop: VirtualLoop) -> None:
        async with kit(loop, "alice") as a, kit(loop, "bob") as b, kit(loop, "carol") as c:
            groups = [await a.join("room")]
            groups += [await each.join("room", ["alice"]) for each in (b, c)]
            await asyncio.sleep(1)
            assert [group.kept for group in groups] == [0, 0, 0]
            loop.network.fate = lambda x, y, _: [] if (x[1], y[1]) == (1, 3) else [0.001]
            for _ in range(10):
                await groups[0].send(b"x")
            await asyncio.sleep(5)  # carol lacks them
            assert [group.kept for group in groups] == [10, 10, 0]
            loop.network.fate = lambda *_: [0.001]
            await asyncio.sleep(5)
            assert [group.kept for group in groups] == [0, 0, 0]

    run(main)


def test_what_agreement_costs() -> None:
    """No datagrams for each message; reports in between, and some bytes in each copy."""
    plain, group = plain_cost(5, 200), group_cost(5, 200)
    assert group.copies == plain.copies == 5 * 200 * 4
    assert plain.datagrams > 100
    assert group.datagrams < 1.5 * plain.datagrams
    assert 20 < (group.bytes - plain.bytes) / group.copies < 80
