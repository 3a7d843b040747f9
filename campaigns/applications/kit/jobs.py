"""Long jobs on the kit: the first process has them done by the others, each one at a time."""

from __future__ import annotations

import asyncio
from typing import Any

from causewire.kit import Kit, PeerLost, Request


class App:
    """The first process hands out jobs; the others do them."""

    def __init__(self, kit: Kit, name: str, others: list[str], first: bool) -> None:
        self.kit, self.others, self.first = kit, others, first
        self.reading = asyncio.Event()
        self.todo: list[int] = []
        self.done: list[int] = []
        kit.serves("job")(self.work)

    async def work(self, request: Request) -> Any:
        await self.reading.wait()
        await asyncio.sleep(0.3)
        return request.payload

    async def run(self) -> None:
        if self.first:
            await asyncio.gather(*map(self.keep_busy, self.others))
        async for _ in self.kit:
            pass

    async def keep_busy(self, worker: str) -> None:
        while True:
            if not self.todo or worker not in self.kit.node.peers_up():
                await asyncio.sleep(0.05)
                continue
            job = self.todo.pop(0)
            try:
                self.done.append(await self.kit.request(worker, job, service="job"))
            except PeerLost:
                self.todo.append(job)

    async def act(self, number: int) -> None:
        if self.first:
            self.todo.append(number)

    async def leave(self) -> None:
        pass

    def state(self) -> Any:
        return sorted(self.done)
