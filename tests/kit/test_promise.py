"""An application on a kit that promises to read, and is stuck."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from causewire.kit import GroupMessage, Kit, PeerLost, Request
from causewire.node import NodeUnread
from causewire.testing.virtual import VirtualLoop, run

from .helper import kit, node

PROMISE: dict[str, Any] = {"read_within": 3.0, "node_": {"read_within": 3.0, "rejoin": True}}


async def chatter(made: Kit, to: str) -> None:
    """Send plain messages all the time."""
    while True:
        await asyncio.sleep(0.5)
        if to in made.node.peers_up():
            await made.node.send(to, b"are you there?")


async def ignore(made: Kit) -> None:
    async for _ in made:
        pass


def test_handlers_that_are_stuck_are_noticed() -> None:
    async def main(loop: VirtualLoop) -> None:
        async with kit(loop, "alice") as a, kit(loop, "bob", handlers=1, **PROMISE) as b:
            tasks = [asyncio.create_task(chatter(a, "bob")), asyncio.create_task(ignore(b))]
            free = asyncio.Event()

            @b.serves()
            async def serve(request: Request) -> bytes:
                await free.wait()
                return b"done"

            asking = [asyncio.create_task(a.request("bob", b"x")) for _ in range(2)]
            for request in asking:  # the first one is handled, the second one waits
                with pytest.raises(PeerLost):
                    async with asyncio.timeout(10):
                        await request
            free.set()
            await asyncio.sleep(5)
            assert await a.request("bob", b"x", timeout=5) == b"done"
            for task in tasks:
                task.cancel()

    run(main)


def test_long_work_on_one_request_breaks_no_promise() -> None:
    async def main(loop: VirtualLoop) -> None:
        async with kit(loop, "alice") as a, kit(loop, "bob", handlers=1, **PROMISE) as b:
            tasks = [asyncio.create_task(chatter(a, "bob")), asyncio.create_task(ignore(b))]

            @b.serves()
            async def serve(request: Request) -> bytes:
                await asyncio.sleep(30)
                return b"done"

            assert await a.request("bob", b"x") == b"done"
            for task in tasks:
                task.cancel()

    run(main)


def test_a_group_whose_items_are_not_taken_is_noticed() -> None:
    async def main(loop: VirtualLoop) -> None:
        async with (
            kit(loop, "alice", codec="json") as a,
            kit(loop, "bob", codec="json", **PROMISE) as b,
        ):
            room = await a.join("room")
            theirs = await b.join("room", ["alice"])
            unread = asyncio.Event()

            async def watch() -> None:
                async for event in b.node.events():
                    if isinstance(event, NodeUnread):
                        unread.set()

            watching = asyncio.create_task(watch())
            await room.send("one")
            async for item in theirs:
                assert isinstance(item, GroupMessage)
                break
            await asyncio.sleep(10)
            assert not unread.is_set()  # nothing waits
            for k in range(20):
                await asyncio.sleep(0.5)
                if len(room.members) == 1:
                    break
                await room.send(k)
            assert unread.is_set()
            assert [member.name for member in room.members] == ["alice"]
            watching.cancel()

    run(main)


def test_it_is_no_breach_to_wait_for_an_answer() -> None:
    async def main(loop: VirtualLoop) -> None:
        async with kit(loop, "alice") as a, kit(loop, "bob", handlers=1, **PROMISE) as b:
            tasks = [asyncio.create_task(chatter(a, "bob")), asyncio.create_task(ignore(b))]

            @a.serves()
            async def think(request: Request) -> bytes:
                await asyncio.sleep(20)
                return b"thought"

            @b.serves()
            async def serve(request: Request) -> bytes:
                return bytes(await b.request("alice", b"y"))

            asking = [asyncio.create_task(a.request("bob", b"x")) for _ in range(2)]
            assert [await request for request in asking] == [b"thought", b"thought"]
            for task in tasks:
                task.cancel()

    run(main)


def test_a_promise_is_a_time() -> None:
    async def main(loop: VirtualLoop) -> None:
        async with node(loop, "alice") as made:
            with pytest.raises(ValueError, match="read_within"):
                Kit(made, read_within=0.0)

    run(main)
