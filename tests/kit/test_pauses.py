"""Places in a group while the node was given up again and again, and pauses before it rejoins."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from causewire.kit import Entered, GroupClosed, Interrupted, Kit, Presence
from causewire.node import Superseded
from causewire.testing.virtual import VirtualLoop, run

from .helper import kit

REJOIN: dict[str, Any] = {"rejoin": True}


async def pause(alice: Kit, bob: Kit) -> None:
    """Give bob up until it pauses."""
    while bob.node._rejoining.until is None:
        await alice.node.forget("bob")
        await asyncio.sleep(0.1)  # bob learns that


def places(room: Presence, seen: list[type]) -> asyncio.Task[None]:
    """Keep what is read from a place in a group."""

    async def read() -> None:
        async for item in room:
            seen.append(type(item))  # noqa: PERF401

    return asyncio.create_task(read())


def test_a_place_is_entered_after_the_pause() -> None:
    """Nobody is a member, and bob asks again and again."""

    async def main(loop: VirtualLoop) -> None:
        async with kit(loop, "alice") as alice, kit(loop, "bob", node_=REJOIN) as bob:
            seen: list[type] = []
            reading = places(bob.stay("room", ["alice"], retry=0.1), seen)
            joining = asyncio.create_task(bob.join("another", ["alice"], retry=0.1))
            await asyncio.sleep(0.5)
            await pause(alice, bob)
            await asyncio.sleep(0.3)
            assert bob.node._transport.me.superseded
            await asyncio.sleep(5)
            assert not reading.done()
            assert not joining.done()
            await alice.join("another")
            alices = places(alice.stay("room", ["alice"]), [])
            assert [one.name for one in (await joining).members] == ["alice", "bob"]
            await asyncio.sleep(1)
            assert seen[0] is Entered
            for task in (reading, alices):
                task.cancel()

    run(main)


def test_a_place_is_lost_when_the_node_is_given_up_not_when_it_is_back() -> None:
    async def main(loop: VirtualLoop) -> None:
        async with kit(loop, "alice") as alice, kit(loop, "bob", node_=REJOIN) as bob:
            seen: list[type] = []
            room = bob.stay("room", ["alice"], retry=0.1)
            tasks = [places(alice.stay("room", begin=True), []), places(room, seen)]
            await asyncio.sleep(1)
            assert seen.pop(0) is Entered
            group = room.group
            assert group is not None
            await alice.node.forget("bob")
            await asyncio.sleep(3)
            assert seen[0] is Interrupted
            assert Entered in seen
            await pause(alice, bob)
            assert bob.node._transport.me.superseded
            assert seen[-1] is Interrupted
            assert not room.members
            with pytest.raises(GroupClosed):
                await room.send(b"nobody would get it")
            with pytest.raises(GroupClosed, match="the others gave it up"):
                await group.send(b"nor this")
            await asyncio.sleep(5)
            assert seen[-1] is not Interrupted
            assert [one.name for one in room.members] == ["alice", "bob"]
            for task in tasks:
                task.cancel()

    run(main)


def test_without_rejoin_the_place_raises_superseded() -> None:
    async def main(loop: VirtualLoop) -> None:
        async with kit(loop, "alice") as alice, kit(loop, "bob") as bob:
            seen: list[type] = []
            alices = places(alice.stay("room", begin=True), [])
            tasks = [
                places(bob.stay("room", ["alice"], retry=0.1), seen),
                places(bob.stay("another", ["alice"], retry=0.1), []),
            ]
            await asyncio.sleep(1)
            await alice.node.forget("bob")
            for task in tasks:
                with pytest.raises(Superseded):
                    await task
            assert seen[0] is Entered
            assert seen[-1] is Interrupted
            alices.cancel()

    run(main)
