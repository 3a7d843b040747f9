"""An asyncio event loop in virtual time, with a network in memory.

Nodes run on it unchanged: `loop.time()` jumps to the next event, and a datagram takes the
time that the network says. So a test of minutes takes milliseconds, and repeats exactly (if
incarnations are given: a node makes its own from the clock on the wall).

    async def main(loop: VirtualLoop) -> None:
        async with Node("a", sock=loop.network.socket(1)) as a: ...

    run(main, seed=1)
"""

from __future__ import annotations

import asyncio
import math
from collections import deque
from collections.abc import Callable, Coroutine
from random import Random
from typing import Any, TypeVar

__all__ = ["VirtualLoop", "VirtualNetwork", "VirtualSocket", "run"]

T = TypeVar("T")

Address = tuple[str, int]


class _NoSelector:
    """Lets the virtual time pass instead of waiting."""

    def __init__(self, loop: VirtualLoop) -> None:
        self._loop = loop

    def select(self, timeout: float | None) -> list[Any]:
        if timeout is None:
            raise RuntimeError("every task waits, and no event is left")
        self._loop.now += timeout
        # What is due a moment later is not due yet: it would find its time not come, and be
        # armed again for the same moment, for ever.
        self._loop._clock_resolution = math.ulp(self._loop.now)
        return []


class VirtualLoop(asyncio.BaseEventLoop):
    """An event loop whose time only passes when there is nothing to do."""

    def __init__(self, seed: int = 0) -> None:
        super().__init__()
        self.now = 0.0
        self._selector = _NoSelector(self)
        self._clock_resolution = 1e-9
        self.random = Random(seed)
        self.network = VirtualNetwork(self)

    def time(self) -> float:
        return self.now

    def _process_events(self, event_list: list[Any]) -> None:
        pass

    def _write_to_self(self) -> None:
        pass

    async def shutdown_default_executor(self, timeout: float | None = None) -> None:
        pass

    def add_reader(  # type: ignore[override]
        self, fd: Any, callback: Callable[..., Any], *args: Any
    ) -> None:
        """Call `callback` when a datagram arrives at a virtual socket."""
        fd.callback = callback

    async def create_server(self, *_: Any, **__: Any) -> Any:
        """Raise an error: only the sockets of nodes are virtual."""
        raise NotImplementedError("there is no TCP in virtual time, only the sockets of nodes")

    async def create_connection(self, *_: Any, **__: Any) -> Any:
        """Raise an error: only the sockets of nodes are virtual."""
        raise NotImplementedError("there is no TCP in virtual time, only the sockets of nodes")

    def remove_reader(self, fd: Any) -> bool:
        """Stop calling back for a virtual socket."""
        fd.callback = None
        return True


class VirtualNetwork:
    """Carries datagrams; `fate` returns the delays after which each arrives, none if it is lost."""

    def __init__(self, loop: VirtualLoop) -> None:
        self.loop = loop
        self.sockets: dict[Address, VirtualSocket] = {}
        self.fate: Callable[[Address, Address, bytes], list[float]] = lambda *_: [0.001]
        self.carried = 0

    def socket(self, port: int) -> VirtualSocket:
        """Return a new socket, bound to a port of 127.0.0.1."""
        sock = VirtualSocket(self, ("127.0.0.1", port))
        self.sockets[sock.address] = sock
        return sock

    def carry(self, source: Address, data: bytes, to: Address) -> None:
        """Carry a datagram: `fate` decides how many copies arrive, and when."""
        self.carried += 1
        for delay in self.fate(source, to, data):
            self.loop.call_later(delay, self._arrive, source, data, to)

    def _arrive(self, source: Address, data: bytes, to: Address) -> None:
        sock = self.sockets.get(to)
        if sock is not None and sock.callback is not None:
            sock.waiting.append((data, source))
            sock.callback()


class VirtualSocket:
    """The part of a datagram socket that a node uses."""

    def __init__(self, network: VirtualNetwork, address: Address) -> None:
        self.network = network
        self.address = address
        self.waiting: deque[tuple[bytes, Address]] = deque()
        self.callback: Callable[..., None] | None = None
        self.closed = False

    def fileno(self) -> int:
        """Return the port as a file descriptor, or -1 after closing."""
        return -1 if self.closed else self.address[1]

    def getsockname(self) -> Address:
        """Return the address of the socket."""
        return self.address

    def recvfrom(self, size: int) -> tuple[bytes, Address]:
        """Return the next datagram and its source, or raise `BlockingIOError`."""
        if not self.waiting:
            raise BlockingIOError
        return self.waiting.popleft()

    def sendto(self, data: bytes, to: Address) -> None:
        """Send a datagram over the virtual network."""
        self.network.carry(self.address, data, to)

    def move(self, port: int) -> None:
        """Take another address, without telling anybody."""
        del self.network.sockets[self.address]
        self.address = ("127.0.0.1", port)
        self.network.sockets[self.address] = self

    def close(self) -> None:
        """Close the socket; datagrams to it are lost."""
        self.closed = True
        self.network.sockets.pop(self.address, None)


def run(main: Callable[[VirtualLoop], Coroutine[Any, Any, T]], seed: int = 0) -> T:
    """Run a coroutine in virtual time, and return its result."""
    with asyncio.Runner(loop_factory=lambda: VirtualLoop(seed)) as runner:
        loop = runner.get_loop()
        assert isinstance(loop, VirtualLoop)
        return runner.run(main(loop))
