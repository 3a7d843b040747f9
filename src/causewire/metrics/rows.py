"""All rows of a run as numbers, for the compiled code that measures."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from .._compiled import Bytes, Longs, Words, compiled
from ..check.columns import values_of
from ..trace import DELIVER, NAMES, RECEIVE, RELEASE, SEND, Trace
from ..trace.reader import TraceBatch

__all__ = [
    "COLUMNS",
    "DELIVERED",
    "KINDS",
    "LAST_ARRIVAL",
    "NOTHING",
    "RECEIVED",
    "RELEASED",
    "SENT",
    "RunRows",
    "consecutive",
    "runs_of",
]

NOTHING = np.iinfo(np.int64).min
"""A number that is missing."""

KINDS = (
    *("", SEND, DELIVER, RELEASE, RECEIVE, "duplicate", "ack_receive", "permit_receive"),
    *("control_receive", "retransmit", "ack", "permit", "control", "job_start", "job_end"),
)
"""The kinds of rows that are measured, by their numbers; 0 is any other kind."""

SENT, DELIVERED, RELEASED, RECEIVED, LAST_ARRIVAL = 1, 2, 3, 4, 8
"""Numbers of kinds; those from `RECEIVED` to `LAST_ARRIVAL` are arrivals from the network."""

COLUMNS = [name for name in NAMES if name != "lamport"]


class RunRows(NamedTuple):
    """The rows of one run, process by process in the order of `seq`, or as they are stored.

    `first[t]` to `first[t + 1]` are the peers of row t. A missing origin is -1; other missing
    numbers are `NOTHING`.
    """

    run: str
    processes: Sequence[str]
    kind: Bytes
    process: Words
    seq: Longs
    time: Longs
    origin: Words
    mid: Longs
    first: Longs
    peers: Words
    payload: Longs
    metadata: Longs

    def take(self, rows: Longs) -> RunRows:
        """Return some of the rows, in this order."""
        first, places = _spread(self.first, rows)
        return self._replace(
            kind=self.kind[rows],
            process=self.process[rows],
            seq=self.seq[rows],
            time=self.time[rows],
            origin=self.origin[rows],
            mid=self.mid[rows],
            first=first,
            peers=self.peers[places],
            payload=self.payload[rows],
            metadata=self.metadata[rows],
        )


class _Part(NamedTuple):
    """Rows of a batch, with numbers of names that hold for the whole trace."""

    run: Words
    kind: Bytes
    process: Words
    seq: Longs
    time: Longs
    origin: Words
    mid: Longs
    peer_count: Longs
    peers: Words
    payload: Longs
    metadata: Longs


def runs_of(trace: Trace) -> Iterator[RunRows]:
    """Return the runs of a trace, one after the other.

    One run is in memory at a time, unless the rows of several runs are mixed: then all are.

    Raises:
        TraceError: The trace cannot be read.
    """
    if _mixed(trace):
        names = _Names()
        parts = [names.encode(batch) for batch in trace.batches(COLUMNS)]
        yield from _sorted_by_run(parts, names)
    else:
        yield from consecutive(trace.batches(COLUMNS))


def consecutive(batches: Iterable[TraceBatch]) -> Iterator[RunRows]:
    """Return the runs of batches in which the rows of each run are together."""
    names = _Names()
    held: list[_Part] = []
    for batch in batches:
        part = names.encode(batch)
        cuts = np.flatnonzero(part.run[1:] != part.run[:-1]) + 1
        if held and len(part.run) and held[-1].run[0] != part.run[0]:
            yield _run_rows(held, names)
            held = []
        start = 0
        peers = 0
        for end in [*cuts.tolist(), len(part.run)]:
            if start and start < end:
                yield _run_rows(held, names)
                held = []
            if start < end:
                size = int(part.peer_count[start:end].sum()) if len(cuts) else len(part.peers)
                held.append(_slice(part, start, end, peers, peers + size))
                peers += size
            start = end
    if held:
        yield _run_rows(held, names)


def _mixed(trace: Trace) -> bool:
    """Whether a run goes on after another one's rows."""
    ended: set[str] = set()
    current: str | None = None
    for batch in trace.batches(("run",)):
        column = batch.columns["run"]
        names = column.dictionary.to_pylist()
        codes = values_of(column.indices)
        if not len(codes):
            continue
        for at in [0, *(np.flatnonzero(codes[1:] != codes[:-1]) + 1).tolist()]:
            name = names[codes[at]]
            if name == current:
                continue
            if name in ended:
                return True
            if current is not None:
                ended.add(current)
            current = name
    return False


class _Names:
    """Numbers for names, which hold for a whole trace."""

    def __init__(self) -> None:
        self.names: list[str] = []
        self._index: dict[str, int] = {}

    def encode(self, batch: TraceBatch) -> _Part:
        columns = batch.columns
        lists = columns["peers"]
        offsets = values_of(lists.offsets)
        codes = values_of(lists.values.indices)[offsets[0] : offsets[-1]]
        kinds = np.array([_KIND.get(k, 0) for k in columns["kind"].dictionary.to_pylist()], "i1")
        return _Part(
            self._numbers(columns["run"]),
            kinds[values_of(columns["kind"].indices)],
            self._numbers(columns["process"]),
            _long(columns, "seq"),
            _long(columns, "time_ns"),
            self._numbers(columns["origin"]),
            _long(columns, "mid"),
            np.diff(offsets).astype(np.int64),
            self._of(lists.values.dictionary)[codes],
            _long(columns, "payload_bytes"),
            _long(columns, "metadata_bytes"),
        )

    def _numbers(self, column: pa.Array) -> Words:
        indices = column.indices
        if indices.null_count:
            indices = indices.fill_null(len(column.dictionary))
        result: Words = self._of(column.dictionary)[values_of(indices)]
        return result

    def _of(self, dictionary: pa.Array) -> Words:
        """Return the number of each code; one more, -1, for no name."""
        index, names = self._index, self.names
        numbers = []
        for name in dictionary.to_pylist():
            number = index.get(name)
            if number is None:
                number = index[name] = len(names)
                names.append(name)
            numbers.append(number)
        return np.array([*numbers, -1], np.int32)


_KIND = {kind: number for number, kind in enumerate(KINDS) if kind}


def _long(columns: pa.RecordBatch, name: str) -> Longs:
    if name not in columns.schema.names:
        return np.full(columns.num_rows, NOTHING, np.int64)
    column = columns[name]
    if column.null_count:
        column = column.fill_null(NOTHING)
    values: Longs = values_of(column, np.int64)
    return values


def _slice(part: _Part, start: int, end: int, peers: int, peers_end: int) -> _Part:
    if start == 0 and end == len(part.run):
        return part
    cut: list[Any] = [column[start:end] for column in part]
    cut[_Part._fields.index("peers")] = part.peers[peers:peers_end]
    return _Part(*cut)


def _run_rows(parts: Sequence[_Part], names: _Names) -> RunRows:
    """Put the rows of a run together, with numbers of processes from 0 on."""
    whole: list[Any] = [np.concatenate(column) for column in zip(*parts, strict=True)]
    run, kind, process, seq, time, origin, mid, count, peers, payload, metadata = whole
    number = np.full(len(names.names) + 1, -1, np.int32)
    members = np.empty(len(names.names), np.int32)
    many = _renumber(process, origin, peers, number, members)
    first = np.zeros(len(count) + 1, np.int64)
    np.cumsum(count, out=first[1:])
    named = [names.names[k] for k in members[:many].tolist()]
    return RunRows(
        names.names[run[0]],
        named,
        kind,
        process,
        seq,
        time,
        origin,
        mid,
        first,
        peers,
        payload,
        metadata,
    )


@compiled
def _renumber(process: Words, origin: Words, peers: Words, number: Words, members: Words) -> int:
    """Give processes numbers in the order in which they are mentioned, in place."""
    many = 0
    for column in (process, origin, peers):
        for t in range(column.shape[0]):
            name = column[t]
            if name < 0:
                continue
            if number[name] < 0:
                number[name] = many
                members[many] = name
                many += 1
            column[t] = number[name]
    return many


def _sorted_by_run(parts: Sequence[_Part], names: _Names) -> Iterator[RunRows]:
    """Return the runs of rows in any order; the rows of a run keep theirs."""
    whole: list[Any] = [np.concatenate(column) for column in zip(*parts, strict=True)]
    part = _Part(*whole)
    first = np.concatenate([[0], np.cumsum(part.peer_count)])
    order = np.argsort(part.run, kind="stable")
    run = part.run[order]
    bounds = [0, *(np.flatnonzero(run[1:] != run[:-1]) + 1).tolist(), len(run)]
    for start, end in pairwise(bounds):
        rows = order[start:end]
        cut: dict[str, Any] = {
            name: column[rows] for name, column in part._asdict().items() if name != "peers"
        }
        yield _run_rows([_Part(**cut, peers=part.peers[_spread(first, rows)[1]])], names)


def _spread(first: Longs, rows: Longs) -> tuple[Longs, Longs]:
    """Return where the peers of these rows begin once they are together, and where they are."""
    count = first[rows + 1] - first[rows]
    begin = np.zeros(len(rows) + 1, np.int64)
    np.cumsum(count, out=begin[1:])
    return begin, np.repeat(first[rows] - begin[:-1], count) + np.arange(begin[-1])
