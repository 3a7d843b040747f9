"""Real node processes on loopback, with an unreliable network between them.

    async with Cluster(["ann", "bob"], program, {"loss": 0.1}, protocol="csps") as cluster:
        cluster.tell("ann", "...")              # a line for the program
        answer = await cluster.answer("ann")    # one JSON object

`program` is the path of a script with a `puppet.Puppet`. Each process takes a free port and
reports it; the others reach it through the proxy, before and after a restart.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Mapping, Sequence
from signal import SIGCONT
from typing import Any, Self

from .proxy import Proxy

__all__ = ["Cluster"]

_NOWHERE = ("127.0.0.1", 9)
"""The discard port: the address of a process until it has reported its own."""

_LONGEST = 1 << 24
"""The longest line that a process may answer with."""


class Cluster:
    """Processes by name, each a program that obeys commands."""

    def __init__(
        self,
        names: Sequence[str],
        program: str | os.PathLike[str],
        faults: Mapping[str, Any] | None = None,
        *,
        each: Mapping[str, Mapping[str, Any]] | None = None,
        **settings: Any,
    ) -> None:
        self.names = list(names)
        self.proxy = Proxy(dict.fromkeys(names, _NOWHERE), **(faults or {}))
        self.processes: dict[str, asyncio.subprocess.Process] = {}
        self._program = os.fspath(program)
        self._settings = settings
        self._each = each or {}
        """Settings that differ from one process to another."""

    async def __aenter__(self) -> Self:
        await self.proxy.start()
        try:
            await asyncio.gather(*map(self.start, self.names))
        except BaseException:
            await self.__aexit__()
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        for process in self.processes.values():
            if process.returncode is None:
                process.send_signal(SIGCONT)
                process.kill()
                await process.wait()
        self.proxy.stop()

    async def start(self, name: str, **more: Any) -> None:
        """Start a process, or start it again, with `more` settings for this start."""
        peers = {other: self.proxy.address(name, other) for other in self.names if other != name}
        settings = {"name": name, "peers": peers, **self._settings, **self._each.get(name, {})}
        settings |= more
        self.processes[name] = await asyncio.create_subprocess_exec(
            sys.executable,
            self._program,
            json.dumps(settings),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            limit=_LONGEST,
            env=os.environ | {"PYTHONWARNINGS": "default"},
            start_new_session=True,  # an interrupt is for us only: we end them
        )
        port = (await self.answer(name))["port"]
        self.proxy.places[name] = ("127.0.0.1", port)

    def tell(self, name: str, command: str) -> None:
        """Send a process a line."""
        stdin = self.processes[name].stdin
        assert stdin is not None
        stdin.write(f"{command}\n".encode())

    async def answer(self, name: str, timeout: float = 30.0) -> dict[str, Any]:
        """Return the next answer of a process."""
        stdout = self.processes[name].stdout
        assert stdout is not None
        async with asyncio.timeout(timeout):
            line = await stdout.readline()
        if not line:
            raise RuntimeError(f"process {name} ended: its standard error has more")
        answer: dict[str, Any] = json.loads(line)
        return answer

    async def ask(self, name: str, command: str) -> dict[str, Any]:
        """Send a process a line, and return its answer."""
        self.tell(name, command)
        return await self.answer(name)

    async def stop(self) -> dict[str, dict[str, Any]]:
        """Close all processes, and return the last answer of each."""
        for name in self.names:
            self.tell(name, "stop")
        said = {name: await self.answer(name) for name in self.names}
        for process in self.processes.values():
            await process.wait()
        return said
