"""Requests and answers on a bare node: which answer belongs to which, and who will never answer."""

from __future__ import annotations

import asyncio
import json
from abc import ABC, abstractmethod
from itertools import count
from typing import Any

from causewire import CausewireError
from causewire.core.endpoint import Delivery
from causewire.node import Node, NodeRejoined, PeerForgotten, PeerLeft, PeerRestarted


class Lost(CausewireError):  # noqa: N818
    """The other process is gone, and will not answer."""


class Asking(ABC):
    """A process that asks others, and answers to them, one request at a time."""

    def __init__(self, node: Node, name: str, others: list[str], first: bool) -> None:
        self.node, self.others, self.first = node, others, first
        self.reading = asyncio.Event()
        self.numbers = count()
        self.waiting: dict[int, tuple[str, asyncio.Future[Any]]] = {}
        self.requests: asyncio.Queue[tuple[str, int, Any]] = asyncio.Queue()
        self.tasks: set[asyncio.Task[None]] = set()

    @abstractmethod
    async def answer(self, source: str, payload: Any) -> Any: ...

    async def request(self, peer: str, payload: Any) -> Any:
        number = next(self.numbers)
        future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self.waiting[number] = peer, future
        try:
            await self.node.send(peer, json.dumps(["ask", number, payload]).encode())
            return await future
        finally:
            self.waiting.pop(number, None)

    async def run(self) -> None:
        self.spawn(self.serve())
        self.spawn(self.watch())
        item: Any
        async for item in self.node:
            if isinstance(item, Delivery):
                kind, number, payload = json.loads(item.payload)
                if kind == "ask":
                    self.requests.put_nowait((item.source, number, payload))
                elif number in self.waiting and not self.waiting[number][1].done():
                    self.waiting[number][1].set_result(payload)
            elif isinstance(item, PeerForgotten | PeerLeft | PeerRestarted):
                self.lost(str(item.name))

    async def watch(self) -> None:
        async for event in self.node.events():
            if isinstance(event, NodeRejoined):
                self.lost("")

    def lost(self, name: str) -> None:
        for peer, future in self.waiting.values():
            if name in ("", peer) and not future.done():
                future.set_exception(Lost(f"{peer} is gone"))

    async def serve(self) -> None:
        while True:
            source, number, payload = await self.requests.get()
            answer = await self.answer(source, payload)
            try:
                await self.node.send(source, json.dumps(["answer", number, answer]).encode())
            except CausewireError:
                continue  # it does not wait any more

    def spawn(self, work: Any) -> None:
        task = asyncio.create_task(work)
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)

    async def leave(self) -> None:
        for task in self.tasks:
            task.cancel()
