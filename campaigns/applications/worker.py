"""One process of an application, with a node that obeys commands.

An application is a class `App` in a file of its own:

    App(kit or node, name, others, first)   `first` if it is the process that begins
    run()       what it does until its node is closed
    act(k)      one piece of work; an error of Causewire means that it has to be tried again
    reading     it takes nothing while this is not set
    leave()     end properly
    state()     what the judge looks at
"""

from __future__ import annotations

import asyncio
import sys
from collections import Counter
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from causewire import CausewireError
from causewire.kit import Kit
from causewire.node import Node, NodeRejoined
from causewire.testing.puppet import Puppet


class ApplicationWorker(Puppet):
    """Runs an application, and has it work at its own pace."""

    def __init__(self, settings: dict[str, Any]) -> None:
        name, members = settings["name"], settings["members"]
        self.node = Node(
            name,
            peers={other: tuple(place) for other, place in settings["peers"].items()},
            give_up_after=settings["give_up_after"],
            read_within=settings["give_up_after"],
            rejoin=True,
            ordered_events=True,
        )
        sys.path.insert(0, str(Path(__file__).parents[2]))
        app = import_module(f"campaigns.applications.{settings['on']}.{settings['application']}")
        others = [member for member in members if member != name]
        first = name == members[0] and not settings.get("again")
        self.kit = Kit(self.node, codec="json", handlers=1) if settings["on"] == "kit" else None
        self.app = app.App(self.kit or self.node, name, others, first)
        self.app.reading.set()
        self.pause: float = settings["pause"]
        self.late: float = settings.get("late", 0.0)
        self.acted = 1000 if settings.get("again") else 0
        self.errors: Counter[str] = Counter()
        self.given_up = 0
        self.acting: asyncio.Task[None] | None = None

    async def obey(self, command: str, words: Sequence[str]) -> None:
        if command == "go":
            self.acting = asyncio.create_task(self.act())
        elif command == "enough":
            if self.acting is not None:
                self.acting.cancel()
        elif command == "deaf":
            self.app.reading.clear()
        elif command == "hear":
            self.app.reading.set()
        elif command == "leave":
            await self.app.leave()
            self.say(left=True)
        elif command == "state":
            done = {"acted": self.acted, "errors": dict(self.errors), "given_up": self.given_up}
            self.say(state=self.app.state(), **done)

    async def act(self) -> None:
        while True:
            await asyncio.sleep(self.pause)
            try:
                await self.app.act(self.acted)
            except CausewireError as error:
                self.errors[type(error).__name__] += 1
            else:
                self.acted += 1

    async def watch(self) -> None:
        async for event in self.node.events():
            self.given_up += isinstance(event, NodeRejoined)

    async def listen(self) -> None:
        await asyncio.sleep(self.late)
        if self.kit is None:
            await self.app.run()
        else:
            async with self.kit:
                await self.app.run()


if __name__ == "__main__":
    ApplicationWorker.perform()
