"""A node with `adaptive` goes on without a process, and with its next incarnation."""

from __future__ import annotations

import asyncio

import pytest

from causewire.node import DeliveryFailed, Node


def test_a_process_is_given_up_and_comes_back() -> None:
    async def main() -> None:
        async with (
            Node("ann", protocol="adaptive", give_up_after=20.0) as ann,
            Node("bob", protocol="adaptive", give_up_after=20.0) as bob,
        ):
            await ann.add_peer("bob", bob.address)
            await ann.add_peer("cat", "127.0.0.1:9")  # nobody listens there
            lost = await ann.send("cat", b"lost")
            await (await ann.send("bob", b"after it")).delivered()
            await bob.add_peer("cat", "127.0.0.1:9")
            await ann.forget("cat")
            with pytest.raises(DeliveryFailed):
                await lost.delivered()
            for life in range(2):
                async with Node("cat", protocol="adaptive", give_up_after=20.0) as cat:
                    for node in (ann, bob):
                        await node.add_peer("cat", cat.address)
                        await cat.add_peer(node.name, node.address)
                    await (await cat.send(["ann", "bob"], b"hello")).delivered()
                    await (await ann.send(["bob", "cat"], b"welcome")).delivered()
                    await (await bob.send("cat", b"you are back")).delivered()
                    got = [await cat.receive() for _ in range(2)]
                    assert [message.payload for message in got] == [b"welcome", b"you are back"]
                    assert [message.source for message in got] == ["ann", "bob"]
                    message = await ann.receive()
                    assert (message.source, message.payload) == ("cat", b"hello"), life

    asyncio.run(asyncio.wait_for(main(), 30))
