"""Errors of the kit say what happened, to whom, and what to do."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from causewire import blocking
from causewire.kit import GroupClosed, JoinFailed, Kit, KitError, PeerLost, Request
from causewire.node import Superseded
from causewire.testing.virtual import VirtualLoop, run

from .helper import kit


def test_a_request_that_was_not_answered() -> None:
    async def forever(request: Request) -> None:
        await asyncio.Event().wait()

    async def main(loop: VirtualLoop) -> None:
        async with kit(loop, "alice") as alice, kit(loop, "bob") as bob:
            bob.serves("sum")(forever)
            with pytest.raises(TimeoutError, match=r"bob has not answered .* 'sum' in 2 s"):
                await alice.request("bob", b"x", service="sum", timeout=2)
            asked = asyncio.create_task(alice.request("bob", b"x", service="sum"))
            await asyncio.sleep(1)
            await bob.node.close()
            for lost in (asked, alice.request("bob", b"x")):
                with pytest.raises(PeerLost, match=r"^bob: it has left, "):
                    await lost

    run(main)


def test_a_node_for_threads() -> None:
    threads: Any = blocking.Node("alice", ordered_events=True)
    with pytest.raises(KitError, match=r"the kit is for causewire\.Node"):
        Kit(threads)


def test_nobody_lets_a_process_in() -> None:
    async def main(loop: VirtualLoop) -> None:
        async with kit(loop, "alice") as alice, kit(loop, "bob"):
            with pytest.raises(JoinFailed, match=r": bob is not a member; carol does not answer$"):
                await alice.join("room", ["bob", "carol"], timeout=5)

    run(main)


def test_the_others_have_given_this_process_up() -> None:
    async def main(loop: VirtualLoop) -> None:
        rejoins = {"rejoin": True}
        async with kit(loop, "alice") as alice, kit(loop, "bob", node_=rejoins) as bob:
            await alice.join("room")
            room = await bob.join("room", ["alice"])
            await alice.node.forget("bob")
            await asyncio.sleep(1)
            with pytest.raises(GroupClosed, match="gave it up; join again, or use stay"):
                await room.send(b"x")

    run(main)


def test_the_iteration_over_a_kit_says_that_the_process_was_given_up() -> None:
    async def main(loop: VirtualLoop) -> None:
        async with kit(loop, "alice") as alice, kit(loop, "bob") as bob:
            await alice.node.send("bob", b"first")
            messages = bob.__aiter__()
            assert (await anext(messages)).payload == b"first"
            await alice.node.forget("bob")
            with pytest.raises(Superseded):
                await anext(messages)

    run(main)
