"""Why is it a violation? A shortest chain of messages that shows it.

`first` happened before `second`: there is a chain of messages from one to the
other in which each was sent by a process that had sent or delivered the one
before. Of these chains a shortest one is the best argument, in the manner of
Elle: "a sent m1 to c; a then sent m2 to b; b delivered m2 and then sent m3 to
c; so m1 happened before m3, but c delivered m3 first".

One pass over the rows between the two sends finds it: for every process, keep
the length of the shortest chain to a message that it sent or delivered, and
that message; a send makes a chain longer by one, a delivery brings a chain to
another process. As rows come in order, what is known is final when it is used.

The rows between the sends have to be in memory for that. They usually are few,
because an example is the first time that a message was overtaken; an example
that reaches back further than `ROWS` rows is given without a chain.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from .._compiled import Bytes, Longs, Words, compiled
from .columns import DELIVER, SEND, Columns, RunColumns
from .kernel import Found
from .order import matches
from .report import Link, MessageId, Violation
from .source import Source

__all__ = ["ROWS", "explain"]

ROWS = 20_000_000
"""How far back a chain is looked for, in rows."""


class _Window(NamedTuple):
    """Rows of a run from one position on."""

    position: int
    columns: Columns


@compiled
def _shortest(kind: Bytes, process: Words, sent: Longs, processes: int) -> Longs:
    """The chain from the first row to the last one, as rows, backwards."""
    rows = kind.shape[0]
    far = rows + 1
    length = np.full(rows, far, np.int64)
    parent = np.full(rows, -1, np.int64)
    nearest = np.full(processes, far, np.int64)  # of each process: the shortest chain
    at = np.full(processes, -1, np.int64)  # and the message at its end
    length[0] = 1
    nearest[process[0]] = 1
    at[process[0]] = 0
    for t in range(1, rows):
        p = process[t]
        if kind[t] == SEND:
            if nearest[p] < far:
                length[t] = nearest[p] + 1
                parent[t] = at[p]
        elif sent[t] >= 0 and length[sent[t]] < nearest[p]:
            nearest[p] = length[sent[t]]
            at[p] = sent[t]
    chain = np.empty(length[rows - 1], np.int64)
    t = rows - 1
    for k in range(chain.shape[0]):
        chain[k] = t
        t = parent[t]
    return chain


def explain(source: Source, found: Mapping[str, tuple[RunColumns, Longs]]) -> list[Violation]:
    """The violations found (see `Found`) with their chains, in order."""
    wanted = {
        name: [
            (int(row[Found.FIRST_SENT]), int(row[Found.SENT]) + 1)
            for row in rows
            if row[Found.SENT] - row[Found.FIRST_SENT] < ROWS
        ]
        for name, (_, rows) in found.items()
    }
    windows: dict[str, list[_Window]] = {name: [] for name in found}
    late = {name: np.zeros(len(rows), np.bool_) for name, (_, rows) in found.items()}
    for chunk in source.chunks():
        name = chunk.run.name
        if name not in found:
            continue
        windows[name] += _cut(chunk.columns, chunk.position, wanted[name])
        _note_late(chunk.columns, chunk.position, found[name][1], late[name])
    result = []
    for name, (run, rows) in found.items():
        spans = _joined(windows[name])
        for k, row in enumerate(rows.tolist()):
            first = MessageId(run.processes[row[Found.FIRST_ORIGIN]], row[Found.FIRST_MID])
            second = MessageId(run.processes[row[Found.ORIGIN]], row[Found.MID])
            chain: tuple[Link, ...] = ()
            for span in spans:
                start, end = (
                    row[Found.FIRST_SENT] - span.position,
                    row[Found.SENT] + 1 - span.position,
                )
                if start >= 0 and end <= len(span.columns.kind):
                    chain = _chain(span.columns.rows(start, end), run)
            result.append(
                Violation(
                    name,
                    run.processes[row[Found.PROCESS]],
                    row[Found.SEQ],
                    first,
                    second,
                    bool(late[name][k]),
                    chain,
                )
            )
    return result


def _cut(columns: Columns, position: int, spans: Sequence[tuple[int, int]]) -> list[_Window]:
    """Copies of the rows that lie in one of the spans, in order."""
    rows = len(columns.kind)
    inside = np.zeros(rows + 2, np.bool_)
    for start, end in spans:
        inside[max(0, start - position) + 1 : max(0, end - position) + 1] = True
    inside[-1] = False
    edges = np.flatnonzero(inside[1:] != inside[:-1]).tolist()
    return [
        _Window(position + start, columns.rows(start, end).copy())
        for start, end in zip(edges[::2], edges[1::2], strict=True)
    ]


def _joined(windows: Sequence[_Window]) -> list[_Window]:
    """The same rows, with windows that touch made one."""
    result: list[list[_Window]] = []
    for window in windows:
        if result:
            last = result[-1][-1]
            if last.position + len(last.columns.kind) == window.position:
                result[-1].append(window)
                continue
        result.append([window])
    return [
        _Window(parts[0].position, Columns.joined([part.columns for part in parts]))
        for parts in result
    ]


def _note_late(columns: Columns, position: int, rows: Longs, late: npt.NDArray[np.bool_]) -> None:
    """Note which of the messages that were overtaken are delivered here after all."""
    for k in np.flatnonzero(~late):
        row = rows[k]
        if row[Found.POSITION] >= position + len(columns.kind):
            continue
        hits = np.flatnonzero(
            (columns.mid == row[Found.FIRST_MID])
            & (columns.process == row[Found.PROCESS])
            & (columns.origin == row[Found.FIRST_ORIGIN])
            & (columns.kind == DELIVER)
        )
        late[k] = bool(len(hits)) and position + hits[-1] > row[Found.POSITION]


def _chain(columns: Columns, run: RunColumns) -> tuple[Link, ...]:
    """A shortest chain from the first of the rows to the last."""
    first = columns.first.astype(np.int64)
    sent, _ = matches(
        columns.kind,
        columns.process,
        columns.origin,
        columns.mid,
        first[:-1],
        np.diff(first),
        columns.peers,
    )
    links = []
    for t in _shortest(columns.kind, columns.process, sent, len(run.processes))[::-1].tolist():
        message = MessageId(run.processes[columns.origin[t]], int(columns.mid[t]))
        to = columns.peers[columns.first[t] : columns.first[t + 1]].tolist()
        links.append(Link(message, tuple(dict.fromkeys(run.processes[k] for k in to))))
    return tuple(links)
