"""Addresses of another IP family are reported, with the reason."""

from __future__ import annotations

import asyncio

from causewire.node import PeerRefused, PeerUp
from causewire.testing.virtual import VirtualLoop, run

from .test_node import node, watch


def test_an_address_of_another_family_is_an_event_with_its_reason() -> None:
    async def main(loop: VirtualLoop) -> None:
        async with node(loop, "alice", peers={}) as alice, node(loop, "bob", peers={}) as bob:
            seen = watch(alice)
            await asyncio.sleep(0)
            await alice.add_peer("bob", "[::1]:2")
            await alice.add_peer("bob", "[::1]:2")
            receipt = await alice.send("bob", b"x")
            await asyncio.sleep(0.5)
            reason = "its address ::1 is IPv6, and this node listens on 127.0.0.1, IPv4"
            assert seen == [PeerRefused("bob", reason)]
            (why,) = alice.blocked()
            assert str(why).endswith(f"bob was refused: {reason}")
            await alice.add_peer("bob", bob.address)
            await receipt.delivered()
            assert seen[1:] == [PeerUp("bob")]

    run(main)
