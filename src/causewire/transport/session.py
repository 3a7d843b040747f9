"""What goes on between this process and one incarnation of another.

A session is made when a message is accepted for a process, or when a greeting of
it is answered; it is *established* when both sides have seen their incarnation
answered, and *over* when the peer is known to be gone. `alias` is what the protocol
calls that incarnation: its name, for the first one that was met; so to the protocol
an incarnation that comes back is another process.

Everything that a peer is told besides messages is a value that only grows (an ack
and a permit of the protocol), or a question or answer: nothing is queued. If the
datagram that told it is lost, the value of that time is told again.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

from .config import Config
from .events import Address
from .frames import ACK_MOST, put_ack, put_because, put_obituary
from .heads import HEAD, SESSION, Greeting
from .inbound import Inbound
from .outbound import Outbound
from .received import Received
from .recovery import Recovery, RoundTrip, Sent, Window
from .seal import Seal, Sealer
from .varint import put

__all__ = ["Session"]

_CONTROL_MOST = ACK_MOST + 9 + 9 + 9 + 2
"""The most bytes of an ack, the protocol's ack and permit, a clock, a ping and a question."""


class Session:
    """This process and one incarnation of a peer."""

    __slots__ = (
        "_full",
        "_limit",
        "_opening",
        "_sealing",
        "accepted",
        "ack_due",
        "address",
        "alias",
        "alone",
        "answer",
        "because",
        "bye_due",
        "confirmed",
        "control_due",
        "credit",
        "credit_bytes",
        "delivered",
        "established",
        "flagged",
        "heard_at",
        "inbound",
        "incarnation",
        "label",
        "lent",
        "name",
        "obituaries",
        "outbound",
        "over",
        "owes",
        "permit",
        "permitted",
        "ping_due",
        "pinged_at",
        "progress",
        "received",
        "recovery",
        "send",
        "silent",
        "taken",
        "taken_bytes",
        "unconfirmed",
        "waiters",
        "why_due",
    )

    def __init__(
        self,
        name: str,
        alias: str,
        address: Address,
        send: Callable[[str, bytes], int],
        config: Config,
    ) -> None:
        self.name = name
        self.alias = alias
        self.label = name
        """What traces call it."""
        self.address = address
        self.incarnation = 0
        self.established = False
        self.over = False
        self.outbound = Outbound()
        self.inbound = Inbound(config.message)
        self.received = Received()
        trip = RoundTrip(config.first_timeout, config.least_timeout, config.longest_timeout)
        self.recovery = Recovery(trip, Window(config.datagram))
        self._limit = self._full = config.datagram
        self._sealing: Seal
        self._opening: Seal
        # The sender's account: what was accepted and is not known to be delivered.
        self.accepted = 0
        """Messages accepted for this peer, ever, unused credit included."""
        self.taken = 0
        """Room taken in the ledger, unused credit included."""
        self.taken_bytes = 0
        self.credit = 0
        """Messages that may be sent without asking the ledger, and their bytes."""
        self.credit_bytes = 0
        self.lent = 0
        """What the credit was when it was given."""
        self.send = send
        """Causal send, for those who have credit."""
        self.alone = (self,)
        self.confirmed = 0
        """The last message that the peer's application has."""
        self.unconfirmed: deque[tuple[int, int]] = deque()
        """For a protocol on a link: messages that are not confirmed, and their sizes."""
        self.waiters: list[tuple[int, int, Any]] = []
        """For the driver: who waits for a message to be confirmed, as a heap."""
        # What the peer is to be told.
        self.ack_due = False
        self.control_due = False
        self.ping_due = False
        self.why_due = False
        self.bye_due = False
        self.answer: Sequence[str] | None = None
        self.delivered = 0
        """Its messages up to this one have been delivered here."""
        self.permit = 0
        """Our messages up to this one are permitted."""
        self.obituaries: dict[str, int] = {}
        """Processes of which it does not know yet that they are gone."""
        # What it has told us.
        self.flagged = 0
        """Its last message that was delivered and needs a permit."""
        self.permitted = 0
        """Its last message that is permitted."""
        self.because: Sequence[str] = ()
        """Whom its permits wait for, by its own account."""
        # Times.
        self.heard_at = 0.0
        self.pinged_at = 0.0
        self.owes: float | None = None
        """Since when it owes an answer, if it does."""
        self.silent = False
        self.progress: tuple[int, int, float, float] | None = None
        """For `Watch`: how far both chains had come, and since when."""

    # -- beginning and end ----------------------------------------------------

    def establish(
        self, me: str, born: int, incarnation: int, greeting: Greeting, sealer: Sealer, limit: int
    ) -> bytes:
        """Both sides know each other; returns the tag of the datagrams to come in."""
        self.incarnation = incarnation
        self.established = True
        self._sealing = sealer.session(me, born, self.name, incarnation)
        self._opening = sealer.session(self.name, incarnation, me, born)
        self._limit = min(limit, greeting.datagram) - HEAD.size - self._sealing.overhead
        self._full = self._limit - _CONTROL_MOST
        self.recovery.window = Window(min(limit, greeting.datagram))
        self.outbound.peer_messages = greeting.messages
        self.outbound.peer_bytes = greeting.room
        if greeting.life > 1:
            self.label = f"{self.name}/{greeting.life}"
        return self._opening.tag

    def end(self) -> None:
        """The peer is gone; what is kept for it goes, too."""
        self.over = True
        self.established = False
        self.inbound = Inbound(0)
        self.outbound.clear()
        self.recovery.sent = {}
        self.unconfirmed.clear()

    @property
    def has_messages(self) -> int:
        """Messages that were accepted, and are not known to be delivered."""
        return self.taken - self.credit

    @property
    def has_bytes(self) -> int:
        return self.taken_bytes - self.credit_bytes

    @property
    def held(self) -> int:
        """Messages accepted for this peer that the protocol has not released."""
        return self.accepted - self.credit - self.outbound.released

    # -- datagrams ------------------------------------------------------------

    def open(self, number: int, data: bytes) -> bytes | None:
        """The contents of a datagram, or None if it does not verify."""
        return self._opening.open(number, data[: HEAD.size], data[HEAD.size :])

    @property
    def wants_to_send(self) -> bool:
        """Whether a datagram is to leave now."""
        return (
            self.ack_due
            or self.control_due
            or self.ping_due
            or self.bye_due
            or self.answer is not None
            or (self.recovery.open and self.outbound.pending)
        )

    def datagrams(self, now: float, clock: int) -> list[bytes]:
        """All that may leave now; `clock` is the Lamport time, if that is to be told."""
        datagrams: list[bytes] = []
        while self.wants_to_send:
            sent = Sent(now)
            parts = self._contents(sent, clock)
            if not parts:
                break
            number = self.recovery.next_number
            head = HEAD.pack(SESSION, self._sealing.tag, number)
            datagram = self._sealing.close(number, head, b"".join(parts))
            datagrams.append(datagram)
            if sent.eliciting:
                sent.size = len(datagram)
                if self.owes is None:
                    self.owes = now
                self.recovery.departs(sent)
            else:
                self.recovery.next_number += 1
            if not sent.items:
                break
        return datagrams

    def _contents(self, sent: Sent, clock: int) -> list[bytes]:
        """The frames of the next datagram; what has to be remembered of it is put in `sent`."""
        parts: list[bytes] = []
        told_all = not self.obituaries or self._put_obituaries(parts, sent)
        if self.ack_due:
            self.ack_due = False
            before = len(parts) + 1
            parts.append(put_ack(self.received.ranges))
        else:
            before = len(parts)
        self._put_control(parts, sent)
        sent.eliciting = bool(sent.obituaries) or len(parts) > before
        if told_all and self.recovery.open and self.outbound.pending:
            space = self._limit - sum(map(len, parts))
            if clock:
                at = len(parts)
                space -= 9
            if self.outbound.fill(space, self._full, parts, sent.items):
                sent.eliciting = True
                if clock:
                    parts.insert(at, b"\x06" + put(clock))
        return parts

    def _put_control(self, parts: list[bytes], sent: Sent) -> None:
        """Everything but messages and the ack of datagrams."""
        if self.control_due:
            self.control_due = False
            sent.control = True
            if self.delivered:
                parts.append(b"\x02" + put(self.delivered))
            if self.permit:
                parts.append(b"\x03" + put(self.permit))
            if self.why_due:
                self.why_due = False
                parts.append(b"\x07")
        if self.ping_due:
            self.ping_due = False
            parts.append(b"\x04")
        if self.answer is not None:
            parts.append(put_because(self.answer))
            self.answer = None
        if self.bye_due:
            self.bye_due = False
            parts.append(b"\x09")

    def _put_obituaries(self, parts: list[bytes], sent: Sent) -> bool:
        """Tell who is gone, before anything that may depend on it; whether all could be told."""
        space = self._limit // 2
        told = []
        for name, incarnation in self.obituaries.items():
            part = put_obituary(name, incarnation)
            space -= len(part)
            if space < 0:
                break
            parts.append(part)
            told.append((name, incarnation))
        sent.obituaries = tuple(told)
        return len(told) == len(self.obituaries)

    def arrived(self, datagrams: list[Sent]) -> None:
        """These datagrams have reached the peer."""
        for sent in datagrams:
            for name, incarnation in sent.obituaries:
                if self.obituaries.get(name) == incarnation:
                    del self.obituaries[name]

    def lost(self, datagrams: list[Sent]) -> None:
        """These have not; what they said is to be said again."""
        for sent in datagrams:
            if sent.items:
                self.outbound.lost(sent.items)
            if sent.control:
                self.control_due = True
            elif not sent.items:
                self.ping_due = True
