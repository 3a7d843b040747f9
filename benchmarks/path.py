"""What one message executes on its way, counted instead of timed.

    python benchmarks/path.py [--protocol NAME] [--sealed] [--clients N] [--functions]

Clients send a request to a server, which answers at once, one request after the other, on
an event loop in virtual time. Everything that is executed is traced, and counted for each
request and its reply: lines of Python and calls, by package or by function, and datagrams.
The counts do not depend on the machine or on what else runs on it, so they show whether a
change made the path of a message longer or shorter where seconds would not.

Lines of `asyncio` are those of its event loop in Python; with uvloop they are not executed.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections import Counter
from types import CodeType, FrameType
from typing import Any, NamedTuple

from causewire.node import Node
from causewire.testing.virtual import VirtualLoop, run

PAYLOAD = bytes(64)
KEY = b"a cluster key of 32 random bytes"
TRAVEL = 0.0001
"""Seconds that a datagram is under way, in virtual time."""


class Path(NamedTuple):
    """What was counted, for each request and its reply."""

    lines: dict[CodeType, float]
    calls: dict[CodeType, float]
    datagrams: float


class _Counting:
    """Counts lines and calls of Python while it is on."""

    def __init__(self) -> None:
        self.lines: Counter[CodeType] = Counter()
        self.calls: Counter[CodeType] = Counter()

    def _call(self, frame: FrameType, event: str, _: Any) -> Any:
        self.calls[frame.f_code] += 1
        return self._line

    def _line(self, frame: FrameType, event: str, _: Any) -> Any:
        if event == "line":
            self.lines[frame.f_code] += 1
        return self._line

    def __enter__(self) -> None:
        sys.settrace(self._call)

    def __exit__(self, *_: object) -> None:
        sys.settrace(None)


def count_path(clients: int = 1, requests: int = 200, **settings: Any) -> Path:
    """Return what a request and its reply execute, on average of all clients.

    Args:
        clients: How many clients ask the server at the same time.
        requests: How many requests each of them makes.
        settings: Settings of the nodes.
    """

    async def main(loop: VirtualLoop) -> Path:
        loop.network.fate = lambda *_: [TRAVEL]
        sockets: list[Any] = [loop.network.socket(1 + k) for k in range(1 + clients)]
        server = await Node("server", sock=sockets[0], **settings).start()
        asking = [
            await Node(f"client{k}", sock=sockets[1 + k], **settings).start()
            for k in range(clients)
        ]

        async def serve() -> None:
            async for source, _, payload in server:
                await server.send(source, payload)

        async def ask(node: Node, count: int) -> None:
            for _ in range(count):
                await node.send("server", PAYLOAD)
                await node.receive()

        serving = asyncio.create_task(serve())
        for node in asking:
            await node.add_peer("server", server.address)
        await asyncio.gather(*[ask(node, 20) for node in asking])
        counting, carried = _Counting(), loop.network.carried
        tasks = [asyncio.create_task(ask(node, requests)) for node in asking]
        with counting:
            await asyncio.gather(*tasks)
        total = clients * requests
        path = Path(
            {code: n / total for code, n in counting.lines.items()},
            {code: n / total for code, n in counting.calls.items()},
            (loop.network.carried - carried) / total,
        )
        serving.cancel()
        for node in (*asking, server):
            await node.close(0.0)
        return path

    return run(main)


def package_of(code: CodeType) -> str | None:
    """Return the package that a function belongs to; None for the test harness."""
    name = code.co_filename.replace("\\", "/")
    for package in ("core", "transport", "node"):
        if f"causewire/{package}/" in name:
            return f"causewire.{package}"
    return "asyncio" if "/asyncio/" in name else None


def show(path: Path, functions: bool) -> None:
    """Print the counts, by package, and by function if that is asked for."""
    packages = ("causewire.core", "causewire.transport", "causewire.node", "asyncio")
    print(f"{'':40} {'lines':>8} {'calls':>8}")
    for package in packages:
        codes = [code for code in path.calls if package_of(code) == package]
        lines = sum(path.lines.get(code, 0.0) for code in codes)
        calls = sum(path.calls[code] for code in codes)
        print(f"{package:40} {lines:8.1f} {calls:8.1f}")
        if functions:
            for code in sorted(codes, key=lambda code: -path.lines.get(code, 0.0)):
                if path.calls[code] >= 0.05:
                    name = f"  {code.co_filename.rsplit('/', 1)[-1][:-3]}:{code.co_qualname}"
                    print(f"{name:40} {path.lines.get(code, 0.0):8.1f} {path.calls[code]:8.1f}")
    ours = [code for code in path.calls if (package_of(code) or "").startswith("causewire")]
    lines = sum(path.lines.get(code, 0.0) for code in ours)
    print(f"{'causewire':40} {lines:8.1f} {sum(path.calls[code] for code in ours):8.1f}")
    print(f"datagrams for a request and its reply: {path.datagrams:.2f}")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--protocol", default="csps")
    parser.add_argument("--sealed", action="store_true", help="with a cluster key")
    parser.add_argument("--clients", type=int, nargs="+", default=[1, 7])
    parser.add_argument("--functions", action="store_true", help="list functions as well")
    args = parser.parse_args()
    for clients in args.clients:
        print(f"\n{args.protocol}, {clients} client{'s' if clients > 1 else ''} and a server")
        key: dict[str, Any] = {"key": KEY} if args.sealed else {}
        show(count_path(clients, protocol=args.protocol, **key), args.functions)


if __name__ == "__main__":
    main()
