"""What an application sees when processes fail, leave, and come back. In virtual time."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import causewire
from causewire import blocking
from causewire.core.endpoint import LocalProtocolError
from causewire.node import (
    Closed,
    DeliveryFailed,
    Node,
    NodeRejoined,
    NodeSuperseded,
    PeerForgotten,
    PeerGone,
    PeerLeft,
    PeerUp,
    Superseded,
    TraceFailed,
    TransportConfig,
    message_id,
)
from causewire.node.base import GIVE_UP_AFTER
from causewire.testing.virtual import VirtualLoop, run
from causewire.trace import open_trace

from .test_node import dave, node, watch


def isolate(loop: VirtualLoop, *ports: int) -> None:
    """Cut some processes off from all others."""

    def fate(source: Any, to: Any, data: bytes) -> list[float]:
        return [] if (source[1] in ports) != (to[1] in ports) else [0.001]

    loop.network.fate = fate


def heal(loop: VirtualLoop) -> None:
    loop.network.fate = lambda *_: [0.001]


@pytest.mark.parametrize("protocol", ["csps", "adaptive"])
def test_a_dead_peer_is_given_up_by_default(protocol: str) -> None:
    """Under csps, a message that depends on one to it waits until then."""

    async def main(loop: VirtualLoop) -> None:
        async with (
            node(loop, "alice", protocol=protocol) as alice,
            node(loop, "bob", protocol=protocol) as bob,
        ):
            carol = await node(loop, "carol", protocol=protocol).start()
            other = await dave(loop, protocol=protocol).start()
            await (await alice.send("carol", b"x")).delivered()
            await (await other.send("bob", b"hello")).delivered()
            await bob.receive()
            seen = watch(bob)
            isolate(loop, 3)
            start = loop.now
            receipt = await alice.send("carol", b"lost")
            await alice.send("bob", b"afterwards")
            await bob.receive()
            await bob.send("dave", b"reaction")
            assert (await other.receive(60)).payload == b"reaction"
            if protocol == "adaptive":
                assert loop.now - start < 1
            with pytest.raises(DeliveryFailed, match="carol"):
                await receipt.delivered()
            assert GIVE_UP_AFTER <= loop.now - start < GIVE_UP_AFTER + 1
            await asyncio.sleep(1)  # until bob has heard of it
            with pytest.raises(PeerGone, match="carol"):
                await alice.send("carol", b"x")
            assert PeerForgotten("carol", 0) in seen
            await carol.close(0)
            await other.close(0)

    run(main)


def test_forget_by_hand_and_come_back() -> None:
    async def main(loop: VirtualLoop) -> None:
        nodes = [node(loop, name, give_up_after=None) for name in ("alice", "bob", "carol")]
        alice, bob, carol = [await each.start() for each in nodes]
        await (await alice.send(["bob", "carol"], b"x")).delivered()
        await carol.receive()
        seen = watch(carol)
        waiting = asyncio.create_task(carol.receive())
        await asyncio.sleep(0)
        before = carol.incarnation
        await alice.forget("carol")
        await asyncio.sleep(1)
        with pytest.raises(Superseded, match="rejoin"):
            await waiting
        with pytest.raises(Superseded):
            await carol.send("bob", b"x")
        with pytest.raises(Superseded):
            carol.send_nowait("bob", b"x")
        assert any(isinstance(event, NodeSuperseded) for event in seen)
        await carol.rejoin()
        assert carol.incarnation > before
        assert NodeRejoined("carol", carol.incarnation) in [*seen, *await settle(seen)]
        await (await carol.send(["alice", "bob"], b"back")).delivered()
        for each in (alice, bob):
            while (await each.receive(5)).payload != b"back":
                pass
        await (await bob.send("carol", b"welcome")).delivered()
        assert (await carol.receive(5)).payload == b"welcome"
        for each in (alice, bob, carol):
            assert await each.close()

    run(main)


async def settle(seen: list[Any]) -> list[Any]:
    await asyncio.sleep(0.01)
    return seen


def test_a_node_rejoins_by_itself_and_its_receipts_fail() -> None:
    async def main(loop: VirtualLoop) -> None:
        async with (
            node(loop, "alice", give_up_after=5.0) as alice,
            node(loop, "bob", give_up_after=5.0) as bob,
            node(loop, "carol", give_up_after=60.0, rejoin=True) as carol,
        ):
            await (await carol.send(["alice", "bob"], b"x")).delivered()
            seen = watch(carol)
            isolate(loop, 3)
            receipt = await carol.send("alice", b"lost")
            await alice.send("carol", b"lost as well")
            await asyncio.sleep(10)
            assert alice.peers_up() == ["bob"]
            heal(loop)
            with pytest.raises(DeliveryFailed):
                await receipt.delivered()
            assert any(isinstance(event, NodeRejoined) for event in seen)
            await (await carol.send(["alice", "bob"], b"again")).delivered()
            await (await alice.send("carol", b"welcome")).delivered()
            assert (await carol.receive()).payload == b"welcome"
            assert sorted(bob.peers_up()) == ["alice", "carol"]

    run(main)


def test_both_halves_of_a_partition_go_on_and_meet_again() -> None:
    async def main(loop: VirtualLoop) -> None:
        settings: dict[str, Any] = {"give_up_after": 5.0, "rejoin": True}
        async with (
            node(loop, "alice", **settings) as alice,
            node(loop, "bob", **settings) as bob,
            node(loop, "carol", **settings) as carol,
        ):
            await (await alice.send(["bob", "carol"], b"x")).delivered()
            isolate(loop, 3)
            await alice.send("carol", b"lost")
            await asyncio.sleep(12)
            await (await alice.send("bob", b"among the living")).delivered()
            assert carol.peers_up() == []
            heal(loop)
            await asyncio.sleep(40)
            for each in (alice, bob, carol):
                assert len(each.peers_up()) == 2, each.name
            await (await carol.send(["alice", "bob"], b"together")).delivered()

    run(main)


def test_a_link_that_is_dead_for_good_stops_nobody() -> None:
    """alice and carol cannot reach each other; bob reaches both."""

    async def main(loop: VirtualLoop) -> None:
        settings: dict[str, Any] = {"give_up_after": 5.0, "rejoin": True}
        async with (
            node(loop, "alice", **settings) as alice,
            node(loop, "bob", **settings) as bob,
            node(loop, "carol", **settings) as carol,
        ):
            await (await alice.send(["bob", "carol"], b"x")).delivered()
            loop.network.fate = lambda s, t, _: [] if {s[1], t[1]} == {1, 3} else [0.001]
            receipt = await alice.send("carol", b"lost")
            await asyncio.sleep(30)
            with pytest.raises(DeliveryFailed):
                await receipt.delivered()
            await (await bob.send(["alice", "carol"], b"to both")).delivered()
            await (await alice.send("bob", b"y")).delivered()
            await (await carol.send("bob", b"z")).delivered()

    run(main)


def test_a_full_disk_does_not_touch_messages(tmp_path: Path) -> None:
    """The trace ends; the node does not."""

    class Full:
        def __init__(self) -> None:
            self.rows = 0

        def write(self, event: object) -> None:
            self.rows += 1
            if self.rows > 5:
                raise OSError(28, "No space left on device")

        def flush(self) -> None:
            raise OSError(28, "No space left on device")

        close = flush

    async def main(loop: VirtualLoop) -> None:
        path = tmp_path / "alice.jsonl"
        async with node(loop, "alice", trace=path) as alice, node(loop, "bob") as bob:
            seen = watch(alice)
            await (await alice.send("bob", b"x")).delivered()
            assert alice._recorder is not None
            alice._recorder._writer.close()
            alice._recorder._writer = Full()  # type: ignore[assignment]
            receipts = [await alice.send("bob", b"%d" % k) for k in range(300)]
            await bob.send("alice", b"y")
            for receipt in receipts:
                await receipt.delivered()
            assert (await alice.receive()).payload == b"y"
            (failed,) = [event for event in seen if isinstance(event, TraceFailed)]
            assert "No space left" in failed.reason
            assert (alice.stats()["trace_failed"], bob.stats()["trace_failed"]) == (1, 0)
            assert 'causewire_trace_failed_total{node="alice"} 1' in alice.metrics().splitlines()
        assert [event.kind for event in open_trace(path).events()][:2] == ["start", "send"]

    run(main)


@pytest.mark.parametrize("kind", [Node, blocking.Node])
def test_a_disk_that_is_full_when_the_node_closes_is_reported_as_well(
    kind: type[Any], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    def sabotage(alice: Any) -> None:
        writer = alice._recorder._writer
        close = writer.close

        def full() -> None:
            close()
            raise OSError(28, "No space left on device")

        writer.close = full

    async def main() -> None:
        async with Node("alice", trace=tmp_path / "alice.jsonl") as alice:
            sabotage(alice)

    if kind is Node:
        asyncio.run(main())
    else:
        with blocking.Node("alice", trace=tmp_path / "alice.jsonl") as alice:
            sabotage(alice)
    assert "the trace ends here" in caplog.text


def test_a_resolver_that_raises_is_logged_and_asked_again(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def main(loop: VirtualLoop) -> None:
        asked = 0

        def resolver(name: str) -> str:
            nonlocal asked
            asked += 1
            if asked == 2:
                raise ZeroDivisionError("a bug in the resolver")
            return "127.0.0.1:2" if asked > 3 else "127.0.0.1:9"

        async with node(loop, "alice", peers={}, resolver=resolver) as alice:
            receipt = await alice.send("bob", b"x")
            await asyncio.sleep(5)
            async with node(loop, "bob", peers={}) as bob:
                await receipt.delivered()
                assert (await bob.receive()).payload == b"x"

    with caplog.at_level(logging.WARNING, "causewire.resolver"):
        run(main)
    assert "a bug in the resolver" in caplog.text


def test_a_hostname_that_does_not_resolve_yet_does_not_prevent_the_start(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def main(loop: VirtualLoop) -> None:
        known = False

        async def getaddrinfo(host: str, port: int, **_: Any) -> list[Any]:
            if not known:
                raise OSError("no such host")
            return [(0, 0, 0, "", ("127.0.0.1", port))]

        monkeypatch.setattr(loop, "getaddrinfo", getaddrinfo)
        async with node(loop, "alice", peers={"bob": "bob.example:2"}) as alice:
            await asyncio.sleep(5)
            known = True
            async with node(loop, "bob", peers={}) as bob:
                await asyncio.sleep(5)
                await (await alice.send("bob", b"x")).delivered()
                assert (await bob.receive()).payload == b"x"

    run(main)


def test_log_lines(caplog: pytest.LogCaptureFixture) -> None:
    async def main(loop: VirtualLoop) -> None:
        async with node(loop, "alice"):
            bob = await node(loop, "bob").start()
            await asyncio.sleep(1)
            isolate(loop, 2)
            await asyncio.sleep(40)
            await bob.close(0)

    with caplog.at_level(logging.INFO):
        run(main)
    lines = [(r.name, r.levelname, r.getMessage()) for r in caplog.records]
    assert ("causewire.peers", "INFO", "alice: bob is up") in lines
    assert any(line.startswith("alice: bob has not answered for") for _, _, line in lines)
    assert ("causewire.peers", "ERROR", "alice: bob is gone; 0 messages to it failed") in lines


def test_what_cannot_be_forgotten() -> None:
    async def main(loop: VirtualLoop) -> None:
        alice = node(loop, "alice")
        with pytest.raises(Closed):
            await alice.forget("bob")
        async with alice:
            with pytest.raises(LocalProtocolError, match="zoe"):
                await alice.forget("zoe")

    run(main)


def test_the_blocking_node_forgets_and_rejoins() -> None:
    config = TransportConfig(greet_again=0.01)
    with (
        blocking.Node("alice", config=config) as alice,
        blocking.Node("bob", config=config, peers={"alice": alice.address}) as bob,
    ):
        bob.send("alice", b"x").delivered(10)
        alice.receive(10)
        events = bob.events()
        alice.forget("bob")
        with pytest.raises(PeerGone):
            alice.send("bob", b"x")
        while not isinstance(event := next(events), NodeSuperseded):
            pass
        with pytest.raises(Superseded):
            bob.send("alice", b"x")
        bob.rejoin()
        assert bob.incarnation > event.incarnation
        bob.send("alice", b"back").delivered(10)
        assert alice.receive(10).payload == b"back"
        alice.send("bob", b"welcome").delivered(10)


PROGRAM = """
import asyncio, sys
from causewire.node import Node, run

async def main():
    async with Node("bob", peers={"alice": ("127.0.0.1", int(sys.argv[1]))}) as bob:
        await (await bob.send("alice", b"x")).delivered()
        print("ready", flush=True)
        async for _ in bob:
            pass

run(main())
"""


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_signals_leave_properly(number: signal.Signals) -> None:
    with blocking.Node("alice") as alice:
        events = alice.events()
        source = str(Path(causewire.__file__).parent.parent)
        process = subprocess.Popen(
            [sys.executable, "-c", PROGRAM, str(alice.address[1])],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=os.environ | {"PYTHONPATH": source},
        )
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        process.send_signal(number)
        while not isinstance(event := next(events), PeerLeft):
            assert isinstance(event, PeerUp)
        assert event == PeerLeft("bob", 0)
        assert process.wait(30) == 0  # the iteration ended, and so did the program
        process.stdout.close()


SENDER = """
import asyncio, sys
from causewire.node import Node, run

async def main():
    bob = await Node("bob", peers={"alice": ("127.0.0.1", int(sys.argv[1]))}).start()
    await (await bob.send("alice", b"x")).delivered()
    print("ready", flush=True)
    while True:
        await bob.send("alice", b"x")
        await asyncio.sleep(0.01)

run(main())
"""


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_signals_end_a_program_that_sends(number: signal.Signals) -> None:
    with blocking.Node("alice") as alice:
        events = alice.events()
        process = subprocess.Popen(
            [sys.executable, "-c", SENDER, str(alice.address[1])],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=os.environ | {"PYTHONPATH": str(Path(causewire.__file__).parent.parent)},
        )
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        process.send_signal(number)
        _, said = process.communicate(timeout=30)
        assert (process.returncode, said) == (128 + number, b"")
        while not isinstance(event := next(events), PeerLeft):
            assert isinstance(event, PeerUp)
        assert event == PeerLeft("bob", 0)


def test_peer_events_in_the_order_of_messages() -> None:
    async def main(loop: VirtualLoop) -> None:
        async with node(loop, "alice", ordered_events=True) as alice:
            bob = await node(loop, "bob").start()
            for k in range(3):
                await bob.send("alice", b"%d" % k)
            await bob.close()
            again = await node(loop, "bob", incarnation=1 << 20).start()
            await (await again.send("alice", b"new")).delivered()
            await again.close()
            await asyncio.sleep(0.1)
            seen: list[Any] = [await alice.receive(1) for _ in range(8)]
            told = [m.payload if isinstance(m, causewire.Delivery) else type(m) for m in seen]
            assert told == [PeerUp, b"0", b"1", b"2", PeerLeft, PeerUp, b"new", PeerLeft]
            ids = [message_id(m) for m in seen if isinstance(m, causewire.Delivery)]
            assert ids[0] == ("bob", 2000, 1)
            assert ids[3] == ("bob", 2000 + (1 << 20), 1)
            assert len(set(ids)) == 4
            with pytest.raises(TimeoutError):
                await alice.receive(1)

    run(main)


def test_messages_to_oneself_have_the_incarnation_of_their_sender() -> None:
    async def main(loop: VirtualLoop) -> None:
        async with node(loop, "alice", ordered_events=True) as alice, node(loop, "bob") as bob:
            await alice.send("alice", b"x")
            await (await alice.send(["alice", "bob"], b"y")).delivered()
            got = [item for item in alice._messages if isinstance(item, causewire.Delivery)]
            assert [message_id(m) for m in got] == [("alice", alice.incarnation, k) for k in (1, 2)]
            assert message_id(await bob.receive()) == ("alice", 0, 2)  # he has not asked for it

    run(main)
