"""Run benchmarks and write what they print into docs/measurements, with date and machine.

    python -m campaigns.record                run all, write all pages (an hour or more)
    python -m campaigns.record core check     only these
    python -m campaigns.record --short watch  with fewer or smaller cases
    python -m campaigns.record --list         show the pages and their commands
    python -m campaigns.record explore --try '--events 1000 --seconds 1'
                                              add arguments, print the block, write no page

Each page has one recorded block, which this program replaces. Text around the block is
written by hand and stays. Run this on an idle machine: the pages are what readers quote.
The output of each command is also kept in out/record as it comes, so that what was measured before
a failure is not lost.
The pages goals, latency and node need the compiled transport: python hatch_build.py out/compiled
"""

from __future__ import annotations

import argparse
import datetime
import os
import platform
import re
import shlex
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
FOLDER = ROOT / "docs" / "measurements"
KEPT = ROOT / "out" / "record"

COMMANDS: dict[str, list[str]] = {
    "core": ["benchmarks/core.py --repetitions 12", "benchmarks/core.py --phases"],
    "goals": ["benchmarks/goals.py --compiled out/compiled --minutes 11"],
    "node": [
        "benchmarks/node.py --compiled out/compiled --repetitions 4",
        "benchmarks/node.py --only distance --repetitions 3 --seconds 5",
    ],
    "latency": [
        "benchmarks/latency.py --compiled out/compiled --repetitions 5",
        "benchmarks/path.py",
    ],
    "simulator": ["benchmarks/sim.py"],
    "check": ["benchmarks/check.py"],
    "metrics": ["benchmarks/metrics.py"],
    "foreign": ["-m benchmarks.foreign"],
    "pipeline": ["benchmarks/pipeline.py", "benchmarks/scan.py", "-m campaigns.planted"],
    "watch": ["-m campaigns.watch --minutes 60"],
    "sweep": ["benchmarks/sweep.py"],
    "verify": ["benchmarks/verify.py"],
    "adaptive": [
        "benchmarks/adaptive.py latency --messages 2000 --seeds 3",
        "benchmarks/adaptive.py lists --messages 1000 --seeds 3",
        "benchmarks/adaptive.py freeze --seeds 10",
        "benchmarks/adaptive.py growth --delays 10000",
    ],
    "explore": ["benchmarks/explore.py --shiviz out/shiviz"],
    "failures": ["-m campaigns.failures.matrix"],
    "applications": [
        "-m campaigns.applications.matrix --lines",
        "-m campaigns.applications.matrix --on kit",
        "-m campaigns.applications.matrix --on bare",
    ],
    "durable": ["benchmarks/durable.py", "benchmarks/request_reply.py"],
}
"""The commands of each page, as arguments of `python`."""

SHORT: dict[str, list[str]] = {
    "pipeline": [
        "benchmarks/pipeline.py --runs 0 --events 10000000 --repetitions 3",
        "benchmarks/scan.py",
        "-m campaigns.planted",
    ],
    "watch": ["-m campaigns.watch --minutes 9 --kill-every 120 --run-minutes 2"],
}
"""With `--short`: commands that take at most twelve minutes each."""

BEGIN = "<!-- recorded by campaigns/record.py: begin; what is written here is replaced -->"
END = "<!-- recorded: end -->"
BLOCK = re.compile(f"{re.escape(BEGIN)}.*?{re.escape(END)}", re.DOTALL)


def machine() -> str:
    """Return one line that describes this machine: processor, cores, system, Python."""
    model = platform.processor() or platform.machine()
    try:
        found = re.search(r"model name\s*:\s*(.+)", Path("/proc/cpuinfo").read_text())
        model = found[1].strip() if found else model
    except OSError:
        pass
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    python = f"{platform.python_implementation()} {platform.python_version()}"
    return f"{model}, {cores} cores, {platform.system()}, {python}"


def commit() -> str:
    """Return the short name of the commit that is checked out, or "unknown"."""
    asked = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, capture_output=True, text=True
    )
    return asked.stdout.strip() or "unknown"


def block(outputs: list[tuple[str, str]], day: str, where: str, version: str) -> str:
    """Return a recorded block: date and machine, then each command with its output.

    Output that is a table in Markdown stays one; other output is shown as it was printed.
    """
    lines = [BEGIN, "", f"Measured on {day}, at commit {version}, on {where}.", ""]
    for command, output in outputs:
        lines += ["```console", f"$ python {command}", "```", ""]
        text = output.strip("\n")
        lines += [text, ""] if text.startswith("| ") else ["```text", text, "```", ""]
    return "\n".join([*lines, END])


def replaced(page: str, new: str) -> str:
    """Return the text of a page with its recorded block replaced.

    Raises:
        ValueError: the page has no recorded block, or several.
    """
    text, count = BLOCK.subn(lambda _: new, page)
    if count != 1:
        raise ValueError(f"expected one recorded block, found {count}")
    return text


def output_of(command: str, kept: Path) -> str:
    """Return what a command prints, which is also written to a file as it comes.

    Raises:
        SystemExit: The command failed; the file has what it printed before.
    """
    kept.parent.mkdir(parents=True, exist_ok=True)
    with kept.open("w", encoding="utf-8") as file:
        done = subprocess.run([sys.executable, *shlex.split(command)], cwd=ROOT, stdout=file)
    text = kept.read_text(encoding="utf-8")
    if done.returncode not in (0, 1) or not text:  # 1: a goal was missed; the numbers stand
        status = done.returncode
        raise SystemExit(f"{command} failed with exit status {status}; {kept} has its output")
    return text


def record(name: str, commands: list[str], more: str | None = None) -> None:
    """Run the commands of a page and replace its recorded block.

    Args:
        name: The page.
        commands: Its commands.
        more: Arguments to add to each command; the block is then printed, not written.
    """
    outputs = []
    for number, command in enumerate(commands, 1):
        asked = f"{command} {more}" if more else command
        print(f"{name}: python {asked}", file=sys.stderr, flush=True)
        outputs.append((asked, output_of(asked, KEPT / f"{name}-{number}.txt")))
    path = FOLDER / f"{name}.md"
    day = datetime.datetime.now(datetime.UTC).date().isoformat()
    new = block(outputs, day, machine(), commit())
    text = replaced(path.read_text(encoding="utf-8"), new)
    if more is not None:
        print(new)
    else:
        path.write_text(text, encoding="utf-8")


def main() -> None:
    """Record the pages that are named, or all."""
    parser = argparse.ArgumentParser(description="Run benchmarks and write docs/measurements.")
    parser.add_argument("page", nargs="*", help=f"one of {', '.join(COMMANDS)}; default: all")
    parser.add_argument("--list", action="store_true", help="show the pages and their commands")
    parser.add_argument(
        "--try", dest="more", metavar="ARGS", help="add arguments, and print what would be written"
    )
    parser.add_argument("--short", action="store_true", help="shorter commands, where there are")
    asked = parser.parse_args()
    unknown = [name for name in asked.page if name not in COMMANDS]
    if unknown:
        parser.error(f"no such page: {', '.join(unknown)}")
    for name in asked.page or COMMANDS:
        commands = SHORT.get(name, COMMANDS[name]) if asked.short else COMMANDS[name]
        if asked.list:
            print(f"docs/measurements/{name}.md")
            for command in commands:
                print(f"    python {command}")
        else:
            record(name, commands, asked.more)


if __name__ == "__main__":
    main()
