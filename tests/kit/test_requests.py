"""Requests: answers, errors, timeouts, cancellation, and processes that go away."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from causewire.kit import Kit, KitError, PeerLost, Request, RequestFailed
from causewire.node import Closed, Node
from causewire.testing.virtual import VirtualLoop, run

from .helper import kit, node


async def echo(request: Request) -> Any:
    return request.payload


async def forever(request: Request) -> None:
    await asyncio.Event().wait()


def test_a_request_and_its_answer() -> None:
    async def main(loop: VirtualLoop) -> None:
        async with kit(loop, "alice", codec="json") as alice, kit(loop, "bob", codec="json") as bob:

            @bob.serves("add")
            async def add(request: Request) -> Any:
                assert request.source == "alice"
                assert request.headers == {"user": "ann", "hop": -3, "rate": 0.5, "raw": b"\0"}
                return sum(request.payload)

            headers: dict[str, Any] = {"user": "ann", "hop": -3, "rate": 0.5, "raw": b"\0"}
            assert await alice.request("bob", [1, 2], service="add", headers=headers) == 3

    run(main)


def test_an_error_travels() -> None:
    async def main(loop: VirtualLoop) -> None:
        async with kit(loop, "alice") as alice, kit(loop, "bob") as bob:

            @bob.serves()
            async def fail(request: Request) -> None:
                raise LookupError("no such key")

            with pytest.raises(RequestFailed, match="bob: LookupError: no such key") as failed:
                await alice.request("bob", b"x")
            assert (failed.value.kind, failed.value.message) == ("LookupError", "no such key")
            with pytest.raises(RequestFailed, match="NoSuchService"):
                await alice.request("bob", b"x", service="other")
            with pytest.raises(KitError, match="another handler"):
                bob.serves()(echo)

    run(main)


def test_requests_run_concurrently_and_answers_find_their_caller() -> None:
    async def main(loop: VirtualLoop) -> None:
        async with kit(loop, "alice") as alice, kit(loop, "bob") as bob:

            @bob.serves()
            async def slow(request: Request) -> bytes:
                await asyncio.sleep(10 - int(request.payload))
                return bytes(request.payload)

            start = loop.now
            asked = [alice.request("bob", b"%d" % k) for k in range(10)]
            assert await asyncio.gather(*asked) == [b"%d" % k for k in range(10)]
            assert loop.now - start < 11

    run(main)


@pytest.mark.parametrize("how", ["timeout", "cancel"])
def test_a_caller_that_stops_waiting_cancels_the_handler(how: str) -> None:
    async def main(loop: VirtualLoop) -> None:
        async with kit(loop, "alice") as alice, kit(loop, "bob", handlers=1) as bob:
            cancelled = asyncio.Event()

            @bob.serves()
            async def wait(request: Request) -> bytes:
                if request.payload == b"quick":
                    return b"done"
                try:
                    await asyncio.Event().wait()
                finally:
                    cancelled.set()
                raise AssertionError

            first = asyncio.create_task(alice.request("bob", b"1", timeout=5))
            queued = asyncio.create_task(alice.request("bob", b"2", timeout=4))
            await asyncio.sleep(1)
            if how == "cancel":
                for task in (first, queued):
                    task.cancel()
            for task in (queued, first):
                with pytest.raises(TimeoutError if how == "timeout" else asyncio.CancelledError):
                    await task
            await asyncio.wait_for(cancelled.wait(), 1)
            assert await alice.request("bob", b"quick", timeout=1) == b"done"

    run(main)


def test_a_request_to_a_process_that_leaves_fails_at_once() -> None:
    async def main(loop: VirtualLoop) -> None:
        async with kit(loop, "alice") as alice:
            async with kit(loop, "bob") as bob:
                bob.serves()(forever)
                asked = asyncio.create_task(alice.request("bob", b"x", timeout=1000))
                await asyncio.sleep(1)
            with pytest.raises(PeerLost):
                await asked
            assert loop.now < 10
            with pytest.raises(PeerLost):
                await alice.request("bob", b"x")

    run(main)


def test_a_request_to_a_process_that_is_given_up_fails_then() -> None:
    async def main(loop: VirtualLoop) -> None:
        soon = {"give_up_after": 5.0}
        async with kit(loop, "alice", node_=soon) as alice, kit(loop, "bob") as bob:
            bob.serves()(forever)
            asked = asyncio.create_task(alice.request("bob", b"x", timeout=1000))
            await asyncio.sleep(1)
            loop.network.fate = lambda *_: []
            with pytest.raises(PeerLost):
                await asked
            assert loop.now < 20
            with pytest.raises(PeerLost):
                await alice.request("carol", b"x")
            assert loop.now < 40

    run(main)


def test_a_request_to_a_process_that_is_restarted_fails_and_the_next_one_does_not() -> None:
    async def main(loop: VirtualLoop) -> None:
        async with kit(loop, "alice") as alice:
            old = await node(loop, "bob").start()
            asked = asyncio.create_task(alice.request("bob", b"x"))
            await asyncio.sleep(1)
            loop.network.sockets.pop(("127.0.0.1", 2))
            async with kit(loop, "bob", incarnation=1 << 20) as bob:
                bob.serves()(echo)
                with pytest.raises(PeerLost):
                    await asked
                assert await alice.request("bob", b"again", timeout=5) == b"again"
            await old.close(0)

    run(main)


def test_a_handler_is_cancelled_when_its_caller_is_gone() -> None:
    async def main(loop: VirtualLoop) -> None:
        async with kit(loop, "bob") as bob:
            ended = asyncio.Event()

            @bob.serves()
            async def wait(request: Request) -> None:
                try:
                    await asyncio.Event().wait()
                finally:
                    ended.set()

            async with kit(loop, "alice") as alice:
                asked = asyncio.create_task(alice.request("bob", b"x"))
                await asyncio.sleep(1)
            await asyncio.wait_for(ended.wait(), 5)
            with pytest.raises(Closed):
                await asked

    run(main)


def test_handlers_are_bounded_and_what_is_too_much_is_refused() -> None:
    async def main(loop: VirtualLoop) -> None:
        async with kit(loop, "alice") as alice, kit(loop, "bob", handlers=2, waiting=3) as bob:
            running = most = 0

            @bob.serves()
            async def work(request: Request) -> bytes:
                nonlocal running, most
                running += 1
                most = max(most, running)
                await asyncio.sleep(1)
                running -= 1
                return bytes(request.payload)

            asked = [alice.request("bob", b"%d" % k) for k in range(8)]
            answers = await asyncio.gather(*asked, return_exceptions=True)
            assert answers[:5] == [b"%d" % k for k in range(5)]
            assert [getattr(answer, "kind", "") for answer in answers[5:]] == ["Busy"] * 3
            assert most == 2

    run(main)


def test_a_request_keeps_causal_order_with_messages() -> None:
    """What a process sent to a third one before it asked arrives there before what follows."""

    async def main(loop: VirtualLoop) -> None:
        slow = {(1, 3)}
        loop.network.fate = lambda a, b, _: [1.0 if (a[1], b[1]) in slow else 0.001]
        async with (
            kit(loop, "alice") as alice,
            kit(loop, "bob") as bob,
            kit(loop, "carol") as carol,
        ):

            @bob.serves()
            async def tell(request: Request) -> bytes:
                await bob.node.send("carol", b"second")
                return b""

            await alice.node.send("carol", b"first")
            asked = asyncio.create_task(alice.request("bob", b""))
            heard = []
            async for message in carol:
                heard.append(message.payload)
                if len(heard) == 2:
                    break
            assert heard == [b"first", b"second"]
            await asked

    run(main)


def test_nested_requests_do_not_wait_for_a_full_queue() -> None:
    async def main(loop: VirtualLoop) -> None:
        async with kit(loop, "alice") as alice, kit(loop, "bob", queue=2) as bob:
            alice.serves()(echo)

            @bob.serves()
            async def ask_back(request: Request) -> Any:
                await asyncio.sleep(1)
                return await bob.request(request.source, request.payload)

            asked = asyncio.create_task(alice.request("bob", b"x", timeout=5))
            await asyncio.sleep(0.1)
            for k in range(5):
                await alice.node.send("bob", b"%d" % k)
            assert await asked == b"x"
            messages = bob.__aiter__()
            assert [int((await anext(messages)).payload) for _ in range(5)] == list(range(5))

    run(main)


def test_malformed_frames_are_dropped() -> None:
    async def main(loop: VirtualLoop) -> None:
        async with kit(loop, "alice") as alice, kit(loop, "bob") as bob:
            bob.serves()(echo)
            for junk in (b"", b"\x01", b"\x01\x01\x05a", b"\x09", b"\x02\x01", b"\x03\x01\0\xff"):
                await alice.node.send("bob", b"\xcaW\x01" + junk)
            assert await alice.request("bob", b"fine", timeout=5) == b"fine"

    run(main)


def test_the_kit_needs_ordered_events() -> None:
    with pytest.raises(KitError, match="ordered_events"):
        Kit(Node("alice"))


def test_a_rejoined_process_knows_that_its_requests_are_lost() -> None:
    async def main(loop: VirtualLoop) -> None:
        async with kit(loop, "alice", node_={"rejoin": True}) as alice, kit(loop, "bob") as bob:
            bob.serves()(forever)
            bob.serves("echo")(echo)
            asked = asyncio.create_task(alice.request("bob", b"x"))
            await asyncio.sleep(1)
            await bob.node.forget("alice")
            with pytest.raises(PeerLost):
                await asked
            assert await alice.request("bob", b"y", service="echo", timeout=20) == b"y"

    run(main)


@pytest.mark.parametrize("protocol", ["csps", "sps", "fifo"])
def test_round_trips_of_busy_clients(protocol: str) -> None:
    """A request does not wait for the acks of other clients, under no protocol."""
    taken: list[float] = []

    async def main(loop: VirtualLoop) -> None:
        settings = {"protocol": protocol}
        async with kit(loop, "alice", node_=settings) as server:
            server.serves()(echo)

            async def ask(name: str) -> None:
                async with kit(loop, name, node_=settings) as client:
                    await asyncio.sleep(0.0001 * len(name))
                    for _ in range(30):
                        start = loop.now
                        await client.request("alice", b"x")
                        taken.append(loop.now - start)

            await asyncio.gather(*map(ask, ("bob", "carol", "dave", "erin")))

    run(main)
    most = sorted(taken)[int(0.95 * len(taken))]
    assert round(most / 0.002) == 1


def test_a_request_that_has_not_left_is_cancelled_at_its_timeout() -> None:
    async def main(loop: VirtualLoop) -> None:
        async with kit(loop, "alice") as alice:
            with pytest.raises(TimeoutError):
                await alice.request("bob", b"too late", timeout=1.0)
            served: list[bytes] = []
            async with kit(loop, "bob") as bob:

                @bob.serves()
                async def take(request: Request) -> bytes:
                    served.append(request.payload)
                    return b""

                await alice.request("bob", b"in time", timeout=30.0)
                assert served == [b"in time"]
                assert bob.node.stats()["delivered"] == 1

    run(main)
