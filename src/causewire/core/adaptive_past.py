"""The undelivered part of a process's causal past, as `adaptive` keeps it.

There is one item for each origin and destination (or group): the newest message that is
not known to be delivered. Channels are FIFO, so it stands for the earlier ones. The items
form a linked list in the order in which they came; a newer message of the same pair moves
its item to the end. What a peer does not know yet is therefore the end of the list, from the
last message to that peer on, and is found without visiting the rest.

Each item has the peers that know it already, because they listed it to this process. For
each pair there are also the peers to which this process listed it: they get the news when
it is delivered.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from operator import itemgetter
from typing import Self, TypeAlias

from .adaptive_packets import Dest, Entry

__all__ = ["Owed", "Past"]

REMEMBERED = 512
"""Number of pairs for which it is remembered up to where their messages are delivered.

Safety does not depend on it. A process that has forgotten a pair may learn an old entry
again, and then lists it until it gets the news again."""


Owed: TypeAlias = tuple[str, int, int]
"""A peer that gets the news, the message that it learnt of, and the message that listed it."""


class _Item:
    """The newest message of a pair that is not known to be delivered."""

    __slots__ = ("dest", "knowing", "mid", "next", "origin", "previous", "stamp")

    previous: _Item
    next: _Item

    def __init__(self, origin: str, dest: Dest) -> None:
        self.origin = origin
        self.dest = dest
        self.mid = 0
        self.stamp = 0
        """When it came: items are in the order of their stamps."""
        self.knowing: set[str] = set()
        """The peers that listed it to this process."""


class Past:
    """What happened before, and is not known to be delivered."""

    __slots__ = ("_end", "_items", "_owed", "_settled", "me", "stamp")

    def __init__(self, me: str) -> None:
        self.me = me
        self.stamp = 0
        """That of the newest item."""
        self._end = _Item("", "")
        """Before the first item and after the last."""
        self._end.previous = self._end.next = self._end
        self._items: dict[Dest, dict[str, _Item]] = {}
        """By destination, then by origin."""
        self._owed: dict[tuple[str, Dest], dict[str, tuple[int, int]]] = {}
        """By pair, the peers to which it was listed: (message, message that listed it),
        in the order of the former."""
        self._settled: dict[tuple[str, Dest], int] = {}
        """Up to where the messages of a pair are delivered, the latest news last."""

    def __len__(self) -> int:
        return sum(map(len, self._items.values()))

    def __iter__(self) -> Iterator[Entry]:
        """Yield the items as entries, oldest first."""
        item = self._end.next
        while item is not self._end:
            yield item.origin, item.dest, item.mid
            item = item.next

    # -- what becomes known ---------------------------------------------------

    def sent(self, dest: Dest, mid: int) -> None:
        """Add message `mid` of this process to a destination, or to a group."""
        items = self._items.setdefault(dest, {})
        item = items.get(self.me)
        if item is None:
            item = items[self.me] = _Item(self.me, dest)
        elif item.next is self._end:  # the newest of all: it stays where it is
            self.stamp = item.stamp = self.stamp + 1
            item.mid = mid
            return
        else:
            self._unlink(item)
        item.mid = mid
        self._append(item)

    def learn(self, entries: Iterable[Entry], teller: str) -> None:
        """Add messages that `teller` listed; what is known already changes nothing.

        Messages from and to this process are none of its past.
        """
        me, settled, known = self.me, self._settled, self._items
        for origin, dest, mid in entries:
            if origin == me or dest == me or settled.get((origin, dest), 0) >= mid:
                continue
            items = known.get(dest)
            if items is None:
                items = known[dest] = {}
            item = items.get(origin)
            if item is None:
                item = items[origin] = _Item(origin, dest)
            elif item.mid >= mid:
                if item.mid == mid:
                    item.knowing.add(teller)
                continue
            else:
                self._unlink(item)
            item.mid = mid
            item.knowing = {teller}
            self._append(item)

    def delivered(self, origin: str, dest: Dest, mid: int) -> list[Owed]:
        """Drop the messages of a pair up to `mid`; returns the peers that get the news."""
        items = self._items.get(dest)
        if items is not None:
            item = items.get(origin)
            if item is not None and item.mid <= mid:
                self._unlink(item)
                del items[origin]
                if not items:
                    del self._items[dest]
        key = (origin, dest)
        if origin != self.me:
            mid = max(mid, self._settled.pop(key, 0))
            self._settled[key] = mid
            if len(self._settled) > REMEMBERED:
                del self._settled[next(iter(self._settled))]
        peers = self._owed.pop(key, None)
        if peers is None:
            return []
        due = [(peer, message, at) for peer, (message, at) in peers.items() if message <= mid]
        if len(due) < len(peers):
            for peer, _, _ in due:
                del peers[peer]
            self._owed[key] = peers
        return due

    def forget(self, peer: str) -> None:
        """Drop all messages from and to a process that is gone."""
        for dest, items in list(self._items.items()):
            for origin, item in list(items.items()):
                if peer in (origin, dest):
                    self._unlink(item)
                    del items[origin]
            if not items:
                del self._items[dest]
        self._settled = {key: mid for key, mid in self._settled.items() if peer not in key}
        self._owed = {key: peers for key, peers in self._owed.items() if peer not in key}
        self.drop_peer(peer)

    def drop_peer(self, peer: str) -> None:
        """Report nothing more to a peer."""
        for peers in self._owed.values():
            peers.pop(peer, None)
        self._owed = {key: peers for key, peers in self._owed.items() if peers}

    def rename_peer(self, old: str, new: str) -> None:
        """Report to a peer under another name."""
        for key, peers in self._owed.items():
            if old in peers:
                renamed = {new if peer == old else peer: due for peer, due in peers.items()}
                self._owed[key] = renamed

    # -- what to tell ---------------------------------------------------------

    def unlisted(self, to: str, since: int) -> list[Entry]:
        """Return the entries that a message to `to` must list, oldest first.

        Args:
            to: The destination.
            since: The stamp at the last message to it, which listed what was before.
        """
        entries: list[Entry] = []
        me = self.me
        item = self._end.previous
        while item.stamp > since:
            origin, dest = item.origin, item.dest
            if origin == me:
                if to not in dest if dest.__class__ is tuple else dest != to:
                    entries.append((origin, dest, item.mid))
            elif origin != to and to not in item.knowing:
                entries.append((origin, dest, item.mid))
            item = item.previous
        entries.reverse()
        return entries

    def listed(self, to: str, entries: Iterable[Entry], listing: int) -> None:
        """Record that message `listing` brings these entries to a peer.

        A destination needs no news, and a member of a group gets it from the origin.
        """
        for origin, dest, mid in entries:
            if to not in dest if dest.__class__ is tuple else dest != to:
                peers = self._owed.setdefault((origin, dest), {})
                peers.pop(to, None)
                late = bool(peers) and next(reversed(peers.values()))[0] > mid
                peers[to] = (mid, listing)
                if late:  # its message had to wait while others left
                    self._owed[origin, dest] = dict(sorted(peers.items(), key=itemgetter(1)))

    # -- as a value -----------------------------------------------------------

    def knowing(self, upto: dict[str, int]) -> tuple[tuple[Entry, frozenset[str]], ...]:
        """Return the items, oldest first, each with the peers that know it.

        `upto` has, for each peer, the stamp up to which it knows all items.
        """
        items = []
        item = self._end.next
        while item is not self._end:
            peers = {peer for peer, stamp in upto.items() if item.stamp <= stamp}
            peers |= {item.origin, *item.knowing}
            items.append(((item.origin, item.dest, item.mid), frozenset(peers)))
            item = item.next
        return tuple(items)

    def owed(self) -> Iterator[tuple[str, Dest, str, int, int]]:
        """Yield origin, destination, peer, the message it learnt, and the one that listed it."""
        for (origin, dest), peers in self._owed.items():
            for peer, (mid, listing) in peers.items():
                yield origin, dest, peer, mid, listing

    def settled(self) -> Iterator[Entry]:
        """Yield for each pair the message up to which all are known to be delivered."""
        for (origin, dest), mid in self._settled.items():
            yield origin, dest, mid

    def dests_from(self, origin: str) -> set[Dest]:
        """Return the destinations of a process, of items and of those to be reported."""
        known = {dest for dest, items in self._items.items() if origin in items}
        return known.union([dest for source, dest in self._owed if source == origin])

    def footprint(self) -> int:
        """Return the number of integers and identifiers."""
        size = 3 * len(self._settled) + sum(2 + 3 * len(peers) for peers in self._owed.values())
        item = self._end.next
        while item is not self._end:
            size += 4 + len(item.knowing)
            item = item.next
        return size

    def copy(self) -> Self:
        """Return an independent copy."""
        twin = type(self)(self.me)
        item = self._end.next
        while item is not self._end:
            twin.stamp = item.stamp - 1
            twin.put(item.origin, item.dest, item.mid, item.knowing.copy())
            item = item.next
        twin.stamp = self.stamp
        twin._owed = {key: peers.copy() for key, peers in self._owed.items()}
        twin._settled = self._settled.copy()
        return twin

    def put(self, origin: str, dest: Dest, mid: int, knowing: set[str]) -> None:
        """Add the first item of a pair, as the newest of all."""
        item = self._items.setdefault(dest, {})[origin] = _Item(origin, dest)
        item.mid = mid
        item.knowing = knowing
        self._append(item)

    # -- the list -------------------------------------------------------------

    def _append(self, item: _Item) -> None:
        self.stamp = item.stamp = self.stamp + 1
        end = self._end
        item.previous = end.previous
        item.next = end
        end.previous.next = item
        end.previous = item

    def _unlink(self, item: _Item) -> None:
        item.previous.next = item.next
        item.next.previous = item.previous
