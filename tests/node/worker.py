"""A process of the tests: a node that talks to the others, and does what it is told.

Arguments: one JSON object. Commands come as lines on standard input; answers leave
as JSON lines on standard output.
"""

from __future__ import annotations

import asyncio
import json
import random
import resource
import sys
from typing import Any

from causewire.node import Node, run


class Worker:
    def __init__(self, settings: dict[str, Any]) -> None:
        self.settings = settings
        self.random = random.Random(settings["seed"])
        self.node = Node(
            settings["name"],
            listen=("127.0.0.1", settings["port"]),
            peers={name: tuple(place) for name, place in settings["peers"].items()},
            protocol=settings.get("protocol", "csps"),
            key=settings["key"].encode() if settings.get("key") else None,
            trace=settings.get("trace"),
            run="test",
        )
        self.others = sorted(settings["peers"])
        self.got = 0
        self.events: list[str] = []
        self.sending: asyncio.Task[None] | None = None

    async def main(self) -> None:
        loop = asyncio.get_running_loop()
        reader = asyncio.StreamReader()
        await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
        async with self.node:
            tasks = [asyncio.create_task(task) for task in (self.listen(), self.watch())]
            self.say(ready=True)
            while line := (await reader.readline()).decode().split():
                if line[0] == "stop":
                    break
                await self.obey(line[0], line[1:])
            self.say(drained=await self.node.close(float(line[1]) if line[1:] else 20.0))
            await asyncio.gather(*tasks)

    def say(self, **answer: Any) -> None:
        print(json.dumps(answer), flush=True)

    async def obey(self, command: str, words: list[str]) -> None:
        if command == "talk":
            self.sending = asyncio.create_task(self.talk(int(words[0]), float(words[1])))
        elif command == "send":
            await self.node.send(words[0].split(","), b"0 one")
            self.say(sent=True)
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
    run(Worker(json.loads(sys.argv[1])).main())
