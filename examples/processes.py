"""Starts the processes of an example: each runs the same file again, with a name."""

from __future__ import annotations

import asyncio
import sys


class Child:
    """A process of an example; its lines are printed with its name in front."""

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

    async def end(self) -> None:
        """Wait until the process has ended, and everything it printed is here."""
        await asyncio.gather(self.process.wait(), self.task)


async def start(file: str, *words: str) -> Child:
    """Start a process."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, file, *words, stdout=asyncio.subprocess.PIPE
    )
    return Child(process)
