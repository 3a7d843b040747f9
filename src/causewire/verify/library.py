"""What the endpoints do, as arrays: the part of the tables that all searches share.

The kernel asks by number: for the outcomes of an event at a local state, for what
is ready in an inbox, for an inbox with a bundle put into it. The answers come from
the actors, and so from the endpoints, and are kept here for the next search and
the next program. Local states of all actors are numbered in one sequence, and so
are the inboxes of all processes.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .actor import Actor
from .event import Outcome
from .kernel import EVENT_BITS, OFFSET, OVER, WRONG, Int8s, Ints, Longs, put, rehash
from .post import Post

__all__ = ["KeyTable", "Library", "grown", "rehashed"]

_EVENT_MASK = (1 << EVENT_BITS) - 1


def grown(array: Any, fill: int = -1, axis: int = 0) -> Any:
    """A copy that is twice as long."""
    return np.concatenate((array, np.full_like(array, fill)), axis)


def rehashed(rows: Longs) -> Longs:
    """A table by keys that has twice the room."""
    twice = np.full((2 * len(rows), 2), -1, np.int64)
    rehash(twice, rows)
    return twice


class KeyTable:
    """Values by key, as the kernel wants them: rows of both, at least half of them free."""

    __slots__ = ("count", "rows")

    def __init__(self, size: int = 1 << 12) -> None:
        self.rows: Longs = np.full((size, 2), -1, np.int64)
        self.count = 0

    def put(self, key: int, value: int) -> None:
        """Add a key that is not in the table, with its value."""
        if 2 * self.count >= len(self.rows):
            self.rows = rehashed(self.rows)
        put(self.rows, key, value)
        self.count += 1

    @property
    def nbytes(self) -> int:
        """The memory of the table, in bytes."""
        return self.rows.nbytes


class Library:
    """Outcomes, ready packets and arrivals of one stage, filled as they are asked for."""

    def __init__(self, post: Post) -> None:
        self.post = post
        n = post.setup.processes
        self.outcome_at = KeyTable()
        """(local state, event) -> first outcome and how many."""
        self.outcomes: Ints = np.full((1 << 12, 2 + n), -1, np.int32)
        """Local state after, cost, and the bundle for each process."""
        self.outcome: list[tuple[Actor, int, Outcome]] = []
        self.client: Int8s = np.zeros(1 << 12, np.int8)
        """By local state: whether the client may send now, whether it has something left
        to send, and whether the state is hot, as bits."""
        self.ready: Ints = np.full((1 << 12, 3), -1, np.int32)
        """By inbox: first and last of its entries in `pending`, and its heat."""
        self.pending: Ints = np.full((1 << 12, 2), -1, np.int32)
        """A packet that is ready, and the inbox that it leaves behind."""
        self.pending_count = 0
        self.added = KeyTable()
        """(inbox, bundle) -> inbox."""
        self._locals: list[tuple[Actor, int]] = []
        self._local_ids: dict[Actor, list[int]] = {}
        self._inboxes: list[tuple[int, int]] = []
        self._inbox_ids: list[list[int]] = [[] for _ in range(n)]
        self._asked: set[int] = set()

    # -- numbers --------------------------------------------------------------

    def local(self, actor: Actor, local: int) -> int:
        """The number of a local state of an actor here."""
        ids = self._local_ids.setdefault(actor, [])
        while len(ids) <= local:
            ids.append(-1)
        if ids[local] < 0:
            ids[local] = k = len(self._locals)
            self._locals.append((actor, local))
            while k >= len(self.client):
                self.client = grown(self.client, 0)
            bits = actor.sends_now(local), actor.locals[local].left > 0, actor.hot[local]
            self.client[k] = sum(bit << at for at, bit in enumerate(bits))
        return ids[local]

    def local_of(self, number: int) -> tuple[Actor, int]:
        """Return the actor and the local state that have a number."""
        return self._locals[number]

    def inbox(self, j: int, inbox: int) -> int:
        """The number of an inbox of process j here."""
        ids = self._inbox_ids[j]
        while len(ids) <= inbox:
            ids.append(-1)
        if ids[inbox] < 0:
            ids[inbox] = k = len(self._inboxes)
            self._inboxes.append((j, inbox))
            while k >= len(self.ready):
                self.ready = grown(self.ready)
            self.ready[k, 2] = self.post.heat(j, inbox)
        return ids[inbox]

    def inbox_of(self, number: int) -> tuple[int, int]:
        """Process and number there."""
        return self._inboxes[number]

    # -- answers --------------------------------------------------------------

    def fill_outcomes(self, key: int) -> None:
        """What an event does to a local state; reactions that can wait are left out."""
        if key in self._asked:
            return
        self._asked.add(key)
        actor, local = self._locals[key >> EVENT_BITS]
        event = (key & _EVENT_MASK) - OFFSET
        first = len(self.outcome)
        for outcome in actor.counting(local, event):
            self._append(actor, event, outcome)
        self.outcome_at.put(key, first << 16 | len(self.outcome) - first)

    def _append(self, actor: Actor, event: int, outcome: Outcome) -> None:
        k = len(self.outcome)
        self.outcome.append((actor, event, outcome))
        while k >= len(self.outcomes):
            self.outcomes = grown(self.outcomes)
        row = self.outcomes[k]
        if outcome.violation is not None:
            row[0] = WRONG
        elif outcome.over:
            row[0] = OVER
        else:
            row[0] = self.local(actor, outcome.local)
            for j, packets in outcome.sent:
                row[2 + j] = self.post.bundles[j](packets)
        row[1] = outcome.cost

    def fill_ready(self, number: int) -> None:
        """What may be taken from an inbox."""
        j, inbox = self._inboxes[number]
        if self.ready[number, 0] >= 0:
            return
        inboxes = self.post.inboxes[j]
        first = self.pending_count
        for packet, rest in self.post.ready(j, inboxes.values[inbox]):
            while self.pending_count >= len(self.pending):
                self.pending = grown(self.pending)
            left = self.inbox(j, inboxes(rest))
            self.pending[self.pending_count] = packet, left
            self.pending_count += 1
        self.ready[number, :2] = first, self.pending_count

    def fill_added(self, key: int) -> None:
        """An inbox with a bundle put into it."""
        number, bundle = key >> EVENT_BITS, key & _EVENT_MASK
        key_seen = ~key
        if key_seen in self._asked:
            return
        self._asked.add(key_seen)
        j, inbox = self._inboxes[number]
        inboxes = self.post.inboxes[j]
        packets = self.post.bundles[j].values[bundle]
        then = inboxes(self.post.put(j, inboxes.values[inbox], packets))
        self.added.put(key, self.inbox(j, then))

    @property
    def nbytes(self) -> int:
        """Memory of the arrays."""
        arrays = (self.outcomes, self.client, self.ready, self.pending)
        return sum(a.nbytes for a in arrays) + self.outcome_at.nbytes + self.added.nbytes
