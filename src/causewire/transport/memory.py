"""Reading a journal: the state of a process after everything in its store.

`Memory` starts from a snapshot, does again what the records say, and then gives a new
transport the state that the former one had: the endpoint, sessions with the same incarnations
of its peers, and messages that were not handled. No session is established at first. The
process greets its peers, with the number of this opening of the store (`connection`), and
they continue the sessions that they have (`resumption`).
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from typing import Any

from ..core.adaptive import Adaptive
from ..core.endpoint import Delivery, ProtocolError, RemoteProtocolError
from ..core.errors import CausewireError, LocalProtocolError
from ..core.run import MessageRun
from ..core.saved import Saved, can_save, restore, standing
from ..protocols import Protocol
from . import events
from .arrivals import Arrivals
from .carrier import Native
from .config import TransportConfig
from .events import Address
from .frames import read_run
from .handling import ReportedDelivery, Unhandled
from .identity import Identity, Peer, check_name
from .inbox import Inbox
from .journal import Deadline, Journal, Record, unpack
from .ledger import Ledger
from .listed_journal import ListedJournal
from .listing import Listing
from .names import PeerName
from .obituaries import LEFT, LOWEST
from .peers import Peers
from .session import Session
from .varint import LARGEST, MalformedError, get, get_bytes, get_text
from .withdrawn import Withdrawn

__all__ = ["JournalError", "Memory"]

_EVENTS = {kind.__name__: kind for kind in events.InOrder.__args__}
_LONGEST_ALIAS = 300


class JournalError(CausewireError):
    """What is in a store cannot be the record of a process."""


class Memory:
    """What a process knew.

    Args:
        name: The name of the process.
        protocol: Its protocol.
        snapshot: The last snapshot, or nothing.
        batches: The records since then.

    Raises:
        LocalProtocolError: The protocol cannot be stored.
        JournalError: The snapshot or a record is damaged.
    """

    def __init__(
        self,
        name: str,
        protocol: Protocol,
        snapshot: bytes = b"",
        batches: Iterable[bytes] = (),
    ) -> None:
        if not can_save(protocol.endpoint):
            raise LocalProtocolError(
                "a node with a store needs the protocol csps, sps, fifo or adaptive, "
                f"not {protocol.name}"
            )
        self.name = name
        self._me = Identity(name, 1, protocol.name, 1)
        lists = issubclass(protocol.endpoint, Adaptive)
        carrier = Listing(protocol, self._me, LARGEST) if lists else Native(protocol, name)
        self._carrier: Native = carrier
        self.endpoint = carrier.endpoint
        self.incarnation = 0
        """The incarnation of the process; 0 if it has never started."""
        self.life = 1
        self.peers: dict[str, list[Any]] = {}
        """What is known of each peer (`facts_of`)."""
        self.floors: dict[str, int] = {}
        """Obituaries, as they are sent to others."""
        self.deadlines: dict[int, tuple[list[str], Deadline]] = {}
        """Of messages that expire if they do not leave: the receivers, and when."""
        self.handled = 0
        self.pending: deque[Any] = deque()
        """Delivered and not handled."""
        self._dropped = 0
        """How many of what was delivered are not in `pending` any more."""
        self._incarnations: dict[str, int] = {}
        """By what the protocol calls an incarnation: its number."""
        try:
            if snapshot:
                self._load(snapshot)
            for batch in batches:
                self._replay(batch)
        except (ProtocolError, MalformedError, ValueError, TypeError, LookupError) as error:
            raise JournalError(f"a record is invalid: {error}") from error
        self.endpoint.take_acks()
        self.endpoint.take_permits()
        self._drop_handled()

    def _load(self, snapshot: bytes) -> None:
        state, payloads = unpack(snapshot)
        restore(self.endpoint, Saved(state["endpoint"], payloads))
        if isinstance(self._carrier, Listing):
            self._carrier.restore(state["carried"])
        self.incarnation, self.life = state["incarnation"], state["life"]
        self._me.incarnation = self.incarnation
        self.floors = state["floors"]
        for entry in state.get("deadlines", ()):
            self._expires(*entry)
        self.handled = self._dropped = state["handled"]
        for name, facts in state["peers"].items():
            self._peer(name, facts)
        for entry in state["pending"]:
            if not entry:
                self.pending.append(None)
                continue
            first, *rest = entry
            if first:
                self.pending.append(_event(first, rest))
            else:
                source, born, mid, index = rest
                self.pending.append(Delivery(_source(source, born), mid, payloads[index]))

    def _peer(self, name: str, facts: list[Any] | None) -> None:
        if facts is None:
            self.peers.pop(name, None)
        else:
            self.peers[name] = facts
            if facts[6] is not None:
                self._incarnations[facts[6]] = facts[7]

    # -- doing it again -------------------------------------------------------

    def _replay(self, batch: bytes) -> None:
        readers = self._readers()
        at, end = 0, len(batch)
        while at < end:
            at = readers[batch[at]](batch, at + 1)
            for source, mid, payload in self.endpoint.take_deliveries():
                if payload.__class__ is Withdrawn:
                    continue
                name, born = self._who(source)
                self.pending.append(Delivery(_source(name, born), mid, payload))
        self._drop_handled()

    def _who(self, source: str) -> tuple[str, int]:
        """Return the name and the incarnation of what the protocol calls a process."""
        if isinstance(self._carrier, Listing):
            return self._carrier.who(source)
        return source.partition("\0")[0], self._incarnations.get(source, 0)

    def _drop_handled(self) -> None:
        while self._dropped < self.handled and self.pending:
            self.pending.popleft()
            self._dropped += 1

    def _readers(self) -> dict[int, Callable[[bytes, int], int]]:
        return {
            Record.SENDS: self._sends,
            Record.SEND: self._send,
            Record.RECEIVE: self._receive,
            Record.ACKED: self._acked,
            Record.PERMITTED: self._permitted,
            Record.FORGET: self._forget,
            Record.DISCARD: self._discard,
            Record.TAKE: self._take,
            Record.HANDLED: self._handle,
            Record.PEER: self._note_peer,
            Record.FLOORS: self._note_floors,
            Record.IDENTITY: self._identify,
            Record.EVENT: self._note_event,
            Record.HANDLED_EARLY: self._handle_early,
            Record.WITHDRAW: self._withdraw,
            Record.RECEIVE_WITHDRAWN: self._receive_withdrawn,
            Record.EXPIRES: self._note_deadline,
            Record.LEFT: self._note_departure,
        } | (self._readers_of_lists() if self._carrier.lists else {})

    def _readers_of_lists(self) -> dict[int, Callable[[bytes, int], int]]:
        return {
            Record.CONTROL: self._control,
            Record.MEET: self._meet,
            Record.ESTABLISH: self._establish,
            Record.BURY: self._bury,
            Record.UNBURY: self._unbury,
            Record.RESTARTED: self._restarted,
            Record.RESUMED: self._resumed,
            Record.TAKE_CONTROL: self._take_control,
        }

    def _sends(self, data: bytes, at: int) -> int:
        name, at = get_text(data, at, _LONGEST_ALIAS)
        run, at = read_run(data, at)
        send = self._carrier.sender_to(name)
        for payload in run.payloads:
            send(payload)
        return at

    def _send(self, data: bytes, at: int) -> int:
        count, at = get(data, at)
        names: list[str] = []
        for _ in range(count):
            name, at = get_text(data, at, _LONGEST_ALIAS)
            names.append(name)
        payload, at = get_bytes(data, at, len(data))
        self.endpoint.send(names, payload)
        return at

    def _receive(self, data: bytes, at: int) -> int:
        name, at = get_text(data, at, _LONGEST_ALIAS)
        run, at = read_run(data, at)
        self._hand_over(name, run)
        return at

    def _hand_over(self, name: str, run: MessageRun) -> None:
        try:
            self._carrier.receive(name, run)
        except RemoteProtocolError:
            if not self._carrier.lists:
                raise  # it would not have been recorded

    def _receive_withdrawn(self, data: bytes, at: int) -> int:
        name, at = get_text(data, at, _LONGEST_ALIAS)
        run, at = read_run(data, at)
        self._hand_over(name, run._replace(payloads=[*map(Withdrawn, run.payloads)]))
        return at

    def _withdraw(self, data: bytes, at: int) -> int:
        name, at = get_text(data, at, _LONGEST_ALIAS)
        mid, at = get(data, at)
        self._carrier.withdraw(name, mid)
        return at

    def _note_deadline(self, data: bytes, at: int) -> int:
        text, at = get_bytes(data, at, len(data))
        self._expires(*json.loads(text))
        return at

    def _note_departure(self, data: bytes, at: int) -> int:
        mid, at = get(data, at)
        self.deadlines.pop(mid, None)
        return at

    def _expires(self, mid: int, names: list[str], until: Sequence[int]) -> None:
        clock, ttl = until
        self.deadlines[mid] = [*map(check_name, names)], (clock, ttl)

    def _acked(self, data: bytes, at: int) -> int:
        name, at = get_text(data, at, _LONGEST_ALIAS)
        mid, at = get(data, at)
        self._carrier.acked(name, mid)
        return at

    def _permitted(self, data: bytes, at: int) -> int:
        name, at = get_text(data, at, _LONGEST_ALIAS)
        mid, at = get(data, at)
        self._carrier.permitted(name, mid)
        return at

    def _forget(self, data: bytes, at: int) -> int:
        name, at = get_text(data, at, _LONGEST_ALIAS)
        self._carrier.forget(name)
        return at

    def _discard(self, data: bytes, at: int) -> int:
        name, at = get_text(data, at, _LONGEST_ALIAS)
        self._carrier.discard(name)
        return at

    def _take(self, data: bytes, at: int) -> int:
        self._carrier.take_runs()
        return at

    def _control(self, data: bytes, at: int) -> int:
        name, at = get_text(data, at, _LONGEST_ALIAS)
        record, at = get_bytes(data, at, len(data))
        with suppress(RemoteProtocolError):
            self._carrier.control(name, record)
        return at

    def _meet(self, data: bytes, at: int) -> int:
        name, at = get_text(data, at)
        self._carrier.meet(name, 0)
        return at

    def _establish(self, data: bytes, at: int) -> int:
        alias, at = get_text(data, at, _LONGEST_ALIAS)
        name, at = get_text(data, at)
        self._carrier.establish(alias, name, int.from_bytes(data[at : at + 8], "big"))
        return at + 8

    def _bury(self, data: bytes, at: int) -> int:
        name, at = get_text(data, at)
        self._carrier.bury(name, int.from_bytes(data[at : at + 8], "big"))
        return at + 8

    def _unbury(self, data: bytes, at: int) -> int:
        name, at = get_text(data, at)
        self._carrier.unbury(name)
        return at

    def _restarted(self, data: bytes, at: int) -> int:
        assert isinstance(self._carrier, Listing)
        self._carrier.restarted(self._me, LARGEST)
        return at

    def _resumed(self, data: bytes, at: int) -> int:
        name, at = get_text(data, at, _LONGEST_ALIAS)
        self._carrier.resumed(name)
        return at

    def _take_control(self, data: bytes, at: int) -> int:
        self._carrier.take_control()
        return at

    def _handle(self, data: bytes, at: int) -> int:
        self.handled, at = get(data, at)
        return at

    def _handle_early(self, data: bytes, at: int) -> int:
        position, at = get(data, at)
        self.pending[position - self._dropped] = None
        return at

    def _note_peer(self, data: bytes, at: int) -> int:
        text, at = get_bytes(data, at, len(data))
        name, facts = json.loads(text)
        self._peer(name, facts)
        return at

    def _note_floors(self, data: bytes, at: int) -> int:
        text, at = get_bytes(data, at, len(data))
        self.floors = json.loads(text)
        return at

    def _identify(self, data: bytes, at: int) -> int:
        self.incarnation = self._me.incarnation = int.from_bytes(data[at : at + 8], "big")
        self.life, at = get(data, at + 8)
        return at

    def _note_event(self, data: bytes, at: int) -> int:
        text, at = get_bytes(data, at, len(data))
        name, *fields = json.loads(text)
        self.pending.append(_event(name, fields))
        return at

    def carried(self) -> list[Any]:
        """Return what the carrier keeps apart from the endpoint (`Journal.carried`)."""
        return self._carrier.saved() if isinstance(self._carrier, Listing) else []

    # -- giving it to a transport ---------------------------------------------

    def journal(
        self, me: Identity, messages: deque[Delivery] | None, explicit: bool, most: int
    ) -> Journal:
        """Return a journal that continues the record.

        Args:
            me: This process.
            messages: The inbox of a former life of this process, if it is to be used.
            explicit: Whether the application says what it has handled.
            most: Most messages of a peer that may wait in the protocol.
        """
        if not isinstance(messages, Inbox):
            messages = Inbox(self.pending, self.handled, explicit)
        if isinstance(self._carrier, Listing):
            self._carrier.restarted(me, most)
            journal: Journal = ListedJournal(self._carrier, messages)
        else:
            journal = Journal(self.endpoint, messages)
        for mid, (names, until) in self.deadlines.items():
            journal.restore_deadline(mid, names, until)
        return journal

    @property
    def addresses(self) -> dict[str, Address]:
        """Where the peers were that this process talked to; the driver adds them again."""
        return {
            name: (facts[0][0], facts[0][1])
            for name, facts in self.peers.items()
            if not facts[4] and (facts[1] or facts[6] is not None)
        }

    def restore(
        self, peers: Peers, ledger: Ledger, arrivals: Arrivals, config: TransportConfig
    ) -> None:
        """Give a new transport the peers and sessions of the former one."""
        for name, word in self.floors.items():
            if name == LOWEST:
                peers.obituaries.lowest = word
            else:
                peers.obituaries.put(name, word & (LEFT - 1), word >= LEFT)
        for name, facts in self.peers.items():
            address, _, lives, aliases, gone, left, alias, incarnation = facts
            peer = peers.known[name] = Peer(name, tuple(address))
            peer.lives, peer.gone, peer.left = lives, gone, left
            peer.aliases = list(aliases)
            for former in aliases:
                session = Session(name, former, peer.address, _no_send, config)
                session.end()
                peers.by_alias[former] = session
                arrivals.renamed = True
            if alias is not None:
                peer.lives -= 1
                session = peers.session(name, alias)
                session.incarnation = incarnation
                self._restore_session(session, ledger)
                if incarnation:
                    peers.known_elsewhere()
                    arrivals.renamed |= alias != name
        if arrivals.report is not None:
            self._restore_reports(peers, arrivals, config)
        arrivals.restored()

    def _restore_reports(self, peers: Peers, arrivals: Arrivals, config: TransportConfig) -> None:
        """Let the application say of messages from before the crash that they are handled."""
        inbox, report = arrivals.messages, arrivals.report
        assert isinstance(inbox, Inbox)
        assert report is not None
        sessions = {(s.name, s.incarnation): s for s in peers.live.values()}
        for k, item in enumerate(inbox.unhandled):
            if isinstance(item, Delivery) and item.source != self.name:
                name = str(item.source)
                born = item.source.incarnation if isinstance(item.source, PeerName) else 0
                session = sessions.get((name, born))
                if session is None:  # that incarnation is gone
                    session = Session(name, name, ("", 0), _no_send, config)
                    session.incarnation = born
                    session.end()
                    sessions[name, born] = session
                message = ReportedDelivery(*item)
                message.report, message.session = report, session
                inbox.unhandled[k] = message
        inbox.restart()
        for session in peers.live.values():
            mids = [m.mid for m in inbox.unhandled if getattr(m, "session", None) is session]
            session.unhandled = Unhandled()
            session.unhandled.restore(mids, session.delivered)

    def _restore_session(self, session: Session, ledger: Ledger) -> None:
        now = standing(self.endpoint, session.alias)
        runs = self._carrier.in_flight(session.alias)
        session.delivered, session.inbound.tail = now.delivered, now.arrived
        session.permit = now.granted
        session.permitted, session.flagged = now.permit, now.flagged
        session.confirmed = now.acked
        gone = [mid for mid, payload in now.unacked if payload.__class__ is Withdrawn]
        # Of messages that expire, it was recorded when they left; later ones have not left either.
        expiring = [mid for mid, (names, _) in self.deadlines.items() if session.name in names]
        session.outbound.restore(runs, now.acked, min(expiring, default=LARGEST) - 1, gone)
        size = sum([len(payload) for _, payload in now.unacked])
        ledger.charge_many(session, len(now.unacked), size)
        session.control_due = True


def _no_send(payload: bytes) -> int:
    raise LocalProtocolError("a message for a process that is gone")


def _source(name: str, incarnation: int) -> str:
    return PeerName(name, incarnation) if incarnation else name


def _event(kind: str, fields: list[Any]) -> Any:
    name, born, *rest = fields
    return _EVENTS[kind](_source(name, born), *rest)
