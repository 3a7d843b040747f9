"""Addresses that cannot be used, now or ever: what is reported, and what becomes of messages."""

from __future__ import annotations

import asyncio
import socket
from typing import Any

import pytest

from causewire import blocking
from causewire.node import DeliveryFailed, PeerRefused, PeerUp, TransportConfig
from causewire.testing.virtual import VirtualLoop, run

from .test_node import node, watch


def test_an_address_of_another_family_is_an_event_with_its_reason() -> None:
    async def main(loop: VirtualLoop) -> None:
        async with node(loop, "alice", peers={}) as alice, node(loop, "bob", peers={}) as bob:
            seen = watch(alice)
            await asyncio.sleep(0)
            await alice.add_peer("bob", "[::1]:2")
            await alice.add_peer("bob", "[::1]:2")
            receipt = await alice.send("bob", b"x")
            await asyncio.sleep(0.5)
            reason = "its address ::1 is IPv6, and this node listens on 127.0.0.1, IPv4"
            assert seen == [PeerRefused("bob", reason)]
            (why,) = alice.blocked()
            assert str(why).endswith(f"bob was refused: {reason}")
            await alice.add_peer("bob", bob.address)
            await receipt.delivered()
            assert seen[1:] == [PeerUp("bob")]

    run(main)


class Names:
    """Stands in for the resolver of host names: those in `known`, all on 127.0.0.1."""

    def __init__(self) -> None:
        self.known: set[str] = set()
        self.asked = 0

    def now(self, host: str, *_: Any, **__: Any) -> list[Any]:
        self.asked += 1
        if host not in self.known:
            raise socket.gaierror(-2, "no such host")
        return [(0, 0, 0, "", ("127.0.0.1", 0))]

    async def later(self, host: str, *_: Any, **__: Any) -> list[Any]:
        return self.now(host)


@pytest.fixture
def names(monkeypatch: pytest.MonkeyPatch) -> Names:
    answers = Names()
    monkeypatch.setattr(VirtualLoop, "getaddrinfo", lambda _, *args, **__: answers.later(*args))
    return answers


@pytest.mark.parametrize("added", [False, True], ids=["in peers", "added to a running node"])
def test_messages_wait_for_a_host_name_that_does_not_resolve_yet(names: Names, added: bool) -> None:
    async def main(loop: VirtualLoop) -> None:
        peers = {"bob": "bob.example:2"}
        async with node(loop, "alice", peers={} if added else peers) as alice:
            seen = watch(alice)
            await asyncio.sleep(0)
            if added:
                await alice.add_peer("bob", "bob.example:2")
            receipts = [await alice.send("bob", b"x"), alice.send_nowait("bob", b"y")]
            assert alice.address_of("bob") is None
            await asyncio.sleep(6)
            reason = "its host name bob.example does not resolve yet"
            (why,) = alice.blocked()
            assert (why.peer, why.messages) == ("bob", 2)
            assert str(why).endswith(reason)
            assert (PeerRefused("bob", reason) in seen) == added
            asked = names.asked
            assert asked >= 2
            names.known.add("bob.example")
            async with node(loop, "bob", peers={}) as bob:
                for receipt in receipts:
                    await receipt.delivered()
                assert [(await bob.receive()).payload for _ in receipts] == [b"x", b"y"]
                assert alice.address_of("bob") == ("127.0.0.1", 2)

    run(main)


def test_a_host_name_given_to_a_running_node_is_looked_up_again(names: Names) -> None:
    names.known.add("bob.example")

    async def main(loop: VirtualLoop) -> None:
        async with node(loop, "alice", peers={"carol": "127.0.0.1:3"}) as alice:
            await alice.add_peer("bob", "bob.example:9")
            await asyncio.sleep(10)
            assert names.asked > 1
            names.known.clear()  # what is known is kept, though it may be wrong
            await asyncio.sleep(10)
            await alice.add_peer("bob", "bob.example:9")
            assert alice.address_of("bob") == ("127.0.0.1", 9)
            asked = names.asked
            await alice.add_peer("bob", "127.0.0.1:2")  # which takes the place of the name
            await asyncio.sleep(10)
            assert names.asked == asked

    run(main)


def test_messages_for_a_name_that_never_resolves_fail_when_the_peer_is_given_up(
    names: Names,
) -> None:
    async def main(loop: VirtualLoop) -> None:
        peers = {"bob": "bob.example:2"}
        async with node(loop, "alice", peers=peers, give_up_after=5.0) as alice:
            receipt = await alice.send("bob", b"x")
            with pytest.raises(DeliveryFailed):
                await receipt.delivered()

    run(main)


def test_a_peer_whose_name_does_not_resolve_may_come_by_itself(names: Names) -> None:
    async def main(loop: VirtualLoop) -> None:
        async with node(loop, "alice", peers={"bob": "bob.example:2"}) as alice:
            receipt = await alice.send("bob", b"x")
            async with node(loop, "bob") as bob:
                await receipt.delivered()
                assert (await bob.receive()).payload == b"x"
                await asyncio.sleep(20)
                assert alice.blocked() == []

    run(main)


@pytest.mark.parametrize("added", [False, True], ids=["in peers", "added to a running node"])
def test_a_blocking_node_keeps_messages_for_a_name_that_does_not_resolve_yet(
    monkeypatch: pytest.MonkeyPatch, added: bool
) -> None:
    names = Names()
    monkeypatch.setattr(socket, "getaddrinfo", names.now)
    config = TransportConfig(silent_after=0.05)
    with blocking.Node("bob") as bob:
        place = f"bob.example:{bob.address[1]}"
        peers = {} if added else {"bob": place}
        with blocking.Node("alice", peers=peers, config=config) as alice:
            if added:
                alice.add_peer("bob", place)
            receipt = alice.send("bob", b"x")
            (why,) = alice.blocked()
            assert str(why).endswith("its host name bob.example does not resolve yet")
            names.known.add("bob.example")
            receipt.delivered(30)
            assert bob.receive(30).payload == b"x"


@pytest.mark.parametrize("kind", ["asyncio", "blocking"])
def test_of_a_host_with_several_families_an_address_that_can_be_used_is_taken(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = [
        (socket.AF_INET6, 2, 17, "", ("::1", 2, 0, 0)),
        (socket.AF_INET, 2, 17, "", ("127.0.0.1", 2)),
    ]

    async def getaddrinfo(*_: Any, **__: Any) -> list[Any]:
        return found

    async def main(loop: VirtualLoop) -> None:
        monkeypatch.setattr(loop, "getaddrinfo", getaddrinfo)
        peers: dict[str, Any] = {"bob": "localhost:2"}
        async with node(loop, "bob", peers={}), node(loop, "alice", peers=peers) as alice:
            await asyncio.wait_for((await alice.send("bob", b"x")).delivered(), 10)

    if kind == "asyncio":
        run(main)
    else:
        with blocking.Node("alice", drain=0.0) as alice:
            monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: found)
            alice.add_peer("bob", "localhost:2")
            assert alice.address_of("bob") == ("127.0.0.1", 2)
