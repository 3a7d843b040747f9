"""The long campaign: every protocol in a hundred thousand random runs.

    python -m campaigns.soak [--runs 100000] [--protocol P ...] [--jobs 2] [--seed 0]

The runs of a protocol are shared out among the networks that it must bear; each is
judged by the oracle of `causewire.testing`. The options that make another protocol
of one are tried too, in a tenth as many runs. A run is a function of protocol,
network and seed, so whatever fails is printed as the command that repeats it.

The exit status is 1 if a protocol failed in what it promises, or if one that is
known to be wrong was not caught.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from causewire import protocols
from causewire.testing import STUCK, VARIANTS, WRONG, admits, command, run, tolerated_networks

BATCH = 500
SHOWN = 5


class Subject(NamedTuple):
    """A protocol with its options."""

    protocol: str
    options: tuple[tuple[str, Any], ...] = ()

    def __str__(self) -> str:
        return " ".join([self.protocol, *(f"{key}={value}" for key, value in self.options)])


class Task(NamedTuple):
    """Some runs of one subject on one network."""

    subject: Subject
    profile: str
    seeds: range


@dataclass
class Result:
    """What came of some runs."""

    runs: int = 0
    messages: int = 0
    deliveries: int = 0
    violations: int = 0
    """Runs in which the application was given something wrong."""
    stuck: int = 0
    """Runs that ended with something undelivered or unfinished."""
    errors: int = 0
    """Runs in which an endpoint raised an exception."""
    seconds: float = 0.0
    kinds: Counter[str] = field(default_factory=Counter)
    unexpected: list[str] = field(default_factory=list)
    """Commands that repeat the runs in which a promise was broken."""

    def add(self, other: Result) -> None:
        self.runs += other.runs
        self.messages += other.messages
        self.deliveries += other.deliveries
        self.violations += other.violations
        self.stuck += other.stuck
        self.errors += other.errors
        self.seconds += other.seconds
        self.kinds += other.kinds
        self.unexpected += other.unexpected


def perform(task: Task) -> tuple[Subject, Result]:
    """Do the runs of a task."""
    subject, profile, seeds = task
    options = dict(subject.options)
    allowed = admits(subject.protocol)
    result = Result(runs=len(seeds))
    start = time.process_time()
    for seed in seeds:
        outcome = run(subject.protocol, profile, seed, protocol_options=options)
        result.messages += outcome.messages
        result.deliveries += outcome.deliveries
        if outcome.kinds:
            kinds = set(outcome.kinds)
            result.kinds.update(kinds)
            result.violations += not kinds.isdisjoint(WRONG)
            result.stuck += not kinds.isdisjoint(STUCK)
            result.errors += not kinds <= WRONG | STUCK
            if not kinds <= allowed:
                result.unexpected.append(command(subject.protocol, profile, seed, options))
    result.seconds = time.process_time() - start
    return subject, result


def tasks(subject: Subject, runs: int, seed: int) -> Iterator[Task]:
    """The runs of a subject, shared out among the networks that it must bear."""
    profiles = tolerated_networks(subject.protocol, dict(subject.options))
    for k, profile in enumerate(profiles):
        share = runs // len(profiles) + (k < runs % len(profiles))
        for start in range(seed, seed + share, BATCH):
            yield Task(subject, profile.name, range(start, min(start + BATCH, seed + share)))


def campaign(all_tasks: list[Task], jobs: int) -> Iterator[tuple[Subject, Result]]:
    """Perform tasks, in as many processes as there are jobs."""
    if jobs == 1:
        yield from map(perform, all_tasks)
        return
    with multiprocessing.Pool(jobs) as pool:
        yield from pool.imap_unordered(perform, all_tasks)


def with_progress(
    results: Iterable[tuple[Subject, Result]], total: int
) -> Iterator[tuple[Subject, Result]]:
    """The same, with a line that counts on a terminal, and quiet in a pipe."""
    if not sys.stderr.isatty():
        yield from results
        return
    start = time.monotonic()
    done = 0
    for subject, result in results:
        done += result.runs
        left = (time.monotonic() - start) / done * (total - done)
        print(f"\r\033[K{done:,} of {total:,} runs, {left:.0f} s left", end="", file=sys.stderr)
        yield subject, result
    print("\r\033[K", end="", file=sys.stderr)


def table(results: dict[Subject, Result]) -> str:
    """The outcome, a row for each subject."""
    head = ("protocol", "networks", "runs", "messages", "deliveries", "violations", "stuck")
    rows = [(*head, "errors", "s", "ms/run", "verdict")]
    for subject, result in results.items():
        profiles = tolerated_networks(subject.protocol, dict(subject.options))
        rows.append(
            (
                str(subject),
                " ".join(profile.name for profile in profiles),
                f"{result.runs:,}",
                f"{result.messages:,}",
                f"{result.deliveries:,}",
                f"{result.violations:,}",
                f"{result.stuck:,}",
                f"{result.errors:,}",
                f"{result.seconds:.1f}",
                f"{1000 * result.seconds / max(1, result.runs):.2f}",
                verdict(subject, result),
            )
        )
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join(
        "  ".join(
            cell.ljust(width) if k in (0, 1, len(row) - 1) else cell.rjust(width)
            for k, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    )


def verdict(subject: Subject, result: Result) -> str:
    if result.unexpected:
        return "FAILED"
    if admits(subject.protocol):
        return "caught, as it must be" if result.kinds else "NOT CAUGHT"
    return "ok"


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description="Random runs of every protocol on the networks that it must bear."
    )
    parser.add_argument("--runs", type=int, default=100_000, help="of each protocol")
    parser.add_argument("--protocol", action="append", choices=protocols.names(), metavar="P")
    parser.add_argument("--jobs", type=int, default=min(2, os.cpu_count() or 1))
    parser.add_argument("--seed", type=int, default=0, help="the first seed")
    arguments = parser.parse_args(argv)
    if arguments.runs < 1 or arguments.jobs < 1:
        parser.error("--runs and --jobs must be at least 1")

    results: dict[Subject, Result] = {}
    all_tasks: list[Task] = []
    for name in arguments.protocol or protocols.names():
        subject = Subject(name)
        variants = [Subject(name, tuple(options.items())) for options in VARIANTS.get(name, ())]
        for one, runs in [
            (subject, arguments.runs),
            *((v, arguments.runs // 10) for v in variants),
        ]:
            if runs:
                results[one] = Result()
                all_tasks += tasks(one, runs, arguments.seed)

    start = time.monotonic()
    total = sum(len(task.seeds) for task in all_tasks)
    for subject, result in with_progress(campaign(all_tasks, arguments.jobs), total):
        results[subject].add(result)
    print(table(results))
    print(f"{total:,} runs in {time.monotonic() - start:.0f} s with {arguments.jobs} jobs")

    failed = [subject for subject, result in results.items() if result.unexpected]
    missed = [s for s, result in results.items() if verdict(s, result) == "NOT CAUGHT"]
    for subject in failed:
        print(f"\n{subject} broke its promises ({dict(results[subject].kinds)}); to repeat:")
        for line in sorted(results[subject].unexpected)[:SHOWN]:
            print(f"    {line}")
    for subject in missed:
        print(f"\n{subject} is known to be wrong, and was not caught")
    return 1 if failed or missed else 0


if __name__ == "__main__":
    sys.exit(main())
