"""Nodes with and without a store under `adaptive`: what depends on what, across crashes."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from causewire.core.adaptive import Adaptive
from causewire.node import Node
from causewire.testing.disk import Disk
from causewire.testing.virtual import VirtualLoop, run

from .test_store import kill, node

PORTS = {"a": 1, "b": 2, "c": 3}


class Three:
    """Three nodes; those with a disk can crash, and ways between them can be cut."""

    def __init__(self, loop: VirtualLoop, durable: str, cap: int | None) -> None:
        self.loop = loop
        self.disks = {name: Disk() for name in durable}
        self.cap = cap
        self.cut: set[tuple[int, int]] = set()
        self.nodes: dict[str, Node] = {}
        loop.network.fate = self.fate

    def fate(self, source: Any, to: Any, data: bytes) -> list[float]:
        return [] if (source[1], to[1]) in self.cut else [0.001]

    async def start(self, name: str) -> Node:
        self.nodes[name] = await node(
            self.loop,
            name,
            PORTS[name],
            self.disks.get(name),
            peers={p: ("127.0.0.1", k) for p, k in PORTS.items() if p != name},
            protocol="adaptive",
            protocol_options={} if self.cap is None else {"cap": self.cap},
        ).start()
        return self.nodes[name]

    async def crash(self, name: str, snapshot: bool) -> None:
        """Crash a node, and start it again a while later."""
        victim = self.nodes[name]
        if snapshot:
            assert victim._transport.journal is not None
            assert victim._bridge is not None
            victim._transport.journal.snapshot_due = True
            victim._bridge.soon()
            await asyncio.sleep(0.5)
            assert self.disks[name].snapshot
        kill(victim)
        await asyncio.sleep(0.2)
        await self.start(name)

    def endpoint(self, name: str) -> Adaptive:
        endpoint = self.nodes[name]._transport._carrier.endpoint  # type: ignore[attr-defined]
        assert isinstance(endpoint, Adaptive)
        return endpoint

    async def at_rest(self) -> None:
        """Wait, then assert that nothing is remembered of what is delivered."""
        await asyncio.sleep(5)
        for name in self.nodes:
            endpoint = self.endpoint(name)
            assert not list(endpoint._past)
            assert not list(endpoint._past.owed())
            assert not endpoint.held_back
            for peer in endpoint._peers.values():
                assert not any((peer.lane, peer.sent, peer.parts, peer.news, peer.unseen))

    async def close(self) -> None:
        for each in self.nodes.values():
            await each.close(0.0, leave=True)


async def expect(receiver: Node, *payloads: bytes) -> None:
    """Assert that these messages come next."""
    for payload in payloads:
        assert (await receiver.receive(timeout=30)).payload == payload
    if receiver._gate is not None:
        await receiver.done()


@pytest.mark.parametrize("snapshot", [False, True])
@pytest.mark.parametrize("cap", [None, 0, 1])
@pytest.mark.parametrize("crashing", ["b", "c", "bc", "cb", "bb", "abc"])
def test_an_effect_does_not_overtake_its_cause(
    crashing: str, cap: int | None, snapshot: bool
) -> None:
    """c holds a message of b for one of a, which is under way, and has neither when it crashes."""

    async def main(loop: VirtualLoop) -> None:
        world = Three(loop, "".join(sorted({*crashing})), cap)
        for name in PORTS:
            await world.start(name)
        for name, each in world.nodes.items():
            await each.send([p for p in PORTS if p != name], name.encode())
        await asyncio.sleep(1)
        for each in world.nodes.values():
            assert len({(await each.receive()).payload for _ in range(2)}) == 2
            if each._gate is not None:
                await each.done()
        world.cut = {(1, 3), (3, 1)}
        await world.nodes["a"].send("c", b"cause")
        await world.nodes["a"].send("b", b"go")
        await expect(world.nodes["b"], b"go")
        await world.nodes["b"].send("c", b"effect")
        await asyncio.sleep(1)
        assert world.endpoint("c").held_back == 1
        for name in crashing:
            await world.crash(name, snapshot)
            await asyncio.sleep(0.3)
        await asyncio.sleep(1)
        assert world.endpoint("c").held_back == 1
        assert not world.nodes["c"]._messages
        world.cut.clear()
        await expect(world.nodes["c"], b"cause", b"effect")
        await world.nodes["c"].send(["a", "b"], b"end")
        await expect(world.nodes["a"], b"end")
        await expect(world.nodes["b"], b"end")
        await world.at_rest()
        await world.close()

    run(main)


@pytest.mark.parametrize("snapshot", [False, True])
@pytest.mark.parametrize("cap", [None, 0])
@pytest.mark.parametrize("comes", [True, False])
def test_a_message_to_somebody_who_was_not_met(
    comes: bool, cap: int | None, snapshot: bool
) -> None:
    """a crashes after it has sent to b, which it has not met, and then to c."""

    async def main(loop: VirtualLoop) -> None:
        world = Three(loop, "a", cap)
        a, c = await world.start("a"), await world.start("c")
        await a.send("b", b"cause")
        await a.send("c", b"go")
        await expect(c, b"go")
        await c.send("b", b"effect")
        await asyncio.sleep(0.5)
        await world.crash("a", snapshot)
        world.cut = {(1, 2), (2, 1)}
        b = await world.start("b")
        await asyncio.sleep(1)
        assert world.endpoint("b").held_back == 1
        if comes:
            world.cut.clear()
            await expect(b, b"cause", b"effect")
        else:
            await world.nodes["a"].forget("b")
            await expect(b, b"effect")
        await world.at_rest()
        await world.close()

    run(main)
