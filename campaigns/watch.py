"""Watch nodes that write for a long time: how soon violations are reported, and at what cost.

    python -m campaigns.watch --minutes 60
    python -m campaigns.watch --minutes 9 --kill-every 120 --run-minutes 2
    python -m campaigns.watch --minutes 2 --rate 100 --kill-every 40

Nodes write their traces, a file for each and a new run every few minutes, at a fixed rate.
Now and then a message overtakes another, and the time is noted at which the row that shows
it was written. `causewire watch` follows the files, as a process of its own, which is killed
(SIGKILL) and started again at random. The report says how long it took from that row to the
alert, whether every violation was reported and is in the table once, and how much memory
the watch had in each quarter of the time. Exit status 1: something was missed or invented.
Ctrl-C ends the writing, waits for the last alerts, and prints the report of the time so far.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

NODES = ("ann", "bob", "cat", "dan", "eve")
LINE = re.compile(r"VIOLATION in run (\S+): (\S+) delivered (\S+):(\d+) .* without (\S+):(\d+),")

Key = tuple[str, str, str, int, str, int]
"""Run, process, the message that was early, the one that it overtook."""


class Nodes:
    """Writes what nodes would write, with messages that overtake others now and then."""

    def __init__(self, folder: Path, rng: random.Random, rate: float, length: float) -> None:
        self.folder, self.rng, self.rate, self.length = folder, rng, rate, length
        self.rows = 0
        self.planted: dict[Key, float] = {}
        """When the row that shows a violation was written."""
        self.stopped = threading.Event()
        self._run = ""
        self._counts: dict[str, list[int]] = {}
        self._texts: dict[str, list[str]] = {}

    def write(self, every: float) -> None:
        """Write until told to stop, with a violation each `every` seconds on average."""
        began = time.monotonic()
        messages = 0
        number = -1
        while not self.stopped.wait(0.05):
            passed = time.monotonic() - began
            if int(passed / self.length) != number:
                number = int(passed / self.length)
                self._run = f"run{number}"
                self._counts = {name: [0, 0] for name in NODES}
            while messages < passed * self.rate:
                self._message(*self.rng.sample(NODES, 2))
                messages += 1
            planted = self._violation() if self.rng.random() < 0.05 / every else None
            self._flush()
            if planted is not None:
                self.planted[planted] = time.monotonic()

    def _message(self, source: str, to: str) -> None:
        self._deliver(to, source, self._send(source, to))

    def _violation(self) -> Key:
        a, b, c = self.rng.sample(NODES, 3)
        first = self._send(a, c)
        self._message(a, b)
        second = self._send(b, c)
        self._deliver(c, b, second)
        self._deliver(c, a, first)
        return (self._run, c, b, second, a, first)

    def _send(self, source: str, to: str) -> int:
        self._counts[source][1] += 1
        mid = self._counts[source][1]
        self._row(source, "send", source, mid, to)
        return mid

    def _deliver(self, at: str, origin: str, mid: int) -> None:
        self._row(at, "deliver", origin, mid, origin)

    def _row(self, process: str, kind: str, origin: str, mid: int, peer: str) -> None:
        row = {
            "run": self._run,
            "process": process,
            "seq": self._counts[process][0],
            "time_ns": time.time_ns(),
            "kind": kind,
            "origin": origin,
            "mid": mid,
            "peers": [peer],
        }
        self._counts[process][0] += 1
        self._texts.setdefault(process, []).append(json.dumps(row) + "\n")
        self.rows += 1

    def _flush(self) -> None:
        for process, lines in self._texts.items():
            with (self.folder / f"{self._run}-{process}.jsonl").open("a") as file:
                file.writelines(lines)
        self._texts.clear()


class Memory(NamedTuple):
    """Resident memory of the watch and all its processes."""

    at: float
    age: float
    """Seconds since the watch was started."""
    megabytes: float


class Watcher:
    """`causewire watch` in a process group of its own, and what it prints."""

    def __init__(self, folder: Path, out: Path, arguments: list[str]) -> None:
        self._command = [sys.executable, "-m", "causewire", "watch", str(folder)]
        self._command += ["--out", str(out), *arguments]
        self.alerts: dict[Key, float] = {}
        self.invented: list[str] = []
        self.starts: list[float] = []
        self.memory: list[Memory] = []

    def start(self) -> None:
        """Start it, and read what it prints."""
        self.process = subprocess.Popen(
            self._command, stdout=subprocess.PIPE, text=True, start_new_session=True
        )
        self.starts.append(time.monotonic())
        threading.Thread(target=self._read, args=(self.process,), daemon=True).start()

    def _read(self, process: subprocess.Popen[str]) -> None:
        assert process.stdout is not None
        for line in process.stdout:
            if found := LINE.match(line):
                run, at, origin, mid, first, first_mid = found.groups()
                key = (run, at, origin, int(mid), first, int(first_mid))
                self.alerts.setdefault(key, time.monotonic())
            elif not line.startswith("run "):
                self.invented.append(line.strip())

    def end(self, how: signal.Signals) -> None:
        """End all its processes."""
        for pid in sorted(_tree(self.process.pid), reverse=True):
            try:
                os.kill(pid, how)
            except ProcessLookupError:
                continue
        self.process.wait()

    def stop(self) -> None:
        """Let it end by itself."""
        self.process.send_signal(signal.SIGINT)
        self.process.wait(120)

    def look(self) -> None:
        """Note how much memory its processes have."""
        now = time.monotonic()
        total = sum(map(_resident, _tree(self.process.pid)))
        self.memory.append(Memory(now, now - self.starts[-1], total / 1e6))


def _tree(root: int) -> list[int]:
    """Return a process and all that descend from it."""
    children: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                parent = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
            except (OSError, IndexError):
                continue
            children.setdefault(parent, []).append(int(entry.name))
    found, new = [root], [root]
    while new:
        new = [child for pid in new for child in children.get(pid, [])]
        found += new
    return found


def _resident(pid: int) -> int:
    try:
        pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    except (OSError, IndexError):
        return 0
    return pages * os.sysconf("SC_PAGE_SIZE")


def campaign(args: argparse.Namespace, place: Path) -> int:
    """Run nodes and the watch for a while, and print the report."""
    rng = random.Random(args.seed)
    traces, out = place / "traces", place / "found"
    traces.mkdir()
    nodes = Nodes(traces, random.Random(args.seed + 1), args.rate, args.run_minutes * 60)
    watcher = Watcher(traces, out, ["--every", "1s", "--late", "1s", "--idle", "20s"])
    began = time.monotonic()
    watcher.start()
    writing = threading.Thread(target=nodes.write, args=(args.plant_every,))
    writing.start()
    try:
        _disturb(watcher, rng, args, began + args.minutes * 60)
    except KeyboardInterrupt:
        print("stopped early; this is the report so far", file=sys.stderr)
    finally:
        nodes.stopped.set()
        writing.join()
    try:
        patience = time.monotonic() + args.patience
        while nodes.planted.keys() - watcher.alerts.keys() and time.monotonic() < patience:
            time.sleep(1)
        watcher.stop()
    finally:
        if watcher.process.poll() is None:
            watcher.end(signal.SIGKILL)
    return _report(nodes, watcher, out, (time.monotonic() - began) / 60)


def _disturb(watcher: Watcher, rng: random.Random, args: argparse.Namespace, end: float) -> None:
    """Look at the watch now and then, and kill it at random, until the time is over."""
    kill_at = _next_kill(rng, args.kill_every)
    while time.monotonic() < end:
        time.sleep(2)
        watcher.look()
        if watcher.process.poll() is not None:
            print("the watch ended by itself", file=sys.stderr)
            watcher.start()
        if time.monotonic() > kill_at:
            watcher.end(signal.SIGKILL)
            watcher.start()
            kill_at = _next_kill(rng, args.kill_every)


def _next_kill(rng: random.Random, every: float) -> float:
    return time.monotonic() + (rng.uniform(0.5, 1.5) * every if every else 1e12)


def _report(nodes: Nodes, watcher: Watcher, out: Path, minutes: float) -> int:
    import pyarrow.dataset as ds

    def rows(table: str) -> list[dict[str, Any]]:
        if not (out / table).is_dir():
            return []
        return ds.dataset(out / table, format="parquet").to_table().to_pylist()  # type: ignore[no-any-return]

    stored = [
        (r["run"], r["process"], r["second_origin"], r["second_mid"], r["first_origin"],
         r["first_mid"])
        for r in rows("violations")
    ]  # fmt: skip
    waits = {
        key: at - nodes.planted[key] for key, at in watcher.alerts.items() if key in nodes.planted
    }
    calm = [
        wait for key, wait in waits.items() if not _disturbed(nodes.planted[key], wait, watcher)
    ]
    missed = nodes.planted.keys() - watcher.alerts.keys()
    invented = watcher.alerts.keys() - nodes.planted.keys()
    once = sorted(stored) == sorted(nodes.planted)
    files = sum(1 for _ in out.rglob("*.parquet"))
    print(f"| minutes, rows written, rows per second | {minutes:.0f}, {nodes.rows:,}, "
          f"{nodes.rows / minutes / 60:,.0f} |")  # fmt: skip
    print("| --- | --- |")
    print(f"| violations: made, reported, missed, invented | {len(nodes.planted)}, {len(waits)}, "
          f"{len(missed)}, {len(invented)} |")  # fmt: skip
    print(f"| each in the table once | {'yes' if once else 'NO'} |")
    print(f"| rows late, rows not understood | {len(rows('late'))}, {len(rows('quarantine'))} |")
    print(f"| from the row to the alert: median, worst (all) | {_seconds(list(waits.values()))} |")
    print(f"| ... of those that no restart delayed | {_seconds(calm)} |")
    print(f"| killed and started again | {len(watcher.starts) - 1} times |")
    for quarter, text in enumerate(_quarters(watcher.memory), 1):
        print(f"| memory in quarter {quarter} (MB, median, at least 30 s after a start) | {text} |")
    print(f"| files in the tables at the end | {files} |")
    return int(bool(missed or invented) or not once)


def _disturbed(planted: float, wait: float, watcher: Watcher) -> bool:
    """Return whether the watch was started, or had just been, while an alert was due."""
    return any(start - 10 < planted + wait and planted < start + 45 for start in watcher.starts)


def _seconds(waits: list[float]) -> str:
    return f"{median(waits):.1f} s, {max(waits):.1f} s" if waits else "none"


def _quarters(memory: list[Memory]) -> Iterator[str]:
    if not memory:
        return
    first, last = memory[0].at, memory[-1].at
    for quarter in range(4):
        low, high = (first + (last - first) * k / 4 for k in (quarter, quarter + 1))
        some = [m.megabytes for m in memory if low <= m.at <= high and m.age > 30]
        yield f"{median(some):,.0f}" if some else "not measured"


def main() -> int:
    """Run the campaign as the command line asks."""
    parser = argparse.ArgumentParser(
        prog="python -m campaigns.watch",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("--minutes", type=float, default=60, help="how long nodes write; default: 60")
    add("--rate", type=float, default=200, help="messages per second; default: 200")
    add(
        "--plant-every", type=float, default=5, metavar="S", help="a violation so often, on average"
    )
    add("--kill-every", type=float, default=300, metavar="S", help="0: never; default: 300")
    add("--run-minutes", type=float, default=5, help="length of a run; default: 5")
    add("--patience", type=float, default=120, metavar="S", help="wait so long for the last alerts")
    add("--seed", type=int, default=0)
    args = parser.parse_args()
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # as Ctrl-C
    with tempfile.TemporaryDirectory() as place:
        return campaign(args, Path(place))


if __name__ == "__main__":
    raise SystemExit(main())
