"""The log of one member: what it has delivered, what waits, and who lacks what.

See `machine` for the theory. This module has entries and what follows from delivering one.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable

from .entries import (
    Add,
    Cut,
    Entries,
    Entry,
    Frame,
    Have,
    Item,
    Joined,
    Leave,
    Left,
    Member,
    Missed,
    Op,
    Post,
    Posted,
)
from .history import History

__all__ = ["Replica"]


class Replica(ABC):
    """The entries that a member has delivered, and what follows from them."""

    def __init__(self, me: Member) -> None:
        self.me = me
        self.out: list[tuple[tuple[Member, ...], Frame]] = []
        self.items: list[Item] = []
        self.identity = b""
        """Distinguishes the group from all others, also from those of the same name."""
        self.history = History()
        """The last messages, for members that come back."""
        self.joined = False
        """Whether the state of the group is here."""
        self.over: str | None = None
        """Why this membership has ended: `left` or `evicted`."""
        self.view: dict[Member, tuple[str, Member, int]] = {}
        self.past: set[Member] = set()
        """Members that left or were removed."""
        self.dead: set[Member] = set()
        """Members that are known to be gone, removed or not."""
        self.delivered: dict[Member, int] = {}
        self.stable: dict[Member, int] = {}
        """Up to which number all members have delivered the entries of each author."""
        self._floors: dict[str, int] = {}
        """Which incarnations of a process are known to be gone: this one and earlier ones."""
        self._heads: dict[Member, int] = {}
        self._log: dict[Member, dict[int, Entry]] = {}
        """Delivered entries that somebody may lack."""
        self._early: dict[Member, dict[int, Entry]] = {}
        """Entries that wait for others."""
        self._limit: dict[Member, int] = {}
        """Of those who are dead: entries up to this number may be delivered."""
        self._have: dict[Member, dict[Member, int]] = {}
        self._leaving = 0
        """The number of the last entry, if this member leaves."""
        self._informed: set[Member] = set()
        """Those who have delivered it."""
        self._base: dict[Member, int] = {}
        """After which of its own entries this member sent to each that joined later."""
        self._claims: dict[Member, dict[Member, int]] = {}
        """Reports that do not count yet."""
        self._told: dict[Member, int] = {}
        """What this member has reported itself."""

    @property
    def members(self) -> tuple[Member, ...]:
        """The members, in their order."""
        return tuple(sorted(self.view))

    @property
    def peers(self) -> tuple[Member, ...]:
        """The members that entries are sent to: all others that are not known to be dead."""
        return tuple([m for m in self.view if m not in self.dead and m != self.me])

    @property
    def kept(self) -> int:
        """How many delivered entries are kept because a member may lack them."""
        return sum(map(len, self._log.values()))

    @abstractmethod
    def _settle(self) -> None:
        """Do everything that has become possible."""

    @abstractmethod
    def _dropped(self, member: Member) -> None:
        """Forget what is noted of somebody who is not a member any more."""

    # -- entries ----------------------------------------------------------------

    def _write(self, op: Op) -> None:
        peers = self.peers
        number = self.delivered.get(self.me, 0) + 1
        entry = Entry(self.me, number, tuple(self._heads.items()), op)
        if peers:
            self.out.append((peers, Entries((entry,))))
        self._deliver(entry)
        self._settle()

    def _deliver(self, entry: Entry) -> None:
        author, number, deps, op = entry
        self.delivered[author] = number
        heads = self._heads
        for other, last in deps:
            if heads.get(other) == last:
                del heads[other]
        heads[author] = number
        self._log.setdefault(author, {})[number] = entry
        if isinstance(op, Post):
            self.items.append(Posted(author, number, op.payload, self.members))
            self.history.add(Missed(author, number, op.payload))
        elif isinstance(op, Add):
            self._add(op, author, number)
        elif isinstance(op, Leave):
            if author == self.me:
                self._leaving = number
                return
            self._drop(author, gone=False)
            self.out.append(((author,), Have(self.me, {author: number})))
            for member in self.peers:
                had = self._have.get(member, {}).get(author, 0)
                if had < op.known.get(member, number):
                    self._pass_on(member, [author])
        else:
            for member in op.members:
                self._drop(member, gone=True)

    def _has_ended(self, member: Member) -> bool:
        """Return whether the incarnation of a member is known to be gone."""
        return member.incarnation <= self._floors.get(member.name, 0)

    def _add(self, op: Add, author: Member, number: int) -> None:
        member = op.member
        if member in self.past:
            return
        have = dict(op.cut)
        if member in self.view:  # which of the cuts it began with is not known
            had = self._have.get(member, {})
            have = {author: min(count, had.get(author, 0)) for author, count in have.items()}
        else:
            self.items.append(Joined(member))
            if self._has_ended(member):
                self.dead.add(member)
            if member in self.dead:
                self._limit[member] = 0
        self.view[member] = op.address, author, number
        self._have[member] = have
        base = op.cut.get(self.me, 0)
        self._base[member] = min(base, self._base.get(member, base))
        self._told.clear()  # the new member has to learn everything
        if author != self.me:
            self._pass_on(member, [self.me, *self.past])

    def _pass_on(self, member: Member, authors: Iterable[Member]) -> None:
        """Send a member what it lacks of some authors, as far as it is known."""
        if member == self.me or member in self.dead:
            return
        have = self._have.get(member, {})
        missing = [
            entry
            for author in authors
            for number, entry in self._log.get(author, {}).items()
            if number > have.get(author, 0)
        ]
        if missing:
            self.out.append(((member,), Entries(tuple(missing))))

    def _drop(self, member: Member, gone: bool) -> None:
        if member not in self.view:
            return
        del self.view[member]
        self.past.add(member)
        self._have.pop(member, None)
        self._claims.pop(member, None)
        self._base.pop(member, None)
        self._early.pop(member, None)
        self._limit.pop(member, None)
        self.dead.discard(member)
        self._dropped(member)
        self.items.append(Left(member, gone))
        if member == self.me:
            self.over = "evicted" if gone else "left"

    def _keep(self, entries: Iterable[Entry]) -> None:
        """Keep entries that arrived until it is their turn."""
        for entry in entries:
            author = entry.author
            if entry.number > self.delivered.get(author, 0) and author not in self.past:
                self._early.setdefault(author, {})[entry.number] = entry

    def _advance(self) -> None:
        """Deliver what can be delivered."""
        progress = self.joined
        while progress and self.over is None:
            progress = False
            for author in list(self._early):
                waiting = self._early.get(author, {})
                while (entry := self._next(author, waiting)) is not None:
                    del waiting[entry.number]
                    self._deliver(entry)
                    progress = True
                if not waiting:
                    self._early.pop(author, None)

    def _next(self, author: Member, waiting: dict[int, Entry]) -> Entry | None:
        delivered = self.delivered
        number = delivered.get(author, 0) + 1
        entry = waiting.get(number)
        if entry is None or author in self.past or number > self._limit.get(author, number):
            return None
        for other, last in entry.deps:
            if delivered.get(other, 0) < last:
                return None
        return entry

    # -- stability --------------------------------------------------------------

    def _take_claims(self) -> None:
        for member, counts in list(self._claims.items()):
            if counts.get(member, 0) <= self.delivered.get(member, 0) and member in self.view:
                have = self._have.setdefault(member, {})
                for author, count in counts.items():
                    have[author] = max(have.get(author, 0), count)
                del self._claims[member]

    def _is_behind(self, have: Cut) -> bool:
        return any(have.get(author, 0) < self.delivered[author] for author in self._log)

    def _prune(self) -> None:
        have = [self._have.get(m, {}) for m in self.view if m != self.me]
        for author, entries in list(self._log.items()):
            count = min([self.delivered[author], *[h.get(author, 0) for h in have]])
            if count > self.stable.get(author, 0):
                self.stable[author] = count
                for number in [n for n in entries if n <= count]:
                    del entries[number]
            if not entries:
                del self._log[author]
