"""What a trace is: one row per event, one schema for every part.

A trace says what happened, where, and in which order, and nothing about how it
came to be: a simulated run, a live node and somebody else's log look the same.
The columns are given once, here, as plain Python values; the Arrow schema is
made of them on demand, so that a program that only writes JSON lines needs
neither pyarrow nor numpy.

Which order? Rows of one process are ordered by `seq`. Between processes only
messages order anything: the `send` of a message comes before each `deliver` of
it. `lamport` is a number that grows along both, so sorting by it is one
possible order of the whole run. Two rows of a process never share a `seq`; gaps
are fine (somebody kept only the rows that matter).

A message is named by `origin` and `mid`: who sent it, and its number there.
Rows that are not about a message leave both empty.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple

from ..core.errors import CausewireError

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = [
    "COLUMNS",
    "DELIVER",
    "HELD",
    "HELD_FOR",
    "INFERRED",
    "LANE",
    "NAMES",
    "ONE_FILE",
    "RECEIVE",
    "RELEASE",
    "REQUIRED",
    "SEND",
    "START",
    "Column",
    "Event",
    "SameSeqError",
    "TraceError",
    "arrow_schema",
    "because",
]

SEND = "send"
"""Causal send: the application handed the message over; `peers` = destinations."""

RELEASE = "release"
"""The message was put on the network; `peers` = destinations."""

RECEIVE = "receive"
"""The message came from the network, and may be held back."""

DELIVER = "deliver"
"""The application got the message."""

START = "start"
"""A start of the process begins; a live node writes one such row for each."""

HELD = "held"
"""The message came before and has to wait; rows `held_for` follow, and say what for."""

HELD_FOR = "held_for"
"""After the `receive` or `held` row of a message that has to wait, at the same process: this row is
about a message that it waits for; `peers` = the sender of the message that waits."""

LANE = "lane"
"""The message waits at its sender for one peer alone, which is in `peers`."""


class TraceError(CausewireError):
    """A trace that cannot be read, or is inconsistent; the message is one line.

    `row` counts from 1 within the file (a line, for text), or is None where the
    trouble is not in one row. `reason` is `rule`, which is the same for all rows of which
    the same is wrong, followed by what was found instead.
    """

    def __init__(self, file: object, row: int | None, rule: str, found: str = "") -> None:
        super().__init__(file, row, rule, found)
        self.file = str(file)
        self.row = row
        self.rule = " ".join(rule.split())
        self.reason = " ".join((rule + found).split())

    def __str__(self) -> str:
        where = self.file if self.row is None else f"{self.file}: row {self.row}"
        return f"{where}: {self.reason}"


ONE_FILE = (
    "use one trace file for all starts of a process, or give each start another name, "
    "or another run if all processes start again"
)
"""What to do about two starts of a process that cannot be told apart."""


INFERRED = "messages were inferred from vector clocks: that they are in order proves nothing"
"""Why finding no violation in a log that names no messages proves nothing."""


class SameSeqError(TraceError):
    """Two rows of a process that have the same place in its order.

    Two starts of a process that wrote a file each have such rows, if they have the same name in
    the same run.
    """

    def __init__(self, file: object, run: str, process: str, seq: int) -> None:
        what = f"process {process!r} of run {run!r} has two rows with seq {seq}"
        super().__init__(file, None, what)
        self.run, self.process, self.seq = run, process, seq

    def __reduce__(self) -> tuple[type[SameSeqError], tuple[str, str, str, int]]:
        return SameSeqError, (self.file, self.run, self.process, self.seq)

    def told(self, rows: Iterable[tuple[str, int, Event]]) -> TraceError:
        """Return the error that says where the two rows are, and what to do.

        Args:
            rows: The rows with this `seq`: the file of each, its row there, and itself.
        """
        found = list(rows)
        if len(found) < 2:
            return self
        file, row, first = found[0]
        others = [one for one in found[1:] if _content(one[2]) != _content(first)]
        other, at, _ = others[0] if others else found[1]
        where = f", the other is row {at}"
        if other != file:
            where += f" of {other}"
            where += f": {ONE_FILE}" if others else ""
        return TraceError(file, row, self.rule, where)


def _content(event: Event) -> tuple[object, ...]:
    """Return what a row says; its time tells one start of a process from another."""
    time = event.time_ns if event.kind == START else None
    return event.kind, event.origin, event.mid, event.peers, time


def because(error: OSError) -> str:
    """What the system says, without the path, which we say ourselves."""
    return os.strerror(error.errno) if error.errno else str(error)


class Event(NamedTuple):
    """One row of a trace, for people and for writers.

    A tuple with the columns in their order, so that a writer takes many of them
    apart with one `zip`.
    """

    run: str
    process: str
    seq: int
    time_ns: int | None
    lamport: int | None
    kind: str
    origin: str | None = None
    mid: int | None = None
    peers: tuple[str, ...] = ()
    payload_bytes: int | None = None
    metadata_bytes: int | None = None


class Column(NamedTuple):
    """One column: its name, its Arrow type, and what a row may leave out.

    `required` columns must be there and have a value in every row; in the others
    a value may be missing. `origin`, `mid` and `peers` must be there, and have values in
    the rows that are about a message. The rest may be missing altogether.
    """

    name: str
    type: str
    required: bool
    may_be_missing: bool


COLUMNS: tuple[Column, ...] = (
    Column("run", "string", True, False),
    Column("process", "string", True, False),
    Column("seq", "int64", True, False),
    Column("time_ns", "int64", False, True),
    Column("lamport", "int64", False, True),
    Column("kind", "string", True, False),
    Column("origin", "string", False, False),
    Column("mid", "int64", False, False),
    Column("peers", "list<string>", False, False),
    Column("payload_bytes", "int32", False, True),
    Column("metadata_bytes", "int32", False, True),
)
"""The columns in their order; the same as the fields of `Event`."""

NAMES: tuple[str, ...] = tuple(column.name for column in COLUMNS)
REQUIRED: tuple[str, ...] = tuple(column.name for column in COLUMNS if column.required)

assert Event._fields == NAMES


def arrow_schema() -> pa.Schema:
    """The schema for pyarrow, which is imported only here."""
    import pyarrow as pa

    types = {
        "string": pa.string(),
        "int64": pa.int64(),
        "int32": pa.int32(),
        "list<string>": pa.list_(pa.field("element", pa.string(), nullable=False)),
    }
    return pa.schema([pa.field(c.name, types[c.type], nullable=not c.required) for c in COLUMNS])
