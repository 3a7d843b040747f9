"""A whole system, as numbers: states are integers, and moves are sums.

A state is the station of each process, side by side in one integer, with the
phase on top:

    phase | station of the last process | ... | station of process 0

A move of process i changes its own station, and the stations of the processes
that it sends packets to; it is the sum of these differences. What process i adds
is the same wherever it finds itself in its station, so it is worked out once. What
another process adds depends on its own station and on the bundle of packets that
comes in, and is looked up. That is all that the inner loop of a search has to do.

A `Stage` keeps the tables of a setup, for all programs: the process that sends to
1, 2, 1 is the same in each. A `Machine` is a stage and one program.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from typing import NamedTuple, TypeAlias

from .actor import Actor, Move
from .event import TICKS
from .ghost import Ghost
from .post import Post
from .programs import Program, Sends, expected
from .setup import PROPERTIES, ROUND, Phases, Setup

__all__ = ["Found", "Machine", "Row", "Stage"]

_BITS = 24
"""Bits for the station of a process. Sixteen million are more than fit into memory."""

EagerRule: TypeAlias = Callable[[int, int, int], bool]
"""Whether, at a process in a local state, a packet that is ready may go first."""


class Stage:
    """The tables of all processes for one setup and one kind of ghost."""

    def __init__(
        self,
        setup: Setup,
        *,
        merge_reactions: bool = True,
        forget: bool = True,
        judged: Collection[str] = PROPERTIES,
    ) -> None:
        self.setup = setup
        self.merge_reactions = merge_reactions
        self.forget = forget
        self.judged = frozenset(judged)
        self.post = Post(setup)
        self._actors: dict[tuple[int, Sends, object], Actor] = {}

    def actor(self, index: int, sends: Sends, ghost: Ghost, name: object) -> Actor:
        """The tables of a process that makes these sends; `name` tells ghosts apart."""
        key = (index, sends, name)
        actor = self._actors.get(key)
        if actor is None:
            actor = self._actors[key] = Actor(
                self.post,
                index,
                sends,
                ghost,
                merge_reactions=self.merge_reactions,
                forget=self.forget,
                judged=self.judged,
            )
        return actor

    @property
    def local_states(self) -> int:
        """How many local states are kept, each with its endpoint."""
        return sum(len(actor.locals) for actor in self._actors.values())

    def everybody(self) -> Iterable[Actor]:
        """Return all actors that have been made."""
        return self._actors.values()

    def actors(self, program: Program, ghost: Ghost, name: object) -> list[Actor]:
        """Return an actor for each process of a program."""
        return [self.actor(i, sends, ghost, name) for i, sends in enumerate(program)]


class Row(NamedTuple):
    """The moves of a process from one station, sorted by how much there is to do."""

    inner: tuple[int, ...]
    """Those that send nothing: what to add to the state."""
    single: tuple[tuple[int, tuple[tuple[int, Arrivals], ...]], ...]
    """Those that send to one process, by where its station lies in the state."""
    several: tuple[tuple[int, tuple[tuple[int, Arrivals], ...]], ...]
    """Those that send to more than one."""
    number: int
    special: tuple[Move, ...]
    """The violations; neither these nor what ends the story is followed up."""
    eager: bool
    """This is one move that may go first, and the only one to look at."""


class Arrivals(dict[int, int]):
    """By station of a process: what the arrival of a certain bundle adds to a state."""

    __slots__ = ("actor", "bundle", "shift")

    def __init__(self, actor: Actor, bundle: int, shift: int) -> None:
        super().__init__()
        self.actor = actor
        self.bundle = bundle
        self.shift = shift

    def __missing__(self, station: int) -> int:
        then = self.actor.add(station, self.bundle)
        difference = self[station] = (then - station) << self.shift
        return difference


class _Rows(dict[int, Row]):
    """By station of a process: its row, in one phase."""

    __slots__ = ("index", "machine", "phase")

    def __init__(self, machine: Machine, index: int, phase: int) -> None:
        super().__init__()
        self.machine = machine
        self.index = index
        self.phase = phase

    def __missing__(self, station: int) -> Row:
        row = self[station] = self.machine.row(self.index, self.phase, station)
        return row


class Found(NamedTuple):
    """A violation: in which state, and by which move of which process.

    Without a move it is the state itself, in which nothing can happen any more.
    """

    kind: str
    state: int
    process: int
    move: Move | None


class Machine:
    """A stage with a program on it, and states as integers."""

    def __init__(
        self,
        stage: Stage,
        program: Program,
        ghost: Ghost,
        name: object,
        *,
        eager: EagerRule | None = None,
        prune: bool = False,
    ) -> None:
        self.stage = stage
        self.setup = stage.setup
        self.program = program
        self.ghost = ghost
        self.actors = stage.actors(program, ghost, name)
        self.expected = expected(program)
        self.phases = Phases(stage.setup.network, ghost.marks)
        n = len(self.actors)
        self.mask = (1 << _BITS) - 1
        self.shifts = [_BITS * i for i in range(n)]
        self.top = _BITS * n
        self.eager = eager
        self.prune = prune and ghost.marks
        self.hot = sum(1 << shift for shift in (*self.shifts, self.top)) if self.prune else -1
        """A state is of interest only if it has one of these bits: an odd phase, in which
        nothing is marked, or an odd station."""
        self.initial = self.pack(Phases.first, [actor.initial for actor in self.actors])
        self._arrivals: dict[tuple[int, int], Arrivals] = {}
        self.rows = [
            [(_Rows(self, i, phase), shift) for i, shift in enumerate(self.shifts)]
            for phase in range(len(self.phases))
        ]

    # -- states ---------------------------------------------------------------

    def pack(self, phase: int, stations: list[int]) -> int:
        """Return a state of the system as one integer."""
        state = phase << self.top
        for station, shift in zip(stations, self.shifts, strict=True):
            state |= station << shift
        return state

    def unpack(self, state: int) -> tuple[int, list[int]]:
        """Phase and stations."""
        return state >> self.top, [(state >> shift) & self.mask for shift in self.shifts]

    # -- moves ----------------------------------------------------------------

    def moves(self, index: int, station: int) -> tuple[list[Move], bool]:
        """The moves of a process to look at, and whether that is one that may go first."""
        actor = self.actors[index]
        if self.eager is not None:
            local, _ = actor.stations.values[station]
            for packet, rest in actor.post.ready(index, actor.inbox(station)):
                if self.eager(index, local, packet):
                    return [actor.move(packet, actor.outcomes(local, packet)[0], rest)], True
        return actor.moves(station), False

    def row(self, index: int, phase: int, station: int) -> Row:
        """Return all moves of one process in one phase and station."""
        after = self.phases.after[phase]
        shift = self.shifts[index]
        moves, eager = self.moves(index, station)
        inner: list[int] = []
        single: dict[int, list[tuple[int, Arrivals]]] = {}
        several = []
        special = []
        number = 0
        for move in moves:
            then = after[move.cost]
            if then < 0:
                continue
            number += 1
            if move.violation is not None:
                special.append(move)
            if move.violation is not None or move.over:
                continue
            change = (then - phase << self.top) + (move.station - station << shift)
            if not move.bundles:
                inner.append(change)
            elif len(move.bundles) == 1:
                ((j, bundle),) = move.bundles
                single.setdefault(self.shifts[j], []).append((change, self.arrivals(j, bundle)))
            else:
                parts = tuple([(self.shifts[j], self.arrivals(j, b)) for j, b in move.bundles])
                several.append((change, parts))
        grouped = tuple([(at, tuple(entries)) for at, entries in single.items()])
        return Row(tuple(inner), grouped, tuple(several), number, tuple(special), eager)

    def arrivals(self, j: int, bundle: int) -> Arrivals:
        """Return what a bundle of packets does to the inbox of process j."""
        key = (j, bundle)
        found = self._arrivals.get(key)
        if found is None:
            found = self._arrivals[key] = Arrivals(self.actors[j], bundle, self.shifts[j])
        return found

    def successors(self, state: int) -> Iterator[tuple[int, Move, int]]:
        """Process, move and state after it, one by one: for people, not for speed."""
        phase, stations = self.unpack(state)
        after = self.phases.after[phase]
        everybody = [self.moves(i, station) for i, station in enumerate(stations)]
        for i, (moves, eager) in enumerate(everybody):
            if eager or not any(first for _, first in everybody):
                for move in moves:
                    if after[move.cost] >= 0:
                        yield i, move, self._moved(after[move.cost], stations, i, move)
                if eager:
                    return

    def _moved(self, phase: int, stations: list[int], i: int, move: Move) -> int:
        then = stations[:]
        then[i] = move.station
        for j, bundle in move.bundles:
            then[j] = self.actors[j].add(stations[j], bundle)
        return self.pack(phase, then)

    def reached(self) -> list[list[int]]:
        """For each process the stations that searches of this machine have met."""
        met: list[set[int]] = [set() for _ in self.actors]
        for of_phase in self.rows:
            for stations, (rows, _) in zip(met, of_phase, strict=True):
                stations.update(rows)
        return [sorted(stations) for stations in met]

    # -- when nothing is left to happen ---------------------------------------

    def verdict(self, state: int) -> Found | int | None:
        """Return what a state without moves means.

        That is None if everything is done; a violation if something is not done and
        never will be; or the next state, if drivers may still call `retransmit`.
        """
        phase, stations = self.unpack(state)
        wrong: dict[str, int] = {}
        gone = sum(1 << k for k in self.setup.network.frozen)
        sent = []
        for actor, station in zip(self.actors, stations, strict=True):
            here = actor.local(station)
            gone |= here.known
            sent.append((2 << len(actor.sends) - here.left) - 1)
        for i, (actor, station) in enumerate(zip(self.actors, stations, strict=True)):
            expected = [each & made for each, made in zip(self.expected[i], sent, strict=True)]
            for what in actor.unfinished(station, expected, gone):
                wrong.setdefault(what, i)
        if not wrong:
            return None
        then = self.phases.after[phase][ROUND]
        if then >= 0:
            quiet = stations[:]
            for i, actor in enumerate(self.actors):
                local, _ = actor.stations.values[stations[i]]
                outcome = actor.outcomes(local, TICKS)[0]
                inbox = actor.inbox(quiet[i])
                quiet[i] = actor.station(outcome.local, inbox)
                for j, packets in outcome.sent:
                    bundle = actor.post.bundles[j](packets)
                    quiet[j] = self.actors[j].add(quiet[j], bundle)
            if quiet != stations:
                return self.pack(then, quiet)
        for what in PROPERTIES:
            if what in wrong and what in self.stage.judged:
                return Found(what, state, wrong[what], None)
        return None
