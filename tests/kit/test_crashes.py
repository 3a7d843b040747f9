"""A kit on a node with a store that crashes at random writes, again and again."""

from __future__ import annotations

import asyncio
from itertools import count
from random import Random
from typing import Any
from unittest.mock import patch

import pytest

from causewire.kit import Group, Kit
from causewire.kit.frames import Kind
from causewire.kit.requests import Requests
from causewire.node import TransportConfig
from causewire.testing.disk import BOUNDARIES
from causewire.testing.virtual import VirtualLoop, run
from causewire.transport import journal

from ..node.test_store import kill
from .helper import kit
from .test_returns import Log
from .test_store import VALUES, Killed


class World:
    """Alice asks Bob, and sends him messages; both are in a group; Bob crashes and comes back."""

    def __init__(self, loop: VirtualLoop, seed: int, alice: Kit, protocol: str) -> None:
        self.random = random = Random(seed)
        self.loop = loop
        self.alice = alice
        self.numbers = count(1)
        self.over = False
        self.answered: set[bytes] = set()
        self.sent: list[bytes] = []
        """What Alice has sent with `Node.send`."""
        self.taken: list[list[bytes]] = []
        """What Bob's application has taken of that, in each of his lives."""
        self.certain: set[bytes] = set()
        """What was taken before `done` returned."""
        self.posted: set[bytes] = set()
        """What `send` of Bob's group has accepted."""
        self.hers, self.his = Log(), Log()
        limits = random.choice((4, 8192)), random.choice((8, 4096))
        config = TransportConfig(queue_messages=limits[0], peer_messages=limits[1])
        explicit = random.random() < 0.3
        self.bob = Killed(loop, "bob", protocol=protocol, reports_handled=explicit, config=config)
        self.bob.disk.delay = lambda: random.choice((0.0005, 0.002, 0.02))
        self.faults: list[str] = []
        self.crashes = 0

    async def ask(self) -> None:
        while not self.over:
            text = b"%g %d" % (self.random.choice((0, 0.01, 0.3)), next(self.numbers))
            assert await self.alice.request("bob", text) == text
            self.answered.add(text)

    async def ask_impatiently(self) -> None:
        while not self.over:
            text = b"%d %d" % (self.random.choice((1, 50)), next(self.numbers))
            with pytest.raises(TimeoutError):
                await self.alice.request("bob", text, timeout=self.random.choice((0.05, 0.5)))

    async def send(self) -> None:
        while not self.over:
            self.sent.append(b"%d" % len(self.sent))
            await self.alice.node.send("bob", self.sent[-1])
            await self.hers.group.send(b"hers %d" % len(self.sent))
            await asyncio.sleep(self.random.choice((0.005, 0.05)))

    async def take(self, made: Kit, node: Any) -> None:
        taken: list[bytes] = []
        self.taken.append(taken)
        async for message in made:
            taken.append(message.payload)
            if message.payload in self.certain:
                self.faults.append(f"{message.payload!r} came again")
            message.done()
            if self.random.random() < 0.1:
                await node.done()
                self.certain.add(message.payload)

    async def post(self, made: Kit) -> None:
        room = await self.his.join(made, "alice")
        while not self.over:
            text = b"his %d" % next(self.numbers)
            await room.send(text)
            self.posted.add(text)
            await asyncio.sleep(self.random.choice((0.02, 0.2)))

    async def live(self, last: bool) -> None:
        """Let Bob live until he crashes, or until everything has arrived."""
        bob, crashed = self.bob, asyncio.Event()
        before = set(self.answered)
        bob.served.clear()
        made = await bob.start(handlers=self.random.choice((1, 3, 64)))

        def crash() -> None:
            kill(bob.node)
            crashed.set()
            for task in tasks:
                task.cancel()
            made._requests._waiting.clear()
            for task in made._tasks._tasks:
                task.cancel()

        tasks = [asyncio.create_task(each) for each in (self.take(made, bob.node), self.post(made))]
        bob.disk.crash = crash
        if not last:
            bob.disk.crash_at = (
                bob.disk.writes + self.random.randint(3, 100),
                self.random.choice(BOUNDARIES),
            )
            await crashed.wait()
            self.crashes += 1
            Kit._nodes.discard(bob.node)
            if (reading := getattr(self.his, "task", None)) is not None:
                reading.cancel()
            self.his = Log(self.his.state, self.his.position)
        else:
            await asyncio.sleep(3)
            self.over = True
            await asyncio.sleep(60)
            await bob.node.done()
            if bob.kept or made._requests._open:
                self.faults.append(f"{bob.kept} messages are not handled")
            await bob.kill(made)
        if again := before & set(bob.served):
            self.faults.append(f"served after the answer: {again}")

    def judge(self) -> None:
        """Note what is wrong in the end."""
        taken = [each for life in self.taken for each in life]
        if set(taken) != set(self.sent):
            self.faults.append("messages are missing")
        if any(life != sorted(set(life), key=int) for life in self.taken):
            self.faults.append("messages out of order")
        if lost := self.posted - set(self.hers.state):
            self.faults.append(f"accepted and lost: {sorted(lost)[:3]}")
        if sorted(self.hers.state) != sorted(self.his.state):
            self.faults.append("the replicas differ")


def play(seed: int) -> World:
    """Play one run, and judge it."""
    made: list[World] = []
    random = Random(-seed)
    protocol = random.choice(("adaptive", "csps", "sps"))
    loss = random.choice((0, 0, 0.1))

    async def main(loop: VirtualLoop) -> None:
        loop.network.fate = lambda *_: (
            [] if random.random() < loss else [random.uniform(0.0005, 0.01)]
        )
        settings = {"give_up_after": None, "protocol": protocol}
        async with kit(loop, "alice", codec=VALUES, node_=settings) as alice:
            world = World(loop, seed, alice, protocol)
            made.append(world)
            await world.hers.join(alice)
            acting = (world.ask(), world.ask(), world.ask_impatiently(), world.send())
            tasks = [asyncio.create_task(each) for each in acting]
            lives = random.randint(2, 4)
            for life in range(lives):
                await world.live(life == lives - 1)
            for task in tasks:
                if not task.done():
                    world.faults.append("a request has no end")
                else:
                    task.result()
            world.judge()
            for log in (world.hers, world.his):
                log.task.cancel()

    with patch.object(journal, "SNAPSHOT_AFTER", random.choice((300, 3000, 8 << 20))):
        run(main)
    return made[0]


@pytest.mark.parametrize("seed", range(3))
def test_nothing_is_lost_and_nothing_that_was_handled_comes_again(seed: int) -> None:
    world = play(seed)
    assert not world.faults
    assert world.crashes
    assert len(world.answered) > 5
    assert world.posted


async def answered_before_it_is_noted(self: Requests, key: Any, kind: Kind, body: bytes) -> None:
    """The answer and the note that it was given are not in one turn."""
    await self._deliver(key[0], kind, body)
    await asyncio.sleep(0.01)
    self._finish(key)


async def not_stored(self: Group) -> None:
    """`send` does not wait for the store."""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("where", "what", "how"),
    [
        (Requests, "_answer", answered_before_it_is_noted),
        (Requests, "_finish", lambda self, key: self._open.pop(key, None)),
        (Group, "_stored", not_stored),
    ],
)
def test_known_bad_variants_are_caught(where: Any, what: str, how: Any) -> None:
    with patch.object(where, what, how):
        assert any(play(seed).faults for seed in range(20))
