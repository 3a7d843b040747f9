"""The gate between a node with a store and the rest of the world.

Nothing leaves the process, and nothing reaches the application, before the records that it
follows from are in the store (`causewire.transport.journal`). The records of all turns that
end while a write is under way are written together, by the next write. So a slow disk makes
batches longer, and the number of messages a second depends little on how slow it is.

    turn ends -> datagrams held, records written -> datagrams leave, messages are delivered,
                                                    senders learn that theirs are stored

A write that fails ends the node: what is in memory is ahead of the store then, and nobody may
learn of it. The store has everything that anybody knows of, so a new node continues from it.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

from ..core.errors import LocalProtocolError
from ..protocols import Protocol, describe
from ..store import SqliteStore, Store, StoreFailed, StoreRefused
from ..transport import Address, Transport
from ..transport.identity import check_name
from ..transport.inbox import Inbox
from ..transport.journal import Journal
from ..transport.memory import JournalError, Memory

__all__ = ["Datagram", "Gate", "StorePlace"]

StorePlace = str | os.PathLike[str] | Store
"""A file, or a store."""

Datagram = tuple[bytes, Address]


class Gate:
    """Writes what happens to a node to its store, and holds back what follows from it.

    Args:
        place: The store.
        name: The name of the node.
        protocol: Its protocol.
        options: The options of the protocol.

    Raises:
        LocalProtocolError: The protocol cannot be stored.
        StoreError: The store cannot be used.
        ValueError: The name is unsuitable.
    """

    def __init__(
        self,
        place: StorePlace,
        name: str,
        protocol: str | Protocol,
        options: dict[str, Any],
    ) -> None:
        check_name(name)
        given = describe(protocol).with_options(**options)
        self._about = given.in_node()
        Memory(name, self._about)  # which refuses a protocol that cannot be stored
        self.store = place if isinstance(place, Store) else SqliteStore(place)
        chosen = "".join([f" {option}={value!r}" for option, value in given.chosen])
        contents = self.store.open(name, self._about.name + chosen)
        try:
            self.memory = Memory(name, self._about, contents.snapshot, contents.batches)
        except (JournalError, LocalProtocolError) as error:
            self.store.close()
            raise StoreRefused(f"the store of {name} is damaged: {error}") from error
        self.connection = contents.opened if self.memory.incarnation else 0
        """How many times the incarnation in the store was continued."""
        self.addresses = self.memory.addresses
        """Where the peers were that this process talked to."""
        self.stored = 0
        """The last message of this process that is in the store."""
        self.failure: StoreFailed | None = None
        self.writing = False
        self.notice: Callable[[Future[None]], object] = lambda _: None
        """Is called when a write has ended, in any thread; `finish` is to follow."""
        self._journal: Journal
        self._held: list[Datagram] = []
        self._leaving: list[Datagram] = []
        """Datagrams that leave when the present write has ended."""
        self._written = self._count = 0
        """What the present write has: the last message, and how many delivered ones."""

    @property
    def inbox(self) -> Inbox:
        """Messages that were delivered and not handled."""
        return self._journal.inbox

    def attach(self, transport: Transport[Any]) -> None:
        """Record what happens to this transport."""
        journal = transport.journal
        assert journal is not None
        self._journal = journal

    def resume(self, now: float, clock: int) -> None:
        """Have messages that an earlier run has left expire at their deadlines.

        Args:
            now: The time.
            clock: The clock of the world, in milliseconds.
        """
        self._journal.resume(now, clock)

    def next_life(self, transport: Transport[Any]) -> None:
        """Record what happens to a new incarnation; the old one is dropped from the store."""
        self.attach(transport)
        self._journal.snapshot_due = True
        self.stored = self._written = 0

    def fresh_memory(self, name: str) -> Memory:
        """Return the memory of a new incarnation, which knows nothing."""
        return Memory(name, self._about)

    # -- turns ----------------------------------------------------------------

    def turn(self, datagrams: list[Datagram]) -> list[Datagram]:
        """End a turn: start to write what happened, and return what may leave already."""
        self._held += datagrams
        if self.writing or self.failure is not None:
            return []
        journal, store = self._journal, self.store
        whole = journal.snapshot_due
        data = journal.snapshot() if whole else journal.take()
        leaving, self._held = self._held, []
        if not data:
            return leaving
        self._leaving = leaving
        self._written, self._count = journal.last, journal.inbox.unstored
        self.writing = True
        future = store.executor.submit(store.replace if whole else store.write, data)
        future.add_done_callback(self.notice)
        return []

    def finish(self, future: Future[None]) -> list[Datagram]:
        """End a write: return the datagrams that may leave now, and let messages through.

        If the write has failed, nothing leaves, and `failure` is set.
        """
        self.writing = False
        error = future.exception()
        if error is not None:
            if not isinstance(error, StoreFailed):
                error = StoreFailed(f"the store cannot be written: {error!r}")
            self.failure = error
            return []
        self._journal.inbox.stored(self._count)
        self.stored = self._written
        leaving, self._leaving = self._leaving, []
        return leaving

    @property
    def idle(self) -> bool:
        """Whether everything is in the store."""
        return self.failure is not None or not (self.writing or self._held or self._journal.news)

    def check(self) -> None:
        """Raise `StoreFailed` if the store could not be written."""
        if self.failure is not None:
            raise self.failure

    def close(self) -> None:
        """Release the store."""
        self.store.close()
