"""A service on the kit: the first process counts for each of its clients."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Any

from causewire.kit import Kit, Request


class App:
    """The first process serves; the others ask, one request after the other."""

    def __init__(self, kit: Kit, name: str, others: list[str], first: bool) -> None:
        self.kit, self.server, self.first = kit, others[0], first
        self.reading = asyncio.Event()
        self.counts: Counter[str] = Counter()
        self.answers: list[int] = []
        kit.serves("count")(self.count)

    async def count(self, request: Request) -> int:
        await self.reading.wait()
        self.counts[request.source] += 1
        return self.counts[request.source]

    async def run(self) -> None:
        async for _ in self.kit:
            pass

    async def act(self, number: int) -> None:
        if not self.first:
            await self.reading.wait()
            self.answers.append(await self.kit.request(self.server, number, service="count"))

    async def leave(self) -> None:
        pass

    def state(self) -> Any:
        return self.answers
