"""What an `adaptive` endpoint keeps for each other process."""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable, Iterable
from typing import Self

from .adaptive_packets import Dest, Entries, Entry
from .fifo import FifoPeer

__all__ = ["AdaptivePeer", "Listing", "Waiting"]


class Listing:
    """What is kept for a message in flight in addition to its number and payload."""

    __slots__ = ("entries", "group", "late", "parts")

    def __init__(
        self, group: tuple[str, ...], parts: Entries, entries: Entries, late: list[Entry]
    ) -> None:
        self.group = group
        self.parts = parts
        """What was listed ahead of it, as far as it is for the same destination."""
        self.entries = entries
        """What it lists itself."""
        self.late = late
        """News about what it lists, which leaves when it is acked."""

    def copy(self) -> Self:
        """Return an independent copy."""
        return type(self)(self.group, self.parts, self.entries, self.late[:])

    def state(self) -> Hashable:
        """Return everything that influences what happens next."""
        return (self.group, self.parts, self.entries, frozenset(self.late))


class Waiting:
    """A message in a lane."""

    __slots__ = ("group", "late", "mid", "part", "parts", "rest")

    def __init__(self, mid: int, group: tuple[str, ...], entries: Iterable[Entry]) -> None:
        self.mid = mid
        self.group = group
        self.rest = dict.fromkeys(entries)
        """What is still to be listed, in this order."""
        self.parts: list[Entry] = []
        """What was listed in parts."""
        self.part: int | None = None
        """The part that is to be confirmed, if any was sent."""
        self.late: list[Entry] = []
        """News about what was listed in parts, which leaves when the message is acked."""

    def copy(self) -> Self:
        """Return an independent copy."""
        twin = type(self)(self.mid, self.group, self.rest)
        twin.parts = self.parts[:]
        twin.part = self.part
        twin.late = self.late[:]
        return twin

    def state(self) -> Hashable:
        """Return everything that influences what happens next."""
        lists = (tuple(self.rest), tuple(self.parts), frozenset(self.late))
        return (self.mid, self.group, self.part, lists)


class AdaptivePeer(FifoPeer):
    """What an endpoint knows of one other process."""

    __slots__ = (
        "alias",
        "lane",
        "news",
        "number",
        "parts",
        "posted",
        "provisional",
        "sent",
        "unseen",
        "upto",
    )

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.upto = 0
        """It knows the past up to this stamp, from messages of this process."""
        self.posted = 0
        """The last message to it that has its list."""
        self.provisional = False
        """Whether its name is not known yet: see `adaptive_aliases`."""
        self.alias: tuple[str, int] | None = None
        """What it was called before, and the last message that was sent under that name,
        while one of them is not acked."""
        self.lane: deque[Waiting] = deque()
        self.sent: dict[int, Listing] = {}
        """What messages on their way list, by number; those that list nothing are not here."""
        self.news: dict[tuple[str, Dest], int] = {}
        """Deliveries to report to it: all messages of the pair up to this one."""
        self.unseen: Entries = ()
        """The news on their way to it."""
        self.number = 0
        """How many packets of news there were."""
        self.parts: dict[int, list[Entries]] = {}
        """What came ahead of its messages, by message."""

    def copy(self) -> Self:
        """Return an independent copy."""
        twin = super().copy()
        twin.upto = self.upto
        twin.posted = self.posted
        twin.provisional = self.provisional
        twin.alias = self.alias
        twin.lane = deque([waiting.copy() for waiting in self.lane])
        twin.sent = {mid: sent.copy() for mid, sent in self.sent.items()}
        twin.news = self.news.copy()
        twin.unseen = self.unseen
        twin.number = self.number
        twin.parts = {mid: parts[:] for mid, parts in self.parts.items()}
        return twin

    def state(self) -> Hashable:
        """Return everything that influences what happens next."""
        return (
            super().state(),
            tuple([waiting.state() for waiting in self.lane]),
            tuple([(mid, sent.state()) for mid, sent in self.sent.items()]),
            frozenset(self.news.items()),
            self.unseen,
            self.number,
            self.provisional,
            self.alias,
            frozenset([(mid, tuple(parts)) for mid, parts in self.parts.items()]),
        )

    def footprint(self) -> int:
        """Return the number of integers and identifiers."""
        listed = sum(1 + 3 * (len(s.parts) + len(s.entries)) for s in self.sent.values())
        waiting = sum(2 + 3 * (len(w.parts) + len(w.rest)) for w in self.lane)
        parts = sum(1 + 3 * sum(map(len, p)) for p in self.parts.values())
        news = 3 * (len(self.news) + len(self.unseen))
        return super().footprint() + 2 + listed + waiting + parts + news
