"""One link is dead for good, and all processes are alive: everybody goes on."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from causewire.testing.virtual import VirtualLoop, run
from causewire.transport import NodeSuperseded, PeerForgotten

from .test_node import node, watch

NAMES = ("alice", "bob", "carol")


@pytest.mark.parametrize("protocol", ["csps", "adaptive"])
def test_everybody_goes_on_around_a_dead_link(protocol: str) -> None:
    """alice and bob cannot reach each other; each of them talks with carol."""

    async def main(loop: VirtualLoop) -> None:
        settings: dict[str, Any] = {"protocol": protocol, "give_up_after": 2.0, "rejoin": True}
        nodes = {name: await node(loop, name, **settings).start() for name in NAMES}
        alice, bob, carol = nodes.values()
        for each in nodes.values():
            others = [name for name in nodes if name != each.name]
            await (await each.send(others, b"hello")).delivered()
        seen = {name: watch(each) for name, each in nodes.items()}
        ports = {each.address[1] for each in (alice, bob)}
        loop.network.fate = lambda source, to, data: [] if {source[1], to[1]} == ports else [0.001]
        lost = await alice.send("bob", b"lost")
        await alice.send("carol", b"held up at first")
        await asyncio.sleep(10)
        assert lost.failed == ("bob",)
        told = {name: {type(event) for event in seen[name]} for name in nodes}
        # One of the two gives the other up, who learns of it from carol and comes back.
        assert {PeerForgotten, NodeSuperseded} <= told["alice"] | told["bob"]
        assert NodeSuperseded not in told["carol"]
        for each in (alice, bob):  # and from now on there is no more delay
            before = loop.now
            await (await each.send("carol", b"on we go")).delivered()
            await (await carol.send(each.name, b"yes")).delivered()
            assert loop.now - before < 0.5
        for each in nodes.values():
            await each.close(0)

    run(main)
