"""Small systems that the tests of the checker share, and what a search finds in them."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import NamedTuple

from causewire import protocols
from causewire.verify import MUTANTS, PROPERTIES, NetworkModel, Program, Setup, find, parse
from causewire.verify.ghost import Ghost, History, Marked, Past, Plain
from causewire.verify.machine import Machine, Stage
from causewire.verify.reduction import Commuting
from causewire.verify.search import explore


class System(NamedTuple):
    """Something small enough to be searched in every way there is."""

    setup: Setup
    program: Program

    def __str__(self) -> str:
        return self.setup.name

    @property
    def messages(self) -> int:
        return max(len(sends) for sends in self.program)


UNICASTS = ("0>2,1; 1>2; 2>", "0>1,1; 1>0")
MULTICASTS = ("0>1+2; 1>2; 2>", "0>1,1+2; 1>2; 2>")
BROADCASTS = ("0>1+2; 1>0+2; 2>", "0>1+2,1+2; 1>0+2; 2>")
FAULTS = NetworkModel(loss=1, duplicates=1, rounds=3)


def _registered() -> Iterator[System]:
    for name in protocols.names():
        protocol = protocols.describe(name)
        network = NetworkModel(
            fifo=protocol.needs_fifo,
            rounds=2 if protocol.control_messages == ("null",) else 0,
        )
        texts: tuple[str, ...] = UNICASTS if protocol.unicast else BROADCASTS
        if protocol.unicast and protocol.multicast:
            texts += MULTICASTS
        for text in texts:
            program = parse(text)
            yield System(Setup(name, len(program), network), program)
        if protocol.tolerates_loss and protocol.unicast:
            yield System(Setup(name, 2, FAULTS), parse("0>1,1; 1>"))
    for name in ("fifo", "csps", "sps", "csps-departures", "sps-departures"):
        for text in (*UNICASTS, *MULTICASTS):
            program = parse(text)
            yield System(Setup(find(name), len(program), driver="runs"), program)


def _mutants() -> Iterator[System]:
    for mutant in MUTANTS.values():
        yield System(mutant.setup, parse(mutant.program))


REGISTERED = list(_registered())
WITH_MISTAKES = list(_mutants())
SYSTEMS = REGISTERED + WITH_MISTAKES


def unreduced(
    system: System, ghost: Ghost, judged: Collection[str] = PROPERTIES, *, merge: bool = False
) -> Machine:
    """The system with tables of its own, and with no reduction at all."""
    stage = Stage(system.setup, merge_reactions=merge, forget=False, judged=judged)
    return Machine(stage, system.program, ghost, "tagged")


def reduced(
    system: System, ghost: Ghost, judged: Collection[str] = PROPERTIES
) -> tuple[Machine, Commuting | None]:
    """The system with every reduction that there is for it, and the rule for packets."""
    stage = Stage(system.setup, judged=judged)
    rule = None
    if system.setup.network.reliable and system.setup.calls.reacts:
        plain = Machine(stage, system.program, Plain(), "plain")
        assert explore(plain, keep_going=True).complete
        tagged = stage.actors(system.program, ghost, "tagged")
        rule = Commuting(plain.actors, plain.reached(), tagged)
    return Machine(stage, system.program, ghost, "tagged", eager=rule, prune=True), rule


def marked(system: System) -> Marked:
    return Marked(system.setup.processes)


def past(system: System) -> Past:
    return Past(system.setup.processes, system.messages)


def kinds(of: Machine) -> set[str]:
    """What is wrong with a system: the kinds of violation, and which exceptions."""
    seen = explore(of, keep_going=True)
    assert seen.complete
    return {found.kind for found in seen.found}


def orders(of: Machine) -> set[tuple[object, ...]]:
    """The orders in which the processes deliver, by the ends of all runs."""
    assert isinstance(of.ghost, History)
    found = set()
    seen = explore(of, keep_going=True)
    assert seen.complete
    for state in seen.seen:
        if next(of.successors(state), None) is None and not isinstance(of.verdict(state), int):
            _, stations = of.unpack(state)
            found.add(tuple(a.local(s).ghost for a, s in zip(of.actors, stations, strict=True)))
    return found
