"""The part of `adaptive` for processes whose name is not known yet, or not used any more.

Entries name third processes, so all processes must mean the same by a name. On a node a name
stands for one incarnation of a process. The incarnation is known from the first contact on,
but messages may be sent before. Until then the process has an *alias* here (`expect`), and
messages to it are listed as messages to the alias. `identify` gives it its name; what is sent
from then on is listed under that name. The entry with the alias stays, at everybody who
learnt it, until those messages are delivered, or dropped because the process is gone or was
never reached. Then it is reported like any delivery, and no longer stands for anything.

The destination of such an entry does not know under which alias it was meant. A driver
reads an alias of this process as this process. If the messages went to another incarnation,
they never come; the news that the entry is void (`void`) frees what waits for it. Such news
cannot wait for the ack of the message that listed the entry, which may be the one that waits. So
it is sent at once, in addition, and the destination remembers it in case it comes first. News
travels along the way of the entry, and a process on that way may be gone. So the origin itself
tells everybody it knows, and whom it meets later, which of its messages to aliases do not come: the
destination, if it ever meets it, or else those from whom the destination has the entry.

This is safe: messages to an alias become void when their origin gives up the process for
which it stood. What it sends to the next incarnation has higher numbers, so a process that
takes a number for void gets no message of that number any more.

What the origin keeps does not grow with the names that it has called by an alias:

    To the destination, when it is met: no message of the origin with a number below that of the
    first one to it comes. That holds by itself, as numbers grow. So nothing is kept for each name
    but the number of the last message that was sent to any alias (`_aliased`), to say no more
    than is needed.

    To everybody: let W be below the number of each message to an alias that is not acked and
    whose process is not given up, and not above that of the newest message to an alias. Then all
    messages to aliases up to W are delivered, or do not come; and this stays true, as later ones
    have higher numbers. So one report with the number W (`UNMET`) takes the place of those for
    single aliases. Whoever gets it drops all such entries of the origin, tells those to whom it
    listed them, and does not learn them again (`_unmet`): by I2 of `adaptive` this is news like any
    other. It concerns only entries with an alias; the destination of an entry reads the alias as
    its own name, so for itself it takes nothing from this report. It needs nothing: if it has met
    the origin, it has been told the number above, and what has a higher one was sent to it. If
    not, it hears of the single entry from whoever listed it, as before.

A report for a single alias is kept (`_dropped`) only while an earlier message to another alias may
still be delivered.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Self

from .adaptive_held import RunBuffer, TellingBuffer
from .adaptive_lanes import LaneEndpoint
from .adaptive_packets import UNMET, Entries, Entry, is_alias
from .endpoint import Blocked, LocalProtocolError

__all__ = ["AliasEndpoint"]


class AliasEndpoint(LaneEndpoint):
    """Lets a driver name processes, and use names again."""

    __slots__ = ("_aliased", "_dropped", "_held", "_over", "_unmet", "_void")

    def __init__(
        self, me: str, group: Iterable[str] | None = None, *, cap: int | None = None
    ) -> None:
        super().__init__(me, cap=cap)
        self._held = RunBuffer()
        self._void: dict[str, int] = {}
        """By origin: messages to an alias of this process up to this number do not come."""
        self._aliased = 0
        """The last message of this process to an alias that is not in use any more."""
        self._over = 0
        """Messages of this process to aliases up to this number are delivered or do not come,
        and those that do not come are not in `_dropped`."""
        self._dropped: dict[str, int] = {}
        """By alias: messages of this process to it up to this number do not come."""
        self._unmet: dict[str, int] = {}
        """By origin: what it said of itself, as in `_over`."""

    def tell_waits(self) -> None:
        """Have `take_waits` return what messages wait for; without this it costs nothing."""
        self._told = []
        self._held = TellingBuffer(self.me, self._told, self._held)

    def take_waits(self) -> list[Blocked]:
        """Return each message that has begun to wait since the last call, with the reasons.

        They are those that `blocked` gave when the wait began.
        """
        if not self._told:
            return []
        told = self._told.copy()
        self._told.clear()
        return told

    def expect(self, alias: str) -> None:
        """Let messages be sent to a process whose name is not known yet.

        Args:
            alias: What to call it until `identify` or `abandon`. It must end in NUL, and no
                name may.

        Raises:
            LocalProtocolError: It does not, or is in use.
        """
        if alias in self._peers or not is_alias(alias):
            raise LocalProtocolError(f"{alias!r} cannot be an alias")
        self._peer(alias).provisional = True

    def identify(self, alias: str, name: str) -> None:
        """Give a process its name; nothing has come from it, or was delivered to it, so far.

        Args:
            alias: What it was called, since `expect`.
            name: Its name.

        Raises:
            LocalProtocolError: There is no such alias, or there is a process of that name.
        """
        record = self._peers.get(alias)
        if record is None or not record.provisional:
            raise LocalProtocolError(f"{alias!r} is not an alias")
        if name in self._peers or name in self._forgotten or name == self.me:
            raise LocalProtocolError(f"{name!r} is the name of another process")
        self._flush()
        del self._peers[alias]
        self._peers[name] = record
        record.name = name
        record.provisional = False
        first = record.mids[record.head] if record.posted else self._mid + 1
        if before := min(first - 1, self._aliased):
            self._report(record, self.me, alias, before)
        if record.posted:
            record.alias = (alias, record.posted)
            self._aliased = max(self._aliased, record.posted)
        if self._dropped:
            self._compact()
        if self._over:
            self._report(record, self.me, UNMET, self._over)
        for other, last in self._dropped.items():
            if other != alias:
                self._report(record, self.me, other, last)
        self._past.rename_peer(alias, name)
        if alias in self._due:
            del self._due[alias]
            self._due[name] = None
        for waiting in record.lane:
            for origin, dest, listed in waiting.rest:
                indexed = self._indexed[origin, dest]
                indexed[listed, name, waiting.mid] = indexed.pop((listed, alias, waiting.mid))
        self._packets = [(name if to == alias else to, packet) for to, packet in self._packets]

    def abandon(self, alias: str) -> tuple[int, ...]:
        """Go on without a process that was never identified; the alias may be used again.

        Returns:
            The numbers of the messages to it.

        Raises:
            LocalProtocolError: There is no such alias.
        """
        record = self._peers.get(alias)
        if record is None or not record.provisional:
            raise LocalProtocolError(f"{alias!r} is not an alias")
        self._flush()
        self._aliased = max(self._aliased, record.posted)
        self._past.drop_peer(alias)
        failed = self._drop_record(alias)
        self._delivered(self.me, alias, self._mid, alias)
        if record.posted:
            self._report_dropped(alias, record.posted)
        self._packets = [outgoing for outgoing in self._packets if outgoing[0] != alias]
        return failed

    def _report_dropped(self, alias: str, last: int) -> None:
        """Let everybody know that messages to an alias up to `last` do not come."""
        self._dropped[alias] = last
        self._compact()
        told = (alias, last) if alias in self._dropped else (UNMET, self._over)
        for peer in self._peers.values():
            if not peer.provisional:
                self._report(peer, self.me, *told)

    def _compact(self) -> None:
        """Replace what is known of single aliases by one number, as far as that is true."""
        over = self._aliased
        for peer in self._peers.values():
            if (peer.provisional or peer.alias is not None) and peer.head < len(peer.mids):
                over = min(over, peer.mids[peer.head] - 1)
        dropped = {alias: last for alias, last in self._dropped.items() if last > over}
        if len(dropped) < len(self._dropped):
            self._dropped = dropped
            self._over = over

    def _unmet_over(self, origin: str, mid: int) -> None:
        if mid <= self._unmet.get(origin, 0):
            return
        self._unmet[origin] = mid
        dests = self._past.dests_from(origin)
        dests.update([dest for source, dest in self._indexed if source == origin])
        for dest in sorted([dest for dest in dests if is_alias(dest)]):
            self._delivered(origin, dest, mid, origin)

    def _to_be_delivered(self, entries: Entries) -> Entries:
        """Return the entries without those that `_unmet` says to be over."""
        unmet = self._unmet
        if not unmet:
            return entries
        return tuple([e for e in entries if not is_alias(e[1]) or unmet.get(e[0], 0) < e[2]])

    def void(self, origin: str, mid: int) -> None:
        """Wait no longer for messages up to `mid` that `origin` sent to an alias.

        They went to another incarnation of this process, or were dropped.
        """
        self._void[origin] = max(mid, self._void.get(origin, 0))
        self._held.delivered(origin, mid)
        self._settle()

    def _forget(self, peer: str) -> tuple[int, ...]:
        record = self._peers.get(peer)
        failed = super()._forget(peer)
        self._held.forget(peer)
        self._void.pop(peer, None)
        self._unmet.pop(peer, None)
        if record is not None and record.alias is not None:
            self._report_dropped(*record.alias)
        return failed

    def _copy_into(self, twin: Self) -> None:
        super()._copy_into(twin)
        twin._held = self._held.copy()
        twin._void = self._void.copy()
        twin._aliased = self._aliased
        twin._over = self._over
        twin._dropped = self._dropped.copy()
        twin._unmet = self._unmet.copy()

    # -- names of processes that are gone ---------------------------------------

    def mentioned(self) -> set[str]:
        """Return all names that the state mentions."""
        names: set[str] = set()
        for origin, dest, _ in self._entries():
            names.add(origin)
            if isinstance(dest, str):
                names.add(dest)
            else:
                names.update(dest)
        return names.union(self._peers, self._void, *self._open)

    def _entries(self) -> Iterator[Entry]:
        past = self._past
        yield from past
        yield from past.settled()
        for origin, dest, _, mid, _ in past.owed():
            yield origin, dest, mid
        for packet in self._held.packets():
            yield from packet[5]
            if packet[4]:
                yield packet[4][0], packet[4], packet[1]
        for peer in self._peers.values():
            for listing in peer.sent.values():
                yield from chain(listing.parts, listing.entries, listing.late)
            for waiting in peer.lane:
                yield from chain(waiting.parts, waiting.rest, waiting.late)
            yield from chain(peer.unseen, *chain(*peer.parts.values()))
            for origin, dest in peer.news:
                yield origin, dest, 1

    def drop_unmentioned(self) -> set[str]:
        """Drop the names of forgotten processes to which nothing refers; return them."""
        names = self._forgotten - self.mentioned()
        self._forgotten -= names
        return names

    @property
    def holds_any(self) -> bool:
        """Whether messages that have arrived wait here."""
        return len(self._held) > 0

    def holds_more_than(self, most: int, peer: str) -> bool:
        """Return whether more than `most` messages of a peer wait here."""
        if len(self._held) <= most:
            return False
        return self._held.count_from(peer) > most

    def readmit(self, peer: str) -> None:
        """Drop the record of a forgotten name, to which nothing refers any more.

        Raises:
            LocalProtocolError: Something does; see `mentioned`.
        """
        if peer in self._forgotten:
            if peer in self.mentioned():
                raise LocalProtocolError(f"messages refer to {peer!r}")
            self._forgotten.discard(peer)
