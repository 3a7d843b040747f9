"""A node process on strings: a line comes in, a JSON object goes out.

`Puppet` is the program of such a process, and `cluster.Cluster` pulls the strings.
A program derives from `Puppet`, says in `obey` what its commands do, and ends with

    if __name__ == "__main__":
        Puppet.perform()
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Sequence
from typing import Any

from ..node import Node, run
from ..protocols import DEFAULT

__all__ = ["Puppet"]


class Puppet:
    """A node that obeys commands; the settings are the first argument, as JSON."""

    def __init__(self, settings: dict[str, Any]) -> None:
        self.node = Node(
            settings["name"],
            peers={name: tuple(place) for name, place in settings["peers"].items()},
            protocol=settings.get("protocol", DEFAULT),
            key=settings["key"].encode() if settings.get("key") else None,
            trace=settings.get("trace"),
            run=settings.get("run", "test"),
            incarnation=settings.get("incarnation"),
            give_up_after=settings.get("give_up_after", "default"),
            read_within=settings.get("read_within"),
            rejoin=settings.get("rejoin", False),
        )
        self.others: list[str] = sorted(settings["peers"])

    @classmethod
    def perform(cls) -> None:
        """Be the process."""
        run(cls(json.loads(sys.argv[1])).main())

    async def main(self) -> None:
        """From `ready` to `stop`; a parent that is gone means `stop`, too."""
        reader = asyncio.StreamReader()
        loop = asyncio.get_running_loop()
        pipe, _ = await loop.connect_read_pipe(
            lambda: asyncio.StreamReaderProtocol(reader), sys.stdin
        )
        async with self.node:
            tasks = [asyncio.create_task(self.listen()), asyncio.create_task(self.watch())]
            self.say(ready=True, port=self.node.address[1])
            while words := (await reader.readline()).decode().split():
                if words[0] == "stop":
                    break
                await self.obey(words[0], words[1:])
            drained = await self.node.close(20.0)
            await asyncio.gather(*tasks)
            self.say(drained=drained, **self.last_words())
        pipe.close()

    def say(self, **answer: Any) -> None:
        """Print an answer as one line of JSON."""
        print(json.dumps(answer), flush=True)

    async def obey(self, command: str, words: Sequence[str]) -> None:
        """Do what one line says, and answer if an answer is expected."""
        raise NotImplementedError

    async def listen(self) -> None:
        """Take what is delivered, until the node closes."""
        async for _ in self.node:
            pass

    async def watch(self) -> None:
        """Take what happens to peers, until the node closes."""
        async for _ in self.node.events():
            pass

    def last_words(self) -> dict[str, Any]:
        """Return what the answer to `stop` contains in addition to `drained`."""
        return {}
