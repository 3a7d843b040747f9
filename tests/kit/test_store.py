"""A kit on a node with a store: what was not handled comes again after a crash, and only that."""

from __future__ import annotations

import asyncio
import pickle
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from causewire.kit import Kit, PeerLost, Request, RequestFailed
from causewire.kit.requests import HANDLERS_WITHIN
from causewire.node import Message, Node, TransportConfig
from causewire.testing.disk import Disk, DiskStore
from causewire.testing.virtual import VirtualLoop, run

from ..node.test_store import kill
from .helper import kit, node
from .test_requests import echo
from .test_returns import Log

VALUES = pickle.dumps, pickle.loads


class Killed:
    """A process with a store, which is killed and started again."""

    def __init__(self, loop: VirtualLoop, name: str, **more: Any) -> None:
        self.loop = loop
        self.name = name
        self.disk = Disk()
        self.more: dict[str, Any] = {"give_up_after": None, **more}
        self.served: list[Any] = []
        self.node: Node

    async def start(self, **settings: Any) -> Kit:
        store = DiskStore(self.disk)
        self.node = await node(self.loop, self.name, store=store, **self.more).start()
        made = await Kit(self.node, codec=VALUES, **settings).start()

        @made.serves()
        async def serve(request: Request) -> bytes:
            self.served.append(request.payload)
            await asyncio.sleep(float(request.payload.split()[0]))
            return bytes(request.payload)

        return made

    async def kill(self, made: Kit) -> None:
        kill(self.node)
        await made._tasks.cancel()
        Kit._nodes.discard(self.node)

    @property
    def kept(self) -> int:
        """How many messages in the store are not handled."""
        assert self.node._gate is not None
        return sum(item is not None for item in self.node._gate.inbox.unhandled)


@asynccontextmanager
async def alice_and_bob(loop: VirtualLoop, **more: Any) -> AsyncIterator[tuple[Kit, Killed]]:
    async with kit(loop, "alice", codec=VALUES, node_={"give_up_after": None}) as alice:
        bob = Killed(loop, "bob", **more)
        yield alice, bob
        if bob.node._bridge is not None:
            kill(bob.node)


def test_messages_that_the_application_has_not_taken_come_again() -> None:
    async def main(loop: VirtualLoop) -> None:
        async with alice_and_bob(loop) as (alice, bob):
            made = await bob.start()
            for k in range(4):
                await (await alice.node.send("bob", b"%d" % k)).delivered()
            messages = made.__aiter__()
            taken = [(await anext(messages)).payload for _ in range(2)]  # so 0 is handled
            assert taken == [b"0", b"1"]
            await asyncio.sleep(1)
            await bob.kill(made)
            made = await bob.start()
            messages = made.__aiter__()
            assert [(await anext(messages)).payload for _ in range(2)] == [b"1", b"2"]
            await bob.node.done()
            await bob.kill(made)
            made = await bob.start()
            messages = made.__aiter__()
            assert (await anext(messages)).payload == b"3"
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(anext(messages), 1)
            await asyncio.sleep(1)
            assert bob.kept == 0
            await bob.kill(made)

    run(main)


def test_an_application_that_says_what_it_has_handled() -> None:
    async def main(loop: VirtualLoop) -> None:
        async with alice_and_bob(loop, reports_handled=True) as (alice, bob):
            made = await bob.start()
            receipts = [await alice.node.send("bob", b"%d" % k) for k in range(3)]
            messages = made.__aiter__()
            taken: list[Message] = [await anext(messages) for _ in range(3)]
            taken[1].done()
            await receipts[1].handled()
            await bob.kill(made)
            made = await bob.start()
            messages = made.__aiter__()
            assert [(await anext(messages)).payload for _ in range(2)] == [b"0", b"2"]
            await bob.kill(made)

    run(main)


@pytest.mark.parametrize("reports_handled", [False, True])
def test_a_request_in_the_middle_of_its_handler_comes_again(reports_handled: bool) -> None:
    async def main(loop: VirtualLoop) -> None:
        async with alice_and_bob(loop, reports_handled=reports_handled) as (alice, bob):
            made = await bob.start()
            assert await alice.request("bob", b"0 before") == b"0 before"
            asked = asyncio.create_task(alice.request("bob", b"5 this"))
            await asyncio.sleep(1)
            assert await alice.request("bob", b"0 meanwhile") == b"0 meanwhile"
            await bob.kill(made)
            bob.served.clear()
            made = await bob.start()
            assert await asyncio.wait_for(asked, 60) == b"5 this"
            assert bob.served == [b"5 this"]
            await asyncio.sleep(1)
            assert bob.kept == 0
            await bob.kill(made)
            bob.served.clear()
            made = await bob.start()
            assert await alice.request("bob", b"0 after") == b"0 after"
            assert bob.served == [b"0 after"]
            await bob.kill(made)

    run(main)


def test_an_answer_and_the_note_that_it_was_given_are_stored_together() -> None:
    """At whatever write the process is killed, no request is served that was answered."""

    def play(write: int) -> bool:
        ended: list[bool] = []

        async def main(loop: VirtualLoop) -> None:
            async with alice_and_bob(loop) as (alice, bob):
                made = await bob.start()
                crashed = asyncio.Event()
                bob.disk.crash_at = write, "synced"

                def crash() -> None:
                    kill(bob.node)
                    crashed.set()

                bob.disk.crash = crash
                answered: list[bytes] = []

                async def ask() -> None:
                    for k in range(4):
                        answer = await alice.request("bob", b"0 %d" % k)
                        answered.append(answer)

                asking = asyncio.create_task(ask())
                waiting = asyncio.create_task(crashed.wait())
                await asyncio.wait({asking, waiting}, return_when=asyncio.FIRST_COMPLETED)
                ended.append(crashed.is_set())
                if crashed.is_set():
                    await bob.kill(made) if bob.node._bridge else await made._tasks.cancel()
                    before = set(answered)
                    bob.served.clear()
                    made = await bob.start()
                    await asyncio.wait_for(asking, 60)
                    assert not before & set(bob.served)
                waiting.cancel()
                await bob.kill(made)

        run(main)
        return ended[0]

    writes = 1
    while play(writes):
        writes += 1
    assert writes > 5


def test_requests_wait_for_a_handler_that_is_registered_late() -> None:
    """A process that has come back does not refuse what it has served before."""

    async def main(loop: VirtualLoop) -> None:
        async with alice_and_bob(loop) as (alice, bob):
            served: list[Any] = []

            async def serve(request: Request) -> Any:
                served.append(request.payload)
                await asyncio.sleep(3)
                return request.payload

            made = await bob.start()
            made.serves("late")(serve)
            asked = [asyncio.create_task(alice.request("bob", 1, service="late"))]
            await asyncio.sleep(1)
            await bob.kill(made)
            asked.append(asyncio.create_task(alice.request("bob", 2, service="late")))
            given_up = asyncio.create_task(alice.request("bob", 3, service="late", timeout=4))
            made = await bob.start()
            await asyncio.sleep(6)
            assert given_up.done()
            served.clear()
            made.serves("late")(serve)
            assert await asyncio.gather(*asked) == [1, 2]
            assert served == [1, 2]
            start = loop.now
            with pytest.raises(RequestFailed, match="NoSuchService"):
                await alice.request("bob", 4, service="none", timeout=60)
            assert loop.now < start + HANDLERS_WITHIN
            with pytest.raises(RequestFailed, match="NoSuchService"):
                await alice.request("bob", 5, service="none", timeout=0.1)
            with pytest.raises(TimeoutError):
                await given_up
            await asyncio.sleep(1)
            assert bob.kept == 0
            await bob.kill(made)

    run(main)


@pytest.mark.parametrize("how", ["refused", "cancelled", "malformed", "failed", "to itself"])
def test_nothing_of_a_request_that_has_ended_stays_in_the_store(how: str) -> None:
    async def main(loop: VirtualLoop) -> None:
        async with alice_and_bob(loop) as (alice, bob):
            made = await bob.start()
            if how == "refused":
                with pytest.raises(Exception, match="NoSuchService"):
                    await alice.request("bob", b"", service="other")
            elif how == "cancelled":
                with pytest.raises(TimeoutError):
                    await alice.request("bob", b"100", timeout=1)
            elif how == "malformed":
                for junk in (b"", b"\x01", b"\x01\x01\x05a", b"\x09", b"\x05\xff", b"\x06"):
                    await alice.node.send("bob", b"\xcaW\x01" + junk)
            elif how == "failed":
                with pytest.raises(Exception, match="ValueError"):
                    await alice.request("bob", b"no number")
            else:
                assert await made.request("bob", b"0") == b"0"
            await asyncio.sleep(1)
            assert bob.kept == 0
            await bob.kill(made)

    run(main)


def test_a_kit_that_is_closed_leaves_its_requests_for_the_next_start() -> None:
    async def main(loop: VirtualLoop) -> None:
        async with alice_and_bob(loop) as (alice, bob):
            made = await bob.start()
            asked = asyncio.create_task(alice.request("bob", b"5 this"))
            await asyncio.sleep(1)
            await made.close()
            await bob.node.close()
            made = await bob.start()
            assert await asyncio.wait_for(asked, 60) == b"5 this"
            assert bob.served == [b"5 this", b"5 this"]
            await bob.kill(made)

    run(main)


def test_after_the_kit_is_closed_the_node_is_read_as_usual() -> None:
    async def main(loop: VirtualLoop) -> None:
        async with alice_and_bob(loop) as (alice, bob):
            made = await bob.start()
            await alice.node.send("bob", b"to the kit")
            assert (await anext(made.__aiter__())).payload == b"to the kit"
            await made.close()
            for k in range(3):
                await alice.node.send("bob", b"%d" % k)
            assert [(await bob.node.receive()).payload for _ in range(3)] == [b"0", b"1", b"2"]
            await bob.node.done()
            assert bob.kept == 0
            await bob.node.close()

    run(main)


def test_the_answer_to_a_request_of_a_former_run_is_not_taken_for_another() -> None:
    async def main(loop: VirtualLoop) -> None:
        async with kit(loop, "alice", codec=VALUES) as alice:

            @alice.serves()
            async def slow(request: Request) -> bytes:
                await asyncio.sleep(float(request.payload))
                return bytes(request.payload)

            bob = Killed(loop, "bob")
            made = await bob.start()
            lost = asyncio.create_task(made.request("alice", b"5"))
            await asyncio.sleep(1)
            await bob.kill(made)
            lost.cancel()
            made = await bob.start()
            assert await made.request("alice", b"10") == b"10"
            await bob.kill(made)

    run(main)


def test_a_slow_handler_does_not_keep_the_process_from_reading() -> None:
    async def main(loop: VirtualLoop) -> None:
        few = TransportConfig(queue_messages=4)
        async with alice_and_bob(loop, config=few) as (alice, bob):
            made = await bob.start()
            asked = asyncio.create_task(alice.request("bob", b"100 long"))
            await asyncio.sleep(1)
            for k in range(20):
                assert await alice.request("bob", b"0 %d" % k, timeout=5) == b"0 %d" % k
            assert bob.kept == 1
            assert await asked == b"100 long"
            await bob.kill(made)

    run(main)


def test_what_a_group_delivered_and_the_application_has_not_taken() -> None:
    """The membership ends with the process; it gets the rest when it joins with its position.

    Nothing of the former membership stays in the store.
    """

    async def main(loop: VirtualLoop) -> None:
        alice, log = Log(), Log()
        async with alice_and_bob(loop) as (a, bob):
            room = await alice.join(a)
            made = await bob.start()
            await log.join(made, "alice")
            await room.send(b"taken")
            await asyncio.sleep(1)
            log.task.cancel()  # its application does not read any more
            await room.send(b"not taken")
            await asyncio.sleep(1)
            await bob.kill(made)
            await room.send(b"while it was down")
            made = await bob.start()
            back = Log(log.state, log.position)
            await back.join(made, "alice")
            await asyncio.sleep(1)
            assert log.state == [b"taken"]
            assert back.state == alice.state == [b"taken", b"not taken", b"while it was down"]
            assert back.restored == 0
            assert bob.kept == 0
            await bob.kill(made)
            back.task.cancel()

    run(main)


def test_frames_of_a_former_membership_are_dropped() -> None:
    """They were delivered to a process that was killed before its kit had read them."""

    async def main(loop: VirtualLoop) -> None:
        alice, log = Log(), Log()
        async with alice_and_bob(loop) as (a, bob):
            room = await alice.join(a)
            made = await bob.start(queue=1)
            await log.join(made, "alice")
            log.task.cancel()
            for k in range(5):
                await room.send(b"%d" % k)
                await (await a.node.send("bob", b"%d" % k)).delivered()
            assert bob.kept > 5
            await bob.kill(made)
            made = await bob.start()
            messages = made.__aiter__()
            assert [(await anext(messages)).payload for _ in range(5)] == [
                b"%d" % k for k in range(5)
            ]
            await bob.node.done()
            assert bob.kept == 0
            await bob.kill(made)

    run(main)


def test_a_message_to_a_group_is_stored_when_send_returns() -> None:
    async def main(loop: VirtualLoop) -> None:
        alice, log = Log(), Log()
        async with alice_and_bob(loop) as (a, bob):
            await alice.join(a)
            made = await bob.start()
            room = await log.join(made, "alice")
            bob.disk.delay = lambda: 0.5
            loop.network.fate = lambda *_: []
            start = loop.now
            await room.send(b"kept")
            assert loop.now >= start + 0.5
            await bob.kill(made)
            log.task.cancel()
            loop.network.fate = lambda *_: [0.001]
            made = await bob.start()
            await asyncio.sleep(10)
            assert alice.state == [b"kept"]
            await bob.kill(made)

    run(main)


def test_a_message_to_a_group_that_waits_for_room_is_stored_when_send_returns() -> None:
    async def main(loop: VirtualLoop) -> None:
        few = TransportConfig(peer_messages=4)
        alice, log = Log(), Log()
        async with alice_and_bob(loop, config=few) as (a, bob):
            await alice.join(a)
            made = await bob.start()
            room = await log.join(made, "alice")
            await asyncio.sleep(1)
            loop.network.fate = lambda *_: []
            sent: list[bytes] = []

            async def send() -> None:
                for k in range(20):
                    await room.send(b"%d" % k)
                    sent.append(b"%d" % k)

            sending = asyncio.create_task(send())
            await asyncio.sleep(5)
            assert 0 < len(sent) < 20
            sending.cancel()
            await bob.kill(made)
            log.task.cancel()
            loop.network.fate = lambda *_: [0.001]
            made = await bob.start()
            await asyncio.sleep(10)
            assert alice.state[: len(sent)] == sent
            await bob.kill(made)

    run(main)


def test_nothing_changes_for_a_request_on_a_node_without_a_store() -> None:
    async def main(loop: VirtualLoop) -> None:
        settings = {"reports_handled": True}
        async with kit(loop, "alice") as alice, kit(loop, "bob", node_=settings) as bob:
            bob.serves()(echo)
            receipt = await alice.node.send("bob", b"\xcaW\x01\x01\x01\x00\x00")
            await receipt.handled()  # the kit says that it has answered
            plain = await alice.node.send("bob", b"plain")
            message = await anext(bob.__aiter__())
            await asyncio.sleep(1)
            assert plain.unhandled()
            message.done()
            await plain.handled()

    run(main)


def test_what_the_application_has_not_taken_is_there_once_after_rejoining() -> None:
    async def main(loop: VirtualLoop) -> None:
        async with alice_and_bob(loop, reports_handled=True, rejoin=True) as (alice, bob):
            made = await bob.start()
            for k in range(3):
                await (await alice.node.send("bob", b"%d" % k)).delivered()
            asked = asyncio.create_task(alice.request("bob", b"20 long"))
            await asyncio.sleep(1)
            former = bob.node.incarnation
            await alice.node.forget("bob")
            await asyncio.sleep(5)
            assert bob.node.incarnation > former
            assert bob.kept == 4
            taken: list[bytes] = []

            async def take() -> None:
                async for message in made:
                    taken.append(message.payload)
                    message.done()

            taking = asyncio.create_task(take())
            await asyncio.sleep(5)
            assert taken == [b"0", b"1", b"2"]
            assert bob.kept == 1  # the request, whose handler goes on
            await asyncio.sleep(20)
            assert bob.kept == 0
            assert bob.served == [b"20 long"]
            with pytest.raises(PeerLost):
                await asked
            taking.cancel()
            await bob.kill(made)

    run(main)
