"""Mistakes of a user: each is one error that says what to do, raised where it was made."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from causewire import blocking
from causewire.node import Node, PeerGone, PeerSilent, UnknownPeer
from causewire.testing.virtual import VirtualLoop, run

NODES = pytest.mark.parametrize("kind", [Node, blocking.Node])


@NODES
@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"listen": 9000}, "an address is written as host:port, not 9000"),
        ({"listen": "here"}, "an address is written as host:port, not 'here'"),
        ({"peers": {"bob": "localhost"}}, "an address is written as host:port, not 'localhost'"),
        ({"peers": ["bob@127.0.0.1:9"]}, "peers is a mapping from names to addresses, not a list"),
    ],
)
def test_addresses_are_looked_at_when_a_node_is_created(
    kind: Any, settings: dict[str, Any], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        kind("alice", **settings)


def test_a_peer_that_nobody_named() -> None:
    async def main(loop: VirtualLoop) -> None:
        sock: Any = loop.network.socket(1)
        async with Node("alice", sock=sock) as alice:
            with pytest.raises(UnknownPeer, match=r"zed.*peers.*add_peer.*resolver") as error:
                await alice.send("zed", b"x")
            assert error.value.names == ("zed",)

    run(main)


def test_a_peer_that_left() -> None:
    assert str(PeerGone(["ann", "bob"])) == "ann, bob: left, or given up"


def test_silence_is_counted_from_the_last_sign_of_life() -> None:
    async def main(loop: VirtualLoop) -> None:
        socks: list[Any] = [loop.network.socket(port) for port in (1, 2)]
        bob = Node("bob", sock=socks[1])
        await bob.start()
        async with Node("alice", sock=socks[0], peers={"bob": "127.0.0.1:2"}) as alice:
            await (await alice.send("bob", b"x")).delivered()
            loop.network.fate = lambda source, to, data: []
            events = alice.events()
            while not isinstance(event := await anext(events), PeerSilent):
                pass
            assert event.seconds >= 3.0
            await alice.forget("bob")
        await bob.close()

    run(main)


def test_there_is_no_tcp_in_virtual_time() -> None:
    async def main(_: VirtualLoop) -> None:
        with pytest.raises(NotImplementedError, match="no TCP in virtual time"):
            await asyncio.start_server(lambda reader, writer: None, "127.0.0.1", 0)

    run(main)
