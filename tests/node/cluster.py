"""A cluster of the tests' processes, and what one waits for in it."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from causewire.testing import cluster

WORKER = Path(__file__).with_name("worker.py")


def free_ports(count: int) -> list[int]:
    """Ports that nobody has at the moment; for commands that are told theirs."""
    socks = [socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in range(count)]
    for sock in socks:
        sock.bind(("127.0.0.1", 0))
    ports = [sock.getsockname()[1] for sock in socks]
    for sock in socks:
        sock.close()
    return ports


class Cluster(cluster.Cluster):
    """Workers, each of which writes a trace."""

    def __init__(
        self, names: Sequence[str], folder: Path, faults: Mapping[str, Any], **settings: Any
    ) -> None:
        traces = {name: {"trace": str(folder / f"{name}.jsonl")} for name in names}
        super().__init__(names, WORKER, faults, each=traces, **settings)

    async def quiet(self, timeout: float = 40.0) -> list[dict[str, Any]]:
        """Wait until nobody has anything left to do; returns the states.

        They are asked one after the other, and an answer may pass behind one's back.
        So all have to be quiet twice, with nothing sent or got in between.
        """
        before: list[tuple[int, int]] = []
        async with asyncio.timeout(timeout):
            while True:
                states = [await self.ask(name, "state") for name in self.names]
                counts = [(state["stats"]["sent"], state["got"]) for state in states]
                quiet = all(state["quiet"] for state in states)
                if quiet and counts == before:
                    return states
                before = counts if quiet else []
                await asyncio.sleep(0.1)

    async def until(self, name: str, command: str, what: str, timeout: float = 30.0) -> None:
        """Wait until an answer of a process has these words in it."""
        async with asyncio.timeout(timeout):
            while what not in str(await self.ask(name, command)):
                await asyncio.sleep(0.05)

    async def stalled(self, name: str, timeout: float = 30.0) -> int:
        """Wait until a process that sends has to wait; returns how many it has sent."""
        before = -1
        async with asyncio.timeout(timeout):
            while True:
                sent: int = (await self.ask(name, "state"))["stats"]["sent"]
                if sent == before:
                    return sent
                before = sent
                await asyncio.sleep(0.5)

    async def close(self) -> bool:
        """Close all; returns whether everything was delivered."""
        return all(said["drained"] for said in (await self.stop()).values())
