"""Messages that are cancelled, or expire, before they have left.

What is promised: after `cancel` has returned True, nobody delivers the message; all others are
delivered as if nothing had been cancelled, in causal order.
"""

from __future__ import annotations

import asyncio
import json
from random import Random
from typing import Any

import pytest

from causewire import blocking
from causewire.node import (
    Closed,
    DeliveryFailed,
    MessageCancelled,
    MessageExpired,
    Node,
    NodeError,
    TransportConfig,
)
from causewire.testing.virtual import VirtualLoop, run

NAMES = ["a", "b", "c", "d"]
PROTOCOLS = ["csps", "sps", "fifo", "adaptive"]


def node(loop: VirtualLoop, name: str, **more: Any) -> Node:
    """A node that knows the others, and gives nobody up."""
    peers = {n: ("127.0.0.1", k) for k, n in enumerate(NAMES, 1) if n != name}
    sock: Any = loop.network.socket(NAMES.index(name) + 1)
    settings: dict[str, Any] = {"give_up_after": None, "drain": 1.0, "peers": peers} | more
    return Node(name, sock=sock, **settings)


async def take(one: Node, count: int) -> list[bytes]:
    return [(await one.receive(60)).payload for _ in range(count)]


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_while_the_receiver_is_not_there(protocol: str) -> None:
    async def main(loop: VirtualLoop) -> None:
        async with node(loop, "a", protocol=protocol) as a:
            receipts = [await a.send("b", b"%d" % k) for k in range(5)]
            await asyncio.sleep(1)
            long = await a.send("b", bytes(50_000))
            assert [receipts[k].cancel() for k in (0, 2, 4)] == [True] * 3
            assert long.cancel()
            assert receipts[2].cancel(), "it is cancelled already"
            assert receipts[2].missing == ()
            assert repr(receipts[2]) == "<Receipt 3: cancelled>"
            await a.send("b", b"")
            async with node(loop, "b", protocol=protocol) as b:
                assert await take(b, 3) == [b"1", b"3", b""]
                await receipts[3].delivered()
                assert not receipts[3].cancel(), "it was delivered"
                assert receipts[3].withdrawn == ""
                with pytest.raises(MessageCancelled, match="message 3 to b was cancelled"):
                    await receipts[2].delivered()
                await asyncio.sleep(1)
                assert a.idle
                assert b.stats()["delivered"] == 3

    run(main)


@pytest.mark.parametrize(
    ("protocol", "options"), [("csps", {}), ("sps", {}), ("adaptive", {"cap": 0})]
)
def test_while_the_protocol_holds_it_back(protocol: str, options: dict[str, Any]) -> None:
    """Under csps and sps, b's messages to c wait for a's permit, which waits for d."""
    both: Any = {"protocol": protocol, "protocol_options": options}

    async def main(loop: VirtualLoop) -> None:
        async with (
            node(loop, "a", **both) as a,
            node(loop, "b", **both) as b,
            node(loop, "c", **both) as c,
        ):
            warm = await b.send("c", b"hello")
            await warm.delivered()
            assert await take(c, 1) == [b"hello"]
            await a.send("d", b"first")
            await a.send("b", b"second")
            assert await take(b, 1) == [b"second"]
            mine = [await b.send("c", b"%d" % k) for k in range(3)]
            if protocol != "adaptive":
                await asyncio.sleep(1)
            assert mine[1].cancel()
            async with node(loop, "d", **both) as d:
                assert await take(d, 1) == [b"first"]
                assert await take(c, 2) == [b"0", b"2"]

    run(main)


def test_a_waiter_learns_it_at_once() -> None:
    async def main(loop: VirtualLoop) -> None:
        async with node(loop, "a", reports_handled=True) as a:
            receipt = await a.send(["b", "c"], b"x")
            waiting = [
                asyncio.ensure_future(receipt.delivered()),
                asyncio.ensure_future(receipt.handled()),
            ]
            await asyncio.sleep(0)
            start = loop.time()
            assert receipt.cancel()
            for one in waiting:
                with pytest.raises(MessageCancelled) as error:
                    await one
                assert error.value.names == ("b", "c")
            assert loop.time() == start

    run(main)


def test_a_multicast_is_cancelled_for_all_or_for_none() -> None:
    async def main(loop: VirtualLoop) -> None:
        async with node(loop, "a") as a, node(loop, "b") as b:
            await (await a.send("b", b"hello")).delivered()
            receipt = await a.send(["b", "c"], b"x")
            await asyncio.sleep(0.5)
            assert not receipt.cancel(), "b has it"
            own = await a.send(["a", "c"], b"y")
            assert not own.cancel(), "this process has delivered it itself"
            async with node(loop, "c") as c:
                assert await take(c, 2) == [b"x", b"y"]
            assert await take(b, 2) == [b"hello", b"x"]

    run(main)


def test_protocols_that_send_at_once_refuse() -> None:
    async def main(loop: VirtualLoop) -> None:
        async with node(loop, "a", protocol="rst") as a:
            receipt = await a.send("b", b"x")
            assert not receipt.cancel()
            async with node(loop, "b", protocol="rst") as b:
                assert await take(b, 1) == [b"x"]

    run(main)


def test_cancelling_frees_bytes_and_does_not_keep_close_waiting() -> None:
    async def main(loop: VirtualLoop) -> None:
        config = TransportConfig(peer_bytes=1000)
        a = await node(loop, "a", config=config).start()
        first = await a.send("b", bytes(1000))
        second = asyncio.ensure_future(a.send("b", b"more"))
        await asyncio.sleep(1)
        assert not second.done()
        assert first.cancel()
        assert (await second).cancel()
        assert a._transport.status().accepted_bytes == 0
        assert await a.close(), "nothing is left that anybody wants to be delivered"
        assert first.withdrawn == "cancelled"
        with pytest.raises(Closed):
            await a.send("b", b"x")

    run(main)


# -- time to live ------------------------------------------------------------------------


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_message_expires_unless_it_has_left(protocol: str) -> None:
    async def main(loop: VirtualLoop) -> None:
        async with node(loop, "a", protocol=protocol) as a:
            start = loop.time()
            short = await a.send("b", b"short", ttl=2.0)
            nowait = a.send_nowait("b", b"nowait", ttl=3.0)
            long = await a.send("b", b"long", ttl=20.0)
            with pytest.raises(MessageExpired, match="the message to b expired before it left"):
                await short.delivered()
            assert loop.time() == pytest.approx(start + 2.0)
            with pytest.raises(DeliveryFailed):
                await nowait.delivered()
            assert loop.time() == pytest.approx(start + 3.0)
            async with node(loop, "b", protocol=protocol) as b:
                assert await take(b, 1) == [b"long"]
                await long.delivered()
                loop.network.fate = lambda *_: []  # from here on everything is lost
                lost = await a.send("b", b"has left", ttl=1.0)
                await asyncio.sleep(2)
                assert lost.withdrawn == "", "a message that has left does not expire"
                loop.network.fate = lambda *_: [0.001]
                assert await take(b, 1) == [b"has left"]

    run(main)


def test_a_message_for_which_there_is_no_room_expires() -> None:
    async def main(loop: VirtualLoop) -> None:
        async with node(loop, "a", config=TransportConfig(peer_messages=1)) as a:
            await a.send("b", b"fills the room")
            with pytest.raises(MessageExpired) as error:
                await a.send("b", b"x", ttl=2.0)
            assert (error.value.mid, error.value.names) == (0, ("b",))
            assert loop.time() == pytest.approx(2.0)
            with pytest.raises(ValueError, match="more than 0 seconds"):
                await a.send("b", b"x", ttl=0)

    run(main)


def test_deadlines_of_delivered_messages_are_dropped() -> None:
    async def main(loop: VirtualLoop) -> None:
        async with node(loop, "a") as a, node(loop, "b") as b:
            for _ in range(600):
                await a.send("b", b"x", ttl=3600.0)
                await b.receive()
            assert len(a._transport._withdrawals._deadlines) < 400

    run(main)


# -- at random ---------------------------------------------------------------------------


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("seed", range(2))
def test_whatever_is_cancelled_the_others_keep_their_order(protocol: str, seed: int) -> None:
    """Each payload says what its sender knew, so the receiver can tell what is missing."""
    random = Random(f"{protocol} {seed}")
    receivers: dict[str, list[str]] = {}
    cancelled: set[str] = set()
    got: dict[str, list[str]] = {name: [] for name in NAMES}
    counts = {"cancelled": 0, "too late": 0}

    async def play(one: Node, known: set[str]) -> None:
        receipts: list[tuple[str, Any]] = []
        for k in range(25):
            others = [name for name in NAMES if name != one.name]
            to = random.sample(others, random.choice((1, 1, 2, 3)))
            mid = f"{one.name}{k}"
            past = sorted(known)
            long = random.random() < 0.1
            payload = json.dumps([mid, past, "." * (5000 if long else 0)]).encode()
            receivers[mid] = to
            receipts.append((mid, await one.send(to if len(to) > 1 else to[0], payload)))
            known.add(mid)
            if random.random() < 0.6:
                await asyncio.sleep(random.choice((0, 0.001, 0.02)))
            if random.random() < 0.4:
                which, receipt = random.choice(receipts[-4:])
                if receipt.cancel():
                    cancelled.add(which)
                counts["cancelled" if receipt.withdrawn else "too late"] += 1

    async def read(one: Node, known: set[str]) -> None:
        async for message in one:
            mid, past, _ = json.loads(message.payload)
            for earlier in past:
                if protocol == "fifo" and earlier[0] != mid[0]:
                    continue
                if one.name in receivers[earlier] and earlier not in cancelled:
                    assert earlier in got[one.name], f"{earlier} is missing before {mid}"
            got[one.name].append(mid)
            known.add(mid)

    async def live(loop: VirtualLoop, name: str) -> None:
        await asyncio.sleep(random.choice((0, 0, 0.1, 0.5)))
        known: set[str] = set()
        async with node(loop, name, protocol=protocol) as one:
            reading = asyncio.ensure_future(read(one, known))
            await play(one, known)
            await asyncio.sleep(30)
            assert one.idle
            assert not reading.done() or reading.result()
            await asyncio.sleep(1)
        await reading

    async def main(loop: VirtualLoop) -> None:
        loop.network.fate = lambda *_: (
            [] if random.random() < 0.1 else [random.choice((0.001, 0.01, 0.05))]
        )
        await asyncio.gather(*[live(loop, name) for name in NAMES])

    run(main, seed)
    for mid, to in receivers.items():
        for name in NAMES:
            expected = int(name in to and mid not in cancelled)
            assert got[name].count(mid) == expected, (mid, name)
    assert min(counts.values()) > 1, counts


# -- the blocking node ---------------------------------------------------------------------


def test_the_blocking_node_does_the_same() -> None:
    with blocking.Node("a", peers={"b": ("127.0.0.1", 9)}, drain=0.0) as a:
        receipt = a.send("b", b"x")
        assert receipt.cancel()
        with pytest.raises(MessageCancelled):
            receipt.delivered(60)
        expires = a.send("b", b"y", ttl=0.01)
        with pytest.raises(MessageExpired):
            expires.delivered(60)
        nowait = a.send_nowait("b", b"z", ttl=0.01)
        with pytest.raises(MessageExpired):
            nowait.handled(60)
        with pytest.raises(ValueError, match="more than 0"):
            a.send("b", b"z", ttl=-1)
    assert receipt.withdrawn == "cancelled"
    config = TransportConfig(peer_messages=1)
    with blocking.Node("a", peers={"b": ("127.0.0.1", 9)}, drain=0.0, config=config) as a:
        a.send("b", b"fills the room")
        with pytest.raises(MessageExpired):
            a.send("b", b"x", ttl=0.01)
        with pytest.raises(TimeoutError):
            a.send("b", b"x", 0.01, ttl=60)


def test_after_closing_nothing_can_be_cancelled() -> None:
    async def main(loop: VirtualLoop) -> None:
        async with node(loop, "a") as a:
            receipt = await a.send("b", b"x")
        assert not receipt.cancel()
        with pytest.raises(NodeError):
            await receipt.delivered()

    run(main)
