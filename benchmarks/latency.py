"""How long a message and its answer take, and how many datagrams and how much processor time.

    python benchmarks/latency.py [--requests N] [--repetitions R] [--clients 1 7]
                                 [--sizes 64 4096] [--only NAME ...] [--compiled DIR]

A server echoes what its clients send; each client sends its next request when it has the reply.
All are processes of their own on loopback. Contenders take turns. Of each repetition the
percentiles of half a round trip are taken, and the table has the medians over all repetitions:
microseconds, processor time of all processes for one message, and datagrams for a request and
its reply. The last column compares the median with that of `zmq.asyncio`.

    csps, sps, adaptive, fifo   nodes; "sealed" with a cluster key, "asyncio" without uvloop
    zmq, zmq.asyncio            DEALER and ROUTER, blocking and on asyncio (compiled C, TCP)
    udp                         a bare datagram protocol on uvloop: no acks, no order
    turns                       what a node does with its loop, and nothing else: tasks that wait,
                                and turns that end; no protocol and no transport (only if asked for)
    nats                        nats-py on uvloop, through a `nats-server`, whose processor time
                                is not counted; left out where there is no such program

The first line says whether nodes run on the compiled transport. With `--compiled DIR`, where DIR
is what `python hatch_build.py DIR` made, there are nodes on the compiled transport ("csps
compiled") and nodes on its sources, taking turns.
"""

from __future__ import annotations

import argparse
import asyncio
import multiprocessing as mp
import resource
import shutil
import socket
import statistics
import subprocess
import sys
import time
from collections import deque
from collections.abc import Callable, Coroutine
from importlib.util import find_spec
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from _builds import Builds

from causewire.node import Node, run

KEY = b"a cluster key of 32 random bytes"
NODES: dict[str, dict[str, Any]] = {
    "csps": {"protocol": "csps"},
    "sps": {"protocol": "sps"},
    "adaptive": {"protocol": "adaptive"},
    "fifo": {"protocol": "fifo"},
    "csps sealed": {"protocol": "csps", "key": KEY},
    "csps asyncio": {"protocol": "csps"},
}
OTHERS = ["zmq", "zmq.asyncio", "udp", "nats"]
IF_ASKED = ["turns"]
NEEDS = {
    "zmq": "zmq",
    "zmq.asyncio": "zmq",
    "udp": "uvloop",
    "turns": "uvloop",
    "nats": "nats",
    "csps sealed": "cryptography",
}


class Talk:
    """What one process needs to know, and what it measures."""

    def __init__(self, pipe: Connection, me: int, clients: int, count: int, size: int) -> None:
        self.pipe = pipe
        self.me = me
        self.clients = clients
        self.count = count
        self.payload = bytes(size)
        self.times: list[float] = []
        self.datagrams = 0

    def places(self, mine: Any) -> list[Any]:
        """Tell the others the address of this process, and return all addresses."""
        self.pipe.send(mine)
        places: list[Any] = self.pipe.recv()
        return places

    def ready(self) -> None:
        """Wait until everybody is."""
        self.pipe.send("ready")
        self.pipe.recv()
        self._cpu = _cpu()

    def finish(self) -> None:
        """Report, and stay until everybody has reported."""
        times = sorted(self.times[len(self.times) // 10 :])
        cuts = [times[int(len(times) * part)] for part in (0.5, 0.9, 0.99)] if times else []
        self.pipe.send((cuts, _cpu() - self._cpu, self.datagrams))
        self.pipe.recv()


def _cpu() -> float:
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


# -- contenders ------------------------------------------------------------------


def node(talk: Talk, name: str) -> None:
    async def main() -> None:
        async with Node(f"n{talk.me}", **NODES[name]) as node:
            places = talk.places(node.address)
            names = [f"n{k}" for k in range(talk.clients + 1)]
            others = names[1:] if talk.me == 0 else names[:1]
            for other in others:
                await node.add_peer(other, tuple(places[names.index(other)]))
            while len(node.peers_up()) < len(others):
                await asyncio.sleep(0.01)
            await asyncio.to_thread(talk.ready)
            before = node.stats()["datagrams_out"]
            if talk.me == 0:
                for _ in range(talk.count * talk.clients):
                    source, _, payload = await node.receive()
                    await node.send(source, payload)
            else:
                for _ in range(talk.count):
                    start = time.perf_counter()
                    await node.send("n0", talk.payload)
                    await node.receive()
                    talk.times.append((time.perf_counter() - start) / 2)
            talk.datagrams = node.stats()["datagrams_out"] - before
            await asyncio.sleep(0.2)  # let the last acks through
            await asyncio.to_thread(talk.finish)

    start: Callable[[Coroutine[Any, Any, None]], None] = (
        asyncio.run if name.endswith("asyncio") else run
    )
    start(main())


def zmq_blocking(talk: Talk, name: str) -> None:
    import zmq

    context = zmq.Context()
    sock = context.socket(zmq.DEALER if talk.me else zmq.ROUTER)
    if talk.me:
        port = talk.places(None)[0]
        sock.connect(f"tcp://127.0.0.1:{port}")
        talk.ready()
        for _ in range(talk.count):
            start = time.perf_counter()
            sock.send(talk.payload)
            sock.recv()
            talk.times.append((time.perf_counter() - start) / 2)
    else:
        talk.places(sock.bind_to_random_port("tcp://127.0.0.1"))
        talk.ready()
        for _ in range(talk.count * talk.clients):
            sock.send_multipart(sock.recv_multipart())
    talk.finish()
    sock.close()
    context.term()


def zmq_asyncio(talk: Talk, name: str) -> None:
    import zmq.asyncio

    async def main() -> None:
        context = zmq.asyncio.Context()
        sock = context.socket(zmq.DEALER if talk.me else zmq.ROUTER)
        if talk.me:
            port = talk.places(None)[0]
            sock.connect(f"tcp://127.0.0.1:{port}")
            talk.ready()
            for _ in range(talk.count):
                start = time.perf_counter()
                await sock.send(talk.payload)
                await sock.recv()
                talk.times.append((time.perf_counter() - start) / 2)
        else:
            talk.places(sock.bind_to_random_port("tcp://127.0.0.1"))
            talk.ready()
            for _ in range(talk.count * talk.clients):
                await sock.send_multipart(await sock.recv_multipart())
        talk.finish()
        sock.close()
        context.term()

    asyncio.run(main())


class _Echo(asyncio.DatagramProtocol):
    """Returns datagrams to where they came from, or hands them to whoever waits."""

    def __init__(self, echoes: bool) -> None:
        self._echoes = echoes
        self._left = 0
        self.reply: asyncio.Future[None] | None = None
        self.done = asyncio.get_running_loop().create_future()

    def expect(self, count: int) -> None:
        self._left = count

    def connection_made(self, transport: Any) -> None:
        self._transport = transport

    def datagram_received(self, data: bytes, address: Any) -> None:
        if not self._echoes:
            assert self.reply is not None
            self.reply.set_result(None)
            return
        self._transport.sendto(data, address)
        self._left -= 1
        if not self._left:
            self.done.set_result(None)


def udp(talk: Talk, name: str) -> None:
    import uvloop

    async def main() -> None:
        loop = asyncio.get_running_loop()
        transport, echo = await loop.create_datagram_endpoint(
            lambda: _Echo(talk.me == 0), local_addr=("127.0.0.1", 0)
        )
        server = tuple(talk.places(transport.get_extra_info("sockname"))[0])
        echo.expect(talk.count * talk.clients)
        talk.ready()
        if talk.me == 0:
            await echo.done
        else:
            for _ in range(talk.count):
                start = time.perf_counter()
                echo.reply = loop.create_future()
                transport.sendto(talk.payload, server)
                await echo.reply
                talk.times.append((time.perf_counter() - start) / 2)
        talk.datagrams = talk.count * (talk.clients if talk.me == 0 else 1)
        talk.finish()
        transport.close()

    uvloop.run(main())


class _Turns:
    """A socket, those who wait for datagrams, and ends of turns, as in `causewire.node`."""

    def __init__(self) -> None:
        self.loop = asyncio.get_running_loop()
        self.sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.sock.bind(("127.0.0.1", 0))
        self.sock.setblocking(False)
        self._arrived: deque[tuple[bytes, Any]] = deque()
        self._leaving: list[tuple[bytes, Any]] = []
        self._readers: list[asyncio.Future[None]] = []
        self._due = False
        self.loop.add_reader(self.sock, self._readable)

    async def send(self, data: bytes, to: Any) -> None:
        self._soon()
        self._leaving.append((data, to))

    async def receive(self) -> tuple[bytes, Any]:
        while not self._arrived:
            self._readers.append(self.loop.create_future())
            await self._readers[-1]
        return self._arrived.popleft()

    def _soon(self) -> None:
        if not self._due:
            self._due = True
            self.loop.call_soon(self._end_turn)

    def _end_turn(self) -> None:
        self.loop.call_soon(self._really_end_turn)

    def _really_end_turn(self) -> None:
        self._due = False
        for datagram in self._leaving:
            self.sock.sendto(*datagram)
        self._leaving.clear()

    def _readable(self) -> None:
        self._arrived.append(self.sock.recvfrom(65536))
        for future in self._readers:
            future.set_result(None)
        self._readers.clear()
        self._soon()


def turns(talk: Talk, name: str) -> None:
    async def main() -> None:
        end = _Turns()
        server = tuple(talk.places(end.sock.getsockname())[0])
        talk.ready()
        if talk.me == 0:
            for _ in range(talk.count * talk.clients):
                await end.send(*await end.receive())
            await asyncio.sleep(0.1)
        else:
            for _ in range(talk.count):
                start = time.perf_counter()
                await end.send(talk.payload, server)
                await end.receive()
                talk.times.append((time.perf_counter() - start) / 2)
        talk.datagrams = talk.count * (talk.clients if talk.me == 0 else 1)
        talk.finish()

    run(main())


def nats_server() -> str | None:
    """Return the path of the program, or None if there is none."""
    place = Path(sys.executable).with_name("nats-server")
    return str(place) if place.exists() else shutil.which("nats-server")


def nats_py(talk: Talk, name: str) -> None:
    import nats

    async def serve(port: int) -> None:
        connection = await nats.connect(f"nats://127.0.0.1:{port}", max_reconnect_attempts=20)
        left = talk.count * talk.clients
        done = asyncio.get_running_loop().create_future()

        async def echo(message: Any) -> None:
            nonlocal left
            await message.respond(message.data)
            left -= 1
            if not left:
                done.set_result(None)

        await connection.subscribe("echo", cb=echo)
        await connection.flush()
        await asyncio.to_thread(talk.places, port)
        await asyncio.to_thread(talk.ready)
        await done
        await connection.flush()
        await asyncio.to_thread(talk.finish)
        await connection.close()

    async def ask() -> None:
        port = talk.places(None)[0]
        connection = await nats.connect(f"nats://127.0.0.1:{port}")
        await asyncio.to_thread(talk.ready)
        for _ in range(talk.count):
            start = time.perf_counter()
            await connection.request("echo", talk.payload, timeout=30)
            talk.times.append((time.perf_counter() - start) / 2)
        await connection.close()  # before the server is stopped, which it would report
        await asyncio.to_thread(talk.finish)

    if talk.me:
        run(ask())
        return
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    words = [str(nats_server()), "-a", "127.0.0.1", "-p", str(port)]
    quiet = subprocess.DEVNULL
    with subprocess.Popen(words, stdout=quiet, stderr=quiet) as server:
        try:
            time.sleep(1)
            run(serve(port))
        finally:
            server.terminate()


WORK: dict[str, Callable[[Talk, str], None]] = {
    "zmq": zmq_blocking,
    "zmq.asyncio": zmq_asyncio,
    "udp": udp,
    "turns": turns,
    "nats": nats_py,
}


# -- measuring -------------------------------------------------------------------


def _process(name: str, pipe: Connection, *talk: int) -> None:
    WORK.get(name, node)(Talk(pipe, *talk), name)


def measure(name: str, clients: int, count: int, size: int) -> list[float]:
    """Return three percentiles in microseconds, processor time, and datagrams."""
    pipes, processes = [], []
    for me in range(clients + 1):
        ours, theirs = mp.Pipe()
        talk = (name, theirs, me, clients, count, size)
        processes.append(mp.Process(target=_process, args=talk, daemon=True))
        processes[-1].start()
        pipes.append(ours)
    places = [pipe.recv() for pipe in pipes]
    for pipe in pipes:
        pipe.send(places)
    for pipe in pipes:
        pipe.recv()
    for pipe in pipes:
        pipe.send("go")
    reports = [pipe.recv() for pipe in pipes]
    for pipe in pipes:
        pipe.send("over")
    for process in processes:
        process.join()
    requests = clients * count
    cuts = [statistics.median(times) for times in zip(*[r[0] for r in reports[1:]], strict=True)]
    cpu = sum(report[1] for report in reports) / requests / 2
    datagrams = sum(report[2] for report in reports) / requests
    return [*[1e6 * cut for cut in cuts], 1e6 * cpu, datagrams]


def show(
    clients: int, size: int, names: list[str], count: int, repetitions: int, builds: Builds
) -> None:
    """Measure all contenders in turn, and print a table."""
    results: dict[str, list[list[float]]] = {name: [] for name in names}
    for _ in range(repetitions):
        for name in names:
            row = builds.call("latency", "measure", name, clients, count, size)
            results[name].append(row)
    medians = {
        name: [statistics.median(column) for column in zip(*rows, strict=True)]
        for name, rows in results.items()
    }
    who = "a client" if clients == 1 else f"{clients} clients"
    print(f"\n{who} and a server, {size} bytes")
    print(
        f"  {'':20}{'p50':>7}{'p90':>7}{'p99':>7}{'cpu':>7}{'datagrams':>11}{'x zmq.asyncio':>15}"
    )
    beside = medians.get("zmq.asyncio")
    for name, (p50, p90, p99, cpu, datagrams) in medians.items():
        ratio = f"{p50 / beside[0]:15.2f}" if beside else f"{'':15}"
        shown = f"{datagrams:11.2f}" if datagrams else f"{'':11}"
        print(f"  {name:20}{p50:7.0f}{p90:7.0f}{p99:7.0f}{cpu:7.1f}{shown}{ratio}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--requests", type=int, default=3000, help="of each client")
    parser.add_argument("--repetitions", type=int, default=5)
    parser.add_argument("--clients", type=int, nargs="+", default=[1, 7])
    parser.add_argument("--sizes", type=int, nargs="+", default=[64, 4096])
    parser.add_argument("--only", nargs="+", choices=[*NODES, *OTHERS, *IF_ASKED], metavar="NAME")
    parser.add_argument("--compiled", type=Path, metavar="DIR", help="nodes of both builds")
    args = parser.parse_args()
    builds = Builds(args.compiled)
    print(builds.describe())
    names: list[str] = []
    for name in args.only or [*NODES, *OTHERS]:
        missing = name in NEEDS and find_spec(NEEDS[name]) is None
        if not missing and (name != "nats" or nats_server()):
            names += builds.both([name]) if name in NODES else [name]
    for clients in args.clients:
        for size in args.sizes:
            count = max(args.requests // clients, 100)
            show(clients, size, names, count, args.repetitions, builds)


if __name__ == "__main__":
    main()
