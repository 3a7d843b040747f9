"""One long run, in stretches of time that need nothing of one another.

A violation is a triple (a, b, d): b was delivered at d while a, which happened before
it, was in flight to d. Whoever looks for those with a from a *stretch* of rows, from
`start` up to `end`, need not know what happened before it:

  - a chain from a to b begins with the send of a, so all of it lies behind `start`.
    Clocks that count only what is sent in the stretch are empty at its start, and a
    delivery of something sent before carries nothing that they count;
  - behind `end` nothing is sent that they count. What is sent there is a link in
    chains, no more, and when all that was sent in the stretch has been delivered,
    there is nothing left to be overtaken.

So a stretch is checked by a kernel that begins with its first row, as if the run did,
and goes on beyond its last row until all of its messages have arrived: where messages
arrive, a few rows. Different stretches find different violations, which together are
those of the run, and there is one pass.

A message that is lost is in flight to the end of the run, and so far the kernel has to
go. But it needs clocks only for the origins of what is in flight: `narrow` leaves out
the lanes of all others, and rows cost little more than to be read.

**What matched nothing.** In the eyes of a stretch, deliveries of what was sent before it
match nothing in flight, and it sets them aside (`early`). The stretch with the send
meets the same rows beyond its end, and tells which it knows (`arrived`). What nobody
knows is odd for the run.

**Order.** That `seq` and `mid` grow from one stretch to the next is left to whoever puts
them together, by `first_seq` and its like.
"""

from __future__ import annotations

import numpy as np

from .._compiled import Clocks, Longs, compiled
from . import loop
from .columns import OTHER, SEND, Columns
from .kernel import Kernel, Odd, padded, stride_of

__all__ = ["Stretch"]


@compiled
def _note_first(c: Columns, first_seq: Longs, first_mid: Longs) -> None:
    """Of each process that is new: its first row, and the first message it sends."""
    kinds, processes, seqs, origins, mids = c.kind, c.process, c.seq, c.origin, c.mid
    for t in range(kinds.shape[0]):
        if kinds[t] == OTHER:
            continue
        p = processes[t]
        if first_seq[p] < 0:
            first_seq[p] = seqs[t]
        if kinds[t] == SEND and origins[t] == p and first_mid[p] < 0:
            first_mid[p] = mids[t]


class Stretch(Kernel):
    """Finds the violations (a, b, d) with a from a stretch of a run.

    To be fed with the rows of the stretch; then, after `end`, with those that follow,
    as long as something is `left`.

    `messages`, `early`, and the first and last `seq` and `mid` of each process (-1
    where there is none) are those of the stretch.
    """

    def __init__(self, *, examples: int = 10, every: bool = False, unique: bool = False) -> None:
        super().__init__(examples=examples, every=every, unique=unique)
        self.first_seq = self.first_mid = self.last_seq = self.last_mid = np.zeros(0, np.int64)
        self.early = np.zeros((0, len(Odd)), np.int64)
        self._sent = self._left = 0

    def feed(self, columns: Columns, processes: int, position: int = 0) -> None:
        """The next rows; `processes` is how many they and all before mention."""
        super().feed(columns, processes, position)
        if self._beyond:
            return
        new = np.full(self._processes - len(self.first_seq), -1, np.int64)
        self.first_seq = np.append(self.first_seq, new)
        self.first_mid = np.append(self.first_mid, new)
        # The kernel knows the last ones anyway: so it is rarely worth to go through the rows.
        last_seq, last_mid = (last[: self._processes] for last in self._state[:2])
        if ((self.first_seq < 0) & (last_seq >= 0) | (self.first_mid < 0) & (last_mid >= 0)).any():
            _note_first(columns, self.first_seq, self.first_mid)

    def end(self) -> None:
        """What comes now is beyond the stretch."""
        n = self._processes
        self.last_seq, self.last_mid = self._state.seq[:n].copy(), self._state.mid[:n].copy()
        self._sent, self._left = super().messages, self.undelivered
        self.early = self.odd
        self._odd.clear()
        self._state.counters[loop.SET_ASIDE] = 0
        self._origins = (0, 0)  # who is mentioned later sends nothing that counts
        self._beyond = True

    @property
    def messages(self) -> int:
        """How many messages were sent in the stretch."""
        return self._sent if self._beyond else super().messages

    @property
    def arrived(self) -> Longs:
        """Deliveries beyond the end of what was sent in the stretch; see `Odd`."""
        return self.odd

    @property
    def set_aside(self) -> int:
        """How many rows of the stretch matched nothing; beyond its end, how many arrived."""
        return sum(map(len, self._odd)) + int(self._state.counters[loop.SET_ASIDE])

    @property
    def left(self) -> int:
        """How many copies of what was sent in the stretch are in flight."""
        return self._left - self.set_aside if self._beyond else self.undelivered

    def narrow(self) -> None:
        """Forget the clocks of origins of which nothing is left, if that saves half."""
        assert self._beyond
        s, n = self._state, self._processes
        nowhere = loop.never(s.low)
        used = np.flatnonzero((s.low[:n, : self._lanes] != nowhere).any(axis=0))
        if 2 * padded(len(used)) > self._lanes:
            return
        stride = stride_of(len(used), s.clock)

        def gathered(table: Clocks, fill: int) -> Clocks:
            result = np.full((len(table), stride), fill, table.dtype)
            result[:, : len(used)] = table[:, used]
            return result

        self._lanes = padded(len(used))
        origin = np.zeros(stride, np.int32)
        origin[: len(used)] = s.origin[used]
        lane = np.full_like(s.lane, -1)
        lane[s.origin[used]] = np.arange(len(used))
        self._state = s._replace(
            lane=lane,
            origin=origin,
            low=gathered(s.low, nowhere),
            place=gathered(s.place, -1),
            clock=gathered(s.clock, 0),
        )
