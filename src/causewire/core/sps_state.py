"""`SpsState`: what an endpoint of `sps` keeps, and what people ask of it.

The rules by which it changes are in `sps`, and so is what the names mean.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import Any, Self

from .departure import GONE, messages
from .endpoint import Blocked, Footprint, Note, Wait
from .hybrid import HybridEndpoint
from .sliding import SlidingArray
from .sps_run import SpsPeer, SpsRun

__all__ = ["SpsState"]


class SpsState(HybridEndpoint[SpsPeer]):
    """The buffer u with its indexes, and the runs that have not left."""

    __slots__ = (
        *("_first", "_front", "_kept", "_lacks", "_m2", "_next", "_per", "_runs", "_start"),
        *("_tail", "_u", "_u2", "_u2_in"),
    )

    def __init__(self, me: str, group: Iterable[str] | None = None) -> None:
        super().__init__(me)
        self._u: dict[int, SpsPeer | SpsRun] = {}
        """By the number of the first message: the receiver of a message, or a run."""
        self._kept = 0
        """How many runs are in u."""
        self._first = self._front = 1
        """u.first, and the key of what contains that message."""
        self._next = 1
        """u.next"""
        self._u2 = self._u2_in = 1
        """u2, and the key of what contains that message."""
        self._lacks: SpsPeer | None = None
        """The receiver that has not acked the oldest message, if it is only one."""
        self._runs: SlidingArray[SpsRun] = SlidingArray()
        """The runs that have not left entirely; m1 is the first of them."""
        self._m2 = 0
        self._held = 0
        """Copies in these runs that have not left."""
        self._tail: list[SpsPeer] = []
        """The receivers of messages that are not in u: the run that is not closed."""
        self._start = 1
        """The number of the first of them."""
        self._per = -1
        """Their index of the next permit; -1 if the next message starts a new run."""

    def _peer(self, name: str) -> SpsPeer:
        self._refuse_forgotten((name,))
        peer = self._peers[name] = SpsPeer(name)
        return peer

    # -- what people ask ------------------------------------------------------

    def blocked(self) -> list[Blocked]:
        here: list[Blocked] = []
        known: tuple[tuple[str, int], ...] = ()
        permits: list[Wait] = []
        runs = self._holding()
        for run, waiting in zip(runs, self._waits_before(r.per for r in runs), strict=True):
            if waiting is not known:
                known, permits = waiting, [Wait("permit", *permit) for permit in waiting]
            for mid, names in run.unsent_messages():
                for name in names:
                    waits = tuple([wait for wait in permits if wait.peer != name])
                    here.append(Blocked(self.me, mid, name, "sender", waits))
        return here + super().blocked()

    def _holding(self) -> list[SpsRun]:
        """Return the runs that have not left entirely, as if all were closed."""
        runs = list(self._runs)
        if self._tail and self._per > self._missing.first:
            tail = SpsRun(self._start, self._tail[:], False, {}, self._per)
            if self._per <= self._second():
                tail.left = self._peers[self._missing.peek()[0]]
            runs.append(tail)
        return runs

    @property
    def held_back(self) -> int:
        held: int = self._held
        if self._tail and self._per > self._missing.first:
            held += len(self._tail)
            if self._per <= self._second():
                held -= self._tail.count(self._peers[self._missing.peek()[0]])
        return held + super().held_back

    def footprint(self) -> Footprint:
        more = 6 + len(self._tail)
        for entry in self._u.values():
            more += 2 + len(entry.peers) + 2 * len(entry.ends) if isinstance(entry, SpsRun) else 1
        return super().footprint().plus(more)

    # -- as a value -----------------------------------------------------------

    def _state(self) -> Hashable:
        # The four indexes and what the oldest lacks follow from all this.
        rest = (super()._state(), self._first, self._receivers())
        if not (self._held or self._tail):
            return rest
        runs = self._holding()
        waits = self._waits_before(run.per for run in runs)
        held = [
            (mid, names, permits)
            for run, permits in zip(runs, waits, strict=True)
            for mid, names in run.unsent_messages()
        ]
        return (*rest, tuple(held), tuple([peer.name for peer in self._tail]))

    def relative_state(self, note: Note) -> Hashable:
        held = [
            (note(self.me, mid), names, self._relative_waits(note, run.per))
            for run in self._runs
            for mid, names in run.unsent_messages()
        ]
        first = note(self.me, self._first)
        return (super().relative_state(note), first, self._receivers(), tuple(held))

    def _receivers(self) -> Hashable:
        """Return the receiver of each message in u, or its receivers."""
        receivers: list[Hashable] = []
        for entry in self._u.values():
            if not isinstance(entry, SpsRun):
                receivers.append(entry.name)
                continue
            for mid, names in messages(entry.mid, entry.peers, entry.multicast):
                if mid >= self._first:
                    receivers.append(names[0] if len(names) == 1 else names)
        return tuple(receivers)

    def _copy_into(self, twin: Self) -> None:
        super()._copy_into(twin)
        peers = twin._peers
        gone: Any = GONE
        twin._first, twin._front, twin._next = self._first, self._front, self._next
        twin._u2, twin._u2_in, twin._m2 = self._u2, self._u2_in, self._m2
        twin._lacks = self._lacks and peers[self._lacks.name]
        twin._held, twin._kept = self._held, self._kept
        twin._tail = [peers[peer.name] for peer in self._tail]
        twin._start, twin._per = self._start, self._per
        twin._u = {
            start: entry.copy(peers) if isinstance(entry, SpsRun) else peers.get(entry.name, gone)
            for start, entry in self._u.items()
        }
        twin._runs = SlidingArray(self._runs.first)
        for run in self._runs:
            same = twin._u.get(run.mid)  # or nobody is left in it
            twin._runs.add(same if isinstance(same, SpsRun) else run.copy(peers))
