"""A chat on the kit: who comes late sees what was said, and no answer before its question."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Any

from causewire.kit import GroupClosed, GroupMessage, Kit


class App:
    """One participant, which answers to some lines of the others."""

    def __init__(self, kit: Kit, name: str, others: list[str], first: bool) -> None:
        self.name = name
        self.reading = asyncio.Event()
        self.lines: list[str] = []
        everybody = [name, *others]
        self.room = kit.stay(
            "chat", everybody, begin=first, snapshot=lambda: self.lines, restore=self.restore
        )

    async def run(self) -> None:
        async for item in self.room:
            await self.reading.wait()
            if isinstance(item, GroupMessage):
                self.lines.append(item.payload)
                if self.is_question(item.source, item.payload):
                    with suppress(GroupClosed):  # the others have given this process up
                        await item.reply(f"{self.name} answers to {item.payload}")

    def is_question(self, source: str, line: str) -> bool:
        return source != self.name and line.startswith(f"{source} says") and line.endswith("3")

    def restore(self, lines: list[str]) -> None:
        self.lines = lines

    async def act(self, number: int) -> None:
        await self.room.send(f"{self.name} says {number}")

    async def leave(self) -> None:
        await self.room.leave()

    def state(self) -> Any:
        return self.lines
