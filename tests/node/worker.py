"""A process of the tests: a node that talks to the others, and does what it is told."""

from __future__ import annotations

import asyncio
import random
import resource
from collections.abc import Sequence
from typing import Any

from causewire.testing.puppet import Puppet


class Worker(Puppet):
    def __init__(self, settings: dict[str, Any]) -> None:
        super().__init__(settings)
        self.random = random.Random(settings["name"])
        self.got = 0
        self.events: list[str] = []
        self.sending: asyncio.Task[None] | None = None

    async def obey(self, command: str, words: Sequence[str]) -> None:
        if command == "talk":
            self.sending = asyncio.create_task(self.talk(int(words[0]), float(words[1])))
        elif command == "send":
            await self.node.send(words[0].split(","), b"0 one")
            self.say(sent=True)
        elif command == "flood":
            self.sending = asyncio.create_task(self.flood(words[0], int(words[1]), int(words[2])))
        elif command == "blocked":
            self.say(blocked=[str(reason) for reason in self.node.blocked()])
        elif command == "state":
            quiet = self.node._transport.idle and (not self.sending or self.sending.done())
            peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
            self.say(
                quiet=quiet, got=self.got, events=self.events, peak=peak, stats=self.node.stats()
            )

    async def talk(self, count: int, pause: float) -> None:
        """Messages that provoke others: the number in front says how many hops are left."""
        for _ in range(count):
            await self.node.send(self.some(), b"3 " + bytes(40))
            await asyncio.sleep(self.random.uniform(0, 2 * pause))

    async def flood(self, to: str, count: int, size: int) -> None:
        """As many messages as there is room for, and then some."""
        for _ in range(count):
            await self.node.send(to, b"0 " + bytes(size))

    def some(self) -> list[str] | str:
        if self.random.random() < 0.5:
            return self.random.choice(self.others)
        return self.random.sample(self.others, self.random.randint(1, len(self.others)))

    async def listen(self) -> None:
        async for message in self.node:
            self.got += 1
            hops = int(message.payload.split(b" ", 1)[0])
            if hops and self.random.random() < 0.5:
                await self.node.send(self.some(), b"%d " % (hops - 1) + bytes(40))

    async def watch(self) -> None:
        async for event in self.node.events():
            self.events.append(str(event))


if __name__ == "__main__":
    Worker.perform()
