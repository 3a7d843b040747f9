"""A member that is alive and was removed learns that."""

from __future__ import annotations

import asyncio
from typing import Any

from causewire.kit import Entered, Interrupted, Kit, Presence
from causewire.testing.virtual import VirtualLoop, run

from .helper import kit


def test_a_member_that_was_removed_by_mistake_learns_that() -> None:
    """Alice takes bob for dead, as a newcomer does that never reached him; he hears nothing."""

    async def read(room: Presence, items: list[Any]) -> None:
        async for item in room:
            items.append(item)  # noqa: PERF401 - while it waits, others look

    def stay(made: Kit) -> Presence:
        return made.stay("room", ["alice", "bob"])

    async def main(loop: VirtualLoop) -> None:
        async with kit(loop, "alice") as a, kit(loop, "bob") as b:
            items: list[Any] = []
            room = stay(a)
            tasks = [
                asyncio.create_task(read(room, [])),
                asyncio.create_task(read(stay(b), items)),
            ]
            await asyncio.sleep(5)
            assert room.group is not None
            (bob,) = [member for member in room.members if member.name == "bob"]
            room.group.gone("bob", bob.incarnation)
            await asyncio.sleep(1)
            assert [member.name for member in room.members] == ["alice"]
            await asyncio.sleep(20)
            changes = [type(item) for item in items if isinstance(item, Entered | Interrupted)]
            assert changes == [Entered, Interrupted]
            for task in tasks:
                task.cancel()

    run(main)
