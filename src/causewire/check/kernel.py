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
_FREE, _TOP, _VIOLATIONS, _FOUND, _EVERY = range(5)

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
    empty: Words  # of each size class: a chain of rings that are free, or -1
    version: Words  # of each slot: the clock at the send
    number: Words  # of each slot: the number at the origin
    mid: Longs
    sent: Longs  # of each slot: the position of the send
    shown: Words  # of each slot: whether there is an example with it
    found: Longs
    counters: Longs


@compiled
def _new_ring(s: _State, size: int) -> int:
    """A ring of a size class, or -1 if the pool is used up."""
    ring = s.empty[size]
    if ring >= 0:
        s.empty[size] = s.pool[ring + _START]
    else:
        ring = np.int32(s.counters[_TOP])
        if ring + _HEADER + (4 << size) > s.pool.shape[0]:
            return np.int32(-1)
        s.counters[_TOP] += _HEADER + (4 << size)
    s.pool[ring + _CLASS] = size
    s.pool[ring + _START] = 0
    s.pool[ring + _COUNT] = 0
    return ring


@compiled
def _free_ring(s: _State, ring: int) -> None:
    size = s.pool[ring + _CLASS]
    s.pool[ring + _START] = s.empty[size]
    s.empty[size] = ring


@compiled
def _slot_at(s: _State, ring: int, k: int) -> int:
    """The k-th slot of a ring."""
    mask = (4 << s.pool[ring + _CLASS]) - 1
    return s.pool[ring + _HEADER + ((s.pool[ring + _START] + k) & mask)]


@compiled
def _up_to(s: _State, ring: int, number: int) -> int:
    """How many messages in a ring have at most this number."""
    low, high = 0, s.pool[ring + _COUNT]
    while low < high:
        middle = (low + high) // 2
        if s.number[_slot_at(s, ring, middle)] <= number:
            low = middle + 1
        else:
            high = middle
    return low


@compiled
def _push(s: _State, d: int, lane: int, slot: int) -> bool:
    """Add a message that was sent to d; False if the pool is used up."""
    number = s.number[slot]
    ring = s.ring[d, lane]
    if ring < 0:
        ring = _new_ring(s, 0)
        if ring < 0:
            return False
        s.ring[d, lane] = ring
        s.low[d, lane] = number
    count = s.pool[ring + _COUNT]
    if count > 0 and _slot_at(s, ring, count - 1) == slot:
        return True  # a destination named twice, or asked for a second time
    size = s.pool[ring + _CLASS]
    if count == 4 << size:
        larger = _new_ring(s, size + 1)
        if larger < 0:
            return False
        for k in range(count):
            s.pool[larger + _HEADER + k] = _slot_at(s, ring, k)
        _free_ring(s, ring)
        ring = larger
        s.ring[d, lane] = ring
    mask = (4 << s.pool[ring + _CLASS]) - 1
    s.pool[ring + _HEADER + ((s.pool[ring + _START] + count) & mask)] = slot
    s.pool[ring + _COUNT] = count + 1
    return True


@compiled
def _pull(s: _State, d: int, lane: int, slot: int) -> None:
    """Take out a message that was delivered at d."""
    ring = s.ring[d, lane]
    base = ring + _HEADER
    mask = (4 << s.pool[ring + _CLASS]) - 1
    start = s.pool[ring + _START]
    count = s.pool[ring + _COUNT] - 1
    at = 0
    if s.pool[base + start] != slot:
        at = _up_to(s, ring, s.number[slot]) - 1
    if at < count - at:
        for k in range(at, 0, -1):
            s.pool[base + ((start + k) & mask)] = s.pool[base + ((start + k - 1) & mask)]
        start = (start + 1) & mask
        s.pool[ring + _START] = start
    else:
        for k in range(at, count):
            s.pool[base + ((start + k) & mask)] = s.pool[base + ((start + k + 1) & mask)]
    s.pool[ring + _COUNT] = count
    if count:
        s.low[d, lane] = s.number[s.pool[base + start]]
    else:
        s.low[d, lane] = _NEVER
        s.ring[d, lane] = -1
        _free_ring(s, ring)


@compiled
def _merge(s: _State, theirs: int, mine: int, result: int, d: int, lanes: int) -> bool:
    """The maximum of two clocks; whether theirs knows of something undelivered at d.

    Indexed by rows, not by views of them: a view costs more than 100 lanes do.
    """
    ahead = False
    for i in range(lanes):
        known = s.versions[theirs, i]
        s.versions[result, i] = max(known, s.versions[mine, i])
        ahead |= s.low[d, i] <= known
    return ahead


@compiled
def _merge_in_place(s: _State, theirs: int, mine: int, d: int, lanes: int) -> bool:
    """The same where nobody refers to the old clock (and compiled apart, because
    a result that overlaps an operand would keep the loop from being vectorised)."""
    ahead = False
    for i in range(lanes):
        known = s.versions[theirs, i]
        s.versions[mine, i] = max(known, s.versions[mine, i])
        ahead |= s.low[d, i] <= known
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
        overtaken = _up_to(s, ring, s.versions[theirs, i])
        s.counters[_VIOLATIONS] += overtaken
        k = 0
        while k < overtaken and s.counters[_FOUND] < s.found.shape[0]:
            first = _slot_at(s, ring, k)
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
    for t in range(start, c.kind.shape[0]):
        slot = m.slot[t]
        if slot < 0:
            continue
        origin = c.origin[t]
        lane = origin - lo
        ours = lo <= origin < hi
        if c.kind[t] == SEND:
            s.number[slot] = m.number[t]
            if ours:
                for k in range(c.first[t], c.first[t + 1]):
                    if not _push(s, c.peers[k], lane, slot):
                        return t, _POOL
                s.mid[slot] = c.mid[t]
                s.shown[slot] = 0
            s.sent[slot] = position + t
            version = s.current[origin]
            s.version[slot] = version
            s.shared[version] += 1
            continue
        d = c.process[t]
        mine = s.current[d]
        alone = s.shared[mine] == 1
        if not alone and s.counters[_FREE] == 0:
            return t, _VERSIONS
        theirs = s.version[slot]
        number = m.number[t]
        kept = np.int32(0)
        if ours:
            _pull(s, d, lane, slot)
            kept = s.versions[theirs, lane]
            s.versions[theirs, lane] = number - 1
        if alone:
            ahead = _merge_in_place(s, theirs, mine, d, lanes)
        else:
            s.counters[_FREE] -= 1
            result = s.free[s.counters[_FREE]]
            ahead = _merge(s, theirs, mine, result, d, lanes)
            s.shared[mine] -= 1
            s.shared[result] = 1
            s.current[d] = result
            mine = result
        if ahead:
            _overtaken(s, c, t, position, slot, lo, lanes)
        if ours:
            s.versions[theirs, lane] = kept
            s.versions[mine, lane] = max(s.versions[mine, lane], number)
        if m.last[t]:
            s.shared[theirs] -= 1
            if s.shared[theirs] == 0:
                s.free[s.counters[_FREE]] = theirs
                s.counters[_FREE] += 1
    return c.kind.shape[0], _DONE


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
            np.full(_CLASSES, -1, np.int32),
            np.zeros(size, np.int32),
            np.zeros(size, np.int32),
            np.zeros(size, np.int64),
            np.zeros(size, np.int64),
            np.zeros(size, np.int32),
            np.empty((examples, len(FOUND_FIELDS)), np.int64),
            np.array([0, 0, 0, 0, every], np.int64),
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
