"""How many datagrams a request and its reply cost, counted in virtual time."""

from __future__ import annotations

import asyncio
from random import Random
from typing import Any

import pytest

from causewire.node import Node
from causewire.testing.virtual import VirtualLoop, run


def datagrams(
    clients: int, *, requests: int = 50, jitter: float = 0.0, compute: float = 0.0, **settings: Any
) -> float:
    """Return the datagrams for each request of `clients` that a server answers.

    Args:
        clients: How many clients send requests, each after its last reply.
        requests: How many each of them sends.
        jitter: Seconds by which the travel of datagrams varies.
        compute: Seconds that the server takes for a reply.
        settings: Settings of the nodes.
    """

    async def main(loop: VirtualLoop) -> float:
        draw = Random(1).uniform
        loop.network.fate = lambda *_: [0.0002 + draw(0.0, jitter)]
        sockets: list[Any] = [loop.network.socket(1 + k) for k in range(1 + clients)]
        server = await Node("server", sock=sockets[0], **settings).start()
        asking = [
            await Node(f"client{k}", sock=sockets[1 + k], **settings).start()
            for k in range(clients)
        ]

        async def serve() -> None:
            async for source, _, payload in server:
                if compute:
                    await asyncio.sleep(compute)
                await server.send(source, payload)

        async def ask(node: Node, count: int) -> None:
            for _ in range(count):
                await node.send("server", b"?")
                await node.receive()

        serving = asyncio.create_task(serve())
        for node in asking:
            await node.add_peer("server", server.address)
        await asyncio.gather(*[ask(node, 3) for node in asking])
        carried = loop.network.carried
        await asyncio.gather(*[ask(node, requests) for node in asking])
        carried = loop.network.carried - carried
        serving.cancel()
        await asyncio.sleep(0.1)
        for node in (*asking, server):
            await node.close(0.0)
        return carried / (clients * requests)

    return run(main)


@pytest.mark.parametrize("protocol", ["csps", "sps", "fifo"])
def test_a_request_and_its_reply_are_two_datagrams(protocol: str) -> None:
    assert datagrams(1, protocol=protocol) < 2.1


@pytest.mark.parametrize(
    ("protocol", "jitter"), [("csps", 0.0), ("sps", 0.0), ("fifo", 0.0), ("fifo", 0.0001)]
)
def test_so_they_are_with_seven_clients(protocol: str, jitter: float) -> None:
    # The acks of one turn ride on its replies, although timers of sessions fire in between.
    assert datagrams(7, jitter=jitter, protocol=protocol) <= 2.2
