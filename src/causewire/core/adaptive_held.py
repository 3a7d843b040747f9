"""Messages of `adaptive` that wait at their destination, many in a row as one.

Under load most messages that wait have no list of their own: they wait behind one that has.
A driver that carries runs hands them over in runs, and as runs they are kept: under the
number of the first message, which waits for its predecessor. What is next on the channel of a
message that was delivered has its turn before everything else that has become ready. So a run
can be delivered at once, and the order is the same as if each message were held by itself.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Sequence
from heapq import heappop
from itertools import pairwise
from typing import Self

from .adaptive_packets import AdaptiveMessage
from .endpoint import Blocked, Packet, Wait
from .held import HoldingBuffer, Need
from .run import MessageRun

__all__ = ["RunBuffer", "TellingBuffer"]

_new = tuple.__new__


class RunBuffer(HoldingBuffer):
    """A receive buffer for messages, and for runs of messages without lists."""

    __slots__ = ("_behind", "_newest", "_runs")

    def __init__(self) -> None:
        super().__init__()
        self._runs: dict[tuple[str, int], tuple[MessageRun, int]] = {}
        """By source and number of a message in the buffer: the run that it begins, and its
        index in the run."""
        self._behind = 0
        """How many messages are in runs, the first of each apart."""
        self._newest: dict[str, int] = {}
        """By source: no message with a higher number has been held."""

    def __len__(self) -> int:
        return super().__len__() + self._behind

    def get(self, source: str, mid: int) -> Packet | None:
        if mid > self._newest.get(source, 0):
            return None
        return dict(self._unfolded()).get((source, mid)) if self._runs else super().get(source, mid)

    def holds_any(self, source: str, mids: Sequence[int]) -> bool:
        """Return whether a message of `source` with one of these ascending numbers is here."""
        if mids[0] > self._newest.get(source, 0):
            return False
        return any(self.get(source, mid) is not None for mid in mids)

    def hold(self, source: str, mid: int, packet: Packet, needs: Iterable[Need]) -> None:
        self._newest[source] = max(mid, self._newest.get(source, 0))
        super().hold(source, mid, packet, needs)

    def hold_run(self, source: str, run: MessageRun, start: int = 0) -> None:
        """Add messages without lists, each of which waits for its predecessor alone.

        Args:
            source: Their sender.
            run: The messages.
            start: The index of the first to be held.
        """
        mids = run.mids
        mid, pid = mids[start], mids[start - 1] if start else run.pid
        first = _new(AdaptiveMessage, ("msg", mid, pid, run.payloads[start], (), ()))
        self.hold(source, mid, first, [(source, pid)])
        if start + 1 < len(mids):
            self._runs[source, mid] = (run, start)
            self._behind += len(mids) - start - 1
            self._newest[source] = max(mids[-1], self._newest[source])

    def take_run(self, source: str, mid: int) -> tuple[MessageRun, int] | None:
        """Remove and return the run that a message begins, with its index, if there is one."""
        taken = self._runs.pop((source, mid), None) if self._runs else None
        if taken is not None:
            self._behind -= len(taken[0].mids) - taken[1] - 1
        return taken

    def awaited(self, source: str, mids: Sequence[int], start: int) -> int:
        """Return the index after the first message of a run that another message waits for."""
        queue = self._queues.get(source)
        return min(len(mids), bisect_left(mids, queue[0][0], start) + 1) if queue else len(mids)

    def delivered(self, origin: str, mid: int) -> None:
        queue = self._queues.get(origin)
        while queue and queue[0][0] <= mid:
            _, source, waiting = heappop(queue)
            self._met((source, waiting))
            if source == origin and self._ready and self._ready[-1] == (source, waiting):
                self._ready.rotate()  # the next on the channel, before all others
        if queue is not None and not queue:
            del self._queues[origin]

    def forget(self, origin: str) -> None:
        super().forget(origin)
        for source, mid in [key for key in self._runs if key[0] == origin]:
            self.take_run(source, mid)
        self._newest.pop(origin, None)

    def blocked(self, me: str) -> list[Blocked]:
        behind = [
            Blocked(source, mid, me, "receiver", (Wait("predecessor", source, message[2]),))
            for (source, mid), message in self._unfolded()
            if (source, mid) not in self._messages
        ]
        return sorted([*super().blocked(me), *behind])

    def count_from(self, source: str) -> int:
        runs = [taken for key, taken in self._runs.items() if key[0] == source]
        behind = sum(len(run.mids) - start - 1 for run, start in runs)
        return super().count_from(source) + behind

    @property
    def awaited_origins(self) -> Iterable[str]:
        """The processes whose messages others wait for."""
        return self._queues.keys()

    def first_missing(self) -> list[tuple[str, int, Wait]]:
        """Return, by source, how many messages wait for one that is not here, and for which first.

        This takes as long as there are runs, however many messages they have. It is exact if
        the messages of each process arrive in their order.
        """
        found: dict[str, tuple[int, str, int]] = {}
        for origin, queue in self._queues.items():
            newest = self._newest.get(origin, 0)
            for needed, source, mid in queue:
                if needed > newest:
                    need = (mid, origin, needed)
                    found[source] = min(need, found.get(source, need))
        counts = Counter([source for source, _ in self._missing if source in found])
        for (source, _), (run, start) in self._runs.items():
            if source in found:
                counts[source] += len(run.mids) - start - 1
        return [
            (source, counts[source], Wait("predecessor", origin, needed))
            for source, (_, origin, needed) in sorted(found.items())
        ]

    def footprint(self) -> int:
        return sum(1 + p.integers + p.identifiers for _, p in self._unfolded())

    def state(self) -> Hashable:
        return frozenset(self._unfolded())

    def copy(self) -> Self:
        twin = super().copy()
        twin._runs = self._runs.copy()
        twin._behind = self._behind
        twin._newest = self._newest.copy()
        return twin

    def _unfolded(self) -> Iterator[tuple[tuple[str, int], Packet]]:
        """Yield all messages by source and number, as if each were held by itself."""
        yield from self._messages.items()
        for (source, _), (run, start) in self._runs.items():
            for k in range(start + 1, len(run.mids)):
                fields = ("msg", run.mids[k], run.mids[k - 1], run.payloads[k], (), ())
                yield (source, run.mids[k]), _new(AdaptiveMessage, fields)


class TellingBuffer(RunBuffer):
    """The same, which also reports each message that it holds, once, with its reasons.

    Args:
        me: The process whose buffer it is.
        told: Where to append the reports.
        held: What is in the buffer already, which is not reported.
    """

    __slots__ = ("_me", "_told")

    def __init__(self, me: str, told: list[Blocked], held: RunBuffer) -> None:
        for name in (*HoldingBuffer.__slots__, *RunBuffer.__slots__):
            setattr(self, name, getattr(held, name))
        self._me = me
        self._told = told

    def hold(self, source: str, mid: int, packet: Packet, needs: Iterable[Need]) -> None:
        needs = list(needs)
        super().hold(source, mid, packet, needs)
        self._tell(source, mid, needs)

    def hold_run(self, source: str, run: MessageRun, start: int = 0) -> None:
        super().hold_run(source, run, start)
        for before, mid in pairwise(run.mids[start:]):
            self._tell(source, mid, [(source, before)])

    def _tell(self, source: str, mid: int, needs: list[Need]) -> None:
        waits = tuple([Wait("predecessor", *need) for need in sorted(set(needs))])
        self._told.append(Blocked(source, mid, self._me, "receiver", waits))

    def copy(self) -> Self:
        raise TypeError("a buffer that tells is not copied")
