"""Starvation: a way into a cycle, on which a message is held for ever.

A check of finite runs cannot see it: once the senders stop, everything leaves. Here
they do not stop (`endless`). The question is whether there is a run that goes on
for ever, in which a message of the victim never leaves although

    every packet arrives: each channel that is not empty is read from, and
    every sender goes on sending.

In a finite system such a run is a stem and a cycle, and there is one if and only if
some strongly connected component of the states with the message held has, for
every channel, a state in which it is empty or a step that reads from it, and for
every sender a step that sends. So: all states, the components, and if there is
one, a stem to it, and a cycle in it that does all these things.

What is found is a real run. That nothing is found means: nothing with these
rounds, and with no more packets in a channel than the window allows.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Any

from ..core.endpoint import Blocked
from ..protocols import Protocol
from .counterexample import Counterexample
from .cycle import Need, components, cycle_through
from .endless import VICTIM, EndlessSystem, State, Turn
from .replay import Replay
from .setup import NetworkModel, Setup

__all__ = ["Lasso", "StarvationResult", "find_starvation", "rounds_of"]

Rounds = Sequence[Sequence[int]]


def rounds_of(processes: int, senders: int) -> list[list[int]]:
    """The victim sends to the first sender and to the last process, once each; each
    sender to the process after it and to the victim, again and again."""
    rounds: list[list[int]] = [[] for _ in range(processes)]
    rounds[VICTIM] = [1, processes - 1]
    for i in range(1, senders + 1):
        other = i + 1 if i + 1 < processes else 1
        rounds[i] = [j for j in (other, VICTIM) if j != i]
    return rounds


class Lasso:
    """A run that goes on for ever: a stem, and a cycle."""

    def __init__(self, system: EndlessSystem, stem: list[Turn], cycle: list[Turn]) -> None:
        self.system = system
        self.stem = stem
        self.cycle = cycle

    def run(self, times: int = 1) -> Counterexample:
        """Return a run of the stem and `times` repetitions of the cycle."""
        turns = self.stem + times * self.cycle
        program, steps = self.system.program(turns), self.system.steps(turns)
        return Counterexample(self.system.setup, program, steps, "starvation")

    def words(self) -> list[str]:
        """The run in words: the stem, the cycle once, and what the victim waits for."""
        run = self.run()
        lines = [f"{k + 1:4}. {line}{self._waits(k + 1)}" for k, line in enumerate(run.lines())]
        held = [f"{each.origin}:{each.mid} to {each.destination}" for each in _held(run.replay)]
        never = f"{' and '.join(held)} never {'leaves' if len(held) == 1 else 'leave'}"
        return [
            "the stem:",
            *lines[: len(self.stem)],
            "the cycle, for ever:",
            *lines[len(self.stem) :],
            f"STARVATION: every packet arrives, all keep sending, and {never}",
        ]

    def _waits(self, steps: int) -> str:
        """Return what the victim's oldest held message waits for after a number of steps."""
        held = _held(self.system.replay([*self.stem, *self.cycle][:steps]))
        if not held:
            return ""
        waits = ", ".join(f"{wait.kind} {wait.peer}:{wait.mid}" for wait in held[0].waits)
        return f"   [{held[0].origin}:{held[0].mid} waits for {waits}]"


def _held(replay: Replay) -> list[Blocked]:
    blocked = replay.clients[VICTIM].endpoint.blocked()
    return [each for each in blocked if each.where == "sender"]


@dataclass(slots=True)
class StarvationResult:
    """What came of a search for starvation."""

    protocol: str
    rounds: Rounds
    window: int
    states: int = 0
    transitions: int = 0
    held: int = 0
    """States in which a message of the victim was held."""
    complete: bool = False
    seconds: float = 0.0
    lasso: Lasso | None = None

    @property
    def passed(self) -> bool:
        """Whether the search was complete, saw a message held, and found no starvation."""
        return self.complete and self.lasso is None and self.held > 0

    def to_json(self) -> dict[str, Any]:
        """Return the result as values for JSON."""
        lasso = self.lasso
        return {
            "protocol": self.protocol,
            "rounds": [list(to) for to in self.rounds],
            "window": self.window,
            "states": self.states,
            "transitions": self.transitions,
            "held": self.held,
            "complete": self.complete,
            "passed": self.passed,
            "seconds": round(self.seconds, 3),
            "stem": None if lasso is None else len(lasso.stem),
            "cycle": None if lasso is None else len(lasso.cycle),
            "words": [] if lasso is None else lasso.words(),
        }

    def words(self) -> str:
        """Return the result as text."""
        sends = "; ".join(
            f"p{i} sends to {' and '.join(f'p{j}' for j in to)}"
            + (", once" if i == VICTIM else ", again and again")
            for i, to in enumerate(self.rounds)
            if to
        )
        size = f"{self.states:,} states, {self.transitions:,} transitions"
        held = f"a message of p{VICTIM} is held in {self.held:,} of them"
        lines = [
            f"{self.protocol}, FIFO channels of {self.window}: {sends}",
            f"{size}, {held}, {self.seconds:.1f} s",
        ]
        if self.lasso is not None:
            lines += self.lasso.words()
        elif not self.complete:
            lines.append("INCOMPLETE: too many states")
        elif not self.held:
            lines.append(f"VACUOUS: no message of p{VICTIM} was ever held")
        else:
            lines.append("no starvation: wherever a message is held, it leaves in the end")
        return "\n".join(lines)


def find_starvation(
    protocol: str | Protocol,
    *,
    processes: int = 3,
    senders: int | None = None,
    window: int = 1,
    limit: int = 2_000_000,
    progress: Callable[[int, int], None] = lambda states, transitions: None,
) -> StarvationResult:
    """Return what a search for starvation finds in a protocol.

    Args:
        protocol: A name, or a `Protocol`, whose endpoint implements `relative_state`.
        processes: How many processes there are.
        senders: How many of them keep sending; all but the victim, if None.
        window: How many packets a channel holds; a step that would add more is left out.
        limit: The number of states after which to stop.
        progress: Called now and then with the numbers of states and transitions.

    Raises:
        LocalProtocolError: Unknown protocol, or one without `relative_state`.
    """
    start = time.perf_counter()
    rounds = rounds_of(processes, processes - 1 if senders is None else senders)
    setup = Setup(protocol, processes, NetworkModel(fifo=True))
    graph = _Graph(EndlessSystem(setup, rounds, window), limit, progress)
    result = StarvationResult(
        protocol=setup.name,
        rounds=rounds,
        window=window,
        states=len(graph.states),
        transitions=sum(map(len, graph.edges)),
        held=sum(graph.held),
        complete=graph.complete,
    )
    for component in components(graph.edges, graph.held):
        needs = graph.needs(component)
        if needs is not None:
            entry = min(component)  # states come in the order of their distance
            cycle = cycle_through(graph.edges, component, entry, needs)
            result.lasso = Lasso(graph.system, graph.states[entry].way(), cycle)
            break
    result.seconds = time.perf_counter() - start
    return result


class _Graph:
    """All states, breadth first, and their edges."""

    def __init__(
        self, system: EndlessSystem, limit: int, progress: Callable[[int, int], None]
    ) -> None:
        self.system = system
        self.states: list[State] = [system.initial]
        self.edges: list[list[tuple[Turn, int]]] = []
        self.held: list[bool] = []
        ids: dict[Hashable, int] = {system.initial.key(): 0}
        transitions = 0
        for state in self.states:
            self.held.append(state.held[VICTIM])
            out: list[tuple[Turn, int]] = []
            self.edges.append(out)
            if len(self.states) > limit:
                continue
            for turn, then in system.turns(state):
                key = then.key()
                there = ids.setdefault(key, len(self.states))
                if there == len(self.states):
                    self.states.append(then)
                out.append((turn, there))
            transitions += len(out)
            progress(len(self.states), transitions)
        self.complete = len(self.states) <= limit

    def needs(self, component: set[int]) -> list[Need[Turn]] | None:
        """What a cycle through a component must do to be fair; None if none can."""
        system = self.system
        steps = {turn for k in component for turn, there in self.edges[k] if there in component}
        needs = [Need(edges=(Turn(i, -1),)) for i, to in enumerate(system.rounds) if to and i]
        for k in range(system.n * system.n):
            source, i = divmod(k, system.n)
            empty = {node for node in component if not self.states[node].channels[k]}
            needs.append(Need(edges=(Turn(i, source),), nodes=empty))
        fair = all(need.nodes or steps.intersection(need.edges) for need in needs)
        return needs if fair else None
