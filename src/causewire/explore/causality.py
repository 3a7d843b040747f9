"""Happened-before: the causal past and future of an event, and chains of messages.

The past of an event is a prefix of each process's rows, and its future a suffix
of each. So either is one number for each process: where the prefix ends, where
the suffix begins. Both grow by messages: a delivery in the past takes the
prefix of the sender to its send, a send in the future brings the suffix of the
receiver down to its delivery. Every row is looked at once, in slices.
"""

from __future__ import annotations

from functools import cached_property
from typing import NamedTuple

import numpy as np

from .arrays import Longs, Words
from .run import RunData

__all__ = ["Causality", "Hop"]


class Hop(NamedTuple):
    """One message of a chain: its copy, and so its send and its delivery."""

    copy: int
    send: int
    deliver: int


class _Edges(NamedTuple):
    """Messages by one of their ends: the process and place there, then the other end."""

    bounds: Longs
    place: Words
    other: Words
    other_place: Words
    copy: Longs


class Causality:
    """Answers about the happened-before relation of one run."""

    def __init__(self, run: RunData) -> None:
        self._run = run
        self._processes = len(run.processes)

    def _edges(self, here: Longs, there: Longs, copy: Longs) -> _Edges:
        run = self._run
        process = run.rows.process[here]
        order = np.lexsort((run.place[here], process))
        bounds = np.searchsorted(process[order], np.arange(self._processes + 1))
        here, there = here[order], there[order]
        return _Edges(
            bounds, run.place[here], run.rows.process[there], run.place[there], copy[order]
        )

    @cached_property
    def _delivered(self) -> Longs:
        return np.flatnonzero(self._run.copies.deliver >= 0)

    @cached_property
    def _out(self) -> _Edges:
        """Messages by their sends."""
        c = self._run.copies
        return self._edges(c.send[self._delivered], c.deliver[self._delivered], self._delivered)

    @cached_property
    def _in(self) -> _Edges:
        """Messages by their deliveries."""
        c = self._run.copies
        return self._edges(c.deliver[self._delivered], c.send[self._delivered], self._delivered)

    def past(self, row: int) -> Longs:
        """Return for each process how many of its rows happened before the row.

        The row itself counts as part of its past.
        """
        run, edges = self._run, self._in
        count = np.zeros(self._processes, np.int64)
        seen = np.zeros(self._processes, np.int64)
        count[run.rows.process[row]] = run.place[row] + 1
        while (open_ := np.flatnonzero(count > seen)).size:
            p = int(open_[0])
            a, b = edges.bounds[p], edges.bounds[p + 1]
            low, high = a + np.searchsorted(edges.place[a:b], [seen[p], count[p]])
            seen[p] = count[p]
            np.maximum.at(count, edges.other[low:high], edges.other_place[low:high] + 1)
        return count

    def future(self, row: int) -> Longs:
        """Return for each process the place of its first row that the row happened before.

        That is the number of its rows if there is none. The row itself counts as
        part of its future.
        """
        first, _ = self._forward(row, None)
        return first

    def chain(self, a: int, b: int) -> list[Hop] | None:
        """Return a shortest chain of messages by which a happened before b, if it did.

        The chain is empty if both are rows of one process.
        """
        run = self._run
        q, goal = int(run.rows.process[b]), int(run.place[b])
        first, rounds = self._forward(a, (q, goal))
        if first[q] > goal:
            return None
        hops = []
        for best, via in reversed(rounds):
            if via[q] < 0 or best[q] > goal:
                continue
            copy = int(via[q])
            send, deliver = int(run.copies.send[copy]), int(run.copies.deliver[copy])
            hops.append(Hop(copy, send, deliver))
            q, goal = int(run.rows.process[send]), int(run.place[send])
        return hops[::-1]

    def _forward(
        self, row: int, goal: tuple[int, int] | None
    ) -> tuple[Longs, list[tuple[Longs, Longs]]]:
        """Spread from a row by one message in each round, up to the goal or the end.

        Returns the first place reached at each process, and for each round the
        places that it improved, with the copies that did.
        """
        run, edges = self._run, self._out
        first = np.diff(run.bounds)
        seen = first.copy()
        first[run.rows.process[row]] = run.place[row]
        rounds: list[tuple[Longs, Longs]] = []
        while goal is None or first[goal[0]] > goal[1]:
            changed = np.flatnonzero(first < seen)
            if not changed.size:
                break
            reached = first.copy()
            via = np.full(self._processes, -1, np.int64)
            for p in changed.tolist():
                a, b = edges.bounds[p], edges.bounds[p + 1]
                low, high = a + np.searchsorted(edges.place[a:b], [first[p], seen[p]])
                part = slice(low, high)
                before = reached.copy()
                np.minimum.at(reached, edges.other[part], edges.other_place[part])
                for q in np.flatnonzero(reached < before).tolist():
                    hit = (edges.other[part] == q) & (edges.other_place[part] == reached[q])
                    via[q] = edges.copy[part][np.flatnonzero(hit)[0]]
            seen = first
            first = reached
            rounds.append((reached, via))
        return first, rounds
