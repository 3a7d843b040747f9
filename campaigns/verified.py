"""Everything that docs/verification.md says was checked, run again: the tables there.

    python -m campaigns.verified [--out DIR] [--only TEXT] [--table]

Each row is a run of `causewire verify`. Its result is kept in DIR as soon as it is
there, and what is there is not run again: the whole takes hours of CPU time, most
of it in the rows of four processes. `--only` runs the rows whose command has TEXT in
it; `--table` runs nothing, and prints the tables of what is there.

CPU time is that of all processes of a run, start and compilation included. A row that
was interrupted goes on from its checkpoint, and tells no times.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

UNICAST = ("mf", "cykas", "csps", "sps", "rst", "ks")
PERMITS = ("csps", "sps")
RUNS_DRIVEN = ("csps", "csps-departures", "sps", "sps-departures")
FIFO_PROPERTIES = " ".join(
    f"--property '{each}'"
    for each in ("FIFO order", "duplicate", "undelivered", "unsent", "left over")
)
EXAMPLE_3 = "--program '0>1+2; 1>@1 2; 2>1'"
EXAMPLE_4 = "--processes 4 --program '0>1+2+3; 1>@1 2+3; 2>@1 3; 3>'"
PROGRAMS = "--program mf-first --program mf-second --program mf-third"

RUNS: list[tuple[tuple[str, ...], str]] = [
    (UNICAST, "--messages 3"),
    (("mf", "cykas"), "--messages 4"),
    (UNICAST, "--processes 4 --messages 2"),
    (("cykas-as-printed",), "--messages 5,0,1 --property 'causal order'"),
    (("cykas", "csps", "sps"), "--messages 5,0,1"),
    (("cykas", "csps", "sps"), "--messages 5,1,1"),
    (PERMITS, "--messages 2,1,1 --loss 1 --duplication 1"),
    (PERMITS, "--messages 2 --loss 1 --duplication 1"),
    (PERMITS, "--messages 2,1,0 --loss 2 --duplication 2"),
    (PERMITS, "--kind multicast --messages 1"),
    (("csps", "sps", "rst", "ks"), "--kind multicast --messages 2,1,0"),
    (PERMITS, EXAMPLE_3),
    (PERMITS, EXAMPLE_4),
    (("mf", "cykas", "csps", "sps"), PROGRAMS),
    (RUNS_DRIVEN, "--driver runs --messages 2"),
    (RUNS_DRIVEN, "--driver runs --messages 5,0,1"),
    (RUNS_DRIVEN, "--driver runs --messages 3,2,1"),
    (RUNS_DRIVEN, "--driver runs --kind multicast --messages 2,1,0"),
    (RUNS_DRIVEN, "--driver runs --program '0>1,2,1; 1>2,0,2; 2>0,1,0'"),
    (("csps", "sps", "mf", "cykas", "rst"), "--forgets 1 --messages 2 --split"),
    (("csps", "sps"), "--forgets 2 --messages 2,1,0 --split"),
    (("csps", "sps"), "--forgets 1 --kind multicast --messages 2,1,0 --split"),
    (("fifo",), f"--forgets 1 --messages 2 {FIFO_PROPERTIES}"),
    (("bss", "newtop", "pak", "pak-credit", "pak-nak"), "--messages 2"),
    (("cykas", "mf", "csps", "sps"), "--starvation"),
    (("cykas",), "--starvation --senders 1"),
    (("cykas",), "--starvation --window 2"),
]

EARLY = "--option replies_early=true"
RUNS += [
    (("csps",), f"{EARLY} --messages 5,0,1"),
    (("csps",), f"{EARLY} --messages 2,1,1 --loss 1 --duplication 1"),
    (("csps",), f"{EARLY} --messages 2,1,0 --loss 2 --duplication 2"),
    (("csps",), f"{EARLY} --kind multicast --messages 1"),
    (("csps",), f"{EARLY} --kind multicast --messages 2,1,0"),
    (("csps",), f"{EARLY} {PROGRAMS}"),
    (("csps", "csps-departures"), f"{EARLY} --driver runs --messages 2"),
    (("csps", "csps-departures"), f"{EARLY} --driver runs --kind multicast --messages 2,1,0"),
    (("csps",), f"{EARLY} --forgets 2 --messages 2,1,0 --split"),
    (("csps",), f"{EARLY} --messages 2 --loss 1 --duplication 1"),
    (("csps",), f"{EARLY} --messages 5,1,1"),
    (("csps", "csps-departures"), f"{EARLY} --driver runs --messages 3,2,1"),
    (("csps",), f"{EARLY} --driver runs --messages 5,0,1"),
    (("csps",), f"{EARLY} --forgets 1 --messages 2 --split"),
    (("csps",), f"{EARLY} --processes 4 --messages 2"),
    (("csps",), f"{EARLY} --messages 3"),
]

for cap in ("0", "1", "2", "null"):
    option = f"--option cap={cap}"
    RUNS += [
        (("adaptive",), f"{option} --messages 2"),
        (("adaptive",), f"{option} --messages 2,1,1 --loss 1 --duplication 1"),
        (("adaptive",), f"{option} --kind multicast --messages 2,1,0"),
        (("adaptive",), f"{option} --processes 4 --relays 4"),
        (("adaptive",), f"{option} --processes 4 --relays 6 --sample 40 --seed 1"),
        (("adaptive",), f"{option} --processes 4 --relays 5 --sample 40 --kind multicast"),
        *[(("adaptive",), f"{option} --processes 4 --relays 4 --frozen {k}") for k in range(4)],
    ]
RUNS += [
    (("adaptive",), "--option cap=1 --messages 2 --loss 1 --duplication 1"),
    (("adaptive",), "--option cap=1 --program '0>1,2,1; 1>2,0,2; 2>0,1,0'"),
    (("adaptive",), "--option cap=0 --processes 4 --relays 8 --sample 10 --seed 3"),
]


def commands() -> list[str]:
    """What is given to `causewire verify`, a row each."""
    return [f"--protocol {name} {rest}" for names, rest in RUNS for name in names]


def run(command: str, kept: Path) -> None:
    """Run a row, and keep what it tells."""
    words = [*shlex.split(command), "--json"]
    if "--starvation" not in words:
        words += ["--checkpoint", str(kept.with_suffix(".checkpoint"))]
    child = subprocess.Popen(
        [sys.executable, "-m", "causewire", "verify", *words], stdout=subprocess.PIPE
    )
    assert child.stdout is not None
    text = child.stdout.read()
    _, _, used = os.wait4(child.pid, 0)
    if not text:
        sys.exit(f"causewire verify {command} failed")
    result = json.loads(text)
    result["cpu_seconds"] = used.ru_utime + used.ru_stime
    kept.write_text(json.dumps(result, indent=2))


def duration(seconds: float, result: dict[str, Any]) -> str:
    if result.get("resumed"):
        return "in parts"
    return f"{seconds:.1f} s" if seconds < 100 else f"{seconds:,.0f} s"


def finite(command: str, result: dict[str, Any]) -> str:
    """A row about runs that end."""
    protocol, what = re.fullmatch(r"--protocol (\S+) (.*)", command).groups()  # type: ignore[union-attr]
    verdict = "incomplete"
    if result["passed"]:
        verdict = "holds"
    elif result["violations"]:
        verdict = f"violated, {result['example']['length']} steps"
    cells = [
        f"`{protocol}`",
        f"`{what}`",
        f"{result['checked']} of {result['workloads']}",
        *(f"{result[name]:,}" for name in ("states", "transitions", "depth")),
        duration(result["cpu_seconds"], result),
        duration(result["seconds"], result),
        f"{result['peak_bytes'] / 1e6:,.0f} MB",
        verdict,
    ]
    return f"| {' | '.join(cells)} |"


def endless(command: str, result: dict[str, Any]) -> str:
    """A row about runs that go on for ever."""
    protocol, what = re.fullmatch(r"--protocol (\S+) (.*)", command).groups()  # type: ignore[union-attr]
    verdict = "none" if result["passed"] else "incomplete"
    if result["stem"] is not None:
        verdict = f"**starves**: stem of {result['stem']} steps, cycle of {result['cycle']}"
    cells = [
        f"`{protocol}`",
        f"`{what}`",
        *(f"{result[name]:,}" for name in ("states", "transitions", "held")),
        duration(result["cpu_seconds"], result),
        verdict,
    ]
    return f"| {' | '.join(cells)} |"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--out", type=Path, default=Path("out/verified"))
    parser.add_argument("--only", default="", metavar="TEXT")
    parser.add_argument("--table", action="store_true")
    asked = parser.parse_args()
    asked.out.mkdir(parents=True, exist_ok=True)
    for command in commands():
        name = re.sub(r"[^a-z0-9]+", "-", command.removeprefix("--protocol ")).strip("-")
        kept = asked.out / f"{name}.json"
        if asked.only in command and not asked.table and not kept.exists():
            print(f"causewire verify {command}", file=sys.stderr, flush=True)
            run(command, kept)
        if kept.exists():
            row = endless if "--starvation" in command else finite
            print(row(command, json.loads(kept.read_text())), flush=True)


if __name__ == "__main__":
    main()
