"""Permits wait for a message to travel with, where nobody waits for them, and nowhere else."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from causewire.node import Node
from causewire.testing.virtual import VirtualLoop, run
from causewire.transport import TransportConfig
from causewire.transport.frames import read
from causewire.transport.heads import HEAD, SESSION
from causewire.transport.patience import CALM

TRAVEL, FAR = 0.0002, 0.001
"""Seconds for a datagram; to and from the log it takes longer."""

DELAY = TransportConfig().ack_delay
PROTOCOLS = pytest.mark.parametrize("protocol", ["csps", "sps"])


class World:
    """A server that writes to a log before each of its messages, so that these are flagged."""

    def __init__(self, loop: VirtualLoop, nodes: dict[str, Node]) -> None:
        self.loop = loop
        self.nodes = nodes
        self.permits: list[float] = []
        """When datagrams with a permit and no message left the server."""
        self.lose = False
        """Whether datagrams from the client to the server are lost."""
        loop.network.fate = self.fate

    def fate(self, source: Any, to: Any, data: bytes) -> list[float]:
        address = {name: node.address for name, node in self.nodes.items()}
        if data[0] == SESSION and source == address["server"] and to == address["client"]:
            contents = read(data[HEAD.size : -4])
            if contents.permit and not contents.runs:
                self.permits.append(self.loop.now)
        if self.lose and (source, to) == (address["client"], address["server"]):
            return []
        return [FAR if address["log"] in (source, to) else TRAVEL]

    async def write(self) -> None:
        """Send a flagged message to the client, and have it received."""
        await self.nodes["server"].send("log", b"first")
        await self.nodes["server"].send("client", b"second")
        await self.nodes["client"].receive()

    async def ask(self, times: int) -> None:
        """Let the client send requests, each of which has a flagged reply."""
        for _ in range(times):
            await self.nodes["client"].send("server", b"?")
            await self.nodes["server"].receive()
            await self.write()

    async def pass_on(self) -> float:
        """Return how long a message from the client to carol takes."""
        begin = self.loop.now
        await self.nodes["client"].send("carol", b"third")
        await self.nodes["carol"].receive()
        return self.loop.now - begin


def play(protocol: str, script: Callable[[World], Awaitable[None]]) -> None:
    async def main(loop: VirtualLoop) -> None:
        nodes: dict[str, Node] = {}
        for k, name in enumerate(("server", "client", "log", "carol"), 1):
            sock: Any = loop.network.socket(k)
            nodes[name] = await Node(name, sock=sock, protocol=protocol).start()
        for name in ("client", "log"):
            await nodes["server"].add_peer(name, nodes[name].address)
        await nodes["client"].add_peer("carol", nodes["carol"].address)
        await nodes["client"].send("carol", b"hello")
        await nodes["carol"].receive()
        await asyncio.sleep(1)
        await script(World(loop, nodes))
        for node in nodes.values():
            await node.close(0.0)

    run(main)


@PROTOCOLS
def test_a_chain_does_not_become_slower(protocol: str) -> None:
    async def script(world: World) -> None:
        for _ in range(3 * CALM):
            begin = world.loop.now
            await world.write()
            await world.pass_on()
            # To the log and back, the permit, and the message.
            assert world.loop.now - begin == pytest.approx(2 * FAR + 2 * TRAVEL)

    play(protocol, script)


@PROTOCOLS
def test_permits_for_a_client_ride_on_its_replies(protocol: str) -> None:
    async def script(world: World) -> None:
        await world.ask(CALM + 1)
        world.permits.clear()
        for _ in range(30):
            await world.ask(1)
            await asyncio.sleep(0.4 * DELAY)
        assert not world.permits
        await asyncio.sleep(1)
        assert len(world.permits) == 1  # that of the last reply

    play(protocol, script)


@PROTOCOLS
def test_they_leave_alone_when_their_time_has_come(protocol: str) -> None:
    async def script(world: World) -> None:
        await world.ask(CALM + 1)
        await asyncio.sleep(1)
        world.permits.clear()
        await world.ask(1)
        granted = world.loop.now - TRAVEL + 2 * FAR
        await asyncio.sleep(1)
        (left,) = world.permits
        assert granted + DELAY / 2 < left < granted + DELAY + 1e-6
        assert await world.pass_on() == pytest.approx(TRAVEL)

    play(protocol, script)


@PROTOCOLS
def test_at_first_they_leave_at_once(protocol: str) -> None:
    async def script(world: World) -> None:
        await world.ask(1)
        granted = world.loop.now - TRAVEL + 2 * FAR
        await asyncio.sleep(1)
        assert world.permits == pytest.approx([granted])

    play(protocol, script)


@PROTOCOLS
def test_who_ceases_to_be_patient_waits_for_a_round_trip_once(protocol: str) -> None:
    async def script(world: World) -> None:
        await world.ask(CALM + 1)
        took = []
        for _ in range(3):
            await world.ask(1)
            await asyncio.sleep(0.4 * DELAY)  # the permit has been granted
            took.append(await world.pass_on())
        assert took == pytest.approx([3 * TRAVEL, TRAVEL, TRAVEL])

    play(protocol, script)


@PROTOCOLS
def test_its_word_is_not_needed(protocol: str) -> None:
    async def script(world: World) -> None:
        await world.ask(CALM + 1)
        begin = world.loop.now
        await world.ask(1)
        await asyncio.sleep(0.4 * DELAY)
        world.lose = True
        await world.pass_on()
        took = world.loop.now - begin
        assert DELAY < took < 3 * TRAVEL + 2 * FAR + DELAY + 1e-6

    play(protocol, script)
