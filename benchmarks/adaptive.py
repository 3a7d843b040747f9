"""Measure `adaptive` in simulated time against other protocols and against the minimum.

    python benchmarks/adaptive.py latency [--only TEXT] [--messages M] [--seeds S]
    python benchmarks/adaptive.py freeze [--only TEXT] [--seeds S]
    python benchmarks/adaptive.py growth [--delays D]
    python benchmarks/adaptive.py lists [--only TEXT] [--messages M] [--seeds S]

**latency** prints, for each workload, number of processes and load, the latency of each
protocol relative to the least that causality allows: mean and 99th percentile. The least is
what `adaptive` without a cap has in the same cell, since it delivers every message as soon
as its predecessors are there (tests/core/test_adaptive.py compares it with `ks`, step by step).
It also prints the entries in a message, mean and most, and control packets per message.

**freeze** lets one process (or two, or one that flaps) stand still for a while, and compares
what the others deliver to each other meanwhile with the same run without the freeze. The two
runs draw other random numbers once the freeze begins, so the others send more or fewer
messages, by chance. `delivered` is the ratio of deliveries, with its standard error over the
seeds. `in time` does not depend on that chance: it is the ratio of the shares of what was sent in
that time and delivered in it. In a hub, where a client that gets no answer sends nothing, only
`delivered` counts.

**growth** keeps one process frozen for a long time, and prints the state of the others: all of
it, without the lane of the frozen process, and also without what is remembered of deliveries,
which fills slowly up to its limit (`adaptive_past.REMEMBERED` pairs).

**lists** takes the cells of load up to 0.3 in which a message has more than 6 entries on
average, and prints what smaller caps change, and how long lists would be if every delivery
were known everywhere at once (`Instant`): no protocol that lists can list less.

Delays are lognormal with a mean of 1 ms, packets overtake each other, and load is messages
per mean delay and process. All numbers are from simulated time, so they do not depend on
the machine, and a seed repeats them.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from causewire import protocols
from causewire.core import adaptive_past
from causewire.core.adaptive import Adaptive
from causewire.core.endpoint import Outgoing
from causewire.sim import SimulationConfig, Summary, simulate
from causewire.trace import Event

MS = 10**6
LATENCY = {"kind": "lognormal", "median": "0.8825ms", "sigma": 0.5}  # a mean of 1 ms


class Count:
    """Entries in messages, and the endpoints of a run."""

    messages = 0
    entries = 0
    most = 0
    in_parts = 0
    missing: dict[tuple[str, int], set[str]]
    endpoints: list[Adaptive]


class Counting(Adaptive):
    """The protocol, and a count of the entries that its messages carry."""

    __slots__ = ()

    def __init__(self, me: str, group: Any = None, **options: Any) -> None:
        super().__init__(me, group, **options)
        Count.endpoints.append(self)

    def _leaving(self) -> list[Outgoing]:
        packets = super()._leaving()
        for _, packet in packets:
            size = len(packet[5])
            Count.messages += 1
            Count.entries += size
            Count.most = max(Count.most, size)
        return packets

    def take_packets(self) -> list[Outgoing]:
        packets = super().take_packets()
        for _, packet in packets:
            if packet[0] == "part":
                Count.in_parts += len(packet[3])
        return packets


class Instant(Counting):
    """The same if every process knew of every delivery at once, without a packet."""

    __slots__ = ()

    def _accept(self, source: str, peer: Any, message: Any) -> None:
        super()._accept(source, peer, message)
        _, mid, _, _, group, _ = message
        if group:
            missing = Count.missing.setdefault((source, mid), {*group} - {source})
            missing.discard(self.me)
            if missing:
                return
        for endpoint in Count.endpoints:
            endpoint._past.delivered(source, group or self.me, mid)
            endpoint._shorten(source, group or self.me, mid)


ADAPTIVE = replace(protocols.describe("adaptive"), endpoint=Counting)


class Variant(NamedTuple):
    """A protocol in a table."""

    label: str
    protocol: Any
    options: dict[str, Any]


OPTIMUM = Variant("minimum", ADAPTIVE, {"cap": None})
VARIANTS = [
    Variant("K=64", ADAPTIVE, {"cap": 64}),
    Variant("K=128", ADAPTIVE, {"cap": 128}),
    Variant("csps", "csps", {}),
    Variant("sps", "sps", {}),
]

SHOP = {
    "web": {"replicas": 6, "calls": [{"to": "cart"}, {"to": "users", "probability": 0.5}]},
    "cart": {"replicas": 4, "calls": [{"to": "stock"}, {"to": "audit", "probability": 0.3}]},
    "users": {"replicas": 3, "calls": [{"to": "audit", "probability": 0.3}]},
    "stock": {"replicas": 2, "calls": [{"to": "audit", "probability": 0.3}]},
    "audit": {"replicas": 1},
}


class Cell(NamedTuple):
    """One row of a table."""

    name: str
    workload: dict[str, Any]
    processes: int
    load: float
    messages: int
    loss: float = 0.0


def cells(scale: int) -> Iterator[Cell]:
    """Yield the rows of the table of latencies; `scale` is messages of a unicast workload."""
    unicast: dict[str, dict[str, Any]] = {
        "uniform": {"kind": "uniform"},
        "hotspot": {"kind": "hotspot"},
        "relay": {"kind": "relay", "hops": 3},
        "requests, n/5 servers": {"kind": "request-reply"},
        "hub": {"kind": "request-reply", "servers": 1},
        "pipeline": {"kind": "pipeline"},
    }
    for name, workload in unicast.items():
        for n in (5, 10, 20, 50):
            for load in (0.05, 0.1, 0.3, 1.0, 4.0):
                if name.startswith("requests"):
                    workload = {"kind": "request-reply", "servers": n // 5, "outstanding": 4}
                yield Cell(name, workload, n, load, scale)
    for load in (0.05, 0.1, 0.3, 1.0, 4.0):
        yield Cell("services", {"kind": "microservices", "services": SHOP}, 16, load, scale)
    for n in (5, 10, 20, 50):
        for load in (0.05, 0.1, 0.3, 1.0, 4.0):
            rounds = {"kind": "broadcast", "lockstep": False}
            yield Cell("broadcast", rounds, n, load, max(4 * n, scale * 2 // n))
    for size in (3, 8):
        for load in (0.05, 0.1, 0.3, 1.0):
            groups = {"kind": "groups", "size": size}
            yield Cell(f"groups of {size}", groups, 20, load, scale // size)
    for load in (0.1, 0.3):
        yield Cell("uniform", {"kind": "uniform"}, 200, load, 2 * scale)
    yield Cell("hub", {"kind": "request-reply", "servers": 1}, 200, 1.0, 2 * scale)
    for load in (0.1, 1.0):
        yield Cell("uniform, 5 % lost", {"kind": "uniform"}, 10, load, scale, 0.05)
        yield Cell("broadcast, 5 % lost", {"kind": "broadcast", "lockstep": False}, 5, load,
                   scale // 2, 0.05)  # fmt: skip


def config(
    variant: Variant, cell: Cell, seed: int, faults: Sequence[dict[str, Any]] = ()
) -> SimulationConfig:
    """Return the settings of one run."""
    think = {"kind": "exponential", "mean": f"{1 / cell.load:.6f}ms"}
    processes = {"think": think}
    if cell.workload["kind"] != "microservices":
        processes["count"] = cell.processes  # type: ignore[assignment]
    return SimulationConfig.from_dict(
        {
            "protocol": variant.protocol,
            "options": variant.options,
            "workload": cell.workload,
            "processes": processes,
            "messages": cell.messages,
            "seed": seed,
            "network": {"latency": LATENCY, "loss": cell.loss},
            "faults": list(faults),
        }
    )


def measure(variant: Variant, cell: Cell, seed: int) -> tuple[Summary, float, int]:
    """Run a cell; returns its summary, and the entries of a message, mean and most."""
    Count.messages = Count.entries = Count.most = Count.in_parts = 0
    Count.endpoints = []
    Count.missing = {}
    summary = simulate(config(variant, cell, seed))
    if summary.undelivered:
        raise SystemExit(f"{variant.label}, {cell}: not everything was delivered")
    return summary, Count.entries / max(1, Count.messages), Count.most


def latency(arguments: argparse.Namespace) -> None:
    """Print the table of latencies."""
    labels = [variant.label for variant in VARIANTS]
    print("| workload | n | load | minimum: mean / p99, ms | ", end="")
    print(" | ".join([f"{label}: mean / p99" for label in labels]), end="")
    print(" | entries without cap | K=64 | K=128 | control packets: K=128 | csps |")
    print("|" + " --- |" * (9 + len(labels)))
    for cell in cells(arguments.messages):
        if arguments.only not in f"{cell.name} {cell.processes} {cell.load}":
            continue
        runs: dict[str, list[tuple[Summary, float, int]]] = {}
        for variant in (OPTIMUM, *VARIANTS):
            runs[variant.label] = [
                measure(variant, cell, seed) for seed in range(1, arguments.seeds + 1)
            ]
        means = {
            label: sum(s.latency.mean_ns for s, _, _ in each) / len(each)
            for label, each in runs.items()
        }
        tails = {
            label: sum(s.latency.p99_ns for s, _, _ in each) / len(each)
            for label, each in runs.items()
        }
        row = [cell.name, cell.processes, cell.load]
        row += [f"{means['minimum'] / MS:.2f} / {tails['minimum'] / MS:.2f}"]
        for label in labels:
            mean, tail = means[label] / means["minimum"], tails[label] / tails["minimum"]
            row.append(f"{mean:.2f} / {tail:.2f}")
        for label in ("minimum", "K=64", "K=128"):
            each = runs[label]
            row.append(f"{sum(e for _, e, _ in each) / len(each):.1f} / {max(m for *_, m in each)}")
        for label in ("K=128", "csps"):
            each = runs[label]
            row.append(f"{sum(s.control_per_message for s, _, _ in each) / len(each):.2f}")
        print("| " + " | ".join(map(str, row)) + " |", flush=True)


CAPS = (4, 8, 16, 32, 64, 128)
LONG = {
    ("relay", 10, 0.3), ("relay", 20, 0.3), ("relay", 50, 0.1), ("relay", 50, 0.3),
    ("requests, n/5 servers", 20, 0.3), ("requests, n/5 servers", 50, 0.1),
    ("requests, n/5 servers", 50, 0.3), ("hub", 50, 0.3), ("broadcast", 50, 0.05),
    ("broadcast", 50, 0.1), ("broadcast", 50, 0.3), ("groups of 8", 20, 0.3),
}  # fmt: skip
"""Cells of load up to 0.3 whose messages have more than 6 entries on average."""


def lists(arguments: argparse.Namespace) -> None:
    """Print what smaller caps cost, and how short lists could be."""
    remembered, adaptive_past.REMEMBERED = adaptive_past.REMEMBERED, 1 << 30
    instant = Variant("instant", replace(ADAPTIVE, endpoint=Instant), {"cap": None})
    print(
        "| workload | n | load | messages per delay and process | known at once | no cap | ", end=""
    )
    print(" | ".join([f"K = {cap}" for cap in CAPS]), "| csps |")
    print("|" + " --- |" * (7 + len(CAPS)))
    for cell in cells(arguments.messages):
        where = (cell.name, cell.processes, cell.load)
        if where not in LONG or arguments.only not in f"{cell.name} {cell.processes} {cell.load}":
            continue
        capped = [Variant(f"{cap}", ADAPTIVE, {"cap": cap}) for cap in CAPS]
        row = [*map(str, where)]
        least = 0.0
        for variant in (instant, OPTIMUM, *capped, Variant("csps", "csps", {})):
            adaptive_past.REMEMBERED = 1 << 30 if variant is instant else remembered
            mean = entries = parts = load = 0.0
            for seed in range(1, arguments.seeds + 1):
                summary, listed, _ = measure(variant, cell, seed)
                mean += summary.latency.mean_ns / arguments.seeds
                entries += listed / arguments.seeds
                parts += Count.in_parts / max(1, Count.messages) / arguments.seeds
                load += Count.messages / cell.processes / (summary.execution_ns / MS)
            if variant is instant:
                row += [f"{load / arguments.seeds:.2f}", f"{entries:.1f}"]
            elif variant is OPTIMUM:
                least = mean
                row.append(f"{entries:.1f}")
            elif variant.label == "csps":
                row.append(f"{mean / least:.2f}")
            else:
                row.append(f"{entries:.1f} + {parts:.1f}: {mean / least:.2f}")
        print("| " + " | ".join(row) + " |", flush=True)


class Living:
    """Latencies between processes that are not frozen, of messages sent in the freeze."""

    def __init__(self, frozen: set[str], begin: int, end: int) -> None:
        self.frozen = frozen
        self.begin = begin
        self.end = end
        self.sent: dict[tuple[str, int], int] = {}
        self.latencies: list[int] = []
        self.in_time = 0

    def write(self, event: Event) -> None:
        """Take one row of the trace."""
        if event.process in self.frozen or event.time_ns is None or event.mid is None:
            return
        key = (event.origin or "", event.mid)
        if event.kind == "send" and self.begin <= event.time_ns <= self.end:
            self.sent[key] = event.time_ns
        elif event.kind == "deliver" and key in self.sent:
            self.latencies.append(event.time_ns - self.sent[key])
            self.in_time += event.time_ns <= self.end


BEGIN, END = 30, 130


def freezes(frozen: Sequence[int], flapping: bool = False) -> list[dict[str, Any]]:
    """Return the faults of a run: processes stand still from `BEGIN` to `END`."""
    starts = range(BEGIN, END, 20) if flapping else (BEGIN,)
    faults: list[dict[str, Any]] = []
    for at in starts:
        faults.append({"kind": "freeze", "at": f"{at}ms", "processes": list(frozen)})
        faults.append({"kind": "thaw", "at": f"{at + 15 if flapping else END}ms"})
    return faults


def freeze(arguments: argparse.Namespace) -> None:
    """Print the table of throughput and latency while a process is frozen."""
    print(
        "| workload | n | load | frozen | protocol "
        "| delivered | in time | mean, ms | frozen | p99 | frozen |"
    )
    print("|" + " --- |" * 11)
    rounds = {"kind": "broadcast", "lockstep": False}
    table: list[tuple[Cell, list[int], bool]] = []
    chosen: list[tuple[str, dict[str, Any], int, float, float]] = [
        ("hub", {"kind": "request-reply", "servers": 1}, 21, 1.0, 0.35),
        ("hub", {"kind": "request-reply", "servers": 1}, 51, 1.0, 0.35),
        *[("uniform", {"kind": "uniform"}, 20, load, 1.0) for load in (0.1, 0.3, 1.0)],
        *[("uniform", {"kind": "uniform"}, 50, load, 1.0) for load in (0.1, 0.3)],
        *[("broadcast", rounds, n, load, 1.0) for n, load in ((5, 0.1), (10, 0.1), (20, 0.05))],
        ("broadcast", rounds, 20, 0.3, 1.0),
    ]
    for name, workload, n, load, rate in chosen:
        messages = int(160 * n * load * rate * (2 if name == "hub" else 1))
        cell = Cell(name, workload, n, load, messages)
        table.append((cell, [3], False))
        if name != "hub" and load == 0.1:
            table += [(cell, [3, 4], False), (cell, [3], True)]
    for cell, frozen, flapping in table:
        if arguments.only not in f"{cell.name} {cell.processes} {cell.load}":
            continue
        for variant in (OPTIMUM, *VARIANTS):
            print_frozen(variant, cell, frozen, flapping, arguments.seeds)


def print_frozen(
    variant: Variant, cell: Cell, frozen: list[int], flapping: bool, seeds: int
) -> None:
    """Print a row of the table of freezes."""
    counts: list[list[int]] = [[], []]
    due = [0, 0]
    means, tails = [0.0, 0.0], [0.0, 0.0]
    for seed in range(1, seeds + 1):
        for k, faults in enumerate(([], freezes(frozen, flapping))):
            Count.endpoints = []
            settings = config(variant, cell, seed, faults)
            names = settings.names()
            living = Living({names[i] for i in frozen}, BEGIN * MS, END * MS)
            simulate(settings, living)
            times = sorted(living.latencies)
            counts[k].append(living.in_time)
            due[k] += len(times)
            means[k] += sum(times) / len(times) / MS / seeds
            tails[k] += times[len(times) * 99 // 100] / MS / seeds
    before, after = sum(counts[0]), sum(counts[1])
    ratio = after / before
    squares = sum((y - ratio * x) ** 2 for x, y in zip(*counts, strict=True))
    error = (squares * seeds / max(1, seeds - 1)) ** 0.5 / before
    who = "flapping" if flapping else str(len(frozen))
    print(
        f"| {cell.name} | {cell.processes} | {cell.load} | {who} | {variant.label} "
        f"| {ratio:.3f} ± {error:.3f} | {after / due[1] / (before / due[0]):.3f} "
        f"| {means[0]:.2f} | {means[1]:.2f} | {tails[0]:.2f} | {tails[1]:.2f} |",
        flush=True,
    )


class Sampler:
    """Looks at the endpoints of the living from time to time."""

    def __init__(self, frozen: str, times: list[int]) -> None:
        self.frozen = frozen
        self.times = times
        self.rows: list[str] = []

    def write(self, event: Event) -> None:
        """Take one row of the trace."""
        if self.times and event.time_ns is not None and event.time_ns >= self.times[0]:
            at = self.times.pop(0)
            living = [e for e in Count.endpoints if e.me != self.frozen]
            everything = max(e.footprint().state for e in living)
            peers = [e._peers.get(self.frozen) for e in living]
            lanes = [peer.footprint() if peer else 0 for peer in peers]
            own = [e.footprint().state - lane for e, lane in zip(living, lanes, strict=True)]
            listed = max(len(e._past) for e in living)
            rest = max(
                size - 3 * len(list(e._past.settled())) for size, e in zip(own, living, strict=True)
            )
            self.rows.append(f"| {at // MS} | {everything} | {max(own)} | {rest} | {listed} |")


def growth(arguments: argparse.Namespace) -> None:
    """Print the state of the living while one process is frozen for a long time."""
    end = 50 + arguments.delays
    for name, workload, n, load in (
        ("uniform", {"kind": "uniform"}, 20, 0.1),
        ("hub", {"kind": "request-reply", "servers": 1}, 21, 1.0),
        ("broadcast", {"kind": "broadcast", "lockstep": False}, 10, 0.05),
    ):
        messages = int(n * load * (end + 100) * (0.7 if name == "hub" else 1.0))
        cell = Cell(name, workload, n, load, messages)
        variant = Variant("default", ADAPTIVE, {})
        Count.endpoints = []
        faults: list[dict[str, Any]] = [
            {"kind": "freeze", "at": "50ms", "processes": [3]},
            {"kind": "thaw", "at": f"{end}ms"},
        ]
        settings = config(variant, cell, 1, faults)
        shares = (0.01, 0.03, 0.1, 0.3, 0.6, 0.99)
        times = [45 * MS, *(int((50 + s * arguments.delays) * MS) for s in shares)]
        sampler = Sampler(settings.names()[3], times)
        summary = simulate(settings, sampler)
        print(
            f"\n{name}, {n} processes, load {load}, {messages} messages; the largest of the living:"
        )
        print("\n| time, delays | state | without the lane of the frozen ", end="")
        print("| and without what is remembered | entries known |")
        print("|" + " --- |" * 5)
        print("\n".join(sampler.rows))
        print(f"\nundelivered at the end: {summary.undelivered}")


def main() -> None:
    """Run one of the three."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("what", choices=["latency", "freeze", "growth", "lists"])
    parser.add_argument("--only", default="", help="only rows with this text in their name")
    parser.add_argument("--messages", type=int, default=3000)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--delays", type=int, default=1000)
    arguments = parser.parse_args()
    commands = {"latency": latency, "freeze": freeze, "growth": growth, "lists": lists}
    commands[arguments.what](arguments)


if __name__ == "__main__":
    main()
