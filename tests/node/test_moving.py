"""A peer that is seen at another address goes on: a name is who it is, not where."""

from __future__ import annotations

import asyncio

import pytest

import causewire
from causewire.node import PeerMoved
from causewire.testing.proxy import Proxy
from causewire.transport import Address

pytestmark = pytest.mark.slow

PATIENCE = 30


async def get(node: causewire.Node, number: int) -> list[bytes]:
    """The next messages that a node delivers."""
    payloads = []
    async for message in node:
        payloads.append(message.payload)
        if len(payloads) == number:
            break
    return payloads


async def watch(node: causewire.Node, told: dict[str, Address]) -> None:
    """Note where peers were last said to have moved."""
    async for event in node.events():
        if isinstance(event, PeerMoved):
            told[event.name] = event.address


async def moves(key: bytes | None, loss: float) -> None:
    """Both talk; ann moves, twice, in the middle of it."""
    async with causewire.Node("ann", key=key) as ann, causewire.Node("bob", key=key) as bob:
        proxy = Proxy({"ann": ann.address, "bob": bob.address}, seed=1, loss=loss)
        await proxy.start()
        await ann.add_peer("bob", proxy.address("ann", "bob"))
        await bob.add_peer("ann", proxy.address("bob", "ann"))
        told: dict[str, Address] = {}
        watching = asyncio.create_task(watch(bob, told))
        seen = {proxy.address("bob", "ann")}
        sent: list[bytes] = []
        heard: dict[str, list[bytes]] = {"ann": [], "bob": []}
        for turn in range(3):
            for k in range(50):
                sent.append(b"%d %d" % (turn, k))
                await ann.send("bob", sent[-1])
                await bob.send("ann", sent[-1])
            for node in (ann, bob):
                heard[node.name] += await get(node, 25)
            if turn < 2:  # with messages under way
                proxy.move("ann")
                seen.add(proxy.address("bob", "ann"))
        assert len(seen) == 3
        for node in (ann, bob):
            assert heard[node.name] + await get(node, 75) == sent
        assert told == {"ann": proxy.address("bob", "ann")}
        await ann.send("bob", b"and on")
        assert await get(bob, 1) == [b"and on"]
        watching.cancel()
    proxy.stop()


@pytest.mark.parametrize("loss", [0.0, 0.2])
@pytest.mark.parametrize("key", [None, bytes(range(32))])
def test_a_peer_that_moves_goes_on(key: bytes | None, loss: float) -> None:
    asyncio.run(asyncio.wait_for(moves(key, loss), PATIENCE))
