"""The failure matrix: what the living notice of a fault, cell by cell, on real processes.

    python -m campaigns.failures.matrix [--protocol P ...] [--shape S ...] [--fault F ...]
        [--give-up 3] [--frozen 10] [--jobs 1] [--minutes M] [--fresh]
        [--out docs/measurements/failures.md]

Each cell starts the processes of one system on loopback, lets them exchange messages,
does something to one of them (the *victim*) and goes on. What counts is the traffic
between the others: how much of it there was before, at its worst, and afterwards, how
long it took until it was back at 90 %, who was told what, and what was lost: the messages
to the victim whose receipts failed at the others. Between the others, nothing may be lost.

    frozen        the victim is stopped (SIGSTOP) for a while, then continued
    killed        the victim is killed and does not come back
    restarted     the victim is killed and started again a second later
    left          the victim closes its node properly
    partitioned   the victim is cut off from the others for a while
    deaf          the victim's application stops reading for a while

In the hub, the server has just sent the victim a message that it will not answer. Cells
that run at a time begin together, and the next ones begin when all of them have ended: a
system that starts takes the processors away from one that is being measured.

All 72 cells take about 18 minutes with `--frozen 30 --jobs 2`. Finished cells are kept in
`--state`, so a run that was interrupted, or ended by `--minutes`, continues when the same
command is given again; `--fresh` forgets them. `--out` replaces the recorded block of the page.

The exit status is 1 if the living were not back at 90 % of their traffic within
`--give-up` plus one second in any cell (one second if the victim left properly).
"""

from __future__ import annotations

import argparse
import asyncio
import datetime
import json
import shlex
import statistics
import sys
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from itertools import product
from pathlib import Path
from typing import Any

from causewire.testing.cluster import Cluster

from .. import record
from ..faults import ENDING, FAULTS, mend, strike
from .worker import BUCKET

WORKER = Path(__file__).with_name("worker.py")
SHAPES = {"hub": 21, "group": 5, "pipeline": 5, "uniform": 10}
"""Each shape of system, with its number of processes."""
PROTOCOLS = ("csps", "sps", "adaptive")
STATE = record.ROOT / "out" / "failure-matrix.jsonl"
TAIL = 5.0
"""Seconds that are watched after the last moment at which anything should happen."""
FORGETFUL = ("csps", "sps", "adaptive")
"""Protocols with which a node gives silent peers up. The others have to bear with them."""
RECOVERED = 0.9
"""The share of the traffic before the fault at which the living are themselves again."""
WINDOW = 5
"""Intervals over which traffic is averaged: half a second."""
LONG = 4
"""Windows over which traffic has to be at 90 % to count as recovered."""
WARM_UP = 1.5
BEFORE = 3.0
"""Seconds of undisturbed traffic, to compare with."""


@dataclass
class Cell:
    """One combination, and what was seen in it."""

    shape: str
    fault: str
    protocol: str
    before: float = 0.0
    """Deliveries per second between the living, before the fault."""
    worst: float = 0.0
    """The same at its worst after the fault, as a share of `before`."""
    after: float = 0.0
    """The same in the last seconds, as a share of `before`."""
    recovery: float | None = None
    """Seconds from the fault until the living were at 90 % and stayed there."""
    told: list[str] = field(default_factory=list)
    """What events at the others about the victim, each once."""
    lost: int = 0
    """Messages to the victim whose receipts failed at the others."""
    lost_among: int = 0
    """Messages between the others whose receipts failed."""
    problem: str = ""
    finished: bool = False

    def held(self, give_up: float) -> bool:
        """Return whether the goal holds in this cell."""
        allowed = 1.0 if self.fault == "left" else give_up + 1.0
        in_time = self.recovery is not None and self.recovery <= allowed
        # An average can be at 90 % although traffic has fallen since, so the end counts too.
        return not self.problem and in_time and self.after >= RECOVERED


class Start:
    """Lets cells begin together, when all of them are ready or have failed."""

    def __init__(self, cells: int) -> None:
        self._left = cells
        self._all_ready = asyncio.Event()

    def ready(self) -> None:
        """Note that one more is ready, or will never be."""
        self._left -= 1
        if not self._left:
            self._all_ready.set()

    async def wait(self) -> None:
        """Wait until nobody is missing."""
        await self._all_ready.wait()


async def play(cell: Cell, give_up: float, frozen: float, start: Start) -> None:
    """Run one cell and fill in what was seen."""
    members = [f"p{index}" for index in range(SHAPES[cell.shape])]
    victim = members[-1] if cell.shape == "hub" else members[len(members) // 2]
    living = [name for name in members if name != victim]
    settings: dict[str, Any] = {
        "protocol": cell.protocol,
        "shape": cell.shape,
        "members": members,
        "pause": 0.1 if cell.shape in ("hub", "group") else 0.02,
        "give_up_after": give_up if cell.protocol in FORGETFUL else None,
        "read_within": give_up,
        "rejoin": True,
    }
    faults = {"seed": 1, "delay": (0.0005, 0.002)}
    cluster = Cluster(members, WORKER, faults, **settings)
    try:
        await cluster.__aenter__()
    finally:
        start.ready()
    try:
        await start.wait()
        for name in members:
            cluster.tell(name, "go")
        await asyncio.sleep(WARM_UP + BEFORE)
        struck = time.time()
        await _strike(cluster, cell, victim, frozen)
        await asyncio.sleep(max(0.0, struck + _watched(cell, give_up, frozen) - time.time()))
        ended = time.time()
        answers = [await cluster.ask(name, "counts") for name in living]
    finally:
        await cluster.__aexit__()
    rates = _rates(answers, living, struck - BEFORE, ended)
    _judge(cell, rates, struck, ended)
    failed = sum([Counter(answer["failed"]) for answer in answers], Counter[str]())
    cell.lost = failed.pop(victim, 0)
    cell.lost_among = failed.total()
    about = {text for answer in answers for at, text in answer["told"] if at >= struck}
    cell.told = sorted(text.split()[0] for text in about if text.endswith(f" {victim}"))


def _watched(cell: Cell, give_up: float, frozen: float) -> float:
    """Return for how many seconds after the fault a cell is watched."""
    return max(give_up, frozen if cell.fault in ENDING else 0.0) + TAIL


async def _strike(cluster: Cluster, cell: Cell, victim: str, frozen: float) -> None:
    await strike(cluster, victim, cell.fault)
    if cell.shape == "hub" and cell.fault != "left":
        cluster.tell(cluster.names[0], f"write {victim}")
    if cell.fault in ENDING:
        await asyncio.sleep(frozen)
    await mend(cluster, victim, cell.fault)


def _rates(
    answers: Iterable[dict[str, Any]], living: Sequence[str], start: float, end: float
) -> dict[int, int]:
    """Return the deliveries between the living in each interval."""
    rates = dict.fromkeys(range(int(start / BUCKET), int(end / BUCKET)), 0)
    for answer in answers:
        for source, counts in answer["sources"].items():
            if source in living:
                for bucket, count in counts.items():
                    if int(bucket) in rates:
                        rates[int(bucket)] += count
    return rates


def _judge(cell: Cell, rates: dict[int, int], struck: float, ended: float) -> None:
    at = int(struck / BUCKET)
    before = [count for bucket, count in rates.items() if bucket < at]
    usual = statistics.fmean(before)
    cell.before = usual / BUCKET
    if not usual:
        cell.problem = "no traffic before the fault"
        return
    after = [count for bucket, count in sorted(rates.items()) if bucket > at]
    shares = [
        statistics.fmean(after[k : k + WINDOW]) / usual for k in range(len(after) - WINDOW + 1)
    ]
    cell.worst = min(shares)
    cell.after = statistics.fmean(after[-20:]) / usual
    # The living are themselves again at the first moment from which on two seconds, and
    # everything up to the end, are at 90 % on average. Messages that had to wait arrive
    # all at once: what exceeds the usual traffic of half a second does not count.
    steady = [min(1.0, share) for share in shares[::WINDOW]]
    for k in range(len(steady) - LONG + 1):
        ahead, rest = steady[k : k + LONG], steady[k:]
        if min(statistics.fmean(ahead), statistics.fmean(rest)) >= RECOVERED:
            cell.recovery = k * WINDOW * BUCKET
            break


def row(cell: Cell, give_up: float) -> str:
    """Return a cell as a row of the table."""
    if cell.problem:
        return f"| {cell.shape} | {cell.fault} | {cell.protocol} | {cell.problem} | | | | | | |"
    recovery = "never" if cell.recovery is None else f"{cell.recovery:.1f} s"
    verdict = "yes" if cell.held(give_up) else "**no**"
    told = ", ".join(cell.told) or "nothing"
    among = f", and **{cell.lost_among}** between the others" if cell.lost_among else ""
    return (
        f"| {cell.shape} | {cell.fault} | {cell.protocol} | {cell.before:.0f}/s "
        f"| {cell.worst:.0%} | {recovery} | {cell.after:.0%} | {told} "
        f"| {cell.lost}{among} | {verdict} |"
    )


HEAD = (
    "| system | fault | protocol | before | at worst | back at 90 % after | at the end "
    "| events at the others | messages lost | goal |\n"
    "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |"
)


class Kept:
    """Cells that are finished, in a file, so that an interrupted run can continue.

    Args:
        path: The file, with one cell in a line.
        settings: What the cells were run with. Cells of other settings do not count.
    """

    def __init__(self, path: Path, settings: dict[str, Any]) -> None:
        self._path = path
        self._settings = settings
        self._done: dict[tuple[str, str, str], Cell] = {}
        lines = path.read_text().splitlines() if path.exists() else []
        for line in lines:
            kept = json.loads(line)
            if kept["settings"] == settings:
                cell = Cell(**kept["cell"])
                self._done[cell.shape, cell.fault, cell.protocol] = cell

    def get(self, cell: Cell) -> Cell:
        """Return the finished cell of the same names, or the one given."""
        return self._done.get((cell.shape, cell.fault, cell.protocol), cell)

    def add(self, cell: Cell) -> None:
        """Keep a cell."""
        self._path.parent.mkdir(parents=True, exist_ok=True)
        with self._path.open("a") as file:
            print(json.dumps({"settings": self._settings, "cell": asdict(cell)}), file=file)


async def run_all(
    cells: Sequence[Cell], give_up: float, frozen: float, jobs: int, seconds: float, kept: Kept
) -> None:
    """Run cells, a few at a time, and print each row as it is known.

    No cell begins that would probably not end within `seconds`.
    """

    async def one(cell: Cell, start: Start) -> None:
        try:
            await play(cell, give_up, frozen, start)
        except (RuntimeError, TimeoutError, OSError) as error:
            cell.problem = f"{type(error).__name__}: {error}"

    began = time.monotonic()
    overhead = 3.0
    """Seconds for starting and ending the processes of a cell."""
    for k in range(0, len(cells), jobs):
        batches = [cells[n : n + jobs] for n in range(k, len(cells), jobs)]
        needs = [max(_duration(cell, give_up, frozen) for cell in batch) for batch in batches]
        then, left = time.monotonic(), sum(needs) + overhead * len(needs)
        print(f"{len(cells) - k} cells to go, about {left / 60:.0f} minutes", file=sys.stderr)
        if then - began + needs[0] + overhead > seconds:
            break
        start = Start(len(batches[0]))
        await asyncio.gather(*[one(cell, start) for cell in batches[0]])
        overhead = (overhead + max(0.0, time.monotonic() - then - needs[0])) / 2
        for cell in batches[0]:
            cell.finished = True
            kept.add(cell)
            print(row(cell, give_up), flush=True)


def _duration(cell: Cell, give_up: float, frozen: float) -> float:
    return WARM_UP + BEFORE + _watched(cell, give_up, frozen)


def write_page(path: Path, command: str, rows: Sequence[str]) -> None:
    """Replace the recorded block of a page; a page without one becomes the table alone."""
    table = "\n".join([HEAD, *rows]) + "\n"
    page = path.read_text(encoding="utf-8") if path.exists() else ""
    if record.BLOCK.search(page):
        day = datetime.datetime.now(datetime.UTC).date().isoformat()
        new = record.block([(command, table)], day, record.machine(), record.commit())
        table = record.replaced(page, new)
    path.write_text(table, encoding="utf-8")


def _command(options: argparse.Namespace) -> str:
    """Return the command whose result is recorded, without where and how long it ran."""
    words = ["-m", "campaigns.failures.matrix"]
    for option in ("protocol", "shape", "fault"):
        for name in getattr(options, option) or ():
            words += [f"--{option}", name]
    words += ["--give-up", f"{options.give_up:g}", "--frozen", f"{options.frozen:g}"]
    return shlex.join([*words, "--jobs", str(options.jobs)])


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--protocol", action="append", help="default: csps, sps, adaptive")
    parser.add_argument("--shape", action="append", choices=SHAPES)
    parser.add_argument("--fault", action="append", choices=FAULTS)
    parser.add_argument("--give-up", type=float, default=3.0, help="seconds (default: 3)")
    parser.add_argument("--frozen", type=float, default=10.0, help="length of faults that end")
    parser.add_argument("--jobs", type=int, default=1, help="cells at a time (default: 1)")
    parser.add_argument("--minutes", type=float, default=1e6, help="begin no cell after that")
    parser.add_argument("--state", type=Path, default=STATE, help="where finished cells are kept")
    parser.add_argument("--fresh", action="store_true", help="run finished cells again")
    parser.add_argument("--out", type=Path, help="write the page here as well")
    options = parser.parse_args(arguments)
    if options.fresh:
        options.state.unlink(missing_ok=True)
    give_up = options.give_up
    version = record.commit()
    settings = {"give_up": give_up, "frozen": options.frozen, "jobs": options.jobs}
    kept = Kept(options.state, {**settings, "commit": version})
    chosen = product(
        options.shape or SHAPES, options.fault or FAULTS, options.protocol or PROTOCOLS
    )
    cells = [kept.get(Cell(*names)) for names in chosen]
    todo = [cell for cell in cells if not cell.finished]
    print("\n".join([HEAD, *[row(cell, give_up) for cell in cells if cell.finished]]), flush=True)
    work = run_all(todo, give_up, options.frozen, options.jobs, 60 * options.minutes, kept)
    try:
        asyncio.run(work)
    except KeyboardInterrupt:
        print("interrupted: the same command continues", file=sys.stderr)
    done = [cell for cell in cells if cell.finished]
    failed = [cell for cell in done if not cell.held(give_up)]
    print(
        f"{len(done)} of {len(cells)} cells, {len(failed)} of them short of the goal",
        file=sys.stderr,
    )
    if options.out and done:
        write_page(options.out, _command(options), [row(cell, give_up) for cell in done])
    return 0 if len(done) == len(cells) and not failed else 1


if __name__ == "__main__":
    raise SystemExit(main())
