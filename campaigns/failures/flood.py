"""A flood of bogus greetings on real sockets: how much of the keyed traffic still arrives.

    python -m campaigns.failures.flood [--seconds 10] [--rate 40000] [--messages 1000]

A process sends messages to another one, with a cluster key, over the loopback interface. In
every second run, a stranger without the key sends greetings to the receiver at the same time, from
64 addresses: as many per second as `--rate` says, or as many as it can if that is 0. All that
count are messages that were delivered before the time was over.

What the receiver does not process is counted separately: datagrams that the kernel dropped
because the buffer of the socket was full (`/proc/net/udp`), and greetings that the node
read and dropped. Three processes take part. On a machine with fewer free processors, they also
compete for those: the last two columns show for which share of the time the receiver ran, and for
which share it waited until a processor was free.

The exit status is 1 if less than 90 % of what arrives without a flood arrives with it.
"""

from __future__ import annotations

import argparse
import asyncio
import logging
import multiprocessing
import os
import socket
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, NamedTuple

from causewire.node import Node
from causewire.transport.heads import GREETING

KEY = b"a cluster key that is no secret!"
GOAL = 0.9
ADDRESSES = 64
SIZE = 160
"""Bytes of a bogus greeting; real ones are about as long."""
START = 1.0
"""Seconds from the last preparation to the beginning."""


class Outcome(NamedTuple):
    """What one run has shown."""

    accepted: int
    """Messages that the sender's node accepted."""
    delivered: int
    flooded: int
    """Bogus greetings that were sent."""
    overflowed: int
    """Datagrams of all kinds that the kernel dropped at the receiver's socket."""
    dropped: dict[str, int]
    """Datagrams that the receiver's node dropped, by reason."""
    ran: float
    """Share of the time in which the receiver ran."""
    waited: float
    """Share of the time in which it could have run, and no processor was free."""


def _receive(pipe: Connection, seconds: float, _: float, port: int) -> None:
    logging.disable()

    async def main() -> None:
        async with Node("bob", key=KEY) as bob:
            pipe.send(bob.address[1])
            begin = await asyncio.to_thread(pipe.recv)
            delivered = 0
            before = kernel_drops(bob.address[1])
            await asyncio.sleep(begin - time.time())
            then = processor_times()
            with suppress(TimeoutError):
                async with asyncio.timeout(begin + seconds - time.time()):
                    async for _ in bob:
                        delivered += 1
            overflowed = kernel_drops(bob.address[1]) - before
            times = [(b - a) / seconds for a, b in zip(then, processor_times(), strict=True)]
            pipe.send((delivered, overflowed, dict(bob.stats()["dropped"]), *times))
            await bob.close(0)

    asyncio.run(main())


def _send(pipe: Connection, seconds: float, rate: float, port: int) -> None:
    logging.disable()

    async def main() -> None:
        async with Node("alice", key=KEY, peers={"bob": ("127.0.0.1", port)}) as alice:
            await (await alice.send("bob", b"hello")).delivered()
            pipe.send(True)
            begin = await asyncio.to_thread(pipe.recv)
            await asyncio.sleep(begin - time.time())
            accepted = 0
            with suppress(TimeoutError):
                async with asyncio.timeout(begin + seconds - time.time()):
                    while True:
                        while accepted < (time.time() - begin) * rate:
                            await alice.send("bob", b"a message of thirty-two bytes...")
                            accepted += 1
                        await asyncio.sleep(0.002)
            pipe.send(accepted)
            await alice.close(0)

    asyncio.run(main())


def _flood(pipe: Connection, seconds: float, rate: float, port: int) -> None:
    socks = [socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in range(ADDRESSES)]
    for sock in socks:
        sock.setblocking(False)
        sock.connect(("127.0.0.1", port))
    data = [bytes([GREETING]) + os.urandom(SIZE - 1) for _ in range(256)]
    pipe.send(True)
    begin = pipe.recv()
    time.sleep(begin - time.time())
    sent = 0
    while (elapsed := time.time() - begin) < seconds:
        due = int(elapsed * rate) - sent if rate else 100
        for _ in range(due):
            with suppress(OSError):
                socks[sent % ADDRESSES].send(data[sent % 256])
                sent += 1
        if rate:
            time.sleep(0.001)
    for sock in socks:
        sock.close()
    pipe.send(sent)


def kernel_drops(port: int) -> int:
    """Return how many datagrams the kernel has dropped at a socket of 127.0.0.1, or 0."""
    try:
        lines = Path("/proc/net/udp").read_text().splitlines()
    except OSError:
        return 0
    for line in lines[1:]:
        fields = line.split()
        if fields[1].endswith(f":{port:04X}"):
            return int(fields[-1])
    return 0


def processor_times() -> tuple[float, float]:
    """Return the seconds for which this process ran, and waited for a processor to run on."""
    try:
        fields = Path("/proc/self/schedstat").read_text().split()
    except OSError:
        return time.process_time(), 0.0
    return int(fields[0]) / 1e9, int(fields[1]) / 1e9


def play(seconds: float, messages: float, flood: float | None) -> Outcome:
    """Run once; `flood` is the rate of greetings, 0 for as many as possible, None for none."""
    context = multiprocessing.get_context("spawn")
    ends: list[Connection] = []
    processes = []

    def begin(role: Callable[..., None], rate: float, port: int) -> Any:
        here, there = context.Pipe()
        process = context.Process(target=role, args=(there, seconds, rate, port), daemon=True)
        process.start()
        ends.append(here)
        processes.append(process)
        return here.recv()

    port = begin(_receive, 0.0, 0)
    begin(_send, messages, port)
    if flood is not None:
        begin(_flood, flood, port)
    at = time.time() + START
    for end in ends:
        end.send(at)
    delivered, overflowed, dropped, ran, waited = ends[0].recv()
    accepted = ends[1].recv()
    flooded = ends[2].recv() if flood is not None else 0
    for process in processes:
        process.join(10)
    return Outcome(accepted, delivered, flooded, overflowed, dropped, ran, waited)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--seconds", type=float, default=10.0, help="of each run (default: 10)")
    parser.add_argument("--rate", type=float, default=40_000, help="bogus greetings a second")
    parser.add_argument("--messages", type=float, default=1000, help="messages a second")
    parser.add_argument("--pairs", type=int, default=1, help="of runs without and with a flood")
    options = parser.parse_args(arguments)
    seconds = options.seconds
    print(
        "| flood a second | messages accepted | delivered in time | dropped by the socket "
        "| dropped by the node | the receiver ran | waited for a processor |\n"
        "| --- | --- | --- | --- | --- | --- | --- |"
    )
    delivered = [0, 0]
    for _ in range(options.pairs):
        for flood in (None, options.rate):
            outcome = play(seconds, options.messages, flood)
            delivered[flood is not None] += outcome.delivered
            reasons = ", ".join(f"{n} {r}" for r, n in sorted(outcome.dropped.items()) if n)
            print(
                f"| {outcome.flooded / seconds:.0f} | {outcome.accepted} | {outcome.delivered} "
                f"| {outcome.overflowed} | {reasons or 0} "
                f"| {outcome.ran:.0%} | {outcome.waited:.0%} |",
                flush=True,
            )
    share = delivered[1] / max(1, delivered[0])
    print(f"\nWith the flood, {share:.1%} of the messages arrived that arrive without it.")
    return 0 if share >= GOAL else 1


if __name__ == "__main__":
    sys.exit(main())
