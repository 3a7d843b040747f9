"""A dead process is noticed within `silent_after`, whether anybody writes to it or not."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest

from causewire.node import Node, PeerSilent
from causewire.testing.virtual import VirtualLoop, run

WITHIN = 3.0 + 0.01
"""The default of `silent_after`, and the time that datagrams take."""


def hub(size: int) -> Iterator[tuple[str, str]]:
    """Who dials whom: all others dial one."""
    return ((f"n{k:02d}", "hub") for k in range(size))


def hub_first(size: int) -> Iterator[tuple[str, str]]:
    """The same; the name of the one comes before those of all others."""
    return ((f"n{k:02d}", "a hub") for k in range(size))


def mesh(size: int) -> Iterator[tuple[str, str]]:
    """Everybody dials everybody."""
    return ((f"n{k:02d}", f"n{j:02d}") for k in range(size) for j in range(size) if j != k)


@pytest.mark.parametrize("busy", [False, True], ids=["idle", "busy"])
@pytest.mark.parametrize(
    ("pairs", "victim"),
    [
        (list(mesh(2)), "n00"),
        (list(mesh(2)), "n01"),
        (list(mesh(10)), "n05"),
        (list(hub(20)), "n19"),
        (list(hub(20)), "hub"),
        (list(hub_first(20)), "n07"),
        (list(hub_first(20)), "a hub"),
        (list(hub(60)), "n19"),
        (list(hub_first(60)), "n07"),
    ],
    ids=[
        "pair",
        "pair, the later",
        "mesh",
        "hub",
        "the hub",
        "first hub",
        "the first hub",
        "large hub",
        "large first hub",
    ],
)
def test_a_dead_process_is_silent_in_time(
    pairs: list[tuple[str, str]], victim: str, busy: bool
) -> None:
    async def main(loop: VirtualLoop) -> None:
        names = sorted({name for pair in pairs for name in pair})
        places = {name: ("127.0.0.1", k + 1) for k, name in enumerate(names)}
        sockets: dict[str, Any] = {n: loop.network.socket(places[n][1]) for n in names}
        nodes = [
            Node(
                name,
                incarnation=k + 1 << 20,
                sock=sockets[name],
                peers={to: places[to] for by, to in pairs if by == name},
                drain=0.0,
            )
            for k, name in enumerate(names)
        ]
        noticed: dict[str, float] = {}

        async def watch(node: Node) -> None:
            async for event in node.events():
                if isinstance(event, PeerSilent) and event.name == victim:
                    noticed[node.name] = loop.now - died

        for node in nodes:
            await node.start()
        watching = [loop.create_task(watch(node)) for node in nodes]
        await asyncio.sleep(20.3)
        port = places[victim][1]
        loop.network.fate = lambda source, target, _: (
            [] if port in (source[1], target[1]) else [0.001]
        )
        died = loop.now
        near = {b if a == victim else a for a, b in pairs if victim in (a, b)}
        if busy:
            for node in nodes:
                if node.name in near:
                    await node.send(victim, b"x")
        await asyncio.sleep(2 * WITHIN)
        assert noticed.keys() == near
        assert max(noticed.values()) <= WITHIN
        for task in watching:
            task.cancel()
        for node in nodes:
            await node.close(0)

    run(main, seed=1)
