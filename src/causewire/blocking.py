"""A node for programs without asyncio: the same calls, and they wait.

    with causewire.blocking.Node("alice", peers={"bob": "127.0.0.1:9002"}) as alice:
        receipt = alice.send("bob", b"hello")
        receipt.delivered(timeout=5)
        for message in alice:
            print(message.source, message.payload)

The node runs on an event loop in a thread of its own; every call is passed to that
loop and back. That costs tens of microseconds a call: a program in a hurry wants
`causewire.Node`.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Collection, Coroutine, Iterator
from concurrent.futures import Future
from types import TracebackType
from typing import Any, Self, TypeVar

from . import node
from .node import Closed, Message, Reason
from .node.addresses import Place
from .transport import Address

__all__ = ["Node", "Receipt"]

T = TypeVar("T")


class Receipt:
    """A message that was accepted; see `causewire.node.Receipt`."""

    __slots__ = ("_owner", "_receipt")

    def __init__(self, owner: Node, receipt: node.Receipt) -> None:
        self._owner = owner
        self._receipt = receipt

    @property
    def mid(self) -> int:
        return self._receipt.mid

    def delivered(self, timeout: float | None = None) -> None:
        """Wait until every receiver has delivered it; `TimeoutError` if that takes too long."""
        self._owner._wait(self._receipt.delivered(), timeout)


class Node:
    """A process that sends and gets messages; takes the arguments of `causewire.Node`."""

    def __init__(self, name: str, **settings: Any) -> None:
        self._node = node.Node(name, **settings)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread = threading.Thread(target=self._run, name=f"causewire {name}", daemon=True)
        self._started: Future[None] = Future()
        self._ended: asyncio.Event

    def _run(self) -> None:
        try:
            node.run(self._main())
        except BaseException as error:
            if not self._started.done():
                self._started.set_exception(error)
            else:
                raise

    async def _main(self) -> None:
        self._ended = asyncio.Event()
        await self._node.start()
        self._loop = asyncio.get_running_loop()
        self._started.set_result(None)
        await self._ended.wait()

    def _wait(self, task: Coroutine[Any, Any, T], timeout: float | None = None) -> T:
        """Have something done by the loop."""
        if self._loop is None:
            task.close()
            raise Closed(f"{self._node.name} is not running")
        future = asyncio.run_coroutine_threadsafe(task, self._loop)
        try:
            return future.result(timeout)
        except TimeoutError:
            future.cancel()
            raise

    def _ask(self, question: Callable[[], T]) -> T:
        """Call a function on the loop."""

        async def ask() -> T:
            return question()

        return self._wait(ask())

    def start(self) -> Self:
        """Open the socket and look for the peers."""
        self._thread.start()
        self._started.result()
        return self

    def close(self, drain: float | None = None) -> bool:
        """Wait until all is delivered, or `drain` seconds; say which."""
        if self._loop is None:
            return bool(self._node.drained)
        drained = self._wait(self._node.close(drain))
        self._loop.call_soon_threadsafe(self._ended.set)
        self._loop = None
        self._thread.join()
        return drained

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close(0.0 if kind is not None else None)

    def send(self, to: str | Collection[str], payload: bytes) -> Receipt:
        """Send to one process or a set of them; waits only for room."""
        return Receipt(self, self._wait(self._node.send(to, payload)))

    def receive(self, timeout: float | None = None) -> Message:
        """The next message; `TimeoutError` if none comes in time."""
        return self._wait(self._node.receive(timeout))

    def __iter__(self) -> Iterator[Message]:
        while True:
            try:
                message = self.receive()
            except Closed:
                return
            yield message

    @property
    def name(self) -> str:
        return self._node.name

    @property
    def address(self) -> Address:
        return self._node.address

    @property
    def drained(self) -> bool | None:
        return self._node.drained

    def add_peer(self, name: str, place: Place) -> None:
        """Get to know a process, or where it is now."""
        self._wait(self._node.add_peer(name, place))

    def blocked(self) -> list[Reason]:
        """Why has this not arrived?"""
        return self._ask(self._node.blocked)

    def stats(self) -> dict[str, Any]:
        """Counters since the start."""
        return self._ask(self._node.stats)

    def metrics(self) -> str:
        """The same, and more, in the text format of Prometheus."""
        return self._ask(self._node.metrics)
