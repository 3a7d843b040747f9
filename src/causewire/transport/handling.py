"""Which messages the application of the receiver has handled, for senders that want to know.

An ack says that a message is in the queue of the receiving node. A process that reports
handling also says which messages its application has finished with: `done` of a message, or
the end of a `with` block. The receiver keeps the numbers that are delivered and not handled
(`Unhandled`). What lies between two neighbours of these is handled, and such a range is what
it reports, so a range grows when its neighbour is handled, and the sender needs no more
ranges than there are unhandled messages (`HandledRanges`). A report is a fact that stays true: it
is sent again if it is lost, in any order.

A process that does not report costs nobody anything: there is no frame, and no record.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, TypeAlias

from ..core.endpoint import Delivery, RemoteProtocolError
from .budget import Budget
from .frames import put_handled

if TYPE_CHECKING:
    from .session import Session

__all__ = ["HandledRanges", "Report", "ReportedDelivery", "Unhandled"]

Report: TypeAlias = "Callable[[Session, int], None]"
"""Takes note that the application has handled a message of that session."""

MOST_RANGES = 1 << 16
"""The most ranges that a peer may make this process keep."""


class ReportedDelivery(Delivery):
    """A delivered message of a node that reports what its application has handled."""

    report: Report
    session: Session

    def done(self) -> None:
        self.report(self.session, self.mid)


class Unhandled:
    """Messages of one peer that were delivered here, and that the application works on."""

    __slots__ = ("_last", "_mids", "due")

    def __init__(self) -> None:
        self._mids: list[int] = []
        self._last = 0
        """The first and the last message that were delivered; an earlier run of this process
        may have got others before."""
        self.due: list[tuple[int, int]] = []
        """Ranges of handled messages that the peer has to learn."""

    def delivered(self, mid: int) -> None:
        """Add a message; their numbers ascend."""
        self._mids.append(mid)
        self._last = mid

    def done(self, mid: int) -> bool:
        """Record that a message is handled; return whether that is news."""
        mids = self._mids
        at = bisect_left(mids, mid)
        if at == len(mids) or mids[at] != mid:
            return False
        del mids[at]
        low = mids[at - 1] + 1 if at else 1
        high = mids[at] - 1 if at < len(mids) else self._last
        self.report([(low, high)])
        return True

    def restore(self, mids: list[int], last: int) -> None:
        """Continue after a crash: `mids` of the messages up to `last` are not handled."""
        self._mids = mids
        self._last = last
        self.report_all()

    def report_all(self) -> None:
        """Have everything reported again, as the peer may not have heard it."""
        low = 1
        ranges: list[tuple[int, int]] = []
        for mid in [*self._mids, self._last + 1]:
            if low < mid:
                ranges.append((low, mid - 1))
            low = mid + 1
        self.due = ranges

    def report(self, ranges: Iterable[tuple[int, int]]) -> None:
        """Have ranges reported, for the first time or again."""
        for low, high in ranges:
            self.due = [one for one in self.due if one[0] < low or one[1] > high]
            self.due.append((low, high))

    def put(self, budget: Budget) -> Sequence[tuple[int, int]]:
        """Write what is due into a datagram, as far as it fits; return these ranges."""
        due = self.due
        frame, count = put_handled(due, budget.left)
        if not due or not count or not budget.offer(frame):
            return ()
        self.due = due[count:]
        return due[:count]


class HandledRanges:
    """Messages to one peer that its application has handled, as it reports."""

    __slots__ = ("_highs", "_lows")

    def __init__(self) -> None:
        self._lows: list[int] = []
        self._highs: list[int] = []

    def __contains__(self, mid: int) -> bool:
        at = bisect_right(self._lows, mid)
        return at > 0 and self._highs[at - 1] >= mid

    def add(self, low: int, high: int) -> None:
        """Take a report: all messages to the peer from `low` to `high` are handled.

        Raises:
            RemoteProtocolError: There are more ranges than any application leaves.
        """
        lows, highs = self._lows, self._highs
        first = bisect_left(highs, low - 1)
        end = bisect_right(lows, high + 1)
        if first < end:
            low, high = min(low, lows[first]), max(high, highs[end - 1])
        elif len(lows) >= MOST_RANGES:
            raise RemoteProtocolError("too many ranges of handled messages")
        lows[first:end], highs[first:end] = [low], [high]

    def rest(self, arrived: int, last: int) -> int:
        """Return an upper bound of the messages to the peer that it has, and has not handled.

        Args:
            arrived: How many have arrived.
            last: The last of them. Numbers before it may be those of messages to others.
        """
        ranges = zip(self._lows, self._highs, strict=True)
        handled = sum([max(0, min(high, last) - low + 1) for low, high in ranges])
        return min(arrived, last - handled)
