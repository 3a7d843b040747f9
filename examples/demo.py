"""The main job: simulate one system under several protocols, check it, draw what went wrong.

    python examples/demo.py [FOLDER]

Ten processes pass messages on, over a network whose delays vary a lot. Each run is
written as a trace; each trace is checked for causal order; the first violation is
told in words and drawn.
"""

from __future__ import annotations

import sys
from pathlib import Path

from causewire.check import Report, check
from causewire.cli import main as causewire
from causewire.sim import Config, Summary, simulate
from causewire.trace import open_writer

SYSTEM = {
    "processes": 10,
    "messages": 2000,
    "workload": {"kind": "relay", "hops": 4},
    "network": {"latency": {"kind": "uniform", "low": "1ms", "high": "60ms"}},
    "seed": 7,
}
PROTOCOLS = ["fifo", "csps", "sps", "ks", "rst", "mf"]


def run(protocol: str, trace: Path) -> tuple[Summary, Report]:
    with open_writer(trace) as writer:
        summary = simulate(Config.from_dict({"protocol": protocol, **SYSTEM}), writer)
    return summary, check(trace)


def main() -> None:
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else "out/demo")
    folder.mkdir(parents=True, exist_ok=True)
    print(f"{SYSTEM['messages']} messages among {SYSTEM['processes']} processes, simulated\n")
    print(f"{'protocol':9} {'violations':>10} {'median':>9} {'99 %':>9} {'metadata a message':>19}")
    told = ""
    for protocol in PROTOCOLS:
        trace = folder / f"{protocol}.parquet"
        summary, report = run(protocol, trace)
        median, most = summary.latency.p50_ns / 1e6, summary.latency.p99_ns / 1e6
        metadata = summary.metadata_bytes / summary.messages
        print(
            f"{protocol:9} {report.violations:10,} {median:6.1f} ms {most:6.1f} ms"
            f" {metadata:13.0f} bytes",
            flush=True,
        )
        if report.violations and not told:
            told = f"{protocol}: {report.examples[0]}"
            causewire(["draw", str(trace), "--violation", "1", "-o", str(folder / "violation.svg")])
    print(f"\n{told}\n\nas a picture: {folder / 'violation.svg'}; the traces are beside it")


if __name__ == "__main__":
    main()
