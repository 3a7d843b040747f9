"""Cancelled messages and stores: a crash brings none of them back."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from causewire import blocking
from causewire.node import MessageCancelled, MessageExpired
from causewire.testing.disk import Disk
from causewire.testing.virtual import VirtualLoop, run

from .test_store import kill, node

B = {"b": ("127.0.0.1", 2)}


@pytest.mark.parametrize("protocol", ["csps", "sps", "fifo", "adaptive"])
@pytest.mark.parametrize("snapshot", [False, True])
def test_the_sender_crashes(protocol: str, snapshot: bool) -> None:
    """A long message, the first, the last, and one in the middle of others are cancelled."""

    async def main(loop: VirtualLoop) -> None:
        disk = Disk()
        a = await node(loop, "a", 1, disk, peers=B, protocol=protocol).start()
        receipts = [await a.send("b", p) for p in (b"0", b"1", bytes(9000), b"3", b"4")]
        for k in (0, 2, 4):
            assert receipts[k].cancel()
        await receipts[2].stored()
        if snapshot:
            assert a._transport.journal is not None
            a._transport.journal.snapshot_due = True
            last = await a.send("b", b"5")
            assert last.cancel()
            await last.stored()
        kill(a)
        async with (
            node(loop, "a", 1, disk, protocol=protocol) as again,
            node(loop, "b", 2, protocol=protocol) as b,
        ):
            await (await again.send("b", b"next")).delivered()
            assert [(await b.receive()).payload for _ in range(3)] == [b"1", b"3", b"next"]
            assert b.stats()["delivered"] == 3
            await asyncio.sleep(1)
            assert again.idle

    run(main)


@pytest.mark.parametrize("protocol", ["csps", "sps", "adaptive"])
@pytest.mark.parametrize("snapshot", [False, True])
def test_the_sender_crashes_while_the_protocol_holds_the_message(
    protocol: str, snapshot: bool
) -> None:
    """Under `adaptive` with K = 0, it waits for parts of its list to be confirmed."""

    async def main(loop: VirtualLoop) -> None:
        disk = Disk()
        more: dict[str, Any] = {"protocol": protocol}
        if protocol == "adaptive":
            more["protocol_options"] = {"cap": 0}
        peers = B | {"c": ("127.0.0.1", 3)}
        a = await node(loop, "a", 1, disk, peers=peers, **more).start()
        await a.send("b", b"x")
        _, receipt, _ = [await a.send("c", b"%d" % k) for k in range(3)]
        assert receipt.cancel()
        await receipt.stored()
        if snapshot:
            assert a._transport.journal is not None
            a._transport.journal.snapshot_due = True
            await (await a.send("b", b"z")).stored()
        kill(a)
        async with (
            node(loop, "a", 1, disk, **more) as again,
            node(loop, "b", 2, **more),
            node(loop, "c", 3, **more) as c,
        ):
            await (await again.send("c", b"next")).delivered()
            assert [(await c.receive()).payload for _ in range(3)] == [b"0", b"2", b"next"]
            assert c.stats()["delivered"] == 3

    run(main)


@pytest.mark.parametrize("protocol", ["csps", "adaptive"])
@pytest.mark.parametrize("snapshot", [False, True])
def test_the_receiver_crashes(protocol: str, snapshot: bool) -> None:
    """What was cancelled is not among the messages that come again."""

    async def main(loop: VirtualLoop) -> None:
        disk = Disk()
        async with node(loop, "a", 1, peers=B, protocol=protocol) as a:
            receipts = [await a.send("b", b"%d" % k) for k in range(4)]
            assert receipts[1].cancel()
            b = await node(loop, "b", 2, disk, protocol=protocol).start()
            await receipts[3].delivered()
            if snapshot:
                assert b._transport.journal is not None
                b._transport.journal.snapshot_due = True
                await (await a.send("b", b"more")).delivered()
            kill(b)
            async with node(loop, "b", 2, disk, protocol=protocol) as b:
                await (await a.send("b", b"last")).delivered()
                expected = [b"0", b"2", b"3", *([b"more"] if snapshot else []), b"last"]
                for payload in expected:
                    assert (await b.receive()).payload == payload
                    await b.done()
                assert b._gate is not None
                assert b._gate.inbox.handled == len(expected)

    run(main)


def test_stored_waits_until_the_store_has_the_cancellation() -> None:
    async def main(loop: VirtualLoop) -> None:
        disk = Disk(delay=0.5)
        async with node(loop, "a", 1, disk, peers=B, drain=0.0) as a:
            receipt = await a.send("b", b"x")
            start = loop.time()
            assert receipt.cancel()
            await receipt.stored()
            assert loop.time() >= start + 0.5
            await asyncio.sleep(0)

    run(main)


def test_the_blocking_node(tmp_path: Path) -> None:
    peers = {"b": ("127.0.0.1", 9)}
    with blocking.Node("a", peers=peers, store=tmp_path / "a", drain=0.0) as a:
        receipt = a.send("b", b"x")
        assert receipt.cancel()
        receipt.stored(60)
        expires = a.send("b", b"x", ttl=0.01)
        with pytest.raises(MessageExpired):
            expires.delivered(60)
        with pytest.raises(MessageCancelled):
            receipt.delivered()


@pytest.mark.parametrize("protocol", ["csps", "sps", "fifo", "adaptive"])
@pytest.mark.parametrize("snapshot", [False, True], ids=["records", "snapshot"])
@pytest.mark.parametrize("clock", ["right", "set back"])
def test_a_time_to_live_survives_a_crash(
    protocol: str, snapshot: bool, clock: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What expires while the process is down, or soon afterwards, is not delivered."""

    async def main(loop: VirtualLoop) -> None:
        behind = 0.0
        monkeypatch.setattr("time.time", lambda: 1e9 + loop.now - behind)
        disk = Disk()
        a = await node(loop, "a", 1, disk, peers=B, protocol=protocol).start()
        for k, ttl in enumerate((None, 10.0, 30.0, 60.0, 3600.0)):
            await a.send("b", b"%d" % k, ttl=ttl)
        await a.send(["b", "a"], b"here", ttl=30.0)  # it is delivered here, so it cannot expire
        if snapshot:
            assert a._transport.journal is not None
            a._transport.journal.snapshot_due = True
            await (await a.send("b", b"last", ttl=5.0)).stored()
        kill(a)
        await asyncio.sleep(20)
        behind = 1e6 if clock == "set back" else 0.0
        async with node(loop, "a", 1, disk, peers=B, protocol=protocol) as again:
            await asyncio.sleep(20)
            async with node(loop, "b", 2, protocol=protocol) as b:
                await (await again.send("b", b"next")).delivered()
                got = [(await b.receive()).payload for _ in range(b.stats()["delivered"])]
                kept = [b"0", b"3", b"4", b"here", b"next"]
                if clock == "set back":  # each has its whole time again, and no more
                    kept.insert(1, b"2")
                assert got == kept
                await asyncio.sleep(100)
                assert again.idle
                assert again._transport.journal is not None
                again._transport.journal.snapshot_due = True
                await again.send("b", b"end")
                await asyncio.sleep(1)
                assert not again._transport.journal.deadlines

    run(main)
