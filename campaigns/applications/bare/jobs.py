"""Long jobs on a bare node: the first process has them done by the others, each one at a time."""

from __future__ import annotations

import asyncio
from typing import Any

from causewire import CausewireError
from causewire.node import Node

from .asking import Asking


class App(Asking):
    """The first process hands out jobs; the others do them."""

    def __init__(self, node: Node, name: str, others: list[str], first: bool) -> None:
        super().__init__(node, name, others, first)
        self.todo: list[int] = []
        self.done: list[int] = []

    async def answer(self, source: str, payload: Any) -> Any:
        await self.reading.wait()
        await asyncio.sleep(0.3)
        return payload

    async def run(self) -> None:
        if self.first:
            for worker in self.others:
                self.spawn(self.keep_busy(worker))
        await super().run()

    async def keep_busy(self, worker: str) -> None:
        while True:
            if not self.todo or worker not in self.node.peers_up():
                await asyncio.sleep(0.05)
                continue
            job = self.todo.pop(0)
            try:
                self.done.append(await self.request(worker, job))
            except CausewireError:
                self.todo.append(job)

    async def act(self, number: int) -> None:
        if self.first:
            self.todo.append(number)

    def state(self) -> Any:
        return sorted(self.done)
