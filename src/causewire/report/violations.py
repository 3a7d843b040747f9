"""Violations of causal order that can be seen in some rows of a run.

From the definition, for the few rows of a diagram: a process delivers a message
while one that happened before it, and was sent to that process too, has not been
delivered there. What happened outside of the rows is not known here, so more may
be wrong than is found; what is found is wrong. (`causewire.check` judges whole
traces.)
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

from ..trace.schema import DELIVER, RECEIVE, RELEASE, SEND, Event
from .picture import MessageKey, message_of

__all__ = ["Overtaking", "overtakings"]


class Overtaking(NamedTuple):
    """`first` happened before `second`; `process` delivered `second` without it.

    `chain` leads from `first` to `second`, both included: each message was sent
    by a process that had sent or delivered the one before.
    """

    process: str
    first: MessageKey
    second: MessageKey
    chain: tuple[MessageKey, ...]

    def copies(self) -> set[tuple[MessageKey, str]]:
        """Return the copies (message and destination) that show the violation."""
        found = {(self.first, self.process), (self.second, self.process)}
        for message, following in pairwise(self.chain):
            if message[0] != following[0]:
                found.add((message, following[0]))
        return found

    def concerns(self, row: Event) -> bool:
        """Return whether a row is part of what shows the violation."""
        message = message_of(row)
        if message is None or message not in (self.first, self.second, *self.chain):
            return False
        if row.kind in (SEND, RELEASE):
            return True
        return row.kind in (RECEIVE, DELIVER) and (message, row.process) in self.copies()


def overtakings(rows: Sequence[Event]) -> list[Overtaking]:
    """Return the first overtaking of each message at each process; rows in causal order."""
    bit: dict[MessageKey, int] = {}
    messages: list[MessageKey] = []
    past: list[int] = []
    """Of each message: what happened before it, as a set of bits."""
    known: dict[str, int] = {}
    due: dict[str, int] = {}
    """Of each process: what was sent to it, and is not delivered yet."""
    found: list[tuple[str, int, int]] = []
    for row in rows:
        message = message_of(row)
        if message is None:
            continue
        p = row.process
        if row.kind == SEND and message not in bit:
            k = bit[message] = len(messages)
            messages.append(message)
            past.append(known.get(p, 0))
            known[p] = known.get(p, 0) | 1 << k
            for peer in row.peers:
                due[peer] = due.get(peer, 0) | 1 << k
        elif row.kind == DELIVER and message in bit:
            k = bit[message]
            due[p] = due.get(p, 0) & ~(1 << k)
            overtaken = past[k] & due[p]
            known[p] = known.get(p, 0) | past[k] | 1 << k
            due[p] &= ~overtaken  # told once
            found += [(p, i, k) for i in _bits(overtaken)]
    after = _successors(rows, bit)
    return [
        Overtaking(p, messages[i], messages[k], tuple(messages[j] for j in _path(after, i, k)))
        for p, i, k in found
    ]


def _bits(word: int) -> list[int]:
    return [k for k in range(word.bit_length()) if word >> k & 1]


def _successors(rows: Sequence[Event], bit: dict[MessageKey, int]) -> list[list[int]]:
    """Return, for each message, those sent later by a process that had sent or delivered it."""
    after: list[list[int]] = [[] for _ in bit]
    seen: dict[str, list[int]] = {}
    sent: set[int] = set()
    for row in rows:
        message = message_of(row)
        if message is None or message not in bit or row.kind not in (SEND, DELIVER):
            continue
        k = bit[message]
        mine = seen.setdefault(row.process, [])
        if row.kind == SEND and k not in sent:
            sent.add(k)
            for earlier in mine:
                after[earlier].append(k)
        mine.append(k)
    return after


def _path(after: Sequence[Sequence[int]], first: int, last: int) -> list[int]:
    """Return a shortest path from one message to another."""
    parent = {first: first}
    queue = deque([first])
    while queue and last not in parent:
        k = queue.popleft()
        for j in after[k]:
            if j not in parent:
                parent[j] = k
                queue.append(j)
    path = [last]
    while path[-1] != first:
        path.append(parent[path[-1]])
    return path[::-1]
