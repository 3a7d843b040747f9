"""What a message costs in each protocol, from send to permit.

    python benchmarks/core.py [--protocol P ...] [--processes N ...]
    python benchmarks/core.py --phases
    python benchmarks/core.py --instructions [--compiled DIR] [--protocol P ...]

Every process has 8 correspondents. Ten processes at a time send one message to
each of theirs, so that messages cross; then all packets are carried, in rounds,
until nothing is left: send, receive, ack, permit, the full cycle. A broadcast
protocol has the correspondents that a broadcast reaches: everybody; its cost is
per copy that is delivered. Protocols take turns within a repetition, the best of
several repetitions counts, and CPU time is measured, not the clock on the wall:
the machine may be shared. What is printed is

    us      microseconds per message, driver included
    x fifo  the ratio to `fifo` at the same number of processes, in the same run
    x n=10  the ratio to the same protocol at the first number of processes
    steps   lines of Python executed inside causewire.core per message: the same
            on every machine (a run of its own, as counting is slow)

With --phases: nanoseconds of `fifo`, `csps` and `sps` for each step of the cycle, in
which one process sends 2,000 messages to its 8 correspondents and gets an ack for
each, so that all but the first are flagged and each of these has its permit.

With --instructions: the instructions of the processor for a message among ten processes, driver
included, counted by Valgrind (callgrind), on the sources and on the compiled build of a directory
(`python hatch_build.py out/compiled`).

A row is left out where the warm-up alone takes too long.
"""

from __future__ import annotations

import argparse
import gc
import sys
import time
from collections.abc import Callable
from itertools import cycle, islice
from pathlib import Path
from types import FrameType
from typing import Any

from causewire import protocols
from causewire.core import endpoint as core
from causewire.core.endpoint import Endpoint, Outgoing
from causewire.core.fifo import Ack
from causewire.core.hybrid import Permit
from causewire.core.newtop import Newtop

CORRESPONDENTS = 8
AT_ONCE = 10
WARM_UP = 6
"""Turns of everybody before anything is measured: logs grow up to some size."""
BEARABLE = 60.0
"""Seconds that these may take."""

CORE = core.__file__.rpartition("/")[0]


class System:
    """All processes of one protocol, and whom each of them sends to."""

    def __init__(self, protocol: str, processes: int) -> None:
        names = [f"p{k}" for k in range(processes)]
        described = protocols.describe(protocol)
        group = names if described.fixed_group else None
        self.endpoints = {name: protocols.create(protocol, name, group) for name in names}
        self.bursts: list[tuple[str, Endpoint, list[str | list[str]]]] = []
        for k, (name, endpoint) in enumerate(self.endpoints.items()):
            if described.unicast:
                near = [names[(k + i) % processes] for i in range(1, CORRESPONDENTS + 1)]
                to: list[str | list[str]] = list(near)
            else:
                to = [[other for other in names if other != name]]
            self.bursts.append((name, endpoint, to))
        self.turns = cycle(self.bursts)

    def cycle(self, blocks: int) -> int:
        """Full cycles, `blocks` times ten processes; returns the deliveries."""
        delivered = 0
        for _ in range(blocks):
            wire: list[tuple[str, list[Outgoing]]] = []
            for name, endpoint, burst in islice(self.turns, AT_ONCE):
                for to in burst:
                    endpoint.send(to, b"payload")
                wire.append((name, endpoint.take_packets()))
            while wire:
                delivered += self.carry(wire)
            delivered += self.periodic()
        return delivered

    def carry(self, wire: list[tuple[str, list[Outgoing]]]) -> int:
        """One round: everything on the wire arrives; leaves there what follows."""
        reached: dict[str, Endpoint] = {}
        for source, packets in wire:
            for destination, packet in packets:
                endpoint = self.endpoints[destination]
                endpoint.receive(source, packet)
                reached[destination] = endpoint
        wire.clear()
        delivered = 0
        for name, endpoint in reached.items():
            delivered += len(endpoint.take_deliveries())
            packets = endpoint.take_packets()
            if packets:
                wire.append((name, packets))
        return delivered

    def periodic(self) -> int:
        """Newtop delivers nothing before everybody has been heard: nulls."""
        if not isinstance(self.bursts[0][1], Newtop):
            return 0
        wire = []
        for name, endpoint in self.endpoints.items():
            endpoint.retransmit()
            wire.append((name, endpoint.take_packets()))
        delivered = 0
        while wire:
            delivered += self.carry(wire)
        return delivered


def steps(system: System, blocks: int) -> float:
    """Lines executed inside the core, per message."""
    count = 0

    def local(_frame: FrameType, event: str, _arg: Any) -> Callable[..., Any]:
        nonlocal count
        count += event == "line"
        return local

    def trace(frame: FrameType, _event: str, _arg: Any) -> Callable[..., Any] | None:
        return local if frame.f_code.co_filename.startswith(CORE) else None

    sys.settrace(trace)
    try:
        delivered = system.cycle(blocks)
    finally:
        sys.settrace(None)
    return count / delivered


class Bench:
    """Protocols side by side at one number of processes."""

    def __init__(self, names: list[str], processes: int, repetitions: int) -> None:
        self.processes = processes
        self.blocks = max(1, processes // AT_ONCE)
        self.best: dict[str, float] = {}
        """Microseconds per message."""
        self.steps: dict[str, float] = {}
        systems = {name: system for name in names if (system := self.warmed_up(name))}
        for _ in range(repetitions):
            for name, system in systems.items():
                spent = self.measure(name, system)
                self.best[name] = min(spent, self.best.get(name, spent))
        for name, system in systems.items():
            self.steps[name] = steps(system, min(self.blocks, 3))

    def measure(self, name: str, system: System) -> float:
        """Everybody's turn, often enough that the clock can tell."""
        gc.collect()
        gc.disable()
        turns = max(1, 4000 // self.processes) if self.best.get(name, 100) < 20 else 1
        started = time.process_time()
        delivered = system.cycle(self.blocks * turns)
        spent = time.process_time() - started
        gc.enable()
        return spent / delivered * 1e6

    def warmed_up(self, name: str) -> System | None:
        """A system in which everybody has heard of everybody, unless that takes too long."""
        if protocols.describe(name).fixed_group and self.processes > 200:
            return None  # vectors and matrices for each of them take too long
        system = System(name, self.processes)
        started = time.process_time()
        for _ in range(WARM_UP * self.blocks):
            system.cycle(1)
            if time.process_time() - started > BEARABLE:
                return None
        return system


def phases(protocol: str) -> dict[str, float]:
    """Nanoseconds for each step of the cycle, the best of many."""
    best: dict[str, float] = {}
    names = [f"p{k}" for k in range(CORRESPONDENTS)]

    def timed(phase: str, calls: list[tuple[Callable[..., Any], tuple[Any, ...]]]) -> None:
        started = time.process_time()
        for call, arguments in calls:
            call(*arguments)
        spent = (time.process_time() - started) / len(calls) * 1e9
        best[phase] = min(spent, best.get(phase, spent))

    gc.disable()
    for _ in range(30):
        sender = protocols.create(protocol, "sender")
        peers = {name: protocols.create(protocol, name) for name in names}
        timed("send", [(sender.send, (names[k % len(names)], b"payload")) for k in range(2000)])
        messages = sender.take_packets()
        timed("receive", [(peers[to].receive, ("sender", packet)) for to, packet in messages])
        timed("ack", [(sender.receive, (to, Ack(packet[1]))) for to, packet in messages])
        if protocol != "fifo":
            permits = [(to, Permit(packet[1])) for to, packet in messages]
            timed("permit", [(peers[to].receive, ("sender", permit)) for to, permit in permits])
        timed("take", [(sender.take_packets, ())] * 2000)
        timed("call", [(nothing, ("sender", None))] * 2000)
    gc.enable()
    return best


def cycles(protocol: str, blocks: int) -> None:
    """Let ten processes send to each other; ten times the blocks of `System.cycle`."""
    System(protocol, 10).cycle(WARM_UP + 10 * blocks)


def show_instructions(names: list[str], compiled: Path | None) -> None:
    """Print the instructions for a message, of each build."""
    import _instructions  # next to this program

    print(f"{'instructions for a message':32} {'':>12} {'x pure':>8}")
    for protocol in names:
        delivered, first = System(protocol, 10).cycle(1), 0.0
        for name, build in _instructions.builds(compiled):
            spent = _instructions.per_repetition(build, "core", "cycles", [protocol], (1, 3))
            first = first or spent
            label = f"{protocol}, {name}"
            print(
                f"{label:32} {spent / 10 / delivered:12,.0f} {spent / first:8.2f}",
                flush=True,
            )


def nothing(_source: str, _packet: object) -> None:
    """What it costs the benchmark to call anything at all."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    sound = [
        name
        for name in protocols.names()
        if protocols.describe(name).causal or name in ("fifo", "unordered")
    ]
    parser.add_argument("--protocol", action="append", choices=sound, help="default: all")
    parser.add_argument("--processes", type=int, action="append", help="default: 10 to 10,000")
    parser.add_argument("--repetitions", type=int, default=5)
    parser.add_argument("--phases", action="store_true", help="where the time of a cycle goes")
    parser.add_argument("--instructions", action="store_true", help="count these, with Valgrind")
    parser.add_argument("--compiled", type=Path, metavar="DIR", help="count this build as well")
    args = parser.parse_args()
    if args.instructions:
        show_instructions(args.protocol or sound, args.compiled)
        return
    if args.phases:
        for name in ("fifo", "csps", "sps"):
            spent = phases(name)
            print(f"{name:6}" + "".join(f"{phase:>9} {ns:5.0f}" for phase, ns in spent.items()))
        return
    names = args.protocol or sound
    if "fifo" not in names:
        names.append("fifo")
    sizes = args.processes or [10, 100, 1000, 10_000]
    print(
        f"{'protocol':12} {'processes':>9} {'us':>8} {'x fifo':>7} {'x n=' + str(sizes[0]):>7}"
        f" {'steps':>7}"
    )
    first: dict[str, float] = {}
    for processes in sizes:
        bench = Bench(names, processes, args.repetitions)
        for name in names:
            if name not in bench.best:
                print(f"{name:12} {processes:9,}        -  (takes too long)")
                continue
            us = bench.best[name]
            first.setdefault(name, us)
            count = f"{bench.steps[name]:7.1f}"
            print(
                f"{name:12} {processes:9,} {us:8.2f} {us / bench.best['fifo']:7.2f}"
                f" {us / first[name]:7.2f} {count}",
                flush=True,
            )


if __name__ == "__main__":
    main()
