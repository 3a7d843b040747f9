"""How fast states are searched, what the reductions save, and what a state costs.

    python benchmarks/verify.py [--repetitions R] [--only PART]

    speed       thousand states a second and core, in plain Python and compiled, with
                tables that are filled already; the time to fill them is given as well
                (`fill`: seconds, `calls` of an endpoint), as it is done once for all
                programs that share them. The published model checker of the Cykas
                paper did about 90 thousand for each of its threads.
    reductions  states and transitions of a search as it is by default, and with one
                reduction less, and how many times more that is. `commuting`, which is
                not used by default, counts the unreduced search without marks that it
                needs first; `symmetry` is about the number of programs.
    memory      bytes for each state, plain and compiled, tables not counted
    share       how much of a whole search, from empty tables, is spent in `causewire.core`,
                according to cProfile, and how many times as fast the search would be if
                that took no time: the most that a compiled core could gain. The compiled
                build (hatch_build.py) has the transport, which a search does not import, and
                parts of three protocols
    whole       milliseconds of these searches, to be compared with those of another build

One core; the best of several repetitions counts, of CPU time, not of the clock on the
wall: the machine may be shared. Compilation is not counted.
"""

from __future__ import annotations

import argparse
import cProfile
import pstats
import sys
import time
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

from causewire.verify import Program, Setup, parse, unicasts, up_to_renaming
from causewire.verify.compiled import explore_compiled
from causewire.verify.ghost import Marked, Plain
from causewire.verify.library import Library
from causewire.verify.machine import Machine, Stage
from causewire.verify.reduction import Commuting
from causewire.verify.search import Exploration, explore

SPEED = {
    "mf": "0>1,2,1,2; 1>0,2,0,2; 2>0,1,1,0",
    "cykas": "0>1,2,1; 1>0,2,0; 2>0,1,1",
    "csps": "0>1,2,1; 1>2,0,2; 2>0,1",
    "sps": "0>1,2,1; 1>2,0,2; 2>0,1",
    "rst": "0>1,2,1; 1>2,0,2; 2>0,1",
}
REDUCED = {
    "mf": "0>1,2,1; 1>0,2; 2>0,1",
    "cykas": "0>1,2,1; 1>0,2; 2>0,1",
    "csps": "0>1,2; 1>2,0; 2>0,1",
    "sps": "0>1,2; 1>2,0; 2>0,1",
}


class Switches(NamedTuple):
    """Which reductions there are."""

    merge: bool = True
    forget: bool = True
    prune: bool = True
    commuting: bool = False


def staged(protocol: str, program: Program, switches: Switches) -> tuple[Machine, Library]:
    """A machine with tables of its own."""
    setup = Setup(protocol, len(program))
    stage = Stage(setup, merge_reactions=switches.merge, forget=switches.forget)
    ghost = Marked(len(program))
    return Machine(stage, program, ghost, "marked", prune=switches.prune), Library(stage.post)


def timed(search: Callable[[], Exploration], repetitions: int) -> tuple[Exploration, float]:
    """The search, and its least CPU time."""
    best = float("inf")
    for _ in range(repetitions):
        start = time.process_time()
        seen = search()
        best = min(best, time.process_time() - start)
    assert seen.complete
    return seen, best


def speed(repetitions: int) -> None:
    print(f"{'':6} {'states':>10} {'calls':>8} {'fill':>7} {'plain':>7} {'compiled':>9}")
    for protocol, text in SPEED.items():
        machine, library = staged(protocol, parse(text), Switches())
        _, first = timed(partial(explore, machine), 1)
        seen, plain = timed(partial(explore, machine), repetitions)
        timed(partial(explore_compiled, machine, library), 1)
        _, compiled = timed(partial(explore_compiled, machine, library), repetitions)
        calls = sum(actor.calls for actor in machine.actors)
        print(
            f"{protocol:6} {seen.states:10,} {calls:8,} {first - plain:7.2f} "
            f"{seen.states / plain / 1e3:7.0f} {seen.states / compiled / 1e3:9.0f}"
        )


def size(protocol: str, program: Program, switches: Switches) -> tuple[int, int]:
    """States and transitions of all searches that are needed."""
    machine, library = staged(protocol, program, switches)
    if not switches.commuting:
        seen = explore_compiled(machine, library)
        return seen.states, seen.transitions
    plain = Machine(machine.stage, program, Plain(), "plain")
    first = explore(plain)
    rule = Commuting(plain.actors, plain.reached(), machine.actors)
    reduced = Machine(
        machine.stage, program, machine.ghost, "marked", eager=rule, prune=switches.prune
    )
    seen = explore_compiled(reduced, library)
    return first.states + seen.states, first.transitions + seen.transitions


def reductions() -> None:
    chosen = {"as by default": Switches(), "with commuting": Switches(commuting=True)}
    for name in ("merge", "forget", "prune"):
        chosen[f"without {name}"] = Switches()._replace(**{name: False})
    chosen["with none"] = Switches(False, False, False)
    print(f"{'':22} {'states':>10} {'':8} {'transitions':>12}")
    for protocol, text in REDUCED.items():
        least = size(protocol, parse(text), Switches())
        for name, switches in chosen.items():
            states, moves = size(protocol, parse(text), switches)
            print(
                f"{protocol:6} {name:15} {states:10,} ({states / least[0]:4.2f}x) "
                f"{moves:12,} ({moves / least[1]:4.2f}x)"
            )
    for messages in (1, 2, 3):
        every = list(unicasts(3, messages))
        distinct = len(list(up_to_renaming(every)))
        print(
            f"symmetry: 3 processes, {messages} messages each: {distinct} of {len(every)} workloads"
        )


def memory() -> None:
    print(f"{'':6} {'states':>10} {'plain':>7} {'compiled':>9}")
    for protocol, text in SPEED.items():
        machine, library = staged(protocol, parse(text), Switches())
        seen = explore(machine)
        plain = sys.getsizeof(seen.seen) + sum(map(sys.getsizeof, seen.seen))
        compiled = explore_compiled(machine, library)
        print(
            f"{protocol:6} {seen.states:10,} {plain / seen.states:7.0f} "
            f"{compiled.bytes / compiled.states:9.0f}"
        )


def share() -> None:
    print(f"{'':6} {'calls':>8} {'core':>7} {'verify':>7} {'others':>7} {'at most':>8}")
    for protocol, text in REDUCED.items():
        explore_compiled(*staged(protocol, parse(text), Switches()))  # compiles what is not yet
        machine, library = staged(protocol, parse(text), Switches())
        profile = cProfile.Profile(time.process_time)
        profile.runcall(explore_compiled, machine, library)
        spent = dict.fromkeys(("core", "verify", "others"), 0.0)
        for place, row in pstats.Stats(profile).stats.items():  # type: ignore[attr-defined]
            file = str(place[0]).replace("\\", "/")
            found = [name for name in spent if f"causewire/{name}/" in file]
            spent[found[0] if found else "others"] += row[2]
        parts = {name: time / sum(spent.values()) for name, time in spent.items()}
        calls = sum(actor.calls for actor in machine.actors)
        columns = "".join(f" {part:7.0%}" for part in parts.values())
        print(f"{protocol:6} {calls:8,}{columns} {1 / (1 - parts['core']):7.2f}x")
    loaded = "causewire.transport" in sys.modules
    print(f"the transport was {'' if loaded else 'not '}imported")


def search(protocol: str, text: str) -> Exploration:
    """A whole search, from empty tables."""
    return explore_compiled(*staged(protocol, parse(text), Switches()))


def whole(repetitions: int) -> None:
    for protocol, text in REDUCED.items():
        search(protocol, text)  # compiles what is not yet
        seen, best = timed(partial(search, protocol, text), repetitions)
        print(f"{protocol:6} {seen.states:10,} {best * 1e3:8.1f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repetitions", type=int, default=3)
    parser.add_argument("--only", choices=("speed", "reductions", "memory", "share", "whole"))
    args = parser.parse_args()
    parts: dict[str, Callable[[], None]] = {
        "speed": lambda: speed(args.repetitions),
        "reductions": reductions,
        "memory": memory,
        "share": share,
        "whole": lambda: whole(args.repetitions),
    }
    for name, part in parts.items():
        if args.only in (None, name):
            print(f"{name}")
            part()
            print()


if __name__ == "__main__":
    main()
