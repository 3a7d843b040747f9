"""Watch nodes that write for a long time: how soon violations are reported, and at what cost.

    python -m campaigns.watch --minutes 60
    python -m campaigns.watch --minutes 9 --kill-every 120 --run-minutes 2
    python -m campaigns.watch --minutes 3 --kill-every 40 --run-minutes 1

Nodes write their traces, a file for each and a new run every few minutes, at a fixed rate.
Now and then a message overtakes another, and the time is noted at which the row that shows
it was written. `causewire watch` follows the files, as a process of its own, which is killed
(SIGKILL) and started again at random, now and then in the middle of a start. In the last third of
the time it is left alone, so that the memory of one process is seen over a longer time. The
report says how long it took from that row to the alert, whether every violation was reported
and is in the table once, and how much memory the watch had. Standard error has a line each
minute. Exit status 1: something was missed or invented, or the watch ended by itself.
Ctrl-C ends the writing, waits for the last alerts, and prints the report of the time so far.

Starting Spark takes about 20 seconds of CPU time: on a machine that is busy with other programs
that can be minutes. Therefore the time until the next kill counts from the first batch after a
start, not from the start, and a start is never interrupted twice in succession. Otherwise the
watch would be killed again and again before it had done anything.
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
    """Memory of the watch and all its processes; what they share is counted once."""

    start: int
    """The number of the start of the watch."""
    at: float
    megabytes: float


class Kills:
    """Decides when the watch is killed: at random, but never so often that it cannot work.

    Args:
        rng: Where the times come from.
        every: Seconds between the first batch after a start and the kill, on average; 0: never.
        until: No kill after this time.
    """

    def __init__(self, rng: random.Random, every: float, until: float) -> None:
        self._rng, self._every, self._until = rng, every, until
        self._at: float | None = None
        self._interrupted = True  # the first start is not interrupted
        self._started = 0.0
        self._took = 0.0

    def started(self, now: float) -> None:
        """Note that the watch was started; one start of four is interrupted."""
        self._started, self._at = now, None
        self._interrupted = not self._interrupted and self._rng.random() < 0.25
        if self._interrupted:
            self._at = now + self._rng.uniform(0, self._took)

    def worked(self, now: float) -> None:
        """Note the first batch after a start."""
        self._took = now - self._started
        if self._at is None:
            self._at = now + self._rng.uniform(0.5, 1.5) * self._every

    def due(self, now: float) -> bool:
        """Return whether to kill the watch now."""
        return bool(self._every) and self._at is not None and self._at <= now < self._until


class Watcher:
    """`causewire watch` in a process group of its own, and what it prints."""

    def __init__(self, folder: Path, out: Path, arguments: list[str]) -> None:
        self._command = [sys.executable, "-m", "causewire", "watch", str(folder)]
        self._command += ["--out", str(out), *arguments]
        self._commits = out / "_checkpoint" / "commits"
        self._before = -1
        self.alerts: dict[Key, float] = {}
        self.other: list[str] = []
        """Lines about late rows and rows that were not understood."""
        self.down: list[tuple[float, float]] = []
        """From each end, or the first start, to the first batch after the next start."""
        self.starts: list[float] = []
        self.working = False
        """Whether there was a batch since the last start."""
        self.ended = 0
        """How often it ended by itself."""
        self.memory: list[Memory] = []
        self._killed: float | None = None

    def start(self) -> None:
        """Start it, and read what it prints."""
        self._before, self.working = self._last_batch(), False
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
                self.other.append(line.strip())

    def _last_batch(self) -> int:
        try:
            return max(
                (int(p.name) for p in self._commits.iterdir() if p.name.isdigit()), default=-1
            )
        except FileNotFoundError:
            return -1

    def noticed_working(self) -> bool:
        """Return whether the first batch since the last start was noticed just now."""
        if self.working or self._last_batch() <= self._before:
            return False
        self.working = True
        now = time.monotonic()
        down = self._killed if self._killed is not None else self.starts[0]
        self.down.append((down, now))
        self._killed = None
        return True

    def kill(self) -> None:
        """Kill all its processes."""
        if self._killed is None and self.working:
            self._killed = time.monotonic()
        for pid in sorted(_tree(self.process.pid), reverse=True):
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue
        self.process.wait()

    def stop(self) -> None:
        """Ask it to end, and kill it if it does not."""
        self.process.send_signal(signal.SIGINT)
        try:
            self.process.wait(120)
        except subprocess.TimeoutExpired:
            print("the watch did not end within 120 s of Ctrl-C; killed", file=sys.stderr)
        finally:
            if self.process.poll() is None:
                self.kill()

    def look(self) -> None:
        """Note how much memory its processes have."""
        total = sum(map(_memory, _tree(self.process.pid)))
        self.memory.append(Memory(len(self.starts), time.monotonic(), total / 1e6))


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


def _memory(pid: int) -> int:
    """Return the bytes of a process, with its share of what it has in common with others."""
    try:
        text = Path(f"/proc/{pid}/smaps_rollup").read_text()
    except OSError:
        return 0
    found = re.search(r"^Pss:\s+(\d+) kB", text, re.MULTILINE)
    return int(found[1]) * 1024 if found else 0


def campaign(args: argparse.Namespace, place: Path) -> int:
    """Run nodes and the watch for a while, and print the report."""
    traces, out = place / "traces", place / "found"
    traces.mkdir()
    nodes = Nodes(traces, random.Random(args.seed + 1), args.rate, args.run_minutes * 60)
    watcher = Watcher(traces, out, ["--every", "1s", "--late", "1s", "--idle", "20s"])
    began = time.monotonic()
    end = began + args.minutes * 60
    kills = Kills(random.Random(args.seed), args.kill_every, began + args.minutes * 40)
    watcher.start()
    kills.started(began)
    writing = threading.Thread(target=nodes.write, args=(args.plant_every,))
    writing.start()
    try:
        _disturb(nodes, watcher, kills, end)
    except KeyboardInterrupt:
        print("stopped early; this is the report so far", file=sys.stderr)
    finally:
        nodes.stopped.set()
        writing.join()
    written = (time.monotonic() - began) / 60
    try:
        patience = time.monotonic() + args.patience
        while nodes.planted.keys() - watcher.alerts.keys() and time.monotonic() < patience:
            time.sleep(1)
            watcher.noticed_working()
    except KeyboardInterrupt:
        print("no longer waiting for the last alerts", file=sys.stderr)
    finally:
        watcher.stop()
    return _report(nodes, watcher, out, written)


def _disturb(nodes: Nodes, watcher: Watcher, kills: Kills, end: float) -> None:
    """Look at the watch now and then, and kill it at random, until the time is over."""
    began = shown = looked = time.monotonic()
    while (now := time.monotonic()) < end:
        if watcher.noticed_working():
            kills.worked(now)
        if now > looked + 2:
            watcher.look()
            looked = now
        if watcher.process.poll() is not None:
            print("the watch ended by itself", file=sys.stderr)
            watcher.ended += 1
            watcher.kill()
            watcher.start()
            kills.started(now)
        elif kills.due(now):
            watcher.kill()
            watcher.start()
            kills.started(now)
        if now > shown + 60:
            shown = now
            since = now - watcher.starts[-1]
            print(
                f"{(now - began) / 60:.0f} minutes: {len(nodes.planted)} violations made, "
                f"{len(watcher.alerts)} reported, {len(watcher.starts)} starts; the watch "
                f"{'works' if watcher.working else f'has been starting for {since:.0f} s'}",
                file=sys.stderr,
                flush=True,
            )
        time.sleep(0.5)


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
        wait
        for key, wait in waits.items()
        if not _disturbed(nodes.planted[key], wait, watcher.down)
    ]
    missed = nodes.planted.keys() - watcher.alerts.keys()
    invented = watcher.alerts.keys() - nodes.planted.keys()
    once = sorted(stored) == sorted(nodes.planted)
    files = sum(1 for _ in out.rglob("*.parquet"))
    print(f"| minutes, rows written, rows per second | {minutes:.0f}, {nodes.rows:,}, "
          f"{nodes.rows / max(minutes, 0.01) / 60:,.0f} |")  # fmt: skip
    print("| --- | --- |")
    print(f"| violations: made, reported, missed, invented | {len(nodes.planted)}, {len(waits)}, "
          f"{len(missed)}, {len(invented)} |")  # fmt: skip
    print(f"| each in the table once | {'yes' if once else 'NO'} |")
    print(f"| rows late, rows not understood | {len(rows('late'))}, {len(rows('quarantine'))} |")
    print(f"| from the row to the alert: median, worst (all) | {_seconds(list(waits.values()))} |")
    print(f"| ... of those that no restart delayed | {_seconds(calm)} |")
    kills = len(watcher.starts) - 1 - watcher.ended
    print(f"| killed, ended by itself | {kills} times, {watcher.ended} times |")
    starts = _seconds([until - since for since, until in watcher.down])
    print(f"| from a kill, or the first start, to the next batch: median, worst | {starts} |")
    for label, text in _quarters(watcher.memory, watcher.down):
        print(f"| {label} | {text} |")
    print(f"| files in the tables at the end | {files} |")
    for line in watcher.other[:10]:
        print(line, file=sys.stderr)
    return int(bool(missed or invented or watcher.ended) or not once)


def _disturbed(planted: float, wait: float, down: list[tuple[float, float]]) -> bool:
    """Return whether the watch did not work at some time while an alert was due."""
    return any(since < planted + wait and planted < until for since, until in down)


def _seconds(waits: list[float]) -> str:
    return f"{median(waits):.1f} s, {max(waits):.1f} s" if waits else "none"


def _quarters(memory: list[Memory], down: list[tuple[float, float]]) -> Iterator[tuple[str, str]]:
    """Yield the memory of the process that lived longest, in the quarters of its life.

    Its first half minute of work is left out: Java still grows to its usual size then.
    """
    lives: dict[int, list[Memory]] = {}
    for at in memory:
        lives.setdefault(at.start, []).append(at)
    if not lives or not down:
        return
    longest = max(lives.values(), key=lambda life: life[-1].at - life[0].at)
    last = longest[-1].at
    first = 30 + next((until for _, until in down if longest[0].at <= until <= last), longest[0].at)
    yield "longest time without a kill, after the start", f"{max(0, last - first) / 60:.0f} minutes"
    for quarter in range(4):
        low, high = (first + (last - first) * k / 4 for k in (quarter, quarter + 1))
        some = [m.megabytes for m in longest if low <= m.at <= high]
        label = f"... memory in quarter {quarter + 1} of it (MB: median, most)"
        yield label, f"{median(some):,.0f}, {max(some):,.0f}" if some else "not measured"


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
    add("--patience", type=float, default=300, metavar="S", help="wait so long for the last alerts")
    add("--seed", type=int, default=0)
    args = parser.parse_args()
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # as Ctrl-C
    with tempfile.TemporaryDirectory() as place:
        return campaign(args, Path(place))


if __name__ == "__main__":
    raise SystemExit(main())
