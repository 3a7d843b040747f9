"""A node tells which messages had to wait, if it is asked to. In virtual time."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from causewire.node import Held, message_id
from causewire.testing.virtual import VirtualLoop, run
from causewire.trace import open_trace

from .test_node import node, watch


async def question_and_answer(
    loop: VirtualLoop, protocol: str
) -> tuple[dict[str, list[Held]], list[tuple[str, int, int]]]:
    """Bob answers a question of alice before carol has it: what had to wait at each of them."""
    held: dict[str, list[Held]] = {"alice": [], "bob": [], "carol": []}
    settings: dict[str, Any] = {"protocol": protocol, "ordered_events": True, "drain": 2.0}
    async with (
        node(loop, "alice", **settings) as alice,
        node(loop, "bob", **settings) as bob,
        node(loop, "carol", **settings) as carol,
    ):
        for made in (alice, bob, carol):
            made.on_held(held[made.name].append)
        await asyncio.sleep(1)
        slow = {(1, 3)}
        loop.network.fate = lambda x, y, _: [1.0 if (x[1], y[1]) in slow else 0.001]
        await alice.send(["bob", "carol"], b"question")
        while getattr(await bob.receive(), "payload", b"") != b"question":
            pass
        await bob.send(["alice", "carol"], b"answer")
        got: list[Any] = []
        while len(got) < 2:
            item = await carol.receive()
            got += [item] if hasattr(item, "payload") else []
        assert [message.payload for message in got] == [b"question", b"answer"]
        return held, [message_id(message) for message in got]


def test_a_message_that_waits_at_its_sender() -> None:
    held, ids = run(lambda loop: question_and_answer(loop, "csps"))
    assert not held["alice"]
    assert not held["carol"]
    ((where, *message, began, ended),) = held["bob"]
    assert (where, *message) == ("sender", *ids[1])
    assert began < ended


@pytest.mark.parametrize("protocol", ["adaptive", "rst"])
def test_a_message_that_waits_at_its_receiver(protocol: str) -> None:
    held, ids = run(lambda loop: question_and_answer(loop, protocol))
    assert not held["alice"]
    assert not held["bob"]
    (found,) = held["carol"]
    assert (found.where, found.source, found.incarnation, found.mid) == ("receiver", *ids[1])
    assert found.began < found.ended


def test_a_message_that_waits_for_an_earlier_one_of_its_sender() -> None:
    async def main(loop: VirtualLoop) -> None:
        held: list[Held] = []
        async with node(loop, "alice") as alice, node(loop, "bob") as bob:
            bob.on_held(held.append)
            await asyncio.sleep(1)
            loop.network.fate = lambda *_: []
            await alice.send("bob", b"lost")
            await asyncio.sleep(0.01)
            loop.network.fate = lambda *_: [0.001]
            await alice.send("bob", b"x")
            assert [(await bob.receive()).payload for _ in range(2)] == [b"lost", b"x"]
        assert [(one.where, one.mid) for one in held] == [("receiver", 2)]

    run(main)


def test_the_trace_has_the_same_rows_when_somebody_watches(tmp_path: Path) -> None:
    async def main(loop: VirtualLoop, watched: bool, path: Path) -> None:
        async with node(loop, "alice", trace=path) as alice, node(loop, "bob") as bob:
            if watched:
                alice.on_held(lambda _: None)
            await asyncio.sleep(1)
            for _ in range(10):
                await alice.send("bob", b"x")
                await bob.send("alice", b"y")
                await alice.receive()

    rows = []
    for watched in (False, True):
        path = tmp_path / f"{watched}.jsonl"
        run(lambda loop, w=watched, p=path: main(loop, w, p))  # type: ignore[misc]
        rows.append([(e.seq, e.kind, e.lamport, e.mid) for e in open_trace(path).events()])
    assert rows[0] == rows[1]
    assert len(rows[0]) > 30


def test_messages_of_a_former_life_are_forgotten_and_those_of_the_next_reported() -> None:
    async def main(loop: VirtualLoop) -> None:
        held: list[Held] = []
        async with node(loop, "alice", rejoin=True) as alice, node(loop, "bob") as bob:
            alice.on_held(held.append)
            await asyncio.sleep(1)
            loop.network.fate = lambda *_: []
            await alice.send("bob", b"never arrives")
            await asyncio.sleep(0.01)
            events = watch(alice)
            await bob.forget("alice")
            loop.network.fate = lambda *_: [0.001]
            while not any(type(event).__name__ == "NodeRejoined" for event in events):
                await asyncio.sleep(0.1)
            await (await alice.send("bob", b"y")).delivered()
            assert (await bob.receive()).payload == b"y"
            loop.network.fate = lambda *_: []
            await bob.send("alice", b"lost")
            await asyncio.sleep(0.01)
            loop.network.fate = lambda *_: [0.001]
            await bob.send("alice", b"z")
            await alice.receive()
            await alice.receive()
        assert [(one.where, one.source) for one in held] == [("receiver", "bob")]

    run(main)


def test_a_node_that_nobody_asked_is_not_observed() -> None:
    async def main(loop: VirtualLoop) -> None:
        async with node(loop, "alice") as alice:
            assert alice._transport.observer is None

    run(main)
