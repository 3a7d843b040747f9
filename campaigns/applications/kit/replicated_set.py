"""A replicated set on the kit: a removal removes the additions that its author has seen."""

from __future__ import annotations

import asyncio
from typing import Any

from causewire.kit import GroupMessage, Kit


class App:
    """One replica. Each process adds elements of its own, and removes older ones."""

    def __init__(self, kit: Kit, name: str, others: list[str], first: bool) -> None:
        self.name = name
        self.reading = asyncio.Event()
        self.marks: dict[str, list[str]] = {}
        everybody = [name, *others]
        self.group = kit.stay(
            "set", everybody, begin=first, snapshot=lambda: self.marks, restore=self.restore
        )

    async def run(self) -> None:
        async for item in self.group:
            await self.reading.wait()
            if isinstance(item, GroupMessage):
                self.apply(*item.payload)

    def restore(self, marks: dict[str, list[str]]) -> None:
        self.marks = marks

    def apply(self, kind: str, element: str, marks: list[str]) -> None:
        here = self.marks.pop(element, [])
        left = here + marks if kind == "add" else [mark for mark in here if mark not in marks]
        if left:
            self.marks[element] = left

    async def act(self, number: int) -> None:
        old = f"{self.name}-{number - 3}"
        await self.group.send(["add", f"{self.name}-{number}", [f"{self.name}{number}"]])
        await self.group.send(["remove", old, self.marks.get(old, [])])

    async def leave(self) -> None:
        await self.group.leave()

    def state(self) -> Any:
        return sorted(self.marks)
