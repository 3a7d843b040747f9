"""The compiled loop of the check; `kernel.py` tells what it does and why.

All compiled code of the kernel is in this file: what Numba keeps on disk is
looked up by the file of the function that is called, so a change to a function
compiled into it from elsewhere would go unnoticed.

**Copies.** A copy is one message for one destination; it is in flight from the
send to its delivery there. A *slot* is a small number that stands for a message
from its send to the delivery of its last copy, and for another one after that.
A table finds the slot of a copy from (origin, mid, destination): hashing with
chains, because in a chain a copy is found, and taken out again, by looking at
little more than itself. It is needed for what cannot be overtaken in the eyes of
this kernel: messages of origins outside of the block, and those sent beyond the
end of a stretch (`stretches.py`). All others are found in their places.

**Places.** For a pair of processes, the slots of all that is in flight from one
to the other, in the order of sending. Most pairs have at most one; others have
a ring, of capacity 4, 8, 16, ..., in a pool, recycled when it is empty. Being
sorted, a ring tells by bisection how many of its messages have at most a certain
number: so a message that is lost for good, and overtaken ever after, costs no
more in a long trace than in a short one. A place is

    -1        nothing is in flight
    -2 - s    one message, in slot s
    r >= 0    the ring that begins at r in the pool.

(The case of one message is dealt with in the loop itself. A function that is
compiled into another and returns from several points counts references to its
arrays, twice for each, and that costs more than all the rest.)

Nothing here allocates. Where there is no room the loop stops, with the row at
hand not begun or such that beginning it again does no harm; its caller makes
room and lets it go on.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from .columns import DELIVER, OTHER, Columns
from .compiled import Clocks, Longs, Words, compiled, inlined

__all__ = ["State", "advance", "rechain"]

# What the loop stopped for.
DONE, ORDER, SLOTS, COPIES, POOL, VERSIONS, ODD, NUMBERS = range(8)

# Why a row was set aside.
UNMATCHED, FOREIGN_SEND = range(2)
ARRIVED = 2  # nothing is wrong with it: beyond the end, something from before it came

# Places in `State.counters`: what is unused, then results.
FREE_SLOTS, FREE_COPIES, FREE_VERSIONS, IN_FLIGHT, SENT, SET_ASIDE, VIOLATIONS, FOUND, EVERY = (
    range(9)
)

# Fields of a copy; NEXT is the one after it in its chain.
MID, PAIR, SLOT, NEXT = range(4)
COPY_FIELDS = 4

# A ring in the pool: its size class, where it starts, how many it holds; then
# room for 4 << class slots. The array `empty` has for each size class the rings
# that are free, a chain through their starts (-1: none), and at the end where
# the unused part of the pool begins.
CLASS, START, COUNT, HEADER = range(4)
CLASSES = 26


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


# -- the table --------------------------------------------------------------------

_MULTIPLY = np.uint64(0x9E3779B97F4A7C15)
_AGAIN = np.uint64(0xD6E8FEB86659FD93)
_HIGH = np.uint64(32)


@inlined
def _chain(heads: Words, mid: int, pair: int) -> int:
    mixed = (np.uint64(mid) * _MULTIPLY ^ np.uint64(pair)) * _AGAIN
    return int(np.int64(mixed >> _HIGH)) & (len(heads) - 1)


@inlined
def find_copy(heads: Words, copies: Longs, mid: int, pair: int) -> int:
    """The copy, or -1; `pair` is origin << 32 | destination."""
    k = int(heads[_chain(heads, mid, pair)])
    while k >= 0 and (copies[k, MID] != mid or copies[k, PAIR] != pair):
        k = int(copies[k, NEXT])
    return k


@inlined
def add_copy(heads: Words, copies: Longs, k: int, mid: int, pair: int, slot: int) -> None:
    """Put a copy that is not there yet into the unused place k."""
    chain = _chain(heads, mid, pair)
    copies[k, MID] = mid
    copies[k, PAIR] = pair
    copies[k, SLOT] = slot
    copies[k, NEXT] = heads[chain]
    heads[chain] = k


@inlined
def take_copy(heads: Words, copies: Longs, mid: int, pair: int) -> int:
    """Take the copy out; returns its place, which is unused now, or -1."""
    chain = _chain(heads, mid, pair)
    k = int(heads[chain])
    if k < 0:
        return k
    if copies[k, MID] == mid and copies[k, PAIR] == pair:
        heads[chain] = copies[k, NEXT]
        return k
    while True:
        before = k
        k = int(copies[k, NEXT])
        if k < 0:
            return k
        if copies[k, MID] == mid and copies[k, PAIR] == pair:
            copies[before, NEXT] = copies[k, NEXT]
            return k


@compiled
def rechain(old: Words, heads: Words, copies: Longs) -> None:
    """Move all copies from the chains of `old` to those of `heads`."""
    for chain in range(old.shape[0]):
        k = int(old[chain])
        while k >= 0:
            after = int(copies[k, NEXT])
            add_copy(heads, copies, k, copies[k, MID], copies[k, PAIR], copies[k, SLOT])
            k = after


# -- rings ------------------------------------------------------------------------


@inlined
def _new_ring(pool: Words, empty: Words, size: int) -> int:
    """A ring of a size class, or -1 if the pool is used up."""
    ring = int(empty[size])
    if ring >= 0:
        empty[size] = pool[ring + START]
    else:
        ring = int(empty[CLASSES])
        if ring + HEADER + (4 << size) > pool.shape[0]:
            return -1
        empty[CLASSES] += HEADER + (4 << size)
    pool[ring + CLASS] = size
    pool[ring + START] = 0
    pool[ring + COUNT] = 0
    return ring


@inlined
def _free_ring(pool: Words, empty: Words, ring: int) -> None:
    size = pool[ring + CLASS]
    pool[ring + START] = empty[size]
    empty[size] = ring


@inlined
def slot_at(pool: Words, place: int, k: int) -> int:
    """The k-th slot in flight at this place."""
    if place < 0:
        return -2 - place
    mask = (4 << pool[place + CLASS]) - 1
    return int(pool[place + HEADER + ((pool[place + START] + k) & mask)])


@inlined
def number_up_to(pool: Words, numbers: Words, place: int, number: int) -> int:
    """How many messages in flight at this place have at most this number."""
    if place < 0:
        return int(place < -1 and numbers[-2 - place] <= number)
    low, high = 0, int(pool[place + COUNT])
    while low < high:
        middle = (low + high) >> 1
        if numbers[slot_at(pool, place, middle)] <= number:
            low = middle + 1
        else:
            high = middle
    return low


@inlined
def find(pool: Words, mids: Longs, ring: int, mid: int, growing: bool) -> int:
    """Which of the messages in a ring has this mid, or -1.

    The first, mostly; then by bisection if mids grow, or from the end.
    """
    if mids[slot_at(pool, ring, 0)] == mid:
        return 0
    high = int(pool[ring + COUNT]) - 1
    if growing:
        low = 1
        while low < high:
            middle = (low + high) >> 1
            if mids[slot_at(pool, ring, middle)] < mid:
                low = middle + 1
            else:
                high = middle
        return high if high > 0 and mids[slot_at(pool, ring, high)] == mid else -1
    while high > 0 and mids[slot_at(pool, ring, high)] != mid:
        high -= 1
    return high if high > 0 else -1


@inlined
def _append(pool: Words, ring: int, slot: int) -> None:
    mask = (4 << pool[ring + CLASS]) - 1
    count = pool[ring + COUNT]
    pool[ring + HEADER + ((pool[ring + START] + count) & mask)] = slot
    pool[ring + COUNT] = count + 1


@inlined
def push(pool: Words, empty: Words, place: int, slot: int) -> int:
    """Add the latest message where there is one; the new place, or -1 for no room."""
    if place < 0:
        ring = _new_ring(pool, empty, 0)
        if ring >= 0:
            _append(pool, ring, -2 - place)
            _append(pool, ring, slot)
        return ring
    count = pool[place + COUNT]
    size = pool[place + CLASS]
    if count == 4 << size:
        larger = _new_ring(pool, empty, size + 1)
        if larger < 0:
            return -1
        for k in range(count):
            _append(pool, larger, slot_at(pool, place, k))
        _free_ring(pool, empty, place)
        place = larger
    _append(pool, place, slot)
    return place


@inlined
def latest(pool: Words, place: int) -> int:
    """The slot of the latest message where there is one."""
    return -2 - place if place < 0 else slot_at(pool, place, pool[place + COUNT] - 1)


@inlined
def pull(pool: Words, empty: Words, place: int, at: int) -> int:
    """Take the message out of a ring that `find` found; returns the new place."""
    base = place + HEADER
    mask = (4 << pool[place + CLASS]) - 1
    start = int(pool[place + START])
    count = int(pool[place + COUNT]) - 1
    if count == 0:
        _free_ring(pool, empty, place)
        return -1
    if at < count - at:
        for k in range(at, 0, -1):
            pool[base + ((start + k) & mask)] = pool[base + ((start + k - 1) & mask)]
        pool[place + START] = (start + 1) & mask
    else:
        for k in range(at, count):
            pool[base + ((start + k) & mask)] = pool[base + ((start + k + 1) & mask)]
    pool[place + COUNT] = count
    return place


# -- clocks ----------------------------------------------------------------------


@inlined
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
