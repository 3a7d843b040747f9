"""What a peer costs with which nothing is exchanged: memory, timers and datagrams.

    python benchmarks/idle.py [--star N] [--mesh N] [--seconds S]

All nodes are in this process, on a network in memory and in virtual time, so the counts do not
depend on the machine:

    star   all others know one node, whose timers and datagrams are counted
    mesh   every node knows every other one; the numbers are those of one node on average

Memory is what Python has allocated (`tracemalloc`) since the nodes were started without peers,
divided by the ends of sessions, of which there are two for each pair of nodes that know each other.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import logging
import tracemalloc
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
        bridges = {node._bridge for node in counted}
        fired = 0
        usual = Bridge._fired

        def fire(bridge: Bridge) -> None:
            nonlocal fired
            fired += bridge in bridges
            usual(bridge)

        Bridge._fired = fire  # type: ignore[assignment, method-assign]
        try:
            await asyncio.sleep(15.0)  # every timer that was set before calls this function
            fired = 0
            sent = sum(node.stats()["datagrams_out"] for node in counted)
            await asyncio.sleep(seconds)
            sent = sum(node.stats()["datagrams_out"] for node in counted) - sent
            each = seconds * len(counted)
            result = Idle(taken / ends, fired / each, sent / each)
        finally:
            Bridge._fired = usual  # type: ignore[method-assign]
            for node in nodes:
                await node.close(0.0)
        return result

    tracemalloc.start()
    try:
        return run(main)
    finally:
        tracemalloc.stop()


def main() -> None:
    logging.getLogger("causewire").setLevel(logging.ERROR)  # nodes that end without goodbye
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--star", type=int, default=200)
    parser.add_argument("--mesh", type=int, default=32)
    parser.add_argument("--seconds", type=float, default=30.0)
    args = parser.parse_args()
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
