"""Which send does a delivery belong to? One pass, memory for what is in flight.

The clocks of `kernel.py` need to know, for every delivery, where the snapshot
of its send is kept. This module finds out, and on the way finds everything that
is wrong with a trace other than its order:

    a copy        one message for one destination; a multicast is several
    in flight     sent, and not delivered yet
    a slot        a small number that stands for a message from its send to the
                  delivery of its last copy, then for another message

Copies in flight are kept in a hash table (open addressing, linear probing;
removal shifts the cluster back, so there are no tombstones and the table stays
as small as what is in flight). Each message of a process gets its `number`
there, 1, 2, 3, ... in the order of sending, whatever its `mid`.

Rows come in any order in which a process's own rows are in order and a send
comes before its deliveries; that is verified, not assumed:

  - `seq` has to grow within each process, and `mid` with it among its sends
    (unless it is known otherwise that no message is sent twice); else the pass
    stops with `OrderError`, and the caller sorts the trace and starts again;
  - a delivery without a copy in flight is set aside as odd. It may be a
    duplicate, a message never sent, or never addressed there, or sent later in
    the file: telling these apart would need memory of all messages that ever
    were, so it is left to a second look that knows what to look for
    (`oddities.py`).

Such rows, and sends in the name of somebody else, take no part in the order.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from .columns import DELIVER, OTHER, Columns
from .compiled import Bytes, Longs, Words, compiled

__all__ = ["FOREIGN_SEND", "ODD_FIELDS", "UNMATCHED", "Matched", "Matcher", "OrderError", "place_of"]

# What the compiled pass stopped for.
_DONE, _ORDER, _SLOTS, _TABLE, _ODD = range(5)

# Why a row was set aside.
UNMATCHED, FOREIGN_SEND = range(2)

ODD_FIELDS = ("position", "process", "seq", "origin", "mid", "why")
"""Columns of the array of rows that were set aside."""

# Places in the array of counters.
_FREE, _COPIES, _SET_ASIDE, _MESSAGES = range(4)

_MULTIPLY = np.uint64(0x9E3779B97F4A7C15)
_AGAIN = np.uint64(0xD6E8FEB86659FD93)
_HIGH = np.uint64(32)


class OrderError(Exception):
    """The rows are not in an order in which one pass can take them."""


class Matched(NamedTuple):
    """For each row of a batch: what the clocks need to know.

    `slot` is -1 for rows that take no part. `last` is 1 for the delivery of a
    message's last copy: from there on its slot is free.
    """

    slot: Words
    number: Words
    last: Bytes


class _State(NamedTuple):
    seq: Longs  # of each process: its last row
    mid: Longs  # of each process: its last message
    sent: Words  # of each process: how many messages
    table: Longs  # copies in flight: mid, origin and destination, slot (-1: empty)
    pending: Words  # of each slot: copies in flight
    number: Words  # of each slot: the message's number at its origin
    free: Words  # a stack of slots that are free
    odd: Longs
    counters: Longs


@compiled
def _home(mid: int, pair: int, mask: int) -> int:
    mixed = (np.uint64(mid) * _MULTIPLY ^ np.uint64(pair)) * _AGAIN
    return np.int64(mixed >> _HIGH) & mask


@compiled
def place_of(table: Longs, mid: int, pair: int) -> int:
    """Where in the table the key is, or the empty place where it belongs."""
    mask = table.shape[0] - 1
    at = _home(mid, pair, mask)
    while table[at, 2] >= 0 and (table[at, 0] != mid or table[at, 1] != pair):
        at = (at + 1) & mask
    return at


@compiled
def _remove(table: Longs, at: int) -> None:
    """Empty a place, and close the gap in its cluster."""
    mask = table.shape[0] - 1
    gap = at
    at = (at + 1) & mask
    while table[at, 2] >= 0:
        home = _home(table[at, 0], table[at, 1], mask)
        if ((at - home) & mask) >= ((at - gap) & mask):
            table[gap, 0] = table[at, 0]
            table[gap, 1] = table[at, 1]
            table[gap, 2] = table[at, 2]
            gap = at
        at = (at + 1) & mask
    table[gap, 2] = -1


@compiled
def _rehash(old: Longs, new: Longs) -> None:
    for k in range(old.shape[0]):
        if old[k, 2] >= 0:
            at = place_of(new, old[k, 0], old[k, 1])
            new[at, 0] = old[k, 0]
            new[at, 1] = old[k, 1]
            new[at, 2] = old[k, 2]


@compiled
def _set_aside(odd: Longs, k: int, position: int, c: Columns, t: int, why: int) -> None:
    odd[k, 0] = position + t
    odd[k, 1] = c.process[t]
    odd[k, 2] = c.seq[t]
    odd[k, 3] = c.origin[t]
    odd[k, 4] = c.mid[t]
    odd[k, 5] = why


@compiled
def _match(
    s: _State, c: Columns, out: Matched, start: int, position: int, unique: bool
) -> tuple[int, int]:
    """Go on from row `start`; returns the row at which it stopped, and what for."""
    # Local names, so that the loop does not count references to the arrays.
    kinds, processes, seqs, origins, mids = c.kind, c.process, c.seq, c.origin, c.mid
    firsts, peers = c.first, c.peers
    slots, numbers, last = out.slot, out.number, out.last
    last_seq, last_mid, sent, table = s.seq, s.mid, s.sent, s.table
    pending, number, free, odd = s.pending, s.number, s.free, s.odd
    top, in_flight = s.counters[_FREE], s.counters[_COPIES]
    set_aside, messages = s.counters[_SET_ASIDE], s.counters[_MESSAGES]
    why = _DONE
    t = start
    while t < kinds.shape[0]:
        slots[t] = -1
        if kinds[t] == OTHER:
            t += 1
            continue
        p = processes[t]
        origin = np.int64(origins[t])
        if seqs[t] <= last_seq[p]:
            why = _ORDER
            break
        if set_aside == odd.shape[0]:
            why = _ODD
            break
        if kinds[t] == DELIVER:
            at = place_of(table, mids[t], origin << 32 | p)
            slot = table[at, 2]
            if slot >= 0:
                _remove(table, at)
                in_flight -= 1
                pending[slot] -= 1
                slots[t] = slot
                numbers[t] = number[slot]
                if pending[slot] == 0:
                    last[t] = 1
                    free[top] = slot
                    top += 1
            else:
                _set_aside(odd, set_aside, position, c, t, UNMATCHED)
                set_aside += 1
        elif origin != p:
            _set_aside(odd, set_aside, position, c, t, FOREIGN_SEND)
            set_aside += 1
        else:
            if mids[t] <= last_mid[p] and not unique:
                why = _ORDER
                break
            if top == 0:
                why = _SLOTS
                break
            if 2 * (in_flight + firsts[t + 1] - firsts[t]) > table.shape[0]:
                why = _TABLE
                break
            last_mid[p] = mids[t]
            sent[p] += 1
            messages += 1
            slot = free[top - 1]
            copies = 0
            for k in range(firsts[t], firsts[t + 1]):
                pair = origin << 32 | peers[k]
                at = place_of(table, mids[t], pair)
                if table[at, 2] < 0:  # else it is a destination named twice
                    table[at, 0] = mids[t]
                    table[at, 1] = pair
                    table[at, 2] = slot
                    copies += 1
            if copies > 0:
                top -= 1
                in_flight += copies
                pending[slot] = copies
                number[slot] = sent[p]
                slots[t] = slot
                numbers[t] = sent[p]
        last_seq[p] = seqs[t]
        t += 1
    s.counters[_FREE] = top
    s.counters[_COPIES] = in_flight
    s.counters[_SET_ASIDE] = set_aside
    s.counters[_MESSAGES] = messages
    return t, why


class Matcher:
    """Matches the rows of one run, batch by batch."""

    def __init__(self, *, unique: bool = False) -> None:
        self._unique = unique
        self.slots = 64
        table = np.zeros((256, 3), np.int64)
        table[:, 2] = -1
        self._state = _State(
            np.full(8, -1, np.int64),
            np.full(8, -1, np.int64),
            np.zeros(8, np.int32),
            table,
            np.zeros(self.slots, np.int32),
            np.zeros(self.slots, np.int32),
            np.arange(self.slots, dtype=np.int32)[::-1].copy(),
            np.zeros((64, len(ODD_FIELDS)), np.int64),
            np.array([self.slots, 0, 0, 0], np.int64),
        )
        self._odd: list[Longs] = []

    def feed(self, columns: Columns, processes: int, position: int) -> Matched:
        """Match the next rows; `processes` is how many they and all before mention."""
        if processes > len(self._state.seq):
            self._grow_processes(2 * processes)
        rows = len(columns.kind)
        out = Matched(
            np.empty(rows, np.int32), np.empty(rows, np.int32), np.zeros(rows, np.int8)
        )
        at = 0
        while True:
            at, why = _match(self._state, columns, out, at, position, self._unique)
            if why == _DONE:
                return out
            if why == _ORDER:
                raise OrderError(position + at)
            if why == _SLOTS:
                self._grow_slots()
            elif why == _TABLE:
                copies = int(columns.first[at + 1] - columns.first[at])
                self._grow_table(copies)
            else:
                self._odd.append(self._state.odd.copy())
                self._state.counters[_SET_ASIDE] = 0

    @property
    def messages(self) -> int:
        """How many were sent."""
        return int(self._state.counters[_MESSAGES])

    @property
    def copies(self) -> int:
        """How many copies are in flight."""
        return int(self._state.counters[_COPIES])

    @property
    def odd(self) -> Longs:
        """The rows set aside so far; columns as in `ODD_FIELDS`."""
        rest = self._state.odd[: self._state.counters[_SET_ASIDE]]
        return np.concatenate([*self._odd, rest])

    @property
    def nbytes(self) -> int:
        """Size of the state, rows set aside not counted."""
        return sum(array.nbytes for array in self._state if array is not self._state.odd)

    def _grow_processes(self, size: int) -> None:
        s = self._state
        more = size - len(s.seq)
        self._state = s._replace(
            seq=np.append(s.seq, np.full(more, -1, np.int64)),
            mid=np.append(s.mid, np.full(more, -1, np.int64)),
            sent=np.append(s.sent, np.zeros(more, np.int32)),
        )

    def _grow_slots(self) -> None:
        s = self._state
        old, self.slots = self.slots, 2 * self.slots
        free = np.empty(self.slots, np.int32)
        free[:old] = np.arange(self.slots - 1, old - 1, -1)
        s.counters[_FREE] = old
        more = np.zeros(old, np.int32)
        self._state = s._replace(
            pending=np.append(s.pending, more), number=np.append(s.number, more), free=free
        )

    def _grow_table(self, copies: int) -> None:
        s = self._state
        size = 2 * len(s.table)
        while 2 * (self.copies + copies) > size:
            size *= 2
        table = np.zeros((size, 3), np.int64)
        table[:, 2] = -1
        _rehash(s.table, table)
        self._state = s._replace(table=table)
