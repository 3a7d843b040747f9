"""Mistakes of applications that must not harm the group, or whoever waits."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Any

import pytest

from causewire.kit import Interrupted, Kit, KitError, Request, RequestFailed
from causewire.node import TransportConfig
from causewire.testing.virtual import VirtualLoop, run

from .helper import kit

SMALL = {"config": TransportConfig(message=4000)}


async def take(group: Any, items: list[Any]) -> None:
    async for item in group:
        items.append(item)  # noqa: PERF401 - while it waits, others look


def payloads(items: list[Any]) -> list[Any]:
    return [item.payload for item in items if hasattr(item, "payload")]


def test_a_message_that_is_too_long_is_not_sent() -> None:
    async def main(loop: VirtualLoop) -> None:
        async with kit(loop, "alice", node_=SMALL) as a, kit(loop, "bob", node_=SMALL) as b:
            mine: list[Any] = []
            other: list[Any] = []
            room = await a.join("room")
            with pytest.raises(ValueError, match="too long"):
                await room.send(b"x" * 5000)  # alone in the group
            theirs = await b.join("room", ["alice"])
            tasks = [
                asyncio.create_task(take(room, mine)),
                asyncio.create_task(take(theirs, other)),
            ]
            with pytest.raises(ValueError, match="too long"):
                await room.send(b"x" * 5000)
            await room.send(b"x" * 3990)  # with its head, it is longer than a message
            await room.until_stable(await room.send(b"next"))
            assert payloads(mine) == payloads(other) == [b"x" * 3990, b"next"]
            assert await room.leave()
            for task in tasks:
                task.cancel()

    run(main)


def test_a_message_that_cannot_be_decoded_is_an_item(caplog: pytest.LogCaptureFixture) -> None:
    async def main(loop: VirtualLoop) -> None:
        async with kit(loop, "alice", codec="json") as a, kit(loop, "bob") as b:
            items: list[Any] = []
            room = await a.join("room")
            task = asyncio.create_task(take(room, items))
            theirs = await b.join("room", ["alice"])
            for payload in (b"1", b"\xff", b"2"):
                await theirs.send(payload)
            await asyncio.sleep(1)
            assert payloads(items) == [1, 2]
            (bad,) = [item for item in items if type(item).__name__ == "Undecodable"]
            assert (bad.member.name, bad.data) == ("bob", b"\xff")
            assert "cannot decode message" in caplog.text
            task.cancel()

    run(main)


def test_a_send_that_is_cancelled_while_it_waits_is_not_sent() -> None:
    async def main(loop: VirtualLoop) -> None:
        config = {"config": TransportConfig(peer_messages=20)}
        async with kit(loop, "alice", node_=config) as a, kit(loop, "bob", node_=config) as b:
            room = await a.join("room")
            theirs = await b.join("room", ["alice"])
            items: list[Any] = []
            task = asyncio.create_task(take(theirs, items))
            loop.network.fate = lambda *_: []
            accepted = 0
            with suppress(TimeoutError):
                while accepted < 10_000:
                    await asyncio.wait_for(room.send(b"%d" % accepted), 0.5)
                    accepted += 1
            assert accepted < 10_000
            loop.network.fate = lambda *_: [0.001]
            await room.until_stable(await room.send(b"last"))
            assert payloads(items) == [*[b"%d" % k for k in range(accepted)], b"last"]
            task.cancel()

    run(main)


def test_a_process_whose_restore_fails_leaves() -> None:
    def fail(state: Any) -> None:
        raise LookupError("not like this")

    async def main(loop: VirtualLoop) -> None:
        async with kit(loop, "alice") as a, kit(loop, "bob") as b:
            room = await a.join("room", snapshot=lambda: b"state")
            task = asyncio.create_task(take(room, []))
            with pytest.raises(LookupError, match="not like this"):
                await b.join("room", ["alice"], restore=fail)
            assert [member.name for member in room.members] == ["alice"]
            await b.join("room", ["alice"], restore=lambda state: None)
            task.cancel()

    run(main)


def test_a_request_ends_whatever_its_handler_does() -> None:
    async def main(loop: VirtualLoop) -> None:
        async with kit(loop, "alice", node_=SMALL) as a, kit(loop, "bob", node_=SMALL) as b:

            @b.serves("long")
            async def long(request: Request) -> bytes:
                return b"x" * 5000

            @b.serves("error")
            async def error(request: Request) -> None:
                raise LookupError("x" * 5000)

            @b.serves("cancelled")
            async def cancelled(request: Request) -> None:
                inner = asyncio.create_task(asyncio.sleep(9))
                inner.cancel()
                await inner

            kinds = {"long": "ValueError", "error": "LookupError", "cancelled": "CancelledError"}
            for service, kind in kinds.items():
                with pytest.raises(RequestFailed) as failed:
                    await a.request("bob", b"", service=service, timeout=5)
                assert failed.value.kind == kind

    run(main)


def test_a_node_has_one_kit() -> None:
    async def main(loop: VirtualLoop) -> None:
        async with kit(loop, "alice") as a:
            with pytest.raises(KitError, match="alice has a kit already"):
                await Kit(a.node).start()
            await a.close()
            async with Kit(a.node) as second:
                await second.join("room")

    run(main)


def test_a_place_that_is_lost_does_not_advise_to_use_stay() -> None:
    async def main(loop: VirtualLoop) -> None:
        async with kit(loop, "alice") as a, kit(loop, "bob", node_={"rejoin": True}) as b:
            await a.join("room")
            async for item in b.stay("room", ["alice"]):
                if isinstance(item, Interrupted):
                    assert item.reason == "bob is not in room: the others gave it up"
                    break
                await a.node.forget("bob")

    run(main)
