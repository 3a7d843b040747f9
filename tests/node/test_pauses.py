"""A node that was given up again soon pauses before it rejoins; what it does meanwhile."""

from __future__ import annotations

import asyncio
import time
from argparse import Namespace
from typing import Any

import pytest

from causewire import blocking
from causewire.node import Closed, Node, NodeRejoined, command, rejoining
from causewire.node.rejoining import Rejoining
from causewire.testing.virtual import VirtualLoop, run

from .test_node import watch

TURNS = 200
"""More than a thread makes that waits, and far fewer than one that spins."""


def put_out(node: Any, now: float) -> None:
    """Let a node learn that its peers do not accept its incarnation any more."""
    transport = node._transport
    transport._peers.known_elsewhere()
    transport._peers.superseded(transport.me.incarnation + 1, False, "bob", now)


class Counted(blocking.Node):
    """A node that counts the turns of its thread."""

    turns = 0

    def _turn(self, sock: Any) -> None:
        self.turns += 1
        super()._turn(sock)

    def put_out(self) -> None:
        with self._lock:
            put_out(self, time.monotonic())
            self._wake()

    def pause(self) -> None:
        """Put it out twice, so that it pauses."""
        before = self.incarnation
        self.put_out()
        while self.incarnation == before:
            time.sleep(0.001)
        self.put_out()
        while self._rejoining.until is None:
            time.sleep(0.001)


def test_the_thread_sleeps_after_a_rejoin_by_hand(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rejoining, "FIRST", 0.1)
    with Counted("x", rejoin=True, drain=0.0) as node:
        node.pause()
        node.rejoin()
        time.sleep(0.2)  # the pause would have ended
        before = node.turns
        time.sleep(0.1)
        assert node.turns - before < TURNS
        assert node._rejoining.until is None


def test_the_thread_sleeps_while_a_node_closes_in_a_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rejoining, "FIRST", 0.1)
    node = Counted("x", rejoin=True, peers={"bob": "127.0.0.1:9"}).start()
    node.put_out()
    while node._transport.me.superseded:
        time.sleep(0.001)
    node.send("bob", b"never delivered")
    node.put_out()
    while node._rejoining.until is None:
        time.sleep(0.001)
    paused, before = node.incarnation, node.turns
    node.close(0.3)
    assert node.turns - before < TURNS
    assert node.incarnation == paused


def test_a_blocking_reader_does_not_bring_back_a_node_that_closes() -> None:
    node = Counted("x", rejoin=True)  # not started: it has no thread
    put_out(node, 0.0)
    before = node.incarnation
    node._closing = True
    with node._lock:
        node._check_superseded()
    assert node.incarnation == before
    node._closing = False
    with node._lock:
        node._check_superseded()
    assert node.incarnation > before


def test_a_node_that_closes_stays_out() -> None:
    async def main(loop: VirtualLoop) -> None:
        sock: Any = loop.network.socket(1)
        peers = {"bob": "127.0.0.1:9"}
        node = await Node("x", sock=sock, rejoin=True, drain=3.0, peers=peers).start()
        put_out(node, loop.now)
        await node.add_peer("carol", "127.0.0.1:8")  # which ends a turn
        await asyncio.sleep(0.1)
        await node.send("bob", b"never delivered")
        seen = watch(node)
        put_out(node, loop.now)
        await node.add_peer("carol", "127.0.0.1:7")
        reading = asyncio.create_task(node.receive())
        await asyncio.sleep(0.1)
        before = node.incarnation
        assert node._rejoining.until is not None
        closing = asyncio.create_task(node.close())
        await asyncio.sleep(1.0)
        assert not closing.done()
        another = asyncio.create_task(node.receive())
        await closing
        for reader in (reading, another):
            with pytest.raises(Closed):
                await reader
        assert node.incarnation == before
        assert NodeRejoined not in map(type, seen)

    run(main)


def test_a_rejoin_by_hand_ends_the_pause() -> None:
    async def main(loop: VirtualLoop) -> None:
        sock: Any = loop.network.socket(1)
        async with Node("x", sock=sock, rejoin=True, drain=0.0) as node:
            for _ in range(2):
                put_out(node, loop.now)
                node._handle_events()
            assert node._rejoining.until == loop.now + rejoining.FIRST
            await node.rejoin()
            assert node._rejoining.until is None
            put_out(node, loop.now)  # soon again: it pauses for longer
            node._handle_events()
            assert node._rejoining.until == loop.now + 2 * rejoining.FIRST
            await asyncio.sleep(2 * rejoining.FIRST + 0.1)
            assert not node._transport.me.superseded

    run(main)


class Early(Rejoining):
    """As if the first timer fired a moment early."""

    refusals = 1

    def now(self, now: float) -> bool:
        ready = super().now(now)
        if ready and self._pause and self.refusals:
            self.refusals -= 1
            return False
        return ready


def test_a_timer_that_fires_early_is_set_again() -> None:
    async def main(loop: VirtualLoop) -> None:
        sock: Any = loop.network.socket(1)
        async with Node("x", sock=sock, rejoin=True, drain=0.0) as node:
            node._rejoining = Early()
            for _ in range(2):
                put_out(node, loop.now)
                node._handle_events()
            assert node._transport.me.superseded
            await asyncio.sleep(60.0)
            assert not node._transport.me.superseded

    run(main)


def test_the_command_sends_a_line_when_its_node_is_back(capsys: pytest.CaptureFixture[str]) -> None:
    async def main(loop: VirtualLoop) -> None:
        socks: list[Any] = [loop.network.socket(port) for port in (1, 2)]
        peers = {"bob": "127.0.0.1:2"}
        async with (
            Node("x", sock=socks[0], rejoin=True, peers=peers) as node,
            Node("bob", sock=socks[1]) as bob,
        ):
            await node.send("bob", b"first")
            await bob.receive()
            for _ in range(2):
                put_out(node, loop.now)
                node._handle_events()
            terminal = command._Terminal(node, Namespace(rejoin=True))
            await terminal._line("bob: second")
            assert (await bob.receive(60)).payload == b"second"
            assert not terminal._refused

    run(main)
    assert capsys.readouterr().err == ""


def test_the_command_advises_to_rejoin_only_who_has_not_asked_for_it(
    capsys: pytest.CaptureFixture[str],
) -> None:
    async def main(loop: VirtualLoop) -> None:
        sock: Any = loop.network.socket(1)
        async with Node("x", sock=sock, peers={"bob": "127.0.0.1:2"}, drain=0.0) as node:
            put_out(node, loop.now)
            terminal = command._Terminal(node, Namespace(rejoin=False))
            await terminal._line("bob: refused")
            assert terminal._refused

    run(main)
    assert "give --rejoin" in capsys.readouterr().err
