"""Who is a member, and the state for those who join: what a group is for, on a bare node.

A newcomer greets everybody and names a sponsor. Whoever delivers the greeting writes to the
newcomer from then on, and tells everybody so. When the sponsor has heard that from all, it has
everything that was not written to the newcomer, and sends its state. What the newcomer gets twice
it recognises by its number.

It is known to be incomplete: if a process dies while it multicasts, some get its last message and
others do not, for good; and two who join at the same time may miss each other's first messages.
"""

from __future__ import annotations

import asyncio
import json
from abc import ABC, abstractmethod
from collections import Counter
from typing import Any

from causewire import CausewireError
from causewire.core.endpoint import Delivery
from causewire.node import Node, NodeRejoined, PeerForgotten, PeerGone, PeerLeft, PeerRestarted


class NotReady(CausewireError):  # noqa: N818
    """This process has no state yet."""


class Members(ABC):
    """A replica of something whose members come and go."""

    def __init__(self, node: Node, name: str, others: list[str], first: bool) -> None:
        self.node, self.name, self.others, self.ready = node, name, others, first
        self.reading = asyncio.Event()
        self.alive: set[str] = set()
        self.seen: Counter[str] = Counter()
        self.early: list[list[Any]] = []
        self.told: dict[str, set[str]] = {}
        self.tasks: set[asyncio.Task[None]] = set()

    @abstractmethod
    def apply(self, source: str, operation: Any) -> None: ...

    @abstractmethod
    def snapshot(self) -> Any: ...

    @abstractmethod
    def restore(self, state: Any) -> None: ...

    async def send(self, operation: Any) -> None:
        if not self.ready:
            raise NotReady(self.name)
        author = f"{self.name}@{self.node.incarnation}"
        message = ["do", author, self.seen[author] + 1, operation]
        self.take(message)
        await self.write(self.alive, message)

    async def write(self, to: set[str], message: list[Any]) -> None:
        to = set(to)
        while to:
            try:
                await self.node.send(sorted(to), json.dumps(message).encode())
                return
            except PeerGone as gone:
                to -= set(gone.names)

    def take(self, message: list[Any]) -> None:
        _, author, number, operation = message
        if number == self.seen[author] + 1:
            self.seen[author] = number
            self.apply(author.partition("@")[0], operation)

    async def run(self) -> None:
        self.spawn(self.watch())
        if not self.ready:
            self.spawn(self.join())
        item: Any
        async for item in self.node:
            await self.reading.wait()
            if isinstance(item, Delivery):
                await self.received(item.source, json.loads(item.payload))
            elif isinstance(item, PeerForgotten | PeerLeft | PeerRestarted):
                self.alive.discard(str(item.name))
                self.told.pop(str(item.name), None)
                await self.sponsor()

    async def watch(self) -> None:
        async for event in self.node.events():
            if isinstance(event, NodeRejoined):
                self.ready = False
                self.spawn(self.join())

    def spawn(self, work: Any) -> None:
        task = asyncio.create_task(work)
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)

    async def join(self) -> None:
        self.alive.clear()
        self.early.clear()
        while True:
            for sponsor in self.others:
                if self.ready:
                    return
                if sponsor in self.node.peers_up():
                    await self.write(set(self.node.peers_up()), ["hello", sponsor])
                    await asyncio.sleep(1.0)
            await asyncio.sleep(0.1)

    async def received(self, source: str, message: list[Any]) -> None:
        kind = message[0]
        if kind == "hello":
            self.alive.add(source)
            if message[1] == self.name and self.ready:
                self.told[source] = set()
            await self.write(self.alive, ["added", source])
        elif kind == "added":
            if message[1] == self.name:
                self.alive.add(source)
            if message[1] in self.told:
                self.told[message[1]].add(source)
        elif kind == "state":
            if not self.ready:
                self.ready = True
                self.seen = Counter(message[1])
                self.restore(message[2])
                for each in self.early:
                    self.take(each)
        elif self.ready:
            self.take(message)
        else:
            self.early.append(message)
        await self.sponsor()

    async def sponsor(self) -> None:
        for newcomer, told in list(self.told.items()):
            if told >= self.alive - {newcomer}:
                del self.told[newcomer]
                await self.write({newcomer}, ["state", dict(self.seen), self.snapshot()])

    async def leave(self) -> None:
        self.ready = False
