"""The judge: knows for every message what had happened before it was sent.

It complains if a process gets

    a message after another that depends on it      a causal violation
    a message twice                                 a duplicate
    not at all what it should have got              a loss

and if a receipt is positive and the message was never delivered, or failed although both
processes lived to the end and neither gave the other up;

where all that counts is between processes that stay up, as nobody can promise
anything about the others; and if anything is left in a buffer at the end.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

from ...transport import PeerForgotten, Session
from .host import Host

__all__ = ["Judge", "JudgedMessage", "Verdict"]

UNEXPLAINED = "failed, and nobody gave up"


@dataclass(slots=True)
class Verdict:
    """How a run went."""

    seed: int
    sent: int = 0
    delivered: int = 0
    datagrams: int = 0
    lost: int = 0
    """Datagrams that the network lost."""
    dropped: int = 0
    """Datagrams that transports dropped, for whatever reason."""
    concurrent: int = 0
    """Deliveries of messages that did not depend on the last one delivered."""
    seconds: float = 0.0
    complaints: list[str] = field(default_factory=list)
    log: list[tuple[object, ...]] = field(default_factory=list)
    """Sends and deliveries in their order, for comparing two runs."""

    @property
    def fine(self) -> bool:
        """Whether there are no complaints."""
        return not self.complaints


class JudgedMessage:
    """A message, as the judge knows it."""

    __slots__ = ("arrived", "bit", "life", "mid", "number", "past", "sessions")

    def __init__(self, number: int, life: int, past: int) -> None:
        self.number = number
        self.bit = 1 << number
        self.life = life
        """The life of the process that sent it."""
        self.past = past
        """All that happened before it, as bits."""
        self.mid = 0
        self.sessions: tuple[Session, ...] = ()
        self.arrived: list[int] = []
        """The lives in which it was delivered."""


class Judge:
    """Sees every send and every delivery, and writes the verdict."""

    def __init__(self, seed: int, links: bool) -> None:
        self.links = links
        """Whether all processes can reach each other in the end."""
        self.verdict = Verdict(seed)
        self._messages: list[JudgedMessage] = []
        self.incarnations: dict[tuple[str, int], Host] = {}
        """Every process there ever was, by its name and incarnation."""

    def announce(self, host: Host) -> JudgedMessage:
        """A host is about to send: what the message is to be called."""
        return JudgedMessage(len(self._messages), host.life, host.knows)

    def sent(self, message: JudgedMessage, host: Host, to: Sequence[str], now: float) -> None:
        """It has sent it."""
        self._messages.append(message)
        host.knows |= message.bit
        self.verdict.sent += 1
        self.verdict.log.append(("send", now, host.name, message.number, tuple(to)))

    def delivered(self, host: Host, source: str, number: int, now: float) -> None:
        """A host got a message."""
        message, verdict = self._messages[number], self.verdict
        verdict.delivered += 1
        verdict.log.append(("deliver", now, host.name, number))
        if message.bit & host.delivered:
            verdict.complaints.append(f"{host.name} gets message {number} twice")
        if message.bit & host.overtaken:
            verdict.complaints.append(
                f"{host.name} gets message {number} of {source} after one that depends on it"
            )
        if host.delivered & ~message.past:
            verdict.concurrent += 1
        message.arrived.append(host.life)
        host.delivered |= message.bit
        host.overtaken |= message.past
        host.knows |= message.bit | message.past

    def complain(self, what: str) -> None:
        """Add a complaint, once."""
        if what not in self.verdict.complaints:
            self.verdict.complaints.append(what)

    def settle(self, hosts: Collection[Host], now: float) -> Verdict:
        """The end: who should have got what, and is anything left in a buffer?"""
        verdict = self.verdict
        verdict.seconds = now
        hosts = [host for host in hosts if not host.gone]
        current = {host.life: host for host in hosts}
        for message in self._messages:
            self._account(message, current, verdict.complaints)
        for host in hosts:
            transport = host.transport
            verdict.dropped += sum(transport.stats.dropped.values())
            status = transport.status()
            if status.accepted or status.accepted_bytes:
                verdict.complaints.append(f"{host.name} still keeps messages")
            if status.waiting or status.waiting_bytes:
                verdict.complaints.append(f"{host.name} still has messages that arrived")
        if self.links:
            verdict.complaints += apart(hosts)
        return verdict

    def content(self, hosts: Collection[Host]) -> bool:
        """Return whether all failures are explained, and the living have reached each other."""
        return self._explained(hosts) and not (self.links and apart(hosts))

    def _explained(self, hosts: Collection[Host]) -> bool:
        """Return whether of every failure between the living one of the two knows the reason.

        A process whose name was taken, or whose number was too low, may have to wait for its
        next keepalive before it hears of it.
        """
        current = {host.life: host for host in hosts if not host.gone}
        complaints: list[str] = []
        for message in self._messages:
            self._account(message, current, complaints)
        return not any(UNEXPLAINED in complaint for complaint in complaints)

    def _account(
        self, message: JudgedMessage, current: dict[int, Host], complaints: list[str]
    ) -> None:
        """Has everybody got it who is still who it was, and is every receipt true?"""
        sender = current.get(message.life)
        for session in message.sessions:
            host = self.incarnations.get((session.name, session.incarnation))
            if host is None:
                continue  # it was never reached
            arrived = host.life in message.arrived or message.number in _queued(host)
            same = host.transport.me.incarnation == session.incarnation  # it may be renumbered
            receiver = current.get(host.life) if same else None
            if message.mid <= session.confirmed and not arrived:
                complaints.append(f"a receipt for message {message.number}, but no delivery")
            elif sender is None:
                continue
            elif receiver is None:
                if not session.over and message.mid > session.confirmed:
                    complaints.append(f"the receipt for message {message.number} stays open")
            elif not session.over and not arrived:
                complaints.append(f"{session.name} never gets message {message.number}")
            elif not session.over and message.mid > session.confirmed:
                complaints.append(f"no receipt for message {message.number}")
            elif not arrived and not _parted(sender, receiver):
                complaints.append(f"message {message.number} to {session.name} {UNEXPLAINED}")


def _queued(host: Host) -> set[int]:
    """Return the messages that a process has delivered and its application has not taken."""
    journal = host.transport.journal
    messages = host.transport.messages if journal is None else journal.inbox.unhandled
    return {int(message.payload.partition(b":")[0]) for message in messages}


def _parted(one: Host, other: Host) -> bool:
    """Return whether one of two processes knows that it gave the other up, or was."""
    for host, peer in ((one, other), (other, one)):
        gone = [event for event in host.events if isinstance(event, PeerForgotten)]
        if host.transport.me.superseded or any(event.name == peer.name for event in gone):
            return True
    return False


def apart(hosts: Collection[Host]) -> list[str]:
    """Return which of the living look for each other in vain."""
    living = {host.name for host in hosts if not host.gone}
    return [
        f"{host.name} does not reach {peer.name}"
        for host in hosts
        if not host.gone
        for peer in host.transport.status().peers.values()
        if peer.name in living and peer.wanted and not peer.up
    ]
