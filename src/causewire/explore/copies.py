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
    """Copies in the order of their sends; a row is -1 if the trace lacks it."""

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
    keyed = _Keys(rows, processes)
    send, target = _spread(rows, sends)
    keys = keyed.of(rows.origin[send], rows.mid[send], target)
    by_key = np.argsort(keys)
    ordered = keys[by_key]
    fresh = np.ones(len(ordered), np.bool_)
    fresh[1:] = ordered[1:] != ordered[:-1]
    if not fresh.all():  # a destination is named twice, or a message sent again: the first counts
        kept = np.sort(np.minimum.reduceat(by_key, np.flatnonzero(fresh)))
        send, target, keys = send[kept], target[kept], keys[kept]
        by_key = np.argsort(keys)
        ordered = keys[by_key]
    of_row = np.full(len(rows), -1, np.int64)

    def found(at: Longs, to: Words) -> Longs:
        """Return the first of the rows for each copy, and note the copy of each row."""
        result = np.full(len(send), -1, np.int64)
        if not len(at) or not len(ordered):
            return result
        wanted = keyed.of(rows.origin[at], rows.mid[at], to)
        ranked = np.argsort(wanted)  # a search in order is many times faster
        wanted = wanted[ranked]
        place = np.minimum(np.searchsorted(ordered, wanted), len(ordered) - 1)
        hit = ordered[place] == wanted
        hits, copy = at[ranked[hit]], by_key[place[hit]]
        result[copy] = len(rows)
        np.minimum.at(result, copy, hits)
        of_row[hits] = copy
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
    begin = rows.first[:-1][chosen]
    count = rows.first[1:][chosen] - begin
    if (count == 1).all():
        return chosen, rows.peers[begin]
    places = np.repeat(begin - np.cumsum(count) + count, count) + np.arange(count.sum())
    return np.repeat(chosen, count), rows.peers[places]


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
