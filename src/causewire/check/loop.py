"""The compiled loop of the check, row by row; `kernel.py` says what it computes and why.

Nothing here allocates. When there is no room left, the loop stops before the row at
hand, or at a point where starting the row again does no harm; its caller makes room and
calls it again. What is in flight is kept by the functions of `flight.py`.

A small function that is compiled into another and returns from several points makes
Numba count references to its arrays, twice for each, and that costs more than all the
rest. That is why the most frequent case, a single message in flight, is handled in the
loop itself.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from .._compiled import Clocks, Longs, Words, compiled
from .columns import DELIVER, OTHER, Columns
from .flight import (
    SLOT,
    add_copy,
    find,
    find_copy,
    latest,
    number_up_to,
    pull,
    push,
    slot_at,
    take_copy,
)

__all__ = ["State", "advance", "never"]

# What the loop stopped for.
DONE, ORDER, SLOTS, COPIES, POOL, VERSIONS, ODD, NUMBERS = range(8)

# Why a row was set aside.
UNMATCHED, FOREIGN_SEND = range(2)
ARRIVED = 2  # nothing is wrong with it: beyond the end, something from before it came

# Places in `State.counters`: what is unused, then results.
FREE_SLOTS, FREE_COPIES, FREE_VERSIONS, IN_FLIGHT, SENT, SET_ASIDE, VIOLATIONS, FOUND, EVERY = (
    range(9)
)


def never(table: Clocks) -> int:
    """Lowest number in flight where nothing is: the greatest that the table can hold."""
    return int(np.iinfo(table.dtype).max)


class State(NamedTuple):
    """Everything that is kept from row to row."""

    # of each process
    seq: Longs  # its last row
    mid: Longs  # its last message
    number: Words  # how many it sent
    current: Words  # its clock, a version
    lane: Words  # where in clocks it is as an origin; -1 if it is not in the block
    # of each lane
    origin: Words  # whose it is
    # of each process and origin
    low: Clocks  # the lowest number in flight
    place: Words  # what is in flight; see above
    pool: Words
    empty: Words
    # of each version
    clock: Clocks
    shared: Words  # how many refer to it
    free_versions: Words  # a stack
    # of each slot
    slot_version: Words  # the clock at the send
    slot_number: Words
    slot_copies: Words  # in flight
    slot_mid: Longs
    slot_sent: Longs  # the position of the send
    slot_shown: Words  # whether there is an example with it
    free_slots: Words  # a stack
    # copies in flight
    heads: Words
    copies: Longs
    free_copies: Words  # a stack
    # results
    odd: Longs
    found: Longs
    counters: Longs


# -- clocks ----------------------------------------------------------------------


@compiled(inline=True)
def _merge(
    clock: Clocks, low: Clocks, theirs: int, mine: int, result: int, d: int, lanes: int
) -> bool:
    """The maximum of two clocks; whether theirs knows of something in flight to d.

    Indexed by row and lane: to make a view of a row costs more than to merge
    a hundred lanes.
    """
    ahead = False
    for i in range(lanes):
        known = clock[theirs, i]
        clock[result, i] = max(known, clock[mine, i])
        ahead |= low[d, i] <= known
    return ahead


@compiled
def _overtaken(s: State, c: Columns, t: int, position: int, slot: int, lanes: int) -> None:
    """Count what the delivery of row t overtook, and keep examples."""
    d = c.process[t]
    theirs = s.slot_version[slot]
    for i in range(lanes):
        known = s.clock[theirs, i]
        if s.low[d, i] > known:
            continue
        place = int(s.place[d, i])
        overtaken = number_up_to(s.pool, s.slot_number, place, known)
        s.counters[VIOLATIONS] += overtaken
        k = 0
        while k < overtaken and s.counters[FOUND] < s.found.shape[0]:
            first = slot_at(s.pool, place, k)
            k += 1
            if s.slot_shown[first] and not s.counters[EVERY]:
                continue
            s.slot_shown[first] = 1
            row = s.counters[FOUND]
            s.counters[FOUND] = row + 1
            s.found[row, 0] = position + t
            s.found[row, 1] = d
            s.found[row, 2] = c.seq[t]
            s.found[row, 3] = c.origin[t]
            s.found[row, 4] = c.mid[t]
            s.found[row, 5] = s.slot_sent[slot]
            s.found[row, 6] = s.origin[i]
            s.found[row, 7] = s.slot_mid[first]
            s.found[row, 8] = s.slot_sent[first]


@compiled
def _set_aside(s: State, c: Columns, t: int, position: int, why: int) -> None:
    k = s.counters[SET_ASIDE]
    s.counters[SET_ASIDE] = k + 1
    s.odd[k, 0] = position + t
    s.odd[k, 1] = c.process[t]
    s.odd[k, 2] = c.seq[t]
    s.odd[k, 3] = c.origin[t]
    s.odd[k, 4] = c.mid[t]
    s.odd[k, 5] = why


@compiled
def advance(
    s: State,
    c: Columns,
    start: int,
    position: int,
    lanes: int,
    growing: bool,
    beyond: bool,
    nowhere: int,
) -> tuple[int, int]:
    """Go on from row `start`; returns the row at which it stopped, and what for.

    `lanes` is how many origins the block has, padded. `beyond` says that the rows
    are beyond the end of a stretch; `nowhere` is `never` of the tables. A row is
    either taken completely or, when there is no room, not at all.
    """
    # Local names, so that the loop does not count references to the arrays.
    kinds, processes, seqs, origins, mids = c.kind, c.process, c.seq, c.origin, c.mid
    firsts, peers = c.first, c.peers
    last_seq, last_mid, last_number, current = s.seq, s.mid, s.number, s.current
    lane_of = s.lane
    low, places, pool, empty = s.low, s.place, s.pool, s.empty
    clock, shared, free_versions = s.clock, s.shared, s.free_versions
    slot_version, slot_number, slot_copies = s.slot_version, s.slot_number, s.slot_copies
    slot_mid, slot_sent, slot_shown, free_slots = (
        s.slot_mid,
        s.slot_sent,
        s.slot_shown,
        s.free_slots,
    )
    heads, copies, free_copies = s.heads, s.copies, s.free_copies
    odd, counters = s.odd, s.counters
    slots_left, copies_left = counters[FREE_SLOTS], counters[FREE_COPIES]
    versions_left, in_flight = counters[FREE_VERSIONS], counters[IN_FLIGHT]
    why = DONE
    t = start
    while t < kinds.shape[0]:
        kind = kinds[t]
        if kind == OTHER:
            t += 1
            continue
        p = processes[t]
        if seqs[t] <= last_seq[p]:
            why = ORDER
            break
        mid = mids[t]
        origin = int(origins[t])
        lane = int(lane_of[origin])
        ours = lane >= 0

        if kind == DELIVER:
            if versions_left == 0:
                why = VERSIONS
                break
            slot, at, place = -1, -1, -1
            if ours:
                place = int(places[p, lane])
                if place >= 0:
                    at = find(pool, slot_mid, place, mid, growing)
                    if at >= 0:
                        slot = slot_at(pool, place, at)
                elif place < -1 and slot_mid[-2 - place] == mid:
                    slot = -2 - place
            placed = slot >= 0
            if placed:
                if beyond:
                    if counters[SET_ASIDE] == odd.shape[0]:
                        why = ODD
                        break
                    _set_aside(s, c, t, position, ARRIVED)
            elif beyond or not ours:
                copy = take_copy(heads, copies, mid, origin << 32 | p)
                if copy >= 0:
                    slot = int(copies[copy, SLOT])
                    free_copies[copies_left] = copy
                    copies_left += 1
            if slot < 0:
                if not beyond:
                    if counters[SET_ASIDE] == odd.shape[0]:
                        why = ODD
                        break
                    _set_aside(s, c, t, position, UNMATCHED)
                last_seq[p] = seqs[t]
                t += 1
                continue
            number = slot_number[slot]
            theirs = slot_version[slot]
            versions_left -= 1
            result = free_versions[versions_left]
            mine = current[p]
            # The message itself is in flight yet, which does no harm: its number
            # is more than its clock has in that lane. Loads before stores, as a
            # vector cannot be loaded at once if part of it was just stored.
            ahead = _merge(clock, low, theirs, mine, result, p, lanes)
            if ours:
                ahead |= low[p, lane] < number
                if placed:
                    lowest = nowhere
                    if place >= 0:
                        place = pull(pool, empty, place, at)
                        if place >= 0:
                            lowest = slot_number[slot_at(pool, place, 0)]
                    else:
                        place = -1
                    places[p, lane] = place
                    low[p, lane] = lowest
                clock[result, lane] = max(clock[result, lane], number)
            if ahead:
                own = np.int32(0)
                if ours:
                    own = clock[theirs, lane]
                    clock[theirs, lane] = number - 1
                _overtaken(s, c, t, position, slot, lanes)
                if ours:
                    clock[theirs, lane] = own
            current[p] = result
            shared[result] = 1
            shared[mine] -= 1
            if shared[mine] == 0:
                free_versions[versions_left] = mine
                versions_left += 1
            in_flight -= 1
            slot_copies[slot] -= 1
            if slot_copies[slot] == 0:
                free_slots[slots_left] = slot
                slots_left += 1
                shared[theirs] -= 1
                if shared[theirs] == 0:
                    free_versions[versions_left] = theirs
                    versions_left += 1

        elif origin == p:
            if growing and mid <= last_mid[p]:
                why = ORDER
                break
            if slots_left == 0:
                why = SLOTS
                break
            slot = int(free_slots[slots_left - 1])
            number = np.int32(last_number[p] + 1)
            if number >= nowhere:
                why = NUMBERS
                break
            count = 0
            if ours and not beyond:
                for k in range(firsts[t], firsts[t + 1]):
                    d = peers[k]
                    place = int(places[d, lane])
                    if place == -1:
                        places[d, lane] = -2 - slot
                        low[d, lane] = number
                    elif latest(pool, place) != slot:
                        place = push(pool, empty, place, slot)
                        if place == -1:
                            why = POOL
                            break
                        places[d, lane] = place
                    else:
                        continue  # named twice, or begun before
                    slot_copies[slot] += 1
                if why != DONE:
                    break
                count = int(slot_copies[slot])
                slot_mid[slot] = mid
                slot_shown[slot] = 0
            else:
                if firsts[t + 1] - firsts[t] > copies_left:
                    why = COPIES
                    break
                for k in range(firsts[t], firsts[t + 1]):
                    pair = origin << 32 | peers[k]
                    if count > 0 and find_copy(heads, copies, mid, pair) >= 0:
                        continue  # named twice
                    copies_left -= 1
                    add_copy(heads, copies, free_copies[copies_left], mid, pair, slot)
                    count += 1
                slot_copies[slot] = count
            last_mid[p] = mid
            last_number[p] = number
            counters[SENT] += 1
            if count > 0:
                in_flight += count
                slots_left -= 1
                slot_number[slot] = number
                slot_sent[slot] = position + t
                slot_version[slot] = current[p]
                shared[current[p]] += 1

        elif not beyond:
            if counters[SET_ASIDE] == odd.shape[0]:
                why = ODD
                break
            _set_aside(s, c, t, position, FOREIGN_SEND)
        last_seq[p] = seqs[t]
        t += 1
    counters[FREE_SLOTS] = slots_left
    counters[FREE_COPIES] = copies_left
    counters[FREE_VERSIONS] = versions_left
    counters[IN_FLIGHT] = in_flight
    return t, why
