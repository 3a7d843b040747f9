"""A chat on the kit: who comes late sees what was said, and no answer before its question."""

from __future__ import annotations

import asyncio
from typing import Any

from causewire.kit import Group, GroupClosed, GroupMessage, JoinFailed, Kit


class App:
    """One participant, which answers to some lines of the others."""

    def __init__(self, kit: Kit, name: str, others: list[str], first: bool) -> None:
        self.kit, self.name = kit, name
        self.seeds = [] if first else others
        self.others, self.size = others, len(others)
        self.reading = asyncio.Event()
        self.room: Group | None = None
        self.lines: list[str] = []

    async def run(self) -> None:
        while True:
            try:
                self.room = await self.kit.join(
                    "chat", self.seeds, snapshot=lambda: self.lines, restore=self.restore
                )
                self.seeds = self.others
                async for item in self.room:
                    await self.reading.wait()
                    if isinstance(item, GroupMessage):
                        self.lines.append(item.payload)
                        if self.is_question(item.source, item.payload):
                            await item.reply(f"{self.name} answers to {item.payload}")
                return
            except GroupClosed:
                continue  # the others have given this process up: it joins again
            except JoinFailed:
                if self.name < min(self.others) and len(self.kit.node.peers_up()) == self.size:
                    self.seeds = []  # all are there, and nobody is a member: it begins again

    def is_question(self, source: str, line: str) -> bool:
        return source != self.name and line.startswith(f"{source} says") and line.endswith("3")

    def restore(self, lines: list[str]) -> None:
        self.lines = lines

    async def act(self, number: int) -> None:
        if self.room is None:
            raise GroupClosed("not a member yet")
        await self.room.send(f"{self.name} says {number}")

    async def leave(self) -> None:
        if self.room is not None:
            await self.room.leave()

    def state(self) -> Any:
        return self.lines
