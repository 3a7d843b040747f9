"""The experiments on Cykas with programs as its paper has them: partially ordered sets of sends.

    python -m campaigns.programs            # minutes; prints a table of docs/experiments.md

Section 5.1 of the paper represents a program as a partially ordered set of sends, and executes it
under each protocol. The experiments `cykas-fig5` and `cykas-fig6` draw messages at random instead:
a process sends by its clock, whatever it has got. Here a program is made first: the sends of such a
random run on an ideal network (the same latency, unlimited bandwidth), each after what its process
had sent and got before it, with the pauses in between. Then it is replayed. How the authors made
their programs, the paper does not say.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from statistics import mean
from typing import Any, NamedTuple

from causewire.sim import Config, simulate
from causewire.trace import open_writer

__all__ = ["CASES", "Case", "Row", "measure", "table"]

PROTOCOLS = ("cykas", "csps")


class Case(NamedTuple):
    """One choice of what the paper varies, and of what it leaves open."""

    think: str
    hotspots: float = 0.0
    job: str | None = None
    payload: int = 100
    head: int = 16


class Row(NamedTuple):
    """A case, with the execution time of MF over that of each protocol, in both ways."""

    case: Case
    program: Mapping[str, float]
    random: Mapping[str, float]


CASES = (
    *(
        Case(think, hotspots, None, payload)
        for payload in (100, 200, 300)
        for think in ("1ms", "10ms", "100ms")
        for hotspots in (0.0, 0.1)
    ),
    *(Case("10ms", 0.0, None, payload, 48) for payload in (100, 300)),
    *(
        Case(think, 0.0, job, payload)
        for payload in (100, 300)
        for think in ("1ms", "10ms")
        for job in ("0.5ms", "12.5ms", "50ms")
    ),
)


def measure(
    cases: Sequence[Case], seeds: int = 3, processes: int = 100, messages: int = 10_000
) -> Iterator[Row]:
    """Yield the ratios of each case, as means over seeds."""
    with tempfile.TemporaryDirectory() as folder:
        for case in cases:
            program: dict[str, list[float]] = {protocol: [] for protocol in PROTOCOLS}
            drawn: dict[str, list[float]] = {protocol: [] for protocol in PROTOCOLS}
            for seed in range(seeds):
                by_hand = {
                    "workload": {"kind": "hotspot", "probability": 0.8, "share": case.hotspots},
                    "processes": {"count": processes, "think": case.think},
                    "messages": messages,
                }
                path = Path(folder, "program.parquet")
                _write(path, {**by_hand, "sizes": {"payload": case.payload}}, seed)
                replayed = {"workload": {"kind": "replay", "trace": str(path)}}
                for into, what in ((program, replayed), (drawn, by_hand)):
                    least = _seconds("mf", case, what, seed)
                    for protocol in PROTOCOLS:
                        into[protocol].append(least / _seconds(protocol, case, what, seed))
            yield Row(case, *({name: mean(of[name]) for name in of} for of in (program, drawn)))


def _write(path: Path, settings: Mapping[str, Any], seed: int) -> None:
    # On such a network nothing can overtake: what any protocol delivers is in causal order.
    ideal = {"protocol": "unordered", "network": {"latency": "5ms"}, "seed": seed}
    with open_writer(path) as writer:
        simulate(Config.from_dict({**settings, **ideal}), writer)


def _seconds(protocol: str, case: Case, settings: Mapping[str, Any], seed: int) -> float:
    processes = dict(settings.get("processes", {}))
    if case.job is not None:
        processes["jobs"] = {"share": 0.1, "length": case.job}
    heads = dict.fromkeys(("message", "ack", "permit", "control"), case.head)
    told = simulate(
        Config.from_dict(
            {
                **settings,
                "protocol": protocol,
                "processes": processes,
                "network": {"latency": "5ms", "bandwidth": "50kB/s"},
                "sizes": {**heads, "payload": case.payload},
                "seed": seed,
            }
        )
    )
    if told.undelivered is not None:
        raise RuntimeError(f"{protocol}, {case}: {told.undelivered}")
    return told.simulated_ns / 1e9


def table(rows: Iterator[Row]) -> Iterator[str]:
    """Yield the lines of a table in Markdown."""
    heads = [f"{protocol}, {how}" for how in ("program", "random") for protocol in PROTOCOLS]
    yield f"| payload | heads | between sends | hotspots | job | {' | '.join(heads)} |"
    yield "| --- " * (5 + len(heads)) + "|"
    for case, program, random in rows:
        cells = [f"{of[protocol]:.2f}" for of in (program, random) for protocol in PROTOCOLS]
        yield (
            f"| {case.payload} | {case.head} | {case.think} | {case.hotspots:.0%} | "
            f"{case.job or 'none'} | {' | '.join(cells)} |"
        )


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--seeds", type=int, default=3, help="default: 3")
    args = parser.parse_args()
    for line in table(measure(CASES, args.seeds)):
        print(line, flush=True)


if __name__ == "__main__":
    main()
