"""A server with clients, one of which fails: what the others notice. In virtual time."""

from __future__ import annotations

import asyncio
from collections import Counter
from itertools import pairwise
from random import Random
from typing import Any

import pytest

from causewire.core.errors import CausewireError
from causewire.node import Node, NodeCutOff, PeerForgotten
from causewire.testing.virtual import VirtualLoop, run

from .test_node import watch

CLIENTS = 5
GIVE_UP = 2.0


class Hub:
    """Clients that ask a server and wait for the answer, and an account of their traffic."""

    def __init__(self, loop: VirtualLoop, protocol: str) -> None:
        self.loop = loop
        self.random = Random(1)
        self.names = [f"p{k}" for k in range(CLIENTS + 1)]
        self.port = CLIENTS + 1
        """That of the victim, which is the last client."""
        self.cut = False
        self.counts: Counter[int] = Counter()
        """Messages between the living, for each second."""
        loop.network.fate = self.fate
        places = {name: ("127.0.0.1", k + 1) for k, name in enumerate(self.names)}
        self.nodes = [
            Node(
                name,
                sock=loop.network.socket(places[name][1]),  # type: ignore[arg-type]
                peers={other: place for other, place in places.items() if other != name},
                protocol=protocol,
                give_up_after=GIVE_UP if protocol in ("csps", "sps") else None,
                rejoin=True,
            )
            for name in self.names
        ]
        self.events: list[list[Any]] = []

    def fate(self, source: Any, to: Any, data: bytes) -> list[float]:
        if self.cut and self.port in (source[1], to[1]):
            return []
        return [self.random.uniform(0.0005, 0.002)]

    async def send(self, node: Node, to: str) -> None:
        try:
            await node.send(to, bytes(32))
        except CausewireError:
            return

    async def serve(self, node: Node) -> None:
        async for message in node:
            self.count(message.source, node.name)
            await self.send(node, message.source)

    async def ask(self, node: Node) -> None:
        random = Random(node.name)
        while True:
            await asyncio.sleep(random.uniform(0.05, 0.15))
            await self.send(node, "p0")
            try:
                self.count((await node.receive(1.0)).source, node.name)
            except TimeoutError:
                continue

    def count(self, source: str, receiver: str) -> None:
        if self.names[-1] not in (source, receiver):
            self.counts[int(self.loop.now)] += 1

    async def play(self, fault: str) -> None:
        """Five seconds of traffic, a fault of five seconds or for ever, and ten more."""
        for node in self.nodes:
            await node.start()
        self.events = [watch(node) for node in self.nodes]
        tasks = [asyncio.create_task(self.serve(self.nodes[0]))]
        tasks += [asyncio.create_task(self.ask(node)) for node in self.nodes[1:]]
        await asyncio.sleep(5)
        self.cut = True
        await self.send(self.nodes[0], self.names[-1])  # an answer that is under way
        if fault == "killed":
            tasks.pop().cancel()
            await self.nodes[-1].close(0)
        await asyncio.sleep(5)
        self.cut = fault == "killed"
        await asyncio.sleep(8)
        for task in tasks:
            task.cancel()
        for node in self.nodes:
            await node.close(0)


def hub(protocol: str, fault: str) -> Hub:
    async def main(loop: VirtualLoop) -> Hub:
        made = Hub(loop, protocol)
        await made.play(fault)
        return made

    return run(main)


@pytest.mark.slow
@pytest.mark.parametrize("fault", ["killed", "cut off"])
@pytest.mark.parametrize("protocol", ["csps", "adaptive"])
def test_the_living_are_themselves_again(protocol: str, fault: str) -> None:
    """From one second after `give_up_after` on, and also when the victim returns."""
    played = hub(protocol, fault)
    usual = sum(played.counts[k] for k in range(1, 5)) / 4
    assert usual > 15 * (CLIENTS - 1)
    each = [played.counts[k] / usual for k in range(int(5 + GIVE_UP + 1), 18)]
    shares = [(one + other) / 2 for one, other in pairwise(each)]
    assert min(shares) > 0.85, shares


@pytest.mark.slow
def test_who_is_cut_off_starts_over_and_buries_nobody() -> None:
    played = hub("csps", "cut off")
    victim = played.events[-1]
    assert [type(event) for event in victim].count(NodeCutOff) == 1
    assert played.nodes[-1].label.endswith("/2")
    for seen in played.events[:-1]:
        gone = {event.name for event in seen if isinstance(event, PeerForgotten)}
        assert gone == {played.names[-1]}  # the server above all lives
