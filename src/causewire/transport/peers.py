"""Who is who: names, addresses, incarnations; greetings, and the end of sessions.

A process is known by its name. It has an address, which may change, and at any time
at most one session that is not over: with the incarnation that lives now. The
driver adds peers; others that greet are let in as well (with a cluster key, only
those who have it can).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from ipaddress import ip_address

from .carrier import Carrier
from .config import Config
from .events import (
    Address,
    Event,
    PeerLeft,
    PeerMoved,
    PeerRefused,
    PeerRestarted,
    PeerSilent,
    PeerUp,
    Superseded,
)
from .heads import GREETING, Greeting, greeting_head, read_greeting_head
from .outbound import messages_in
from .recovery import Sent
from .seal import Sealer
from .session import Session
from .stats import Stats
from .timers import Timers
from .varint import MalformedError

__all__ = ["Peer", "Peers", "check_name"]


def check_name(name: object) -> str:
    """A process name that can travel: text of 1 to 255 bytes, without control characters."""
    if not isinstance(name, str) or not name.isprintable() or not 0 < len(name.encode()) < 256:
        raise ValueError(f"a process name must be printable text, up to 255 bytes, not {name!r}")
    return name


class Peer:
    """Another process, whichever incarnation of it."""

    __slots__ = (
        "address",
        "armed",
        "greet_at",
        "greet_pause",
        "greetings",
        "lives",
        "name",
        "refused",
        "session",
        "wanted",
    )

    def __init__(self, name: str, address: Address) -> None:
        self.name = name
        self.address = address
        self.wanted = False
        """Whether to look for it even when there is nothing to say to it."""
        self.session: Session | None = None
        self.lives = 0
        """Sessions made, each with another incarnation."""
        self.refused = False
        self.greetings = 0
        """Greetings sent, which numbers them."""
        self.greet_at: float | None = None
        self.greet_pause = 0.0
        self.armed: float | None = None
        """When somebody will look after it next."""


class Peers(ABC):
    """The other processes, and the sessions with them."""

    carrier: Carrier
    life: int

    def __init__(
        self,
        name: str,
        incarnation: int,
        protocol: str,
        sealer: Sealer,
        config: Config | None,
    ) -> None:
        if not 0 < incarnation < 1 << 63:
            raise ValueError("an incarnation must be a number of up to 63 bits, from 1")
        self.name = check_name(name)
        self.incarnation = incarnation
        self.protocol = protocol
        self.config = config or Config()
        self.stats = Stats()
        self.events: list[Event] = []
        """For the driver, who clears it."""
        self.peers: dict[str, Peer] = {}
        self.live: dict[str, Session] = {}
        """The sessions that are not over, by name."""
        self.by_alias: dict[str, Session] = {}
        """All sessions, those that are over included, by what the protocol calls them."""
        self.by_tag: dict[bytes, Session] = {}
        """The established ones by the tag of their datagrams."""
        self.active: dict[Session, None] = {}
        """Sessions that may have something to send."""
        self.greetings: list[tuple[bytes, Address]] = []
        """Greetings to be sent."""
        self.timers = Timers()
        self._sealer = sealer
        self._floors: dict[str, int] = {}
        """Obituaries: all incarnations of that process below this one are gone."""
        self._told_superseded = False
        self._renamed = False
        """Whether the protocol has an incarnation by another name than its own."""

    # -- what the driver calls ------------------------------------------------

    def add_peer(self, name: str, address: Address, now: float) -> None:
        """Get to know a process, or where it is now."""
        if check_name(name) == self.name:
            return
        peer = self.peers.get(name)
        if peer is None:
            if len(self.peers) >= self.config.peers:
                raise ValueError(f"more than {self.config.peers} peers")
            peer = self.peers[name] = Peer(name, address)
        elif peer.wanted and peer.address == address:
            return
        peer.address = address
        if peer.session is not None:
            peer.session.address = address
        peer.wanted = True
        self._greet_soon(peer, now)

    def unreached(self) -> list[str]:
        """Peers that have never answered, or do not any more: where may they be?"""
        return [
            name
            for name, peer in self.peers.items()
            if peer.session is None or not peer.session.established or peer.session.silent
        ]

    def close(self) -> None:
        """Say goodbye to everybody, with the next datagrams."""
        for session in self.live.values():
            if session.established:
                session.control_due = session.bye_due = True
                self.active[session] = None

    def session(self, name: str) -> Session:
        """The session with a process that is known; a new one if there is none."""
        session = self.live.get(name)
        if session is None:
            peer = self.peers[name]
            alias = name
            if peer.lives and self.carrier.forgets:
                alias = f"{name}\0{peer.lives + 1}"
                self._renamed = True
            peer.lives += 1
            session = Session(name, alias, peer.address, self.carrier.send, self.config)
            peer.session = self.live[name] = self.by_alias[alias] = session
        return session

    # -- greetings ------------------------------------------------------------

    def _greet_soon(self, peer: Peer, now: float) -> None:
        if peer.session is None or not peer.session.established:
            peer.greet_at = now
            peer.greet_pause = self.config.greet_again
            self.arm(peer)

    def _greet(self, peer: Peer, answers: int, settled: bool, address: Address) -> None:
        head = greeting_head(self.name, self.incarnation, peer.name, peer.greetings)
        config = self.config
        contents = Greeting(
            answers,
            settled,
            self.protocol,
            self.life,
            config.peer_messages,
            config.peer_bytes,
            max(config.datagram, config.local_datagram),
        ).encode()
        seal = self._sealer.greeting(self.name, self.incarnation, peer.name)
        self.greetings.append((seal.close(peer.greetings, head, contents), address))
        peer.greetings += 1

    def _greeting(self, data: bytes, address: Address, now: float) -> None:
        """A greeting came, or so it seems."""
        if data[0] != GREETING:
            self.stats.drop("of another version")
            return
        source, born, target, number, at = read_greeting_head(data)
        if target != self.name or source == self.name or not source.isprintable():
            self.stats.drop("not for us")
            return
        seal = self._sealer.greeting(source, born, target)
        contents = seal.open(number, data[:at], data[at:])
        if contents is None:
            self.stats.drop("does not verify")
            return
        greeting = Greeting.decode(contents)
        if not 0 < born < 1 << 63:
            raise MalformedError("no incarnation")
        peer = self.peers.get(source)
        if peer is None:
            if len(self.peers) >= self.config.peers:
                self.stats.drop("too many peers")
                return
            peer = self.peers[source] = Peer(source, address)
        if greeting.protocol != self.protocol:
            self._refuse(peer, f"it runs {greeting.protocol}, this is {self.protocol}")
            return
        if peer.lives and peer.session is None and not self.carrier.forgets:
            self._refuse(peer, f"{self.protocol} cannot go on with a peer that restarted")
            return
        known = peer.session.incarnation if peer.session is not None else 0
        floor = max(self._floors.get(source, 0), known)
        if born < floor:
            self.stats.drop("of a former incarnation")
            self._greet(peer, floor, True, address)
            return
        if greeting.answers > self.incarnation:
            self._superseded(greeting.answers)
        settled = peer.session is not None and peer.session.established and born == known
        if greeting.answers == self.incarnation and not settled:
            self._establish(peer, born, greeting, address, now)
            settled = peer.session is not None
        if not greeting.settled:
            self._greet(peer, born, settled, address)

    def _refuse(self, peer: Peer, reason: str) -> None:
        self.stats.drop("of a refused peer")
        if not peer.refused:
            peer.refused = True
            self.events.append(PeerRefused(peer.name, reason))

    def _establish(
        self, peer: Peer, born: int, greeting: Greeting, address: Address, now: float
    ) -> None:
        """An incarnation of a peer has proved to be alive."""
        former = peer.session
        if former is not None and former.established:
            failed = self._bury(former, born, now)
            self.events.append(PeerRestarted(peer.name, failed))
            if not self.carrier.forgets:
                return
        peer.refused = False
        session = self.session(peer.name)
        peer.address = session.address = address
        limit = self.config.local_datagram if _local(address) else self.config.datagram
        tag = session.establish(self.name, self.incarnation, born, greeting, self._sealer, limit)
        self.by_tag[tag] = session
        session.heard_at = now
        session.obituaries = {n: k for n, k in self._floors.items() if n != peer.name}
        peer.greet_at = None
        self.active[session] = None
        self.events.append(PeerUp(peer.name))

    def _superseded(self, incarnation: int) -> None:
        if not self._told_superseded:
            self._told_superseded = True
            self.events.append(Superseded(self.name, incarnation))

    # -- the end --------------------------------------------------------------

    def _bury(self, session: Session, floor: int, now: float) -> int:
        """All incarnations below `floor` are gone; returns how many messages have failed."""
        name = session.name
        peer = self.peers[name]
        peer.session = None
        del self.live[name]
        if session.incarnation:
            self.by_tag = {tag: s for tag, s in self.by_tag.items() if s is not session}
        self.active.pop(session, None)
        failed = session.has_messages
        self.stats.failed += failed
        self._forget(session)
        session.end()
        self._announce(name, floor)
        if peer.wanted:
            self._greet_soon(peer, now)
        return failed

    def _announce(self, name: str, floor: int) -> None:
        """Everybody is to know, before the next message, that a process is gone."""
        self._floors[name] = floor
        for other in self.live.values():
            if other.established and other.name != name:
                other.obituaries[name] = floor
                other.control_due = True
                self.active[other] = None

    def _obituary(self, name: str, floor: int, now: float) -> None:
        """Somebody says that all incarnations of a process below a number are gone."""
        if not 0 < floor < 1 << 63 or not name.isprintable():
            raise MalformedError("no incarnation")
        if name == self.name:
            if floor > self.incarnation:
                self._superseded(floor)
            return
        if floor <= self._floors.get(name, 0):
            return
        if name not in self._floors and len(self._floors) >= self.config.peers:
            self.stats.drop("too many peers")
            return
        session = self.live.get(name)
        if session is not None and 0 < session.incarnation < floor:
            failed = self._bury(session, floor, now)
            self.events.append(PeerRestarted(name, failed))
        else:
            self._announce(name, floor)

    def _left(self, session: Session, now: float) -> None:
        """A peer has closed down."""
        failed = self._bury(session, session.incarnation + 1, now)
        self.events.append(PeerLeft(session.name, failed))

    def _pretend(self, session: Session) -> None:
        """Let the protocol believe that what was released to a dead peer has arrived."""
        outbound = session.outbound
        if self.carrier.forgets and outbound.last > outbound.acked:
            outbound.acked = outbound.last
            self.carrier.acked(session.alias, outbound.last)

    @abstractmethod
    def _forget(self, session: Session) -> None:
        """A session is over: neither it nor the protocol waits for anything."""

    # -- time -----------------------------------------------------------------

    def arm(self, peer: Peer) -> None:
        """See to it that somebody looks after this peer in time."""
        when = self._deadline(peer)
        if when is not None:
            self.timers.arm(peer, when)

    def _deadline(self, peer: Peer) -> float | None:
        """When this peer wants to be looked after."""
        session, config = peer.session, self.config
        if session is None or not session.established:
            return peer.greet_at
        times = [max(session.heard_at, session.pinged_at) + config.keepalive]
        due = session.recovery.deadline
        if due is not None:
            times.append(due)
        owes = session.owes
        if owes is not None and not session.silent:
            times.append(owes + config.silent_after)
        return min(times)

    def _look_after(self, peer: Peer, now: float) -> None:
        """It may be time for something."""
        session, config = peer.session, self.config
        if session is None or not session.established:
            if peer.greet_at is not None and peer.greet_at <= now and not peer.refused:
                self._greet(peer, 0, False, peer.address)
                peer.greet_at = now + peer.greet_pause
                peer.greet_pause = min(2 * peer.greet_pause, config.greet_at_most)
            return
        recovery = session.recovery
        expiries = recovery.round_trip.backoff
        lost = recovery.expired(now)
        if lost:
            self._repair(session, lost)
        if recovery.round_trip.backoff > expiries:
            self.stats.timeouts += 1
            if expiries or session.received.largest < 0:
                # It may have missed our answer, or have started anew.
                self._greet(peer, session.incarnation, False, session.address)
        owes = session.owes
        if owes is not None and not session.silent and now >= owes + config.silent_after:
            session.silent = True
            self.events.append(PeerSilent(peer.name, now - owes))
        if now >= max(session.heard_at, session.pinged_at) + config.keepalive:
            session.pinged_at = now
            if not recovery.sent:
                session.ping_due = True
                self.active[session] = None

    def _repair(self, session: Session, lost: list[Sent]) -> None:
        """Datagrams were lost: what they said leaves again."""
        self.stats.lost += len(lost)
        self.stats.resent += sum(messages_in(item) for sent in lost for item in sent.items)
        session.lost(lost)
        self.active[session] = None

    def _moved(self, session: Session, address: Address) -> None:
        session.address = address
        self.peers[session.name].address = address
        self.events.append(PeerMoved(session.name, address))


def _local(address: Address) -> bool:
    """Whether an address is on this machine for sure."""
    try:
        return ip_address(address[0]).is_loopback
    except ValueError:
        return False
