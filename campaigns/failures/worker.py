"""One process of the failure matrix: a node that keeps up the traffic of its system.

What a process sends, and to whom, depends on the shape of the system:

    hub         a client asks the server and waits for the answer before it asks again
    group       a member writes to all the others
    pipeline    a stage passes on to the next what it got from the one before
    uniform     a process writes to another one, chosen at random

A process that finds a destination gone leaves it out from then on, as an application
would, and takes it in again when its node reports that the peer is up.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Sequence
from random import Random
from typing import Any

from causewire.core.errors import CausewireError
from causewire.node import Message, Receipt
from causewire.testing.puppet import Puppet

BUCKET = 0.1
"""Seconds: deliveries are counted in intervals of this length."""
FINAL = ("PeerLeft", "PeerForgotten", "PeerGone")
"""Events after which a peer is not written to any more."""


class TrafficWorker(Puppet):
    """A process with its share of the system's traffic."""

    def __init__(self, settings: dict[str, Any]) -> None:
        super().__init__(settings)
        self.shape: str = settings["shape"]
        self.members: list[str] = settings["members"]
        self.pause: float = settings["pause"]
        self.random = Random(settings["name"])
        self.reading = asyncio.Event()
        self.reading.set()
        self.counts: Counter[int] = Counter()
        """Deliveries by the interval of wall-clock time in which they happened."""
        self.sources: dict[str, Counter[int]] = {}
        self.told: list[tuple[float, str]] = []
        self.gone: set[str] = set()
        self.errors: Counter[str] = Counter()
        self.receipts: list[Receipt] = []
        self.answered = asyncio.Event()
        self.tasks: list[asyncio.Task[None]] = []

    async def obey(self, command: str, words: Sequence[str]) -> None:
        if command == "go":
            self.tasks.append(asyncio.create_task(self.talk()))
        elif command == "write":
            self.tasks.append(asyncio.create_task(self.write(words[0])))
        elif command == "deaf":  # the application stops reading, the node goes on
            self.reading.clear()
        elif command == "hear":
            self.reading.set()
        elif command == "counts":
            sources = {name: dict(counts) for name, counts in self.sources.items()}
            failed = Counter([name for receipt in self.receipts for name in receipt.failed])
            self.say(sources=sources, told=self.told, errors=dict(self.errors), failed=failed)

    async def talk(self) -> None:
        """Send this process's share, at its own pace."""
        me = self.node.name
        while True:
            await asyncio.sleep(self.random.uniform(0.5, 1.5) * self.pause)
            others = [name for name in self.members if name != me and name not in self.gone]
            if self.shape == "hub":
                if me != self.members[0]:
                    await self.ask_the_server()
            elif self.shape == "group":
                await self.write(others)
            elif self.shape == "pipeline":
                if me == self.members[0]:
                    await self.pass_on()
            elif others:
                await self.write(self.random.choice(others))

    async def ask_the_server(self) -> None:
        self.answered.clear()
        await self.write(self.members[0])
        try:
            async with asyncio.timeout(1.0):
                await self.answered.wait()
        except TimeoutError:
            self.errors["unanswered"] += 1

    async def pass_on(self) -> None:
        """Write to the next living stage."""
        at = self.members.index(self.node.name)
        later = [name for name in self.members[at + 1 :] if name not in self.gone]
        if later:
            await self.write(later[0])

    async def write(self, to: str | list[str]) -> None:
        if not to:
            return
        try:
            self.receipts.append(await self.node.send(to, bytes(32)))
        except CausewireError as error:
            self.errors[type(error).__name__] += 1

    async def listen(self) -> None:
        async for message in self.node:
            await self.reading.wait()
            await self.take(message)

    async def take(self, message: Message) -> None:
        counts = self.sources.setdefault(message.source, Counter())
        counts[int(time.time() / BUCKET)] += 1
        if self.shape == "hub":
            if self.node.name == self.members[0]:
                await self.write(message.source)
            else:
                self.answered.set()
        elif self.shape == "pipeline":
            await self.pass_on()

    async def watch(self) -> None:
        async for event in self.node.events():
            kind, name = type(event).__name__, getattr(event, "name", "")
            self.told.append((time.time(), f"{kind} {name}".strip()))
            if kind in FINAL:
                self.gone.add(name)
            elif kind in ("PeerUp", "PeerRestarted"):
                self.gone.discard(name)


if __name__ == "__main__":
    TrafficWorker.perform()
