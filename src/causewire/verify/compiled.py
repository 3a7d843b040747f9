"""The same search, compiled: states as 64-bit words, the tables as arrays.

The kernel knows no protocol. It has, for every process, the rows of its stations
(where each move leads, what it costs, which bundles it sends) and, for every
station and bundle, the station after the arrival. What it meets that is not in
the arrays yet it writes down, with the state that needs it, and goes on with the
next; the tables are then filled in Python, by the endpoints, and those states are
done again. Tables are small beside the number of states, so that is soon over.

States lie in the order in which they were found, which is breadth first, so the
list of them is the queue; a hash table over it (open addressing, one word for
each slot) tells which are known. The arrays double when the kernel asks for room,
up to the memory that the search may use.

Needs NumPy and Numba, which come with `pip install "causewire[trace]"`.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba
import numpy as np
import numpy.typing as npt

from .actor import Actor, Move
from .machine import Found, Machine, TooManyStations
from .search import Exploration, Watch

__all__ = ["Tables", "explore_compiled"]

F = TypeVar("F", bound=Callable[..., Any])

Int8s = npt.NDArray[np.int8]
Ints = npt.NDArray[np.int32]
Longs = npt.NDArray[np.int64]
Words = npt.NDArray[np.uint64]

_MISSING_CAP = 1 << 14
_DEFERRED_CAP = 1 << 14
_CHUNK = 1 << 18

# What the kernel came back for.
_DONE, _ROOM, _TABLES = range(3)


def _compiled(function: F) -> F:
    try:
        return cast(F, numba.njit(cache=True, nogil=True)(function))
    except RuntimeError:  # no place on this machine where a cache may be kept
        return cast(F, numba.njit(nogil=True)(function))


class Tables:
    """The moves and arrivals of one actor, as arrays that grow."""

    def __init__(self, actor: Actor, processes: int) -> None:
        self.actor = actor
        self.processes = processes
        self.first: Ints = np.full(1024, -1, np.int32)
        """By station: the first of its moves, -1 if the row is not there yet."""
        self.last: Ints = np.zeros(1024, np.int32)
        self.eager: Int8s = np.zeros(1024, np.int8)
        self.station: Ints = np.zeros(4096, np.int32)
        """By move: where it leads."""
        self.cost: Int8s = np.zeros(4096, np.int8)
        """What it costs; -1 for one that ends here."""
        self.bundle: Ints = np.full((4096, processes), -1, np.int32)
        self.arrival: Ints = np.full((1024, 16), -1, np.int32)
        """By station and bundle: the station after the arrival."""
        self.moves = 0
        self.special: dict[int, Move] = {}

    def fill_row(self, station: int, moves: list[Move], eager: bool, mask: int) -> None:
        """Put the moves of a station in."""
        self._room_for_station(station)
        while self.moves + len(moves) > len(self.station):
            self.station = _grown(self.station, 0)
            self.cost = _grown(self.cost, 0)
            self.bundle = _grown(self.bundle, -1)
        at = self.moves
        for k, move in enumerate(moves, at):
            self.station[k] = move.station
            if move.station > mask:
                raise TooManyStations
            self.cost[k] = move.cost
            for j, bundle in move.bundles:
                self.bundle[k, j] = bundle
            if move.violation is not None or move.over:
                # Kept apart; the kernel must know its cost, and that it ends here.
                self.station[k] = -1
                self.special[k] = move
        self.moves = at + len(moves)
        self.first[station], self.last[station] = at, self.moves
        self.eager[station] = eager

    def fill_arrival(self, station: int, bundle: int, mask: int) -> None:
        """Put in what the arrival of a bundle does to a station."""
        self._room_for_station(station)
        while bundle >= self.arrival.shape[1]:
            wider = np.full((self.arrival.shape[0], 2 * self.arrival.shape[1]), -1, np.int32)
            wider[:, : self.arrival.shape[1]] = self.arrival
            self.arrival = wider
        then = self.actor.add(station, bundle)
        if then > mask:
            raise TooManyStations
        self.arrival[station, bundle] = then

    def _room_for_station(self, station: int) -> None:
        while station >= len(self.first):
            self.first = _grown(self.first, -1)
            self.last = _grown(self.last, 0)
            self.eager = _grown(self.eager, 0)
        while station >= len(self.arrival):
            self.arrival = _grown(self.arrival, -1)


def _grown(array: Any, fill: int) -> Any:
    """A copy of twice the length."""
    wider = np.full((2 * array.shape[0], *array.shape[1:]), fill, array.dtype)
    wider[: array.shape[0]] = array
    return wider


@_compiled
def _hash(state: int, mask: int) -> int:
    x = np.uint64(state) * np.uint64(0x9E3779B97F4A7C15)
    x ^= x >> np.uint64(32)
    x *= np.uint64(0xD6E8FEB86659FD93)
    return np.int64((x >> np.uint64(20)) & np.uint64(mask))


@_compiled
def _rehash(slots: Longs, states: Longs, count: int) -> None:
    mask = len(slots) - 1
    for k in range(count):
        at = _hash(states[k], mask)
        while slots[at] >= 0:
            at = (at + 1) & mask
        slots[at] = states[k]


@_compiled
def _search(
    todo: Longs,
    begin: int,
    end: int,
    states: Longs,
    count: int,
    slots: Longs,
    bits: int,
    top: int,
    after: Ints,
    first: tuple[Ints, ...],
    last: tuple[Ints, ...],
    eager: tuple[Int8s, ...],
    station: tuple[Ints, ...],
    cost: tuple[Int8s, ...],
    bundle: tuple[Ints, ...],
    arrival: tuple[Ints, ...],
    reached: tuple[Int8s, ...],
    missing: Longs,
    deferred: Longs,
    ended: Longs,
    special: Longs,
    counts: Longs,
) -> tuple[int, int, int]:
    """Expand todo[begin:end]. Returns why it stopped, where, and how many states there are.

    `counts` has the numbers of entries in `missing`, `deferred`, `ended`,
    `special`, and of transitions.
    """
    n = len(first)
    station_mask = (1 << bits) - 1
    slot_mask = len(slots) - 1
    room = min(len(states), len(slots) * 5 // 8) - 512
    for at in range(begin, end):
        if count > room:
            return _ROOM, at, count
        if (
            counts[0] > len(missing) - 64
            or counts[1] > len(deferred) - 4
            or counts[2] > len(ended) - 4
            or counts[3] > len(special) - 64
        ):
            return _TABLES, at, count
        state = todo[at]
        phase = state >> top
        # Is everything there that this state needs?
        incomplete = False
        only = -1
        for i in range(n):
            here = (state >> (bits * i)) & station_mask
            if here >= len(first[i]) or first[i][here] < 0:
                missing[counts[0]] = (here << 8 | i) << 24
                counts[0] += 1
                incomplete = True
            elif eager[i][here] and only < 0:
                only = i
        if not incomplete:
            for i in range(n):
                if only >= 0 and i != only:
                    continue
                here = (state >> (bits * i)) & station_mask
                for move in range(first[i][here], last[i][here]):
                    if station[i][move] < 0:
                        continue
                    for j in range(n):
                        b = bundle[i][move, j]
                        if b >= 0:
                            other = (state >> (bits * j)) & station_mask
                            if (
                                other >= arrival[j].shape[0]
                                or b >= arrival[j].shape[1]
                                or arrival[j][other, b] < 0
                            ):
                                if counts[0] < len(missing):
                                    missing[counts[0]] = (other << 8 | j) << 24 | (b + 1)
                                    counts[0] += 1
                                incomplete = True
        if incomplete:
            deferred[counts[1]] = state
            counts[1] += 1
            continue
        moves = 0
        for i in range(n):
            here = (state >> (bits * i)) & station_mask
            reached[i][here] = 1
            if only >= 0 and i != only:
                continue
            for move in range(first[i][here], last[i][here]):
                next_phase = after[phase, cost[i][move]]
                if next_phase < 0:
                    continue
                moves += 1
                there = station[i][move]
                if there < 0:
                    special[counts[3]] = state
                    special[counts[3] + 1] = np.int64(i) << 32 | move
                    counts[3] += 2
                    continue
                then = state + ((there - here) << (bits * i)) + ((next_phase - phase) << top)
                for j in range(n):
                    b = bundle[i][move, j]
                    if b >= 0:
                        other = (state >> (bits * j)) & station_mask
                        then += (arrival[j][other, b] - other) << (bits * j)
                slot = _hash(then, slot_mask)
                while True:
                    known = slots[slot]
                    if known == then:
                        break
                    if known < 0:
                        slots[slot] = then
                        states[count] = then
                        count += 1
                        break
                    slot = (slot + 1) & slot_mask
        counts[4] += moves
        if moves == 0:
            ended[counts[2]] = state
            counts[2] += 1
    return _DONE, end, count


class _Kernel:
    """One compiled search: its arrays, and what goes on between two calls."""

    def __init__(self, machine: Machine, tables: list[Tables], memory: int | None) -> None:
        self.machine = machine
        self.tables = tables
        self.memory = memory
        self.states: Longs = np.empty(1 << 16, np.int64)
        self.slots: Longs = np.full(1 << 17, -1, np.int64)
        self.count = 0
        self.after: Ints = np.array(machine.phases.after, np.int32)
        self.missing: Longs = np.empty(_MISSING_CAP, np.int64)
        self.deferred: Longs = np.empty(_DEFERRED_CAP, np.int64)
        self.ended: Longs = np.empty(_CHUNK + 16, np.int64)
        self.special: Longs = np.empty(1 << 16, np.int64)
        self.counts: Longs = np.zeros(5, np.int64)
        self.reached: list[Int8s] = [np.zeros(1024, np.int8) for _ in tables]
        self.insert(machine.initial)

    def insert(self, state: int) -> bool:
        """Add a state from outside; returns whether it is new."""
        if self.count + 1024 > min(len(self.states), len(self.slots) * 5 // 8):
            self.grow()
        mask = len(self.slots) - 1
        slot = _hash(state, mask)
        while self.slots[slot] >= 0:
            if self.slots[slot] == state:
                return False
            slot = (slot + 1) & mask
        self.slots[slot] = state
        self.states[self.count] = state
        self.count += 1
        return True

    @property
    def bytes(self) -> int:
        return self.states.nbytes + self.slots.nbytes

    def grow(self) -> None:
        """Twice the room, unless there is no memory for it (then MemoryError)."""
        if len(self.states) <= len(self.slots) * 5 // 8:
            more = self.states.nbytes
        else:
            more = 2 * self.slots.nbytes
        if self.memory is not None and self.bytes + more > self.memory:
            raise MemoryError
        if len(self.states) <= len(self.slots) * 5 // 8:
            states = np.empty(2 * len(self.states), np.int64)
            states[: self.count] = self.states[: self.count]
            self.states = states
        else:
            slots = np.full(2 * len(self.slots), -1, np.int64)
            self.slots = np.empty(0, np.int64)
            _rehash(slots, self.states, self.count)
            self.slots = slots

    def run(self, todo: Longs, begin: int, end: int) -> None:
        """Expand states, with everything that this calls for."""
        while begin < end:
            why, begin = self._call(todo, begin, min(end, begin + _CHUNK))
            if why == _ROOM:
                self.grow()
            elif why == _TABLES:
                self._settle()
        self._settle()

    def _call(self, todo: Longs, begin: int, end: int) -> tuple[int, int]:
        tables = self.tables
        for k, each in enumerate(tables):
            if len(self.reached[k]) < len(each.first):
                self.reached[k] = np.concatenate(
                    (self.reached[k], np.zeros(len(each.first) - len(self.reached[k]), np.int8))
                )
        why, at, self.count = _search(
            todo,
            begin,
            end,
            self.states,
            self.count,
            self.slots,
            self.machine.bits,
            self.machine.top,
            self.after,
            tuple([each.first for each in tables]),
            tuple([each.last for each in tables]),
            tuple([each.eager for each in tables]),
            tuple([each.station for each in tables]),
            tuple([each.cost for each in tables]),
            tuple([each.bundle for each in tables]),
            tuple([each.arrival for each in tables]),
            tuple(self.reached),
            self.missing,
            self.deferred,
            self.ended,
            self.special,
            self.counts,
        )
        return why, at

    def _settle(self) -> None:
        """Fill the tables with what was missing, and do the states again that wanted it."""
        while self.counts[1]:
            wanted = np.unique(self.missing[: self.counts[0]])
            again = self.deferred[: self.counts[1]].copy()
            self.counts[0] = self.counts[1] = 0
            for entry in wanted.tolist():
                self._fill(entry >> 32, entry >> 24 & 255, (entry & 0xFFFFFF) - 1)
            begin = 0
            while begin < len(again):
                why, begin = self._call(again, begin, len(again))
                if why == _ROOM:
                    self.grow()
                elif why == _TABLES:
                    break
            if begin < len(again):  # too much at once: the rest waits its turn
                rest = again[begin:]
                self._settle()
                self.run(rest, 0, len(rest))

    def _fill(self, station: int, index: int, bundle: int) -> None:
        tables, mask = self.tables[index], self.machine.mask
        if bundle >= 0:
            tables.fill_arrival(station, bundle, mask)
        elif station >= len(tables.first) or tables.first[station] < 0:
            moves, eager = self.machine.moves(index, station)
            tables.fill_row(station, moves, eager, mask)


def explore_compiled(
    machine: Machine,
    tables: list[Tables] | None = None,
    *,
    limit: int | None = None,
    keep_going: bool = False,
    ends: bool = True,
    memory: int | None = None,
    watch: Watch | None = None,
    reached: list[list[int]] | None = None,
) -> Exploration:
    """`search.explore`, breadth first, compiled.

    `tables` may be those of another search with the same actors; `reached` is
    filled with the stations that were met, for each process.
    """
    start = time.perf_counter()
    if machine.top + machine.phases.width > 63:
        raise TooManyStations
    if tables is None:
        tables = [Tables(actor, len(machine.actors)) for actor in machine.actors]
    result = Exploration()
    kernel = _Kernel(machine, tables, memory)
    done = 0
    try:
        while done < kernel.count:
            level = kernel.count
            while done < level:
                upto = min(level, done + _CHUNK)
                chunk = kernel.states[done:upto].copy()
                kernel.run(chunk, 0, len(chunk))
                done = upto
                result.transitions = int(kernel.counts[4])
                _look(kernel, result)
                _end(kernel, result, ends)
                if watch is not None:
                    watch(kernel.count, result.transitions, result.depth)
                if (result.found and not keep_going) or (limit and kernel.count > limit):
                    break
            else:
                result.depth += kernel.count > level
                continue
            break
        else:
            result.complete = True
    except MemoryError:
        pass
    result.states = kernel.count
    result.bytes = kernel.bytes
    result.seconds = time.perf_counter() - start
    if reached is not None:
        reached[:] = [np.flatnonzero(each).tolist() for each in kernel.reached]
    return result


def _look(kernel: _Kernel, result: Exploration) -> None:
    """Note the violations among the moves after which there is nothing to follow up."""
    for k in range(0, int(kernel.counts[3]), 2):
        state, which = int(kernel.special[k]), int(kernel.special[k + 1])
        process = which >> 32
        move = kernel.tables[process].special[which & 0xFFFFFFFF]
        if move.violation is not None:
            result.found.append(Found(move.violation, state, process, move))
    kernel.counts[3] = 0


def _end(kernel: _Kernel, result: Exploration, ends: bool) -> None:
    """Judge states without moves."""
    ended = kernel.ended[: kernel.counts[2]].tolist()
    kernel.counts[2] = 0
    result.ends += len(ended)
    for state in ended:
        verdict = kernel.machine.verdict(state)
        if isinstance(verdict, Found):
            if ends:
                result.found.append(verdict)
        elif verdict is not None:
            kernel.insert(verdict)
