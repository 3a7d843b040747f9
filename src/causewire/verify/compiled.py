"""A search with the compiled kernel: states as 64-bit words.

Between two calls of the kernel, room is made, tables are filled, and what it has
noted is looked at. The stations, unlike what the endpoints do, are made anew for
each search: the kernel does that by itself, and states can be packed as tightly
as this search needs.

Needs NumPy and Numba, which come with `pip install "causewire[trace]"`.
"""

from __future__ import annotations

import time
from collections.abc import Iterable

import numpy as np

from . import kernel
from .kernel import EVENT_BITS, Longs
from .library import KeyTable, Library, grown, rehashed
from .machine import Found, Machine
from .search import Exploration, Watch, paused_collector
from .setup import Phases

__all__ = ["CompiledSearch", "explore_compiled"]

_CHUNK = 1 << 18

_AT_ONCE = 512
"""Successors that are looked for in memory together."""


class _MoreBitsError(Exception):
    """A process has more stations than there are bits for."""


class CompiledSearch:
    """One search: its arrays, and what goes on between two calls of the kernel."""

    def __init__(
        self, machine: Machine, library: Library, widths: list[int], memory: int | None
    ) -> None:
        self.machine = machine
        self.library = library
        self.memory = memory
        self.widths = widths
        n = len(machine.actors)
        offsets = [sum(widths[:i]) for i in range(n)]
        network = machine.setup.network
        self.layout = kernel.Layout(
            np.array(offsets, np.int64),
            np.array([(1 << width) - 1 for width in widths], np.int64),
            sum(widths),
            np.array(machine.phases.after, np.int32),
            unasked=np.array(
                [(event + kernel.OFFSET, cost) for event, cost in machine.actors[0].unasked],
                np.int64,
            ).reshape(-1, 2),
            loss=network.loss > 0,
            duplicates=network.duplicates > 0,
            eager=machine.eager is not None,
            prune=machine.prune,
        )
        self.states: Longs = np.empty(1 << 15, np.int64)
        self.slots: Longs = np.full(1 << 16, -1, np.int64)
        self.count = 0
        size = 1 << 13
        self.made = kernel.Made(
            stations=np.full((n, size, 4), -1, np.int32),
            places=np.full((n, size, 2), -1, np.int32),
            station_at=np.full((4 * size, 2), -1, np.int64),
            numbers=np.zeros(n, np.int32),
            moves=np.zeros((8 * size, 5), np.int32),
            arrivals=np.full((8 * size, 2), -1, np.int64),
        )
        self.eager_at = KeyTable()
        self.notes = kernel.Notes(
            missing=np.empty(1 << 14, np.int64),
            deferred=np.empty(1 << 14, np.int64),
            ended=np.empty(1 << 14, np.int64),
            special=np.empty(1 << 15, np.int64),
            counts=np.zeros(8, np.int64),
        )
        self.found_now: Longs = np.empty(kernel.MARGIN + _AT_ONCE, np.int64)
        self.met: Longs = np.empty_like(self.found_now)
        self.again: list[Longs] = []
        """States for which the tables were not complete."""
        self.ends: list[int] = []
        self.found: list[Found] = []
        stations = [self._station(i, actor.initial) for i, actor in enumerate(machine.actors)]
        self.insert(self._pack(Phases.first, stations))

    @property
    def given(self) -> kernel.Given:
        """What the library holds now: its arrays are others when it has grown."""
        library = self.library
        return kernel.Given(
            library.outcome_at.rows,
            library.outcomes,
            library.client,
            library.ready,
            library.pending,
            library.added.rows,
            self.eager_at.rows,
        )

    # -- states, here and in the machine --------------------------------------

    def _station(self, i: int, station: int) -> int:
        """The number, among the stations of process i here, of one of the machine."""
        actor = self.machine.actors[i]
        local, inbox = actor.stations.values[station]
        here = self.library.local(actor, local), self.library.inbox(i, inbox)
        return int(kernel.station(i, *here, self.given, self.made, self.notes))

    def _pack(self, phase: int, numbers: Iterable[int]) -> int:
        state = phase << self.layout.top
        for number, shift in zip(numbers, self.layout.shifts.tolist(), strict=True):
            state |= number << shift
        return state

    def to_machine(self, state: int) -> int:
        """A state of this search as one of the machine."""
        stations = []
        for i, actor in enumerate(self.machine.actors):
            number = state >> int(self.layout.shifts[i]) & int(self.layout.masks[i])
            local, inbox = self.made.places[i, number].tolist()
            here = self.library.local_of(local)[1], self.library.inbox_of(inbox)[1]
            stations.append(actor.station_at(*here))
        return self.machine.pack(state >> self.layout.top, stations)

    def from_machine(self, state: int) -> int:
        """Return the number that the compiled search uses for a state of the machine."""
        phase, stations = self.machine.unpack(state)
        return self._pack(phase, [self._station(i, each) for i, each in enumerate(stations)])

    def reached(self) -> list[list[int]]:
        """The stations that were met, by process, as the machine numbers them."""
        result: list[list[int]] = []
        for i, actor in enumerate(self.machine.actors):
            met = self.made.stations[i, : self.made.numbers[i], kernel.FIRST] >= 0
            mine = self.made.places[i, : self.made.numbers[i]][met]
            result.append(
                [
                    actor.station_at(self.library.local_of(a)[1], self.library.inbox_of(b)[1])
                    for a, b in mine.tolist()
                ]
            )
        return result

    # -- room -----------------------------------------------------------------

    @property
    def nbytes(self) -> int:
        """Memory for states and stations."""
        return sum(array.nbytes for array in (self.states, self.slots, *self.made))

    def _allow(self, more: int) -> None:
        if self.memory is not None and self.nbytes + more > self.memory:
            raise MemoryError

    def _grow_states(self) -> None:
        if len(self.states) <= len(self.slots) * 5 // 8:
            self._allow(self.states.nbytes // 2)
            states = np.empty(len(self.states) * 3 // 2, np.int64)
            states[: self.count] = self.states[: self.count]
            self.states = states
        else:
            self._allow(self.slots.nbytes)
            size = 2 * len(self.slots)
            self.slots = np.empty(0, np.int64)
            self.slots = np.full(size, -1, np.int64)
            kernel.rehash_states(self.slots, self.states, self.count)

    def _grow_tables(self) -> None:
        stations, moves, arrivals = self.notes.counts[:3].tolist()
        margin = 2 * kernel.MARGIN
        made = self.made
        if made.numbers.max() + margin > made.stations.shape[1]:
            self._allow(made.stations.nbytes + made.places.nbytes)
            wider = grown(made.stations, axis=1), grown(made.places, axis=1)
            self.made = self.made._replace(stations=wider[0], places=wider[1])
        if stations + margin > len(made.station_at) // 2:
            self._allow(made.station_at.nbytes)
            self.made = self.made._replace(station_at=rehashed(made.station_at))
        if moves + margin > len(made.moves):
            self._allow(made.moves.nbytes)
            self.made = self.made._replace(moves=grown(made.moves))
        if arrivals + margin > len(made.arrivals) // 2:
            self._allow(made.arrivals.nbytes)
            self.made = self.made._replace(arrivals=rehashed(made.arrivals))

    def insert(self, state: int) -> None:
        """Add a state from outside, if it is new."""
        if self.count + 2 * kernel.MARGIN > min(len(self.states), len(self.slots) * 5 // 8):
            self._grow_states()
        if kernel.put_state(self.slots, state):
            self.states[self.count] = state
            self.count += 1

    # -- the search -----------------------------------------------------------

    def run(self, todo: Longs) -> None:
        """Expand states, with everything that this calls for."""
        while len(todo):
            begin = 0
            while begin < len(todo):
                why, begin = self._call(todo, begin)
                if why == kernel.ROOM:
                    self._grow_states()
                elif why == kernel.TABLES:
                    self._grow_tables()
                elif why == kernel.BITS:
                    raise _MoreBitsError
                else:
                    self._empty_lists()
            todo = np.concatenate(self.again) if self.again else todo[:0]
            self.again = []

    def _call(self, todo: Longs, begin: int) -> tuple[int, int]:
        why, at, self.count = kernel.run(
            todo,
            begin,
            self.states,
            self.count,
            self.slots,
            self.layout,
            self.given,
            self.made,
            self.notes,
            self.found_now,
            self.met,
        )
        return why, at

    def _empty_lists(self) -> None:
        """Fill the tables with what was missing, and take down what else was noted."""
        _, _, _, missing, deferred, ended, special, _ = self.notes.counts.tolist()
        for entry in np.unique(self.notes.missing[:missing]).tolist():
            self._fill(entry >> 60, entry & (1 << 60) - 1)
        if deferred:
            self.again.append(self.notes.deferred[:deferred].copy())
        self.ends += self.notes.ended[:ended].tolist()
        pairs = self.notes.special[:special].tolist()
        for state, which in zip(pairs[::2], pairs[1::2], strict=True):
            self._note(state, which >> 32, which & 0xFFFFFFFF)
        self.notes.counts[3:7] = 0

    def _fill(self, kind: int, key: int) -> None:
        if kind == kernel.OUTCOMES:
            self.library.fill_outcomes(key)
        elif kind == kernel.READY:
            self.library.fill_ready(key)
        elif kind == kernel.ADDED:
            self.library.fill_added(key)
        else:
            eager = self.machine.eager
            assert eager is not None
            actor, local = self.library.local_of(key >> EVENT_BITS)
            first = eager(actor.index, local, (key & (1 << EVENT_BITS) - 1) - kernel.OFFSET)
            self.eager_at.put(key, first)

    def _note(self, state: int, process: int, which: int) -> None:
        """A violation, told in terms of the machine."""
        here = self.to_machine(state)
        _, stations = self.machine.unpack(here)
        _, event, outcome = self.library.outcome[which]
        for move in self.machine.actors[process].moves(stations[process]):
            same = (move.event, move.script) == (event, outcome.script)
            if same and move.violation is not None:
                self.found.append(Found(move.violation, here, process, move))
                return


@paused_collector()
def explore_compiled(
    machine: Machine,
    library: Library,
    *,
    limit: int | None = None,
    keep_going: bool = False,
    memory: int | None = None,
    watch: Watch | None = None,
    reached: list[list[int]] | None = None,
) -> Exploration:
    """`search.explore`, breadth first, compiled.

    `library` is that of the stage, kept from one search to the next; `reached` is
    filled with the stations that were met, for each process.
    """
    start = time.perf_counter()
    n = len(machine.actors)
    bits = 63 - machine.phases.width
    widths = [bits // n] * n
    while True:
        search = CompiledSearch(machine, library, widths, memory)
        try:
            result = _explore(search, limit, keep_going, watch)
            break
        except _MoreBitsError:
            widths = _wider(search, bits)
    result.states = search.count
    result.bytes = search.nbytes
    result.seconds = time.perf_counter() - start
    if reached is not None:
        reached[:] = search.reached()
    return result


def _wider(search: CompiledSearch, bits: int) -> list[int]:
    """Bits for each process, by what has turned out to be needed."""
    need = [int(number).bit_length() + 1 for number in search.made.numbers]
    need = [max(each, 13) for each in need]
    spare = bits - sum(need)
    if spare < 0 or need == search.widths:
        raise MemoryError
    most = max(range(len(need)), key=lambda i: need[i])
    need[most] += spare
    return [min(each, 30) for each in need]


def _explore(
    search: CompiledSearch,
    limit: int | None,
    keep_going: bool,
    watch: Watch | None,
) -> Exploration:
    result = Exploration()
    done = 0
    try:
        while done < search.count:
            level = search.count
            while done < level:
                upto = min(level, done + _CHUNK)
                search.run(search.states[done:upto].copy())
                done = upto
                result.transitions = int(search.notes.counts[kernel.TRANSITIONS])
                result.found += search.found
                search.found = []
                _judge(search, result)
                if watch is not None:
                    watch(search.count, result.transitions, result.depth)
                if (result.found and not keep_going) or (limit and search.count > limit):
                    return result
            result.depth += search.count > level
        result.complete = True
    except MemoryError:
        pass
    return result


def _judge(search: CompiledSearch, result: Exploration) -> None:
    """What to make of states without moves."""
    result.ends += len(search.ends)
    for state in search.ends:
        verdict = search.machine.verdict(search.to_machine(state))
        if isinstance(verdict, Found):
            result.found.append(verdict)
        elif verdict is not None:
            search.insert(search.from_machine(verdict))
    search.ends = []
