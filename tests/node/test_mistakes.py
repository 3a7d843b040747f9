"""Mistakes of a user: each is one error that says what to do, raised where it was made."""

from __future__ import annotations

import asyncio
import socket
from typing import Any

import pytest

from causewire import blocking
from causewire.node import Closed, Node, NodeError, PeerGone, PeerSilent, UnknownPeer
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


@NODES
@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"drain": "x"}, "drain is a number of seconds from 0, not 'x'"),
        ({"drain": -1}, "drain is a number of seconds from 0, not -1"),
        ({"drain": None}, "drain is a number of seconds from 0, not None"),
        ({"give_up_after": "1"}, "give_up_after is a number of seconds above 0, not '1'"),
        ({"give_up_after": {"bob": "1"}}, "give_up_after is a number of seconds above 0, not '1'"),
        ({"give_up_after": 0}, "give_up_after must be above 0, not 0"),
        ({"listen": ("127.0.0.1", "80")}, r"a pair \(host, port\), not \('127.0.0.1', '80'\)"),
        ({"listen": ("127.0.0.1",)}, r"a pair \(host, port\), not \('127.0.0.1',\)"),
        ({"peers": {"bob": (1, 80)}}, r"a pair \(host, port\), not \(1, 80\)"),
        ({"peers": {"bob": ("h", 80000)}}, "a port is a number up to 65535, not 80000"),
        ({"sock": 5}, "sock is a datagram socket that is bound to an address, not 5"),
    ],
)
def test_arguments_are_looked_at_when_a_node_is_created(
    kind: Any, settings: dict[str, Any], message: str
) -> None:
    with pytest.raises(ValueError, match=message) as error:
        kind("alice", **settings)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("kind", "bound"), [(socket.SOCK_STREAM, True), (socket.SOCK_DGRAM, False)]
)
def test_a_socket_that_a_node_cannot_use(kind: socket.SocketKind, bound: bool) -> None:
    with socket.socket(socket.AF_INET, kind) as sock:
        if bound:
            sock.bind(("127.0.0.1", 0))
        with pytest.raises(ValueError, match="sock is a datagram socket that is bound"):
            Node("alice", sock=sock)


def test_a_socket_that_blocks_does_not_block_the_loop() -> None:
    async def main() -> None:
        sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        sock.bind(("127.0.0.1", 0))
        async with Node("bob", sock=sock) as bob, Node("al", peers={"bob": bob.address}) as al:
            await al.send("bob", b"x")
            assert (await bob.receive(5)).payload == b"x"

    asyncio.run(main())


def test_a_node_that_is_closed() -> None:
    async def main(loop: VirtualLoop) -> None:
        sock: Any = loop.network.socket(1)
        node = Node("alice", sock=sock)
        await node.add_peer("bob", "127.0.0.1:2")
        with pytest.raises(ValueError, match="an address is written as host:port"):
            await node.add_peer("bob", "nowhere")
        await node.start()
        await node.close(0)
        assert [event async for event in node.events()] == []
        with pytest.raises(Closed, match="alice is not running"):
            await node.add_peer("bob", "127.0.0.1:2")
        never = Node("carol")
        await never.close()
        assert [event async for event in never.events()] == []

    run(main)


@pytest.mark.parametrize("how", ["send", "send_nowait", "wait_for_peer", "ttl", "receive"])
def test_another_thread_or_loop(how: str) -> None:
    """A call from a loop on which the node does not run is refused, and has no effect."""

    async def call(node: Node) -> None:
        if how == "receive":
            await node.receive()
        elif how == "send_nowait":
            node.send_nowait("alice", b"x")
        elif how == "send":
            await node.send("alice", b"x")
        else:
            await node.send("alice", b"x", **{how: 9})  # type: ignore[arg-type]

    async def main() -> None:
        async with Node("alice") as node:
            await asyncio.sleep(0)  # the turn that `start` has asked for ends
            for there in (lambda: asyncio.run(call(node)), lambda: node.send_nowait("alice", b"")):
                with pytest.raises(NodeError, match="alice runs on another event loop"):
                    await asyncio.to_thread(there)
            with pytest.raises(TimeoutError):
                await node.receive(0.01)
            await node.send("alice", b"y")
            assert (await node.receive()).payload == b"y"

    asyncio.run(main())
