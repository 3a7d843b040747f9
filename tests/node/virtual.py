"""An asyncio event loop in virtual time, with sockets that join it to itself.

Nodes run on it unchanged: `loop.time()` jumps to the next thing that is to happen,
and a datagram takes the time that the network says. So a test of minutes takes
milliseconds, and happens the same way every time.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Coroutine
from random import Random
from typing import Any, TypeVar

T = TypeVar("T")

Address = tuple[str, int]


class _NoSelector:
    """Waits for nothing but the time, which it makes pass."""

    def __init__(self, loop: VirtualLoop) -> None:
        self._loop = loop

    def select(self, timeout: float | None) -> list[Any]:
        if timeout is None:
            raise RuntimeError("everybody waits, and nothing will ever happen")
        self._loop.now += timeout
        return []


class VirtualLoop(asyncio.BaseEventLoop):
    """A loop whose time only passes when there is nothing to do."""

    def __init__(self, seed: int = 0) -> None:
        super().__init__()
        self.now = 0.0
        self._selector = _NoSelector(self)
        self._clock_resolution = 1e-9
        self.random = Random(seed)
        self.network = Network(self)

    def time(self) -> float:
        return self.now

    def _process_events(self, event_list: list[Any]) -> None:
        pass

    def _write_to_self(self) -> None:
        pass

    async def shutdown_default_executor(self, timeout: float | None = None) -> None:
        pass

    def add_reader(self, sock: FakeSocket, callback: Callable[..., None], *args: Any) -> None:
        sock.callback = callback

    def remove_reader(self, sock: FakeSocket) -> None:
        sock.callback = None


class Network:
    """Carries datagrams: `fate` says for each how often and when it arrives."""

    def __init__(self, loop: VirtualLoop) -> None:
        self.loop = loop
        self.sockets: dict[Address, FakeSocket] = {}
        self.fate: Callable[[Address, Address, bytes], list[float]] = lambda *_: [0.001]
        self.carried = 0

    def socket(self, port: int) -> FakeSocket:
        sock = FakeSocket(self, ("127.0.0.1", port))
        self.sockets[sock.address] = sock
        return sock

    def carry(self, source: Address, data: bytes, to: Address) -> None:
        self.carried += 1
        for delay in self.fate(source, to, data):
            self.loop.call_later(delay, self._arrive, source, data, to)

    def _arrive(self, source: Address, data: bytes, to: Address) -> None:
        sock = self.sockets.get(to)
        if sock is not None and sock.callback is not None:
            sock.waiting.append((data, source))
            sock.callback()


class FakeSocket:
    """What a node needs of a socket."""

    def __init__(self, network: Network, address: Address) -> None:
        self.network = network
        self.address = address
        self.waiting: deque[tuple[bytes, Address]] = deque()
        self.callback: Callable[..., None] | None = None
        self.closed = False

    def fileno(self) -> int:
        return -1 if self.closed else self.address[1]

    def getsockname(self) -> Address:
        return self.address

    def recvfrom(self, size: int) -> tuple[bytes, Address]:
        if not self.waiting:
            raise BlockingIOError
        return self.waiting.popleft()

    def sendto(self, data: bytes, to: Address) -> None:
        self.network.carry(self.address, data, to)

    def move(self, port: int) -> None:
        """Take another address, without a word."""
        del self.network.sockets[self.address]
        self.address = ("127.0.0.1", port)
        self.network.sockets[self.address] = self

    def close(self) -> None:
        self.closed = True
        self.network.sockets.pop(self.address, None)


def run(main: Callable[[VirtualLoop], Coroutine[Any, Any, T]], seed: int = 0) -> T:
    """Run a test in virtual time."""
    with asyncio.Runner(loop_factory=lambda: VirtualLoop(seed)) as runner:
        loop = runner.get_loop()
        assert isinstance(loop, VirtualLoop)
        return runner.run(main(loop))
