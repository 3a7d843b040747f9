"""Nodes, in virtual time: what an application sees."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from causewire import protocols
from causewire.core.endpoint import LocalProtocolError
from causewire.node import (
    Closed,
    Config,
    DeliveryFailed,
    Event,
    Full,
    Message,
    MessageBlocked,
    Node,
    PeerMoved,
    PeerRestarted,
    PeerSilent,
    PeerUp,
    TransportConfig,
)
from causewire.testing.virtual import VirtualLoop, run

PORTS = {"alice": 1, "bob": 2, "carol": 3}


def node(loop: VirtualLoop, name: str, incarnation: int = 0, **settings: Any) -> Node:
    """A node that knows all others."""
    peers = {n: f"127.0.0.1:{port}" for n, port in PORTS.items() if n != name}
    settings = {"peers": peers} | settings
    sock: Any = loop.network.socket(PORTS[name])
    return Node(name, sock=sock, incarnation=1000 * PORTS[name] + incarnation, **settings)


def dave(loop: VirtualLoop, **settings: Any) -> Node:
    """A node that nobody expects, and that gets to know the others by itself."""
    peers = {name: f"127.0.0.1:{port}" for name, port in PORTS.items()}
    sock: Any = loop.network.socket(4)
    return Node("dave", sock=sock, incarnation=4000, peers=peers, **settings)


def watch(source: Node) -> list[Event]:
    """A list of the node's events, that grows until it closes."""
    seen: list[Event] = []

    async def collect() -> None:
        async for event in source.events():
            seen.append(event)  # noqa: PERF401

    task = asyncio.get_running_loop().create_task(collect())
    _watching.add(task)
    task.add_done_callback(_watching.discard)
    return seen


_watching: set[asyncio.Task[None]] = set()


async def take(source: Node, count: int) -> list[Message]:
    return [await source.receive(60) for _ in range(count)]


def test_hello() -> None:
    async def main(loop: VirtualLoop) -> None:
        async with node(loop, "alice") as alice, node(loop, "bob") as bob:
            receipt = await alice.send("bob", b"hello")
            assert receipt.mid == 1
            assert receipt.missing == ("bob",)
            assert await bob.receive() == Message("alice", 1, b"hello")
            await receipt.delivered()
            assert receipt.missing == receipt.failed == ()
            assert repr(receipt) == "<Receipt 1: delivered>"

    run(main)


def test_one_multicast_is_one_message() -> None:
    async def main(loop: VirtualLoop) -> None:
        async with node(loop, "alice") as a, node(loop, "bob") as b, node(loop, "carol") as c:
            receipt = await a.send(["bob", "carol", "alice"], b"to all")
            for each in (a, b, c):
                assert await each.receive() == ("alice", 1, b"to all")
            await receipt.delivered()
            assert a.stats()["sent"] == 1

    run(main)


def test_iteration_ends_when_the_node_closes() -> None:
    async def main(loop: VirtualLoop) -> None:
        bob = await node(loop, "bob").start()
        got: list[bytes] = []

        async def listen() -> None:
            async for message in bob:
                got.append(message.payload)  # noqa: PERF401

        listening = asyncio.create_task(listen())
        async with node(loop, "alice") as alice:
            for k in range(1000):
                await alice.send("bob", b"%d" % k)
        assert alice.drained
        await bob.close()
        await listening
        assert got == [b"%d" % k for k in range(1000)]

    run(main)


def test_a_reply_never_overtakes_what_it_replies_to() -> None:
    """The story of causal delivery: carol is far from alice, and bob is near to both."""

    async def main(loop: VirtualLoop) -> None:
        def fate(source: Any, to: Any, data: bytes) -> list[float]:
            return [0.5 if (source[1], to[1]) == (1, 3) else 0.001]

        loop.network.fate = fate
        async with node(loop, "alice") as a, node(loop, "bob") as b, node(loop, "carol") as c:
            await a.send("carol", b"question")
            await a.send("bob", b"ask carol about my question")
            await b.receive()
            await b.send("carol", b"what is the answer?")
            assert [m.payload for m in await take(c, 2)] == [b"question", b"what is the answer?"]

    run(main)


def test_send_waits_for_room_and_for_nothing_else() -> None:
    async def main(loop: VirtualLoop) -> None:
        config = Config(peer_messages=10, queue_messages=5)
        bob = await node(loop, "bob", config=config).start()
        alice = await node(loop, "alice", config=config).start()
        sent = 0

        async def send_all() -> None:
            nonlocal sent
            for k in range(100):
                await alice.send("bob", b"%d" % k)
                sent += 1

        sending = asyncio.create_task(send_all())
        await asyncio.sleep(10)
        assert sent == 15  # ten accepted, five in the queue
        with pytest.raises(Full):
            alice.send_nowait("bob", b"x")
        assert [m.payload for m in await take(bob, 100)] == [b"%d" % k for k in range(100)]
        await sending
        await alice.close()
        await bob.close()

    run(main)


def test_a_receipt_fails_when_the_receiver_is_gone() -> None:
    async def main(loop: VirtualLoop) -> None:
        alice = await node(loop, "alice").start()
        events = watch(alice)
        bob = await node(loop, "bob").start()
        await (await alice.send("bob", b"x")).delivered()
        bob._bridge.stop()  # type: ignore[union-attr]
        receipt = await alice.send("bob", b"never")
        await asyncio.sleep(5)
        assert any(isinstance(event, PeerSilent) for event in events)
        again = await node(loop, "bob", incarnation=1).start()
        with pytest.raises(DeliveryFailed, match=r"message 2 is not known .* by bob"):
            await receipt.delivered()
        assert receipt.failed == ("bob",)
        assert PeerRestarted("bob", 1) in events
        await alice.send("bob", b"welcome back")
        assert (await again.receive()).payload == b"welcome back"
        await alice.close()
        await again.close()

    run(main)


def test_closing_says_whether_all_was_delivered(caplog: pytest.LogCaptureFixture) -> None:
    async def main(loop: VirtualLoop) -> None:
        async with node(loop, "alice", drain=2.0) as alice:
            await alice.send("bob", b"nobody is there")
            before = loop.now
        assert loop.now - before == pytest.approx(2.0, abs=0.1)
        assert alice.drained is False
        with pytest.raises(Closed):
            await alice.send("bob", b"x")
        with pytest.raises(Closed):
            await alice.receive()
        assert await alice.close() is False

    run(main)
    assert "not delivered: {'bob': 1}" in caplog.text


def test_leaving_by_an_exception_does_not_wait() -> None:
    async def main(loop: VirtualLoop) -> None:
        async def fail() -> None:
            async with node(loop, "alice") as alice:
                await alice.send("bob", b"nobody is there")
                raise KeyError

        with pytest.raises(KeyError):
            await fail()
        assert loop.now < 0.1

    run(main)


def test_blocked_names_the_culprit_also_where_nobody_talks_to_him() -> None:
    async def main(loop: VirtualLoop) -> None:
        a = await node(loop, "alice", protocol="csps").start()
        b = await node(loop, "bob", protocol="csps").start()
        c = await node(loop, "carol", protocol="csps").start()
        d = await dave(loop, protocol="csps").start()
        await asyncio.sleep(1)
        del loop.network.sockets["127.0.0.1", 3]  # carol stands still
        await a.send("carol", b"x")
        await a.send("bob", b"y")
        await b.receive()
        await b.send("dave", b"held back at bob")
        seen = watch(b)
        await asyncio.sleep(12)
        blocked = [event for event in seen if isinstance(event, MessageBlocked)]
        (reason,) = b.blocked()
        assert (reason.where, reason.peer, reason.messages) == ("held", "dave", 1)
        assert str(reason) == (
            "1 message to dave held here, waiting for the permit of alice "
            "for its message 2, which waits for carol"
        )
        assert "nothing has come from carol for" in str(a.blocked()[0])
        assert len(blocked) == 1
        assert 5 <= blocked[0].reason.seconds < 8
        for each in (a, b, c, d):
            await each.close(0)

    run(main)


def test_a_peer_that_moves_goes_on() -> None:
    async def main(loop: VirtualLoop) -> None:
        async with node(loop, "alice") as alice, node(loop, "bob") as bob:
            seen = watch(alice)
            await (await alice.send("bob", b"one")).delivered()
            bob._socket.move(77)  # type: ignore[union-attr]
            await bob.send("alice", b"from elsewhere")
            await alice.receive()
            await (await alice.send("bob", b"two")).delivered()
            assert [m.payload for m in await take(bob, 2)] == [b"one", b"two"]
            assert PeerMoved("bob", ("127.0.0.1", 77)) in seen

    run(main)


def test_a_resolver_finds_peers_and_finds_them_again() -> None:
    async def main(loop: VirtualLoop) -> None:
        places = {"bob": "127.0.0.1:2"}

        async def resolver(name: str) -> str | None:
            return places.get(name)

        async with (
            node(loop, "alice", peers={}, resolver=resolver) as alice,
            node(loop, "bob", peers={}, config=TransportConfig(keepalive=60.0)) as bob,
        ):
            seen = watch(alice)
            await (await alice.send("bob", b"one")).delivered()
            with pytest.raises(LocalProtocolError, match="zoe"):
                await alice.send("zoe", b"x")
            await asyncio.sleep(1)
            bob._socket.move(77)  # type: ignore[union-attr]
            receipt = await alice.send("bob", b"two")
            await asyncio.sleep(5)
            assert receipt.missing
            places["bob"] = "127.0.0.1:77"
            await receipt.delivered()
            assert PeerUp("bob") in seen
            assert not any(isinstance(event, PeerMoved) for event in seen)

    run(main)


def test_peers_can_be_added_while_running() -> None:
    async def main(loop: VirtualLoop) -> None:
        async with node(loop, "alice", peers={}) as alice, node(loop, "bob", peers={}) as bob:
            with pytest.raises(LocalProtocolError):
                await alice.send("bob", b"x")
            await alice.add_peer("bob", ("127.0.0.1", 2))
            await alice.send("bob", b"x")
            await bob.receive()
            await bob.send("alice", b"y")  # who made herself known
            assert (await alice.receive()).payload == b"y"

    run(main)


@pytest.mark.parametrize("protocol", ["ks", "mf", "cykas", "rst", "fifo", "sps"])
def test_other_protocols(protocol: str) -> None:
    async def main(loop: VirtualLoop) -> None:
        nodes = [await node(loop, name, protocol=protocol).start() for name in PORTS]
        a, b, c = nodes
        receipts = [await a.send(to, b"%d" % k) for k in range(20) for to in ("bob", "carol")]
        for receipt in receipts:
            await receipt.delivered()
        for each in (b, c):
            assert [m.payload for m in await take(each, 20)] == [b"%d" % k for k in range(20)]
        for each in nodes:
            assert await each.close()

    run(main)


def test_payloads_are_bytes() -> None:
    async def main(loop: VirtualLoop) -> None:
        async with node(loop, "alice") as alice, node(loop, "bob") as bob:
            for payload in (bytearray(b"x"), memoryview(b"x")):
                await alice.send("bob", payload)  # type: ignore[arg-type]
                assert (await bob.receive()).payload == b"x"
            with pytest.raises(TypeError, match="str"):
                await alice.send("bob", "text")  # type: ignore[arg-type]

    run(main)


def test_a_lossy_network_costs_time_and_nothing_else() -> None:
    async def main(loop: VirtualLoop) -> None:
        def fate(source: Any, to: Any, data: bytes) -> list[float]:
            if loop.random.random() < 0.3:
                return []
            return [loop.random.uniform(0.001, 0.05)]

        loop.network.fate = fate
        async with node(loop, "alice") as alice, node(loop, "bob") as bob:
            for k in range(300):
                await alice.send("bob", b"%d" % k)
            assert [m.payload for m in await take(bob, 300)] == [b"%d" % k for k in range(300)]

    run(main)


def test_metrics() -> None:
    async def main(loop: VirtualLoop) -> str:
        async with node(loop, "alice") as alice, node(loop, "bob") as bob:
            await (await alice.send("bob", b"x")).delivered()
            loop.network.carry(("127.0.0.1", 9), b"rubbish", ("127.0.0.1", 1))
            await asyncio.sleep(1)
            await bob.receive()
            return alice.metrics()

    lines = run(main).splitlines()
    assert 'causewire_sent_total{node="alice"} 1' in lines
    assert 'causewire_dropped_total{node="alice",reason="malformed"} 1' in lines
    assert 'causewire_peer_up{node="alice",peer="bob"} 1' in lines
    assert "# TYPE causewire_sent_total counter" in lines


def test_without_a_key_a_node_stays_on_this_machine() -> None:
    async def main(_: VirtualLoop) -> None:
        with pytest.raises(ValueError, match="loopback only"):
            await Node("alice", listen="0.0.0.0:0").start()

    run(main)


@pytest.mark.parametrize("place", ["nowhere", "host:", ":1", "host:99999"])
def test_addresses_that_are_none(place: str) -> None:
    async def main(_: VirtualLoop) -> None:
        with pytest.raises(ValueError, match=r"address|port"):
            await Node("alice", listen=place).start()

    run(main)


def test_a_wrong_argument_is_named() -> None:
    with pytest.raises(TypeError, match="lisen"):
        Node("alice", lisen="127.0.0.1:0")  # type: ignore[call-arg]


def test_options_of_a_protocol_are_named_and_checked() -> None:
    Node("alice", peers={"bob": "127.0.0.1:2"}, protocol="pak", protocol_options={"k": 9})
    with pytest.raises(LocalProtocolError, match="adaptive has no option k"):
        Node("alice", protocol_options={"k": 9})


def test_a_protocol_value_runs_like_a_name() -> None:
    class MyCsps(protocols.describe("csps").endpoint):  # type: ignore[misc]
        """The same, by another name."""

    mine = protocols.Protocol(name="mine", endpoint=MyCsps, tolerates_loss=True)

    async def main(loop: VirtualLoop) -> None:
        async with (
            node(loop, "alice", protocol=mine) as alice,
            node(loop, "bob", protocol=mine) as bob,
        ):
            await alice.send("bob", b"x")
            assert (await bob.receive(5)).payload == b"x"

    run(main)


def test_a_protocol_that_cannot_travel_says_so() -> None:
    class MyKs(protocols.describe("ks").endpoint):  # type: ignore[misc]
        """The same, and nobody knows its packets."""

    mine = protocols.Protocol(name="mine", endpoint=MyKs)
    with pytest.raises(LocalProtocolError, match="packets"):
        Node("alice", protocol=mine)


def test_a_receipt_fails_when_its_node_closes() -> None:
    async def main(loop: VirtualLoop) -> None:
        alice = await node(loop, "alice").start()
        receipt = await alice.send("bob", b"nobody is there")
        waiting = asyncio.create_task(receipt.delivered())
        await asyncio.sleep(1)
        await alice.close(0)
        with pytest.raises(DeliveryFailed, match="bob"):
            await waiting
        with pytest.raises(DeliveryFailed, match="bob"):
            await receipt.delivered()

    run(main)


def test_a_seed_decides_everything() -> None:
    async def main(loop: VirtualLoop) -> tuple[int, float]:
        loop.network.fate = lambda *_: [loop.random.expovariate(100)] * (loop.random.random() < 0.9)
        async with node(loop, "alice") as alice, node(loop, "bob") as bob:
            for k in range(50):
                await alice.send("bob", b"%d" % k)
                if k % 5 == 0:
                    await bob.receive()
        return loop.network.carried, loop.now

    assert run(main, 7) == run(main, 7)
    assert run(main, 7) != run(main, 8)


@pytest.mark.parametrize("protocol", protocols.names())
def test_a_node_starts_with_every_protocol(protocol: str) -> None:
    node = Node("a", peers={"b": "127.0.0.1:9"}, protocol=protocol)
    assert node.name == "a"
