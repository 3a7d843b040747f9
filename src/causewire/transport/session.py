"""The state between this process and one incarnation of another.

A session is made when a message is accepted for a process, or when a greeting of it is
answered. It is *established* when both sides have seen their incarnation answered, and
*over* when the peer is known to be gone. `alias` is what the protocol calls that
incarnation: the name of the process for its first incarnation, and another name for each
later one, so that the protocol treats every incarnation as a process of its own.

Apart from messages, a peer gets values that only grow (an ack and a permit of the
protocol), questions and answers. None of them is queued: if the datagram with a value is
lost, the value of that later time is sent.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence

from .account import Account
from .budget import Budget
from .config import TransportConfig
from .congestion import CongestionWindow
from .cubic import Cubic
from .events import Address
from .frames import (
    ACK_MOST,
    BYE,
    CLOCK_MOST,
    PING,
    RUN_HEAD,
    WHY,
    may_be_acked_late,
    padded_ping,
    put_ack,
    put_because,
    put_clock,
    put_delivered,
    put_obituary,
    put_permit,
)
from .handling import HandledRanges, Unhandled
from .heads import HEAD, SESSION, Greeting
from .inbound import Inbound
from .newreno import NewReno
from .path_size import PathSize, path_to
from .received import Received
from .recovery import Probe, Recovery, RoundTrip, Sent
from .seal import Exchange, Seal
from .stream import ControlStream

__all__ = ["Session"]

_ACK_LEAST = 20  # an ack is written where at least this many bytes are left
CONGESTION: dict[str, type[CongestionWindow]] = {"cubic": Cubic, "newreno": NewReno}
"""The algorithms by the value of the setting `congestion`."""

_RESERVE = ACK_MOST + 32  # longer messages than a datagram less this are sent in parts


class Session(Account):
    """This process and one incarnation of a peer.

    Drivers use `name`, `confirmed`, `handled`, `established` and `over`.
    """

    __slots__ = (
        "_accepts", "_config", "_former", "_limit", "_opening", "_overhead", "_sealing",
        "_taken", "_window", "ack_by", "ack_due", "address", "agreement", "alias", "alone",
        "answer", "awaited", "because",
        "bye_acked", "bye_due", "confirmed", "connection", "control_due", "delivered",
        "established", "exchange", "flagged", "handled", "heard_at", "inbound",
        "incarnation", "label", "name", "obituaries", "obituaries_due", "over",
        "owes", "path", "patient", "peer_patient", "permit", "permit_by", "permitted",
        "ping_due", "pinged_at", "progress", "received", "recovery", "rhythm", "send",
        "silent", "stream", "trouble", "unconfirmed", "unhandled", "why_due",
    )  # fmt: skip

    def __init__(
        self,
        name: str,
        alias: str,
        address: Address,
        send: Callable[[bytes], int],
        config: TransportConfig,
    ) -> None:
        super().__init__()
        self.name = name
        self.alias = alias
        self.label = name
        """What it is called in traces."""
        self.address = address
        self.incarnation = 0
        self.connection = 0
        """How many times that incarnation has come back with its memory."""
        self.established = False
        self.awaited = False
        """Whether the peer is gone, and its next incarnation was not reached yet."""
        self.over = False
        self.inbound = Inbound(config.message)
        self.received = Received()
        self.stream = ControlStream()
        self._config = config
        self._window = CONGESTION[config.congestion]
        trip = RoundTrip(config.first_timeout, config.least_timeout, config.longest_timeout)
        self.recovery = Recovery(trip, self._window(config.datagram), config.ack_delay)
        self._limit = config.datagram
        """Bytes of frames that a datagram has room for."""
        self._overhead = 0
        """How much longer than its frames a datagram is."""
        self.path = PathSize(config.datagram, config.datagram, config.datagram)
        self._taken: Address | None = None
        """The address that the path leads to; None if the next datagram takes a new path."""
        self._accepts = 0
        """The longest datagram that the peer accepts."""
        self.exchange = b""
        """This side's message in the handshake of the session, for greetings to repeat."""
        self.agreement: Exchange | None = None
        """How the keys were agreed on."""
        self._sealing: Seal
        self._opening: Seal
        self._former: dict[bytes, tuple[Seal, Seal]] = {}
        """Other keys that the peer may use, by the tag of its datagrams."""
        self.send = send
        """Causal send to this peer."""
        self.alone = (self,)
        self.confirmed = 0
        """The last message that was delivered to the peer's application."""
        self.unconfirmed: deque[tuple[int, int]] = deque()
        """For a protocol on a link: messages that are not confirmed, and their sizes."""
        # What the peer has to learn.
        self.ack_due = False
        self.ack_by: float | None = None
        """If only datagrams without messages arrived since the last ack: when it is due."""
        self.control_due = False
        self.ping_due = False
        self.why_due = False
        self.bye_due = False
        self.bye_acked = False
        """Whether the peer has acknowledged that this process leaves."""
        self.answer: Sequence[str] | None = None
        self.delivered = 0
        """The peer's messages up to this one have been delivered here."""
        self.permit = 0
        """Messages to the peer up to this one are permitted."""
        self.permit_by: float | None = None
        """If that may wait for a message: when it leaves alone (`patience`)."""
        self.patient = False
        """Whether permits of the peer may wait likewise."""
        self.obituaries: dict[str, int] = {}
        """Obituaries that the peer has not acknowledged yet."""
        self.obituaries_due = False
        # What the peer has told.
        self.peer_patient = False
        """Whether permits for it may wait."""
        self.flagged = 0
        """The peer's last message that was delivered and needs a permit."""
        self.permitted = 0
        """The peer's last message that is permitted."""
        self.because: Sequence[str] = ()
        """The processes that its permits wait for, as it says."""
        self.unhandled: Unhandled | None = None
        """The peer's messages that are not handled here, if this process reports that."""
        self.handled: HandledRanges | None = None
        """The messages that the peer has handled, if it reports that."""
        # Times.
        self.heard_at = 0.0
        self.pinged_at = 0.0
        self.rhythm: float | None = None
        """How long nothing had come from the peer before its last ping, if none was sent since."""
        self.owes: float | None = None
        """The time of the first datagram that it has not answered."""
        self.silent = False
        self.trouble = ""  # why the peer cannot be reached, if that is known
        self.progress: tuple[int, int, float, float] | None = None
        """For `Watch`: the progress of both chains, and the times of the last progress."""

    # -- beginning and end ----------------------------------------------------

    def establish(
        self, incarnation: int, greeting: Greeting, seals: tuple[Seal, Seal], path: PathSize
    ) -> bytes:
        """Begin to exchange datagrams; return the tag of those that will arrive.

        Args:
            incarnation: The incarnation of the peer.
            greeting: What it said.
            seals: What seals datagrams to it, and opens those from it.
            path: How long datagrams to it may be.
        """
        self.incarnation = incarnation
        self.connection = greeting.connection
        self.established = True
        self._sealing, self._opening = seals
        self._overhead = HEAD.size + self._sealing.overhead
        self._accepts, self._taken = greeting.datagram, self.address
        self._take(path)
        self.outbound.peer_messages = greeting.messages
        self.outbound.peer_bytes = greeting.room
        self.handled = HandledRanges() if greeting.reports else None
        if greeting.life > 1:
            self.label = f"{self.name}/{greeting.life}"
        return self._opening.tag

    def reseal(self, seals: tuple[Seal, Seal]) -> bytes:
        """Use other keys, and keep the former ones; return the tag as `establish` does."""
        self._former.pop(seals[1].tag, None)
        self._former[self._opening.tag] = self._sealing, self._opening
        self._sealing, self._opening = seals
        return self._opening.tag

    def drop_oldest_keys(self) -> bytes:
        """Forget the keys that were replaced first; return their tag."""
        self._former.pop(tag := next(iter(self._former)))
        return tag

    def resume(self, seals: tuple[Seal, Seal], greeting: Greeting) -> None:
        """Begin a new connection with a peer that has come back with its memory."""
        self._sealing, self._opening = seals
        self._former.clear()
        self.connection = greeting.connection
        self._accepts, self._taken = greeting.datagram, None
        self.received = Received()
        self.recovery = self.recovery.fresh()
        outbound = self.outbound
        outbound.peer_messages, outbound.peer_bytes = greeting.messages, greeting.room
        outbound.resume()
        self.ack_due, self.ack_by = False, None
        self.control_due, self.peer_patient = True, False
        self.obituaries_due = bool(self.obituaries)
        if self.unhandled is not None:
            self.unhandled.report_all()

    @property
    def tags(self) -> list[bytes]:
        """The tags of all datagrams that may arrive."""
        return [*self._former, self.tag]

    @property
    def tag(self) -> bytes:
        """The tag of datagrams that arrive; empty if the session was never established."""
        return self._opening.tag if self.agreement is not None else b""

    def end(self) -> None:
        """Drop everything that was kept for the peer, which is gone."""
        self.over, self.established = True, False
        self.inbound = Inbound(0)
        self.outbound.clear()
        self.stream = ControlStream()
        self.recovery.sent.clear()
        self.unconfirmed.clear()
        self.obituaries.clear()

    # -- datagrams ------------------------------------------------------------

    def open(self, number: int, data: bytes) -> bytes | None:
        """Return the contents of a datagram, or None if it does not verify."""
        opened = self._opening.open(number, data)
        if opened is None and self._former:
            for seals in self._former.values():
                opened = seals[1].open(number, data)
                if opened is not None:
                    self._former[self._opening.tag] = self._sealing, self._opening
                    self._sealing, self._opening = seals
                    break
        return opened

    def last_ack(self) -> bytes:
        """Return a datagram that acknowledges everything, after the session is over."""
        return self.single(put_ack(self.received.ranges))

    @property
    def wants_to_send(self) -> bool:
        """Whether a datagram has to be sent now."""
        return bool(
            self.ack_due
            or self.control_due
            or self.ping_due
            or self.bye_due
            or self.obituaries_due
            or self.answer is not None
            or (self.unhandled is not None and self.unhandled.due)
            or (self.recovery.open and (self.outbound.pending or self.stream.pending))
        )

    def datagrams(self, now: float, clock: int) -> list[bytes]:
        """Return all datagrams that may be sent now; `clock` is the Lamport time, or 0."""
        if self.address is not self._taken:
            self._follow(now)
        if not clock:
            datagram = self._short_way(now)
            if datagram is not None:
                return [datagram]
        datagrams: list[bytes] = []
        while self.wants_to_send:
            sent = Sent(now)
            budget = Budget(self._limit)
            if not self._fill(budget, sent, clock):
                break
            number = self.recovery.next_number
            head = HEAD.pack(SESSION, self._sealing.tag, number)
            datagram = self._sealing.close(number, head, b"".join(budget.frames))
            datagrams.append(datagram)
            if sent.eliciting:
                sent.size = len(datagram)
                if self.owes is None:
                    self.owes = now
                self.recovery.departs(sent)
            else:
                self.recovery.next_number += 1
        if len(datagrams) > 1 and (length := self.path.probe(now)):
            frame = padded_ping(length - self._overhead)
            datagrams.append(self.single(frame, Probe(now, length)))
        return datagrams

    def _short_way(self, now: float) -> bytes | None:
        """Return the datagram to send if it is the only one, with one message and acks.

        This does what `_fill` does, without its questions, in the case that decides how
        long a single message takes. In any other case it returns None and changes nothing.
        """
        recovery = self.recovery
        if (
            self.obituaries
            or self.ping_due
            or self.bye_due
            or self.why_due
            or self.answer is not None
            or self.unhandled is not None
            or self.stream.records
            or self.stream.resend
            or (recovery.in_flight >= recovery.window.size and not recovery.probes)
        ):
            return None
        taken = self.outbound.take_single(self._limit - _RESERVE - RUN_HEAD)
        if taken is None:
            return None
        frame, run = taken
        control = self.control_due or self.permit_by is not None
        if control:
            self.control_due, self.permit_by = False, None
            if self.permit:
                frame = put_permit(self.permit) + frame
            if self.delivered:
                frame = put_delivered(self.delivered, self.patient) + frame
        if self.ack_due or self.ack_by is not None:
            self.ack_due, self.ack_by = False, None
            frame = put_ack(self.received.ranges) + frame
        number = recovery.next_number
        sealing = self._sealing
        datagram = sealing.close(number, HEAD.pack(SESSION, sealing.tag, number), frame)
        sent = Sent(now, len(datagram), control, run)
        if self.owes is None:
            self.owes = now
        recovery.departs(sent)
        return datagram

    def single(self, frame: bytes, probe: Probe | None = None) -> bytes:
        """Return a datagram with one frame, which is not sent again if it is lost."""
        number = self.recovery.next_number
        if probe is None:
            self.recovery.next_number += 1
        else:
            self.recovery.departs(probe)
        return self._sealing.close(number, HEAD.pack(SESSION, self._sealing.tag, number), frame)

    def _fill(self, budget: Budget, sent: Sent, clock: int) -> bool:
        """Write the next datagram, and return whether it says anything new.

        What has to be sent again if it is lost is put into `sent`.
        """
        news = False
        told_all = True
        if self.obituaries:
            told_all = self._put_obituaries(budget, sent)
            news = self.obituaries_due
            sent.eliciting = bool(sent.obituaries)
        self.obituaries_due = False
        if (self.ack_due or self.ack_by is not None) and budget.left >= _ACK_LEAST:
            self.ack_due, self.ack_by = False, None
            budget.put(put_ack(self.received.ranges, budget.left))
            news = True
        if told_all:
            if self._put_control(budget, sent):
                news = sent.eliciting = True
            if self.stream.pending and self.recovery.open:
                sent.stream = []
                if self.stream.fill(budget, sent.stream):
                    news = sent.eliciting = True
            if self.recovery.open and self.outbound.pending:
                full = self._limit - _RESERVE
                part = self.path.base - self._overhead - _RESERVE
                if clock:
                    budget.left -= CLOCK_MOST
                if self.outbound.fill(budget, full, sent.items, part):
                    news = sent.eliciting = True
                if clock:
                    budget.left += CLOCK_MOST
                    if sent.items:
                        budget.put(put_clock(clock))
        sent.patient = not sent.items and all(map(may_be_acked_late, budget.frames))
        return news

    def _put_control(self, budget: Budget, sent: Sent) -> bool:
        """Write everything but messages, obituaries and the ack; return whether there is any."""
        before = budget.left
        if (self.control_due or self.permit_by is not None) and before >= 32:
            self.control_due, self.permit_by = False, None
            sent.control = True
            if self.delivered:
                budget.put(put_delivered(self.delivered, self.patient))
            if self.permit:
                budget.put(put_permit(self.permit))
            if self.why_due:
                self.why_due = False
                budget.put(WHY)
        if self.ping_due and budget.offer(PING):
            self.ping_due = False
        if self.answer is not None and budget.offer(put_because(self.answer, budget.left)):
            self.answer = None
        if self.unhandled is not None:
            sent.handled = self.unhandled.put(budget)
        if self.bye_due and budget.offer(BYE):
            self.bye_due = False
            sent.bye = True
        return budget.left < before

    def _put_obituaries(self, budget: Budget, sent: Sent) -> bool:
        """Write obituaries, before anything that may depend on them; return whether all fit."""
        told: list[tuple[str, int]] = []
        reserve = self._limit // 2
        for name, incarnation in self.obituaries.items():
            frame = put_obituary(name, incarnation)
            if told and budget.left - len(frame) < reserve:
                break
            budget.put(frame)
            told.append((name, incarnation))
        sent.obituaries = tuple(told)
        return len(told) == len(self.obituaries)

    def arrived(self, datagrams: list[Sent]) -> None:
        """Note that these datagrams have reached the peer."""
        path = self.path
        for sent in datagrams:
            if sent.size > path.base:
                if sent.time >= path.since:
                    path.arrived(sent.size, False)
            elif isinstance(sent, Probe) and sent.time >= path.since:
                path.arrived(sent.length, True)
                self._measure()
            if sent.bye:
                self.bye_acked = True
            for name, incarnation in sent.obituaries:
                if self.obituaries.get(name) == incarnation:
                    del self.obituaries[name]

    def _follow(self, now: float) -> None:
        """Begin a new path if the peer is at another host, or has come back."""
        former, self._taken = self._taken, self.address
        host = self.address[0]
        if former is None or former[0] != host:
            self._take(path_to(self._config, host, self._accepts, now))

    def _take(self, path: PathSize) -> None:
        """Use a path of which nothing is known (RFC 9000, section 9.4)."""
        self.path = path
        self.recovery.window = self._window(path.size)
        self._measure()

    def _measure(self) -> None:
        """Use the length that is known of the path."""
        self._limit = self.path.size - self._overhead
        if self.recovery.window.unit != self.path.size:
            self.recovery.window.use(self.path.size)

    def lost(self, datagrams: list[Sent]) -> None:
        """Send again what these datagrams said, as they were lost."""
        long, path = False, self.path
        for sent in datagrams:
            if sent.size > path.base:
                long |= sent.time >= path.since
            elif isinstance(sent, Probe) and sent.time >= path.since:
                path.lost(sent.length)
            if sent.items:
                self.outbound.lost(sent.items)
            if sent.control:
                self.control_due = True
            if sent.stream:
                self.stream.lost(sent.stream)
            if sent.obituaries:
                self.obituaries_due = True
            if sent.bye:
                self.bye_due = not self.bye_acked
            if self.unhandled is not None:
                self.unhandled.report(sent.handled)
            if not sent.items and not sent.control and not sent.stream:
                self.ping_due = True
        if long and path.vanished():
            self._measure()
