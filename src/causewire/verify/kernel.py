"""The inner loop of a search, compiled: it knows numbers, and no protocol.

Everything lies in flat arrays. From outside come (`library`)

    what an event does to a local state     `outcomes`, by (local state, event)
    what may be taken from an inbox         `ready`, by inbox
    what arrives in an inbox                `added`, by (inbox, bundle)

and the kernel builds stations and moves from these as it reaches them. It notes what is
missing, with the state that needs it, and goes on; when the tables have been filled,
those states are done again.

Tables by key use open addressing; -1 marks a free slot. States lie in the order in which
they were found, breadth first, so their list is the queue. The set of known states does
not fit into a cache, so the slots of many successors are read before any is entered:
the memory fetches them together.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

from .._compiled import compiled

__all__ = [
    "BITS",
    "DONE",
    "EVENT_BITS",
    "LISTS",
    "MARGIN",
    "OFFSET",
    "OVER",
    "ROOM",
    "TABLES",
    "WRONG",
    "Given",
    "Int8s",
    "Ints",
    "Layout",
    "Longs",
    "Made",
    "Notes",
    "Whole",
    "look_up",
    "put",
    "put_state",
    "rehash",
    "rehash_states",
    "run",
    "station",
]

F = TypeVar("F", bound=Callable[..., Any])
Int8s = npt.NDArray[np.int8]
Ints = npt.NDArray[np.int32]
Longs = npt.NDArray[np.int64]
Whole: TypeAlias = Any  # an integer, of Python or of some width

EVENT_BITS = 24
"""Events and bundles are below two to this."""

OFFSET = 16
"""Events are numbered from minus this upward, so an event plus this is never negative."""

MARGIN = 4096
"""One state needs less than this of anything."""

SENDS = OFFSET - 1
"""The event in which the client sends."""

# What the kernel came back for.
DONE, ROOM, LISTS, TABLES, BITS = range(5)

# In place of a local state: nothing to follow up.
OVER, WRONG = -1, -2

# Columns of a station: its first and last move, whether that one goes first, its heat.
FIRST, LAST, EAGER, HOT = range(4)

# Columns of a move: the station it leads to, its cost, its outcome, and who gets what.
THERE, COST, OUTCOME, RECEIVER, BUNDLE = range(5)

# In place of a receiver: there is none, or the outcome tells all of them.
NOBODY, SEVERAL = -1, -2

# Places in `counts`.
STATIONS, MOVES, ARRIVALS, MISSING, DEFERRED, ENDED, SPECIAL, TRANSITIONS = range(8)

# Kinds of what is missing.
OUTCOMES, READY, ADDED, FIRSTS = range(4)


class Given(NamedTuple):
    """What endpoints and networks do, from outside."""

    outcome_at: Longs
    outcomes: Ints
    client: Int8s
    ready: Ints
    pending: Ints
    added: Longs
    eager: Longs


class Made(NamedTuple):
    """What the kernel has put together: by process and number, its stations."""

    stations: Ints
    places: Ints
    """Local state and inbox of each station."""
    station_at: Longs
    numbers: Ints
    """How many stations each process has."""
    moves: Ints
    arrivals: Longs
    """(process, station, bundle) -> the station after that has arrived."""


class Layout(NamedTuple):
    """How a state is one word, and what may happen."""

    shifts: Longs
    masks: Longs
    top: int
    after: Ints
    """The phase after a cost, -1 if that is too much."""
    unasked: Longs
    """Events that may happen at any moment, plus `OFFSET`, and what each costs."""
    loss: bool
    duplicates: bool
    eager: bool
    prune: bool


class Notes(NamedTuple):
    """What is written down for those outside, and `counts` of everything."""

    missing: Longs
    deferred: Longs
    ended: Longs
    special: Longs
    counts: Longs


@compiled
def _slot(key: Whole, mask: Whole) -> Whole:
    x = np.uint64(key)
    x = (x ^ (x >> np.uint64(29))) * np.uint64(0x9E3779B97F4A7C15)
    return np.int64((x >> np.uint64(32)) & np.uint64(mask))


@compiled
def look_up(table: Longs, key: Whole) -> Whole:
    """The value of a key, -1 if it is not there."""
    mask = len(table) - 1
    at = _slot(key, mask)
    while True:
        known = table[at, 0]
        if known == key:
            return table[at, 1]
        if known < 0:
            return -1
        at = (at + 1) & mask


@compiled
def put(table: Longs, key: Whole, value: Whole) -> None:
    """Enter a key that is not there."""
    mask = len(table) - 1
    at = _slot(key, mask)
    while table[at, 0] >= 0:
        at = (at + 1) & mask
    table[at, 0] = key
    table[at, 1] = value


@compiled
def rehash(table: Longs, old: Longs) -> None:
    """Enter everything that is in the old table."""
    for at in range(len(old)):
        if old[at, 0] >= 0:
            put(table, old[at, 0], old[at, 1])


@compiled
def put_state(slots: Longs, state: Whole) -> bool:
    """Add a state to the set; returns whether it is new."""
    mask = len(slots) - 1
    at = _slot(state, mask)
    while True:
        known = slots[at]
        if known == state:
            return False
        if known < 0:
            slots[at] = state
            return True
        at = (at + 1) & mask


@compiled
def rehash_states(slots: Longs, states: Longs, count: int) -> None:
    for k in range(count):
        put_state(slots, states[k])


@compiled
def _enter(
    slots: Longs, states: Longs, count: Whole, found: Longs, met: Longs, successors: Whole
) -> Whole:
    """Append those of the successors that are new; returns how many states there are."""
    mask = len(slots) - 1
    for k in range(successors):
        met[k] = slots[_slot(found[k], mask)]
    for k in range(successors):
        if met[k] != found[k] and put_state(slots, found[k]):
            states[count] = found[k]
            count += 1
    return count


@compiled
def _lack(notes: Notes, kind: int, key: Whole) -> None:
    count = notes.counts[MISSING]
    if count < len(notes.missing):
        notes.missing[count] = np.int64(kind) << 60 | key
        notes.counts[MISSING] += 1


@compiled
def station(
    index: Whole, local: Whole, inbox: Whole, given: Given, made: Made, notes: Notes
) -> Whole:
    """The number of the station of a local state and an inbox, made if need be."""
    if local < 0:
        return local  # nothing to follow up
    key = np.int64(local) << 31 | inbox
    k = look_up(made.station_at, key)
    if k < 0:
        k = np.int64(made.numbers[index])
        made.numbers[index] += 1
        notes.counts[STATIONS] += 1
        put(made.station_at, key, k)
        made.places[index, k, 0] = local
        made.places[index, k, 1] = inbox
        client, heat = given.client[local], given.ready[inbox, 2]
        hot = client & 4 or heat & 1 or (heat & 2 and client & 2)
        made.stations[index, k, FIRST] = -1
        made.stations[index, k, EAGER] = 0
        made.stations[index, k, HOT] = 1 if hot else 0
    return k


@compiled
def _move(
    there: Whole, outcome: Whole, extra: Whole, index: Whole, given: Given, made: Made, notes: Notes
) -> None:
    """Append a move."""
    k = notes.counts[MOVES]
    notes.counts[MOVES] += 1
    made.moves[k, THERE] = there
    made.moves[k, OUTCOME] = outcome
    made.moves[k, COST] = extra
    made.moves[k, RECEIVER] = NOBODY
    if outcome < 0:
        return
    made.moves[k, COST] |= given.outcomes[outcome, 1]
    for j in range(len(made.numbers)):
        bundle = given.outcomes[outcome, 2 + j]
        if bundle >= 0:
            alone = made.moves[k, RECEIVER] == NOBODY and j != index
            made.moves[k, RECEIVER] = j if alone else SEVERAL
            made.moves[k, BUNDLE] = bundle


@compiled
def _known(
    local: Whole, inbox: Whole, layout: Layout, given: Given, notes: Notes
) -> tuple[bool, Whole]:
    """Whether all that can happen here is known, and which packet goes first, if one does."""
    if given.ready[inbox, 0] < 0:
        _lack(notes, READY, np.int64(inbox))
        return False, -1
    complete = True
    only = -1
    base = np.int64(local) << EVENT_BITS
    for at in range(given.ready[inbox, 0], given.ready[inbox, 1]):
        key = base | (given.pending[at, 0] + OFFSET)
        if look_up(given.outcome_at, key) < 0:
            _lack(notes, OUTCOMES, key)
            complete = False
        if layout.eager and only < 0:
            first = look_up(given.eager, key)
            if first < 0:
                _lack(notes, FIRSTS, key)
                complete = False
            elif first:
                only = at
    if given.client[local] & 1 and look_up(given.outcome_at, base | SENDS) < 0:
        _lack(notes, OUTCOMES, base | SENDS)
        complete = False
    for k in range(len(layout.unasked)):
        if look_up(given.outcome_at, base | layout.unasked[k, 0]) < 0:
            _lack(notes, OUTCOMES, base | layout.unasked[k, 0])
            complete = False
    return complete, only


@compiled
def _fill(
    index: Whole, here: Whole, layout: Layout, given: Given, made: Made, notes: Notes
) -> bool:
    """Put together the moves of a station; False if something is missing for it."""
    local, inbox = made.places[index, here, 0], made.places[index, here, 1]
    complete, only = _known(local, inbox, layout, given, notes)
    if not complete:
        return False
    made.stations[index, here, FIRST] = notes.counts[MOVES]
    made.stations[index, here, EAGER] = only >= 0
    base = np.int64(local) << EVENT_BITS
    for k in range(len(layout.unasked) + 1 if only < 0 else 0):
        event, cost = np.int64(SENDS), np.int64(0)
        if k < len(layout.unasked):
            event, cost = layout.unasked[k, 0], layout.unasked[k, 1]
        elif not given.client[local] & 1:
            continue
        packed = look_up(given.outcome_at, base | event)
        for o in range(packed >> 16, (packed >> 16) + (packed & 0xFFFF)):
            there = station(index, given.outcomes[o, 0], inbox, given, made, notes)
            _move(there, o, cost, index, given, made, notes)
    for at in range(given.ready[inbox, 0], given.ready[inbox, 1]):
        if only >= 0 and at != only:
            continue
        rest = given.pending[at, 1]
        packed = look_up(given.outcome_at, base | (given.pending[at, 0] + OFFSET))
        outcomes = 1 if only >= 0 else packed & 0xFFFF
        for o in range(packed >> 16, (packed >> 16) + outcomes):
            local_then = given.outcomes[o, 0]
            there = station(index, local_then, rest, given, made, notes)
            _move(there, o, 0, index, given, made, notes)
            if layout.duplicates:
                there = station(index, local_then, inbox, given, made, notes)
                _move(there, o, 4, index, given, made, notes)
        if layout.loss:
            there = station(index, local, rest, given, made, notes)
            _move(there, -1, 2, index, given, made, notes)
    made.stations[index, here, LAST] = notes.counts[MOVES]
    return True


@compiled
def _arrival(index: Whole, here: Whole, bundle: Whole) -> Whole:
    return (np.int64(index) << 31 | here) << EVENT_BITS | bundle


@compiled
def _arrives(
    index: Whole, here: Whole, bundle: Whole, given: Given, made: Made, notes: Notes
) -> Whole:
    """The station after a bundle has arrived, entered in `arrivals`; -1 if that is not known."""
    key = np.int64(made.places[index, here, 1]) << EVENT_BITS | bundle
    inbox = look_up(given.added, key)
    if inbox < 0:
        _lack(notes, ADDED, key)
        return -1
    there = station(index, made.places[index, here, 0], inbox, given, made, notes)
    put(made.arrivals, _arrival(index, here, bundle), there)
    notes.counts[ARRIVALS] += 1
    return there


@compiled
def run(
    todo: Longs,
    at: int,
    states: Longs,
    count: int,
    slots: Longs,
    layout: Layout,
    given: Given,
    made: Made,
    notes: Notes,
    found: Longs,
    met: Longs,
) -> tuple[int, int, int]:
    """Expand todo[at:]. Returns why it stopped, where, and how many states there are."""
    shifts, masks, top, after = layout.shifts, layout.masks, layout.top, layout.after
    stations, moves, arrivals, numbers = made.stations, made.moves, made.arrivals, made.numbers
    outcomes, counts, special = given.outcomes, notes.counts, notes.special
    n = len(numbers)
    room = min(len(states), len(slots) * 5 // 8)
    why = DONE
    while why == DONE and at < len(todo):
        successors = 0
        while at < len(todo) and successors + MARGIN <= len(found):
            if count + successors + MARGIN > room:
                why = ROOM
            elif (
                counts[MISSING] + 256 > len(notes.missing)
                or counts[DEFERRED] >= len(notes.deferred)
                or counts[ENDED] >= len(notes.ended)
                or counts[SPECIAL] + 2 * MARGIN > len(special)
            ):
                why = LISTS
            elif (
                counts[STATIONS] + MARGIN > len(made.station_at) // 2
                or counts[MOVES] + MARGIN > len(moves)
                or counts[ARRIVALS] + MARGIN > len(arrivals) // 2
            ):
                why = TABLES
            for i in range(n):
                if numbers[i] + MARGIN // 4 > masks[i]:
                    why = BITS
                elif numbers[i] + MARGIN > stations.shape[1]:
                    why = TABLES
            if why != DONE:
                break
            state = todo[at]
            at += 1
            phase = state >> top
            complete = True
            only = -1
            for i in range(n):
                here = (state >> shifts[i]) & masks[i]
                if stations[i, here, FIRST] < 0 and not _fill(i, here, layout, given, made, notes):
                    complete = False
                elif stations[i, here, EAGER] and only < 0:
                    only = i
            # A state is done as a whole or again: nothing counts until it is complete.
            end = successors
            taken = 0
            wrong = counts[SPECIAL]
            if complete:
                for i in range(n):
                    if only >= 0 and i != only:
                        continue
                    here = (state >> shifts[i]) & masks[i]
                    for move in range(stations[i, here, FIRST], stations[i, here, LAST]):
                        then_phase = after[phase, moves[move, COST]]
                        if then_phase < 0:
                            continue
                        taken += 1
                        there = np.int64(moves[move, THERE])
                        if there == OVER:
                            continue
                        if there == WRONG:
                            special[wrong] = state
                            special[wrong + 1] = np.int64(i) << 32 | moves[move, OUTCOME]
                            wrong += 2
                            continue
                        then = (
                            state
                            + ((there - here) << shifts[i])
                            + ((np.int64(then_phase) - phase) << top)
                        )
                        first, last = moves[move, RECEIVER], moves[move, RECEIVER] + 1
                        if first == NOBODY:
                            last = first
                        elif first == SEVERAL:
                            first, last = 0, n
                        for j in range(first, last):
                            bundle = moves[move, BUNDLE]
                            if last - first > 1:
                                bundle = outcomes[moves[move, OUTCOME], 2 + j]
                                if bundle < 0:
                                    continue
                            # What goes to oneself comes on top of the move.
                            target = (then >> shifts[j]) & masks[j]
                            arrived = look_up(arrivals, _arrival(j, target, bundle))
                            if arrived < 0:
                                arrived = _arrives(j, target, bundle, given, made, notes)
                            if arrived < 0:
                                complete = False
                            else:
                                then += (arrived - target) << shifts[j]
                        if layout.prune and not then_phase & 1:
                            hot = False
                            for j in range(n):
                                if stations[j, (then >> shifts[j]) & masks[j], HOT]:
                                    hot = True
                                    break
                            if not hot:
                                continue
                        found[end] = then
                        end += 1
            if not complete:
                notes.deferred[counts[DEFERRED]] = state
                counts[DEFERRED] += 1
                continue
            successors = end
            counts[SPECIAL] = wrong
            counts[TRANSITIONS] += taken
            if taken == 0:
                notes.ended[counts[ENDED]] = state
                counts[ENDED] += 1
        count = _enter(slots, states, count, found, met, successors)
    return why, at, count
