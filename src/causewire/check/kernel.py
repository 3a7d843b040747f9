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
what is in flight from i to d. Different origins do not touch each other: a
block of them can be checked alone, by clocks as wide as the block, and the
violations of different blocks are different violations.

**State.** For all processes and the block's origins: the clock, and the lowest
number in flight (`low`). Per delivery there is one loop over the block: take
the maximum of two clocks, compare one of them with `low`. In a good trace
nothing is found in it; what is found costs extra.

Clocks are versions, and versions are shared. A process changes its clock only
when it delivers, so all that it sends in between refers to the same version,
and a version is recycled when neither its process nor a message in flight
refers to it. A process's own entry is not kept up to date in its versions: a
message has its own number to put there, less one for what happened before it.
Version 0 is the clock of all who have delivered nothing yet.

The state grows with what is in flight, and with nothing else; it starts small,
and doubles when the compiled loop comes back and asks for more. Clocks are most of
it, and to go through them is most of the work: so their numbers have 16 bits, as
long as nobody has sent more messages than that can tell.

**Order is verified, not assumed.** Rows may come in any order in which each
process's rows are in order and each send comes before its deliveries:

  - `seq` has to grow within each process, and `mid` with it among its sends
    (unless it is known otherwise that no message is sent twice); if not, the
    kernel raises `OrderError`, and the caller sorts the trace and starts again;
  - a delivery without a copy in flight is set aside as odd. It may be a
    duplicate, a message never sent, or never addressed there, or sent later in
    the file: telling these apart would need memory of all messages that ever
    were, so it is left to a second look that knows what to look for
    (`oddities.py`).

Such rows, and sends in the name of somebody else, take no part in the order.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from .._compiled import Clocks, Longs, Words
from ..core.errors import CausewireError
from . import flight, loop
from .columns import Columns

__all__ = [
    "ARRIVED",
    "FOREIGN_SEND",
    "UNMATCHED",
    "Found",
    "Kernel",
    "Odd",
    "OrderError",
    "padded",
    "stride_of",
]


class Odd(IntEnum):
    """Columns of the array of rows that were set aside."""

    POSITION = 0
    PROCESS = 1
    SEQ = 2
    ORIGIN = 3
    MID = 4
    WHY = 5  # UNMATCHED, FOREIGN_SEND or ARRIVED


UNMATCHED, FOREIGN_SEND, ARRIVED = loop.UNMATCHED, loop.FOREIGN_SEND, loop.ARRIVED


class Found(IntEnum):
    """Columns of the array of violations (a, b, d)."""

    POSITION = 0  # of the delivery of b
    PROCESS = 1  # d
    SEQ = 2  # of the delivery
    ORIGIN = 3  # of b
    MID = 4
    SENT = 5  # position of b's send
    FIRST_ORIGIN = 6  # of a
    FIRST_MID = 7
    FIRST_SENT = 8  # position of a's send


_LANES = 32  # clocks are padded to a multiple of this, for full vectors

N = TypeVar("N", bound=np.integer[Any])


class OrderError(CausewireError):
    """The rows are not in an order in which one pass can take them."""


class Kernel:
    """Checks one run, batch by batch, for a block of origins or for all of them.

    How the rows are cut into batches makes no difference.
    """

    _numbers: type[np.signedinteger[Any]] = np.int16
    """What clocks are made of, to begin with."""

    def __init__(
        self,
        origins: tuple[int, int] | None = None,
        *,
        examples: int = 10,
        every: bool = False,
        unique: bool = False,
    ) -> None:
        """`origins` is the block: from one number up to, not including, another.

        At most `examples` violations are kept to be shown, one for each message
        that was overtaken, or `every` one. `unique` says that no message is sent
        twice, and saves the rule that `mid` has to grow.
        """
        self._origins = origins
        self._unique = unique
        self._beyond = False
        self._processes = 0
        self._lanes = 0
        self._odd: list[Longs] = []
        word, long = np.zeros(0, np.int32), np.zeros(0, np.int64)
        table = np.zeros((0, 0), self._numbers)
        counters = np.zeros(9, np.int64)
        counters[loop.EVERY] = every
        self._state = loop.State(
            seq=long,
            mid=long,
            number=word,
            current=word,
            lane=word,
            origin=word,
            low=table,
            place=np.zeros((0, 0), np.int32),
            pool=np.zeros(256, np.int32),
            empty=np.array([-1] * flight.CLASSES + [0], np.int32),
            clock=table,
            shared=word,
            free_versions=word,
            slot_version=word,
            slot_number=word,
            slot_copies=word,
            slot_mid=long,
            slot_sent=long,
            slot_shown=word,
            free_slots=word,
            heads=word,
            copies=np.zeros((0, flight.COPY_FIELDS), np.int64),
            free_copies=word,
            odd=np.zeros((64, len(Odd)), np.int64),
            found=np.empty((examples, len(Found)), np.int64),
            counters=counters,
        )
        self._more_slots()
        self._more_copies(0)

    def feed(self, columns: Columns, processes: int, position: int = 0) -> None:
        """The next rows; `processes` is how many they and all before mention.

        Raises:
            OrderError: A row is not in an order in which it can be checked.
        """
        if processes > self._processes:
            self._more_processes(processes)
        at = 0
        while True:
            at, why = loop.advance(
                self._state,
                columns,
                at,
                position,
                self._lanes,
                not self._unique,
                self._beyond,
                loop.never(self._state.low),
            )
            if why == loop.DONE:
                return
            if why == loop.ORDER:
                raise OrderError(position + at)
            if why == loop.SLOTS:
                self._more_slots()
            elif why == loop.COPIES:
                self._more_copies(int(columns.first[at + 1] - columns.first[at]))
            elif why == loop.VERSIONS:
                self._more_versions(2 * len(self._state.clock))
            elif why == loop.NUMBERS:
                self._more_numbers()
            elif why == loop.POOL:
                pool = self._state.pool
                self._state = self._state._replace(pool=_resized(pool, (2 * len(pool),), 0))
            else:
                self._odd.append(self._state.odd.copy())
                self._state.counters[loop.SET_ASIDE] = 0

    # -- results ------------------------------------------------------------------

    @property
    def messages(self) -> int:
        """How many messages were sent."""
        return int(self._state.counters[loop.SENT])

    @property
    def undelivered(self) -> int:
        """How many copies of messages are in flight."""
        return int(self._state.counters[loop.IN_FLIGHT])

    @property
    def delivered(self) -> bool:
        """Whether any delivery took part in the order: then its process has a clock of its own."""
        return bool(self._state.current.any())

    @property
    def violations(self) -> int:
        """How many violations (a, b, d) with a from the block."""
        return int(self._state.counters[loop.VIOLATIONS])

    @property
    def found(self) -> Longs:
        """Violations to be shown, in the order of the rows; see `Found`."""
        return self._state.found[: self._state.counters[loop.FOUND]]

    @property
    def odd(self) -> Longs:
        """Rows that were set aside, in order; see `Odd`."""
        rest = self._state.odd[: self._state.counters[loop.SET_ASIDE]]
        return np.concatenate([*self._odd, rest])

    @property
    def nbytes(self) -> int:
        """Size of the state: what is kept from row to row, results not included."""
        s = self._state
        return sum(array.nbytes for array in s) - s.odd.nbytes - s.found.nbytes

    # -- room ---------------------------------------------------------------------

    def _more_processes(self, processes: int) -> None:
        s = self._state
        lo, hi = self._origins or (0, processes)
        new = np.arange(max(lo, self._processes), min(hi, processes), dtype=np.int32)
        self._processes = processes
        self._lanes = max(self._lanes, padded(hi - lo))
        rows, stride = s.low.shape
        if processes > rows or self._lanes > stride:
            if processes > rows:
                rows = max(processes, 2 * rows)
            if self._lanes > stride:
                stride = stride_of(max(hi - lo, 2 * stride), s.clock)
            self._more_room(rows, stride)
        self._state.lane[new] = new - lo
        self._state.origin[new - lo] = new

    def _more_room(self, rows: int, stride: int) -> None:
        s = self._state
        self._state = s._replace(
            seq=_resized(s.seq, (rows,), -1),
            mid=_resized(s.mid, (rows,), -1),
            number=_resized(s.number, (rows,), 0),
            current=_resized(s.current, (rows,), 0),
            lane=_resized(s.lane, (rows,), -1),
            origin=_resized(s.origin, (stride,), 0),
            low=_resized(s.low, (rows, stride), loop.never(s.low)),
            place=_resized(s.place, (rows, stride), -1),
            clock=_resized(s.clock, (len(s.clock), stride), 0),
        )
        self._more_versions(max(len(s.clock), rows + 64))

    def _more_numbers(self) -> None:
        """Numbers have become too large for 16 bits."""
        s = self._state
        low, clock = s.low.astype(np.int32), s.clock.astype(np.int32)
        low[s.low == loop.never(s.low)] = loop.never(low)
        self._state = s._replace(low=low, clock=clock)
        self._more_room(len(low), stride_of(low.shape[1], clock))

    def _more_versions(self, size: int) -> None:
        s = self._state
        old = len(s.shared)
        shared = _resized(s.shared, (size,), 0)
        if old == 0:
            old = 1
            shared[0] = 1 << 30  # the clock of all who delivered nothing: never freed
        self._state = s._replace(
            clock=_resized(s.clock, (size, s.clock.shape[1]), 0),
            shared=shared,
            free_versions=_stacked(s.free_versions, s.counters, loop.FREE_VERSIONS, old, size),
        )

    def _more_slots(self) -> None:
        s = self._state
        old = len(s.slot_version)
        size = max(64, 2 * old)
        self._state = s._replace(
            slot_version=_resized(s.slot_version, (size,), 0),
            slot_number=_resized(s.slot_number, (size,), 0),
            slot_copies=_resized(s.slot_copies, (size,), 0),
            slot_mid=_resized(s.slot_mid, (size,), 0),
            slot_sent=_resized(s.slot_sent, (size,), 0),
            slot_shown=_resized(s.slot_shown, (size,), 0),
            free_slots=_stacked(s.free_slots, s.counters, loop.FREE_SLOTS, old, size),
        )

    def _more_copies(self, wanted: int) -> None:
        s = self._state
        old = len(s.copies)
        size = max(64, 2 * old)
        while size - old < wanted:
            size *= 2
        copies = _resized(s.copies, (size, flight.COPY_FIELDS), 0)
        heads = np.full(2 * size, -1, np.int32)
        flight.rechain(s.heads, heads, copies)
        self._state = s._replace(
            heads=heads,
            copies=copies,
            free_copies=_stacked(s.free_copies, s.counters, loop.FREE_COPIES, old, size),
        )


def padded(lanes: int) -> int:
    """Return the number of lanes, rounded up to whole vectors."""
    return -(-lanes // _LANES) * _LANES


def stride_of(lanes: int, clock: Clocks) -> int:
    """How far apart clocks lie, in numbers: an odd number of cache lines, so that they
    spread over the sets of the cache."""
    line = 64 // clock.itemsize
    return -(-lanes // (2 * line)) * 2 * line + line


def _resized(old: npt.NDArray[N], shape: tuple[int, ...], fill: int) -> npt.NDArray[N]:
    """A larger array with the old one in its corner."""
    new = np.full(shape, fill, old.dtype)
    new[tuple(slice(size) for size in old.shape)] = old
    return new


def _stacked(free: Words, counters: Longs, counter: int, old: int, size: int) -> Words:
    """A larger stack of unused numbers, with those from `old` to `size` added."""
    count = int(counters[counter])
    free = _resized(free, (size,), 0)
    free[count : count + size - old] = np.arange(size - 1, old - 1, -1)
    counters[counter] = count + size - old
    return free
