"""The journal of `adaptive`: more is done to it than to protocols that know of peers only.

`Journal` explains the idea. In addition to messages and acks, this one records

- who is met, under which name, and who is gone, since entries name third processes;
- control packets, as they arrived;
- when control packets were taken, since what becomes known later leaves with the next ones;
- when messages were taken even if none left, since that is where a burst ends, and with it
  a list is fixed;
- when a connection began anew, and with it the stream of control packets.

So replay makes the same lists for the same messages. The lists of messages in flight are kept as
bytes nevertheless, in `Listing` and in snapshots: a peer may have read some of them already,
and the tables go on from there. `listing` has the argument what is repeated after a crash.

A list or a control packet that no correct peer sends is recorded as well. It may have
changed tables before it turned out to be wrong, and replay must do the same.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any

from ..core.endpoint import Blocked
from ..core.run import MessageRun
from .inbox import Inbox
from .journal import Journal
from .listing import Listing
from .missing import Missing
from .varint import put, put_text

__all__ = ["ListedJournal"]


class ListedJournal(Journal):
    """Carries `adaptive`, and records what happens to it.

    Args:
        listing: What carries it, as it was after everything in the store.
        inbox: Where delivered messages go.
    """

    lists = True

    def __init__(self, listing: Listing, inbox: Inbox) -> None:
        super().__init__(listing.endpoint, inbox)
        self._listing = listing
        self._called: dict[str, list[str]] = {}
        """By alias, what a process is called now, for `sender_to`."""
        self.permits = True  # that is, messages have a flag
        self._records.append(b"\x15")

    def carried(self) -> list[Any]:
        return self._listing.saved()

    # -- what is recorded -----------------------------------------------------

    def sender_to(self, name: str) -> Callable[[Any], int]:
        send = self.endpoint.sender_to(name)
        called = self._called[name] = [name]
        self.changed = True

        def recorded(payload: Any) -> int:
            mid = send(payload)
            if self._to != called[0]:
                if self._payloads:
                    self._end_sends()
                self._to = called[0]
            self._payloads.append(payload)
            return mid

        return recorded

    def receive(self, source: str, run: MessageRun) -> None:
        self._listing.check_room(source)
        self._add(*self._arrived(source, run))
        self._listing.receive(source, run)

    def control(self, source: str, record: bytes) -> None:
        self._add(b"\x11", put_text(source), put(len(record)), record)
        self._listing.control(source, record)

    def acked(self, source: str, mid: int) -> int:
        lists = self._listing.acked(source, mid)
        self._add(b"\x04", put_text(source), put(mid))
        return lists

    def withdraw(self, name: str, mid: int) -> Any:
        former = self._listing.withdraw(name, mid)
        self._add(b"\x0f", put_text(name), put(mid))
        return former

    def meet(self, name: str, lives: int) -> str:
        alias = self._listing.meet(name, lives)
        self._add(b"\x12", put_text(name))
        return alias

    def establish(self, alias: str, name: str, incarnation: int) -> str:
        string = self._listing.establish(alias, name, incarnation)
        if string != alias:
            self._add(b"\x13", put_text(alias), put_text(name), _u64(incarnation))
            self._called.pop(alias)[0] = string
        return string

    def resumed(self, name: str) -> None:
        self._listing.resumed(name)
        self._add(b"\x16", put_text(name))

    def bury(self, name: str, floor: int) -> None:
        self._listing.bury(name, floor)
        self._add(b"\x14", put_text(name), _u64(floor))

    def unbury(self, name: str) -> bool:
        dropped = self._listing.unbury(name)
        if dropped:
            self._add(b"\x18", put_text(name))
        return dropped

    def forget(self, name: str) -> None:
        self._listing.forget(name)
        self._add(b"\x06", put_text(name))
        self._called.pop(name, None)
        self.changed = True

    def discard(self, name: str) -> bool:
        return self._listing.discard(name)

    def take_runs(self) -> list[tuple[str, MessageRun]]:
        if not self._listing.has_messages:
            return []
        self._add(b"\x08")
        return self._listing.take_runs()

    def take_control(self) -> list[tuple[str, bytes]]:
        if self._listing.has_control:
            self._add(b"\x17")
        return self._listing.take_control()

    # -- what is not ------------------------------------------------------------

    def knows_older(self, name: str, incarnation: int) -> bool:
        return self._listing.knows_older(name, incarnation)

    def take_older(self) -> Collection[str]:
        return self._listing.take_older()

    def list_bytes(self, payload: bytes, per: bool) -> int:
        return self._listing.list_bytes(payload, per)

    def tell_waits(self) -> None:
        self._listing.tell_waits()

    def take_waits(self) -> list[Blocked]:
        return self._listing.take_waits()

    @property
    def missing(self) -> list[Missing]:
        return self._listing.missing

    @property
    def absent(self) -> dict[str, int]:
        return self._listing.absent

    @property
    def waits(self) -> bool:
        return self._listing.waits

    @property
    def idle(self) -> bool:
        return self._listing.idle


def _u64(incarnation: int) -> bytes:
    return incarnation.to_bytes(8, "big")
