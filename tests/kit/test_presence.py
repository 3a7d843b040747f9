"""A place in a group that is taken again when it is lost, and who begins when nobody is in."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import AsyncExitStack
from typing import Any

import pytest

from causewire.kit import Entered, GroupClosed, GroupMessage, Interrupted, Kit, Presence
from causewire.testing.virtual import VirtualLoop, run

from .helper import PORTS, kit

SETTINGS = {"rejoin": True, "give_up_after": 1.0}


class Log:
    """An application whose state is the list of messages that it has seen."""

    def __init__(self, made: Kit, names: list[str], **more: Any) -> None:
        self.state: list[Any] = []
        self.places: list[Any] = []
        self.reading = asyncio.Event()
        self.reading.set()
        self.room: Presence = made.stay(
            "room", names, snapshot=lambda: self.state, restore=self.restore, **more
        )
        self.task = asyncio.create_task(self.read())

    def restore(self, state: list[Any]) -> None:
        self.state = state

    async def read(self) -> None:
        async for item in self.room:
            await self.reading.wait()
            if isinstance(item, GroupMessage):
                self.state.append(item.payload)
            elif isinstance(item, Entered):
                self.places.append(item.began)
            elif isinstance(item, Interrupted):
                self.places.append("out")

    @property
    def members(self) -> list[str]:
        return [member.name for member in self.room.members]


class World:
    """Processes that stay in a group, in virtual time."""

    def __init__(self, loop: VirtualLoop, stack: AsyncExitStack, names: list[str]) -> None:
        self.loop, self.stack, self.names = loop, stack, names
        self.settings: dict[str, Any] = SETTINGS
        self.logs: dict[str, Log] = {}
        self.kits: dict[str, Kit] = {}

    async def start(self, *names: str, incarnation: int = 0, **more: Any) -> None:
        for name in names:
            made = kit(self.loop, name, incarnation, codec="json", node_=self.settings)
            self.kits[name] = await self.stack.enter_async_context(made)
            self.logs[name] = Log(self.kits[name], self.names, **more)

    def divide(self, *parts: set[str]) -> None:
        """Lose everything between processes in different parts."""
        part = {PORTS[name]: k for k, names in enumerate(parts) for name in names}
        self.loop.network.fate = lambda x, y, _: [0.001] if part.get(x[1]) == part.get(y[1]) else []

    def heal(self, delay: float = 0.001) -> None:
        self.loop.network.fate = lambda *_: [delay]

    async def until_whole(self) -> None:
        async with asyncio.timeout(60):
            while not all(log.members == self.names for log in self.logs.values()):
                await asyncio.sleep(0.1)


def play(names: list[str], scene: Callable[[World], Any]) -> None:
    async def main(loop: VirtualLoop) -> None:
        async with AsyncExitStack() as stack:
            await scene(World(loop, stack, names))

    run(main)


FOUR = ["alice", "bob", "carol", "dave"]


def test_processes_with_the_same_list_need_no_first_one() -> None:
    async def scene(world: World) -> None:
        await world.start("dave", "carol")
        await asyncio.sleep(5)
        assert not world.logs["carol"].room.members  # alice or bob may be a member somewhere
        with pytest.raises(GroupClosed, match="not in room yet; alice does not answer; bob does"):
            await world.logs["carol"].room.send("too early")
        await world.start("bob", "alice")
        await world.until_whole()
        began = {name: log.places for name, log in world.logs.items()}
        assert began == {"alice": [True], "bob": [False], "carol": [False], "dave": [False]}

    play(FOUR, scene)


def test_a_process_that_was_cut_off_is_back_with_the_state_of_the_others() -> None:
    async def scene(world: World) -> None:
        await world.start(*FOUR)
        await world.until_whole()
        await world.logs["dave"].room.send("before")
        await asyncio.sleep(1)
        world.divide({"alice", "bob", "carol"}, {"dave"})
        dave = world.logs["dave"]
        for k in range(20):
            await dave.room.send(f"nobody gets this {k}")
        for name in FOUR[:3]:  # they cannot let anybody in, for a while
            world.logs[name].reading.clear()
        await asyncio.sleep(4)
        world.heal()
        await asyncio.sleep(4)
        assert dave.places == [False, "out"]  # although it has delivered more than they have
        for name in FOUR[:3]:
            world.logs[name].reading.set()
        await world.logs["bob"].room.send("meanwhile")
        await world.until_whole()
        assert dave.places == [False, "out", False]
        assert dave.state == ["before", "meanwhile"]
        assert [world.logs[name].places for name in FOUR[:3]] == [[True], [False], [False]]

    play(FOUR, scene)


def test_after_a_division_one_process_begins_again_and_all_have_its_state() -> None:
    """Each part has given up the other: all are out, and `join` would fail everywhere.

    Datagrams take long enough that the obituaries of both parts cross; under adaptive, that
    of one part is heard first all the same, and the other part stays.
    """

    async def scene(world: World) -> None:
        world.settings = SETTINGS | {"protocol": "csps"}
        await world.start(*FOUR)
        await world.until_whole()
        world.divide({"alice", "bob"}, {"carol", "dave"})
        await asyncio.sleep(4)
        for k in range(3):
            await world.logs["dave"].room.send(f"dave {k}")
        await world.logs["alice"].room.send("alice")
        await asyncio.sleep(1)
        world.heal(0.1)
        await world.until_whole()
        places = [log.places[1:] for log in world.logs.values()]
        assert all(place[0] == "out" for place in places)
        assert sum(place.count(True) for place in places) == 1
        for log in world.logs.values():
            assert log.state == [f"dave {k}" for k in range(3)]  # which had delivered more

    play(FOUR, scene)


@pytest.mark.parametrize("protocol", ["csps", "adaptive"])
def test_two_parts_of_which_no_member_knows_the_other_become_one(protocol: str) -> None:
    """carol and dave are restarted while the group is divided, and each joins one part.

    Then those who gave each other up are out, and carol and dave never did: each is the only
    member of a branch.
    """

    async def scene(world: World) -> None:
        world.settings = SETTINGS | {"protocol": protocol}
        await world.start(*FOUR)
        await world.until_whole()
        world.divide({"alice", "dave"}, {"bob", "carol"})
        await asyncio.sleep(4)
        for name in ("alice", "bob"):
            for k in range(3):
                await world.logs[name].room.send(f"{name} {k}")
        await asyncio.sleep(1)
        for name in ("carol", "dave"):
            world.logs[name].task.cancel()
            await world.kits[name].node.close(0)
        await world.start("carol", "dave", incarnation=1)
        await asyncio.sleep(4)
        parts = [world.logs[name].members for name in FOUR]
        ours, theirs = ["alice", "dave"], ["bob", "carol"]
        assert parts == [ours, theirs, theirs, ours]
        world.heal()
        await world.until_whole()
        (state,) = {tuple(log.state) for log in world.logs.values()}
        assert state in [tuple(f"{name} {k}" for k in range(3)) for name in ("alice", "bob")]

    play(FOUR, scene)


def test_nobody_begins_while_a_process_that_may_be_a_member_does_not_answer() -> None:
    async def scene(world: World) -> None:
        await world.start("alice", "bob", "carol")
        await world.until_whole()
        # carol does not take anything: she cannot let others in, but she is a member.
        world.logs["carol"].reading.clear()
        await world.logs["alice"].room.send("read this")
        await asyncio.sleep(0.01)  # it is in carol's queue
        for name in ("alice", "bob"):
            world.logs[name].task.cancel()
            await world.kits[name].node.close(0)
        await world.start("alice", "bob", incarnation=1)
        await asyncio.sleep(20)
        assert world.logs["alice"].places == world.logs["bob"].places == []
        world.logs["carol"].reading.set()
        await world.until_whole()
        assert [True] not in (world.logs["alice"].places, world.logs["bob"].places)
        assert world.logs["alice"].state == world.logs["carol"].state == ["read this"]

    play(["alice", "bob", "carol"], scene)


def test_a_process_can_leave_whether_it_is_in_or_out() -> None:
    async def scene(world: World) -> None:
        await world.start("alice")
        await asyncio.sleep(1)
        assert not await world.logs["alice"].room.leave()  # bob is not there: it never was in
        await world.logs["alice"].task
        assert world.logs["alice"].places == []
        await world.start("bob", begin=True)
        await asyncio.sleep(1)
        assert world.logs["bob"].places == [True]
        assert await world.logs["bob"].room.leave()
        await world.logs["bob"].task

    play(["alice", "bob"], scene)


def test_the_iteration_ends_with_the_kit() -> None:
    async def scene(world: World) -> None:
        await world.start("alice")
        await asyncio.sleep(1)
        await world.kits["alice"].close()
        await world.logs["alice"].task
        assert world.logs["alice"].places == []
        await world.start("bob", begin=True)
        await asyncio.sleep(1)
        await world.kits["bob"].close()
        await world.logs["bob"].task
        assert world.logs["bob"].places == [True]

    play(["alice", "bob"], scene)


def test_a_call_of_join_that_was_cancelled_can_be_repeated() -> None:
    async def main(loop: VirtualLoop) -> None:
        async with kit(loop, "alice") as alice, kit(loop, "bob") as bob:
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(1):
                    await bob.join("room", ["alice"])
            await alice.join("room")
            group = await bob.join("room", ["alice"])
            assert len(group.members) == 2

    run(main)
