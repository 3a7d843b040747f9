"""Real node processes on loopback, with a proxy in between."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from causewire.node.proxy import Proxy

WORKER = str(Path(__file__).with_name("worker.py"))


def free_ports(count: int) -> list[int]:
    socks = [socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in range(count)]
    for sock in socks:
        sock.bind(("127.0.0.1", 0))
    ports = [sock.getsockname()[1] for sock in socks]
    for sock in socks:
        sock.close()
    return ports


class Cluster:
    """Processes a, b, c, ... that find each other through a proxy."""

    def __init__(self, names: Sequence[str], folder: Path, faults: dict[str, Any], **settings: Any):
        self.names = list(names)
        self.folder = folder
        self.settings = settings
        ports = free_ports(len(names))
        places = {name: ("127.0.0.1", port) for name, port in zip(names, ports, strict=True)}
        self.proxy = Proxy(places, **faults)
        self.processes: dict[str, asyncio.subprocess.Process] = {}

    async def __aenter__(self) -> Cluster:
        await self.proxy.start()
        await asyncio.gather(*(self.start(name) for name in self.names))
        return self

    async def __aexit__(self, *_: object) -> None:
        for process in self.processes.values():
            if process.returncode is None:
                process.send_signal(signal.SIGCONT)
                process.kill()
                await process.wait()
        self.proxy.stop()

    async def start(self, name: str) -> None:
        settings = {
            "name": name,
            "port": self.proxy.places[name][1],
            "seed": sum(name.encode()),
            "peers": {n: self.proxy.address(name, n) for n in self.names if n != name},
            "trace": str(self.folder / f"{name}.jsonl"),
        } | self.settings
        process = self.processes[name] = await asyncio.create_subprocess_exec(
            sys.executable,
            WORKER,
            json.dumps(settings),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            env=os.environ | {"PYTHONWARNINGS": "default"},
        )
        assert (await self.answer(name))["ready"]
        assert process.returncode is None

    def tell(self, name: str, command: str) -> None:
        stdin = self.processes[name].stdin
        assert stdin is not None
        stdin.write(f"{command}\n".encode())

    async def answer(self, name: str, timeout: float = 30.0) -> dict[str, Any]:
        stdout = self.processes[name].stdout
        assert stdout is not None
        line = await asyncio.wait_for(stdout.readline(), timeout)
        answer: dict[str, Any] = json.loads(line)
        return answer

    async def ask(self, name: str, command: str) -> dict[str, Any]:
        self.tell(name, command)
        return await self.answer(name)

    async def quiet(self, timeout: float = 40.0) -> list[dict[str, Any]]:
        """Wait until nobody has anything left to do; returns the states."""
        async with asyncio.timeout(timeout):
            while True:
                states = [await self.ask(name, "state") for name in self.names]
                if all(state["quiet"] for state in states):
                    return states
                await asyncio.sleep(0.1)

    async def heard(self, name: str, event: str, timeout: float = 20.0) -> None:
        """Wait until something has happened to a peer of a process."""
        async with asyncio.timeout(timeout):
            while not any(event in e for e in (await self.ask(name, "state"))["events"]):
                await asyncio.sleep(0.05)

    async def stop(self) -> list[bool]:
        """Close all; returns whether each had everything delivered."""
        for name in self.names:
            self.tell(name, "stop")
        drained = [(await self.answer(name))["drained"] for name in self.names]
        for process in self.processes.values():
            await process.wait()
        return drained

    @property
    def traces(self) -> list[str]:
        return [str(self.folder / f"{name}.jsonl") for name in self.names]
