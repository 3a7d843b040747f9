"""`adaptive` on random runs, for each cap; and how well searches find mistakes in it.

    python -m campaigns.adaptive [--runs 100000] [--cap 0 1 2 4 8 16 none] [--seed S] [--jobs J]
    python -m campaigns.adaptive --power

Each run is decided by its number and the seed, and is one of four kinds in turn:

    small    two to five processes, unicast and multicast, on every network that the
             protocol tolerates: reordering, loss, duplication, delay; sends from inside deliveries
    relays   relays, crossings and a slow third party, with invariants after every step
    frozen   one process receives nothing from some time on: everything between the others
             is delivered without a timer; after the thaw, everything is
    storm    four to six processes, loss, duplicates, and processes that freeze and thaw in the
             middle; groups among unicasts

After each run nothing may be undelivered, out of order or left over in any endpoint.

`--power` gives the model checker the mutants of `tests/core/adaptive_mutants.py`: first a program
that was written for the mistake, then all programs of three processes with two messages each.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from random import Random

from causewire.protocols import Protocol
from causewire.testing import Network, run
from causewire.verify import Checker, SearchOptions, Setup, Unit, parse, unicasts, up_to_renaming
from tests.core.adaptive_mutants import STUCK, UNSAFE, mutant
from tests.core.adaptive_world import PROFILES, Invariants, adaptive, at_rest
from tests.core.test_adaptive import Program
from tests.core.test_adaptive_isolation import frozen_run

CAPS = ["0", "1", "2", "4", "8", "16", "none"]

SHARE = 400
"""Runs that a worker does at once."""

WRITTEN = {
    "no_sibling": "0>1+2; 1>@0:1 2; 2>",
    "group_is_one": "0>1+2; 1>@0:1 2; 2>",
    "acked_once": "0>1+2,3; 1>; 2>; 3>@0:2 2",
    "newest_done": "0>2,1,2,1; 1>@0:4 2; 2>",
    "wait_sibling": "0>1+2+3; 1>; 2>; 3>",
    "cover_any": "0>3,4,1; 1>@0:3 2,4; 2>@1:1 4; 3>; 4>",
}
"""Programs that a mistake shows in, where all small programs take long or do not show it."""


def small(cap: int | None, seed: int) -> Network:
    """A random run as in the conformance tests."""
    about = adaptive(cap=cap, groups=(0, 1, 16)[seed % 3])
    outcome = run(about, PROFILES[seed % len(PROFILES)], seed)
    assert outcome.ok, outcome.explain()
    return outcome.play.network


def relays(cap: int | None, seed: int) -> Network:
    """A program with relays and crossings."""
    invariants = Invariants(bursts=True)  # a delivery may free another, and both lead to sends
    return Program(adaptive(cap=cap, groups=seed % 2), seed).play(invariants.judge)


def frozen(cap: int | None, seed: int) -> Network:
    """A process that stands still, and thaws."""
    network, still, _ = frozen_run(seed, cap)
    assert {violation.process for violation in network.oracle.undelivered()} <= {still}
    network.arrive_all()
    return network


def storm(cap: int | None, seed: int) -> Network:
    """Loss, duplicates, freezes and thaws."""
    random = Random(f"storm {seed}")
    names = [f"p{k}" for k in range(random.randint(4, 6))]
    groups = [random.sample(names, random.randint(2, len(names))) for _ in range(2)]
    network = Network.of(adaptive(cap=cap, groups=random.choice((0, 1, 16))), names)
    loss, copies = random.choice((0.0, 0.05, 0.3)), random.choice((0.0, 0.1))
    still: set[str] = set()
    for _ in range(random.randint(20, 40)):
        name = random.choice(names)
        if name not in still:
            network.send(name, random.choice((random.choice(names), random.choice(groups))))
        if random.random() < 0.15:
            still = set(random.sample(names, random.randint(0, 2)))
        for _ in range(random.randint(0, 8)):
            ready = [k for k, f in enumerate(network.in_flight) if f.destination not in still]
            if not ready:
                break
            k, chance = random.choice(ready), random.random()
            if chance < loss:
                network.lose(k)
            elif chance < loss + copies:
                network.duplicate(k)
            else:
                network.arrive(k)
        if random.random() < 0.1:
            network.retransmit(random.choice(names))
    network.settle()
    return network


KINDS = (small, relays, frozen, storm)


def work(cap: int | None, seed: int, start: int, count: int) -> Counter[str]:
    """One share of the campaign: how many runs of each kind, messages and deliveries."""
    seen: Counter[str] = Counter()
    for number in range(start, start + count):
        kind = KINDS[number % len(KINDS)]
        try:
            network = kind(cap, seed * 1_000_000_007 + number)
            at_rest(network)
        except AssertionError as error:
            raise AssertionError(
                f"cap {cap}, {kind.__name__}, seed {seed}, run {number}: {error}"
            ) from error
        seen[kind.__name__] += 1
        seen["messages"] += len(network.oracle.messages)
    return seen


def campaign(cap: int | None, runs: int, seed: int, jobs: int, first: int = 0) -> Counter[str]:
    """All runs of one cap; raises AssertionError at the first that fails."""
    starts = range(first, first + runs, SHARE)
    shares = [min(SHARE, first + runs - start) for start in starts]
    total: Counter[str] = Counter()
    if jobs == 1:
        for start, count in zip(starts, shares, strict=True):
            total += work(cap, seed, start, count)
        return total
    with ProcessPoolExecutor(jobs) as pool:
        for seen in pool.map(partial(work, cap, seed), starts, shares):
            total += seen
    return total


def find(protocol: Protocol, name: str, seconds: float) -> str:
    """In which program the model checker finds a mutant, and after how many steps."""
    began = time.monotonic()
    programs = [parse(WRITTEN[name])] if name in WRITTEN else []
    programs += up_to_renaming(unicasts(3, 2))
    checker = Checker()
    for program in programs:
        setup = Setup(protocol, len(program))
        options = SearchOptions(engine="python", memory=200 << 20)
        result = checker.check(Unit(setup, program, options))
        if result.violation is not None:
            steps = len(result.violation.steps)
            return f"{result.violation.kind} in {setup.processes} processes, {steps} steps"
        if time.monotonic() - began > seconds:
            return f"not found in {seconds:.0f} s"
    return "not found"


def power(seconds: float) -> int:
    """Print what is found of each mutant; returns how many are not."""
    missed = 0
    for name, (endpoint, options) in {**UNSAFE, **STUCK}.items():
        began = time.monotonic()
        found = find(mutant(endpoint, **options), name, seconds)
        missed += found.startswith("not found")
        written = "its program" if name in WRITTEN else "all of 3x2"
        print(f"{name:15} {written:12} {found}, {time.monotonic() - began:.1f} s", flush=True)
    return missed


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--runs", type=int, default=100_000, help="for each cap")
    parser.add_argument("--cap", nargs="+", choices=CAPS, default=CAPS, metavar="K")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--first", type=int, default=0, help="the number of the first run")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--power", action="store_true", help="search for mutants instead")
    parser.add_argument("--seconds", type=float, default=100.0, help="for each mutant")
    options = parser.parse_args(arguments)
    if options.power:
        return 1 if power(options.seconds) else 0
    for cap in options.cap:
        began = time.monotonic()
        number = None if cap == "none" else int(cap)
        seen = campaign(number, options.runs, options.seed, options.jobs, options.first)
        took = time.monotonic() - began
        kinds = ", ".join(f"{seen[kind.__name__]:,} {kind.__name__}" for kind in KINDS)
        print(
            f"K = {cap}: {options.runs:,} runs ({kinds}), {seen['messages']:,} messages, "
            f"none wrong, {took:.0f} s, seed {options.seed}",
            flush=True,
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
