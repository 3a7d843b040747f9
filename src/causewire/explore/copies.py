"""Messages: the rows that tell of each copy, joined.

A copy is a message and one of its destinations. Up to four rows tell what became
of it: its causal send, its release to the network, its arrival and its delivery.
Traces of other systems often have only the first and the last.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .arrays import Longs, Words
from .table import DELIVERED, RECEIVED, RELEASED, SENT, Rows

__all__ = ["Copies", "join"]


@dataclass(frozen=True, slots=True)
class Copies:
    """Copies in the order of their sends; a row is -1 where the trace has none."""

    source: Words
    target: Words
    send: Longs
    release: Longs
    receive: Longs
    deliver: Longs
    of_row: Longs
    """Of each row: a copy that it tells about, or -1."""

    def __len__(self) -> int:
        return len(self.send)


def join(rows: Rows, processes: int) -> Copies:
    """Return all copies of the messages that the rows send."""
    own = rows.process == rows.origin
    sends = np.flatnonzero((rows.kind == SENT) & own)
    message = _Keys(rows, processes)
    _, once = np.unique(message.of(rows.origin[sends], rows.mid[sends], 0), return_index=True)
    sends = sends[np.sort(once)]
    send, target = _spread(rows, sends)
    keys = message.of(rows.origin[send], rows.mid[send], target)
    by_key = np.argsort(keys, kind="stable")
    ordered = keys[by_key]
    fresh = np.ones(len(ordered), np.bool_)
    fresh[1:] = ordered[1:] != ordered[:-1]
    kept = np.sort(by_key[fresh])  # one copy for each destination
    if len(kept) < len(keys):
        send, target, keys = send[kept], target[kept], keys[kept]
        by_key = np.argsort(keys, kind="stable")
        ordered = keys[by_key]
    of_row = np.full(len(rows), -1, np.int64)

    def found(at: Longs, to: Words) -> Longs:
        """Return the first of the rows for each copy, and note the copy of each row."""
        wanted = message.of(rows.origin[at], rows.mid[at], to)
        place = np.searchsorted(ordered, wanted)
        hit = place < len(ordered)
        hit[hit] = ordered[place[hit]] == wanted[hit]
        copy = by_key[place[hit]]
        result = np.full(len(send), -1, np.int64)
        result[copy[::-1]] = at[hit][::-1]  # the first row is written last
        of_row[at[hit]] = copy
        return result

    released = np.flatnonzero((rows.kind == RELEASED) & own)
    release = found(*_spread(rows, released))
    about = np.flatnonzero(rows.kind == RECEIVED)
    receive = found(about, rows.process[about])
    about = np.flatnonzero(rows.kind == DELIVERED)
    deliver = found(about, rows.process[about])
    of_row[send[::-1]] = np.arange(len(send))[::-1]
    return Copies(rows.process[send], target, send, release, receive, deliver, of_row)


def _spread(rows: Rows, chosen: Longs) -> tuple[Longs, Words]:
    """Return each chosen row once for each of its peers, and the peers."""
    part = rows.take(chosen)
    return np.repeat(chosen, np.diff(part.first)), part.peers


class _Keys:
    """Gives each (origin, mid, destination) a number of its own."""

    def __init__(self, rows: Rows, processes: int) -> None:
        self._processes = processes
        self._mids: Longs | None = None
        self._width = int(rows.mid.max(initial=0)) + 1
        if self._width * processes * processes >= 1 << 62:
            self._mids = np.unique(rows.mid)
            self._width = len(self._mids)

    def of(self, origin: Words, mid: Longs, target: Words | int) -> Longs:
        if self._mids is not None:
            mid = np.searchsorted(self._mids, mid)
        pair = origin.astype(np.int64) * self._processes + target
        result: Longs = pair * self._width + mid
        return result
