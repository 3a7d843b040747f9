"""The inner loop of a search, compiled: it knows numbers, and no protocol.

Everything lies in flat arrays. From outside come (`library`)

    what an event does to a local state     `outcomes`, by (local state, event)
    what may be taken from an inbox         `ready`, by inbox
    what arrives in an inbox                `added`, by (inbox, bundle)

and the kernel puts these together to stations, and to the moves from each, as it
meets them. What it lacks it writes down, with the state that needs it, and goes
on with the next; when the tables have been filled, those states are done again.

A table by keys is a pair of arrays, keys and values, with open addressing; keys
are not negative, and -1 marks a free slot. States lie in the order in which they
were found, which is breadth first, so their list is the queue; a set over them,
one word for each slot, tells which are known.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias, TypeVar, cast

import numba
import numpy as np
import numpy.typing as npt

__all__ = [
    "BITS",
    "DONE",
    "EVENT_BITS",
    "LISTS",
    "OVER",
    "ROOM",
    "TABLES",
    "WRONG",
    "Int8s",
    "Ints",
    "Longs",
    "look_up",
    "put",
    "put_state",
    "rehash",
    "rehash_states",
    "run",
]

F = TypeVar("F", bound=Callable[..., Any])

Int8s = npt.NDArray[np.int8]
Ints = npt.NDArray[np.int32]
Longs = npt.NDArray[np.int64]

Whole: TypeAlias = Any
"""An integer, of Python or of some width: the compiler tells them apart."""

EVENT_BITS = 24
"""Events and bundles are below two to this."""

# What the kernel came back for.
DONE, ROOM, LISTS, TABLES, BITS = range(5)

# In place of a local state: nothing to follow up.
OVER, WRONG = -1, -2

# Places in `counts`.
STATIONS, MOVES, ARRIVALS, MISSING, DEFERRED, ENDED, SPECIAL, TRANSITIONS = range(8)

# Kinds of what is missing.
OUTCOMES, READY, ADDED, EAGER = range(4)

_MARGIN = 4096


def _compiled(function: F) -> F:
    try:
        return cast(F, numba.njit(cache=True)(function))
    except RuntimeError:  # no place on this machine where a cache may be kept
        return cast(F, numba.njit(function))


@_compiled
def _slot(key: Whole, mask: Whole) -> Whole:
    x = np.uint64(key)
    x = (x ^ (x >> np.uint64(29))) * np.uint64(0x9E3779B97F4A7C15)
    return np.int64((x >> np.uint64(32)) & np.uint64(mask))


@_compiled
def look_up(keys: Longs, values: Longs, key: Whole) -> Whole:
    """The value of a key, -1 if it is not there."""
    mask = len(keys) - 1
    at = _slot(key, mask)
    while True:
        known = keys[at]
        if known == key:
            return values[at]
        if known < 0:
            return -1
        at = (at + 1) & mask


@_compiled
def put(keys: Longs, values: Longs, key: Whole, value: Whole) -> None:
    """Enter a key that is not there."""
    mask = len(keys) - 1
    at = _slot(key, mask)
    while keys[at] >= 0:
        at = (at + 1) & mask
    keys[at] = key
    values[at] = value


@_compiled
def rehash(keys: Longs, values: Longs, old_keys: Longs, old_values: Longs) -> None:
    """Enter everything that is in the old arrays."""
    for at in range(len(old_keys)):
        if old_keys[at] >= 0:
            put(keys, values, old_keys[at], old_values[at])


@_compiled
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


@_compiled
def rehash_states(slots: Longs, states: Longs, count: int) -> None:
    for k in range(count):
        put_state(slots, states[k])


@_compiled
def _lack(missing: Longs, counts: Longs, kind: int, key: Whole) -> None:
    if counts[MISSING] < len(missing):
        missing[counts[MISSING]] = np.int64(kind) << 60 | key
        counts[MISSING] += 1


@_compiled
def _station(
    index: Whole,
    local: Whole,
    inbox: Whole,
    stations: Ints,
    station_keys: Longs,
    station_values: Longs,
    numbers: Ints,
    numbered: Ints,
    client: Int8s,
    ready: Ints,
    counts: Longs,
) -> Whole:
    """The station of a local state and an inbox, made if need be.

    `stations` has local state, inbox, first and last move, whether one goes first,
    the number among the stations of its process, and whether it is hot; `numbers`
    leads back from that number.
    """
    key = np.int64(local) << 31 | inbox
    k = look_up(station_keys, station_values, key)
    if k < 0:
        k = counts[STATIONS]
        counts[STATIONS] += 1
        put(station_keys, station_values, key, k)
        stations[k, 0] = local
        stations[k, 1] = inbox
        stations[k, 2] = -1
        stations[k, 4] = 0
        stations[k, 5] = numbers[index]
        heat = ready[inbox, 2]
        hot = client[local] & 4 or heat & 1 or (heat & 2 and client[local] & 2)
        stations[k, 6] = 1 if hot else 0
        numbered[index, numbers[index]] = k
        numbers[index] += 1
    return k


@_compiled
def _fill(
    index: Whole,
    here: Whole,
    stations: Ints,
    station_keys: Longs,
    station_values: Longs,
    numbers: Ints,
    numbered: Ints,
    moves: Ints,
    outcome_keys: Longs,
    outcome_values: Longs,
    outcomes: Ints,
    client: Int8s,
    ready: Ints,
    pending: Ints,
    eager_keys: Longs,
    eager_values: Longs,
    faults: Ints,
    missing: Longs,
    counts: Longs,
) -> bool:
    """Put together the moves of a station; False if something is missing for it.

    A move is the station it leads to, its outcome and its cost.
    """
    local, inbox = stations[here, 0], stations[here, 1]
    if ready[inbox, 0] < 0:
        _lack(missing, counts, READY, np.int64(inbox))
        return False
    complete = True
    only = -1
    base = np.int64(local) << EVENT_BITS
    sends, ticks = client[local] & 1, faults[0] > 0
    for at in range(ready[inbox, 0], ready[inbox, 1]):
        key = base | (pending[at, 0] + 2)
        if look_up(outcome_keys, outcome_values, key) < 0:
            _lack(missing, counts, OUTCOMES, key)
            complete = False
        if faults[3] and only < 0:
            first = look_up(eager_keys, eager_values, key)
            if first < 0:
                _lack(missing, counts, EAGER, key)
                complete = False
            elif first:
                only = at
    if sends and look_up(outcome_keys, outcome_values, base | 1) < 0:
        _lack(missing, counts, OUTCOMES, base | 1)
        complete = False
    if ticks and look_up(outcome_keys, outcome_values, base) < 0:
        _lack(missing, counts, OUTCOMES, base)
        complete = False
    if not complete:
        return False
    start = counts[MOVES]
    k = start
    if only < 0 and (sends or ticks):
        for event in range(2):
            if (event == 1 and sends) or (event == 0 and ticks):
                packed = look_up(outcome_keys, outcome_values, base | event)
                for o in range(packed >> 16, (packed >> 16) + (packed & 0xFFFF)):
                    there = outcomes[o, 0]
                    moves[k, 0] = there
                    if there >= 0:
                        moves[k, 0] = _station(
                            index, there, inbox, stations, station_keys, station_values,
                            numbers, numbered, client, ready, counts,
                        )  # fmt: skip
                    moves[k, 1] = o
                    moves[k, 2] = outcomes[o, 1] | (8 if event == 0 else 0)
                    k += 1
    for at in range(ready[inbox, 0], ready[inbox, 1]):
        if only >= 0 and at != only:
            continue
        rest = pending[at, 1]
        packed = look_up(outcome_keys, outcome_values, base | (pending[at, 0] + 2))
        upto = (packed >> 16) + (packed & 0xFFFF)
        if only >= 0:
            upto = (packed >> 16) + 1
        for o in range(packed >> 16, upto):
            there = outcomes[o, 0]
            moves[k, 0] = there
            if there >= 0:
                moves[k, 0] = _station(
                    index, there, rest, stations, station_keys, station_values,
                    numbers, numbered, client, ready, counts,
                )  # fmt: skip
            moves[k, 1] = o
            moves[k, 2] = outcomes[o, 1]
            k += 1
            if faults[2] > 0:
                moves[k, 0] = there
                if there >= 0:
                    moves[k, 0] = _station(
                        index, there, inbox, stations, station_keys, station_values,
                        numbers, numbered, client, ready, counts,
                    )  # fmt: skip
                moves[k, 1] = o
                moves[k, 2] = outcomes[o, 1] | 4
                k += 1
        if faults[1] > 0:
            moves[k, 0] = _station(
                index, local, rest, stations, station_keys, station_values,
                numbers, numbered, client, ready, counts,
            )  # fmt: skip
            moves[k, 1] = -1
            moves[k, 2] = 2
            k += 1
    counts[MOVES] = k
    stations[here, 2], stations[here, 3] = start, k
    stations[here, 4] = only >= 0
    return True


@_compiled
def _arrives(
    index: Whole,
    there: Whole,
    bundle: Whole,
    stations: Ints,
    station_keys: Longs,
    station_values: Longs,
    numbers: Ints,
    numbered: Ints,
    arrival_keys: Longs,
    arrival_values: Longs,
    added_keys: Longs,
    added_values: Longs,
    client: Int8s,
    ready: Ints,
    missing: Longs,
    counts: Longs,
) -> Whole:
    """The number of the station after a bundle has arrived, -1 if that is not known."""
    key = np.int64(there) << EVENT_BITS | bundle
    number = look_up(arrival_keys, arrival_values, key)
    if number < 0:
        inbox_key = np.int64(stations[there, 1]) << EVENT_BITS | bundle
        inbox = look_up(added_keys, added_values, inbox_key)
        if inbox < 0:
            _lack(missing, counts, ADDED, inbox_key)
            return -1
        then = _station(
            index, stations[there, 0], inbox, stations, station_keys, station_values,
            numbers, numbered, client, ready, counts,
        )  # fmt: skip
        number = stations[then, 5]
        put(arrival_keys, arrival_values, key, number)
        counts[ARRIVALS] += 1
    return number


@_compiled
def run(
    todo: Longs,
    begin: int,
    states: Longs,
    count: int,
    slots: Longs,
    shifts: Longs,
    masks: Longs,
    top: int,
    after: Ints,
    stations: Ints,
    station_keys: Longs,
    station_values: Longs,
    numbers: Ints,
    numbered: Ints,
    moves: Ints,
    arrival_keys: Longs,
    arrival_values: Longs,
    outcome_keys: Longs,
    outcome_values: Longs,
    outcomes: Ints,
    client: Int8s,
    ready: Ints,
    pending: Ints,
    added_keys: Longs,
    added_values: Longs,
    eager_keys: Longs,
    eager_values: Longs,
    faults: Ints,
    missing: Longs,
    deferred: Longs,
    ended: Longs,
    special: Longs,
    found: Longs,
    counts: Longs,
) -> tuple[int, int, int]:
    """Expand todo[begin:]. Returns why it stopped, where, and how many states there are."""
    n = len(numbers)
    room = min(len(states), len(slots) * 5 // 8) - _MARGIN
    for at in range(begin, len(todo)):
        if count > room:
            return ROOM, at, count
        if (
            counts[MISSING] > len(missing) - 256
            or counts[DEFERRED] >= len(deferred)
            or counts[ENDED] >= len(ended)
            or counts[SPECIAL] > len(special) - 2 * _MARGIN
        ):
            return LISTS, at, count
        if (
            counts[STATIONS] > min(len(stations), len(station_keys) // 2) - _MARGIN
            or counts[MOVES] > len(moves) - _MARGIN
            or counts[ARRIVALS] > len(arrival_keys) // 2 - _MARGIN
        ):
            return TABLES, at, count
        state = todo[at]
        phase = state >> top
        complete = True
        only = -1
        for i in range(n):
            if numbers[i] > masks[i] - _MARGIN // 4:
                return BITS, at, count
            here = numbered[i, (state >> shifts[i]) & masks[i]]
            if stations[here, 2] < 0 and not _fill(
                i, here, stations, station_keys, station_values, numbers, numbered, moves,
                outcome_keys, outcome_values, outcomes, client, ready, pending,
                eager_keys, eager_values, faults, missing, counts,
            ):  # fmt: skip
                complete = False
            elif stations[here, 4] and only < 0:
                only = i
        # First all successors, then the entries: a state is done as a whole or again.
        successors = 0
        taken = 0
        wrong = counts[SPECIAL]
        if complete:
            for i in range(n):
                if only >= 0 and i != only:
                    continue
                number = (state >> shifts[i]) & masks[i]
                here = numbered[i, number]
                for move in range(stations[here, 2], stations[here, 3]):
                    then_phase = after[phase, moves[move, 2]]
                    if then_phase < 0:
                        continue
                    taken += 1
                    there = moves[move, 0]
                    if there == OVER:
                        continue
                    if there == WRONG:
                        special[wrong] = state
                        special[wrong + 1] = np.int64(i) << 32 | moves[move, 1]
                        wrong += 2
                        continue
                    then = (
                        state
                        + ((np.int64(stations[there, 5]) - number) << shifts[i])
                        + ((np.int64(then_phase) - phase) << top)
                    )
                    o = moves[move, 1]
                    if o >= 0:
                        for j in range(n):
                            bundle = outcomes[o, 2 + j]
                            if bundle >= 0:
                                other = (state >> shifts[j]) & masks[j]
                                target = numbered[j, other]
                                if j == i:  # packets to oneself come on top of the move
                                    target = there
                                    other = np.int64(stations[there, 5])
                                arrived = _arrives(
                                    j, target, bundle,
                                    stations, station_keys, station_values, numbers, numbered,
                                    arrival_keys, arrival_values, added_keys, added_values,
                                    client, ready, missing, counts,
                                )  # fmt: skip
                                if arrived < 0:
                                    complete = False
                                else:
                                    then += (arrived - other) << shifts[j]
                    if faults[4] and not then_phase & 1:
                        hot = False
                        for j in range(n):
                            station = numbered[j, (then >> shifts[j]) & masks[j]]
                            hot |= stations[station, 6] == 1
                        if not hot:
                            continue
                    found[successors] = then
                    successors += 1
        if not complete:
            deferred[counts[DEFERRED]] = state
            counts[DEFERRED] += 1
            continue
        counts[SPECIAL] = wrong
        counts[TRANSITIONS] += taken
        for k in range(successors):
            if put_state(slots, found[k]):
                states[count] = found[k]
                count += 1
        if taken == 0:
            ended[counts[ENDED]] = state
            counts[ENDED] += 1
    return DONE, len(todo), count
