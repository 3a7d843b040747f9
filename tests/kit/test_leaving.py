"""How a process goes: by leaving, with its kit, with its node; and what the others see."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from causewire.kit import GroupClosed, Kit, Left
from causewire.testing.disk import Disk, DiskStore
from causewire.testing.virtual import VirtualLoop, run

from .helper import PORTS, kit


class Reader:
    """An application that notes who went, and how its iteration ended."""

    def __init__(self, iterable: Any) -> None:
        self.room = iterable
        self.left: list[tuple[str, bool]] = []
        self.task = asyncio.create_task(self.read())

    async def read(self) -> str:
        try:
            async for item in self.room:
                if isinstance(item, Left):
                    self.left.append((item.member.name, item.gone))
        except GroupClosed:
            return "raised"
        return "ended"


async def join(made: Kit, *seeds: str) -> Reader:
    return Reader(await made.join("room", seeds))


@pytest.mark.parametrize("what", ["kit", "node", "node with a store"])
def test_closing_leaves_the_groups(what: str) -> None:
    """`causewire.node.run` closes the nodes on SIGTERM."""

    async def main(loop: VirtualLoop) -> None:
        settings = {"store": DiskStore(Disk())} if what == "node with a store" else {}
        async with kit(loop, "alice") as alice, kit(loop, "bob", node_=settings) as bob:
            here = await join(alice)
            there = await join(bob, "alice")
            await there.room.send(b"my last words")
            await (bob.close() if what == "kit" else bob.node.close())
            assert await there.task == "ended"
            await asyncio.sleep(0.1)
            assert here.left == [("bob", False)]

    run(main)


def test_a_node_that_says_no_goodbye_leaves_no_group_either() -> None:
    async def main(loop: VirtualLoop) -> None:
        impatient = {"give_up_after": 3.0}
        async with kit(loop, "alice", node_=impatient) as alice, kit(loop, "bob") as bob:
            here = await join(alice)
            await join(bob, "alice")
            await bob.node.close(leave=False)
            await asyncio.sleep(1)
            assert here.left == []
            await asyncio.sleep(9)
            assert here.left == [("bob", True)]

    run(main)


def test_whoever_closes_a_node_that_is_being_closed_waits_for_the_end_of_it() -> None:
    """Otherwise the process ends before its node has said goodbye."""

    async def main(loop: VirtualLoop) -> None:
        async with kit(loop, "alice") as alice, kit(loop, "bob") as bob:
            await join(alice)
            there = await join(bob, "alice")
            by_signal = asyncio.create_task(bob.node.close())
            await there.task
            assert not by_signal.done()
            assert await bob.node.close()
            assert by_signal.done()

    run(main)


def test_closing_is_bounded_in_time() -> None:
    async def main(loop: VirtualLoop) -> None:
        async with kit(loop, "alice") as alice, kit(loop, "bob") as bob:
            await join(alice)
            there = await join(bob, "alice")
            loop.network.fate = lambda *_: []
            before = loop.time()
            await bob.node.close()
            assert loop.time() - before < 2 + 1 + 1  # to leave, to drain, to say goodbye
            assert await there.task == "ended"

    run(main)


def test_a_process_that_is_joining_does_not_delay_its_end() -> None:
    async def main(loop: VirtualLoop) -> None:
        async with kit(loop, "bob") as bob:
            joining = asyncio.create_task(bob.join("room", ["alice"]))
            staying = Reader(bob.stay("other", ["alice", "bob"]))
            await asyncio.sleep(1)
            before = loop.time()
            await bob.close()
            assert loop.time() - before < 0.5
            with pytest.raises(Exception, match="closed"):
                await joining
            assert await staying.task == "ended"

    run(main)


@pytest.mark.parametrize("stays", [False, True])
def test_one_that_leaves_while_others_are_gone_has_left(stays: bool) -> None:
    """Bob and Dave remove Alice, who is given up, while nobody hears from Carol."""

    async def main(loop: VirtualLoop) -> None:
        adaptive = {"protocol": "adaptive", "rejoin": True}
        cut_off = set[int]()
        loop.network.fate = lambda x, y, _: [] if cut_off & {x[1], y[1]} else [0.001]
        async with (
            kit(loop, "alice", node_=adaptive) as alice,
            kit(loop, "bob", node_=adaptive) as bob,
            kit(loop, "carol", node_=adaptive) as carol,
            kit(loop, "dave", node_=adaptive) as dave,
        ):
            await join(alice)
            here = await join(bob, "alice")
            await join(carol, "alice")
            there = Reader(dave.stay("room", ["alice"])) if stays else await join(dave, "alice")
            await asyncio.sleep(1)
            cut_off.add(PORTS["carol"])
            await asyncio.sleep(1)
            await bob.node.forget("alice")
            await asyncio.sleep(0.05)
            assert not await there.room.leave()  # Carol has not delivered it
            assert await there.task == "ended"
            assert ("dave", False) in here.left

    run(main)
