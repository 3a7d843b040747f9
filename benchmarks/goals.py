"""Latency, datagrams and throughput of nodes, compared with the goals that were set for them.

    python hatch_build.py out/compiled      (once: the compiled transport)
    python benchmarks/goals.py [--compiled DIR] [--minutes M] [--rounds R] [--scale S]
                               [--results FILE] [--show]

In each round every contender of every shape is measured once, in another order each time, on
the sources of the transport, and with `--compiled` on the compiled transport as well. Rounds are
repeated until the next one would not end within `--minutes`. A ratio compares two contenders
in the same round; the table has the median over all rounds, and the lowest and the highest.

Each measurement is written to `--results` at once, one JSON object in each line, so that a run
that is interrupted is not lost: `--show` prints the tables from that file, without measuring.

    csps, sps, fifo     nodes on the sources of the transport, or on the compiled transport
    zmq, zmq.asyncio    blocking and on asyncio: DEALER and ROUTER for latency, otherwise PUSH
                        and PULL
    udp                 a bare datagram protocol on uvloop: no acks, no order

`benchmarks/latency.py` and `benchmarks/node.py` do the measuring, and have more contenders and
sizes.
"""

from __future__ import annotations

import argparse
import json
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

from _builds import COMPILED, Builds

Round = dict[tuple[str, str], dict[str, float]]
"""What one round measured, by shape and contender."""


class Shape(NamedTuple):
    """Who sends to whom, and which contenders do so."""

    contenders: list[str]
    clients: int = 0
    """Of a server, where latency is measured; 0 where throughput is."""
    amount: int = 1_500_000
    """Messages, or requests of all clients."""


def both(*protocols: str) -> list[str]:
    """Return the contenders of protocols: on the sources, and on the compiled transport."""
    return [name + build for name in protocols for build in ("", COMPILED)]


SHAPES = {
    "a client": Shape([*both("csps", "fifo"), "zmq.asyncio", "udp"], 1, 4000),
    "7 clients": Shape([*both("csps", "fifo"), "zmq.asyncio"], 7, 4200),
    "one way": Shape([*both("csps", "fifo"), "zmq"]),
    "both ways": Shape(both("csps", "fifo")),
    "all to all": Shape([*both("csps", "sps", "fifo"), "zmq"]),
    "all to all, 32": Shape(both("csps", "fifo"), amount=800_000),
}


class Goal(NamedTuple):
    """One row: a value of a contender, by itself or divided by that of another one."""

    shape: str
    value: str
    contender: str
    beside: str | None
    limit: float

    @property
    def at_most(self) -> bool:
        """Whether less is better."""
        return self.value != "rate"

    def reached(self, ratio: float) -> bool:
        """Return whether a ratio is on the right side of the limit."""
        return ratio <= self.limit if self.at_most else ratio >= self.limit

    def ratios(self, rounds: list[Round]) -> list[float]:
        """Return the ratio in each round that has it."""
        found = []
        for one in rounds:
            mine = one.get((self.shape, self.contender))
            other = one.get((self.shape, self.beside)) if self.beside else {self.value: 1.0}
            if mine and other:
                found.append(mine[self.value] / other[self.value])
        return found


def goals() -> Iterator[Goal]:
    """Yield the rows of the table."""
    fast = "csps" + COMPILED
    yield Goal("a client", "p50", "csps", "zmq.asyncio", 0.9)
    yield Goal("a client", "p50", fast, "zmq.asyncio", 0.6)
    yield Goal("a client", "p50", fast, "udp", 2.5)
    yield Goal("7 clients", "p50", fast, "zmq.asyncio", 0.8)
    for name in both("csps"):
        yield Goal("7 clients", "datagrams", name, None, 2.2)
    for name in both("csps"):
        yield Goal("all to all", "rate", name, "zmq", 1.0)
        yield Goal("all to all", "cpu", name, "zmq", 1.0)
    yield Goal("one way", "rate", fast, "zmq", 1.3)
    for build in ("", COMPILED):
        yield Goal("all to all", "rate", "sps" + build, "csps" + build, 0.85)
    for shape, (_, clients, _) in SHAPES.items():
        for build in ("", COMPILED):
            value, limit = ("p50", 1 / 0.9) if clients else ("rate", 0.9)
            yield Goal(shape, value, "csps" + build, "fifo" + build, limit)


# -- measuring -------------------------------------------------------------------


def measure(builds: Builds, shape: str, name: str, scale: float) -> dict[str, float]:
    """Return the values of one contender: percentiles or messages per second, and cpu."""
    _, clients, amount = SHAPES[shape]
    count = max(int(amount * scale), 320)
    if clients:
        found = builds.call("latency", "measure", name, clients, count // clients, 64)
        return dict(zip(("p50", "p90", "p99", "cpu", "datagrams"), found, strict=True))
    return dict(zip(("rate", "cpu"), builds.call("node", "crowd", name, shape, count), strict=True))


def in_turn(number: int, compiled: bool) -> Iterator[tuple[str, str]]:
    """Yield shapes and contenders; each round starts with another contender."""
    for shape, (names, _, _) in SHAPES.items():
        first = number % len(names)
        for name in names[first:] + names[:first]:
            if compiled or not name.endswith(COMPILED):
                yield shape, name


def run(compiled: Path | None, results: Path, minutes: float, rounds: int, scale: float) -> None:
    """Measure rounds, and write each measurement to a file as it comes."""
    builds = Builds(compiled)
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # ends what is being measured as well
    results.parent.mkdir(parents=True, exist_ok=True)
    start = time.monotonic()
    with results.open("w", encoding="utf-8") as file:
        for number in range(rounds):
            begun = time.monotonic()
            for shape, name in in_turn(number, compiled is not None):
                row: dict[str, Any] = {"round": number, "shape": shape, "contender": name}
                row["values"] = measure(builds, shape, name, scale)
                print(json.dumps(row), file=file, flush=True)
            now = time.monotonic()
            print(f"round {number + 1}: {now - begun:.0f} s", file=sys.stderr, flush=True)
            if now - start + (now - begun) > 60 * minutes:
                break


def read(results: Path) -> list[Round]:
    """Return the rounds in a file, the last of which may have been interrupted."""
    rounds: dict[int, Round] = {}
    for line in results.read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        values = rounds.setdefault(row["round"], {})
        values[row["shape"], row["contender"]] = row["values"]
    return list(rounds.values())


# -- tables ----------------------------------------------------------------------


def show_goals(rounds: list[Round]) -> None:
    """Print the ratios and the goals, as Markdown."""
    print("| shape | value | of | divided by that of | median | lowest | highest | goal | |")
    print("| --- | --- | --- | --- | ---: | ---: | ---: | ---: | --- |")
    for goal in goals():
        ratios = goal.ratios(rounds)
        words = [goal.shape, goal.value, goal.contender, goal.beside or ""]
        limit = f"{'≤' if goal.at_most else '≥'} {goal.limit:.2f}"
        if not ratios:
            print(f"| {' | '.join(words)} | | | | {limit} | not measured |")
            continue
        ratio = median(ratios)
        numbers = [f"{number:.2f}" for number in (ratio, min(ratios), max(ratios))]
        verdict = "reached" if goal.reached(ratio) else "**missed**"
        print(f"| {' | '.join([*words, *numbers, limit, verdict])} |")


def show_values(rounds: list[Round]) -> None:
    """Print the medians of what was measured, as Markdown."""
    columns = ("p50", "p90", "p99", "datagrams", "rate", "cpu")
    print(f"\n| shape | contender | {' | '.join(columns)} |")
    print(f"| --- | --- |{' ---: |' * len(columns)}")
    for shape, (names, _, _) in SHAPES.items():
        for name in names:
            found = [one[shape, name] for one in rounds if (shape, name) in one]
            if not found:
                continue
            cells = []
            for column in columns:
                value = median([row[column] for row in found]) if column in found[0] else 0.0
                digits = {"datagrams": 2, "cpu": 1}.get(column, 0)
                cells.append(f"{value:,.{digits}f}" if value else "")
            print(f"| {shape} | {name} | {' | '.join(cells)} |")
    print(
        f"\nMedians of {len(rounds)} rounds. `p50`, `p90`, `p99`: microseconds, half a round trip."
    )
    print("`rate`: messages per second. `cpu`: microseconds of processor time per message.")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--compiled", type=Path, metavar="DIR", help="nodes of both builds")
    parser.add_argument("--minutes", type=float, default=5.0)
    parser.add_argument("--rounds", type=int, default=100, help="stop after this many rounds")
    parser.add_argument("--scale", type=float, default=1.0, help="times as many messages")
    parser.add_argument("--results", type=Path, metavar="FILE", default=Path("out/goals.jsonl"))
    parser.add_argument("--show", action="store_true", help="do not measure; print the tables")
    args = parser.parse_args()
    if not args.show:
        run(args.compiled, args.results, args.minutes, args.rounds, args.scale)
    rounds = read(args.results)
    show_goals(rounds)
    show_values(rounds)


if __name__ == "__main__":
    main()
