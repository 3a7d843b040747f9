"""What one message executes on its way, counted instead of timed.

    python benchmarks/path.py [--protocol NAME] [--sealed] [--clients N] [--functions]
    python benchmarks/path.py --instructions [--compiled DIR] [--protocol NAME] [--clients N]
                              [--parts]
    python benchmarks/path.py --all-to-all N [--functions] [--instructions [--compiled DIR]]

Clients send a request to a server, which answers at once, one request after the other, on
an event loop in virtual time. Everything that is executed is traced, and counted for each
request and its reply: lines of Python and calls, by package or by function, and datagrams.
The counts do not depend on the machine or on what else runs on it, so they show whether a
change made the path of a message longer or shorter where seconds would not.

With `--all-to-all`, N processes send to random others as fast as they can, and everything is
counted for each message, what sends and receives it included.

Lines of `asyncio` are those of its event loop in Python; with uvloop they are not executed.

With `--instructions`, the instructions of the processor are counted instead, by Valgrind
(callgrind), which takes some minutes: on the sources, and with `--compiled` on the compiled build
as well (`python hatch_build.py out/compiled`). They include the event loop and the network in
memory that replace uvloop and the kernel, which are the same in both builds. With `--parts`, two
parts are counted by themselves as well: tasks that exchange datagrams on that loop without any
node, and the two endpoints of the protocol without any transport (csps, sps and fifo).
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import sys
from collections import Counter
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from random import Random
from types import CodeType, FrameType
from typing import Any, NamedTuple

from causewire import protocols
from causewire.core import fifo, hybrid
from causewire.node import Node
from causewire.node.running import COLLECT_AFTER
from causewire.testing.virtual import VirtualLoop, run

PAYLOAD = bytes(64)
KEY = b"a cluster key of 32 random bytes"
TRAVEL = 0.0001
"""Seconds that a datagram is under way, in virtual time."""


class Counts(NamedTuple):
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


def exchange(protocol: str, clients: int, requests: int) -> None:
    """Let clients and a server exchange requests and replies; nothing is counted."""
    count_path(clients, requests, nullcontext(), protocol=protocol)


def count_path(
    clients: int = 1,
    requests: int = 200,
    counting: AbstractContextManager[None] | None = None,
    **settings: Any,
) -> Counts:
    """Return what a request and its reply execute, on average of all clients.

    Args:
        clients: How many clients ask the server at the same time.
        requests: How many requests each of them makes.
        counting: What is on during these requests; by default, lines and calls are counted.
        settings: Settings of the nodes.
    """
    counted = _Counting()

    async def main(loop: VirtualLoop) -> Counts:
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
        carried = loop.network.carried
        tasks = [asyncio.create_task(ask(node, requests)) for node in asking]
        with counting or counted:
            await asyncio.gather(*tasks)
        total = clients * requests
        path = Counts(
            {code: n / total for code, n in counted.lines.items()},
            {code: n / total for code, n in counted.calls.items()},
            (loop.network.carried - carried) / total,
        )
        serving.cancel()
        for node in (*asking, server):
            await node.close(0.0)
        return path

    return run(main)


def echo(requests: int) -> None:
    """Let two tasks exchange datagrams, each sent at the end of a turn; there is no node."""

    async def main(loop: VirtualLoop) -> None:
        loop.network.fate = lambda *_: [TRAVEL]
        client, server = loop.network.socket(1), loop.network.socket(2)
        waiting: dict[Any, asyncio.Future[bytes]] = {}

        def readable(sock: Any) -> None:
            waiting.pop(sock).set_result(sock.recvfrom(1 << 16)[0])

        async def receive(sock: Any) -> bytes:
            waiting[sock] = loop.create_future()
            return await waiting[sock]

        def send(sock: Any, data: bytes, to: Any) -> None:
            loop.call_soon(loop.call_soon, sock.sendto, data, to)

        async def serve() -> None:
            while True:
                send(server, await receive(server), client.address)

        for sock in (client, server):
            loop.add_reader(sock, lambda sock=sock: readable(sock))
        serving = asyncio.create_task(serve())
        await asyncio.sleep(0)
        for _ in range(requests):
            send(client, PAYLOAD, server.address)
            await receive(client)
        serving.cancel()

    run(main)


def endpoints(protocol: str, requests: int) -> None:
    """Let two endpoints exchange messages as a transport does that packs one into a datagram."""
    options: dict[str, Any] = {"replies_early": True} if protocol == "csps" else {}
    both: Any = [protocols.create(protocol, me=name, **options) for name in ("a", "b")]
    senders = [both[0].sender_to("b"), both[1].sender_to("a")]
    for k in range(2 * requests):
        sender, receiver = both[k % 2], both[1 - k % 2]
        senders[k % 2](PAYLOAD)
        runs = sender.take_runs()
        for mid in sender.take_acks().values():
            receiver.receive(sender.me, fifo.Ack(mid))
        for mid in sender.take_permits().values():
            receiver.receive(sender.me, hybrid.Permit(mid))
        for _, messages in runs:
            receiver.receive_run(sender.me, messages)
        receiver.take_deliveries()


def throng(protocol: str, nodes: int, messages: int) -> None:
    """Let processes send messages to random others; nothing is counted."""
    count_throng(nodes, messages, nullcontext(), protocol=protocol)


def count_throng(
    nodes: int,
    messages: int = 2000,
    counting: AbstractContextManager[None] | None = None,
    **settings: Any,
) -> Counts:
    """Return what a message executes if everybody sends to everybody as fast as possible.

    Args:
        nodes: How many processes there are.
        messages: How many each of them sends to others that are chosen at random.
        counting: What is on meanwhile; by default, lines and calls are counted.
        settings: Settings of the nodes.
    """
    counted = _Counting()
    names = [f"n{k}" for k in range(nodes)]
    targets = [
        Random(k).choices([name for name in names if name != names[k]], k=messages)
        for k in range(nodes)
    ]

    async def main(loop: VirtualLoop) -> Counts:
        loop.network.fate = lambda *_: [TRAVEL]
        sockets: list[Any] = [loop.network.socket(1 + k) for k in range(nodes)]
        crowd = [
            await Node(name, sock=sock, **settings).start()
            for name, sock in zip(names, sockets, strict=True)
        ]
        for node in crowd:
            for other in crowd:
                if other is not node:
                    await node.add_peer(other.name, other.address)
        await asyncio.sleep(1)
        gc.set_threshold(COLLECT_AFTER)  # as `causewire.node.run` does

        async def send(node: Node, to: list[str]) -> None:
            for name in to:
                await node.send(name, PAYLOAD)

        async def receive(node: Node, left: int) -> None:
            async for _ in node:
                left -= 1
                if not left:
                    break

        carried = loop.network.carried
        expected = [sum(to.count(name) for to in targets) for name in names]
        with counting or counted:
            await asyncio.gather(
                *[send(node, to) for node, to in zip(crowd, targets, strict=True)],
                *[receive(node, left) for node, left in zip(crowd, expected, strict=True)],
            )
        total = nodes * messages
        path = Counts(
            {code: n / total for code, n in counted.lines.items()},
            {code: n / total for code, n in counted.calls.items()},
            (loop.network.carried - carried) / total,
        )
        for node in crowd:
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


def show(path: Counts, functions: bool) -> None:
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
                if path.calls[code] >= 0.05 or path.lines.get(code, 0.0) >= 0.05:
                    name = f"  {code.co_filename.rsplit('/', 1)[-1][:-3]}:{code.co_qualname}"
                    print(f"{name:40} {path.lines.get(code, 0.0):8.1f} {path.calls[code]:8.1f}")
    ours = [code for code in path.calls if (package_of(code) or "").startswith("causewire")]
    lines = sum(path.lines.get(code, 0.0) for code in ours)
    print(f"{'causewire':40} {lines:8.1f} {sum(path.calls[code] for code in ours):8.1f}")
    print(f"datagrams: {path.datagrams:.3g}")


def show_instructions(protocol: str, clients: list[int], compiled: Path | None) -> None:
    """Print the instructions for a request and its reply, of each build."""
    import _instructions  # next to this program

    print(f"{'instructions for a request and its reply':42} {'':>12} {'x pure':>8}")
    for count in clients:
        first = 0.0
        for name, build in _instructions.builds(compiled):
            turns = (50, 150) if count == 1 else (20, 50)
            spent = _instructions.per_repetition(
                build, "path", "exchange", [protocol, count], turns
            )
            first = first or spent
            label = f"{protocol}, {count} client{'s' if count > 1 else ''}, {name}"
            print(f"{label:42} {spent / count:12,.0f} {spent / first:8.2f}", flush=True)


def show_parts(protocol: str, compiled: Path | None) -> None:
    """Print the instructions of two parts of a request and its reply by themselves."""
    import _instructions  # next to this program

    for name, build in _instructions.builds(compiled):
        for label, function, arguments in (
            ("event loop and network", "echo", []),
            (f"two endpoints of {protocol}", "endpoints", [protocol]),
        ):
            spent = _instructions.per_repetition(build, "path", function, arguments, (50, 450))
            print(f"{f'{label}, {name}':42} {spent:12,.0f}", flush=True)


def show_throng(protocol: str, nodes: int, compiled: Path | None) -> None:
    """Print the instructions of a message among many processes, of each build."""
    import _instructions  # next to this program

    first = 0.0
    for name, build in _instructions.builds(compiled):
        spent = _instructions.per_repetition(
            build, "path", "throng", [protocol, nodes], (500, 2000)
        )
        first = first or spent
        label = f"{protocol}, all to all, {nodes} processes, {name}"
        print(f"{label:48} {spent / nodes:12,.0f} {spent / first:8.2f}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--protocol", default="csps")
    parser.add_argument("--sealed", action="store_true", help="with a cluster key")
    parser.add_argument("--clients", type=int, nargs="+", default=[1, 7])
    parser.add_argument("--functions", action="store_true", help="list functions as well")
    parser.add_argument("--instructions", action="store_true", help="count these, with Valgrind")
    parser.add_argument("--parts", action="store_true", help="loop and protocol by themselves")
    parser.add_argument("--compiled", type=Path, metavar="DIR", help="count this build as well")
    parser.add_argument("--all-to-all", type=int, metavar="N", help="processes that all send")
    args = parser.parse_args()
    if args.all_to_all and args.instructions:
        show_throng(args.protocol, args.all_to_all, args.compiled)
        return
    if args.all_to_all:
        print(f"\n{args.protocol}, all to all, {args.all_to_all} processes: for each message")
        show(count_throng(args.all_to_all, protocol=args.protocol), args.functions)
        return
    if args.instructions:
        show_instructions(args.protocol, args.clients, args.compiled)
        if args.parts:
            show_parts(args.protocol, args.compiled)
        return
    for clients in args.clients:
        print(f"\n{args.protocol}, {clients} client{'s' if clients > 1 else ''} and a server")
        key: dict[str, Any] = {"key": KEY} if args.sealed else {}
        show(count_path(clients, protocol=args.protocol, **key), args.functions)


if __name__ == "__main__":
    main()
