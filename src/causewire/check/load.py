"""All sends and deliveries of a trace in memory, in the order of their processes.

Numbers are given by name, run by run, so that nothing depends on how the rows
were spread over files.
"""

from __future__ import annotations

from typing import Any, NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa

from .._compiled import Bytes, Longs, Words
from ..trace.reader import Trace
from .collisions import Starts
from .columns import COLUMNS, RunColumns, kinds_of, values_of

__all__ = ["Loaded", "Rows", "gathered", "load"]

_Array: TypeAlias = Any  # numbers of some width


class Rows(NamedTuple):
    """Sends and deliveries by process, then by `seq`.

    Processes are numbered through all runs, in the order of the runs' names and
    of their own within a run; origins and peers are such processes too.
    """

    kind: Bytes
    process: Words
    seq: Longs
    origin: Words
    mid: Longs
    lamport: Longs
    peers_start: Longs
    peers_count: Longs
    peers: Words


class Loaded(NamedTuple):
    """What `load` returns."""

    rows: Rows
    timed: bool
    """Whether every row has a Lamport time."""
    runs: list[RunColumns]
    base: Longs
    """Of each run: the number of its first process."""
    total: int
    """Rows of the trace, of all kinds."""
    started_again: bool
    """Whether a process has several rows of kind `start`."""


def load(trace: Trace) -> Loaded:
    """Read a whole trace."""
    run_ids: dict[str, int] = {}
    name_ids: dict[str, int] = {}
    parts: list[tuple[_Array, ...]] = []
    mentioned: list[Longs] = []
    timed = True
    total = 0
    starts, started_again = Starts(), False
    for batch in trace.batches((*COLUMNS, "lamport")):
        c = batch.columns
        total += c.num_rows
        started_again |= starts.again(c)
        run = _numbers(run_ids, c["run"].dictionary)[values_of(c["run"].indices)]
        process = _numbers(name_ids, c["process"].dictionary)[values_of(c["process"].indices)]
        mentioned.append(np.unique(run << 32 | process))
        kind = kinds_of(c["kind"].dictionary)[values_of(c["kind"].indices)]
        rows = np.flatnonzero(kind)
        if "lamport" in c.schema.names and not c["lamport"].take(pa.array(rows)).null_count:
            lamport = values_of(c["lamport"], np.int64)[rows]
        else:
            timed = False
            lamport = np.zeros(len(rows), np.int64)
        offsets = values_of(c["peers"].offsets).astype(np.int64)
        first = np.zeros(len(rows) + 1, np.int32)
        np.cumsum(np.diff(offsets)[rows], out=first[1:])
        codes = gathered(offsets[rows], first, values_of(c["peers"].values.indices))
        peers = _numbers(name_ids, c["peers"].values.dictionary)[codes]
        origin = _numbers(name_ids, c["origin"].dictionary)
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
    numbered = _numbered(parts, mentioned, run_ids, name_ids, timed, total)
    return numbered._replace(started_again=started_again)


def _numbered(
    parts: list[tuple[_Array, ...]],
    mentioned: list[Longs],
    run_ids: dict[str, int],
    name_ids: dict[str, int],
    timed: bool,
    total: int,
) -> Loaded:
    """Put the parts together, with numbers in the order of names."""
    runs, run_rank = _ranked(run_ids)
    names, name_rank = _ranked(name_ids)

    def ranked(key: _Array) -> _Array:
        return run_rank[key >> 32] * len(names) + name_rank[key & 0xFFFFFFFF]

    columns: list[_Array] = [np.concatenate(column) for column in zip(*parts, strict=True)]
    for k in (1, 3, 7):
        columns[k] = ranked(columns[k])
    everyone = np.unique(
        np.concatenate([columns[1], columns[3], columns[7], *map(ranked, mentioned)])
    )
    for k in (1, 3, 7):
        columns[k] = np.searchsorted(everyone, columns[k]).astype(np.int32)
    base = np.searchsorted(everyone, np.arange(len(runs)) * len(names))
    members = [names[k] for k in (everyone % len(names)).tolist()]
    bounds = [*base.tolist(), len(members)]
    kind, process, seq, origin, mid, lamport, count, peers = columns
    order = np.lexsort((seq, process))
    rows = Rows(
        kind[order],
        process[order],
        seq[order],
        origin[order],
        mid[order],
        lamport[order],
        (np.cumsum(count) - count)[order],
        count[order],
        peers,
    )
    named = [RunColumns(name, members[bounds[k] : bounds[k + 1]]) for k, name in enumerate(runs)]
    return Loaded(rows, timed, named, base, total, False)


def gathered(start: _Array, first: Words, peers: Words) -> Words:
    """The lists that begin at `start`, one after the other; `first` has their ends."""
    places = np.repeat(start - first[:-1], np.diff(first)) + np.arange(first[-1])
    result: Words = peers[places]
    return result


def _numbers(ids: dict[str, int], dictionary: pa.Array) -> Longs:
    """Of each code of a batch: a number that lasts. One more, for no codes at all."""
    numbers = [ids.setdefault(name, len(ids)) for name in dictionary.to_pylist()]
    return np.array([*numbers, 0], np.int64)


def _ranked(ids: dict[str, int]) -> tuple[list[str], Longs]:
    """The names in order, and for each number the place of its name."""
    names = sorted(ids)
    rank = np.empty(len(ids), np.int64)
    rank[[ids[name] for name in names]] = np.arange(len(ids))
    return names, rank
