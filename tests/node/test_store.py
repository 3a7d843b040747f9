"""A node with a store: what it promises to its application."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from causewire import blocking
from causewire.core import Delivery, LocalProtocolError
from causewire.node import (
    Closed,
    DeliveryFailed,
    Node,
    NodeError,
    PeerUp,
    Superseded,
    message_id,
)
from causewire.store import StoreFailed, StoreInUse, StoreRefused
from causewire.testing.disk import Disk, DiskStore
from causewire.testing.virtual import VirtualLoop, run

_protocol: dict[str, str] = {}


@pytest.fixture(autouse=True, params=["csps", "adaptive"])
def each_protocol(request: pytest.FixtureRequest) -> None:
    """Have `node` use one protocol, then the other."""
    _protocol["protocol"] = request.param


def node(loop: VirtualLoop, name: str, port: int, disk: Disk | None = None, **more: Any) -> Node:
    more = _protocol | more
    store = None if disk is None else DiskStore(disk)
    sock: Any = loop.network.socket(port)
    return Node(name, sock=sock, store=store, give_up_after=more.pop("give_up_after", None), **more)


def kill(victim: Node) -> None:
    """What `kill -9` does."""
    assert victim._bridge is not None
    assert victim._gate is not None
    victim._bridge.stop()
    victim._bridge = None
    victim._gate.store.close()
    Node._started.discard(victim)


def test_send_returns_when_the_message_is_stored() -> None:
    async def main(loop: VirtualLoop) -> None:
        disk = Disk(delay=0.5)
        async with node(loop, "a", 1, disk, peers={"b": ("127.0.0.1", 2)}) as a:
            start = loop.time()
            receipt = await a.send("b", b"one")
            assert loop.time() >= start + 0.5
            again = a.send_nowait("b", b"two")
            assert a._gate is not None
            assert a._gate.stored == receipt.mid == again.mid - 1
            await again.stored()
            assert a._gate.stored == again.mid
            kill(a)
            again_a = node(loop, "a", 1, disk)
            async with again_a, node(loop, "b", 2) as b:
                assert again_a.incarnation == a.incarnation
                assert [(await b.receive()).payload for _ in range(2)] == [b"one", b"two"]

    run(main)


def test_what_was_not_stored_has_not_happened() -> None:
    async def main(loop: VirtualLoop) -> None:
        disk = Disk(delay=0.5)
        async with node(loop, "b", 2) as b:
            a = await node(loop, "a", 1, disk, peers={"b": ("127.0.0.1", 2)}).start()
            await a.send("b", b"kept")
            a.send_nowait("b", b"undone")
            kill(a)
            async with node(loop, "a", 1, disk) as a:
                await a.send("b", b"next")
                assert [(await b.receive())[1:] for _ in range(2)] == [(1, b"kept"), (2, b"next")]

    run(main)


def test_done_and_asking_for_the_next() -> None:
    async def main(loop: VirtualLoop) -> None:
        disk = Disk()
        async with node(loop, "a", 1, peers={"b": ("127.0.0.1", 2)}) as a:
            b = await node(loop, "b", 2, disk).start()
            for k in range(4):
                await a.send("b", b"%d" % k)
            assert (await b.receive()).payload == b"0"
            await b.done()
            kill(b)
            b = await node(loop, "b", 2, disk).start()
            assert (await b.receive()).payload == b"1"
            assert (await b.receive()).payload == b"2"  # so 1 is handled
            await asyncio.sleep(0.1)
            a.send_nowait("b", b"4")
            await asyncio.sleep(0.1)  # which is stored, together with that
            kill(b)
            async with node(loop, "b", 2, disk) as b:
                assert [(await b.receive()).payload for _ in range(3)] == [b"2", b"3", b"4"]
                with pytest.raises(TimeoutError):
                    await b.receive(timeout=1.0)  # asks for the next: all are handled
                await asyncio.sleep(0.1)
                kill(b)
            async with node(loop, "b", 2, disk) as b:
                with pytest.raises(TimeoutError):
                    await b.receive(timeout=1.0)

    run(main)


def test_a_reply_and_done_in_one_step() -> None:
    """A reply and the note that its cause is handled are stored together, or not at all."""

    async def main(loop: VirtualLoop) -> None:
        disk = Disk(delay=0.1)
        async with node(loop, "a", 1, peers={"b": ("127.0.0.1", 2)}) as a:
            b = await node(loop, "b", 2, disk).start()
            await a.send("b", b"question")
            await b.receive()
            b.send_nowait("a", b"answer")
            done = asyncio.create_task(b.done())
            await asyncio.sleep(0.01)
            kill(b)
            done.cancel()
            async with node(loop, "b", 2, disk) as b:
                assert (await b.receive()).payload == b"question"
                b.send_nowait("a", b"answer")
                await b.done()
                assert (await a.receive()).payload == b"answer"
                with pytest.raises(TimeoutError):
                    await a.receive(timeout=1.0)

    run(main)


def test_an_application_that_says_what_it_has_handled() -> None:
    """In any order; the senders learn it when it is stored, and what is left comes again."""

    async def main(loop: VirtualLoop) -> None:
        disk = Disk()
        more: Any = {"reports_handled": True, "ordered_events": True}
        async with node(loop, "a", 1, peers={"b": ("127.0.0.1", 2)}) as a:
            b = await node(loop, "b", 2, disk, **more).start()
            receipts = [await a.send("b", b"%d" % k) for k in range(4)]
            assert tuple(await b.receive()) == PeerUp("a")
            messages = [await b.receive() for _ in range(4)]
            messages[2].done()
            await receipts[2].handled()
            messages[0].done()
            await b.done()
            kill(b)
            b = await node(loop, "b", 2, disk, **more).start()
            left = [await b.receive() for _ in range(3)]
            assert [each[-1] for each in left if isinstance(each, Delivery)] == [b"1", b"3"]
            await receipts[0].handled()  # which a may not have heard before the crash
            waiting = asyncio.create_task(receipts[3].handled())
            await asyncio.sleep(1.0)
            assert not waiting.done()
            for each in left:
                if isinstance(each, Delivery):
                    async with each:
                        pass
            await waiting
            await receipts[1].handled()
            kill(b)
            async with node(loop, "b", 2, disk, **more) as b:
                assert b._gate is not None
                assert not [m for m in b._gate.inbox.unhandled if isinstance(m, Delivery)]
                receipt = await a.send("b", b"4")
                while not isinstance(message := await b.receive(), Delivery):
                    pass
                message.done()
                await receipt.handled()

    run(main)


def test_early_handling_survives_a_snapshot(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("causewire.transport.journal.SNAPSHOT_AFTER", 10)

    async def main(loop: VirtualLoop) -> None:
        disk = Disk()
        async with node(loop, "a", 1, peers={"b": ("127.0.0.1", 2)}) as a:
            b = await node(loop, "b", 2, disk, reports_handled=True).start()
            for k in range(3):
                await a.send("b", b"%d" % k)
            messages = [await b.receive() for _ in range(3)]
            messages[1].done()
            await b.done()
            assert disk.snapshot
            for _ in range(2):
                kill(b)
                b = await node(loop, "b", 2, disk, reports_handled=True).start()
                assert [(await b.receive()).payload for _ in range(2)] == [b"0", b"2"]
            await b.close()

    run(main)


def test_a_full_disk_stops_the_node_and_loses_nothing() -> None:
    async def main(loop: VirtualLoop) -> None:
        disk = Disk()
        async with node(loop, "b", 2) as b:
            a = await node(loop, "a", 1, disk, peers={"b": ("127.0.0.1", 2)}).start()
            receipt = await a.send("b", b"accepted")
            await receipt.delivered()
            disk.full = True
            with pytest.raises(StoreFailed, match="full"):
                await a.send("b", b"refused")
            with pytest.raises(StoreFailed, match="full"):
                await a.send("b", b"refused again")
            with pytest.raises(StoreFailed, match="full"):
                a.send_nowait("b", b"refused again")
            with pytest.raises(StoreFailed, match="full"):
                await a.receive()
            await a.close()
            disk.full = False
            async with node(loop, "a", 1, disk) as a:
                await a.send("b", b"accepted again")
                got = [(await b.receive()).payload for _ in range(2)]
                assert got == [b"accepted", b"accepted again"]

    run(main)


def test_close_is_a_silence_and_leave_is_the_end() -> None:
    async def main(loop: VirtualLoop) -> None:
        disk = Disk()
        async with node(loop, "b", 2, ordered_events=True) as b:
            async with node(loop, "a", 1, disk, peers={"b": ("127.0.0.1", 2)}) as a:
                await a.send("b", b"one")
                first = a.incarnation
            async with node(loop, "a", 1, disk) as a:
                assert a.incarnation == first
                await a.send("b", b"two")
                await b.send("a", b"not handled")
                await asyncio.sleep(0.1)
                await a.close(leave=True)
            a = await node(loop, "a", 1, disk, peers={"b": ("127.0.0.1", 2)}).start()
            assert a.incarnation > first
            assert (await a.receive()).payload == b"not handled"
            await a.send("b", b"three")
            await asyncio.sleep(0.1)
            names = [type(item).__name__ for item in list(b._messages)]
            assert names == ["PeerUp", "Delivery", "Delivery", "PeerLeft", "PeerUp", "Delivery"]
            await a.close()

    run(main)


def test_events_in_order_are_stored_too() -> None:
    async def main(loop: VirtualLoop) -> None:
        disk = Disk()
        async with node(loop, "a", 1, peers={"b": ("127.0.0.1", 2)}) as a:
            b = await node(loop, "b", 2, disk, ordered_events=True).start()
            await a.send("b", b"one")
            await asyncio.sleep(0.1)
            kill(b)
            async with node(loop, "b", 2, disk, ordered_events=True) as b:
                assert tuple(await b.receive()) == PeerUp("a")
                message = await b.receive()
                assert message.payload == b"one"
                assert message_id(message) == ("a", a.incarnation, 1)

    run(main)


@pytest.mark.parametrize("rejoin", [False, True])
def test_given_up_while_it_was_down(rejoin: bool) -> None:
    """Stored messages that nobody had yet fail with the old incarnation; delivered ones stay."""

    async def main(loop: VirtualLoop) -> None:
        disk = Disk()
        async with node(loop, "b", 2) as b:
            a = await node(loop, "a", 1, disk, peers={"b": ("127.0.0.1", 2)}).start()
            await a.send("b", b"arrived")
            await b.receive()
            await b.send("a", b"not handled")
            await asyncio.sleep(0.1)
            loop.network.fate = lambda *_: []
            await a.send("b", b"never arrives")
            kill(a)
            await b.forget("a")
            loop.network.fate = lambda *_: [0.001]
            a = await node(loop, "a", 1, disk, rejoin=rejoin).start()
            await asyncio.sleep(1.0)
            assert (await a.receive()).payload == b"not handled"
            if not rejoin:
                with pytest.raises(Superseded):
                    await a.send("b", b"x")
                await a.rejoin()
            receipt = await a.send("b", b"as a new one")
            await receipt.delivered()
            assert (await b.receive()).payload == b"as a new one"
            incarnation = a.incarnation
            kill(a)
            async with node(loop, "a", 1, disk) as a:  # the store has the new one
                assert a.incarnation == incarnation
                await a.send("b", b"still")
                assert (await b.receive()).payload == b"still"

    run(main)


def test_a_clock_set_back_does_not_matter(monkeypatch: pytest.MonkeyPatch) -> None:
    async def main(loop: VirtualLoop) -> None:
        disk = Disk()
        async with node(loop, "b", 2) as b:
            a = await node(loop, "a", 1, disk, peers={"b": ("127.0.0.1", 2)}).start()
            await a.send("b", b"one")
            kill(a)
            monkeypatch.setattr("causewire.node.base.new_incarnation", lambda: 1)
            async with node(loop, "a", 1, disk) as a:
                await a.send("b", b"two")
                assert [(await b.receive()).payload for _ in range(2)] == [b"one", b"two"]

    run(main)


def test_refusals_at_construction(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    with pytest.raises(LocalProtocolError, match="csps, sps, fifo or adaptive, not mf"):
        Node("a", store=path, protocol="mf")
    assert not path.exists()
    with pytest.raises(ValueError, match="cannot write a trace"):
        Node("a", store=path, trace=tmp_path / "a.jsonl")
    first = Node("a", store=path)
    with pytest.raises(StoreInUse):
        Node("a", store=path)
    asyncio.run(first.close())  # though it was not started
    other = blocking.Node("a", store=path)
    with pytest.raises(StoreInUse):
        Node("a", store=path)
    other.close()
    with pytest.raises(StoreRefused, match="the store of name 'a', not of 'b'"):
        Node("b", store=path)
    with pytest.raises(StoreRefused, match="the store of protocol 'adaptive', not of 'sps'"):
        Node("a", store=path, protocol="sps")
    with pytest.raises(ValueError, match="process name"):
        Node("", store=tmp_path / "b.db")


def test_a_record_that_makes_no_sense_is_refused() -> None:
    async def main(loop: VirtualLoop) -> None:
        disk = Disk()
        disk.batches = [b"\xff nonsense"]
        with pytest.raises(StoreRefused, match="damaged"):
            node(loop, "a", 1, disk)

    run(main)


def test_without_a_store_nothing_is_stored() -> None:
    async def main(loop: VirtualLoop) -> None:
        async with node(loop, "a", 1, peers={"b": ("127.0.0.1", 2)}) as a:
            receipt = await a.send("b", b"x")
            with pytest.raises(NodeError, match="has no store"):
                await receipt.stored()
            with pytest.raises(NodeError, match="has no store"):
                await a.done()
            await a.close(0.0)
            with pytest.raises(DeliveryFailed):
                await receipt.delivered()

    run(main)


def test_closed_before_it_is_stored() -> None:
    async def main(loop: VirtualLoop) -> None:
        disk = Disk(delay=0.5)
        a = await node(loop, "a", 1, disk, peers={"b": ("127.0.0.1", 2)}).start()
        receipt = a.send_nowait("b", b"x")
        await a.close(0.0)
        await receipt.stored()  # closing waits for the store
        late = Node("z")
        with pytest.raises(Closed):
            late.send_nowait("b", b"x")

    run(main)


def test_snapshots_replace_the_record(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("causewire.transport.journal.SNAPSHOT_AFTER", 500)

    async def main(loop: VirtualLoop) -> None:
        disk = Disk()
        async with node(loop, "b", 2) as b:
            a = await node(loop, "a", 1, disk, peers={"b": ("127.0.0.1", 2)}).start()
            for k in range(50):
                await a.send("b", b"%050d" % k)
                assert (await b.receive()).payload == b"%050d" % k
            assert disk.snapshot
            assert sum(map(len, disk.batches)) < 2000
            kill(a)
            async with node(loop, "a", 1, disk) as a:
                await a.send("b", b"last")
                assert (await b.receive()) == ("a", 51, b"last")

    run(main)


def test_a_blocking_node_with_a_store(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    with blocking.Node("b") as b:
        with blocking.Node("a", peers={"b": b.address}, store=path) as a:
            incarnation = a.incarnation
            a.send("b", b"one").delivered(10)
            a.send_nowait("b", b"two").stored(10)
            b.receive(10)
            b.send("a", b"handled").delivered(10)
            b.send("a", b"in hand").delivered(10)
            assert a.receive(10).payload == b"handled"
            a.done()
            assert a.receive(10).payload == b"in hand"
        with blocking.Node("a", store=path) as a:
            assert a.incarnation == incarnation
            assert a.receive(10).payload == b"in hand"
            a.send("b", b"three").delivered(10)
            assert [b.receive(10).payload for _ in range(2)] == [b"two", b"three"]
            with pytest.raises(StoreInUse):
                blocking.Node("a", store=path)
