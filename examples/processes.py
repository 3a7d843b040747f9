"""Starts the processes of an example: each runs the same file again, with a name."""

from __future__ import annotations

import asyncio
import json
import sys
from typing import Any

from causewire import Node


class Child:
    """A process of an example; what it prints comes here, line by line."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process
        self.lines: list[str] = []
        self.task = asyncio.create_task(self._read())
        self.more = asyncio.Event()

    async def _read(self) -> None:
        assert self.process.stdout is not None
        while line := (await self.process.stdout.readline()).decode().rstrip():
            self.lines.append(line)
            self.more.set()

    async def line(self, beginning: str) -> str:
        """Return the first line with this beginning, when it is there."""
        async with asyncio.timeout(30):
            while True:
                for line in self.lines:
                    if line.startswith(beginning):
                        return line
                self.more.clear()
                await self.more.wait()

    def tell(self, line: str) -> None:
        """Give the process a line of input; see `heard`."""
        assert self.process.stdin is not None
        self.process.stdin.write(f"{line}\n".encode())

    async def end(self) -> None:
        """Wait until the process has ended, and everything it printed is here."""
        if self.process.stdin is not None:
            self.process.stdin.close()
        await asyncio.gather(self.process.wait(), self.task)


async def start(file: str, *words: str) -> Child:
    """Start a process."""
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(
        sys.executable, file, *words, stdin=pipe, stdout=pipe
    )
    return Child(process)


async def everywhere(children: dict[str, Child], line: str) -> None:
    """Have processes do something, and wait until each has repeated the line."""
    for child in children.values():
        child.tell(line)
    for child in children.values():
        await child.line(line)


async def introduce(children: dict[str, Child], *detours: tuple[str, str]) -> list[Path]:
    """Have processes reach each other, each of which calls `meet`; return paths for some pairs."""
    places = {name: await child.line("127.") for name, child in children.items()}
    paths = []
    for name, child in children.items():
        peers = {other: place for other, place in places.items() if name < other}
        for other in peers:
            if (name, other) in detours:
                paths.append(await Path.to(peers[other]))
                peers[other] = paths[-1].place
        child.tell(json.dumps(peers))
    for child in children.values():
        await child.line("ready")
    return paths


async def meet(node: Node) -> None:
    """In a process: say where its node is, learn where the others are, and reach two of them."""
    print("{}:{}".format(*node.address), flush=True)
    for name, place in json.loads(await heard()).items():
        await node.add_peer(name, place)
    while len(node.peers_up()) < 2:
        await asyncio.sleep(0.01)
    print("ready", flush=True)


async def heard() -> str:
    """In a process: return the next line of input; it is empty at the end."""
    line: str = await asyncio.to_thread(sys.stdin.readline)
    return line.strip()


class Path(asyncio.DatagramProtocol):
    """A path to an address: it can delay datagrams, or carry none, as a network might."""

    def __init__(self, to: tuple[str, int]) -> None:
        self.destination = to
        self.delay = 0.0
        self.cut = False
        self.back: tuple[str, int] | None = None

    @classmethod
    async def to(cls, place: str) -> Path:
        """Return a path to a process, which has a place of its own."""
        host, _, port = place.partition(":")
        _, path = await asyncio.get_running_loop().create_datagram_endpoint(
            lambda: cls((host, int(port))), local_addr=("127.0.0.1", 0)
        )
        return path

    def connection_made(self, transport: Any) -> None:
        self.transport = transport
        self.place = "{}:{}".format(*transport.get_extra_info("sockname"))

    def datagram_received(self, data: bytes, address: tuple[str, int]) -> None:
        if self.cut:
            return
        if address != self.destination:
            self.back = address
            loop = asyncio.get_running_loop()
            loop.call_later(self.delay, self.transport.sendto, data, self.destination)
        elif self.back is not None:
            self.transport.sendto(data, self.back)
