"""An unreliable network between real processes: datagrams are lost, copied, delayed, damaged.

For tests and demonstrations. For each pair of processes the proxy has two sockets. What
`ann` sends to the socket that stands for `bob` is sent on, or not, from the socket that
stands for `ann` to the real address of `bob`. So each process sees the other at the address
that it was given, and does not notice the proxy.

    proxy = Proxy({"ann": ("127.0.0.1", 9001), "bob": ("127.0.0.1", 9002)}, seed=1, loss=0.1)
    await proxy.start()
    proxy.address("ann", "bob")         # the address of bob for ann
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Collection, Mapping
from itertools import permutations
from random import Random

from ..transport import Address

__all__ = ["Proxy"]


class Proxy:
    """Carries datagrams between processes, with faults that can be changed at any time."""

    def __init__(
        self,
        places: Mapping[str, Address],
        *,
        seed: int = 0,
        loss: float = 0.0,
        duplicate: float = 0.0,
        corrupt: float = 0.0,
        delay: tuple[float, float] = (0.0, 0.0),
    ) -> None:
        self.places = dict(places)
        """The real address of each process."""
        self.loss = loss
        self.duplicate = duplicate
        self.corrupt = corrupt
        self.delay = delay
        """The range of delays in seconds; each datagram draws its own, so a wide range reorders."""
        self.cut: frozenset[str] = frozenset()
        """Processes that are cut off from the others."""
        self.dead: frozenset[tuple[str, str]] = frozenset()
        """Links that carry nothing: source and target."""
        self.carried = 0
        self.lost = 0
        self._random = Random(seed)
        self._sockets: dict[tuple[str, str], socket.socket] = {}

    async def start(self) -> None:
        """Open the sockets."""
        for pair in permutations(self.places, 2):
            self._open(*pair)

    def _open(self, source: str, target: str) -> None:
        sock = self._sockets[source, target] = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        sock.setblocking(False)
        for option in (socket.SO_RCVBUF, socket.SO_SNDBUF):
            sock.setsockopt(socket.SOL_SOCKET, option, 4 << 20)
        sock.bind(("127.0.0.1", 0))
        loop = asyncio.get_running_loop()
        loop.add_reader(sock, self._readable, source, target, sock)

    def stop(self) -> None:
        """Close the sockets."""
        for sock in self._sockets.values():
            self._close(sock)
        self._sockets = {}

    def _close(self, sock: socket.socket) -> None:
        asyncio.get_running_loop().remove_reader(sock)
        sock.close()

    def move(self, name: str) -> None:
        """Give a process new addresses for everybody; the old ones no longer work."""
        for source, target in list(self._sockets):
            if target == name:
                old = self._sockets.pop((source, target))
                self._open(source, target)  # while the old port is in use, so that this is another
                self._close(old)

    def address(self, source: str, target: str) -> Address:
        """Return the address under which one process reaches another."""
        host, port = self._sockets[source, target].getsockname()
        return host, port

    def partition(self, side: Collection[str]) -> None:
        """Cut some processes off from the others; `partition(())` heals."""
        self.cut = frozenset(side)

    def _readable(self, source: str, target: str, sock: socket.socket) -> None:
        try:
            for _ in range(64):
                data = sock.recv(65536)
                self._carry(source, target, data)
        except OSError:
            return

    def _carry(self, source: str, target: str, data: bytes) -> None:
        random = self._random
        for _ in range(2 if random.random() < self.duplicate else 1):
            apart = (source in self.cut) != (target in self.cut) or (source, target) in self.dead
            if random.random() < self.loss or apart:
                self.lost += 1
                continue
            copy = data
            if random.random() < self.corrupt:
                at = random.randrange(len(data))
                copy = data[:at] + bytes([data[at] ^ random.randint(1, 255)]) + data[at + 1 :]
            low, high = self.delay
            if high > 0:
                loop = asyncio.get_running_loop()
                loop.call_later(random.uniform(low, high), self._send, source, target, copy)
            else:
                self._send(source, target, copy)

    def _send(self, source: str, target: str, data: bytes) -> None:
        sock = self._sockets.get((target, source))
        if sock is None:
            return
        try:
            sock.sendto(data, self.places[target])
            self.carried += 1
        except OSError:
            self.lost += 1
