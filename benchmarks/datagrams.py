"""Which datagrams a request and its reply cost, counted by kind in virtual time.

    python benchmarks/datagrams.py [--protocols csps sps fifo] [--clients N] [--jitter S ...]
                                   [--requests N]

Clients send requests to a server, which answers at once, each after its last reply. A datagram
travels for 0.2 ms and up to `--jitter` seconds more. The counts do not depend on the machine.

    request, reply      datagrams with a message, whatever else they carry
    permit alone        no message, but a permit, from the server or from a client
    delivered alone     no message and no permit, but the protocol's ack of a message
    ack alone           only the acknowledgement that datagrams have arrived
"""

from __future__ import annotations

import argparse
import asyncio
import logging
from collections import Counter
from random import Random
from typing import Any

from causewire.node import Node
from causewire.testing.virtual import VirtualLoop, run
from causewire.transport.frames import read
from causewire.transport.heads import HEAD, SESSION

TRAVEL = 0.0002
"""Seconds that every datagram is under way at least."""

CHECKSUM = 4
"""Bytes at the end of a datagram of a session without a key."""

KINDS = (
    "request", "reply", "permit alone, server", "permit alone, client",
    "delivered alone, server", "delivered alone, client", "ack alone", "other",
)  # fmt: skip


def kind_of(data: bytes, from_server: bool) -> str:
    """Return what a datagram is for, by the first of its frames in the order of `KINDS`."""
    if data[0] != SESSION:
        return "other"
    contents = read(data[HEAD.size : -CHECKSUM])
    who = "server" if from_server else "client"
    if contents.runs or contents.pieces:
        return "reply" if from_server else "request"
    if contents.permit:
        return f"permit alone, {who}"
    if contents.delivered:
        return f"delivered alone, {who}"
    return "other" if contents.eliciting else "ack alone"


def count(
    clients: int, *, requests: int = 50, jitter: float = 0.0, compute: float = 0.0, **settings: Any
) -> Counter[str]:
    """Return the datagrams of all requests, by kind.

    Args:
        clients: How many clients send requests, each after its last reply.
        requests: How many each of them sends.
        jitter: Seconds by which the travel of datagrams varies.
        compute: Seconds that the server takes for a reply.
        settings: Settings of the nodes.
    """

    async def main(loop: VirtualLoop) -> Counter[str]:
        draw = Random(1).uniform
        counts: Counter[str] = Counter()

        def fate(source: Any, to: Any, data: bytes) -> list[float]:
            counts[kind_of(data, source == server.address)] += 1
            return [TRAVEL + draw(0.0, jitter)]

        sockets: list[Any] = [loop.network.socket(1 + k) for k in range(1 + clients)]
        server = await Node("server", sock=sockets[0], **settings).start()
        asking = [
            await Node(f"client{k}", sock=sockets[1 + k], **settings).start()
            for k in range(clients)
        ]
        loop.network.fate = fate

        async def serve() -> None:
            async for source, _, payload in server:
                if compute:
                    await asyncio.sleep(compute)
                await server.send(source, payload)

        async def ask(node: Node, count: int) -> None:
            for _ in range(count):
                await node.send("server", b"?")
                await node.receive()

        serving = asyncio.create_task(serve())
        for node in asking:
            await node.add_peer("server", server.address)
        await asyncio.gather(*[ask(node, 20) for node in asking])
        counts.clear()
        await asyncio.gather(*[ask(node, requests) for node in asking])
        counted = counts.copy()
        serving.cancel()
        await asyncio.sleep(0.1)
        for node in (*asking, server):
            await node.close(0.0)
        return counted

    return run(main)


def main() -> None:
    logging.getLogger("causewire").setLevel(logging.ERROR)  # nodes that end without goodbye
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--protocols", nargs="+", default=["csps", "sps", "fifo"])
    parser.add_argument("--clients", type=int, nargs="+", default=[1, 7])
    parser.add_argument("--jitter", type=float, nargs="+", default=[0.0, 0.0001, 0.001])
    parser.add_argument("--requests", type=int, default=200, help="of each client")
    args = parser.parse_args()
    for clients in args.clients:
        for jitter in args.jitter:
            found = {
                name: count(clients, requests=args.requests, jitter=jitter, protocol=name)
                for name in args.protocols
            }
            total = clients * args.requests
            who = "a client" if clients == 1 else f"{clients} clients"
            print(f"\n{who}, 0.2 ms and up to {1000 * jitter:g} ms more")
            print(f"  {'':26}" + "".join(f"{name:>9}" for name in found))
            for kind in KINDS:
                if any(counts[kind] for counts in found.values()):
                    each = [counts[kind] / total for counts in found.values()]
                    print(f"  {kind:26}" + "".join(f"{number:9.2f}" for number in each))
            each = [counts.total() / total for counts in found.values()]
            print(f"  {'all':26}" + "".join(f"{number:9.2f}" for number in each), flush=True)


if __name__ == "__main__":
    main()
