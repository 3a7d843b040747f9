"""The transport: a protocol on datagrams, as a value that is driven from outside.

    transport.datagram_received(data, address, now)
    transport.timer_fired(now)              when next_timer() is over
    transport.send(to, payload)             causal send
    transport.datagrams_to_send(now)        after any of these: what to send, and whither
    transport.queue                         what was delivered; the driver takes it out

No socket, no clock, no randomness: the time and the incarnation come from outside,
so a whole system of transports runs in virtual time and repeats from its seed.

**A turn.** The driver hands in all that has happened, then asks for datagrams; what
is new for a peer by then shares datagrams, acks and permits included. They are
never held back any longer: an ack held back holds back permits, and with them other
people's messages.

**Room.** A message is accepted if there is `room`. It is then counted, for its
peer and for all together, until the peer's application has it. A message that
arrived is handed to the protocol, and so acknowledged, when the queue has room.

**Incarnations.** When a process turns out to be gone (`_bury`), its session is over:
for the protocol, all that was released to it has been delivered, and all that came
from it is permitted, so nobody waits for it any longer. Its last messages to others
may be under way still, however, and what is sent here from now on may depend on
them, by way of messages from it that were waiting for their permit. So others must
not take them any more: the *obituary*, "all incarnations of that process below this
one are gone", goes in front of the first message to everybody, and on from there in
front of theirs. Who gets a message that might depend on a dead process's last words
has first been told not to listen to them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import Any, Protocol

from ..core.endpoint import Delivery, LocalProtocolError, RemoteProtocolError, destinations
from ..core.run import MessageRun
from .carrier import Carrier, Native, group_of
from .config import Config
from .events import Address, MessageBlocked, PeerUp
from .frames import Contents, read
from .heads import HEAD, SESSION
from .inbox import Inbox
from .ledger import Ledger
from .link import Link
from .peers import Peers, check_name
from .seal import sealer
from .session import Session
from .varint import LARGEST, MalformedError
from .watch import Reason, Watch, culprits, reasons

__all__ = ["NATIVE", "Observer", "Transport"]

NATIVE = frozenset(("csps", "sps", "fifo"))
"""Protocols that need no link."""


class Observer(Protocol):
    """Is told what happens to messages; keeps the Lamport time."""

    clock: int

    def sent(self, mid: int, to: tuple[str, ...], size: int) -> None:
        """Causal send."""

    def released(self, session: Session, run: MessageRun) -> None:
        """Messages are put on the network."""

    def arrived(self, session: Session, run: MessageRun) -> None:
        """Messages came from the network."""

    def delivered(self, deliveries: list[Delivery], labels: dict[str, str]) -> None:
        """The application gets messages."""


class Transport(Peers):
    """One process's protocol and its sessions with others."""

    def __init__(
        self,
        name: str,
        *,
        incarnation: int,
        protocol: str = "csps",
        peers: Iterable[str] = (),
        key: bytes | None = None,
        config: Config | None = None,
        life: int = 1,
        **options: Any,
    ) -> None:
        self.carrier = _carrier(protocol, check_name(name), peers, options)
        super().__init__(name, incarnation, protocol, sealer(key), config)
        self.life = life
        self.ledger = Ledger(self.config)
        self._inbox = Inbox(self.config.queue_messages, self.config.queue_bytes)
        self.queue = self._inbox.messages
        """Delivered messages, for the application to take."""
        self.observer: Observer | None = None
        self.progressed: dict[Session, None] = {}
        """Sessions of which more is known to be delivered, or that are over; the
        driver clears it."""
        self._ready: dict[Session, None] = {}
        """Sessions with messages that wait for room in the queue."""
        self.waiting_bytes = 0
        """What arrived from all peers and waits."""
        self._linked = not self.carrier.forgets
        self._tick_at: float | None = None
        self._watch = Watch(self.config.blocked_after)
        self._watch_at: float | None = None

    # -- what the application asks for ----------------------------------------

    def room(self, to: str | Collection[str]) -> bool:
        """Whether there is room for a message to these processes."""
        for name in (to,) if isinstance(to, str) else to:
            session = self.live.get(name)
            if session is not None:
                if not self.ledger.room(session):
                    self.ledger.call_in_all(self.live.values())
                    if not self.ledger.room(session):
                        return False
            elif name == self.name and self._inbox.room <= 0:
                return False
        return True

    def send(self, to: str | Collection[str], payload: bytes) -> tuple[int, tuple[Session, ...]]:
        """Causal send to processes that are known: the number of the message, and where to.

        Whether there is room is for the caller to ask.
        """
        names = destinations(to)
        size = len(payload)
        if size > self.config.message:
            raise ValueError(f"a message of {size} bytes, {self.config.message} are allowed")
        unknown = [name for name in names if name not in self.peers and name != self.name]
        if unknown:
            raise LocalProtocolError(f"unknown: {', '.join(unknown)}")
        sessions = tuple(self.session(name) for name in names if name != self.name)
        aliases = [session.alias for session in sessions]
        if len(aliases) < len(names):
            aliases.append(self.name)
        mid = self.carrier.send(aliases[0] if len(aliases) == 1 else aliases, payload)
        self.stats.sent += 1
        for session in sessions:
            self.ledger.charge(session, size)
            if self._linked:
                session.unconfirmed.append((mid, size))
        if self.observer is not None:
            labels = {session.name: session.label for session in sessions}
            self.observer.sent(mid, tuple(labels.get(n, n) for n in names), size)
        return mid, sessions

    def lend(self, session: Session) -> None:
        """Give a session credit (`ledger`), where the short way is open.

        While a session has credit, its driver may take from it and call
        `session.send(session.alias, payload)` in place of `send`.
        """
        if not self._linked and self.observer is None and not session.over:
            self.ledger.lend(session)

    def call_in(self) -> None:
        """Take all credit back."""
        self.ledger.call_in_all(self.live.values())

    @property
    def has_messages(self) -> int:
        """Copies of messages that were accepted, and are not known to be delivered."""
        return sum([session.has_messages for session in self.live.values()])

    @property
    def idle(self) -> bool:
        """Whether all that was accepted is delivered, and all that came is passed on."""
        return not self.has_messages and not self._ready and self.carrier.idle

    def counters(self) -> dict[str, int | dict[str, int]]:
        """All counters by name."""
        self.call_in()
        counts = self.stats.as_dict()
        counts["sent"] = self.stats.sent + self.ledger.used
        return counts

    @property
    def stalled(self) -> bool:
        """Whether messages wait for room in the queue."""
        return bool(self._ready)

    # -- what comes in --------------------------------------------------------

    def datagram_received(self, data: bytes, address: Address, now: float) -> None:
        """A datagram came. Whatever it is, nothing worse than a counted drop can follow."""
        self.stats.datagrams_in += 1
        self.stats.bytes_in += len(data)
        try:
            if len(data) < HEAD.size + 4:
                raise MalformedError("cut short")
            if data[0] == SESSION:
                self._session_datagram(data, address, now)
            else:
                self._greeting(data, address, now)
        except MalformedError:
            self.stats.drop("malformed")

    def _session_datagram(self, data: bytes, address: Address, now: float) -> None:
        _, tag, number = HEAD.unpack_from(data)
        session = self.by_tag.get(tag)
        if session is None:
            self.stats.drop("no such session")
            return
        if number in session.received:
            self.stats.drop("copy")
            return
        opened = session.open(number, data)
        if opened is None:
            self.stats.drop("does not verify")
            return
        contents = read(opened)
        if (contents.runs or contents.pieces) and not self._bearable(session, contents):
            self.stats.drop("no room")
            return
        if number > session.received.largest and address != session.address:
            self._moved(session, address)
        session.received.add(number)
        session.heard_at = now
        if session.silent:
            session.silent = False
            self.events.append(PeerUp(session.name))
        if contents.eliciting:
            session.ack_due = True
        self.active[session] = None
        try:
            self._apply(session, contents, now)
        except RemoteProtocolError:
            self.stats.drop("against the protocol")
        session.owes = now if session.recovery.sent else None

    def _bearable(self, session: Session, contents: Contents) -> bool:
        """Whether memory allows for what came. No correct peer sends too much by itself;
        all of them together may, and then only what closes a gap is let in."""
        inbound, config = session.inbound, self.config
        if inbound.messages > 2 * config.peer_messages:
            return False
        if inbound.bytes > 2 * config.peer_bytes + config.message:
            return False
        if self.waiting_bytes < config.early_bytes:
            return True
        tail = inbound.tail
        return any(run.pid <= tail < run.mids[-1] for run in contents.runs) or any(
            piece.pid <= tail < piece.mid for piece in contents.pieces
        )

    def _apply(self, session: Session, contents: Contents, now: float) -> None:
        """Do what a datagram says."""
        if contents.obituaries:
            for name, incarnation in contents.obituaries:
                self._obituary(name, incarnation, now)
            if session.over:
                return
        if contents.clock and self.observer is not None and contents.clock < LARGEST >> 1:
            self.observer.clock = max(self.observer.clock, contents.clock)
        if contents.acked is not None:
            arrived, lost = session.recovery.acknowledged(contents.acked, now)
            session.arrived(arrived)
            if lost:
                self._repair(session, lost)
        if contents.delivered > session.outbound.acked:
            self._delivered(session, contents.delivered)
        if contents.permit > session.permitted:
            self.carrier.permitted(session.alias, contents.permit)
            session.permitted = contents.permit
        if contents.runs or contents.pieces:
            self._take_in(session, contents)
        if contents.why:
            session.answer = culprits(self.live.values(), session, now)
        if contents.because is not None:
            session.because = contents.because
        if contents.bye:
            self._left(session, now)

    def _delivered(self, session: Session, mid: int) -> None:
        """The peer's protocol acknowledges all up to a message."""
        outbound = session.outbound
        if mid > outbound.departed:
            raise RemoteProtocolError(f"an ack of message {mid}, which has not left")
        self.carrier.acked(session.alias, mid)
        messages, size = outbound.acknowledged(mid)
        if not self._linked:
            session.confirmed = mid
            self.ledger.release(session, messages, size)
            self.progressed[session] = None

    def _take_in(self, session: Session, contents: Contents) -> None:
        inbound = session.inbound
        before = inbound.bytes
        try:
            for run in contents.runs:
                if run.per and not self.carrier.permits:
                    raise RemoteProtocolError("a flag that this protocol has not")
                self.stats.payload_bytes_in += run.size
                if inbound.add(run):
                    if self.observer is not None:
                        self.observer.arrived(session, run)
                else:
                    session.control_due = session.delivered > 0
            for piece in contents.pieces:
                self.stats.payload_bytes_in += len(piece.data)
                inbound.add_piece(piece)
        finally:
            self.waiting_bytes += inbound.bytes - before
            if inbound.ready:
                self._ready[session] = None

    # -- through the protocol -------------------------------------------------

    def admit(self) -> None:
        """Hand over to the protocol what is next, from each peer in turn, while there is room."""
        ready, carrier = self._ready, self.carrier
        while ready:
            room = self._inbox.room
            if room <= 0:
                break
            session = next(iter(ready))
            del ready[session]
            inbound = session.inbound
            before = inbound.bytes
            run = inbound.take(room)
            self.waiting_bytes -= before - inbound.bytes
            if inbound.ready:
                ready[session] = None
            if run.per:
                session.flagged = run.mids[-1]
            try:
                carrier.receive(session.alias, run)
            except RemoteProtocolError:
                self.stats.drop("against the protocol")
                self._collect()
            else:
                self._collect(run)

    def _collect(self, run: MessageRun | None = None) -> None:
        """Bring what the protocol has delivered to the queue: most often just this run."""
        deliveries = self.carrier.take_deliveries()
        if not deliveries:
            return
        if self.observer is not None:
            labels = {alias: session.label for alias, session in self.by_alias.items()}
            self.observer.delivered(deliveries, labels)
        if self._renamed:
            deliveries = [self._by_name(delivery) for delivery in deliveries]
        if run is not None and len(deliveries) == len(run.mids) and not self._linked:
            size = run.size
        else:
            size = sum([len(payload) for _, _, payload in deliveries])
        self._inbox.put(deliveries, size)
        self.stats.delivered += len(deliveries)

    def _by_name(self, delivery: Delivery) -> Delivery:
        source, mid, payload = delivery
        session = self.by_alias.get(source)
        return delivery if session is None else Delivery(session.name, mid, payload)

    def _pump(self) -> None:
        """Bring what the protocol has to say to the sessions, until it says no more."""
        self._collect()
        self.admit()
        carrier = self.carrier
        while runs := carrier.take_runs():
            for alias, run in runs:
                self._release(self.by_alias[alias], run)
        for session, mid in self._to_tell(carrier.take_acks()):
            session.delivered = max(session.delivered, mid)
        for session, mid in self._to_tell(carrier.take_permits()):
            session.permit = max(session.permit, mid)
        if self._linked:
            self._confirm()

    def _to_tell(self, numbers: dict[str, int]) -> Iterator[tuple[Session, int]]:
        """Sessions whose peer is to be told a number of the protocol, and which."""
        for alias, mid in numbers.items():
            session = self.by_alias[alias]
            if not session.over:
                session.control_due = True
                self.active[session] = None
            yield session, mid

    def _release(self, session: Session, run: MessageRun) -> None:
        """The protocol puts messages for one peer on the network."""
        if session.over:
            session.outbound.last = run.mids[-1]
            self._pretend(session)
            return
        self.active[session] = None
        if self.observer is not None:
            self.observer.released(session, run)
        session.outbound.release(run)

    def _confirm(self) -> None:
        """On a link: what do the applications of others have by now?"""
        for session in self.live.values():
            confirmed = self.carrier.confirmed(session.alias, session.outbound.acked)
            if confirmed > session.confirmed:
                session.confirmed = confirmed
                waiting = session.unconfirmed
                messages = size = 0
                while waiting and waiting[0][0] <= confirmed:
                    messages += 1
                    size += waiting.popleft()[1]
                self.ledger.release(session, messages, size)
                self.progressed[session] = None

    def _forget(self, session: Session) -> None:
        self._ready.pop(session, None)
        self.waiting_bytes -= session.inbound.bytes
        self.ledger.call_in(session)
        self.ledger.release(session, session.taken, session.taken_bytes)
        self.progressed[session] = None
        self._pretend(session)
        if self.carrier.permits:
            self.carrier.permitted(session.alias, LARGEST)

    # -- what goes out --------------------------------------------------------

    def datagrams_to_send(self, now: float) -> list[tuple[bytes, Address]]:
        """All that is to be sent now."""
        self._pump()
        out = self.greetings
        self.greetings = []
        observer = self.observer
        clock = 0 if observer is None else observer.clock
        active = self.active
        while active:
            session, _ = active.popitem()
            if session.established:
                address = session.address
                out += [(datagram, address) for datagram in session.datagrams(now, clock)]
            peer = self.peers.get(session.name)
            if peer is not None:
                self.arm(peer)
        stats = self.stats
        stats.datagrams_out += len(out)
        stats.bytes_out += sum([len(datagram) for datagram, _ in out])
        if self.carrier.ticks and self._tick_at is None and not self.carrier.idle:
            self._tick_at = now + self.config.tick
        if self._watch_at is None and (self.ledger.messages or self.waiting_bytes):
            self._watch_at = now + self.config.blocked_after / 4
        return out

    # -- what people ask ------------------------------------------------------

    def blocked(self, now: float) -> list[Reason]:
        """Why has this not arrived? One reason for each peer and place."""
        return reasons(self.live.values(), now, self.stalled)

    # -- time -----------------------------------------------------------------

    def next_timer(self) -> float | None:
        """When to call `timer_fired`."""
        times = (self._tick_at, self._watch_at, self.timers.first)
        return min([when for when in times if when is not None], default=None)

    def timer_fired(self, now: float) -> None:
        """Some time is over."""
        if self._tick_at is not None and self._tick_at <= now:
            self._tick_at = None
            self.carrier.tick()
        if self._watch_at is not None and self._watch_at <= now:
            self._watch_at = None
            self._look_around(now)
        for peer in self.timers.due(now):
            self._look_after(peer, now)
            self.arm(peer)

    def _look_around(self, now: float) -> None:
        """Tell what is stuck, and ask those whose permits are missing why they are."""
        news, missing = self._watch.look(self.live.values(), now, self.stalled)
        self.events += map(MessageBlocked, news)
        for session in missing:
            if session.established:
                session.control_due = session.why_due = True
                self.active[session] = None


def _carrier(protocol: str, me: str, peers: Iterable[str], options: dict[str, Any]) -> Carrier:
    if protocol in NATIVE:
        if options:
            raise LocalProtocolError(f"{protocol} has no option {', '.join(sorted(options))}")
        return Native(protocol, me)
    return Link(protocol, me, group_of(me, peers), **options)
