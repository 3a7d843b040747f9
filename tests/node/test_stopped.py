"""A node whose store has failed does nothing more; twins that rejoin leave each other time."""

from __future__ import annotations

import asyncio
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from causewire import blocking
from causewire.kit import Entered, Kit
from causewire.node import NameInUse, Node, NodeRejoined, PeerForgotten, Superseded
from causewire.node.rejoining import LONGEST, Rejoining
from causewire.store import SqliteStore, StoreFailed
from causewire.testing.disk import Disk, DiskStore
from causewire.testing.virtual import VirtualLoop, run

PLACES = {"a": "127.0.0.1:1", "b": "127.0.0.1:2"}


def made(loop: VirtualLoop, name: str, **settings: Any) -> Node:
    peers = {other: place for other, place in PLACES.items() if other != name}
    sock: Any = loop.network.socket(int(PLACES[name][-1]))
    return Node(name, sock=sock, peers=peers, rejoin=True, give_up_after=3.0, drain=0.1, **settings)


def no_errors(loop: VirtualLoop) -> list[str]:
    """Return a list that gets what callbacks raise."""
    errors: list[str] = []
    loop.set_exception_handler(lambda _, context: errors.append(str(context)))
    return errors


def test_who_has_stopped_does_not_come_back_by_itself() -> None:
    """Others give it up; it neither hears of that nor goes on, whatever `rejoin` says."""

    async def main(loop: VirtualLoop) -> None:
        errors = no_errors(loop)
        disk = Disk()
        seen: Counter[type] = Counter()
        async with made(loop, "b") as b:
            a = await made(loop, "a", store=DiskStore(disk), incarnation=1001).start()

            async def watch() -> None:
                async for event in a.events():
                    seen[type(event)] += 1

            watching = asyncio.create_task(watch())
            events = b.events()
            await (await a.send("b", b"accepted")).delivered()
            disk.full = True
            with pytest.raises(StoreFailed):
                await a.send("b", b"refused")
            while not isinstance(await anext(events), PeerForgotten):
                pass
            for _ in range(20):
                await b.send("a", b"never arrives", wait_for_peer=True)
                await asyncio.sleep(0.5)
            assert not seen[NodeRejoined]
            assert a.incarnation == 1001
            with pytest.raises(StoreFailed):
                await a.receive()
            watching.cancel()
            await a.close()
        assert errors == []

    run(main)


def test_who_reads_a_group_is_told_at_once_that_the_store_has_failed() -> None:
    async def main(loop: VirtualLoop) -> None:
        errors = no_errors(loop)
        disk = Disk()
        async with (
            made(loop, "b", ordered_events=True) as b,
            Kit(b, codec="json") as kit_b,
        ):
            a = await made(loop, "a", store=DiskStore(disk), ordered_events=True).start()
            kit_a = await Kit(a, codec="json").start()
            inside = {name: asyncio.Event() for name in "ab"}

            async def read(kit: Kit, name: str) -> None:
                async for item in kit.stay("group", ["a", "b"]):
                    if isinstance(item, Entered):
                        inside[name].set()

            reading = [asyncio.create_task(read(kit_a, "a")), asyncio.create_task(read(kit_b, "b"))]
            for event in inside.values():
                await event.wait()
            disk.full = True
            start = loop.now
            await b.send("a", b"it cannot be stored")
            with pytest.raises(StoreFailed, match="full"):
                await reading[0]
            assert loop.now - start < 1.0
            reading[1].cancel()
            await kit_a.close()
            await a.close()
        assert errors == []

    run(main)


def test_who_is_entering_a_group_is_told_that_the_store_has_failed() -> None:
    async def main(loop: VirtualLoop) -> None:
        disk = Disk()
        async with made(loop, "b") as b:  # without a kit: it does not answer
            a = await made(loop, "a", store=DiskStore(disk), ordered_events=True).start()
            kit = await Kit(a, codec="json").start()

            async def read() -> None:
                async for _ in kit.stay("group", ["b"]):
                    pass

            tasks = [
                asyncio.create_task(read()),
                asyncio.create_task(kit.join("another", ["b"])),
            ]
            await asyncio.sleep(0.3)
            disk.full = True
            await b.send("a", b"it cannot be stored")
            for task in tasks:
                with pytest.raises(StoreFailed, match="full"):
                    await task
            await kit.close()
            await a.close()

    run(main)


def test_the_timer_of_who_has_stopped_does_not_fire() -> None:
    async def main(loop: VirtualLoop) -> None:
        errors = no_errors(loop)
        disk = Disk()
        async with made(loop, "b") as b:
            a = await made(loop, "a", store=DiskStore(disk)).start()
            await (await a.send("b", b"accepted")).delivered()
            loop.network.fate = lambda *_: []
            await a.send("b", b"not delivered")
            await asyncio.sleep(0.1)
            assert a._bridge is not None
            assert a._bridge._timer is not None
            disk.full = True
            with pytest.raises(StoreFailed):
                await a.send("b", b"refused")
            assert a._bridge._timer is None
            transport = a._transport
            for _ in range(20):  # nor would it do anything
                if (due := transport.next_timer()) is not None:
                    transport.timer_fired(due)
            assert transport.datagrams_to_send(loop.now) == []
            assert not await a.close()
            loop.network.fate = lambda *_: [0.001]
            assert await b.close()
        assert errors == []

    run(main)


@pytest.mark.parametrize("rejoin", [True, False])
def test_two_living_processes_of_one_name(rejoin: bool) -> None:
    """Each puts the other one out when it comes back, and waits longer each time."""

    async def main(loop: VirtualLoop) -> None:
        seen: Counter[tuple[str, str]] = Counter()
        socks: list[Any] = [loop.network.socket(port) for port in (9, 1, 2)]
        async with Node("hub", sock=socks[0], give_up_after=3.0, drain=0.0) as hub:
            settings: Any = {"peers": {"hub": "127.0.0.1:9"}, "rejoin": rejoin, "drain": 0.0}
            async with (
                Node("twin", sock=socks[1], **settings) as one,
                Node("twin", sock=socks[2], **settings) as two,
            ):

                async def watch(node: Node, name: str) -> None:
                    async for event in node.events():
                        seen[name, type(event).__name__] += 1

                async def write(node: Node) -> None:
                    while True:
                        try:
                            await node.send("hub", b"x")
                        except Superseded:
                            seen["refused", ""] += 1
                        await asyncio.sleep(0.1)

                tasks = [
                    asyncio.create_task(job)
                    for job in (watch(one, "one"), watch(two, "two"), watch(hub, "hub"))
                ]
                tasks += [asyncio.create_task(write(node)) for node in (one, two)]
                await asyncio.sleep(120.0)
                for task in tasks:
                    task.cancel()
        assert seen["one", NameInUse.__name__] > 20
        assert seen["two", NameInUse.__name__] > 20
        assert seen["refused", ""]
        assert seen["hub", "PeerRestarted"] <= (25 if rejoin else 1)

    run(main)


def test_a_reader_waits_until_its_node_is_back() -> None:
    async def main(loop: VirtualLoop) -> None:
        async with made(loop, "a", incarnation=1001) as a, made(loop, "b", incarnation=2001) as b:
            got: list[bytes] = []

            async def read() -> None:
                nonlocal got
                async for message in b:
                    got += [message.payload]
                    assert len(got) < 9

            reading = asyncio.create_task(read())
            for k in range(4):
                await (await a.send("b", b"%d" % k, wait_for_peer=True)).delivered()
                await a.forget("b")
                await asyncio.sleep(0.2)
            await asyncio.sleep(10.0)
            await (await a.send("b", b"at last")).delivered()
            assert got == [b"0", b"1", b"2", b"3", b"at last"]
            assert not reading.done()
            reading.cancel()

    run(main)


def test_the_pauses_double_and_end() -> None:
    rejoining = Rejoining()
    now, pauses = 100.0, []
    for _ in range(12):
        begun = now
        while not rejoining.now(now):
            assert rejoining.until is not None
            now = rejoining.until
        rejoining.rejoined(now)
        assert rejoining.until is None
        pauses.append(now - begun)
        now += 1.0
    assert pauses[:5] == [0.0, 0.5, 1.0, 2.0, 4.0]
    assert pauses[-1] == LONGEST
    assert rejoining.now(now + 10 * LONGEST + 1)  # it has lasted


class FullDisk(SqliteStore):
    """A store whose writes fail from some time on."""

    full = False

    def write(self, batch: bytes) -> None:
        if self.full:
            raise StoreFailed("the disk is full")
        super().write(batch)


def test_a_blocking_node_with_a_store_that_failed_stays_out(tmp_path: Path) -> None:
    disk = FullDisk(tmp_path / "a.db")
    with blocking.Node("b", give_up_after=0.5) as b:
        a = blocking.Node(
            "a", store=disk, peers={"b": b.address}, rejoin=True, give_up_after=0.5, drain=0.1
        ).start()
        a.send("b", b"accepted").delivered(5.0)
        disk.full = True
        with pytest.raises(StoreFailed):
            a.send("b", b"refused")
        incarnation = a.incarnation
        events = b.events()
        while not isinstance(next(events), PeerForgotten):
            pass
        assert a.incarnation == incarnation
        a.close()


def test_a_receipt_says_that_its_message_was_not_stored_also_when_asked_later() -> None:
    async def main(loop: VirtualLoop) -> None:
        disk = Disk()
        async with made(loop, "b"):
            a = await made(loop, "a", store=DiskStore(disk), incarnation=1001).start()
            await asyncio.sleep(1)
            disk.full = True
            receipt = a.send_nowait("b", b"refused")
            await asyncio.sleep(1)
            with pytest.raises(StoreFailed):
                await receipt.stored()
            await a.close()

    run(main)
