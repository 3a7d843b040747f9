"""Leaving: who hears of it, and who waits for whom. In virtual time."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from causewire.node import PeerGone, PeerLeft
from causewire.node.bridge import Bridge
from causewire.testing.virtual import VirtualLoop, run

from ..transport.pair import interpreted
from .test_failure import isolate
from .test_node import node, watch


def test_who_leaves_politely_costs_nobody_anything() -> None:
    async def main(loop: VirtualLoop) -> None:
        async with node(loop, "alice") as alice, node(loop, "bob") as bob:
            carol = await node(loop, "carol").start()
            await (await alice.send("carol", b"x")).delivered()
            seen = watch(alice)
            assert await carol.close()
            assert carol.unheard == ()
            start = loop.now
            with pytest.raises(PeerGone, match="carol"):
                await alice.send(["bob", "carol"], b"x")
            receipt = await alice.send("bob", b"on we go")
            await bob.receive()
            await bob.send("alice", b"yes")
            await alice.receive()
            await receipt.delivered()
            assert loop.now - start < 0.1
            assert PeerLeft("carol", 0) in seen
            kept = await alice.send("carol", b"for the next", wait_for_peer=True)
            async with node(loop, "carol", incarnation=1 << 20) as again:
                assert (await again.receive(30)).payload == b"for the next"
                await kept.delivered()

    run(main)


def test_a_lost_goodbye_is_repeated_and_its_failure_is_said(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def main(loop: VirtualLoop) -> None:
        async with node(loop, "alice") as alice:
            bob = await node(loop, "bob").start()
            await (await bob.send("alice", b"x")).delivered()
            lost = 3

            def fate(source: Any, to: Any, data: bytes) -> list[float]:
                nonlocal lost
                if source[1] == 2 and lost:
                    lost -= 1
                    return []
                return [0.001]

            loop.network.fate = fate
            seen = watch(alice)
            await bob.close()
            await asyncio.sleep(0.01)
            assert bob.unheard == ()
            assert any(isinstance(event, PeerLeft) for event in seen)
            carol = await node(loop, "carol").start()
            await (await carol.send("alice", b"x")).delivered()
            isolate(loop, 3)
            await carol.close(0.4)
            assert carol.unheard == ("alice",)

    run(main)
    assert "these peers have not heard of it: alice" in caplog.text


@interpreted
def test_who_leaves_answers_the_goodbyes_of_others_before_its_socket_is_closed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Two leave at once: what the first owes the other is not left to a turn that never ends."""
    end_turn = Bridge._soon_for_acks

    async def main(loop: VirtualLoop) -> None:
        alice, bob = await node(loop, "alice").start(), await node(loop, "bob").start()
        await (await alice.send("bob", b"x")).delivered()
        await bob.receive()
        stuck = alice._bridge

        def soon(bridge: Bridge) -> None:
            if bridge is not stuck or not bridge.transport._peers.departed:
                end_turn(bridge)

        monkeypatch.setattr(Bridge, "_soon_for_acks", soon)

        def fate(source: Any, to: Any, data: bytes) -> list[float]:
            """Lose what alice says before she has heard bob's goodbye, hers included."""
            departed = alice._transport._peers.departed
            return [0.001] if source[1] == 2 or departed else []

        await asyncio.sleep(0.1)
        loop.network.fate = fate
        start = loop.now
        leaving = asyncio.create_task(alice.close())
        await bob.close()
        assert bob.unheard == ()
        assert loop.now - start < 0.1
        await leaving

    run(main)


@pytest.mark.parametrize("drain", [0.4, 2.0, 5.0])
@pytest.mark.parametrize("busy", [False, True], ids=["idle", "with a message"])
def test_a_peer_that_falls_silent_meanwhile_has_not_heard_of_it(drain: float, busy: bool) -> None:
    async def main(loop: VirtualLoop) -> None:
        async with node(loop, "alice"):
            bob = await node(loop, "bob").start()
            await (await bob.send("alice", b"x")).delivered()
            isolate(loop, 2)
            if busy:
                await bob.send("alice", b"y")
            assert await bob.close(drain) is not busy
            assert bob.unheard == ("alice",)

    run(main)
