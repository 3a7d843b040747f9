"""Real processes with a store, killed with SIGKILL."""

from __future__ import annotations

import asyncio
import signal
import socket
import sys
from asyncio.subprocess import PIPE, Process
from pathlib import Path

import pytest

from causewire.node import Node, PeerForgotten, PeerLeft, PeerRestarted


def free_port() -> int:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        sock.bind(("127.0.0.1", 0))
        port: int = sock.getsockname()[1]
        return port


class Seen:
    """What processes said and what arrived from them."""

    def __init__(self) -> None:
        self.accepted: list[int] = []
        self.handled: list[int] = []
        self.arrived: list[int] = []
        self.ends: list[object] = []

    async def listen_to(self, process: Process) -> None:
        assert process.stdout is not None
        async for line in process.stdout:
            what, number = line.split()
            (self.accepted if what == b"accepted" else self.handled).append(int(number))

    async def receive(self, node: Node) -> None:
        async for message in node:
            self.arrived.append(message.mid)

    async def watch(self, node: Node) -> None:
        async for event in node.events():
            if isinstance(event, PeerForgotten | PeerRestarted | PeerLeft):
                self.ends.append(event)


@pytest.mark.slow
@pytest.mark.parametrize("protocol", ["csps", "adaptive"])
def test_killed_again_and_again(tmp_path: Path, protocol: str) -> None:
    async def main() -> None:
        seen = Seen()
        port = free_port()
        async with Node("judge", protocol=protocol) as judge:
            program = [sys.executable, "-m", "tests.node.durable_worker"]
            program += [str(port), str(tmp_path / "worker.db"), str(judge.address[1]), protocol]
            await judge.add_peer("worker", ("127.0.0.1", port))
            tasks = [asyncio.create_task(each) for each in (seen.receive(judge), seen.watch(judge))]
            for _ in range(3):
                process = await asyncio.create_subprocess_exec(*program, stdout=PIPE)
                listening = asyncio.create_task(seen.listen_to(process))
                accepted, arrived = len(seen.accepted), len(seen.arrived)
                while len(seen.accepted) < accepted + 20 or len(seen.arrived) < arrived + 10:
                    await judge.send("worker", b"from the judge")
                    await asyncio.sleep(0.01)
                process.send_signal(signal.SIGKILL)
                await process.wait()
                await listening
            process = await asyncio.create_subprocess_exec(*program, stdout=PIPE)
            listening = asyncio.create_task(seen.listen_to(process))
            while set(seen.accepted) - set(seen.arrived) or not judge.idle:
                await asyncio.sleep(0.01)
            process.kill()
            await process.wait()
            await listening
            for task in tasks:
                task.cancel()
            await judge.close(0.0)
        assert seen.arrived == list(range(1, len(seen.arrived) + 1))
        assert set(seen.accepted) <= set(seen.arrived)
        assert len(seen.handled) == len(set(seen.handled))
        assert seen.handled == sorted(seen.handled)
        assert not seen.ends

    asyncio.run(asyncio.wait_for(main(), 60))
