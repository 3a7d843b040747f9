"""A replicated set on the kit: a removal removes the additions that its author has seen."""

from __future__ import annotations

import asyncio
from typing import Any

from causewire.kit import Group, GroupClosed, GroupMessage, JoinFailed, Kit


class App:
    """One replica. Each process adds elements of its own, and removes older ones."""

    def __init__(self, kit: Kit, name: str, others: list[str], first: bool) -> None:
        self.kit, self.name = kit, name
        self.seeds = [] if first else others
        self.others, self.size = others, len(others)
        self.reading = asyncio.Event()
        self.group: Group | None = None
        self.marks: dict[str, list[str]] = {}

    async def run(self) -> None:
        while True:
            try:
                self.group = await self.kit.join(
                    "set", self.seeds, snapshot=lambda: self.marks, restore=self.restore
                )
                self.seeds = self.others
                async for item in self.group:
                    await self.reading.wait()
                    if isinstance(item, GroupMessage):
                        self.apply(*item.payload)
                return
            except GroupClosed:
                continue  # the others have given this process up: it joins again
            except JoinFailed:
                if self.name < min(self.others) and len(self.kit.node.peers_up()) == self.size:
                    self.seeds = []  # all are there, and nobody is a member: it begins again

    def restore(self, marks: dict[str, list[str]]) -> None:
        self.marks = marks

    def apply(self, kind: str, element: str, marks: list[str]) -> None:
        here = self.marks.pop(element, [])
        left = here + marks if kind == "add" else [mark for mark in here if mark not in marks]
        if left:
            self.marks[element] = left

    async def act(self, number: int) -> None:
        if self.group is None:
            raise GroupClosed("not a member yet")
        old = f"{self.name}-{number - 3}"
        await self.group.send(["add", f"{self.name}-{number}", [f"{self.name}{number}"]])
        await self.group.send(["remove", old, self.marks.get(old, [])])

    async def leave(self) -> None:
        if self.group is not None:
            await self.group.leave()

    def state(self) -> Any:
        return sorted(self.marks)
