"""Processor time of a message when everybody writes to everybody in bursts, by protocol.

    python benchmarks/bursts.py [--protocols csps adaptive] [--bursts 8 64 256] [--rounds 100]

Eight transports in one process, without sockets: in every round each of them sends a burst of
messages to the others, drawn at random, and then everything that is on its way arrives. So
all bursts cross, which is the worst case for lists of undelivered messages.
"""

from __future__ import annotations

import argparse
import time
from random import Random
from typing import Any

from causewire.transport import Transport

PROCESSES = 8
PAYLOAD = bytes(64)


class Crowd:
    """Transports that are joined directly."""

    def __init__(self, protocol: str) -> None:
        self.now = 0.0
        self.names = [f"p{k}" for k in range(PROCESSES)]
        self.transports: list[Transport[Any]] = [
            Transport(name, incarnation=k + 1, entropy=Random(k).randbytes, protocol=protocol)
            for k, name in enumerate(self.names)
        ]
        self.arriving: list[list[tuple[bytes, int]]] = [[] for _ in self.names]
        for transport in self.transports:
            for k, name in enumerate(self.names):
                transport.add_peer(name, ("127.0.0.1", k + 1), 0.0)
        for _ in range(30):
            self.now += 0.01
            for transport in self.transports:
                transport.timer_fired(self.now)
            self.exchange()

    def exchange(self) -> None:
        """Let everything that is on its way arrive, after what is new has left."""
        for k, transport in enumerate(self.transports):
            for data, (_, port) in transport.datagrams_to_send(self.now):
                self.arriving[port - 1].append((data, k + 1))
            while transport.next_event() is not None:
                pass
            transport.messages.clear()
        for k, transport in enumerate(self.transports):
            arrived, self.arriving[k] = self.arriving[k], []
            for data, port in arrived:
                transport.datagram_received(data, ("127.0.0.1", port), self.now)

    def round(self, burst: int, random: Random) -> int:
        """Let each transport send a burst; returns how many messages were accepted."""
        self.now += 0.001
        sent = 0
        for name, transport in zip(self.names, self.transports, strict=True):
            others = [other for other in self.names if other != name]
            for to in random.choices(others, k=burst):
                sent += transport.try_send(to, PAYLOAD) is not None
        self.exchange()
        return sent


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--protocols", nargs="+", default=["csps", "adaptive"])
    parser.add_argument("--bursts", nargs="+", type=int, default=[8, 64, 256])
    parser.add_argument("--rounds", type=int, default=100)
    options = parser.parse_args()
    for burst in options.bursts:
        for protocol in options.protocols:
            crowd, random = Crowd(protocol), Random(1)
            began = time.process_time()
            sent = sum(crowd.round(burst, random) for _ in range(options.rounds))
            each = (time.process_time() - began) / sent * 1e6
            print(f"bursts of {burst}: {protocol:10} {each:8.2f} µs per message, {sent:,} sent")


if __name__ == "__main__":
    main()
