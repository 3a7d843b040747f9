"""The facade for programs without asyncio, on real sockets."""

from __future__ import annotations

import threading

import pytest

from causewire.blocking import Node
from causewire.node import Closed


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
