"""One process of a nemesis round: a node that talks at random and survives what happens."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from random import Random
from typing import Any

from causewire.core.errors import CausewireError
from causewire.node import PeerForgotten, Receipt
from causewire.testing.puppet import Puppet


class Talker(Puppet):
    """Sends at random, and answers some of what it gets: chains of dependent messages."""

    def __init__(self, settings: dict[str, Any]) -> None:
        super().__init__(settings)
        self.pause: float = settings["pause"]
        self.random = Random(settings["name"])
        self.reading = asyncio.Event()
        self.reading.set()
        self.talking: asyncio.Task[None] | None = None
        self.forgetting: set[asyncio.Task[None]] = set()
        self.got = 0
        self.receipts: list[tuple[str, Receipt]] = []
        """What was accepted, with the label of the incarnation that accepted it."""

        self.parted: set[tuple[str, str]] = set()
        """Peers that this process knows to be given up, with its own label at that time."""

    async def watch(self) -> None:
        async for event in self.node.events():
            if isinstance(event, PeerForgotten):
                self.parted.add((self.node.label, event.name))

    async def obey(self, command: str, words: Sequence[str]) -> None:
        if command == "go":
            self.talking = asyncio.create_task(self.talk())
        elif command == "quiet" and self.talking is not None:
            self.talking.cancel()
            self.talking = None
        elif command == "deaf":
            self.reading.clear()
        elif command == "hear":
            self.reading.set()
        elif command == "forget":
            task = asyncio.create_task(self.forget(words[0]))
            self.forgetting.add(task)
            task.add_done_callback(self.forgetting.discard)
        elif command == "failed":
            failed = [(label, r.mid, name) for label, r in self.receipts for name in r.failed]
            self.say(failed=failed, parted=sorted(self.parted))
        elif command == "state":
            blocked = [str(reason) for reason in self.node.blocked()]
            self.say(
                quiet=not blocked and self.node.idle,
                got=self.got,
                sent=self.node.stats()["sent"],
                life=self.node.label,
                blocked=blocked,
            )

    async def talk(self) -> None:
        while True:
            await asyncio.sleep(self.random.uniform(0.0, 2 * self.pause))
            await self.write(b"3")

    async def write(self, payload: bytes) -> None:
        """Send to a random set of processes; one that is gone is an answer like another."""
        count = self.random.choice((1, 1, 2, len(self.others)))
        to = self.random.sample(self.others, count)
        try:
            receipt = await self.node.send(to[0] if count == 1 else to, payload)
            self.receipts.append((self.node.label, receipt))
        except CausewireError:
            return

    async def forget(self, peer: str) -> None:
        try:
            await self.node.forget(peer)
        except CausewireError:
            return

    async def listen(self) -> None:
        async for message in self.node:
            await self.reading.wait()
            self.got += 1
            hops = int(message.payload)
            if hops and self.random.random() < 0.4:
                await self.write(b"%d" % (hops - 1))


if __name__ == "__main__":
    Talker.perform()
