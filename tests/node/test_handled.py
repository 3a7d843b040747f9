"""Receipts of the second level: the receiver's application has handled the message."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from random import Random
from typing import Any

import pytest

from causewire import blocking
from causewire.node import (
    DeliveryFailed,
    Event,
    Message,
    Node,
    NodeError,
    PeerForgotten,
    PeerLeft,
    PeerRestarted,
    Receipt,
)
from causewire.testing.virtual import VirtualLoop, run

from .test_node import node, watch


def play(scene: Callable[[VirtualLoop, Node, Node], Coroutine[Any, Any, None]]) -> None:
    """Play a scene of `alice`, who sends, and `bob`, who reports what he has handled."""

    async def main(loop: VirtualLoop) -> None:
        async with (
            node(loop, "alice", give_up_after=5.0) as alice,
            node(loop, "bob", reports_handled=True, rejoin=True) as bob,
        ):
            await scene(loop, alice, bob)

    run(main)


async def fails(receipt: Receipt) -> None:
    """Expect that a message arrived, and that its handling fails."""
    await receipt.delivered()
    with pytest.raises(DeliveryFailed, match="not known to have been handled by bob") as failed:
        await receipt.handled()
    assert failed.value.what == "handled"


def test_a_message_is_handled_when_the_application_says_so() -> None:
    async def scene(loop: VirtualLoop, alice: Node, bob: Node) -> None:
        receipt = await alice.send("bob", b"work")
        handled = asyncio.create_task(receipt.handled())
        await receipt.delivered()
        message = await bob.receive()
        await asyncio.sleep(10)
        assert not handled.done()
        async with message:
            await asyncio.sleep(1)
            assert not handled.done()
        await asyncio.sleep(0.1)
        assert handled.done()
        message.done()  # twice does no harm
        await receipt.handled()

    play(scene)


def test_an_exception_leaves_it_unhandled() -> None:
    async def scene(loop: VirtualLoop, alice: Node, bob: Node) -> None:
        receipt = await alice.send("bob", b"work")
        with pytest.raises(ZeroDivisionError):
            async with await bob.receive():
                raise ZeroDivisionError
        await asyncio.sleep(1)
        await bob.close()
        await fails(receipt)

    play(scene)


def test_in_any_order_through_a_bad_network() -> None:
    async def scene(loop: VirtualLoop, alice: Node, bob: Node) -> None:
        random = Random(1)
        loop.network.fate = lambda *_: (
            [random.uniform(0.001, 0.02)] if random.random() < 0.7 else []
        )
        receipts = [await alice.send("bob", b"%d" % k) for k in range(60)]
        messages: list[Message] = [await bob.receive() for _ in receipts]
        random.shuffle(messages)
        left = set(range(60))
        while messages:
            message = messages.pop()
            message.done()
            left.discard(int(message.payload))
            if len(messages) % 20 == 0:
                for k in sorted(set(range(60)) - left):
                    await receipts[k].handled()
                assert all(receipts[k].unhandled() for k in left)

    play(scene)


@pytest.mark.parametrize("how", ["left", "died", "forgotten"])
def test_what_is_not_handled_before_the_end_has_failed(how: str) -> None:
    async def scene(loop: VirtualLoop, alice: Node, bob: Node) -> None:
        first, second = [await alice.send("bob", text) for text in (b"1", b"2")]
        (await bob.receive()).done()
        await bob.receive()  # and then something happens
        await first.handled()
        waiting = asyncio.create_task(fails(second))
        await asyncio.sleep(0.1)
        if how == "left":
            await bob.close()
        elif how == "died":
            loop.network.fate = lambda *_: []
        else:
            await alice.forget("bob")
        await waiting
        await first.handled()  # stays true

    play(scene)


def test_who_handles_and_leaves_at_once_is_believed() -> None:
    async def scene(loop: VirtualLoop, alice: Node, bob: Node) -> None:
        receipt = await alice.send("bob", b"work")
        (await bob.receive()).done()
        await bob.close()
        await receipt.handled()

    play(scene)


def test_after_the_sender_has_closed_nothing_more_is_known() -> None:
    async def scene(loop: VirtualLoop, alice: Node, bob: Node) -> None:
        receipt = await alice.send("bob", b"work")
        waiting = asyncio.create_task(fails(receipt))
        await asyncio.sleep(0.1)
        await alice.close()
        await waiting
        await fails(receipt)

    play(scene)


def test_a_receiver_that_does_not_report_is_an_error() -> None:
    async def main(loop: VirtualLoop) -> None:
        async with node(loop, "alice") as alice:
            receipt = await alice.send("bob", b"early")
            waiting = asyncio.create_task(receipt.handled())
            await asyncio.sleep(1)
            async with node(loop, "bob"):
                with pytest.raises(NodeError, match="reports_handled=True"):
                    await waiting
                await receipt.delivered()

    run(main)


def test_a_group_protocol_reports_as_well() -> None:
    async def main(loop: VirtualLoop) -> None:
        settings: dict[str, Any] = {"protocol": "ks", "reports_handled": True}
        async with node(loop, "alice", **settings) as alice, node(loop, "bob", **settings) as bob:
            receipts = [await alice.send("bob", b"%d" % k) for k in range(3)]
            messages = [await bob.receive() for _ in receipts]
            messages[1].done()
            await receipts[1].handled()
            assert receipts[0].unhandled()
            assert receipts[2].unhandled()

    run(main)


def test_the_blocking_node_does_the_same() -> None:
    with (
        blocking.Node("bob", reports_handled=True) as bob,
        blocking.Node("alice", peers={"bob": bob.address}) as alice,
    ):
        receipt = alice.send("bob", b"work")
        with bob.receive(10):
            receipt.delivered(10)
            with pytest.raises(TimeoutError):
                receipt.handled(0.05)
        receipt.handled(10)
        lost = alice.send("bob", b"more work")
        lost.delivered(10)
        bob.close()
        with pytest.raises(DeliveryFailed, match="handled"):
            lost.handled(10)


@pytest.mark.parametrize("how", ["leaves", "restarts", "is forgotten"])
def test_the_end_of_a_peer_says_how_many_messages_its_application_has_not_handled(
    how: str, caplog: pytest.LogCaptureFixture
) -> None:
    async def main(loop: VirtualLoop) -> None:
        reports: dict[str, Any] = {"peers": {}, "reports_handled": True}
        async with node(loop, "alice", give_up_after=5.0) as alice:
            bob = await node(loop, "bob", **reports).start()
            seen = watch(alice)
            await alice.send("carol", b"so that numbers do not begin at 1")
            for _ in range(5):
                await (await alice.send("bob", b"x")).delivered()
            (await bob.receive()).done()
            await bob.receive()  # and does not say that it is done
            (await bob.receive()).done()
            await asyncio.sleep(1)
            if how == "leaves":
                await bob.close()
                event: Event = PeerLeft("bob", 0, 3)
            elif how == "restarts":
                loop.network.sockets[("127.0.0.1", 2)].callback = None
                async with node(loop, "bob", 1, **reports):
                    await asyncio.sleep(1)
                event = PeerRestarted("bob", 0, 3)
            else:
                await alice.forget("bob")
                event = PeerForgotten("bob", 0, "", 3)
            await asyncio.sleep(1)
            assert event in seen

    with caplog.at_level(logging.INFO, "causewire.peers"):
        run(main)
    assert "at most 3 messages that arrived are not known to have been handled" in caplog.text


def test_of_a_peer_that_does_not_report_it_is_not_known_what_it_has_handled() -> None:
    async def main(loop: VirtualLoop) -> None:
        async with node(loop, "alice") as alice:
            bob = await node(loop, "bob").start()
            seen = watch(alice)
            await (await alice.send("bob", b"x")).delivered()
            await bob.close()
            await asyncio.sleep(1)
            (left,) = [event for event in seen if isinstance(event, PeerLeft)]
            assert left.unhandled is None

    run(main)
