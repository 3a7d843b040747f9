"""A process that is cut off in the middle of traffic suspects itself, and nobody else."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack, suppress
from typing import Any

from causewire import CausewireError
from causewire.node import Node
from causewire.testing.virtual import VirtualLoop, run

PORTS = {"alice": 1, "bob": 2, "carol": 3, "dave": 4}


def node(loop: VirtualLoop, name: str) -> Node:
    sock: Any = loop.network.socket(PORTS[name])
    peers = {other: f"127.0.0.1:{port}" for other, port in PORTS.items() if other != name}
    number = 1000 * PORTS[name]
    return Node(name, sock=sock, peers=peers, incarnation=number, give_up_after=2.0, rejoin=True)


async def talk(loop: VirtualLoop, made: Node) -> None:
    others = [name for name in PORTS if name != made.name]
    while True:
        await asyncio.sleep(loop.random.uniform(0.005, 0.05))
        with suppress(CausewireError):
            await made.send(others, b"x")


async def read(made: Node) -> None:
    async for _ in made:
        pass


async def incarnations_after_a_cut(loop: VirtualLoop) -> dict[str, int]:
    """Cut dave off for longer than the others wait; return who everybody is afterwards."""
    cut = False

    def fate(source: Any, to: Any, _: bytes) -> list[float]:
        lost = cut and PORTS["dave"] in (source[1], to[1])
        return [] if lost else [loop.random.uniform(0.001, 0.02)]

    loop.network.fate = fate
    async with AsyncExitStack() as stack:
        nodes = [await stack.enter_async_context(node(loop, name)) for name in PORTS]
        tasks = [asyncio.create_task(work) for n in nodes for work in (talk(loop, n), read(n))]
        await asyncio.sleep(2)
        cut = True
        await asyncio.sleep(4)
        cut = False
        await asyncio.sleep(3)
        for task in tasks:
            task.cancel()
        found = {each.name: each.incarnation for each in nodes}
        for each in nodes:
            await each.close(0)
    return found


def test_whoever_is_cut_off_starts_over_and_the_others_do_not() -> None:
    for seed in range(6):
        found = run(incarnations_after_a_cut, seed)
        assert found.pop("dave") > 4000
        assert found == {"alice": 1000, "bob": 2000, "carol": 3000}, seed
