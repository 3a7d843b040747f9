"""Shares of flows that meet in one bottleneck: nodes, and TCP with CUBIC.

    python benchmarks/fairness.py [--seconds S] [--mbit M] [--trip MS] [--queue PACKETS]
    python benchmarks/fairness.py --loss

Everything is in virtual time, so the numbers are the same on every machine. Flows send as much as
they may, each from a host of its own, through one link that has a queue; what arrives while the
queue is full is lost. The first flow starts alone, the others a second later. Shares are those
of what reached the receivers in the second half of the time.

    node    a real node that sends messages of 1,000 bytes to another one (`csps`): the transport
            with its own congestion control, acknowledgements and retransmissions
    tcp     a model of TCP with CUBIC after RFC 9438, with selective acknowledgements, written for
            this program alone: nothing of it is shared with `causewire.transport`

With `--loss`, one flow over 100 ms, through a link that loses one datagram in ten thousand, is
compared with the same flow through a link that loses nothing.
"""

from __future__ import annotations

import argparse
import asyncio
import logging
from collections import deque
from collections.abc import Callable
from typing import Any, NamedTuple

from causewire.node import Config, Node
from causewire.testing.virtual import VirtualLoop, run

HEADERS = 28
"""Bytes of IP and UDP in front of each datagram."""
SEGMENT = 1448
"""Bytes of data in a full segment of TCP, of 1,500 on the link."""


class Link(NamedTuple):
    """The bottleneck."""

    mbit: float = 10.0
    """Megabits per second."""
    trip: float = 0.04
    """Seconds there and back, without the queue."""
    queue: int = 33
    """Packets of 1,500 bytes that can wait."""
    loss: int = 0
    """Of this many packets, one is lost; 0: none."""


class Bottleneck:
    """A link with a queue that drops what does not fit (tail drop)."""

    def __init__(self, link: Link, now: Callable[[], float]) -> None:
        self._link = link
        self._now = now
        self._rate = link.mbit * 1e6 / 8
        self._free = 0.0
        """When everything in the queue has left."""
        self._seen = 0
        self.dropped = 0

    def pass_on(self, size: int) -> float | None:
        """Return after how many seconds a packet arrives; None if it is lost."""
        now = self._now()
        waiting = max(self._free - now, 0.0)
        self._seen += 1
        if self._link.loss and self._seen % self._link.loss == 0:
            return None
        if waiting * self._rate + size > self._link.queue * 1500:
            self.dropped += 1
            return None
        self._free = now + waiting + size / self._rate
        return self._free - now + self._link.trip / 2


class Tcp:
    """A sender of TCP with CUBIC that always has something to send, and its receiver."""

    def __init__(self, loop: VirtualLoop, bottleneck: Bottleneck, trip: float) -> None:
        self._loop = loop
        self._bottleneck = bottleneck
        self._back = trip / 2
        self.arrived = 0
        """Bytes that the receiver has, each counted once."""
        self._next = 0
        self._flight: dict[int, float] = {}
        """When each segment in flight was sent. A lost one is sent again under a new number."""
        self._order: deque[int] = deque()
        self._trip = trip
        self._window = 10.0
        self._slow_start_until = float("inf")
        self._recover = -1
        """Losses up to this segment belong to an event that has been handled."""
        self._most = 0.0
        self._epoch: float | None = None
        self._k = 0.0
        self._estimate = 0.0
        self._prior = 0.0
        self._heard = loop.time()
        self._send()
        loop.call_later(1.0, self._look)

    def _send(self) -> None:
        while len(self._flight) < int(self._window):
            number = self._next
            self._next += 1
            self._flight[number] = self._loop.time()
            self._order.append(number)
            delay = self._bottleneck.pass_on(1500)
            if delay is not None:
                self._loop.call_later(delay, self._arrive, number)

    def _arrive(self, number: int) -> None:
        self.arrived += SEGMENT
        self._loop.call_later(self._back, self._acked, number)

    def _acked(self, number: int) -> None:
        sent = self._flight.pop(number, None)
        if sent is None:
            return  # it was taken for lost
        now = self._heard = self._loop.time()
        self._trip += (now - sent - self._trip) / 8
        if number > self._recover:
            self._grow(now)
        while self._order and (oldest := self._order[0]) <= number:
            if oldest in self._flight:
                if number - oldest < 3:
                    break
                self._lost(oldest)
            self._order.popleft()
        self._send()

    def _grow(self, now: float) -> None:
        if self._window < self._slow_start_until:
            self._window += 1.0
            return
        if self._epoch is None:  # section 4.2
            self._epoch = now
            self._most = max(self._most, self._window)
            self._k = ((self._most - self._window) / 0.4) ** (1 / 3)
            self._estimate = self._window
        slope = 1.0 if self._estimate >= self._prior else 3 * 0.3 / 1.7  # section 4.3
        self._estimate += slope / self._window
        elapsed = now - self._epoch
        if 0.4 * (elapsed - self._k) ** 3 + self._most < self._estimate:
            self._window = max(self._window, self._estimate)
            return
        target = 0.4 * (elapsed + self._trip - self._k) ** 3 + self._most  # section 4.4
        target = min(max(target, self._window), 1.5 * self._window)
        self._window += (target - self._window) / self._window

    def _lost(self, number: int) -> None:
        del self._flight[number]
        if number > self._recover:
            self._recover = self._next - 1
            self._reduce()

    def _reduce(self) -> None:
        """Shrink to 0.7 (section 4.6), with fast convergence (section 4.7)."""
        self._prior = self._window
        self._most = self._window * 0.85 if self._window < self._most else self._window
        self._window = self._slow_start_until = max(0.7 * self._window, 2.0)
        self._epoch = None

    def _look(self) -> None:
        """Take everything for lost if nothing was heard for a second: the timeout."""
        if self._flight and self._loop.time() - self._heard > 1.0:
            self._flight.clear()
            self._order.clear()
            self._recover = self._next - 1
            self._reduce()
            self._window = 1.0
            self._send()
        self._loop.call_later(0.2, self._look)


async def _from_node(loop: VirtualLoop, number: int, counts: list[int]) -> None:
    """Run two nodes, one of which sends to the other all the time, until it is cancelled."""
    ports = 100 + 2 * number, 101 + 2 * number
    sockets: list[Any] = [loop.network.socket(port) for port in ports]
    settings: dict[str, Any] = {"protocol": "csps", "config": Config(local_datagram=1472)}
    sender = await Node(f"s{number}", sock=sockets[0], **settings).start()
    receiver = await Node(f"r{number}", sock=sockets[1], **settings).start()

    async def count() -> None:
        async for _, _, payload in receiver:
            counts[number] += len(payload)

    counting = asyncio.create_task(count())
    try:
        await sender.add_peer(receiver.name, receiver.address)
        while True:
            await sender.send(receiver.name, bytes(1000))
    finally:
        counting.cancel()
        await sender.close(0.0)
        await receiver.close(0.0)


def shares(kinds: list[str], link: Link, seconds: float) -> list[float]:
    """Return what each flow gets, as parts of what the link could carry.

    Args:
        kinds: `node` or `tcp` for each flow; the first starts a second before the others.
        link: The bottleneck.
        seconds: How long they send; the second half of it counts.
    """

    async def main(loop: VirtualLoop) -> list[float]:
        bottleneck = Bottleneck(link, loop.time)

        def fate(source: tuple[str, int], _to: object, data: bytes) -> list[float]:
            if source[1] % 2:
                return [link.trip / 2]
            delay = bottleneck.pass_on(len(data) + HEADERS)
            return [] if delay is None else [delay]

        loop.network.fate = fate
        counts = [0] * len(kinds)
        flows: dict[int, Tcp] = {}
        tasks = []

        def reached() -> list[int]:
            return [flows[k].arrived if k in flows else counts[k] for k in range(len(kinds))]

        for k, kind in enumerate(kinds):
            if kind == "tcp":
                flows[k] = Tcp(loop, bottleneck, link.trip)
            else:
                tasks.append(asyncio.create_task(_from_node(loop, k, counts)))
            if k == 0:
                await asyncio.sleep(1.0)
        await asyncio.sleep(seconds / 2)
        before = reached()
        await asyncio.sleep(seconds / 2)
        after = reached()
        for task in tasks:
            task.cancel()
        for ended in await asyncio.gather(*tasks, return_exceptions=True):
            if not isinstance(ended, asyncio.CancelledError):
                raise RuntimeError("a flow ended early") from ended
        room = link.mbit * 1e6 / 8 * seconds / 2
        return [(b - a) / room for a, b in zip(before, after, strict=True)]

    return run(main)


MIXES = [
    ["node", "node"],
    ["tcp", "tcp"],
    ["node", "tcp"],
    ["tcp", "node"],
    ["node", "node", "tcp", "tcp"],
]


def main() -> None:
    logging.getLogger("causewire").setLevel(logging.ERROR)  # nodes that end without goodbye
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seconds", type=float, default=60.0, help="of virtual time")
    parser.add_argument("--mbit", type=float, default=10.0)
    parser.add_argument("--trip", type=float, default=40.0, help="milliseconds there and back")
    parser.add_argument("--queue", type=int, default=33, help="packets of 1,500 bytes")
    parser.add_argument("--loss", action="store_true", help="one loss in ten thousand, 100 ms")
    args = parser.parse_args()
    if args.loss:
        link = Link(args.mbit, 0.1, round(args.mbit * 1e6 / 8 * 0.1 / 1500))
        (whole,) = shares(["node"], link, args.seconds)
        (lossy,) = shares(["node"], link._replace(loss=10_000), args.seconds)
        print(
            f"{args.mbit:g} Mbit/s, 100 ms: {whole:.2f} of the link without loss, {lossy:.2f} with"
        )
        print(f"one loss in ten thousand: {lossy / whole:.2f} of that")
        return
    link = Link(args.mbit, args.trip / 1e3, args.queue)
    print(f"{link.mbit:g} Mbit/s, {args.trip:g} ms, a queue of {link.queue} packets")
    for kinds in MIXES:
        got = shares(kinds, link, args.seconds)
        each = "  ".join(f"{kind} {part:.2f}" for kind, part in zip(kinds, got, strict=True))
        print(f"  {each:46} all {sum(got):.2f}  least/most {min(got) / max(got):.2f}", flush=True)


if __name__ == "__main__":
    main()
