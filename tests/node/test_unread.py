"""A stage of a pipeline whose application is stuck, and stages that do without it."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from causewire import blocking
from causewire.node import (
    DeliveryFailed,
    Node,
    NodeRejoined,
    NodeSuperseded,
    NodeUnread,
    PeerForgotten,
    PeerGone,
    PeerUp,
    Superseded,
    TransportConfig,
)
from causewire.testing.virtual import VirtualLoop, run

from .test_node import node, watch


def test_the_others_do_without_a_process_that_does_not_read() -> None:
    async def main(loop: VirtualLoop) -> None:
        async with (
            node(loop, "alice") as alice,
            node(loop, "bob", read_within=3.0, rejoin=True) as bob,
            node(loop, "carol") as carol,
        ):
            await (await alice.send("bob", b"unread")).delivered()
            seen, told = watch(alice), watch(bob)
            await asyncio.sleep(4.0)
            assert PeerForgotten("bob", 0, "its application has stopped reading") in seen
            assert [type(event) for event in told] == [NodeUnread, NodeSuperseded]
            with pytest.raises(PeerGone):
                await alice.send("bob", b"x")
            with pytest.raises(Superseded):
                await bob.send("alice", b"x")
            await alice.send("carol", b"past bob")
            assert (await carol.receive(1)).payload == b"past bob"
            # It stays away as long as its application does not read, then it comes back.
            await asyncio.sleep(60.0)
            assert not any(isinstance(event, PeerUp) for event in seen)
            assert (await bob.receive(1)).payload == b"unread"
            reading = asyncio.create_task(bob.receive(10))
            await asyncio.sleep(1.0)
            assert NodeRejoined in map(type, told)
            assert any(isinstance(event, PeerUp) for event in seen)
            await (await alice.send("bob", b"welcome")).delivered()
            assert (await reading).payload == b"welcome"

    run(main)


def test_without_rejoin_the_application_learns_it_after_the_last_message() -> None:
    async def main(loop: VirtualLoop) -> None:
        async with (
            node(loop, "alice") as alice,
            node(loop, "bob", read_within=3.0, config=TransportConfig(queue_messages=2)) as bob,
        ):
            receipts = [await alice.send("bob", b"%d" % number) for number in range(3)]
            await receipts[1].delivered()
            await asyncio.sleep(4.0)
            with pytest.raises(DeliveryFailed, match="bob"):
                await receipts[2].delivered()
            assert [(await bob.receive()).payload for _ in range(2)] == [b"0", b"1"]
            assert (await bob.receive()).payload == b"2"  # it had arrived, and waited for room
            with pytest.raises(Superseded):
                await bob.receive()
            await bob.rejoin()
            await asyncio.sleep(1.0)
            await (await alice.send("bob", b"again")).delivered()
            assert (await bob.receive(1)).payload == b"again"

    run(main)


def test_a_node_that_reads_keeps_its_incarnation() -> None:
    async def main(loop: VirtualLoop) -> None:
        async with (
            node(loop, "alice") as alice,
            node(loop, "bob", read_within=3.0, rejoin=True) as bob,
        ):
            incarnation = bob.incarnation
            for number in range(20):
                await alice.send("bob", b"%d" % number)
                await asyncio.sleep(1.0)
                if number % 2:  # it falls behind
                    assert (await bob.receive()).payload == b"%d" % (number // 2)
            assert bob.incarnation == incarnation

    run(main)


@pytest.mark.slow
def test_a_node_with_a_store_stands_down_as_well(tmp_path: Path) -> None:
    async def main() -> None:
        async with (
            Node("bob", store=tmp_path / "bob", read_within=0.2, rejoin=True) as bob,
            Node("alice", peers={"bob": bob.address}) as alice,
        ):
            await (await alice.send("bob", b"in hand")).delivered()
            assert (await bob.receive()).payload == b"in hand"
            incarnation = bob.incarnation
            await asyncio.sleep(0.5)  # a long piece of work, and nothing to read meanwhile
            assert bob.incarnation == incarnation
            events = aiter(alice.events())
            await (await alice.send("bob", b"unread")).delivered()
            while not isinstance(await anext(events), PeerForgotten):
                pass
            assert (await bob.receive()).payload == b"unread"
            reading = asyncio.create_task(bob.receive())
            while not isinstance(await anext(events), PeerUp):
                pass
            await (await alice.send("bob", b"welcome")).delivered()
            assert (await reading).payload == b"welcome"
            assert bob.incarnation > incarnation

    asyncio.run(main())


@pytest.mark.slow
def test_a_blocking_node_stands_down_and_comes_back() -> None:
    with (
        blocking.Node("bob", read_within=0.2, rejoin=True) as bob,
        blocking.Node("alice", peers={"bob": bob.address}) as alice,
    ):
        events = alice.events()
        alice.send("bob", b"unread").delivered(30)
        while not isinstance(event := next(events), PeerForgotten):
            assert isinstance(event, PeerUp)
        assert bob.receive(30).payload == b"unread"
        with pytest.raises(TimeoutError):
            bob.receive(0.01)  # the application reads again
        while not isinstance(next(events), PeerUp):
            pass
        alice.send("bob", b"welcome").delivered(30)
        assert bob.receive(30).payload == b"welcome"
