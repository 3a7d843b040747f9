"""Traces whose rows do not come in order: sort them, or find the order.

The kernel takes rows as they are stored, and says so when it cannot: files of
several nodes one after the other, runs that are mixed, a process whose rows are
not in order. Then the trace is read into memory (about 60 bytes a row, and as
much again while it is sorted) and put in the order of its Lamport times.

A Lamport column is usable if it grows along each process and from each send to
its deliveries. If a single row contradicts this, or lacks a value, all rows get new ones:
the length of the longest chain of rows that leads to a row (Kahn's algorithm,
along processes and messages). Only a cycle prevents that, and a trace with a
cycle describes nothing that can have happened: it is refused, and the cycle
named.

Which of the possible orders is taken makes no difference to what is counted.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import numpy as np

from .._compiled import Bytes, Longs, Words, compiled
from ..trace.reader import BATCH_ROWS, Trace
from ..trace.schema import SameSeqError, TraceError
from .collisions import refuse_second_starts
from .columns import DELIVER, OTHER, SEND, Chunk, Columns
from .load import Rows, gathered, load
from .report import BadRow

__all__ = ["Sorted", "longest_chains", "matches"]

_CYCLE_SHOWN = 6  # processes of a cycle that are named


class Sorted:
    """The sends and deliveries of a trace in the order of their Lamport times."""

    unique = True

    def __init__(self, trace: Trace, *, strict: bool = False) -> None:
        """Read a whole trace; `strict` refuses rows that are there twice.

        Raises:
            TraceError: The trace cannot be read, has a cycle, or has two different rows
                with the same `seq` in a process (`SameSeqError`).
        """
        self.name = trace.name
        loaded = load(trace)
        if loaded.started_again:
            refuse_second_starts(trace)
        self._runs, self._base = loaded.runs, loaded.base
        self._table = loaded.rows
        self.identical = self._drop_identical(strict)
        self.rows = loaded.total - self.identical
        table = self._table
        sent, again = matches(
            table.kind,
            table.process,
            table.origin,
            table.mid,
            table.peers_start,
            table.peers_count,
            table.peers,
        )
        self._again = again
        table.kind[again] = OTHER
        lamport = table.lamport
        if not (loaded.timed and _usable(table, sent)):
            lamport = longest_chains(table.process, sent)
            if len(lamport) and lamport.min() < 0:
                raise TraceError(self.name, None, self._cycle(sent, lamport))
        run = np.searchsorted(self._base, table.process, "right") - 1
        order = np.lexsort((table.process, lamport, run))
        self._order = order[table.kind[order] != OTHER]
        self._bounds = np.searchsorted(run[self._order], np.arange(len(self._runs) + 1)).tolist()

    @property
    def repeated(self) -> int:
        """How many rows send a message again; they are left out."""
        return len(self._again)

    def repeated_rows(self, limit: int) -> list[BadRow]:
        """The first of those rows."""
        return [self._repeated(row) for row in self._again[:limit].tolist()]

    def chunks(self) -> Iterator[Chunk]:
        """The rows, run by run."""
        table = self._table
        for k, run in enumerate(self._runs):
            base = int(self._base[k])
            begin, end = self._bounds[k], self._bounds[k + 1]
            for start in range(begin, max(end, begin + 1), BATCH_ROWS):
                rows = self._order[start : min(end, start + BATCH_ROWS)]
                first = np.zeros(len(rows) + 1, np.int32)
                np.cumsum(table.peers_count[rows], out=first[1:])
                columns = Columns(
                    table.kind[rows],
                    table.process[rows] - np.int32(base),
                    table.seq[rows],
                    table.origin[rows] - np.int32(base),
                    table.mid[rows],
                    first,
                    gathered(table.peers_start[rows], first, table.peers) - np.int32(base),
                )
                yield Chunk(run, start, columns)

    # -- in words -----------------------------------------------------------------

    def _name(self, process: int) -> tuple[str, str]:
        """Run and process of a process's number."""
        k = int(np.searchsorted(self._base, process, "right")) - 1
        return self._runs[k].name, self._runs[k].processes[process - int(self._base[k])]

    def _repeated(self, row: int) -> BadRow:
        table = self._table
        run, process = self._name(int(table.process[row]))
        seq, mid = int(table.seq[row]), int(table.mid[row])
        return BadRow(run, process, seq, process, mid, "sent a second time")

    def _drop_identical(self, strict: bool) -> int:
        """Keep one of rows that are identical (a log with at-least-once delivery has some)."""
        table = self._table
        process, seq = table.process, table.seq
        same = np.flatnonzero((process[1:] == process[:-1]) & (seq[1:] == seq[:-1]))
        for row in same.tolist():
            if strict or self._content(row) != self._content(row + 1):
                run, name = self._name(int(process[row]))
                raise SameSeqError(self.name, run, name, int(seq[row]))
        if len(same):
            keep = np.ones(len(process), np.bool_)
            keep[same + 1] = False
            kept: list[Any] = [column[keep] for column in table[:-1]]
            self._table = Rows._make([*kept, table.peers])
        return len(same)

    def _content(self, row: int) -> tuple[object, ...]:
        """Return what a row says, its place and times aside."""
        table = self._table
        start = int(table.peers_start[row])
        peers = table.peers[start : start + int(table.peers_count[row])].tolist()
        return int(table.kind[row]), int(table.origin[row]), int(table.mid[row]), tuple(peers)

    def _cycle(self, sent: Longs, levels: Longs) -> str:
        """Find a cycle, and say it.

        Each row that Kahn's algorithm left over has another such row right
        before it. Walk back along them until the walk comes to a process at a
        row where it has been, or after one: from there the way leads on.
        """
        process = self._table.process
        row = int(np.flatnonzero(levels < 0)[0])
        walk = [row]
        where = {int(process[row]): 0}  # of each process: its earliest row in the walk
        while True:
            before = int(sent[row])
            row = before if before >= 0 and levels[before] < 0 else row - 1
            met = where.get(int(process[row]))
            if met is not None and row >= walk[met]:
                break
            where[int(process[row])] = len(walk)
            walk.append(row)
        way = [row, *reversed(walk[met:])]
        hops = [b for a, b in pairwise(way) if sent[b] == a]
        told = [
            self._step(hop, int(sent[after]))
            for hop, after in zip(hops, [*hops[1:], hops[0]], strict=True)
        ]
        run, _ = self._name(int(process[row]))
        words = "; ".join(told[:_CYCLE_SHOWN])
        if len(told) > _CYCLE_SHOWN:
            words += f"; and so on through {len(told)} processes"
        return f"run {run!r} cannot have happened, its events form a cycle: {words}"

    def _step(self, delivered: int, sent: int) -> str:
        table = self._table
        names = [self._name(int(table.origin[row]))[1] for row in (delivered, sent)]
        return (
            f"{names[1]} delivered {names[0]}:{table.mid[delivered]} (seq {table.seq[delivered]})"
            f" and then sent {names[1]}:{table.mid[sent]} (seq {table.seq[sent]})"
        )


# -- which send belongs to a delivery, for rows in memory ----------------------------


def matches(
    kind: Bytes,
    process: Words,
    origin: Words,
    mid: Longs,
    start: Longs,
    count: Longs,
    peers: Words,
) -> tuple[Longs, Longs]:
    """For each row the row of its send, and the rows that send again.

    -1 where the row is no delivery, or one of a message that was not sent or
    not addressed there. Of several sends of a message the first one counts.
    """
    sends = np.flatnonzero((kind == SEND) & (origin == process))
    deliveries = np.flatnonzero(kind == DELIVER)
    mids = np.unique(mid[sends])
    key = origin[sends].astype(np.int64) * len(mids) + np.searchsorted(mids, mid[sends])
    by_key = np.argsort(key, kind="stable")
    key, sends = key[by_key], sends[by_key]
    repeated = np.zeros(len(key), np.bool_)
    repeated[1:] = key[1:] == key[:-1]
    again = np.sort(sends[repeated])
    key, sends = key[~repeated], sends[~repeated]
    sent = np.full(len(kind), -1, np.int64)
    if len(sends) and len(deliveries):
        code = np.minimum(np.searchsorted(mids, mid[deliveries]), len(mids) - 1)
        wanted = origin[deliveries].astype(np.int64) * len(mids) + code
        at = np.minimum(np.searchsorted(key, wanted), len(key) - 1)
        found = (key[at] == wanted) & (mids[code] == mid[deliveries])
        sent[deliveries[found]] = sends[at[found]]
        _drop_unaddressed(sent, process, start, count, peers)
    return sent, again


@compiled
def _drop_unaddressed(
    sent: Longs, process: Words, start: Longs, count: Longs, peers: Words
) -> None:
    for t in range(sent.shape[0]):
        s = sent[t]
        if s >= 0:
            addressed = False
            for k in range(start[s], start[s] + count[s]):
                addressed |= peers[k] == process[t]
            if not addressed:
                sent[t] = -1


# -- Lamport times ------------------------------------------------------------------


def _usable(rows: Rows, sent: Longs) -> bool:
    """Do the Lamport times grow along processes and messages?"""
    t = rows.lamport
    along = (rows.process[1:] != rows.process[:-1]) | (t[1:] > t[:-1])
    matched = sent >= 0
    return bool(along.all() and (t[matched] > t[sent[matched]]).all())


def longest_chains(process: Words, sent: Longs) -> Longs:
    """Return the length of the longest chain of rows to each row; -1 on cycles and after them.

    Args:
        process: The process of each row; the rows are sorted by process, then by `seq`.
        sent: For each delivery the row of its send; -1 for other rows.
    """
    return _levels(process, *_by_send(sent), sent)


def _by_send(sent: Longs) -> tuple[Longs, Longs]:
    """The deliveries of each row: those of row t are from first[t] on."""
    deliveries = np.flatnonzero(sent >= 0)
    deliveries = deliveries[np.argsort(sent[deliveries], kind="stable")]
    first = np.searchsorted(sent[deliveries], np.arange(len(sent) + 1))
    return first, deliveries


@compiled
def _levels(process: Words, first: Longs, deliveries: Longs, sent: Longs) -> Longs:
    """Length of the longest chain to each row; -1 on cycles and after them."""
    rows = process.shape[0]
    waits = np.zeros(rows, np.int8)
    level = np.full(rows, -1, np.int64)
    reached = np.zeros(rows, np.int64)
    ready = np.empty(rows, np.int64)
    count = 0
    for t in range(rows):
        waits[t] = (sent[t] >= 0) + (t > 0 and process[t - 1] == process[t])
        if waits[t] == 0:
            ready[count] = t
            count += 1
    done = 0
    while done < count:
        t = ready[done]
        done += 1
        level[t] = reached[t] + 1
        for k in range(first[t], first[t + 1]):
            after = deliveries[k]
            reached[after] = max(reached[after], level[t])
            waits[after] -= 1
            if waits[after] == 0:
                ready[count] = after
                count += 1
        after = t + 1
        if after < rows and process[after] == process[t]:
            reached[after] = max(reached[after], level[t])
            waits[after] -= 1
            if waits[after] == 0:
                ready[count] = after
                count += 1
    return level
