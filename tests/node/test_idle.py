"""Idle peers cost next to nothing: timers and datagrams, counted in virtual time."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from causewire.node import Node
from causewire.node.bridge import Bridge
from causewire.testing.virtual import VirtualLoop, run

SECONDS = 30.0


def idle(monkeypatch: pytest.MonkeyPatch, size: int, mesh: bool) -> tuple[float, float]:
    """Return what an idle system costs per second and node: timers that fire, and datagrams.

    Args:
        monkeypatch: Counts timers.
        size: How many nodes there are.
        mesh: Whether each knows all others; otherwise all know one, whose costs are counted.
    """

    async def main(loop: VirtualLoop) -> tuple[float, float]:
        sockets: list[Any] = [loop.network.socket(1 + k) for k in range(size)]
        nodes = [
            await Node(f"n{k:03}", protocol="csps", sock=s).start() for k, s in enumerate(sockets)
        ]
        for k, node in enumerate(nodes):
            for other in nodes[:k] if mesh else nodes[: min(k, 1)]:
                await node.add_peer(other.name, other.address)
        await asyncio.sleep(3.0)
        assert len(nodes[0].peers_up()) == size - 1
        counted = nodes if mesh else nodes[:1]
        bridges = {node._bridge for node in counted}
        fired = 0
        usual = Bridge._fired

        def fire(bridge: Bridge) -> None:
            nonlocal fired
            fired += bridge in bridges
            usual(bridge)

        monkeypatch.setattr(Bridge, "_fired", fire)
        await asyncio.sleep(15.0)  # every timer that was set before calls the function above
        fired = 0
        sent = sum(node.stats()["datagrams_out"] for node in counted)
        await asyncio.sleep(SECONDS)
        sent = sum(node.stats()["datagrams_out"] for node in counted) - sent
        for node in nodes:
            await node.close(0.0)
        return fired / SECONDS / len(counted), sent / SECONDS / len(counted)

    return run(main)


@pytest.mark.slow
def test_idle_processes_that_know_each_other(monkeypatch: pytest.MonkeyPatch) -> None:
    timers, datagrams = idle(monkeypatch, 24, mesh=True)
    # Two pings a second at most, whatever the number of peers, and as many acks of pings; a
    # timer for each ping, and for each peer that has pinged first.
    assert 0 < datagrams <= 4
    assert timers <= 4


@pytest.mark.slow
def test_a_process_with_many_idle_peers_only_answers_their_pings(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    timers, datagrams = idle(monkeypatch, 60, mesh=False)
    # Each of the others knows one process, and pings it every 1.875 seconds.
    assert datagrams <= 59 / 1.5
    assert timers <= 1
