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

from .._compiled import Bytes, Longs, compiled
from .columns import SEND, Columns, RunColumns
from .kernel import FOREIGN_SEND, UNMATCHED, Odd, OrderError
from .report import NEVER_SENT, BadRow
from .source import Source

__all__ = ["Judged", "judge"]

_PROCESS, _ORIGIN, _MID = int(Odd.PROCESS), int(Odd.ORIGIN), int(Odd.MID)

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
    odd: Longs,
    sent: Longs,
    addressed: Bytes,
) -> None:
    """Look for the sends of the odd rows, which are in the order of (origin, mid)."""
    kinds, processes, origins, mids = c.kind, c.process, c.origin, c.mid
    firsts, peers = c.first, c.peers
    many = odd.shape[0]
    for t in range(kinds.shape[0]):
        if kinds[t] != SEND or origins[t] != processes[t]:
            continue
        origin, mid = origins[t], mids[t]
        low, high = 0, many
        while low < high:
            k = (low + high) >> 1
            if odd[k, _ORIGIN] < origin or (odd[k, _ORIGIN] == origin and odd[k, _MID] < mid):
                low = k + 1
            else:
                high = k
        k = low
        while k < many and odd[k, _ORIGIN] == origin and odd[k, _MID] == mid:
            sent[k] = position + t
            for j in range(firsts[t], firsts[t + 1]):
                if peers[j] == odd[k, _PROCESS]:
                    addressed[k] = 1
            k += 1


def judge(source: Source, odd: Mapping[str, tuple[RunColumns, Longs]], limit: int) -> Judged:
    """Tell what the rows are that were set aside, run by run.

    At most `limit` bad rows are returned as examples.

    Raises:
        OrderError: A message is delivered before it is sent.
    """
    sent: dict[str, tuple[Longs, Longs, Bytes]] = {}
    for name, (_, rows) in odd.items():
        rows = rows[rows[:, Odd.WHY] == UNMATCHED]
        rows = rows[np.lexsort((rows[:, Odd.MID], rows[:, Odd.ORIGIN]))]
        if len(rows):
            nowhere = np.full(len(rows), -1, np.int64)
            sent[name] = (rows, nowhere, np.zeros(len(rows), np.int8))
    if sent:
        for chunk in source.chunks():
            if chunk.run.name in sent:
                rows, where, addressed = sent[chunk.run.name]
                _look(chunk.columns, chunk.position, rows, where, addressed)

    bad: Counter[str] = Counter()
    duplicates = 0
    examples: list[BadRow] = []
    for name, (run, rows) in odd.items():
        reasons: list[tuple[str, Longs]] = []
        reasons.append((SENT_BY_ANOTHER, rows[rows[:, Odd.WHY] == FOREIGN_SEND]))
        if name in sent:
            unmatched, where, addressed = sent[name]
            if ((addressed == 1) & (where > unmatched[:, Odd.POSITION])).any():
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
            for row in of_it[np.argsort(of_it[:, Odd.POSITION])][:limit].tolist()
        ]
        for row, reason in sorted(found)[: limit - len(examples)]:
            process, origin = run.processes[row[Odd.PROCESS]], run.processes[row[Odd.ORIGIN]]
            examples.append(BadRow(name, process, row[Odd.SEQ], origin, row[Odd.MID], reason))
    return Judged(duplicates, bad, examples)
