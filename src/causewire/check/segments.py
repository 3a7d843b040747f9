"""One long run, cut into segments that are checked at the same time.

The kernel goes through a run from its first row to its last, because a clock
needs the clocks before it. But how the clocks at the end of a segment follow
from those at its start can be told without knowing the latter. So there are two
passes, in each of which all segments may be looked at side by side, and between
them a short walk from segment to segment:

  1. `Survey` takes a segment as if nothing were known at its start;
  2. `walk` goes from cut to cut, from the state at one to the state at the next;
  3. `resume` gives a kernel that goes on from a cut as if it had come from the
     run's beginning. It finds what one kernel alone would find in these rows.

**Why a survey is enough.** Let L be the clock of an event that is found in a
segment by itself, from messages sent or delivered there. For each origin i it
names the latest message of i that has come to be known by a way inside of the
segment. If that one was sent inside, then all that i knew at the cut is known;
if it was sent before and was in flight at the cut, then all that i knew when
sending it is known, and that includes whatever an earlier message of i brings.
Nothing comes into a segment in another way, except with the process itself. So

    K(event) = max of   L(event), with true numbers instead of local ones,
                        the clock of its own process at the cut,
                        the clock at the cut of each i whose latest was sent inside,
                        the clock at its send of each latest that was in flight.

The last is well-defined because clocks of one process only grow. So what has to
be kept of a segment is a clock for each process, and one for each message that
is in flight at its end: as much as the kernel itself keeps.

**Numbers.** How many messages i had sent before the segment is unknown in the
first pass. There, messages sent inside get numbers above `_INSIDE`, and those
from before get numbers below it, in the order of their mids, which is that of
their numbers. Hence the one condition: mids of a process must grow, and not by
leaps of half a billion; otherwise `OrderError`.

**Strangers.** A delivery that matches no send of its segment should match a copy
in flight at the cut. If it does not (a second delivery across a cut, or bad
data), it has spoilt the survey, which has to be made again without it. The
kernel of the second pass sets it aside for itself.

The compiled loop shares pieces with `loop.py`; when those change, what Numba has
kept on disk of this file has to be thrown away.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from . import loop
from .columns import DELIVER, OTHER, SEND, Columns
from .compiled import Longs, Words, compiled
from .kernel import Kernel, Odd, OrderError
from .loop import COPIES, DONE, ODD, ORDER, SLOTS, VERSIONS, State

__all__ = ["Cut", "Flight", "Survey", "Surveyed", "resume", "walk"]

_INSIDE = 1 << 30  # numbers of messages sent inside of a segment are above
_BEFORE = 1 << 29  # and those from before are around this
_FROM_BEFORE = 2  # why a row is noted, beside those of the kernel

_Array: TypeAlias = npt.NDArray[Any]
Strangers: TypeAlias = dict[int, list[int]]


class Flight(NamedTuple):
    """Messages in flight, in the order of origin and number.

    Message k is still to be delivered by peers[first[k]:first[k + 1]], and was
    sent with the clock snapshots[version[k]].
    """

    origin: Words
    mid: Longs
    number: Words
    sent: Longs  # the position of the send
    version: Words
    first: Longs
    peers: Words
    snapshots: Words

    @property
    def copies(self) -> int:
        """How many deliveries are missing."""
        return len(self.peers)

    def holds(self, origin: int, mid: int, process: int) -> bool:
        """Is this copy in flight?"""
        for k in np.flatnonzero((self.origin == origin) & (self.mid == mid)):
            if process in self.peers[self.first[k] : self.first[k + 1]]:
                return True
        return False


class Surveyed(NamedTuple):
    """A segment in itself; processes are numbered as it mentions them.

    `first_seq`, `first_mid`, `last_seq` and `last_mid` are of each process, and
    of its sends; -1 where there are none. `arrived` are the deliveries of what
    was sent before (see `Odd`).
    """

    position: int
    rows: int
    processes: list[str]
    first_seq: Longs
    first_mid: Longs
    last_seq: Longs
    last_mid: Longs
    sends: Words
    clock: Words
    flight: Flight
    reference: Longs
    arrived: Longs


# -- the first pass -------------------------------------------------------------------


@compiled
def _survey(
    s: State,
    c: Columns,
    start: int,
    position: int,
    lanes: int,
    first_seq: Longs,
    first_mid: Longs,
    reference: Longs,
    ignored: Longs,
) -> tuple[int, int]:
    """Like `loop.advance`, without anything that serves to find violations."""
    kinds, processes, seqs, origins, mids = c.kind, c.process, c.seq, c.origin, c.mid
    firsts, peers = c.first, c.peers
    last_seq, last_mid, last_number, current = s.seq, s.mid, s.number, s.current
    clock, shared, free_versions = s.clock, s.shared, s.free_versions
    slot_version, slot_number, slot_copies = s.slot_version, s.slot_number, s.slot_copies
    slot_mid, slot_sent, free_slots = s.slot_mid, s.slot_sent, s.free_slots
    heads, copies, free_copies = s.heads, s.copies, s.free_copies
    odd, counters = s.odd, s.counters
    slots_left, copies_left = counters[loop.FREE_SLOTS], counters[loop.FREE_COPIES]
    versions_left = counters[loop.FREE_VERSIONS]
    why = DONE
    t = start
    while t < kinds.shape[0]:
        kind = kinds[t]
        if kind == OTHER:
            t += 1
            continue
        p = processes[t]
        seq = seqs[t]
        if seq <= last_seq[p]:
            why = ORDER
            break
        mid = mids[t]
        origin = int(origins[t])

        if kind == DELIVER:
            if versions_left == 0:
                why = VERSIONS
                break
            if counters[loop.SET_ASIDE] == odd.shape[0]:
                why = ODD
                break
            copy = loop.take_copy(heads, copies, mid, origin << 32 | p)
            theirs = np.int32(0)
            slot = -1
            number = 0
            if copy >= 0:
                slot = int(copies[copy, loop.SLOT])
                free_copies[copies_left] = copy
                copies_left += 1
                number = int(slot_number[slot])
                theirs = slot_version[slot]
            elif first_mid[origin] < 0 or mid < first_mid[origin]:
                known = ignored.shape[0] > 0
                if known:
                    at = np.searchsorted(ignored, position + t)
                    known = at < ignored.shape[0] and ignored[at] == position + t
                if not known:
                    if reference[origin] < 0:
                        reference[origin] = mid
                    leap = mid - reference[origin]
                    if leap <= -_BEFORE or leap >= _BEFORE:
                        why = ORDER
                        break
                    number = _BEFORE + leap
                    row = counters[loop.SET_ASIDE]
                    counters[loop.SET_ASIDE] = row + 1
                    odd[row, 0] = position + t
                    odd[row, 1] = p
                    odd[row, 2] = seq
                    odd[row, 3] = origin
                    odd[row, 4] = mid
                    odd[row, 5] = _FROM_BEFORE
            if number > 0:
                versions_left -= 1
                result = free_versions[versions_left]
                mine = current[p]
                for i in range(lanes):
                    clock[result, i] = max(clock[theirs, i], clock[mine, i])
                clock[result, origin] = max(clock[result, origin], number)
                current[p] = result
                shared[result] = 1
                shared[mine] -= 1
                if shared[mine] == 0:
                    free_versions[versions_left] = mine
                    versions_left += 1
            if slot >= 0:
                slot_copies[slot] -= 1
                if slot_copies[slot] == 0:
                    free_slots[slots_left] = slot
                    slots_left += 1
                    shared[theirs] -= 1
                    if shared[theirs] == 0:
                        free_versions[versions_left] = theirs
                        versions_left += 1

        elif origin == p:
            if mid <= last_mid[p]:
                why = ORDER
                break
            if slots_left == 0:
                why = SLOTS
                break
            many = firsts[t + 1] - firsts[t]
            if many > copies_left:
                why = COPIES
                break
            slot = int(free_slots[slots_left - 1])
            count = 0
            for k in range(firsts[t], firsts[t + 1]):
                pair = origin << 32 | peers[k]
                if many > 1 and loop.find_copy(heads, copies, mid, pair) >= 0:
                    continue  # a destination named twice
                copies_left -= 1
                loop.add_copy(heads, copies, free_copies[copies_left], mid, pair, slot)
                count += 1
            last_mid[p] = mid
            if first_mid[p] < 0:
                first_mid[p] = mid
            last_number[p] += 1
            if count > 0:
                slots_left -= 1
                slot_copies[slot] = count
                slot_number[slot] = last_number[p]
                slot_mid[slot] = mid
                slot_sent[slot] = position + t
                slot_version[slot] = current[p]
                shared[current[p]] += 1
        last_seq[p] = seq
        if first_seq[p] < 0:
            first_seq[p] = seq
        t += 1
    counters[loop.FREE_SLOTS] = slots_left
    counters[loop.FREE_COPIES] = copies_left
    counters[loop.FREE_VERSIONS] = versions_left
    return t, why


class Survey(Kernel):
    """The first pass over a segment, batch by batch."""

    _numbers = np.int32

    def __init__(self, position: int = 0, ignored: Collection[int] = ()) -> None:
        """`position` is that of the first row; `ignored` are strangers' positions."""
        super().__init__(examples=0)
        self._position = self._end = position
        self._ignored = np.array(sorted(ignored), np.int64)
        self._first_seq = self._first_mid = self._reference = np.zeros(0, np.int64)

    def feed(self, columns: Columns, processes: int, position: int = 0) -> None:
        """The next rows; `processes` is how many they and all before mention."""
        known = self._processes
        if processes > known:
            self._more_processes(processes)
            self._state.number[known:] = _INSIDE
            more = np.full(processes - known, -1, np.int64)
            self._first_seq = np.append(self._first_seq, more)
            self._first_mid = np.append(self._first_mid, more)
            self._reference = np.append(self._reference, more)
        at = 0
        while True:
            at, why = _survey(
                self._state,
                columns,
                at,
                position,
                self._lanes,
                self._first_seq,
                self._first_mid,
                self._reference,
                self._ignored,
            )
            if why == DONE:
                break
            if why == ORDER:
                raise OrderError(position + at)
            if why == SLOTS:
                self._more_slots()
            elif why == COPIES:
                self._more_copies(int(columns.first[at + 1] - columns.first[at]))
            elif why == VERSIONS:
                self._more_versions(2 * len(self._state.clock))
            else:
                self._odd.append(self._state.odd.copy())
                self._state.counters[loop.SET_ASIDE] = 0
        self._end = position + len(columns.kind)

    def result(self, processes: list[str]) -> Surveyed:
        """What was found, when all rows were taken."""
        n = self._processes
        s = self._state
        return Surveyed(
            self._position,
            self._end - self._position,
            processes[:n],
            self._first_seq,
            self._first_mid,
            s.seq[:n].copy(),
            s.mid[:n].copy(),
            s.number[:n] - np.int32(_INSIDE),
            s.clock[s.current[:n], :n],
            _in_flight(s, n),
            self._reference,
            self.odd,
        )


def _in_flight(s: State, n: int) -> Flight:
    """What a kernel's state has in flight."""
    used = np.ones(len(s.copies), np.bool_)
    used[s.free_copies[: s.counters[loop.FREE_COPIES]]] = False
    copies = s.copies[used]
    slots, message = np.unique(copies[:, loop.SLOT], return_inverse=True)
    origin = np.zeros(len(slots), np.int64)
    origin[message] = copies[:, loop.PAIR] >> 32
    order = np.lexsort((s.slot_number[slots], origin))
    slots, origin = slots[order], origin[order]
    place = np.empty(len(order), np.int64)
    place[order] = np.arange(len(order))
    message = place[message]
    peers = copies[:, loop.PAIR] & 0xFFFFFFFF
    peers = peers[np.lexsort((peers, message))].astype(np.int32)
    first = np.zeros(len(slots) + 1, np.int64)
    np.cumsum(np.bincount(message, minlength=len(slots)), out=first[1:])
    mid = np.zeros(len(slots), np.int64)
    mid[message] = copies[:, loop.MID]
    versions, version = np.unique(s.slot_version[slots], return_inverse=True)
    return Flight(
        origin.astype(np.int32),
        mid,
        s.slot_number[slots],
        s.slot_sent[slots],
        version.astype(np.int32),
        first,
        peers,
        s.clock[versions, :n],
    )


# -- from cut to cut -----------------------------------------------------------------------


@compiled
def _resolve(
    local: Words,
    own: Words,
    to: Words,
    clock: Words,
    number: Words,
    first: Longs,
    values: Words,
    carried: Words,
    carried_number: Words,
    carried_version: Words,
    snapshots: Words,
    out: Words,
) -> None:
    """Local clocks to true ones; `own` is the process of each.

    values[first[i]:first[i + 1]] are the local numbers of i's messages from
    before, in order, and `carried` says which ones they are.
    """
    n = out.shape[1]
    for r in range(local.shape[0]):
        p = own[r]
        for j in range(n):
            out[r, j] = clock[p, j]
        for i in range(local.shape[1]):
            v = local[r, i]
            if v == 0:
                continue
            g = to[i]
            if v > _INSIDE:
                if g != p:
                    for j in range(n):
                        out[r, j] = max(out[r, j], clock[g, j])
                out[r, g] = max(out[r, g], number[g] + v - _INSIDE)
            else:
                k = first[i] + np.searchsorted(values[first[i] : first[i + 1]], v)
                m = carried[k]
                if m < 0:
                    continue  # a stranger: what comes of it is thrown away
                theirs = carried_version[m]
                for j in range(n):
                    out[r, j] = max(out[r, j], snapshots[theirs, j])
                out[r, g] = max(out[r, g], carried_number[m])


class Cut(NamedTuple):
    """The state between two rows of a run: all that a kernel has to know."""

    position: int
    processes: list[str]
    seq: Longs
    mid: Longs
    number: Words
    clock: Words
    flight: Flight

    @classmethod
    def start(cls, position: int = 0) -> Cut:
        """Before the first row."""
        return cls(
            position,
            [],
            np.zeros(0, np.int64),
            np.zeros(0, np.int64),
            np.zeros(0, np.int32),
            np.zeros((0, 0), np.int32),
            Flight(
                np.zeros(0, np.int32),
                np.zeros(0, np.int64),
                np.zeros(0, np.int32),
                np.zeros(0, np.int64),
                np.zeros(0, np.int32),
                np.zeros(1, np.int64),
                np.zeros(0, np.int32),
                np.zeros((0, 0), np.int32),
            ),
        )

    @property
    def nbytes(self) -> int:
        """What it takes to send this to somebody."""
        arrays: list[_Array] = [self.seq, self.mid, self.number, self.clock, *self.flight]
        return sum(array.nbytes for array in arrays)

    def after(self, segment: Surveyed) -> tuple[Cut, list[int]]:
        """The state at the end of the segment that begins here, and strangers in it.

        If there are any, by position, the clocks are wrong, and all else is
        right. Raises `OrderError` if the rows do not follow on those before.
        """
        here, to = self._with(segment.processes)
        _verify(here, segment, to)
        matched, left = _match(here.flight, segment, to)
        strangers = segment.arrived[matched < 0, Odd.POSITION].tolist()
        first, values, carried = _values(segment, matched)

        def resolved(local: Words, own: _Array) -> Words:
            out = np.empty((len(local), len(here.processes)), np.int32)
            _resolve(
                np.ascontiguousarray(local),
                own.astype(np.int32),
                to,
                here.clock,
                here.number,
                first,
                values,
                carried,
                here.flight.number,
                here.flight.version,
                here.flight.snapshots,
                out,
            )
            return out

        clock = here.clock.copy()
        clock[to] = resolved(segment.clock, to)
        seq, mid, number = here.seq.copy(), here.mid.copy(), here.number.copy()
        seq[to] = np.maximum(seq[to], segment.last_seq)
        mid[to] = np.maximum(mid[to], segment.last_mid)
        number[to] += segment.sends
        new = segment.flight
        # Version 0 is shared by all who delivered nothing: one of each sender.
        pair = new.version.astype(np.int64) << 32 | to[new.origin]
        pairs, version = np.unique(pair, return_inverse=True)
        snapshots = resolved(new.snapshots[pairs >> 32], pairs & 0xFFFFFFFF)
        new = Flight(
            to[new.origin],
            new.mid,
            here.number[to[new.origin]] + new.number - np.int32(_INSIDE),
            new.sent,
            version.astype(np.int32),
            new.first,
            to[new.peers],
            snapshots,
        )
        flight = _joined(_kept(here.flight, left), new)
        end = segment.position + segment.rows
        return Cut(end, here.processes, seq, mid, number, clock, flight), strangers

    def _with(self, names: list[str]) -> tuple[Cut, Words]:
        """The same with more processes, and the numbers of these names."""
        index = {name: k for k, name in enumerate(self.processes)}
        for name in names:
            index.setdefault(name, len(index))
        more = len(index) - len(self.processes)
        to = np.array([index[name] for name in names], np.int32)
        if not more:
            return self, to
        flight = self.flight
        cut = Cut(
            self.position,
            list(index),
            np.append(self.seq, np.full(more, -1)),
            np.append(self.mid, np.full(more, -1)),
            np.append(self.number, np.zeros(more, np.int32)),
            np.pad(self.clock, ((0, more), (0, more))),
            flight._replace(snapshots=np.pad(flight.snapshots, ((0, 0), (0, more)))),
        )
        return cut, to


def _verify(cut: Cut, segment: Surveyed, to: Words) -> None:
    """Do rows and messages go on growing?"""
    if cut.position != segment.position:
        raise ValueError(f"segment at {segment.position} does not begin at {cut.position}")
    for first, before in ((segment.first_seq, cut.seq), (segment.first_mid, cut.mid)):
        wrong = (first >= 0) & (first <= before[to])
        if wrong.any():
            raise OrderError(segment.position)


def _match(flight: Flight, segment: Surveyed, to: Words) -> tuple[Longs, npt.NDArray[np.bool_]]:
    """For each arrival its message in `flight`, or -1; and which copies are left."""
    arrived = segment.arrived
    message = np.repeat(np.arange(len(flight.mid)), np.diff(flight.first))
    here = len(message)
    origin = np.concatenate([flight.origin[message], to[arrived[:, Odd.ORIGIN]]])
    mid = np.concatenate([flight.mid[message], arrived[:, Odd.MID]])
    peer = np.concatenate([flight.peers, to[arrived[:, Odd.PROCESS]]])
    # Copies come before arrivals, and arrivals in their order: the sort is stable.
    order = np.lexsort((peer, mid, origin))
    same = np.zeros(len(order), np.bool_)
    same[1:] = (
        (origin[order[1:]] == origin[order[:-1]])
        & (mid[order[1:]] == mid[order[:-1]])
        & (peer[order[1:]] == peer[order[:-1]])
    )
    # Of each group of equal keys, its first member: a copy, or there is none.
    group = np.maximum.accumulate(np.where(same, 0, np.arange(len(order))))
    head = np.empty(len(order), np.int64)
    head[order] = order[group]
    mine = head[here:]
    matched = np.full(len(arrived), -1, np.int64)
    matched[mine < here] = message[mine[mine < here]]
    left = np.ones(here, np.bool_)
    left[mine[mine < here]] = False
    return matched, left


def _values(segment: Surveyed, matched: Longs) -> tuple[Longs, Words, Words]:
    """Local numbers of messages from before, by origin, and which ones they are."""
    arrived = segment.arrived
    origin = arrived[:, Odd.ORIGIN]
    value = arrived[:, Odd.MID] - segment.reference[origin] + _BEFORE
    order = np.lexsort((value, origin))
    first = np.searchsorted(origin[order], np.arange(len(segment.processes) + 1))
    return first, value[order].astype(np.int32), matched[order].astype(np.int32)


def _kept(flight: Flight, left: npt.NDArray[np.bool_]) -> Flight:
    """Only the copies that are left."""
    message = np.repeat(np.arange(len(flight.mid)), np.diff(flight.first))[left]
    keep, message = np.unique(message, return_inverse=True)
    first = np.zeros(len(keep) + 1, np.int64)
    np.cumsum(np.bincount(message, minlength=len(keep)), out=first[1:])
    versions, version = np.unique(flight.version[keep], return_inverse=True)
    return Flight(
        flight.origin[keep],
        flight.mid[keep],
        flight.number[keep],
        flight.sent[keep],
        version.astype(np.int32),
        first,
        flight.peers[left],
        flight.snapshots[versions],
    )


def _joined(a: Flight, b: Flight) -> Flight:
    """Both, in the order of origin and number."""
    origin = np.concatenate([a.origin, b.origin])
    number = np.concatenate([a.number, b.number])
    count = np.concatenate([np.diff(a.first), np.diff(b.first)])
    start = np.concatenate([a.first[:-1], b.first[:-1] + len(a.peers)])
    order = np.lexsort((number, origin))
    first = np.zeros(len(order) + 1, np.int64)
    np.cumsum(count[order], out=first[1:])
    places = np.repeat(start[order] - first[:-1], count[order]) + np.arange(first[-1])
    version = np.concatenate([a.version, b.version + np.int32(len(a.snapshots))])
    return Flight(
        origin[order],
        np.concatenate([a.mid, b.mid])[order],
        number[order],
        np.concatenate([a.sent, b.sent])[order],
        version[order],
        first,
        np.concatenate([a.peers, b.peers])[places],
        np.concatenate([a.snapshots, b.snapshots]),
    )


def walk(segments: Iterable[Surveyed], start: Cut | None = None) -> tuple[list[Cut], Strangers]:
    """The cuts before, between and after the segments, and where strangers are.

    A segment with strangers, given by their positions, is to be surveyed again
    without them; then all have to be walked again.
    """
    cuts = [start or Cut.start()]
    strangers: Strangers = {}
    for k, segment in enumerate(segments):
        cut, here = cuts[-1].after(segment)
        cuts.append(cut)
        if here:
            strangers[k] = here
    return cuts, strangers


# -- the second pass -----------------------------------------------------------------------


def resume(
    cut: Cut, origins: tuple[int, int] | None = None, *, examples: int = 10, every: bool = False
) -> Kernel:
    """A kernel that has come as far as the cut; it counts what comes after.

    `messages` and `violations` are those of the rows to come. An example may be
    of a message that had been overtaken before the cut: as many more are kept
    as messages are in flight there, so that the first ones can be told.
    """
    return _Resumed(cut, origins, examples, every)


class _Resumed(Kernel):
    _numbers = np.int32

    def __init__(
        self, cut: Cut, origins: tuple[int, int] | None, examples: int, every: bool
    ) -> None:
        more = len(cut.flight.mid) if examples else 0
        super().__init__(origins, examples=examples + more, every=every, unique=True)
        n = len(cut.processes)
        if not n:
            self._unique = False
            return
        self._more_processes(n)
        self._send_again(cut.flight)
        self._unique = False
        used = np.flatnonzero(self._state.slot_copies)
        which = self._state.slot_sent[used]  # of each slot: the message in flight
        self._set_numbers(cut, used, which)
        self._set_clocks(cut, used, which)

    def _send_again(self, flight: Flight) -> None:
        """Put what is in flight on its way, with numbers 1, 2, 3, ... of each origin."""
        many = len(flight.mid)
        self.feed(
            Columns(
                np.full(many, SEND, np.int8),
                flight.origin,
                np.arange(many),
                flight.origin,
                flight.mid,
                flight.first.astype(np.int32),
                flight.peers,
            ),
            self._processes,
        )

    def _set_numbers(self, cut: Cut, used: Longs, which: Longs) -> None:
        """True numbers and positions instead of those just given."""
        s, n, flight = self._state, len(cut.processes), cut.flight
        s.slot_number[used] = flight.number[which]
        s.slot_sent[used] = flight.sent[which]
        lo, hi = self._origins or (0, n)
        hi = min(hi, n)
        if lo < hi:
            low = s.low[:n, : hi - lo]
            begin = np.searchsorted(flight.origin, np.arange(lo, hi))
            rows, lanes = np.nonzero(low != loop.never(low))
            low[rows, lanes] = flight.number[begin[lanes] + low[rows, lanes] - 1]
        s.seq[:n], s.mid[:n], s.number[:n] = cut.seq, cut.mid, cut.number
        s.counters[loop.SENT] = 0

    def _set_clocks(self, cut: Cut, used: Longs, which: Longs) -> None:
        """True clocks instead of the empty one."""
        n, flight = len(cut.processes), cut.flight
        wanted = len(flight.snapshots) + n
        self._more_versions(max(len(self._state.clock), wanted + 65))
        s = self._state
        left = int(s.counters[loop.FREE_VERSIONS])
        versions = s.free_versions[left - wanted : left].copy()
        s.counters[loop.FREE_VERSIONS] = left - wanted
        lo, hi = self._origins or (0, n)
        hi = max(lo, min(hi, n))
        snapshots, clocks = versions[: len(flight.snapshots)], versions[len(flight.snapshots) :]
        s.clock[snapshots, : hi - lo] = flight.snapshots[:, lo:hi]
        s.clock[clocks, : hi - lo] = cut.clock[:, lo:hi]
        refers = flight.version[which]
        s.slot_version[used] = snapshots[refers]
        s.shared[snapshots] = np.bincount(refers, minlength=len(snapshots))
        s.shared[clocks] = 1
        s.shared[0] -= len(used)
        s.current[:n] = clocks
