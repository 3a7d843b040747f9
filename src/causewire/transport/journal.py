"""What a process has to remember to come back as itself: a record of what happened to it.

**The idea.** A protocol is a deterministic state machine. So nothing in it has to be stored
while it runs: it is enough to write down what is done to it (messages sent, messages, acks
and permits that arrived, peers forgotten), in order, and to do all that again after a crash.
A `Journal` carries a protocol like `Native` does, and keeps that record. Now and then the
record is replaced by a snapshot of everything (`core.saved`), so it stays short.

    durable state   the endpoint; the messages that were delivered and not handled by the
                    application; the peers, with the incarnation that a session is with;
                    the obituaries; the incarnation of this process
    not durable     datagrams in flight, round-trip times, keys, messages that arrived and
                    have not reached the protocol: peers send these again

**The order of effects.** The driver writes the record of a turn (`take`) to its store before
the datagrams of that turn leave the process, and before the application gets the messages
that were delivered in it. So whatever anybody outside has seen is in the store:

- an ack is in the store before its sender sees it, with the message that it acknowledges;
- a message is in the store before its receiver sees it, so a number is never used twice;
- a permit, or a message that was released because of a permit, likewise.

After a crash the process is in the state that it had at the end of some turn, and everything
it did later was seen by nobody. To its peers that looks like a silence, with datagrams lost.

**Handled.** What the application has not handled (`inbox`) is delivered again after a crash, in
the same order.

**Records.** Each begins with a byte that states its type; docs/durability.md has a table.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Callable, Collection
from typing import Any, TypeAlias

from ..core.endpoint import Delivery
from ..core.fifo import FifoEndpoint
from ..core.hybrid import HybridEndpoint
from ..core.run import MessageRun
from ..core.saved import last_number, save, standing
from .accepted import Accepted
from .carrier import Native
from .events import Event
from .frames import put_run
from .identity import Identity, Peer
from .inbox import Inbox
from .names import PeerName
from .obituaries import LOWEST
from .peers import Peers
from .session import Session
from .varint import put, put_text
from .withdrawn import NOTHING, Withdrawn

__all__ = ["Journal", "Record", "facts_of", "pack", "unpack"]

SNAPSHOT_AFTER = 8 << 20
"""A snapshot is due after this many bytes of records, or twice the size of the last one."""


Deadline: TypeAlias = tuple[int, int]
"""A time by the clock of the world, and the time to live that ends then, in milliseconds."""


class Record:
    """The first byte of each record."""

    SENDS = 1
    SEND = 2
    RECEIVE = 3
    ACKED = 4
    PERMITTED = 5
    FORGET = 6
    DISCARD = 7
    TAKE = 8
    HANDLED = 9
    PEER = 10
    FLOORS = 11
    IDENTITY = 12
    EVENT = 13
    HANDLED_EARLY = 14
    WITHDRAW = 15
    RECEIVE_WITHDRAWN = 16
    CONTROL = 17
    MEET = 18
    ESTABLISH = 19
    BURY = 20
    RESTARTED = 21
    RESUMED = 22
    TAKE_CONTROL = 23
    UNBURY = 24
    EXPIRES = 25
    LEFT = 26


class Journal(Native):
    """Carries a protocol that the transport drives directly, and records what happens to it.

    Args:
        endpoint: The endpoint of the protocol, as it was after everything in the store.
        inbox: Where delivered messages go.
    """

    def __init__(self, endpoint: FifoEndpoint[Any], inbox: Inbox) -> None:
        self.endpoint = endpoint
        self.permits = isinstance(endpoint, HybridEndpoint)
        self.send = self._send
        self.inbox = inbox
        inbox.journal = self
        self.size = 0
        """Bytes of records since the last snapshot."""
        self.changed = True
        """Whether what is known of peers may have changed."""
        self.snapshot_due = False
        self._snapshot_size = 0
        self._records: list[bytes] = []
        self._to = ""
        """To whom the messages in `_payloads` were sent, one after another."""
        self._payloads: list[bytes] = []
        self._me: Identity | None = None
        self._peers: Peers | None = None
        self._known: dict[str, list[Any]] = {}
        self._floors: dict[str, int] = {}
        self._departures: set[str] = set()
        self._lowest = 0
        self.deadlines: dict[int, tuple[list[str], Deadline]] = {}
        """Of messages that expire if they do not leave: the receivers, and when."""
        self.resume: Callable[[float, int], object] = lambda *_: None
        """Has them expire after a restart; takes the time, and the clock in milliseconds."""
        self._expiring: dict[str, deque[int]] = {}
        """The same by receiver, in order."""
        self._incarnation = 0
        self._handled = inbox.handled

    def attach(self, me: Identity, peers: Peers) -> None:
        """Record what becomes known about peers from now on as well."""
        self._me, self._peers = me, peers

    # -- what is recorded -----------------------------------------------------

    def _add(self, *parts: bytes) -> None:
        if self._payloads:
            self._end_sends()
        self._records += parts

    def _end_sends(self) -> None:
        payloads = self._payloads
        run = MessageRun(range(1, len(payloads) + 1), 0, payloads)
        frame = put_run(run, list(map(len, payloads)))
        self._records += (b"\x01", put_text(self._to), frame)
        self._payloads = []
        self._to = ""

    def sender_to(self, name: str) -> Callable[[Any], int]:
        send = self.endpoint.sender_to(name)
        self.changed = True

        def recorded(payload: Any) -> int:
            mid = send(payload)
            if self._to != name:
                if self._payloads:
                    self._end_sends()
                self._to = name
            self._payloads.append(payload)
            return mid

        return recorded

    def _send(self, to: str | Collection[str], payload: Any) -> int:
        mid = self.endpoint.send(to, payload)
        names = [to] if isinstance(to, str) else list(to)
        self._add(b"\x02", put(len(names)), *map(put_text, names), put(len(payload)), payload)
        return mid

    def receive(self, source: str, run: MessageRun) -> None:
        self.endpoint.receive_run(source, run)
        self._add(*self._arrived(source, run))

    @staticmethod
    def _arrived(source: str, run: MessageRun) -> tuple[bytes, ...]:
        """Return the record of messages that arrived."""
        gone = run.payloads[0].__class__ is Withdrawn  # which is always alone
        frame = put_run(run, list(map(len, run.payloads)))
        return b"\x10" if gone else b"\x03", put_text(source), frame

    def acked(self, source: str, mid: int) -> int:
        lists = super().acked(source, mid)
        self._add(b"\x04", put_text(source), put(mid))
        return lists

    def withdraw(self, name: str, mid: int) -> Any:
        former = super().withdraw(name, mid)
        self._add(b"\x0f", put_text(name), put(mid))
        return former

    def expires(self, accepted: Accepted, until: Deadline) -> None:
        """Record when a message expires unless it has left."""
        mid, names = accepted.mid, [session.name for session in accepted.sessions]
        self.restore_deadline(mid, names, until)
        text = json.dumps([mid, names, until]).encode()
        self._add(b"\x19", put(len(text)), text)

    def restore_deadline(self, mid: int, names: list[str], until: Deadline) -> None:
        """Note when a message expires unless it has left, without recording it."""
        self.deadlines[mid] = names, until
        for name in names:
            self._expiring.setdefault(name, deque()).append(mid)

    def _note_departures(self) -> None:
        """Record which of these have left, which is stored before they do."""
        assert self._peers is not None
        for name, mids in list(self._expiring.items()):
            session = self._peers.live.get(name)
            while mids and (session is None or mids[0] <= session.outbound.departed):
                if self.deadlines.pop(mid := mids.popleft(), None) is not None:
                    self._add(b"\x1a", put(mid))
            if not mids:
                del self._expiring[name]

    def expiring(self) -> list[tuple[Accepted, Deadline]]:
        """Return the messages that still wait of those that expire, and forget the others."""
        assert self._peers is not None
        live, found = self._peers.live, []
        waiting: dict[str, set[int]] = {}
        for mid, (names, until) in list(self.deadlines.items()):
            for name in names:
                if name not in waiting:
                    waiting[name] = self._waiting(live[name]) if name in live else set()
            if all(mid in waiting[name] for name in names):
                found.append((Accepted((mid, tuple([live[n] for n in names]), None)), until))
            else:
                del self.deadlines[mid]
        return found

    def _waiting(self, session: Session) -> set[int]:
        """Return the messages to a peer that have not left."""
        unacked = standing(self.endpoint, session.alias).unacked
        left = session.outbound.departed
        return {mid for mid, one in unacked if mid > left and one.__class__ is not Withdrawn}

    def permitted(self, source: str, mid: int) -> None:
        super().permitted(source, mid)
        self._add(b"\x05", put_text(source), put(mid))

    def forget(self, name: str) -> None:
        super().forget(name)
        self._add(b"\x06", put_text(name))
        self.changed = True

    def discard(self, name: str) -> bool:
        super().discard(name)
        self._add(b"\x07", put_text(name))
        self.changed = True
        return True

    def take_runs(self) -> list[tuple[str, MessageRun]]:
        runs = self.endpoint.take_runs()
        if runs:
            self._add(b"\x08")
        return runs

    def event(self, event: Event) -> None:
        """Record an event that was put between messages."""
        text = json.dumps(_plain(event)).encode()
        self._add(b"\x0d", put(len(text)), text)

    def handled_early(self, position: int) -> None:
        """Record that a message was handled before an earlier one."""
        self._add(b"\x0e", put(position))

    # -- what the driver takes ------------------------------------------------

    @property
    def last(self) -> int:
        """The last message that this process has sent."""
        return last_number(self.endpoint)

    @property
    def news(self) -> bool:
        """Whether something has happened since the last call of `take`."""
        handled = self.inbox.handled != self._handled
        return bool(self._payloads or self._records or handled or self.snapshot_due)

    def take(self) -> bytes:
        """Return the records since the last call; empty if nothing has happened.

        When this is in the store, the datagrams that were made before may leave.
        """
        if self._expiring:
            self._note_departures()
        if self._payloads:
            self._end_sends()
        news = self._news()
        batch = b"".join([*news, *self._records])
        self._records = []
        self.size += len(batch)
        if self.size > max(SNAPSHOT_AFTER, 2 * self._snapshot_size):
            self.snapshot_due = True
        return batch

    def _news(self) -> list[bytes]:
        """Return what has changed apart from the protocol, and note it as told.

        It is put before the other records, so that a reader knows the peers by then.
        """
        assert self._me is not None
        assert self._peers is not None
        news: list[bytes] = []
        if self._me.incarnation != self._incarnation:
            self._incarnation = self._me.incarnation
            news += (b"\x0c", self._incarnation.to_bytes(8, "big"), put(self._me.life))
        if self.inbox.handled != self._handled:
            self._handled = self.inbox.handled
            news += (b"\x09", put(self._handled))
        if self.changed:
            self.changed = False
            facts = {p.name: facts_of(p) for p in self._peers.known.values() if p.lives or p.gone}
            for name in {*facts, *self._known}:
                if facts.get(name) != self._known.get(name):
                    text = json.dumps([name, facts.get(name)]).encode()
                    news += (b"\x0a", put(len(text)), text)
            self._known = facts
        obituaries = self._peers.obituaries
        known = self._floors, self._departures, self._lowest
        if known != (obituaries.floors, obituaries.departures, obituaries.lowest):
            self._lowest = obituaries.lowest
            self._floors = obituaries.floors.copy()
            self._departures = obituaries.departures.copy()
            text = json.dumps(self._words()).encode()
            news += (b"\x0b", put(len(text)), text)
        return news

    def _words(self) -> dict[str, int]:
        """Return the obituaries, as they are sent to others, and what old ones have left."""
        assert self._peers is not None
        words = {name: self._peers.obituaries.word(name) for name in self._floors}
        return words | {LOWEST: self._lowest} if self._lowest else words

    def carried(self) -> list[Any]:
        """Return what the carrier keeps apart from the endpoint, as plain values."""
        return []

    def snapshot(self) -> bytes:
        """Return everything as one value; the driver has just asked for datagrams.

        When this is in the store, it takes the place of all records so far.
        """
        if self._payloads:
            self._end_sends()
        self._news()
        self._records = []
        assert self._me is not None
        saved = save(self.endpoint)
        payloads = list(saved.payloads)
        pending: list[list[Any]] = []
        for item in self.inbox.unhandled:
            if item is None:
                pending.append([])
            elif isinstance(item, Delivery):
                source = item.source
                born = source.incarnation if isinstance(source, PeerName) else 0
                pending.append(["", str(source), born, item.mid, len(payloads)])
                payloads.append(item.payload)
            else:
                pending.append(_plain(item))
        state = {
            "incarnation": self._incarnation,
            "life": self._me.life,
            "endpoint": saved.state,
            "carried": self.carried(),
            "peers": self._known,
            "floors": self._words(),
            "handled": self._handled,
            "pending": pending,
            "deadlines": [[one.mid, *self.deadlines[one.mid]] for one, _ in self.expiring()],
        }
        data = pack(state, payloads)
        self.size, self._snapshot_size, self.snapshot_due = 0, len(data), False
        return data


def _plain(event: Any) -> list[Any]:
    """Return an event about a peer as a list."""
    name, *rest = event
    born = name.incarnation if isinstance(name, PeerName) else 0
    return [type(event).__name__, str(name), born, *rest]


def facts_of(peer: Peer) -> list[Any]:
    """Return what has to be remembered of a peer."""
    session = peer.session
    return [
        list(peer.address),
        peer.wanted,
        peer.lives,
        peer.aliases.copy(),
        peer.gone,
        peer.left,
        session.alias if session is not None else None,
        session.incarnation if session is not None else 0,
    ]


def pack(state: dict[str, Any], payloads: list[bytes]) -> bytes:
    """Return a snapshot as bytes: its state as JSON, then the payloads."""
    gone = [k for k, payload in enumerate(payloads) if payload.__class__ is Withdrawn]
    lengths = list(map(len, payloads))
    text = json.dumps({**state, "lengths": lengths, "withdrawn": gone}).encode()
    return b"".join([len(text).to_bytes(8, "big"), text, *payloads])


def unpack(data: bytes) -> tuple[dict[str, Any], list[bytes]]:
    """Return the state and the payloads in a snapshot.

    Raises:
        ValueError: The bytes are not a snapshot.
    """
    at = 8 + int.from_bytes(data[:8], "big")
    state = json.loads(data[8:at])
    if not isinstance(state, dict):
        raise ValueError("a snapshot without a state")
    payloads: list[bytes] = []
    for length in state.pop("lengths"):
        payloads.append(data[at : at + length])
        at += length
    if at != len(data):
        raise ValueError("a snapshot of the wrong length")
    for k in state.pop("withdrawn", ()):
        payloads[k] = NOTHING
    return state, payloads
