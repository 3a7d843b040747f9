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
they never come; the news that the entry is void (`void`) frees what waits for it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain

from .adaptive_lanes import LaneEndpoint
from .adaptive_packets import Entry
from .endpoint import LocalProtocolError
from .held import HoldingBuffer

__all__ = ["AliasEndpoint"]


class AliasEndpoint(LaneEndpoint):
    """Lets a driver name processes, and use names again."""

    __slots__ = ("_held",)

    def __init__(
        self, me: str, group: Iterable[str] | None = None, *, cap: int | None = None
    ) -> None:
        super().__init__(me, cap=cap)
        self._held = HoldingBuffer()

    def expect(self, alias: str) -> None:
        """Let messages be sent to a process whose name is not known yet.

        Args:
            alias: What to call it until `identify` or `abandon`; no name of a process.

        Raises:
            LocalProtocolError: There is a process of that name already.
        """
        if alias in self._peers or alias == self.me:
            raise LocalProtocolError(f"{alias!r} is the name of a process")
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
        if record.posted:
            record.alias = (alias, record.posted)
        self._past.rename_peer(alias, name)
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
        self._past.drop_peer(alias)
        failed = self._drop_record(alias)
        self._delivered(self.me, alias, self._mid, alias)
        self._packets = [outgoing for outgoing in self._packets if outgoing[0] != alias]
        return failed

    def void(self, origin: str, mid: int) -> None:
        """Wait no longer for messages up to `mid` that `origin` sent to an alias.

        They went to another incarnation of this process, or were dropped.
        """
        self._held.delivered(origin, mid)
        self._settle()

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
        return names.union(self._peers, *self._open)

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

    def readmit(self, peer: str) -> None:
        """Drop the record of a forgotten name, to which nothing refers any more.

        Raises:
            LocalProtocolError: Something does; see `mentioned`.
        """
        if peer in self._forgotten:
            if peer in self.mentioned():
                raise LocalProtocolError(f"messages refer to {peer!r}")
            self._forgotten.discard(peer)
