"""A process that was given up: what becomes of what it had sent. In virtual time."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from causewire import blocking
from causewire.node import DeliveryFailed, PeerForgotten, Superseded
from causewire.testing.virtual import VirtualLoop, run

from .test_failure import isolate
from .test_node import node, watch


def from_bob(loop: VirtualLoop, arrives: bool) -> None:
    """Have everything that bob sends arrive, or be lost."""
    loop.network.fate = lambda source, *_: [0.001] if arrives or source[1] != 2 else []


@pytest.mark.parametrize("what", ["delivered", "handled"])
@pytest.mark.parametrize("protocol", ["adaptive", "csps", "ks"])
@pytest.mark.parametrize("asked", ["before", "after"])
def test_a_receipt_fails_without_rejoining(what: str, protocol: str, asked: str) -> None:
    async def main(loop: VirtualLoop) -> None:
        settings: dict[str, Any] = {"protocol": protocol, "reports_handled": True}
        async with node(loop, "alice", **settings) as alice, node(loop, "bob", **settings) as bob:
            await (await bob.send("alice", b"x")).delivered()
            from_bob(loop, arrives=False)
            receipt = await bob.send("alice", b"y")
            waiting = asyncio.create_task(getattr(receipt, what)())
            if asked == "before":
                await asyncio.sleep(0)
            await alice.forget("bob")
            from_bob(loop, arrives=True)
            await asyncio.sleep(10)
            with pytest.raises(Superseded):
                await bob.send("alice", b"z")
            if asked == "after":
                waiting.cancel()
                waiting = asyncio.create_task(getattr(receipt, what)())
            with pytest.raises(DeliveryFailed, match="alice"):
                await asyncio.wait_for(waiting, 1)

    run(main)


def test_a_receipt_fails_in_a_blocking_node() -> None:
    settings: dict[str, Any] = {"drain": 0.0, "reports_handled": True}
    with (
        blocking.Node("alice", **settings) as alice,
        blocking.Node("bob", peers={"alice": alice.address}, **settings) as bob,
    ):
        bob.send("alice", b"x").delivered(10)
        receipt = bob.send("alice", b"y")
        alice.forget("bob")
        with pytest.raises(DeliveryFailed):
            receipt.handled(10)  # alice has not handled it


def test_others_than_those_named_are_given_up_after_the_default() -> None:
    async def main(loop: VirtualLoop) -> None:
        async with node(loop, "alice", give_up_after={"carol": 5.0}) as alice:
            seen = watch(alice)
            async with node(loop, "bob"), node(loop, "carol"):
                await (await alice.send(["bob", "carol"], b"x")).delivered()
                gone = ["carol", "bob"]
                for port, name, seconds in ((3, "carol", 5), (2, "bob", 30)):
                    isolate(loop, port)
                    await alice.send(name, b"y")
                    await asyncio.sleep(seconds - 1)
                    assert not [e for e in seen if isinstance(e, PeerForgotten) and e.name == name]
                    await asyncio.sleep(2)
                assert [e.name for e in seen if isinstance(e, PeerForgotten)] == gone

    run(main)


def test_who_rejoins_does_not_look_for_strangers_nor_for_ever_for_who_called_it() -> None:
    """alice was named by nobody; carol has called bob and dies, a stranger was refused by him."""

    async def main(loop: VirtualLoop) -> None:
        settings: dict[str, Any] = {"peers": {}, "give_up_after": 10.0}
        bob = await node(loop, "bob", rejoin=True, **settings).start()
        caller: dict[str, Any] = {"peers": {"bob": bob.address}}
        async with node(loop, "alice", protocol="fifo", **caller):
            await asyncio.sleep(2)  # it is refused
        carol = await node(loop, "carol", **caller).start()
        await (await carol.send("bob", b"x")).delivered()
        isolate(loop, 3)
        bob._transport.me.superseded = bob.incarnation + 1
        await bob.rejoin()
        await asyncio.sleep(5)
        assert [reason.peer for reason in bob.blocked()] in ([], ["carol"])
        await asyncio.sleep(10)
        assert bob.blocked() == []
        await asyncio.sleep(70)
        assert not bob._transport.status().peers
        loop.network.fate = lambda *_: [0.001]
        await asyncio.sleep(20)  # carol was alive all the time, and calls again
        assert bob.peers_up() == ["carol"]
        await carol.close(0)
        await bob.close(0)

    run(main)
