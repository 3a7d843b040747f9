"""The applications under the failures of a node: does each one end as it should?

    python -m campaigns.applications.matrix [--on kit|bare] [--application A ...] [--fault F ...]
        [--give-up 2] [--length 5]
    python -m campaigns.applications.matrix --lines     # lines of code, before and after

Each cell starts the processes of one application on loopback, lets them work, does something to
one of them (the *victim*), lets them work on, and looks at what they have when they have stopped.

    frozen        the victim is stopped (SIGSTOP) for longer than the others wait for it
    killed        the victim is killed and does not come back
    restarted     the victim is killed and started again, without its memory
    left          the victim leaves properly
    partitioned   the victim is cut off from the others for longer than they wait for it
    deaf          the victim's application takes nothing for a while

An application survives if its judge (below) agrees within 30 seconds. A victim that comes back is
judged like the others. A cell says how many seconds the judge had to wait, or what was wrong.
"""

from __future__ import annotations

import argparse
import ast
import asyncio
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from causewire.testing.cluster import Cluster

from ..faults import ENDING, FAULTS, mend, strike

HERE = Path(__file__).parent
GONE = ("killed", "left")
"""Faults after which the victim does not come back."""
PATIENCE = 30.0
"""Seconds until the state of all processes has to be right."""

States = dict[str, dict[str, Any]]
"""What each process that is judged has answered."""


# -- what is right -----------------------------------------------------------------


def judge_set(states: States, living: list[str]) -> str:
    """All replicas are equal, and have the last element of every process that did not fail."""
    replicas = [state["state"] for state in states.values()]
    if any(replica != replicas[0] for replica in replicas):
        return "replicas differ"
    lost = [name for name in living if f"{name}-{states[name]['acted'] - 1}" not in replicas[0]]
    return f"elements of {lost} are missing" if lost else ""


def judge_chat(states: States, living: list[str]) -> str:
    """All have the same lines, each author's in order, and answers after their questions."""
    talks = [state["state"] for state in states.values()]
    if any(sorted(talk) != sorted(talks[0]) for talk in talks):
        return "participants have different lines"
    for talk in talks:
        at = {line: k for k, line in enumerate(talk)}
        if len(at) < len(talk):
            return "a line comes twice"
        for line, k in at.items():
            _, _, question = line.partition(" answers to ")
            if question and at.get(question, k) >= k:
                return f"{line!r} comes before its question"
        for name in living:
            said = [line for line in talk if line.startswith(f"{name} says")]
            if said[: states[name]["acted"]] != [
                f"{name} says {k}" for k in range(states[name]["acted"])
            ]:
                return f"lines of {name} are missing or out of order"
    return ""


def judge_jobs(states: States, living: list[str]) -> str:
    """Every job was done."""
    boss = states[living[0]]
    missing = set(range(boss["acted"])) - set(boss["state"])
    return f"{len(missing)} jobs are not done" if missing else ""


def judge_service(states: States, living: list[str]) -> str:
    """Every client that did not fail got every answer, once and in order."""
    for name in living[1:]:
        answers, errors = states[name]["state"], states[name]["errors"]
        if errors or not answers or answers != list(range(1, len(answers) + 1)):
            return f"{name} got {answers[-3:]} and {errors}"
    return ""


Judge = Callable[[States, list[str]], str]
APPLICATIONS: dict[str, tuple[str, int, Judge]] = {
    "replicated_set": ("a replicated set", 5, judge_set),
    "chat": ("a chat with late joiners", 5, judge_chat),
    "jobs": ("workers with long jobs", 5, judge_jobs),
    "service": ("a service with twenty clients", 21, judge_service),
}
"""What each application is called, how many processes it has, and its judge."""

SHARED = {
    "replicated_set": "membership",
    "chat": "membership",
    "jobs": "asking",
    "service": "asking",
}
"""What an application on a bare node needs besides."""


# -- a cell ------------------------------------------------------------------------


async def play(
    application: str,
    fault: str,
    *,
    on: str = "kit",
    give_up: float = 2.0,
    length: float = 5.0,
    size: int | None = None,
) -> tuple[str, float]:
    """Run one cell; return what is wrong at the end, and the seconds until nothing was."""
    _, usual, judge = APPLICATIONS[application]
    members = [f"p{index}" for index in range(size or usual)]
    victim = members[-1] if application == "service" else members[2]
    settings: dict[str, Any] = {
        "members": members,
        "application": application,
        "on": on,
        "give_up_after": give_up,
        "pause": 0.1,
    }
    late = {members[-1]: {"late": 1.0}} if application == "chat" else {}
    cluster = Cluster(members, HERE / "worker.py", {"seed": 1}, each=late, **settings)
    async with cluster:
        for name in members:
            cluster.tell(name, "go")
        await asyncio.sleep(2.0)
        await _strike(cluster, victim, fault, length)
        await asyncio.sleep(1.0)
        judged = [name for name in members if name != victim or fault not in GONE]
        for name in judged:
            cluster.tell(name, "enough")
        began = time.monotonic()
        while True:
            states = {name: await cluster.ask(name, "state") for name in judged}
            # A process that the others took for dead, on a busy machine, may have lost messages.
            living = [name for name in judged if name != victim and not states[name]["given_up"]]
            wrong = judge(states, living) if members[0] in living else "the first was given up"
            passed = time.monotonic() - began
            if not wrong or passed > PATIENCE:
                return wrong, passed
            await asyncio.sleep(0.2)


async def _strike(cluster: Cluster, victim: str, fault: str, length: float) -> None:
    if fault == "left":
        cluster.tell(victim, "enough")
        await cluster.ask(victim, "leave")
    await strike(cluster, victim, fault)
    if fault in ENDING:
        await asyncio.sleep(length)
    await mend(cluster, victim, fault, again=True)
    if fault not in ENDING:
        await asyncio.sleep(length)


# -- lines of code -----------------------------------------------------------------


def lines_of(path: Path) -> int:
    """Return how many lines of code a file has: without blank ones, comments and docstrings."""
    tree = ast.parse(path.read_text())
    text = path.read_text().splitlines()
    left = {k for k, line in enumerate(text, 1) if line.strip() and line.strip()[0] != "#"}
    for item in ast.walk(tree):
        if isinstance(item, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            first = item.body[0]
            if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant):
                left -= set(range(first.lineno, (first.end_lineno or first.lineno) + 1))
    return len(left)


def lines_table() -> str:
    """Return the lines of code of each application, before and after."""
    rows = ["| application | on a bare node | on the kit |", "| --- | ---: | ---: |"]
    for name, (title, _, _) in APPLICATIONS.items():
        before, after = [lines_of(HERE / on / f"{name}.py") for on in ("bare", "kit")]
        again = lines_of(HERE / "bare" / f"{SHARED[name]}.py")
        rows.append(f"| {title} | {before} + {again} | {after} |")
    return "\n".join(rows) + "\n"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the cells, print a row for each, and return 1 if an application did not survive."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--on", choices=("kit", "bare"), default="kit")
    parser.add_argument("--application", action="append", choices=APPLICATIONS)
    parser.add_argument("--fault", action="append", choices=FAULTS)
    parser.add_argument("--give-up", type=float, default=2.0, help="seconds (default: 2)")
    parser.add_argument("--length", type=float, default=5.0, help="seconds of faults that end")
    parser.add_argument("--lines", action="store_true", help="only print the lines of code")
    options = parser.parse_args(arguments)
    if options.lines:
        print(lines_table())
        return 0
    faults = options.fault or FAULTS
    print(f"| application | {' | '.join(faults)} |\n| --- |{' --- |' * len(faults)}", flush=True)
    failed = 0
    for name in options.application or APPLICATIONS:
        cells = [APPLICATIONS[name][0]]
        for fault in faults:
            wrong, passed = asyncio.run(
                play(name, fault, on=options.on, give_up=options.give_up, length=options.length)
            )
            failed += bool(wrong)
            cells.append(wrong or f"{passed:.1f} s")
        print(f"| {' | '.join(cells)} |", flush=True)
    return int(failed > 0)


if __name__ == "__main__":
    raise SystemExit(main())
