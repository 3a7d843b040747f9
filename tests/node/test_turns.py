"""How often a node asks its socket, counted in virtual time."""

from __future__ import annotations

import asyncio
from typing import Any

from causewire.node import Node
from causewire.node.bridge import ALONE
from causewire.testing.virtual import VirtualLoop, VirtualSocket, run


class Counted:
    """Counts the calls of `recvfrom`, and those that found nothing."""

    def __init__(self, sock: VirtualSocket) -> None:
        self._receive = sock.recvfrom
        sock.recvfrom = self  # type: ignore[method-assign]
        self.calls = self.empty = 0

    def __call__(self, size: int) -> Any:
        self.calls += 1
        try:
            return self._receive(size)
        except BlockingIOError:
            self.empty += 1
            raise


def test_datagrams_that_come_alone_are_not_always_followed_by_a_vain_question() -> None:
    async def main(loop: VirtualLoop) -> Counted:
        sockets: list[Any] = [loop.network.socket(1), loop.network.socket(2)]
        async with (
            Node("alice", sock=sockets[0]) as alice,
            Node("bob", sock=sockets[1], peers={"alice": sockets[0].getsockname()}) as bob,
        ):
            await bob.send("alice", b"first")
            await alice.receive()
            counted = Counted(sockets[0])
            for _ in range(8 * ALONE):
                await bob.send("alice", b"?")
                await alice.receive()
                await alice.send("bob", b"!")
                await bob.receive()
            return counted

    counted = run(main)
    found = counted.calls - counted.empty
    assert found >= 8 * ALONE
    assert counted.empty <= ALONE + found // ALONE + 2


def test_a_burst_after_datagrams_that_came_alone_is_received_at_once() -> None:
    """Also where every wake-up is for one datagram, it takes few of them to notice a burst."""

    async def main(loop: VirtualLoop) -> list[int]:
        sockets: list[Any] = [loop.network.socket(1), loop.network.socket(2)]
        async with (
            Node("alice", sock=sockets[0]) as alice,
            Node("bob", sock=sockets[1], peers={"alice": sockets[0].getsockname()}) as bob,
        ):
            for _ in range(3 * ALONE):
                await bob.send("alice", b"?")
                await alice.receive()
                await alice.send("bob", b"!")
                await bob.receive()
            for k in range(200):
                await bob.send("alice", bytes([k]) * 20_000)
            got = [(await alice.receive()).payload[0] for _ in range(200)]
            await asyncio.sleep(1)
            assert not sockets[0].waiting
            return got

    assert run(main) == list(range(200))
