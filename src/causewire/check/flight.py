"""Messages in flight: a table of copies, and a ring for each pair of processes.

**Copies.** A copy is one message for one destination; it is in flight from the send to
its delivery there. A *slot* is a small number that stands for a message from its send to
the delivery of its last copy, and for another message after that. A hash table with
chains finds the slot of a copy from (origin, mid, destination); in a chain, finding a
copy and taking it out touches little more than the copy itself. The table is used for
messages that cannot be overtaken in the eyes of the kernel at hand: those of origins
outside of its block, and those sent beyond the end of a stretch (`stretches.py`). All
others are found in their places.

**Places.** A place holds the slots of everything in flight from one process to another,
in the order of sending. Most pairs have at most one message in flight; the others have a
ring of capacity 4, 8, 16, ... in a pool, which is recycled when it is empty. A ring is
sorted, so bisection finds how many of its messages have at most a given number: a
message that is lost for good, and overtaken by every later one, costs no more in a long
trace than in a short one. A place is

    -1        nothing is in flight
    -2 - s    one message, in slot s
    r >= 0    the ring that begins at r in the pool.
"""

from __future__ import annotations

import numpy as np

from .._compiled import Longs, Words, compiled

__all__ = [
    "CLASSES",
    "COPY_FIELDS",
    "SLOT",
    "add_copy",
    "find",
    "find_copy",
    "latest",
    "number_up_to",
    "pull",
    "push",
    "rechain",
    "slot_at",
    "take_copy",
]

# Fields of a copy; NEXT is the one after it in its chain.
MID, PAIR, SLOT, NEXT = range(4)
COPY_FIELDS = 4

# A ring in the pool: its size class, where it starts, how many it holds; then
# room for 4 << class slots. The array `empty` has for each size class the rings
# that are free, a chain through their starts (-1: none), and at the end where
# the unused part of the pool begins.
CLASS, START, COUNT, HEADER = range(4)
CLASSES = 26

# -- the table --------------------------------------------------------------------

_MULTIPLY = np.uint64(0x9E3779B97F4A7C15)
_AGAIN = np.uint64(0xD6E8FEB86659FD93)
_HIGH = np.uint64(32)


@compiled(inline=True)
def _chain(heads: Words, mid: int, pair: int) -> int:
    mixed = (np.uint64(mid) * _MULTIPLY ^ np.uint64(pair)) * _AGAIN
    return int(np.int64(mixed >> _HIGH)) & (len(heads) - 1)


@compiled(inline=True)
def find_copy(heads: Words, copies: Longs, mid: int, pair: int) -> int:
    """The copy, or -1; `pair` is origin << 32 | destination."""
    k = int(heads[_chain(heads, mid, pair)])
    while k >= 0 and (copies[k, MID] != mid or copies[k, PAIR] != pair):
        k = int(copies[k, NEXT])
    return k


@compiled(inline=True)
def add_copy(heads: Words, copies: Longs, k: int, mid: int, pair: int, slot: int) -> None:
    """Put a copy that is not there yet into the unused place k."""
    chain = _chain(heads, mid, pair)
    copies[k, MID] = mid
    copies[k, PAIR] = pair
    copies[k, SLOT] = slot
    copies[k, NEXT] = heads[chain]
    heads[chain] = k


@compiled(inline=True)
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


@compiled(inline=True)
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


@compiled(inline=True)
def _free_ring(pool: Words, empty: Words, ring: int) -> None:
    size = pool[ring + CLASS]
    pool[ring + START] = empty[size]
    empty[size] = ring


@compiled(inline=True)
def slot_at(pool: Words, place: int, k: int) -> int:
    """The k-th slot in flight at this place."""
    if place < 0:
        return -2 - place
    mask = (4 << pool[place + CLASS]) - 1
    return int(pool[place + HEADER + ((pool[place + START] + k) & mask)])


@compiled(inline=True)
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


@compiled(inline=True)
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


@compiled(inline=True)
def _append(pool: Words, ring: int, slot: int) -> None:
    mask = (4 << pool[ring + CLASS]) - 1
    count = pool[ring + COUNT]
    pool[ring + HEADER + ((pool[ring + START] + count) & mask)] = slot
    pool[ring + COUNT] = count + 1


@compiled(inline=True)
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


@compiled(inline=True)
def latest(pool: Words, place: int) -> int:
    """The slot of the latest message where there is one."""
    return -2 - place if place < 0 else slot_at(pool, place, pool[place + COUNT] - 1)


@compiled(inline=True)
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
