"""Rows of one run as numbers: what the compiled code works on.

The processes of a run get numbers 0, 1, 2, ... in the order in which the rows
mention them, so everyone who reads the same rows in the same order gives the
same numbers, and blocks of origins mean the same thing to all. `Encoder` turns
the record batches of a trace into such columns; a batch may hold many runs.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from .._compiled import Bytes, Longs, Words, compiled
from ..core.errors import CausewireError
from ..trace.reader import TraceBatch
from ..trace.schema import DELIVER as DELIVER_KIND
from ..trace.schema import SEND as SEND_KIND

__all__ = [
    "COLUMNS",
    "DELIVER",
    "OTHER",
    "SEND",
    "Chunk",
    "Columns",
    "Encoder",
    "RunColumns",
    "ScatteredRunError",
    "kinds_of",
    "values_of",
]

OTHER, SEND, DELIVER = 0, 1, 2
"""Kinds of rows; `OTHER` takes no part in happened-before."""

COLUMNS = ("run", "process", "seq", "kind", "origin", "mid", "peers")
"""The columns of a trace that are needed when its rows are in order."""


class Columns(NamedTuple):
    """Rows of one run; `first[t]` to `first[t + 1]` are the peers of row t.

    `origin`, `mid` and `peers` are defined for sends and deliveries only.
    """

    kind: Bytes
    process: Words
    seq: Longs
    origin: Words
    mid: Longs
    first: Words
    peers: Words

    def rows(self, start: int, end: int) -> Columns:
        """Some of the rows, as views."""
        part = slice(start, end)
        return Columns(
            self.kind[part],
            self.process[part],
            self.seq[part],
            self.origin[part],
            self.mid[part],
            self.first[start : end + 1],
            self.peers,
        )

    def copy(self) -> Columns:
        """The same rows, in memory of their own."""
        first, peers = self.first, self.peers
        return Columns(
            self.kind.copy(),
            self.process.copy(),
            self.seq.copy(),
            self.origin.copy(),
            self.mid.copy(),
            first - first[0],
            peers[first[0] : first[-1]].copy(),
        )

    @staticmethod
    def joined(parts: Sequence[Columns]) -> Columns:
        """The rows of all parts (each with its own peers), one after the other."""
        if len(parts) == 1:
            return parts[0]
        count = np.concatenate([np.diff(part.first) for part in parts])
        first = np.zeros(len(count) + 1, np.int32)
        np.cumsum(count, out=first[1:])
        return Columns(
            np.concatenate([part.kind for part in parts]),
            np.concatenate([part.process for part in parts]),
            np.concatenate([part.seq for part in parts]),
            np.concatenate([part.origin for part in parts]),
            np.concatenate([part.mid for part in parts]),
            first,
            np.concatenate([part.peers for part in parts]),
        )


class RunColumns:
    """One run of a trace: its name, and its processes by number."""

    __slots__ = ("name", "processes")

    def __init__(self, name: str, processes: list[str] | None = None) -> None:
        self.name = name
        self.processes: list[str] = [] if processes is None else processes


class Chunk(NamedTuple):
    """Consecutive rows of one run; `position` counts all rows before them.

    By the time that a chunk is handed out, `run.processes` names everyone whom
    its rows mention. The columns are good until the next chunk is asked for.
    """

    run: RunColumns
    position: int
    columns: Columns


class _Maps(NamedTuple):
    """From codes of a batch to names of all runs, and to numbers in one run (-1: none yet)."""

    kind: Bytes
    process: Words
    origin: Words
    peer: Words
    process_number: Words
    origin_number: Words
    peer_number: Words
    local: Words  # of each name: its number in the run, or -1
    members: Words  # of each number in the run: the name


@compiled
def _encode(
    kinds: Words,
    processes: Words,
    seqs: Longs,
    origins: Words,
    mids: Longs,
    firsts: Words,
    peers: Words,
    maps: _Maps,
    out: Columns,
    known: int,
) -> int:
    """Codes of the batch to numbers of the run; returns how many are known now."""
    # Local names, so that the loop does not count references to the arrays.
    kind_of, process_name, origin_name, peer_name = maps.kind, maps.process, maps.origin, maps.peer
    process_of, origin_of, peer_of = maps.process_number, maps.origin_number, maps.peer_number
    local, members = maps.local, maps.members
    out_kind, out_process, out_seq = out.kind, out.process, out.seq
    out_origin, out_mid, out_first, out_peers = out.origin, out.mid, out.first, out.peers
    process_of[:] = -1
    origin_of[:] = -1
    peer_of[:] = -1
    rows = kinds.shape[0]
    base = firsts[0]
    for t in range(rows):
        kind = kind_of[kinds[t]]
        out_kind[t] = kind
        out_seq[t] = seqs[t]
        out_first[t] = firsts[t] - base
        code = processes[t]
        if process_of[code] < 0:
            name = process_name[code]
            if local[name] < 0:
                local[name] = known
                members[known] = name
                known += 1
            process_of[code] = local[name]
        out_process[t] = process_of[code]
        if kind == OTHER:
            continue
        code = origins[t]
        if origin_of[code] < 0:
            name = origin_name[code]
            if local[name] < 0:
                local[name] = known
                members[known] = name
                known += 1
            origin_of[code] = local[name]
        out_origin[t] = origin_of[code]
        out_mid[t] = mids[t]
        for k in range(firsts[t], firsts[t + 1]):
            code = peers[k]
            if peer_of[code] < 0:
                name = peer_name[code]
                if local[name] < 0:
                    local[name] = known
                    members[known] = name
                    known += 1
                peer_of[code] = local[name]
            out_peers[k - base] = peer_of[code]
    out_first[rows] = firsts[rows] - base
    return known


class Encoder:
    """Turns record batches into chunks, run by run.

    The rows of a run must be consecutive; `ended` reports a run whose rows are not.
    """

    def __init__(self) -> None:
        self.names: list[str] = []
        self._index: dict[str, int] = {}
        self._set = pa.array([], pa.string())
        self._local = np.full(64, -1, np.int32)
        self._members = np.zeros(64, np.int32)
        self._run = RunColumns("")
        self._begun = False
        self._ended: set[str] = set()
        self._position = 0
        word, long = np.empty(0, np.int32), np.empty(0, np.int64)
        self._out = Columns(np.empty(0, np.int8), word, long, word, long, word, word)

    def chunks(self, batch: TraceBatch) -> Iterator[Chunk]:
        """The rows of the batch, cut where the run changes."""
        columns = batch.columns
        runs = columns["run"].dictionary.to_pylist()
        codes = values_of(columns["run"].indices)
        changes = np.flatnonzero(codes[1:] != codes[:-1]) + 1
        process_name = self._names_of(columns["process"].dictionary)
        origin_name = self._names_of(columns["origin"].dictionary)
        peer_name = self._names_of(columns["peers"].values.dictionary)
        maps = _Maps(
            kinds_of(columns["kind"].dictionary),
            process_name,
            origin_name,
            peer_name,
            np.empty_like(process_name),
            np.empty_like(origin_name),
            np.empty_like(peer_name),
            self._local,
            self._members,
        )
        kind = values_of(columns["kind"].indices)
        process = values_of(columns["process"].indices)
        seq = values_of(columns["seq"], np.int64)
        origin = values_of(columns["origin"].indices)
        mid = values_of(columns["mid"], np.int64)
        first = values_of(columns["peers"].offsets)
        peers = values_of(columns["peers"].values.indices)
        for start, end in pairwise([0, *changes.tolist(), len(codes)]):
            run = self._enter(runs[codes[start]])
            out = self._room(end - start, int(first[end] - first[start]))
            known = _encode(
                kind[start:end],
                process[start:end],
                seq[start:end],
                origin[start:end],
                mid[start:end],
                first[start : end + 1],
                peers,
                maps,
                out,
                len(run.processes),
            )
            for k in range(len(run.processes), known):
                run.processes.append(self.names[self._members[k]])
            yield Chunk(run, self._position, out)
            self._position += end - start

    def _room(self, rows: int, peers: int) -> Columns:
        """Room for the next chunk: that of the last one, if it is large enough."""
        if rows > len(self._out.kind) or peers > len(self._out.peers):
            size = max(rows, len(self._out.kind))
            self._out = Columns(
                np.empty(size, np.int8),
                np.empty(size, np.int32),
                np.empty(size, np.int64),
                np.empty(size, np.int32),
                np.empty(size, np.int64),
                np.empty(size + 1, np.int32),
                np.empty(max(peers, len(self._out.peers)), np.int32),
            )
        return self._out.rows(0, rows)

    def _enter(self, name: str) -> RunColumns:
        """The run of the rows that come next."""
        if self._begun and self._run.name == name:
            return self._run
        if name in self._ended or (self._begun and self._run.name in self._ended):
            raise ScatteredRunError(name)
        if self._begun:
            self._ended.add(self._run.name)
            self._local[self._members[: len(self._run.processes)]] = -1
        self._begun = True
        self._run = RunColumns(name)
        return self._run

    def _names_of(self, dictionary: pa.Array) -> Words:
        """From the codes of a batch to numbers of names that last."""
        found = pc.index_in(dictionary, value_set=self._set)
        if found.null_count:
            for name in dictionary.to_pylist():
                if name not in self._index:
                    self._index[name] = len(self.names)
                    self.names.append(name)
            self._set = pa.array(self.names, pa.string())
            found = pc.index_in(dictionary, value_set=self._set)
            if len(self.names) > len(self._local):
                size = 2 * len(self.names)
                self._local = np.append(self._local, np.full(size - len(self._local), -1, np.int32))
                self._members = np.resize(self._members, size)
        # One more, for rows that have no origin: code 0 of an empty dictionary.
        result = np.zeros(len(dictionary) + 1, np.int32)
        result[:-1] = found
        return result


class ScatteredRunError(CausewireError):
    """Rows of a run go on after another run's."""


def kinds_of(dictionary: pa.Array) -> Bytes:
    """Kinds of rows, by their codes."""
    of = {SEND_KIND: SEND, DELIVER_KIND: DELIVER}
    return np.array([of.get(kind, OTHER) for kind in dictionary.to_pylist()], np.int8)


def values_of(array: pa.Array, kind: Any = np.int32) -> Any:
    """The values of an Arrow array as they lie in memory, whatever is null."""
    buffer = array.buffers()[1]
    if buffer is None:
        values = np.zeros(len(array), kind)
    else:
        values = np.frombuffer(buffer, kind)[array.offset : array.offset + len(array)]
    values.flags.writeable = False  # always, because it is part of the compiled type
    return values
