"""How long a request and its answer take, compared with zmq.asyncio and nats-py.

    python benchmarks/request_reply.py [--requests N] [--repetitions R]

One process serves, another one has 1 client or 7, each of which asks again as soon as it has its
answer; requests and answers have 64 bytes or 4 KiB. Contenders take turns. The table has the
median over the repetitions of the 50th and the 99th percentile in microseconds, and the ratio to
the same of the kit. `zmq` is REQ and REP, with one REP socket for each client; `nats` goes through
a `nats-server`, and is left out where there is no such program or `nats-py` is not installed.
"""

from __future__ import annotations

import argparse
import asyncio
import multiprocessing as mp
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from statistics import median
from typing import Any

from causewire.kit import Kit, Request
from causewire.node import Node, run

Ask = Callable[[bytes], Awaitable[Any]]
"""Sends a request, and returns when the answer is there."""


# -- the kit --------------------------------------------------------------------


def serve_kit(pipe: Any, clients: int) -> None:
    """Answer every request by itself."""

    async def main() -> None:
        async with Node("server", ordered_events=True) as node, Kit(node) as kit:

            @kit.serves()
            async def echo(request: Request) -> Any:
                return request.payload

            pipe.send(node.address)
            await asyncio.to_thread(pipe.recv)

    run(main())


async def ask_kit(address: Any, number: int, measure: Callable[[Ask], Awaitable[None]]) -> None:
    """Measure one client of the kit."""
    peers = {"server": address}
    async with Node(f"c{number}", peers=peers, ordered_events=True) as node, Kit(node) as kit:
        await measure(lambda payload: kit.request("server", payload))


# -- zmq ------------------------------------------------------------------------


def serve_zmq(pipe: Any, clients: int) -> None:
    """Answer every request by itself."""
    import zmq
    import zmq.asyncio

    async def echo(sock: Any) -> None:
        while True:
            await sock.send(await sock.recv())

    async def main() -> None:
        with zmq.asyncio.Context() as context:
            sockets = [context.socket(zmq.REP) for _ in range(clients)]
            pipe.send([sock.bind_to_random_port("tcp://127.0.0.1") for sock in sockets])
            tasks = [asyncio.create_task(echo(sock)) for sock in sockets]
            await asyncio.to_thread(pipe.recv)
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            for sock in sockets:
                sock.close(linger=0)

    run(main())


async def ask_zmq(ports: Any, number: int, measure: Callable[[Ask], Awaitable[None]]) -> None:
    """Measure one client of zmq."""
    import zmq
    import zmq.asyncio

    with zmq.asyncio.Context() as context, context.socket(zmq.REQ) as sock:
        sock.connect(f"tcp://127.0.0.1:{ports[number]}")

        async def ask(payload: bytes) -> bytes:
            await sock.send(payload)
            return bytes(await sock.recv())

        await measure(ask)


# -- nats -----------------------------------------------------------------------


def nats_server() -> str | None:
    """Return the path of the program, or None if there is none."""
    place = Path(sys.executable).with_name("nats-server")
    return str(place) if place.exists() else shutil.which("nats-server")


def serve_nats(pipe: Any, clients: int) -> None:
    """Start a server of NATS, and answer every request by itself."""
    import nats

    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    program = str(nats_server())
    quiet = subprocess.DEVNULL
    words = [program, "-a", "127.0.0.1", "-p", str(port)]

    async def main() -> None:
        connection = await nats.connect(f"nats://127.0.0.1:{port}", max_reconnect_attempts=20)

        async def echo(message: Any) -> None:
            await message.respond(message.data)

        await connection.subscribe("echo", cb=echo)
        await connection.flush()
        pipe.send(port)
        await asyncio.to_thread(pipe.recv)
        await connection.close()

    with subprocess.Popen(words, stdout=quiet, stderr=quiet) as server:
        try:
            time.sleep(1)
            run(main())
        finally:
            server.terminate()


async def ask_nats(port: Any, number: int, measure: Callable[[Ask], Awaitable[None]]) -> None:
    """Measure one client of NATS."""
    import nats

    connection = await nats.connect(f"nats://127.0.0.1:{port}")
    await measure(lambda payload: connection.request("echo", payload, timeout=30))
    await connection.close()


# -- measuring ------------------------------------------------------------------


CONTENDERS: dict[str, tuple[Callable[..., None], Callable[..., Any]]] = {
    "kit": (serve_kit, ask_kit),
    "zmq": (serve_zmq, ask_zmq),
    "nats": (serve_nats, ask_nats),
}


def contenders() -> list[str]:
    """Return those that this machine has."""
    found = ["kit"]
    for name, module in (("zmq", "zmq"), ("nats", "nats")):
        try:
            __import__(module)
        except ImportError:
            continue
        if name != "nats" or nats_server():
            found.append(name)
    return found


def times(name: str, clients: int, size: int, requests: int) -> list[float]:
    """Return how long each request took, in microseconds, without the first ones."""
    serve, ask = CONTENDERS[name]
    ours, theirs = mp.Pipe()
    server = mp.get_context("spawn").Process(target=serve, args=(theirs, clients), daemon=False)
    server.start()
    theirs.close()  # so that a server that fails is noticed
    address = ours.recv()
    taken: list[float] = []
    each = -(-requests // clients)

    async def measure(request: Ask) -> None:
        payload = bytes(size)
        for k in range(each + 50):
            start = time.perf_counter()
            await request(payload)
            if k >= 50:
                taken.append(1e6 * (time.perf_counter() - start))

    async def main() -> None:
        await asyncio.gather(*[ask(address, k, measure) for k in range(clients)])

    run(main())
    ours.send(None)
    server.join()
    return sorted(taken)


def main() -> None:
    """Measure all contenders in turn, and print a table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--requests", type=int, default=5000)
    parser.add_argument("--repetitions", type=int, default=5)
    args = parser.parse_args()
    names = contenders()
    print(f"{'clients':>7} {'bytes':>6} {'':5} {'p50':>8} {'ratio':>6} {'p99':>8} {'ratio':>6}")
    for clients in (1, 7):
        for size in (64, 4096):
            found: dict[str, list[tuple[float, float]]] = {name: [] for name in names}
            for _ in range(args.repetitions):
                for name in names:
                    taken = times(name, clients, size, args.requests)
                    half, most = taken[len(taken) // 2], taken[int(0.99 * len(taken))]
                    found[name].append((half, most))
            base = [median(column) for column in zip(*found["kit"], strict=True)]
            for name in names:
                p50, p99 = (median(column) for column in zip(*found[name], strict=True))
                print(
                    f"{clients:7} {size:6} {name:5} {p50:8.0f} {p50 / base[0]:6.2f} "
                    f"{p99:8.0f} {p99 / base[1]:6.2f}",
                    flush=True,
                )


if __name__ == "__main__":
    main()
