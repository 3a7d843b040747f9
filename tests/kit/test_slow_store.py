"""A kit on a node whose store is slow, or full."""

from __future__ import annotations

import asyncio

import pytest

from causewire.kit import GroupClosed, Request
from causewire.node import TransportConfig
from causewire.store import StoreFailed
from causewire.testing.virtual import VirtualLoop, run

from .helper import kit
from .test_returns import Log
from .test_store import VALUES, Killed, alice_and_bob


def test_messages_to_a_group_that_wait_for_room_share_writes() -> None:
    async def main(loop: VirtualLoop) -> None:
        few = TransportConfig(peer_messages=16)
        alice, log = Log(), Log()
        async with alice_and_bob(loop, config=few) as (a, bob):
            await alice.join(a)
            room = await log.join(await bob.start(), "alice")
            await asyncio.sleep(1)
            before = bob.disk.writes

            async def send(k: int) -> None:
                for _ in range(5):
                    await room.send(b"%d" % k)

            await asyncio.gather(*[send(k) for k in range(60)])
            writes = bob.disk.writes - before
            assert writes < 100
            await asyncio.sleep(5)
            assert len(alice.state) == 300

    run(main)


@pytest.mark.parametrize("what", ["full", "given up"])
def test_a_message_to_a_group_that_was_not_stored_raises(what: str) -> None:
    async def main(loop: VirtualLoop) -> None:
        few = TransportConfig(peer_messages=4)
        alice, log = Log(), Log()
        async with alice_and_bob(loop, config=few) as (a, bob):
            await alice.join(a)
            room = await log.join(await bob.start(), "alice")
            await asyncio.sleep(1)
            loop.network.fate = lambda *_: []
            sending = [asyncio.create_task(room.send(b"%d" % k)) for k in range(20)]
            await asyncio.sleep(2)
            waiting = [each for each in sending if not each.done()]
            assert 10 < len(waiting) < 20
            if what == "full":
                bob.disk.full = True
            else:
                await a.node.forget("bob")
            loop.network.fate = lambda *_: [0.001]
            found = await asyncio.gather(*waiting, return_exceptions=True)
            assert {type(each) for each in found} <= {GroupClosed, StoreFailed}, found
            log.task.cancel()

    run(main)


def test_a_request_whose_time_is_over_before_it_is_in_the_store_is_cancelled() -> None:
    async def main(loop: VirtualLoop) -> None:
        async with kit(loop, "alice", codec=VALUES, node_={"give_up_after": None}) as alice:
            events: list[str] = []

            @alice.serves()
            async def serve(request: Request) -> None:
                events.append("begun")
                try:
                    await asyncio.sleep(100)
                finally:
                    events.append("ended")

            bob = Killed(loop, "bob")
            made = await bob.start()
            await asyncio.sleep(1)
            bob.disk.delay = lambda: 2.0
            with pytest.raises(TimeoutError):
                await made.request("alice", b"", timeout=1)
            await asyncio.sleep(10)
            assert events in ([], ["begun", "ended"])
            await bob.kill(made)

    run(main)


def test_a_full_disk_fails_requests_and_nothing_is_logged_twice(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def main(loop: VirtualLoop) -> None:
        async with alice_and_bob(loop) as (alice, bob):
            made = await bob.start()

            @alice.serves()
            async def forever(request: Request) -> None:
                await asyncio.sleep(100)

            asking = [asyncio.create_task(made.request("alice", b"", timeout=t)) for t in (2, 50)]
            await asyncio.sleep(1)
            bob.disk.full = True
            late, long = await asyncio.gather(*asking, return_exceptions=True)
            assert isinstance(late, TimeoutError)  # and what it sends to cancel it fails
            assert isinstance(long, StoreFailed)
            await asyncio.sleep(1)
            with pytest.raises(StoreFailed):
                await made.request("alice", b"")
            with pytest.raises(StoreFailed):
                await anext(made.__aiter__())  # it does not end as if the node had been closed
            errors = [one.getMessage() for one in caplog.records if one.levelname == "ERROR"]
            assert errors == ["bob stops: the disk is full"]
            await bob.kill(made)

    run(main)


@pytest.mark.parametrize("write", range(4))
def test_a_disk_that_is_full_when_a_request_is_answered(write: int) -> None:
    async def main(loop: VirtualLoop) -> None:
        async with alice_and_bob(loop) as (alice, bob):
            made = await bob.start()
            assert await alice.request("bob", b"0 before") == b"0 before"
            asked = asyncio.create_task(alice.request("bob", b"1 this"))
            await asyncio.sleep(0.999 + 0.001 * write)
            bob.disk.full = True
            await asyncio.sleep(2)
            bob.disk.full = False
            await bob.kill(made)
            bob.served.clear()
            made = await bob.start()
            assert await asyncio.wait_for(asked, 60) == b"1 this"
            assert bob.served in ([], [b"1 this"])
            assert bob.kept == 0
            await bob.kill(made)

    run(main)


def test_a_request_to_itself_across_a_rejoin() -> None:
    """Each incarnation numbers its messages to itself anew."""

    async def main(loop: VirtualLoop) -> None:
        async with alice_and_bob(loop, rejoin=True) as (alice, bob):
            made = await bob.start()
            asked = asyncio.create_task(made.request("bob", b"20 self"))
            await asyncio.sleep(1)
            await alice.node.forget("bob")
            await asyncio.sleep(3)
            for k in range(30):
                await made.request("bob", b"0 %d" % k)
            await asyncio.gather(asked, return_exceptions=True)
            await asyncio.sleep(30)
            assert bob.kept == 0
            await bob.kill(made)

    run(main)
