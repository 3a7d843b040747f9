"""The facade for programs without asyncio, on real sockets."""

from __future__ import annotations

import threading
from itertools import repeat
from pathlib import Path

import pytest

import causewire
from causewire.blocking import Node, Receipt
from causewire.core.endpoint import LocalProtocolError
from causewire.node import Closed, DeliveryFailed, Full, PeerLeft, PeerUp, TransportConfig
from causewire.trace import open_trace
from causewire.transport import Address

from ..steps import steps


def test_hello() -> None:
    with Node("alice") as alice, Node("bob", peers={"alice": alice.address}) as bob:
        receipt = bob.send("alice", b"hello")
        message = alice.receive(timeout=10)
        assert (message.source, message.payload) == ("bob", b"hello")
        receipt.delivered(timeout=10)
        assert receipt.mid == 1
        alice.send("bob", b"hello yourself")
        assert next(iter(bob)).payload == b"hello yourself"
        with pytest.raises(TimeoutError):
            bob.receive(timeout=0.01)
        assert bob.stats()["delivered"] == 1
        assert "causewire_delivered_total" in bob.metrics()
        assert (alice.name, bob.name) == ("alice", "bob")
    assert alice.drained
    assert bob.drained
    with pytest.raises(Closed):
        alice.send("bob", b"too late")


def test_peers_by_and_by_and_why_not() -> None:
    with Node("alice", drain=0.1) as alice:
        alice.add_peer("bob", "127.0.0.1:9")
        alice.send("bob", b"nobody listens there")
        assert "bob has not been reached yet" in str(alice.blocked()[0])
    assert alice.drained is False


def test_iteration_ends_with_the_node() -> None:
    alice = Node("alice").start()
    got: list[bytes] = []
    some = threading.Event()

    def listen() -> None:
        for message in alice:
            got.append(message.payload)
            some.set()

    thread = threading.Thread(target=listen)
    thread.start()
    alice.send("alice", b"to myself")
    assert some.wait(30)
    alice.close()
    thread.join(10)
    assert got == [b"to myself"]


def test_what_cannot_be_opened_says_so_at_once() -> None:
    with pytest.raises(ValueError, match="loopback only"):
        Node("alice", listen="0.0.0.0:0").start()


def test_the_whole_api_of_a_node() -> None:
    def public(kind: type) -> set[str]:
        return {name for name in dir(kind) if not name.startswith("_")}

    assert public(causewire.Node) == public(Node)
    assert public(causewire.node.Receipt) == public(Receipt)


def test_receipts_say_who_is_missing() -> None:
    with Node("alice", drain=0.0) as alice, Node("bob", peers={"alice": alice.address}) as bob:
        bob.send("alice", b"x").delivered(10)
        bob.add_peer("carol", "127.0.0.1:9")
        receipt = bob.send(["alice", "carol"], b"to both")
        assert [alice.receive(10).payload for _ in range(2)] == [b"x", b"to both"]
        bob.send("alice", b"last").delivered(10)  # acknowledged after the one before
        assert repr(receipt) == "<Receipt 2: under way>"
        with pytest.raises(TimeoutError):
            receipt.delivered(timeout=0.01)
        bob.close(0)
        with pytest.raises(DeliveryFailed, match="carol"):
            receipt.delivered()


def test_events_and_peers_up() -> None:
    with Node("alice") as alice:
        events = alice.events()
        with Node("bob", peers={"alice": alice.address}) as bob:
            assert next(events) == PeerUp("bob")
            bob.send("alice", b"x").delivered(10)
            assert alice.peers_up() == ["bob"]
        assert next(events) == PeerLeft("bob", 0)
    assert list(events) == []
    assert list(alice.events()) == []


def test_full_and_room_again() -> None:
    config = TransportConfig(peer_messages=10, queue_messages=5)
    with (
        Node("alice", config=config) as alice,
        Node("bob", config=config, peers={"alice": alice.address}) as bob,
    ):
        with pytest.raises(Full):
            list(map(bob.send_nowait, repeat("alice"), repeat(b"x")))
        with pytest.raises(TimeoutError):
            list(map(bob.send, repeat("alice"), repeat(b"x"), repeat(0.2)))
        sent = bob.stats()["sent"]
        assert sent == 15
        sending = threading.Thread(target=lambda: [bob.send("alice", b"y") for _ in range(100)])
        sending.start()
        got = [alice.receive(10).payload for _ in range(sent + 100)]
        sending.join(10)
        assert got == [b"x"] * sent + [b"y"] * 100


def test_many_threads_share_a_node() -> None:
    with Node("alice") as alice, Node("bob", peers={"alice": alice.address}) as bob:

        def send(me: int) -> None:
            for k in range(500):
                bob.send("alice", b"%d %d" % (me, k))

        threads = [threading.Thread(target=send, args=(me,)) for me in range(4)]
        for thread in threads:
            thread.start()
        got = [alice.receive(20).payload.split() for _ in range(2000)]
        for thread in threads:
            thread.join(10)
        for me in range(4):
            assert [int(k) for who, k in got if int(who) == me] == list(range(500))


def test_a_send_costs_few_steps_and_wakes_the_thread_only_if_it_sleeps(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The former node passed each call to an event loop and back: several hundred lines."""
    with Node("alice") as alice, Node("bob", peers={"alice": alice.address}) as bob:
        bob.send("alice", b"x").delivered(10)
        bob.send("alice", b"x").delivered(10)
        woken = 0
        wake = bob._wake

        def count() -> None:
            nonlocal woken
            woken += 1
            wake()

        monkeypatch.setattr(bob, "_wake", count)

        def send() -> None:
            for _ in range(500):
                bob.send("alice", b"x")

        assert steps(send) / 500 < 50
        assert woken < 500
        for _ in range(502):
            alice.receive(10)


def test_options_and_wrong_arguments() -> None:
    with pytest.raises(TypeError, match="lisen"):
        Node("alice", lisen="127.0.0.1:0")  # type: ignore[call-arg]
    with pytest.raises(LocalProtocolError, match="no option"):
        Node("alice", protocol_options={"k": 9})


def test_resolvers() -> None:
    places: dict[str, Address] = {}
    with Node("alice") as alice, Node("bob", resolver=places.get) as bob:
        places["alice"] = alice.address
        bob.send("alice", b"x").delivered(10)
        with pytest.raises(LocalProtocolError, match="zoe"):
            bob.send("zoe", b"x")


def test_a_trace(tmp_path: Path) -> None:
    path = tmp_path / "bob.jsonl"
    with Node("alice") as alice, Node("bob", peers={"alice": alice.address}, trace=path) as bob:
        bob.send("alice", b"x").delivered(10)
    kinds = [event.kind for event in open_trace(path).events()]
    assert kinds == ["start", "send", "release"]
