"""Traces whose rows do not come in order: sort them, or find the order.

The kernel takes rows as they are stored, and says so when it cannot: files of
several nodes one after the other, runs that are mixed, a process whose rows are
not in order. Then the trace is read into memory (about 60 bytes a row, and as
much again while it is sorted) and put in the order of its Lamport times.

A Lamport column is usable if it grows along each process and from each send to
its deliveries; if a single row says otherwise, or has none, all get new ones:
the length of the longest chain of rows that leads to a row (Kahn's algorithm,
along processes and messages). Only a cycle prevents that, and a trace with a
cycle describes nothing that can have happened: it is refused, and the cycle
named.

Which of the possible orders is taken makes no difference to what is counted.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from ..trace.reader import BATCH_ROWS, Trace
from ..trace.schema import TraceError
from .columns import COLUMNS, DELIVER, OTHER, SEND, Chunk, Columns, Run, kinds_of, values_of
from .compiled import Bytes, Longs, Numbers, Words, compiled
from .report import BadRow

__all__ = ["Sorted", "matches"]

_CYCLE_SHOWN = 6  # processes of a cycle that are named


class _Rows(NamedTuple):
    """The sends and deliveries of all runs, by process, then by `seq`.

    Processes are numbered through all runs, in the order of the runs' names and
    of their own within a run; origins and peers are such processes too.
    """

    kind: Bytes
    process: Words
    seq: Longs
    origin: Words
    mid: Longs
    lamport: Longs
    start: Longs  # of the peers
    count: Longs
    peers: Words


class Sorted:
    """The sends and deliveries of a trace in the order of their Lamport times."""

    unique = True

    def __init__(self, trace: Trace) -> None:
        self.name = trace.name
        loaded = _load(trace)
        self.rows = loaded.total
        self._runs, self._base = loaded.runs, loaded.base
        self._table = table = loaded.rows
        self._refuse_same_seq()
        sent, again = matches(
            table.kind,
            table.process,
            table.origin,
            table.mid,
            table.start,
            table.count,
            table.peers,
        )
        self.repeated = [self._repeated(row) for row in again.tolist()]
        table.kind[again] = OTHER
        lamport = table.lamport
        if not (loaded.timed and _usable(table, sent)):
            lamport = _levels(table.process, *_by_send(sent), sent)
            if len(lamport) and lamport.min() < 0:
                raise TraceError(self.name, None, self._cycle(sent, lamport))
        run = np.searchsorted(self._base, table.process, "right") - 1
        order = np.lexsort((table.process, lamport, run))
        self._order = order[table.kind[order] != OTHER]
        self._bounds = np.searchsorted(run[self._order], np.arange(len(self._runs) + 1)).tolist()

    def chunks(self) -> Iterator[Chunk]:
        """The rows, run by run."""
        table = self._table
        for k, run in enumerate(self._runs):
            base = int(self._base[k])
            for start in range(self._bounds[k], self._bounds[k + 1], BATCH_ROWS):
                rows = self._order[start : min(self._bounds[k + 1], start + BATCH_ROWS)]
                first = np.zeros(len(rows) + 1, np.int32)
                np.cumsum(table.count[rows], out=first[1:])
                columns = Columns(
                    table.kind[rows],
                    table.process[rows] - np.int32(base),
                    table.seq[rows],
                    table.origin[rows] - np.int32(base),
                    table.mid[rows],
                    first,
                    _gathered(table.start[rows], first, table.peers) - np.int32(base),
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

    def _refuse_same_seq(self) -> None:
        process, seq = self._table.process, self._table.seq
        same = np.flatnonzero((process[1:] == process[:-1]) & (seq[1:] == seq[:-1]))
        if len(same):
            run, name = self._name(int(process[same[0]]))
            what = f"process {name!r} of run {run!r} has two rows with seq {seq[same[0]]}"
            raise TraceError(self.name, None, what)

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
        hops = [b for a, b in zip(way, way[1:], strict=False) if sent[b] == a]
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


def _usable(rows: _Rows, sent: Longs) -> bool:
    """Do the Lamport times grow along processes and messages?"""
    t = rows.lamport
    along = (rows.process[1:] != rows.process[:-1]) | (t[1:] > t[:-1])
    matched = sent >= 0
    return bool(along.all() and (t[matched] > t[sent[matched]]).all())


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


# -- reading everything ---------------------------------------------------------------


class _Loaded(NamedTuple):
    rows: _Rows
    timed: bool  # whether every row has a Lamport time
    runs: list[Run]
    base: Longs  # of each run: the number of its first process
    total: int  # rows of the trace, of all kinds


def _lasting(ids: dict[str, int], dictionary: pa.Array) -> Longs:
    """From the codes of a batch to numbers that last; one more for an empty dictionary."""
    return np.array(
        [*(ids.setdefault(name, len(ids)) for name in dictionary.to_pylist()), 0], np.int64
    )


def _ranked(ids: dict[str, int]) -> tuple[list[str], Longs]:
    """The names in order, and for each number the place of its name."""
    names = sorted(ids)
    rank = np.empty(len(ids), np.int64)
    rank[[ids[name] for name in names]] = np.arange(len(ids))
    return names, rank


def _gathered(start: Longs, first: Words, peers: Words) -> Words:
    """The lists that begin at `start`, one after the other; `first` has their ends."""
    count = np.diff(first)
    return peers[np.repeat(start - first[:-1], count) + np.arange(first[-1])]


def _load(trace: Trace) -> _Loaded:
    """All sends and deliveries, by process and `seq`."""
    run_ids: dict[str, int] = {}
    name_ids: dict[str, int] = {}
    parts: list[tuple[Numbers, ...]] = []
    mentioned: list[Longs] = []
    timed = True
    total = 0
    for batch in trace.batches((*COLUMNS, "lamport")):
        c = batch.columns
        total += c.num_rows
        run = _lasting(run_ids, c["run"].dictionary)[values_of(c["run"].indices)]
        process = _lasting(name_ids, c["process"].dictionary)[values_of(c["process"].indices)]
        mentioned.append(np.unique(run << 32 | process))
        kind = kinds_of(c["kind"].dictionary)[values_of(c["kind"].indices)]
        rows = np.flatnonzero(kind)
        if "lamport" in c.schema.names and not c["lamport"].take(rows).null_count:
            lamport = values_of(c["lamport"], np.int64)[rows]
        else:
            timed = False
            lamport = np.zeros(len(rows), np.int64)
        offsets = values_of(c["peers"].offsets).astype(np.int64)
        first = np.zeros(len(rows) + 1, np.int32)
        np.cumsum(np.diff(offsets)[rows], out=first[1:])
        codes = _gathered(offsets[rows], first, values_of(c["peers"].values.indices))
        origin = _lasting(name_ids, c["origin"].dictionary)
        peers = _lasting(name_ids, c["peers"].values.dictionary)[codes]
        parts.append(
            (
                kind[rows],
                run[rows] << 32 | process[rows],
                values_of(c["seq"], np.int64)[rows],
                run[rows] << 32 | origin[values_of(c["origin"].indices)[rows]],
                values_of(c["mid"], np.int64)[rows],
                lamport,
                np.diff(first).astype(np.int64),
                np.repeat(run[rows], np.diff(first)) << 32 | peers,
            )
        )
    kind, process, seq, origin, mid, lamport, count, peers = (
        np.concatenate(column) for column in zip(*parts, strict=True)
    )
    # Numbers by name, so that nothing depends on the order of the files.
    run_names, run_rank = _ranked(run_ids)
    names, name_rank = _ranked(name_ids)

    def ranked(key: Longs) -> Longs:
        return run_rank[key >> 32] * len(names) + name_rank[key & 0xFFFFFFFF]

    process, origin, peers = ranked(process), ranked(origin), ranked(peers)
    everyone = np.unique(np.concatenate([process, origin, peers, *map(ranked, mentioned)]))
    process, origin, peers = (
        np.searchsorted(everyone, key).astype(np.int32) for key in (process, origin, peers)
    )
    base = np.searchsorted(everyone, np.arange(len(run_names)) * len(names))
    members = [names[k] for k in (everyone % len(names)).tolist()]
    ends = [*base[1:].tolist(), len(everyone)]
    runs = [Run(n, members[a:b]) for n, a, b in zip(run_names, base.tolist(), ends, strict=True)]
    start = np.cumsum(count) - count
    order = np.lexsort((seq, process))
    in_order = (
        column[order] for column in (kind, process, seq, origin, mid, lamport, start, count)
    )
    return _Loaded(_Rows(*in_order, peers), timed, runs, base, total)
