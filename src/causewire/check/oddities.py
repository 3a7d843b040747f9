"""A second look at deliveries that matched nothing in flight.

The kernel sets them aside without knowing what is wrong with them, because it
forgets messages that have arrived. Here the trace is read again, and the sends
of just these messages are looked for:

    never sent      there is no such send
    not addressed   it was sent, but not to this process
    a duplicate     it was sent to this process earlier, and so delivered before
    too early       it was sent to this process, but later in the order of the
                    rows: then that order is not one in which the trace can be
                    checked (`OrderError`).

The first two are bad data. A duplicate is a fault of the protocol, perhaps, but
not a violation of causal order.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from .columns import SEND, Columns, Run
from .compiled import Bytes, Longs, compiled
from .kernel import FOREIGN_SEND, UNMATCHED, OrderError
from .report import BadRow
from .source import Source

__all__ = ["Judged", "judge"]

_POSITION, _PROCESS, _SEQ, _ORIGIN, _MID, _WHY = range(6)

NEVER_SENT = "delivered, but never sent"
NOT_ADDRESSED = "delivered, but not addressed to it"
SENT_BY_ANOTHER = "sent by another process than its origin"


class Judged(NamedTuple):
    """What became of the rows that were set aside."""

    duplicates: int
    bad: Counter[str]
    rows: list[BadRow]


@compiled
def _look(
    c: Columns,
    position: int,
    origin: Longs,
    mid: Longs,
    process: Longs,
    sent: Longs,
    addressed: Bytes,
) -> None:
    """Look for the sends of messages, given in the order of (origin, mid)."""
    kinds, processes, origins, mids = c.kind, c.process, c.origin, c.mid
    firsts, peers = c.first, c.peers
    for t in range(kinds.shape[0]):
        if kinds[t] != SEND or origins[t] != processes[t]:
            continue
        low, high = 0, origin.shape[0]
        while low < high:
            k = (low + high) >> 1
            if origin[k] < origins[t] or (origin[k] == origins[t] and mid[k] < mids[t]):
                low = k + 1
            else:
                high = k
        k = low
        while k < origin.shape[0] and origin[k] == origins[t] and mid[k] == mids[t]:
            sent[k] = position + t
            for j in range(firsts[t], firsts[t + 1]):
                if peers[j] == process[k]:
                    addressed[k] = 1
            k += 1


def judge(source: Source, odd: Mapping[str, tuple[Run, Longs]], limit: int) -> Judged:
    """Tell what the rows are that were set aside, run by run.

    At most `limit` bad rows are returned as examples.
    """
    sent: dict[str, tuple[Longs, Longs, Bytes]] = {}
    for name, (_, rows) in odd.items():
        rows = rows[rows[:, _WHY] == UNMATCHED]
        rows = rows[np.lexsort((rows[:, _MID], rows[:, _ORIGIN]))]
        if len(rows):
            nowhere = np.full(len(rows), -1, np.int64)
            sent[name] = (rows, nowhere, np.zeros(len(rows), np.int8))
    if sent:
        for chunk in source.chunks():
            if chunk.run.name in sent:
                rows, where, addressed = sent[chunk.run.name]
                columns = [np.ascontiguousarray(rows[:, k]) for k in (_ORIGIN, _MID, _PROCESS)]
                _look(chunk.columns, chunk.position, *columns, where, addressed)

    bad: Counter[str] = Counter()
    duplicates = 0
    examples: list[BadRow] = []
    for name, (run, rows) in odd.items():
        reasons: list[tuple[str, Longs]] = []
        reasons.append((SENT_BY_ANOTHER, rows[rows[:, _WHY] == FOREIGN_SEND]))
        if name in sent:
            unmatched, where, addressed = sent[name]
            if ((addressed == 1) & (where > unmatched[:, _POSITION])).any():
                raise OrderError("a message is delivered before it is sent")
            reasons.append((NEVER_SENT, unmatched[where < 0]))
            reasons.append((NOT_ADDRESSED, unmatched[(where >= 0) & (addressed == 0)]))
            duplicates += int((addressed == 1).sum())
        for reason, of_it in reasons:
            if len(of_it):
                bad[reason] += len(of_it)
        found = [
            (row, reason)
            for reason, of_it in reasons
            for row in of_it[np.argsort(of_it[:, _POSITION])][:limit].tolist()
        ]
        for row, reason in sorted(found)[: limit - len(examples)]:
            process, origin = run.processes[row[_PROCESS]], run.processes[row[_ORIGIN]]
            examples.append(BadRow(name, process, row[_SEQ], origin, row[_MID], reason))
    return Judged(duplicates, bad, examples)
