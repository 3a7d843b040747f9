"""What a peer costs with which nothing is exchanged: memory, timers and datagrams.

    python benchmarks/idle.py [--star N] [--mesh N] [--seconds S]
    python benchmarks/idle.py --real N [--processes P] [--seconds S]

Without `--real`, all nodes are in this process, on a network in memory and in virtual time, so the
counts do not depend on the machine:

    star   all others know one node, whose timers and datagrams are counted
    mesh   every node knows every other one; the numbers are those of one node on average

Memory is what Python has allocated (`tracemalloc`) since the nodes were started without peers,
divided by the ends of sessions, of which there are two for each pair of nodes that know each other.

With `--real` they use sockets of this machine, on the loopback interface: one node in this process,
which all others know, and these in P processes. Nothing is sent for S seconds, except for what
nodes send by themselves; then every node answers one message. Memory is what the system says that
the process of the first node has gained (on Linux; 0 elsewhere), divided by its peers.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import logging
import resource
import sys
import time
import tracemalloc
from collections.abc import Iterator
from contextlib import AsyncExitStack, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from causewire.node import Node
from causewire.node.bridge import Bridge
from causewire.testing.virtual import VirtualLoop, run


class Idle(NamedTuple):
    """What was counted."""

    bytes: float
    """For each end of a session."""
    timers: float
    """That fire in a second, at each node that is counted."""
    datagrams: float
    """That leave in a second, from each node that is counted."""


@contextmanager
def counted_timers(bridges: set[Bridge | None]) -> Iterator[list[int]]:
    """Count how often timers of some nodes fire: the only element of the list."""
    fired = [0]
    usual = Bridge._fired

    def fire(bridge: Bridge) -> None:
        fired[0] += bridge in bridges
        usual(bridge)

    Bridge._fired = fire  # type: ignore[assignment, method-assign]
    try:
        yield fired
    finally:
        Bridge._fired = usual  # type: ignore[method-assign]


def measure(size: int, mesh: bool, seconds: float) -> Idle:
    """Return what idle peers cost.

    Args:
        size: How many nodes there are.
        mesh: Whether each knows all others; otherwise all know one, whose costs are counted.
        seconds: How long to count, in virtual time.
    """

    async def main(loop: VirtualLoop) -> Idle:
        sockets: list[Any] = [loop.network.socket(1 + k) for k in range(size)]
        nodes = [
            await Node(f"n{k:03}", protocol="csps", sock=s).start() for k, s in enumerate(sockets)
        ]
        gc.collect()
        before = tracemalloc.get_traced_memory()[0]
        ends = 0
        for k, node in enumerate(nodes):
            for other in nodes[:k] if mesh else nodes[: min(k, 1)]:
                await node.add_peer(other.name, other.address)
                ends += 2
        await asyncio.sleep(5.0)
        assert len(nodes[0].peers_up()) == size - 1
        gc.collect()
        taken = tracemalloc.get_traced_memory()[0] - before
        tracemalloc.stop()  # it makes everything slow
        counted = nodes if mesh else nodes[:1]
        with counted_timers({node._bridge for node in counted}) as fired:
            await asyncio.sleep(15.0)  # every timer that was set before is counted as well
            fired[0] = 0
            sent = sum(node.stats()["datagrams_out"] for node in counted)
            await asyncio.sleep(seconds)
            sent = sum(node.stats()["datagrams_out"] for node in counted) - sent
        for node in nodes:
            await node.close(0.0)
        each = seconds * len(counted)
        return Idle(taken / ends, fired[0] / each, sent / each)

    tracemalloc.start()
    try:
        return run(main)
    finally:
        tracemalloc.stop()


# -- real sockets ----------------------------------------------------------------


class RealIdle(NamedTuple):
    """What was measured on real sockets."""

    bytes: float
    """That the first node's process has gained, for each peer."""
    timers: float
    """That fire in a second at the first node."""
    datagrams: float
    """That leave it in a second."""
    cpu: float
    """Milliseconds of processor time that it takes in a second."""
    cpu_of_others: float
    """The same of each other node, on average."""
    answers: int
    """How many of the others answered a message in the end."""


def resident() -> int:
    """Return the memory of this process, in bytes; 0 if the system does not say."""
    try:
        pages = Path("/proc/self/statm").read_text().split()[1]
    except OSError:
        return 0
    return int(pages) * resource.getpagesize()


async def measure_real(size: int, processes: int, seconds: float) -> RealIdle:
    """Return what idle peers cost on real sockets.

    Args:
        size: How many nodes there are, the first one included.
        processes: How many processes the others are in.
        seconds: For how long to count.
    """
    async with (
        Node("first", protocol="csps", listen=("127.0.0.1", 0)) as first,
        AsyncExitStack() as ends,
    ):
        before = resident()
        workers = []
        for k in range(processes):
            names = [f"n{j:03}" for j in range(1 + k, size, processes)]
            worker = await asyncio.create_subprocess_exec(
                *(sys.executable, __file__, "--worker", json.dumps([first.address, names])),
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
            )
            ends.push_async_callback(worker.communicate, b"")  # ends its input, and so the worker
            workers.append(worker)

        async def cpu_of_others() -> float:
            spent = 0.0
            for worker in workers:
                assert worker.stdin is not None
                assert worker.stdout is not None
                worker.stdin.write(b"\n")
                spent += float(await worker.stdout.readline())
            return spent

        while len(first.peers_up()) < size - 1:
            await asyncio.sleep(0.1)
        gc.collect()
        gained = resident() - before
        with counted_timers({first._bridge}) as fired:
            others, spent = await cpu_of_others(), time.process_time()
            sent, fired[0] = first.stats()["datagrams_out"], 0
            await asyncio.sleep(seconds)
            sent, timers = first.stats()["datagrams_out"] - sent, fired[0]
            spent = time.process_time() - spent
            others = await cpu_of_others() - others
        for peer in first.peers_up():
            await first.send(peer, b"are you there?")
        answers = {(await first.receive()).source for _ in range(size - 1)}
        return RealIdle(
            gained / (size - 1),
            timers / seconds,
            sent / seconds,
            1e3 * spent / seconds,
            1e3 * others / seconds / (size - 1),
            len(answers),
        )


async def work(address: tuple[str, int], names: list[str]) -> None:
    """Run some of the other nodes; each line of the input is answered with the processor time."""
    loop = asyncio.get_running_loop()
    nodes, tasks = [], []
    for name in names:
        nodes.append(await Node(name, protocol="csps", listen=("127.0.0.1", 0)).start())
        await nodes[-1].add_peer("first", address)
        tasks.append(asyncio.create_task(_answer(nodes[-1])))
    while await loop.run_in_executor(None, sys.stdin.readline):
        print(time.process_time(), flush=True)
    for task, node in zip(tasks, nodes, strict=True):
        task.cancel()
        await node.close(0.0)


async def _answer(node: Node) -> None:
    async for source, _, payload in node:
        await node.send(source, payload)


def show_real(size: int, processes: int, seconds: float) -> None:
    """Measure, and print the numbers."""
    found = asyncio.run(measure_real(size, processes, seconds))
    print(f"{size} nodes on real sockets, in {1 + processes} processes, for {seconds:.0f} s")
    print(f"  memory of the first node for each peer         {found.bytes:10,.0f} bytes")
    print(f"  its timers                                     {found.timers:10.2f} a second")
    print(f"  its datagrams                                  {found.datagrams:10.2f} a second")
    print(f"  its processor time                             {found.cpu:10.2f} ms a second")
    print(
        f"  processor time of each other node              {found.cpu_of_others:10.2f} ms a second"
    )
    print(f"  others that answered a message in the end      {found.answers:10}")


def main() -> None:
    logging.getLogger("causewire").setLevel(logging.ERROR)  # nodes that end without goodbye
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--star", type=int, default=200)
    parser.add_argument("--mesh", type=int, default=32)
    parser.add_argument("--seconds", type=float, default=30.0)
    parser.add_argument("--real", type=int, metavar="N", help="N nodes on real sockets")
    parser.add_argument("--processes", type=int, default=4, help="that these are in")
    parser.add_argument("--worker", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.worker:
        address, names = json.loads(args.worker)
        asyncio.run(work(tuple(address), names))
        return
    if args.real:
        show_real(args.real, args.processes, args.seconds)
        return
    print(f"{'':14} {'bytes of a peer':>16} {'timers a second':>16} {'datagrams a second':>19}")
    for name, size in (("star", args.star), ("mesh", args.mesh)):
        found = measure(size, name == "mesh", args.seconds)
        print(
            f"{name}, {size:3} nodes {found.bytes:15,.0f} {found.timers:16.2f} "
            f"{found.datagrams:19.2f}",
            flush=True,
        )


if __name__ == "__main__":
    main()
