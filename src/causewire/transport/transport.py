"""The transport: a protocol on datagrams, as a value that is driven from outside.

The driver calls

    datagram_received(data, address, now)   a datagram arrived
    timer_fired(now)                        the time of `next_timer()` has come
    try_send(to, payload), send(...)        causal send
    add_peer(name, address, now)            a process, or its new address
    close()                                 say goodbye

and after any of these

    datagrams_to_send(now)                  datagrams, and the address of each
    next_event()                            what happened, until it returns None
    messages                                delivered messages, for the driver to take
    next_timer()                            when to call `timer_fired`

There is no socket, clock, randomness or waiting in here: time, incarnation and random bytes
come from outside, so a whole system of transports runs in virtual time and repeats.

**Turns.** The driver reports everything that has happened, then asks for datagrams. What is
new for a peer by then shares datagrams, acks and permits included. They are not delayed any
longer, since messages may depend on them. What no message depends on leaves with the next
datagram to its receiver, or after `ack_delay`: the acknowledgement that acks and permits have
arrived, and a permit for a process that is patient (`patience`).

**Obituaries last.** A datagram that says that a process is gone is processed at the end of
its turn, so that messages of that process which have arrived meanwhile are delivered first.

**Room.** A message is accepted if there is room for it. It is then counted, for its peer and
for all peers together, until the peer's application has it. A message that arrived is handed
to the protocol, and so acknowledged, when the application's queue has room.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Generic

from ..core.endpoint import Delivery, RemoteProtocolError
from ..protocols import DEFAULT, Protocol, describe
from .acceptance import Acceptance
from .accepted import A, Accepted
from .arrivals import Arrivals
from .carrier import Carrier
from .config import TransportConfig
from .contents import Contents
from .events import Address, Delivered, Event, Handled, InOrder, MessageBlocked, PeerUp, Room
from .frames import read
from .greeter import Greeter
from .handling import Report
from .heads import HEAD, SESSION
from .identity import Identity
from .ledger import Ledger
from .link import carrier_for
from .memory import Memory
from .observer import Observer
from .paths import Paths
from .peers import Peers
from .policy import GiveUpAfter, policy
from .pump import Pump
from .seal import sealer
from .session import Session
from .stats import DropReason, Stats
from .status import Status, status_of
from .unread import Unread
from .upkeep import Upkeep
from .varint import LARGEST, MalformedError
from .watch import Reason, Watch, culprits
from .withdrawals import Withdrawals

__all__ = ["Transport"]


class Transport(Generic[A]):
    """The protocol of one process, and its sessions with others.

    Args:
        name: The name of this process.
        incarnation: A number that is higher than that of every earlier start.
        entropy: Returns random bytes: `secrets.token_bytes`, or a seeded generator in
            tests that have to repeat.
        protocol: The name of a protocol, or a `Protocol`.
        protocol_options: Options of the protocol.
        key: The cluster key, or several of which the first one seals and all open;
            without one datagrams are not encrypted.
        identity: The private key of this process, if members have key pairs.
        identities: The public keys of the other members, by name, in that case.
        config: Settings.
        life: How many times this process has started, for names in traces.
        receipt: The class of what `send` and `try_send` return.
        driver: An object of the driver, which becomes part of every receipt.
        give_up_after: How many seconds a peer may leave messages or pings unanswered before
            it is given up, for all peers or for each by name; None for never.
        read_within: How many seconds delivered messages may wait without any of them being
            taken, before this process has its peers give it up; None for ever.
        messages: The queue of delivered messages; by default a new one.
        ordered_events: Whether `messages` has peer events as well, where they belong.
        memory: What an earlier run of this process knew, if it is to be continued. The driver
            then writes `journal` to its store.
        connection: How many times this incarnation was continued.
        report: Called when the application has handled a message, if peers are to know.
    """

    def __init__(
        self,
        name: str,
        *,
        incarnation: int,
        entropy: Callable[[int], bytes],
        protocol: str | Protocol = DEFAULT,
        protocol_options: Mapping[str, Any] | None = None,
        key: bytes | Sequence[bytes] | None = None,
        identity: bytes | None = None,
        identities: Mapping[str, bytes] | None = None,
        config: TransportConfig | None = None,
        life: int = 1,
        receipt: type[A] = Accepted,  # type: ignore[assignment]
        driver: object = None,
        give_up_after: GiveUpAfter = None,
        read_within: float | None = None,
        messages: deque[Delivery] | None = None,
        ordered_events: bool = False,
        memory: Memory | None = None,
        connection: int = 0,
        report: Report | None = None,
    ) -> None:
        about = describe(protocol).in_node(**(protocol_options or {}))
        self.me = Identity(name, incarnation, about.name, life, connection, report is not None)
        self.config = config or TransportConfig()
        self.stats = Stats()
        self._events: deque[Event] = deque()
        self._ordered = ordered_events
        early = 2 * self.config.peer_messages
        told = report is not None
        self.journal = memory.journal(self.me, messages, told, early) if memory else None
        """Records what happens, for a driver with a store."""
        messages = messages if self.journal is None else self.journal.inbox
        emit = self._events.append if not ordered_events and memory is None else self._emit
        self._carrier: Carrier = self.journal or carrier_for(about, self.me, early)
        self._sealer = sealer(key, entropy, identity, identities)
        self._ledger = Ledger(self.config)
        self._arrivals = Arrivals(self._carrier, self.config, self.stats, emit, messages)
        self._arrivals.identified = ordered_events
        self._arrivals.report = report
        self.messages = self._arrivals.messages
        """Delivered messages in their order; the driver takes them from the left."""
        config, stats, carrier = self.config, self.stats, self._carrier
        room: Any = {"carrier": carrier, "ledger": self._ledger, "arrivals": self._arrivals}
        common: Any = {"config": config, "stats": stats, "emit": emit}
        self._peers = Peers(self.me, entropy=entropy, **room, **common)
        self._live = self._peers.live
        self.add_peer = self._peers.add
        self.close = self._peers.close
        self.abort = self._peers.abort
        self._paths = Paths(self._peers, entropy)
        self._greeter = Greeter(
            self.me, self._peers, self._paths, carrier=carrier, sealer=self._sealer, **common
        )
        self._upkeep = Upkeep(
            self.me, self._peers, self._greeter, give_up_after=policy(give_up_after), **common
        )
        self.forget = self._upkeep.give_up
        self._acceptance = Acceptance(
            self.me, self._peers, config=config, stats=stats, receipt=receipt, driver=driver, **room
        )
        self.try_send = self._acceptance.try_send
        self.send = self._acceptance.send
        self.room = self._acceptance.room
        """These three are documented in `Acceptance`."""
        if self.journal is not None and memory is not None:
            self.journal.attach(self.me, self._peers)
            memory.restore(self._peers, self._ledger, self._arrivals, self.config)
        self.message_number = self._carrier.message_number
        self.list_bytes = self._carrier.list_bytes
        """These two are documented in `Carrier`."""
        self._linked = self._carrier.linked
        self._ticks = self._carrier.ticks
        self._pump = Pump(
            self._peers,
            carrier=self._carrier,
            arrivals=self._arrivals,
            ledger=self._ledger,
            permit_delay=config.ack_delay,
            emit=self._events.append,
        )
        emit = self._events.append
        self._withdrawals = Withdrawals(
            self._peers, self.journal, carrier=carrier, ledger=self._ledger, emit=emit
        )
        self.withdraw = self._withdrawals.withdraw
        """This is documented in `Withdrawals`."""
        self.postponed: list[tuple[bytes, Address, float]] = []
        """Datagrams with obituaries, which are processed when all others of this turn are."""
        self._observer: Observer | None = None
        self._tick_at: float | None = None
        self._watch = Watch(self._carrier, self._upkeep, self.config.blocked_after)
        self._watch_at: float | None = None
        queue = self.messages if self.journal is None else self.journal.inbox.ready
        self._unread = Unread(self._peers, queue, read_within)

    @property
    def observer(self) -> Observer | None:
        """Receives what happens to messages; set it before the first call."""
        return self._observer

    @observer.setter
    def observer(self, observer: Observer | None) -> None:
        for part in (self._arrivals, self._acceptance, self._pump):
            part.observer = observer
        self._observer = observer
        if observer is not None:
            self._carrier.tell_waits()

    # -- receiving ------------------------------------------------------------

    def refill(self) -> bool:
        """Move messages that waited for room into `messages`; return whether there were any.

        The driver calls this when the application has taken messages. If the result is
        true, acks have become due: ask for `datagrams_to_send`.
        """
        if not self._arrivals.ready:
            return False
        self._arrivals.admit()
        return True

    def _emit(self, event: Event) -> None:
        self._events.append(event)
        if self.journal is not None and not isinstance(event, Delivered):
            self.journal.changed = True
        if self._ordered and isinstance(event, InOrder):
            self._arrivals.insert(event)

    def next_event(self) -> Event | None:
        """Return what happened next, or None if the driver knows everything."""
        return self._events.popleft() if self._events else None

    # -- peers ----------------------------------------------------------------

    def handled(self, session: Session, mid: int) -> None:
        """Have a peer told that the application has handled its message."""
        unhandled = session.unhandled
        if unhandled is not None and not session.over and unhandled.done(mid):
            self._peers.active[session] = None
        if self.journal is not None:
            self.journal.inbox.done_with(session.name, session.incarnation, mid)

    @property
    def unheard(self) -> list[str]:
        """After `close`: the peers that were reached and have not acknowledged the goodbye."""
        live = self._live.items()
        return [name for name, one in live if one.established and not one.bye_acked]

    # -- status ---------------------------------------------------------------

    def blocked(self, now: float) -> list[Reason]:
        """Return why messages have not arrived, one reason for each peer and place."""
        return self._watch.reasons(self._live.values(), now, self._arrivals.stalled)

    def status(self) -> Status:
        """Return counters, and what is known of each peer."""
        return status_of(self.stats, self._ledger, self._peers, self._arrivals)

    @property
    def settled(self) -> bool:
        """Whether every accepted message is delivered, and every datagram acknowledged.

        Datagrams to peers that are silent do not count.
        """
        self._ledger.call_in_all(self._live.values())
        return not any(
            session.wanted or (session.recovery.sent and not session.silent)
            for session in self._live.values()
        )

    @property
    def idle(self) -> bool:
        """Whether every accepted message is delivered, and nothing waits here."""
        self._ledger.call_in_all(self._live.values())
        return (
            not any(session.wanted for session in self._live.values())
            and not self._arrivals.stalled
            and self._carrier.idle
        )

    # -- datagrams that arrive ------------------------------------------------

    def datagram_received(self, data: bytes, address: Address, now: float) -> None:
        """Process a datagram. Whatever it contains, the worst result is a counted drop."""
        self.stats.datagrams_in += 1
        self.stats.bytes_in += len(data)
        try:
            if len(data) < HEAD.size + 4:
                raise MalformedError("cut short")
            if data[0] == SESSION:
                self._session_datagram(data, address, now)
            else:
                self._greeter.received(data, address, now)
        except MalformedError:
            self.stats.drop(DropReason.MALFORMED)

    def _session_datagram(
        self, data: bytes, address: Address, now: float, last: bool = False
    ) -> None:
        _, tag, number = HEAD.unpack_from(data)
        session = self._peers.by_tag.get(tag)
        if session is None:
            self._departed_datagram(tag, number, data, address)
            return
        received = session.received
        if number <= received.largest and number in received:
            self.stats.drop(DropReason.DUPLICATE)
            return
        opened = session.open(number, data)
        if opened is None:
            self.stats.drop(DropReason.UNVERIFIED)
            return
        contents = read(opened)
        rare = contents.rare
        if rare and contents.obituaries and not last and self._peers.ends(contents.obituaries):
            # Messages of the process that is gone may have arrived, and not been read yet.
            self.postponed.append((data, address, now))
            return
        messages = contents.runs or contents.pieces
        arrivals = self._arrivals
        if messages and arrivals.waiting_bytes and not arrivals.acceptable(session, contents):
            self.stats.drop(DropReason.NO_ROOM)
            return
        if rare:
            full = contents.control and not session.stream.acceptable(contents.control)
            if full or not self._peers.room_for(contents.obituaries, now):
                self.stats.drop(DropReason.NO_ROOM)
                return
            if contents.challenge:
                self._paths.challenged(session, contents.challenge, address)
            if contents.response:
                self._paths.answered(session, contents.response, address)
        if address != session.address and number > received.largest:
            self._paths.seen(session, address, now)
        received.add(number)
        before, session.heard_at = session.heard_at, now
        if session.silent:
            session.silent = False
            self._events.append(PeerUp(session.name))
        if contents.eliciting:
            if messages or rare:
                session.ack_due = True
                if not messages:
                    session.rhythm = now - before
            elif session.ack_by is None:
                session.ack_by = now + self.config.ack_delay
        self._peers.active[session] = None
        try:
            self._apply(session, contents, now)
        except RemoteProtocolError:
            self.stats.drop(DropReason.PROTOCOL_VIOLATION)
        session.owes = now if session.recovery.sent else None
        if messages and arrivals.ready:
            arrivals.admit()

    def _departed_datagram(self, tag: bytes, number: int, data: bytes, address: Address) -> None:
        """Acknowledge again what a peer sends that has left, since it repeats its goodbye."""
        session = self._peers.departed.get(tag)
        if session is None or session.open(number, data) is None:
            self.stats.drop(DropReason.UNKNOWN_SESSION)
            return
        if number not in session.received:
            session.received.add(number)
        self._greeter.out.append((session.last_ack(), address))

    def _apply(self, session: Session, contents: Contents, now: float) -> None:
        """Do what a datagram says."""
        if contents.rare:
            for name, incarnation in contents.obituaries:
                ended = self._peers.obituary(name, incarnation, session.name, now)
                if ended is not None:
                    self._upkeep.tell_forgotten(ended)
            if session.over:
                return
            observer = self._observer
            if contents.clock and observer is not None and contents.clock < LARGEST >> 1:
                observer.clock = max(observer.clock, contents.clock)
        if contents.acked is not None:
            arrived, lost = session.recovery.acknowledged(contents.acked, now)
            session.arrived(arrived)
            if lost:
                self._upkeep.repair(session, lost)
        delivered = contents.delivered
        if delivered >= session.outbound.acked and delivered:
            if delivered > session.outbound.acked:
                self._delivered(session, delivered)
            session.peer_patient = contents.patient
            session.control_due |= session.permit_by is not None and not contents.patient
        if contents.permit > session.permitted:
            self._carrier.permitted(session.alias, contents.permit)
            session.permitted = contents.permit
        runs, pieces = contents.runs, contents.pieces
        if pieces or len(runs) > 1 or (runs and not self._arrivals.pass_on(session, runs[0])):
            self._arrivals.take_in(session, contents)
        if not contents.rare:
            return
        for record in session.stream.receive(contents.control):
            self._carrier.control(session.alias, record)
        if contents.why:
            session.answer = culprits(self._live.values(), session, now)
        if contents.because is not None:
            session.because = contents.because
        for low, high in contents.handled:
            if session.handled is not None:
                session.handled.add(low, high)
                self._events.append(Handled(session, low, high))
        if contents.bye:
            self._greeter.out.append((session.last_ack(), session.address))
            self._peers.left(session, now)

    def _delivered(self, session: Session, mid: int) -> None:
        """Process an ack of the peer's protocol for all messages up to `mid`."""
        outbound = session.outbound
        if mid > outbound.departed:
            raise RemoteProtocolError(f"an ack of message {mid}, which has not been sent")
        lists = self._carrier.acked(session.alias, mid)
        messages, size = outbound.acknowledged(mid)
        if not self._linked:
            self._pump.confirm(session, mid, messages, size - lists)

    # -- datagrams to send ----------------------------------------------------

    def datagrams_to_send(self, now: float) -> list[tuple[bytes, Address]]:
        """Return all datagrams that have to be sent now, each with its address."""
        while self.postponed:
            try:
                self._session_datagram(*self.postponed.pop(0), last=True)
            except MalformedError:
                self.stats.drop(DropReason.MALFORMED)
        self._pump.run(now)
        out = self._greeter.out + self._paths.out
        if out:
            self._greeter.out, self._paths.out = [], []
        observer = self._observer
        clock = 0 if observer is None else observer.clock
        peers = self._peers
        active = peers.active
        while active:
            session, _ = active.popitem()
            if session.established:
                address = session.address
                for datagram in session.datagrams(now, clock):
                    out.append((datagram, address))
            peer = peers.known.get(session.name)
            if peer is not None:
                self._upkeep.arm(peer, now)
        stats = self.stats
        stats.datagrams_out += len(out)
        for datagram, _ in out:
            stats.bytes_out += len(datagram)
        if self._ticks and self._tick_at is None and not self._carrier.idle:
            self._tick_at = now + self.config.tick
        if self._watch_at is None and (
            self._ledger.messages or self._arrivals.waiting_bytes or self._watch.needed
        ):
            self._watch_at = now + self.config.blocked_after / 4
        self._unread.begin(now)
        if self._acceptance.next_turn():
            self._events.append(Room())
        return out

    # -- time -----------------------------------------------------------------

    def next_timer(self) -> float | None:
        """Return when to call `timer_fired`, or None if there is nothing to wait for."""
        first = self._peers.timers.first
        for when in (self._tick_at, self._watch_at, self._withdrawals.next, self._unread.next):
            if when is not None and (first is None or when < first):
                first = when
        return first

    def timer_fired(self, now: float) -> None:
        """Do what is due at this time."""
        if self._tick_at is not None and self._tick_at <= now:
            self._tick_at = None
            self._carrier.tick()
        if self._watch_at is not None and self._watch_at <= now:
            self._watch_at = None
            self._look_around(now)
        self._unread.run(now)
        self._withdrawals.run(now)
        self._upkeep.run(now)

    def _look_around(self, now: float) -> None:
        """Report what is stuck, and ask the peers whose permits are missing for the cause."""
        self._upkeep.give_up_absent(self._carrier.absent, now)
        found, missing = self._watch.look(self._live.values(), now, self._arrivals.stalled)
        self._events.extend(map(MessageBlocked, found))
        for session in missing:
            if session.established:
                session.control_due = session.why_due = True
                self._peers.active[session] = None
