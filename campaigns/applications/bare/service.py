"""A service on a bare node: the first process counts for each of its clients."""

from __future__ import annotations

from collections import Counter
from typing import Any

from causewire.node import Node

from .asking import Asking


class App(Asking):
    """The first process serves; the others ask, one request after the other."""

    def __init__(self, node: Node, name: str, others: list[str], first: bool) -> None:
        super().__init__(node, name, others, first)
        self.counts: Counter[str] = Counter()
        self.answers: list[int] = []

    async def answer(self, source: str, payload: Any) -> Any:
        await self.reading.wait()
        self.counts[str(source)] += 1
        return self.counts[str(source)]

    async def act(self, number: int) -> None:
        if not self.first:
            await self.reading.wait()
            self.answers.append(await self.request(self.others[0], number))

    def state(self) -> Any:
        return self.answers
