"""Messages of all peers between the network and the application.

    datagram -> Inbound of its session -> protocol -> queue of the application

The queue is bounded in messages and bytes. Messages whose turn it is wait in their session
until there is room in the queue, and the sessions take turns.

The application takes messages out of the queue itself, which is the fastest way; how many
it has taken follows from what is left. Bytes are counted by batch.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from ..core.endpoint import Delivery, RemoteProtocolError
from ..core.run import MessageRun
from .carrier import Carrier
from .config import TransportConfig
from .contents import Contents
from .events import Delivered, Event
from .handling import Report, ReportedDelivery
from .identity import Identity
from .inbound import OVERHEAD
from .names import PeerName
from .observer import Observer
from .session import Session
from .stats import DropReason, Stats
from .withdrawn import Withdrawn

__all__ = ["Arrivals"]


_DELIVERED = Delivered()


class Arrivals:
    """The way of messages from the network to the application."""

    def __init__(
        self,
        carrier: Carrier,
        config: TransportConfig,
        stats: Stats,
        emit: Callable[[Event], None],
        messages: deque[Delivery] | None = None,
    ) -> None:
        self._carrier = carrier
        self._linked = carrier.linked
        self._config = config
        self._stats = stats
        self._emit = emit
        self.observer: Observer | None = None
        self.messages: deque[Delivery] = deque() if messages is None else messages
        """Delivered messages, for the application to take."""
        self.aliases: dict[str, Session] = {}
        """Sessions by what the protocol calls their peer, those that are over included."""
        self.renamed = False
        """Whether the protocol knows an incarnation by another name than its own."""
        self.me: Identity | None = None
        """This process, as the source of messages to itself."""
        self.identified = False
        """Whether the source of a message has to state its incarnation."""
        self.report: Report | None = None
        """Called when the application has handled a message, if this process reports that."""
        self.waiting_bytes = 0
        """What messages of all peers that wait here are charged."""
        self._withdrawn = False
        """Whether a peer has withdrawn a message."""
        self.ready: dict[Session, None] = {}
        """Sessions with messages that wait for room in the queue."""
        self._put = 0
        """Messages put into the queue since the start."""
        self._batches: deque[tuple[int, int]] = deque()
        """For each batch in the queue: the value of `_put` after it, and its bytes."""
        self._queue_bytes = 0

    @property
    def stalled(self) -> bool:
        """Whether messages wait for room in the queue."""
        return bool(self.ready)

    @property
    def room(self) -> int:
        """The number of messages that the queue has room for; 0 or less if it is full."""
        batches = self._batches
        messages = len(self.messages)
        taken = self._put - messages
        while batches and batches[0][0] <= taken:
            self._queue_bytes -= batches.popleft()[1]
        if self._queue_bytes >= self._config.queue_bytes:
            return 0
        return self._config.queue_messages - messages

    # -- from the network -----------------------------------------------------

    def acceptable(self, session: Session, contents: Contents) -> bool:
        """Return whether memory allows for the messages in a datagram.

        No correct peer exceeds its own limit. All peers together may exceed the common one,
        and then only messages that close a gap are accepted.
        """
        inbound, config = session.inbound, self._config
        most = 2 * (config.peer_bytes + OVERHEAD * config.peer_messages) + config.message
        if inbound.messages > 2 * config.peer_messages or inbound.bytes > most:
            # Copies of early messages may add up to this; closing the gap clears them away.
            if len(inbound.ready) > 1:
                return False
        elif self.waiting_bytes < config.early_bytes:
            return True
        return any(inbound.closes_gap(run.pid, run.mids[-1]) for run in contents.runs) or any(
            inbound.closes_gap(piece.pid, piece.mid) for piece in contents.pieces
        )

    def take_in(self, session: Session, contents: Contents) -> None:
        """Accept the messages of a datagram.

        Raises:
            MalformedError: They contradict what the peer sent before.
            RemoteProtocolError: They ask for permits that the protocol does not have.
        """
        inbound, observer = session.inbound, self.observer
        before = inbound.bytes
        try:
            for run in contents.runs:
                if run.per and not self._carrier.permits:
                    raise RemoteProtocolError("unexpected permit flag")
                self._stats.payload_bytes_in += run.size
                new = inbound.add(run)
                if new is None:
                    session.control_due = session.delivered > 0
                elif observer is not None:
                    observer.arrived(session, new)
            for piece in contents.pieces:
                self._stats.payload_bytes_in += len(piece.data)
                self._withdrawn = self._withdrawn or piece.withdrawn
                new = inbound.add_piece(piece)
                if new is not None and observer is not None:
                    observer.arrived(session, new)
        finally:
            self.waiting_bytes += inbound.bytes - before
            if inbound.ready:
                self.ready[session] = None

    def pass_on(self, session: Session, run: MessageRun) -> bool:
        """Hand messages to the protocol at once if nothing is in their way.

        This is the short way for a datagram with one run that comes next in its chain,
        while no message of the peer waits here and the queue has room. Returns False, and
        changes nothing, in any other case.
        """
        inbound, carrier = session.inbound, self._carrier
        mids = run.mids
        if self.messages:
            room = self.room
        else:  # which is most common: the application has taken everything
            self._batches.clear()
            self._queue_bytes = 0
            room = self._config.queue_messages
        if (
            inbound.messages
            or run.pid != inbound.tail
            or self.ready
            or self.observer is not None
            or len(mids) > room
            or (run.per and not carrier.permits)
        ):
            return False
        inbound.tail = mids[-1]
        self._stats.payload_bytes_in += run.size
        if run.per and not carrier.lists:
            session.flagged = mids[-1]
        try:
            carrier.receive(session.alias, run)
        except RemoteProtocolError:
            self._stats.drop(DropReason.PROTOCOL_VIOLATION)
            self.collect()
        else:
            self.collect(run)
        return True

    def drop_parts(self, session: Session) -> None:
        """Forget the parts of messages of a peer, which will send them again."""
        before = session.inbound.bytes
        session.inbound.drop_parts()
        self.waiting_bytes -= before - session.inbound.bytes

    # -- to the application ---------------------------------------------------

    def admit(self) -> None:
        """Hand messages to the protocol, from each peer in turn, while there is room."""
        ready = self.ready
        while ready:
            room = self.room
            session = next(iter(ready))
            if room <= 0:
                if not self._carrier.changing:
                    break
                # The group waits for what is here, and sends nothing new meanwhile.
                room = len(session.inbound.ready[0].mids)
            del ready[session]
            self._hand_over(session, room)
            if session.inbound.ready:
                ready[session] = None

    def finish(self, session: Session) -> None:
        """Hand over the messages of a peer that is gone, and drop those whose turn never comes.

        Messages whose turn has come arrived before the end of the peer was known here. They
        are delivered even if the queue has no room, since others may have reacted to them.
        """
        self.ready.pop(session, None)
        while session.inbound.ready:
            self._hand_over(session, len(session.inbound.ready[0].mids))
        self.waiting_bytes -= session.inbound.bytes

    def _hand_over(self, session: Session, most: int) -> None:
        """Hand the next messages of a peer, at most `most`, to the protocol."""
        inbound = session.inbound
        before = inbound.bytes
        run = inbound.take(most)
        self.waiting_bytes -= before - inbound.bytes
        if run.per and not self._carrier.lists:
            session.flagged = run.mids[-1]
        try:
            self._carrier.receive(session.alias, run)
        except RemoteProtocolError:
            self._stats.drop(DropReason.PROTOCOL_VIOLATION)
            self.collect()
        else:
            self.collect(run)

    def tell_waits(self) -> None:
        """Report messages that have begun to wait, if somebody observes."""
        if self.observer is not None and (waits := self._carrier.take_waits()):
            self.observer.waiting(waits, self._labels())

    def _labels(self) -> dict[str, str]:
        return {alias: session.label for alias, session in self.aliases.items()}

    def collect(self, run: MessageRun | None = None) -> None:
        """Put what the protocol delivered into the queue; most often it is just `run`."""
        deliveries = self._carrier.take_deliveries()
        if self.observer is not None:
            self.tell_waits()
        if not deliveries:
            return
        if self.observer is not None:
            self.observer.delivered(deliveries, self._labels())
        if self._withdrawn:
            deliveries = [one for one in deliveries if one.payload.__class__ is not Withdrawn]
            if not deliveries:
                return
        if self.renamed or self.identified or self.report is not None:
            deliveries = [self._by_name(delivery) for delivery in deliveries]
        if run is not None and len(deliveries) == len(run.mids) and not self._linked:
            size = run.size
        else:
            size = sum([len(payload) for _, _, payload in deliveries])
        messages = self.messages
        if not messages:
            self._emit(_DELIVERED)
        messages += deliveries
        count = len(deliveries)
        self._put += count
        self._queue_bytes += size
        self._batches.append((self._put, size))
        self._stats.delivered += count

    def _by_name(self, delivery: Delivery) -> Delivery:
        source, mid, payload = delivery
        session = self.aliases.get(source)
        if session is None:
            me = self.me
            if me is None or self.messages.__class__ is not deque:  # a store does not keep it
                return delivery
            return Delivery(PeerName(me.name, me.incarnation), mid, payload)
        name = PeerName(session.name, session.incarnation)
        if self.report is None or session.unhandled is None:
            return Delivery(name, mid, payload)
        reported = ReportedDelivery(name, mid, payload)
        reported.report, reported.session = self.report, session
        session.unhandled.delivered(mid)
        return reported

    def restored(self) -> None:
        """Count what was in the queue from the beginning."""
        self._put = len(self.messages)

    def insert(self, event: Event) -> None:
        """Put an event into the queue, between messages."""
        if not self.messages:
            self._emit(_DELIVERED)
        self.messages.append(event)  # type: ignore[arg-type]
        self._put += 1
        self._batches.append((self._put, 0))
