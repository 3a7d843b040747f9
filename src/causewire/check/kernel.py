"""Is every delivery in causal order? Clocks for a block of origins, one pass.

**The question.** Message a happened before message b if there is a chain of
sends and deliveries from the send of a to the send of b (Almeida, section 4.1:
only causal sends and deliveries count). A trace is causally ordered if, wherever
both are addressed, a is delivered before b. A *violation* is a triple

    (a, b, d):  a happened before b, both are addressed to d, and d delivered b
                when it had not delivered a (it may do so later, or never).

Only the first delivery of b at d counts (a second is a duplicate, not another
violation), and there is nothing to violate where b is not delivered.

**The decomposition.** Number the messages of each origin i in the order of
sending. All of i's messages that happened before an event are known from one
number, the latest of them: K[i]. It travels with the maximum along the rows of
a process and from a send to the deliveries. So (a, b, d) with a from i is a
violation exactly if a's number is at most K[i] at the send of b, and a is among
the undelivered messages from i to d. Different origins do not touch each other:
a block of them can be checked alone, with clocks that are just as wide, and
violations of different blocks are different violations.

**State.** For all processes and the block's origins: the clock, and the lowest
number that is undelivered (`low`). Per delivery there is one loop over the
block: take the maximum of two clocks, compare one of them with `low`. Nothing
is found in it, in a good trace; what is found costs extra.

    Clocks are versions, and versions are shared. A process changes its clock
    only when it delivers, so all that it sends in between refers to the same
    version, and a delivery writes a new one only if the old one is referred to.
    A version is recycled when the last message that refers to it is delivered.
    (A process's own entry is not kept up to date in its versions: a message
    has its own number to put there, minus one for what happened before it.)
    Version 0 is the clock of those who have delivered nothing yet.

    Undelivered messages from i to d are a sorted ring of slots, of capacity 4,
    8, 16, ...; rings that become empty are recycled. Being sorted, it tells by
    bisection how many messages have been overtaken, so a message that is lost
    for good costs no more in a long trace than in a short one.

The state grows with what is in flight, and with nothing else; it starts small
and doubles when the compiled loop comes back and asks for more.
"""

from __future__ import annotations

from typing import Any, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from .columns import SEND, Columns
from .compiled import Longs, Words, compiled
from .match import Matched, Matcher

__all__ = ["FOUND_FIELDS", "Kernel"]

I = TypeVar("I", bound=np.integer[Any])

# What the compiled loop stopped for.
_DONE, _VERSIONS, _POOL = range(3)

FOUND_FIELDS = (
    "position",  # of the delivery
    "process",  # d, where it happened
    "seq",  # of the delivery
    "origin",  # of b, the message delivered
    "mid",
    "sent",  # position of b's send
    "first_origin",  # of a, the message overtaken
    "first_mid",
    "first_sent",  # position of a's send
)
"""Columns of the array of violations found."""

_NEVER = np.iinfo(np.int32).max
_LANES = 16  # clocks are padded to full vectors of this many numbers

# Places in the array of counters.
_FREE, _VIOLATIONS, _FOUND, _EVERY = range(4)

# A ring in the pool: its size class, where it starts, how many it holds; then
# room for 4 << class slots.
_CLASS, _START, _COUNT, _HEADER = range(4)
_CLASSES = 26


class _State(NamedTuple):
    versions: Words  # clocks: a row for each version, a column for each origin
    shared: Words  # of each version: how many refer to it
    free: Words  # a stack of versions that are free
    current: Words  # of each process: its version
    low: Words  # of each process and origin: the lowest undelivered number
    ring: Words  # of each process and origin: where in the pool, or -1
    pool: Words
    empty: Words  # of each size class: a chain of rings that are free, or -1; the rest
    version: Words  # of each slot: the clock at the send
    number: Words  # of each slot: the number at the origin
    mid: Longs
    sent: Longs  # of each slot: the position of the send
    shown: Words  # of each slot: whether there is an example with it
    found: Longs
    counters: Longs


@compiled
def _new_ring(pool: Words, empty: Words, size: int) -> int:
    """A ring of a size class, or -1 if the pool is used up.

    The last entry of `empty` is where the pool's unused part begins.
    """
    ring = empty[size]
    if ring >= 0:
        empty[size] = pool[ring + _START]
    else:
        ring = empty[_CLASSES]
        if ring + _HEADER + (4 << size) > pool.shape[0]:
            return np.int32(-1)
        empty[_CLASSES] += _HEADER + (4 << size)
    pool[ring + _CLASS] = size
    pool[ring + _START] = 0
    pool[ring + _COUNT] = 0
    return ring


@compiled
def _free_ring(pool: Words, empty: Words, ring: int) -> None:
    size = pool[ring + _CLASS]
    pool[ring + _START] = empty[size]
    empty[size] = ring


@compiled
def _slot_at(pool: Words, ring: int, k: int) -> int:
    """The k-th slot of a ring."""
    mask = (4 << pool[ring + _CLASS]) - 1
    return pool[ring + _HEADER + ((pool[ring + _START] + k) & mask)]


@compiled
def _up_to(pool: Words, numbers: Words, ring: int, number: int) -> int:
    """How many messages in a ring have at most this number."""
    low, high = 0, np.int64(pool[ring + _COUNT])
    while low < high:
        middle = (low + high) >> 1
        if numbers[_slot_at(pool, ring, middle)] <= number:
            low = middle + 1
        else:
            high = middle
    return low


@compiled
def _push(pool: Words, empty: Words, ring: int, slot: int) -> int:
    """Add a slot at the end; returns the ring, which may be another now.

    -1 if the pool is used up. Adding the same slot again changes nothing: a
    destination may be named twice, and after -1 all is tried again.
    """
    if ring < 0:
        ring = _new_ring(pool, empty, 0)
        if ring < 0:
            return ring
    count = pool[ring + _COUNT]
    if count > 0 and _slot_at(pool, ring, count - 1) == slot:
        return ring
    size = pool[ring + _CLASS]
    if count == 4 << size:
        larger = _new_ring(pool, empty, size + 1)
        if larger < 0:
            return larger
        for k in range(count):
            pool[larger + _HEADER + k] = _slot_at(pool, ring, k)
        _free_ring(pool, empty, ring)
        ring = larger
    mask = (4 << pool[ring + _CLASS]) - 1
    pool[ring + _HEADER + ((pool[ring + _START] + count) & mask)] = slot
    pool[ring + _COUNT] = count + 1
    return ring


@compiled
def _pull(pool: Words, empty: Words, numbers: Words, ring: int, slot: int) -> int:
    """Take a slot out; returns the ring, or -1 if it was the last and is gone."""
    base = ring + _HEADER
    mask = (4 << pool[ring + _CLASS]) - 1
    start = np.int64(pool[ring + _START])
    count = np.int64(pool[ring + _COUNT]) - 1
    if count == 0:
        _free_ring(pool, empty, ring)
        return np.int32(-1)
    at = 0
    if pool[base + start] != slot:
        at = _up_to(pool, numbers, ring, numbers[slot]) - 1
    if at < count - at:
        for k in range(at, 0, -1):
            pool[base + ((start + k) & mask)] = pool[base + ((start + k - 1) & mask)]
        pool[ring + _START] = (start + 1) & mask
    else:
        for k in range(at, count):
            pool[base + ((start + k) & mask)] = pool[base + ((start + k + 1) & mask)]
    pool[ring + _COUNT] = count
    return ring


# Clocks are indexed by row and lane, not through views of their rows: to make
# a view costs more than to merge a hundred lanes.


@compiled
def _merge(
    versions: Words, low: Words, theirs: int, mine: int, result: int, d: int, lanes: int
) -> bool:
    """The maximum of two clocks; whether theirs knows of something undelivered at d."""
    ahead = False
    for i in range(lanes):
        known = versions[theirs, i]
        versions[result, i] = max(known, versions[mine, i])
        ahead |= low[d, i] <= known
    return ahead


@compiled
def _merge_in_place(
    versions: Words, low: Words, theirs: int, mine: int, d: int, lanes: int
) -> bool:
    """The same where nobody else refers to the old clock.

    Apart, because a result that may overlap an operand keeps the compiler from
    using vector instructions.
    """
    ahead = False
    for i in range(lanes):
        known = versions[theirs, i]
        versions[mine, i] = max(known, versions[mine, i])
        ahead |= low[d, i] <= known
    return ahead


@compiled
def _overtaken(s: _State, c: Columns, t: int, position: int, slot: int, lo: int, lanes: int) -> None:
    """Count what the delivery of row t overtook, and keep examples."""
    d = c.process[t]
    theirs = s.version[slot]
    for i in range(lanes):
        if s.low[d, i] > s.versions[theirs, i]:
            continue
        ring = s.ring[d, i]
        overtaken = _up_to(s.pool, s.number, ring, s.versions[theirs, i])
        s.counters[_VIOLATIONS] += overtaken
        k = 0
        while k < overtaken and s.counters[_FOUND] < s.found.shape[0]:
            first = _slot_at(s.pool, ring, k)
            k += 1
            if s.shown[first] and not s.counters[_EVERY]:
                continue
            s.shown[first] = 1
            row = s.counters[_FOUND]
            s.counters[_FOUND] = row + 1
            s.found[row, 0] = position + t
            s.found[row, 1] = d
            s.found[row, 2] = c.seq[t]
            s.found[row, 3] = c.origin[t]
            s.found[row, 4] = c.mid[t]
            s.found[row, 5] = s.sent[slot]
            s.found[row, 6] = lo + i
            s.found[row, 7] = s.mid[first]
            s.found[row, 8] = s.sent[first]


@compiled
def _advance(
    s: _State, c: Columns, m: Matched, start: int, position: int, lo: int, hi: int, lanes: int
) -> tuple[int, int]:
    """Go on from row `start`; returns the row at which it stopped, and what for.

    `lo` to `hi` are the origins of the block, `lanes` their number, padded.
    """
    # Local names, so that the loop does not count references to the arrays.
    kind, process, origins, mids = c.kind, c.process, c.origin, c.mid
    firsts, peers = c.first, c.peers
    slots, numbers, last = m.slot, m.number, m.last
    versions, shared, free, current = s.versions, s.shared, s.free, s.current
    low, rings, pool, empty = s.low, s.ring, s.pool, s.empty
    version, number, mid, sent, shown = s.version, s.number, s.mid, s.sent, s.shown
    top = s.counters[_FREE]
    for t in range(start, kind.shape[0]):
        slot = slots[t]
        if slot < 0:
            continue
        origin = origins[t]
        lane = origin - lo
        ours = lo <= origin < hi
        if kind[t] == SEND:
            number[slot] = numbers[t]
            if ours:
                for k in range(firsts[t], firsts[t + 1]):
                    d = peers[k]
                    ring = _push(pool, empty, rings[d, lane], slot)
                    if ring < 0:
                        s.counters[_FREE] = top
                        return t, _POOL
                    if rings[d, lane] < 0:
                        low[d, lane] = numbers[t]
                    rings[d, lane] = ring
                mid[slot] = mids[t]
                shown[slot] = 0
            sent[slot] = position + t
            version[slot] = current[origin]
            shared[current[origin]] += 1
            continue
        d = process[t]
        mine = current[d]
        alone = shared[mine] == 1
        if not alone and top == 0:
            s.counters[_FREE] = top
            return t, _VERSIONS
        theirs = version[slot]
        kept = np.int32(0)
        if ours:
            ring = _pull(pool, empty, number, rings[d, lane], slot)
            rings[d, lane] = ring
            low[d, lane] = _NEVER if ring < 0 else number[_slot_at(pool, ring, 0)]
            kept = versions[theirs, lane]
            versions[theirs, lane] = numbers[t] - 1
        if alone:
            ahead = _merge_in_place(versions, low, theirs, mine, d, lanes)
        else:
            top -= 1
            result = free[top]
            ahead = _merge(versions, low, theirs, mine, result, d, lanes)
            shared[mine] -= 1
            shared[result] = 1
            current[d] = result
            mine = result
        if ahead:
            _overtaken(s, c, t, position, slot, lo, lanes)
        if ours:
            versions[theirs, lane] = kept
            versions[mine, lane] = max(versions[mine, lane], numbers[t])
        if last[t]:
            shared[theirs] -= 1
            if shared[theirs] == 0:
                free[top] = theirs
                top += 1
    s.counters[_FREE] = top
    return kind.shape[0], _DONE


class Kernel:
    """Checks one run, batch by batch, for a block of origins (or all of them).

    Feed it the run's rows in an order in which each send comes before its
    deliveries and each process's rows are in order; `OrderError` if they are
    not, as far as that can be told here. How the rows are cut into batches
    makes no difference.
    """

    def __init__(
        self,
        origins: tuple[int, int] | None = None,
        *,
        examples: int = 10,
        every: bool = False,
        unique: bool = False,
    ) -> None:
        """`origins` is the block, as numbers from one up to but not including the other.

        At most `examples` violations are kept to be shown, one for each message
        that was overtaken, or `every` one. `unique` says that no message is sent
        twice, and saves the rule that `mid` has to grow.
        """
        self.matcher = Matcher(unique=unique)
        self._origins = origins
        self._processes = 0
        self._lanes = 0
        size = self.matcher.slots
        self._state = _State(
            np.zeros((0, 0), np.int32),
            np.zeros(0, np.int32),
            np.zeros(0, np.int32),
            np.zeros(0, np.int32),
            np.zeros((0, 0), np.int32),
            np.zeros((0, 0), np.int32),
            np.zeros(1024, np.int32),
            np.array([-1] * _CLASSES + [0], np.int32),
            np.zeros(size, np.int32),
            np.zeros(size, np.int32),
            np.zeros(size, np.int64),
            np.zeros(size, np.int64),
            np.zeros(size, np.int32),
            np.empty((examples, len(FOUND_FIELDS)), np.int64),
            np.array([0, 0, 0, every], np.int64),
        )

    def feed(self, columns: Columns, processes: int, position: int = 0) -> None:
        """The next rows; `processes` is how many they and all before mention."""
        if processes > self._processes:
            self._grow_processes(processes)
        matched = self.matcher.feed(columns, processes, position)
        if self.matcher.slots > len(self._state.version):
            self._grow_slots(self.matcher.slots)
        lo, hi = self._origins or (0, processes)
        at = 0
        while True:
            at, why = _advance(self._state, columns, matched, at, position, lo, hi, self._lanes)
            if why == _DONE:
                return
            if why == _VERSIONS:
                self._grow_versions()
            else:
                pool = self._state.pool
                self._state = self._state._replace(pool=np.append(pool, np.zeros_like(pool)))

    @property
    def violations(self) -> int:
        """How many violations (a, b, d) with a from the block."""
        return int(self._state.counters[_VIOLATIONS])

    @property
    def found(self) -> Longs:
        """Violations to be shown, in the order of the rows; see `FOUND_FIELDS`."""
        return self._state.found[: self._state.counters[_FOUND]]

    @property
    def nbytes(self) -> int:
        """Size of the state: what is kept from row to row."""
        return self.matcher.nbytes + sum(array.nbytes for array in self._state)

    def _grow_processes(self, processes: int) -> None:
        s = self._state
        lo, hi = self._origins or (0, processes)
        self._processes = processes
        self._lanes = _padded(hi - lo)
        rows, stride = s.low.shape
        if processes <= rows and self._lanes <= stride:
            return
        rows = processes if rows == 0 else max(processes, 2 * rows)
        if self._lanes > stride:
            # An odd number of cache lines, so that rows spread over the cache.
            stride = _padded(max(hi - lo, 2 * stride)) | _LANES
        versions = max(len(s.versions), rows + 64)
        self._state = s._replace(
            versions=_resized(s.versions, (versions, stride), 0),
            low=_resized(s.low, (rows, stride), _NEVER),
            ring=_resized(s.ring, (rows, stride), -1),
            current=_resized(s.current, (rows,), 0),
        )
        self._add_versions(versions)

    def _grow_versions(self) -> None:
        s = self._state
        versions = len(s.versions) + max(64, len(s.versions) // 2)
        self._state = s._replace(
            versions=_resized(s.versions, (versions, s.versions.shape[1]), 0)
        )
        self._add_versions(versions)

    def _add_versions(self, versions: int) -> None:
        """Put the versions beyond the old ones on the stack of free ones."""
        s = self._state
        old = len(s.shared)
        shared = _resized(s.shared, (versions,), 0)
        if old == 0:
            old = 1
            shared[0] = 1 << 30  # the clock of all who delivered nothing: never freed
        free = _resized(s.free, (versions,), 0)
        count = int(s.counters[_FREE])
        free[count : count + versions - old] = np.arange(versions - 1, old - 1, -1)
        s.counters[_FREE] += versions - old
        self._state = s._replace(shared=shared, free=free)

    def _grow_slots(self, size: int) -> None:
        s = self._state
        self._state = s._replace(
            version=_resized(s.version, (size,), 0),
            number=_resized(s.number, (size,), 0),
            mid=_resized(s.mid, (size,), 0),
            sent=_resized(s.sent, (size,), 0),
            shown=_resized(s.shown, (size,), 0),
        )


def _padded(lanes: int) -> int:
    return -(-lanes // _LANES) * _LANES


def _resized(old: npt.NDArray[I], shape: tuple[int, ...], fill: int) -> npt.NDArray[I]:
    """A larger array with the old one in its corner."""
    new = np.full(shape, fill, old.dtype)
    new[tuple(slice(size) for size in old.shape)] = old
    return new
