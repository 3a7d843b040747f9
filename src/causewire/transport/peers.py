"""The other processes: their names, addresses and incarnations, and the sessions with them.

A process is known by its name. It has an address, which may change, and at any time at
most one session that is not over: the one with its living incarnation. The driver adds
peers, and processes that greet this one become known as well (with a cluster key, only
those that have the key can).

**The end of an incarnation.** When a process turns out to be gone (`end`), its session is
over. For the protocol, everything that was released to it counts as delivered, and
everything that came from it as permitted, so nobody waits for it any longer. However, its
last messages to other processes may still be in flight, and what this process sends from
now on may depend on them, through messages that were waiting for a permit. Therefore the
others must not accept them any more: the *obituary*, "all incarnations of that process
below this one are gone", precedes the next message, ack or permit to everybody, the next
incarnation included, and they pass it on in the same way. Whoever receives a message that
might depend on the last messages of a dead process has been told before to ignore those.

**Forgetting a process that may be alive.** The same rules make it safe to give up a process
that only seems to be dead (docs/failures.md has the argument). Whoever knows the obituary of
an incarnation accepts nothing more from it and sends nothing more to it (F1), and tells the
obituary before any message, ack or permit (F2). The forgotten process, if it is alive, is
told as soon as it contacts anybody, and may come back as a new incarnation.

`obituaries` says how long that is remembered, and `numbers` which numbers are believed.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from functools import partial

from .arrivals import Arrivals
from .carrier import Carrier
from .config import TransportConfig
from .events import (
    Address,
    Confirmed,
    Event,
    NameInUse,
    NodeCutOff,
    NodeRenumbered,
    NodeSuperseded,
    NodeUnread,
    PeerForgotten,
    PeerLeft,
    PeerMoved,
    PeerRefused,
    PeerRestarted,
    PeerUp,
    Room,
)
from .handling import Unhandled
from .heads import Greeting
from .identity import Identity, Peer, check_name
from .inbound import Inbound
from .ledger import Ledger
from .lists import LONGEST
from .names import PeerName
from .numbers import Numbers
from .obituaries import LEFT, Obituaries
from .path_size import path_to
from .session import Session
from .stats import DropReason, Stats
from .timers import Timers
from .varint import MalformedError

UNREAD = "its application has stopped reading"
"""Why a process announces its own obituary."""

__all__ = ["Peers"]


class Peers:
    """All other processes that are known, and the sessions with them."""

    def __init__(
        self,
        me: Identity,
        *,
        carrier: Carrier,
        ledger: Ledger,
        arrivals: Arrivals,
        config: TransportConfig,
        stats: Stats,
        emit: Callable[[Event], None],
        entropy: Callable[[int], bytes],
    ) -> None:
        self.me, self._entropy = me, entropy
        self._carrier, self._ledger = carrier, ledger
        self.arrivals, arrivals.me = arrivals, me
        self._config, self._stats, self._emit = config, stats, emit
        self.known: dict[str, Peer] = {}
        self.live: dict[str, Session] = {}
        """The sessions that are not over, by name."""
        self.by_alias = arrivals.aliases
        """All sessions by what the protocol calls their peer, those that are over included."""
        self.by_tag: dict[bytes, Session] = {}
        """The established sessions by the tag of the datagrams that arrive for them."""
        self.departed: dict[bytes, Session] = {}
        """Sessions of peers that left, whose goodbye is acknowledged again if it is repeated."""
        self.active: dict[Session, None] = {}
        """Sessions that may have something to send."""
        self.timers = Timers()
        self.obituaries = Obituaries(config)
        self.floors = self.obituaries.floors
        """All incarnations of a process below this one are gone."""
        self.closing = False
        """Whether this process leaves."""
        self.starved = False
        """Whether a message was turned down for lack of room."""
        self._established = False
        """Whether any session was ever established."""
        self._numbers = Numbers()

    # -- processes ------------------------------------------------------------

    def add(
        self, name: str, address: Address, now: float, trouble: str = "", wanted: bool = True
    ) -> None:
        """Make a process known, or its new address, and look for it.

        Args:
            name: The name of the process.
            address: Its address.
            now: The time.
            trouble: Why datagrams cannot be sent to that address, if that is known.
            wanted: Whether to look for it until it is given up by hand.

        Raises:
            ValueError: The name cannot travel, or there are too many peers.
        """
        if check_name(name) == self.me.name:
            return
        peer = self.known.get(name)
        if peer is None:
            peer = self.meet(name, address)
            if peer is None:
                raise ValueError(f"more than {self._config.peers} peers")
        elif peer.wanted and peer.address == address and not peer.gone:
            return
        peer.address = peer.home = address
        peer.credit = None
        peer.wanted, peer.gone_at = peer.wanted or wanted, now
        peer.trouble = trouble
        if peer.session is not None:
            peer.session.address, peer.session.trouble = address, trouble
        if trouble and not peer.refused:
            self._emit(PeerRefused(name, trouble))
        peer.refused = bool(trouble)
        self.greet_soon(peer, now)

    def meet(self, name: str, address: Address) -> Peer | None:
        """Return a new record of a process, or None if there are too many."""
        if len(self.known) >= self._config.peers:
            gone = [p for p in self.known.values() if p.session is None and not p.wanted]
            for peer in sorted(gone, key=lambda p: p.gone_at)[: len(gone) // 4 + 1]:
                self.reap(peer)
            if len(self.known) >= self._config.peers:
                return None
        peer = self.known[name] = Peer(name, address)
        return peer

    def greeted(self, peer: Peer, address: Address) -> None:
        """Note from where a process greets, if it is known from greetings alone.

        They may be copies that come from elsewhere, so for each no more than three greetings go
        there: an answer, and two more.
        """
        if peer.credit is not None:
            peer.address, peer.credit = address, 2
            if peer.session is not None:
                peer.session.address = address

    def greet_soon(self, peer: Peer, now: float) -> None:
        """Have a peer greeted now, and again until it answers, unless it has answered."""
        if peer.session is None or not peer.session.established:
            peer.greet_at = now
            peer.greet_pause = self._config.greet_again
            self.timers.arm(peer, now)

    def moved(self, session: Session, address: Address) -> None:
        """Follow a peer to another address."""
        session.address = address
        self.known[session.name].address = address
        self._emit(PeerMoved(session.name, address))

    # -- sessions -------------------------------------------------------------

    def session(self, name: str, alias: str = "") -> Session:
        """Return the session with a process that is known; make it if there is none."""
        session = self.live.get(name)
        if session is None:
            peer = self.known[name]
            alias = alias or self._carrier.meet(name, peer.lives)
            self.arrivals.renamed |= alias != name and not self._carrier.lists
            peer.lives += 1
            session = Session(
                name, alias, peer.address, self._carrier.sender_to(alias), self._config
            )
            if self._carrier.lists:
                session.inbound = Inbound(self._config.message, LONGEST)
            elif self._carrier.linked:  # which adds to every payload
                session.inbound = Inbound(self._config.message + LONGEST)
            peer.session = self.live[name] = self.by_alias[alias] = session
            session.trouble, session.awaited = peer.trouble, peer.gone
            self.active[session] = None  # so that the peer is looked for
        return session

    def establish(
        self, peer: Peer, born: int, greeting: Greeting, address: Address, now: float
    ) -> None:
        """Begin the session with an incarnation that has proved to be alive."""
        former = peer.session
        if former is not None and former.incarnation not in (0, born):
            peer.replaced = former.incarnation
            self.end(former, born, now, PeerRestarted)
        peer.refused = peer.gone = peer.left = False
        peer.trouble, peer.credit, peer.doubted = "", None, None
        self._established = True
        session = self.session(peer.name)
        if self._carrier.knows_older(peer.name, born):
            self.announce(peer.name, born, now)
        del self.by_alias[session.alias]
        session.alias = self._carrier.establish(session.alias, peer.name, born)
        self.by_alias[session.alias] = session
        self.arrivals.renamed |= session.alias != peer.name
        session.trouble, session.awaited = "", False
        peer.address = session.address = address
        exchange, peer.exchange = peer.exchange, None
        assert exchange is not None
        seals = exchange.seals(born)
        assert seals is not None
        session.exchange, session.agreement = exchange.message, exchange
        path = path_to(self._config, address[0], greeting.datagram)
        tag = session.establish(born, greeting, seals, path)
        self.by_tag[tag] = session
        session.heard_at = now
        session.owes, session.silent = None, False
        session.obituaries = {name: self.obituaries.word(name) for name in self.floors}
        if self.me.unread:
            self._tell(session, self.me.name, self.me.superseded)
        peer.greet_at = None
        peer.aliases = [alias for alias in peer.aliases if not self._discard(alias)]
        if self.me.reports and session.unhandled is None:
            session.unhandled = Unhandled()
        session.bye_due = self.closing
        self.active[session] = None
        self._emit(PeerUp(PeerName(peer.name, born)))

    def superseded(self, incarnation: int, rival: bool, informant: str, now: float) -> None:
        """Act on the word of a peer that it accepts only `incarnation` and later ones.

        With `rival`, another living process has the name of this one.
        """
        me = self.me
        if self.closing:
            return  # of a process that leaves, the others say the same, and it leaves anyway
        if not self._believes(incarnation, now):
            alone = not any(one.established and not one.silent for one in self.live.values())
            incarnation = self._numbers.claimed(incarnation, informant, alone, now)
        if rival:
            self._emit(NameInUse(me.name, informant))
        if incarnation <= me.incarnation or me.superseded:
            return
        if self._established:
            me.superseded = incarnation
            self._ledger.call_in_all(self.live.values())
            self._emit(NodeSuperseded(me.name, incarnation))
            return
        # Nobody has accepted anything of this process yet, so it can take a higher number.
        low = int.from_bytes(self._entropy(3), "big") & 0xFFFFF
        me.incarnation = ((incarnation >> 20) + 1) << 20 | low
        self._emit(NodeRenumbered(me.name, me.incarnation))
        for peer in self.known.values():
            peer.exchange = None  # it was made for the former number
            if peer.greet_at is not None:
                self.greet_soon(peer, now)

    def _believes(self, number: int, now: float) -> bool:
        met = (session.incarnation for session in self.live.values() if session.established)
        return self._numbers.believable(number, self.me.incarnation, met, now)

    def known_elsewhere(self) -> None:
        """Note that others know this incarnation, so that it cannot take another number."""
        self._established = True

    def cut_off(self, seconds: float, now: float) -> None:
        """Give everybody up and end this incarnation, as nobody has answered for long.

        The others are probably alive and hear each other. To announce that they are gone
        would make them come back as new incarnations; it is enough that this process does.
        """
        me = self.me
        me.superseded, me.cut_off = me.incarnation + 1, True
        for session in list(self.live.values()):
            self.end(session, 0, now, PeerForgotten)
        self._emit(NodeCutOff(me.name, seconds))

    def stand_down(self, seconds: float) -> None:
        """End this incarnation, and tell everybody, as its application does not read."""
        me = self.me
        me.superseded, me.unread = me.incarnation + 1, True
        self._ledger.call_in_all(self.live.values())
        for session in self.live.values():
            if session.established:
                self._tell(session, me.name, me.superseded)
        self._emit(NodeUnread(me.name, seconds))
        self._emit(NodeSuperseded(me.name, me.superseded))

    # -- the end --------------------------------------------------------------

    def end(self, session: Session, floor: int, now: float, event: Callable[..., Event]) -> None:
        """End a session, as all incarnations of its peer below `floor` are gone.

        Args:
            session: The session.
            floor: The lowest incarnation that may be alive; 0 if none was ever reached.
            now: The time.
            event: Makes what is reported, of the name and the numbers of messages that failed
                and, as `unhandled`, of those that are not known to be handled.
        """
        name = session.name
        peer = self.known[name]
        peer.session = None
        if self._carrier.lists and not session.incarnation:
            del self.by_alias[session.alias]  # the next incarnation will have it again
        else:
            peer.aliases.append(session.alias)
        peer.gone_at = now
        del self.live[name]
        if session.established:
            for tag in session.tags:
                self.by_tag.pop(tag, None)
        self.active.pop(session, None)
        self.arrivals.finish(session)
        self._ledger.call_in(session)
        failed = session.taken
        self._stats.failed += failed
        self._ledger.release(session, failed, session.taken_bytes)
        self._carrier.forget(session.alias)
        session.end()
        who, handled = PeerName(name, session.incarnation), session.handled
        arrived = session.confirmed if self.me.connection else session.accepted - failed
        unhandled = None if handled is None else handled.rest(arrived, session.confirmed)
        self._emit(event(who, failed, unhandled=unhandled))
        self._emit(Confirmed(session))
        self.room_again()
        if floor:
            self.announce(name, floor, now, peer.left)
        if peer.wanted:
            self.greet_soon(peer, now + self._config.greet_again)
        else:
            self.timers.arm(peer, now + self._config.linger)

    def room_again(self) -> None:
        """Report that room became free, if somebody waits for it."""
        if self.starved:
            self.starved = False
            self._emit(Room())

    def announce(self, name: str, floor: int, now: float, left: bool = False) -> None:
        """Tell everybody, before the next message, that a process is gone."""
        word = self.obituaries.put(name, floor, left)
        self._carrier.bury(name, floor)
        for other in self.live.values():
            if other.established:
                self._tell(other, name, word)
        self.obituaries.drop_old(now, self._unbury, self.known)

    def floor_of(self, name: str) -> int:
        """Return the lowest incarnation of a process that is accepted."""
        session = self.live.get(name)
        known = session.incarnation if session is not None else 0
        return max(known, self.floors.get(name, 0 if known else self.obituaries.lowest))

    def _tell(self, session: Session, name: str, word: int) -> None:
        session.obituaries[name] = word
        session.obituaries_due = True
        self.active[session] = None

    def obituary(self, name: str, word: int, informant: str, now: float) -> Session | None:
        """Act on an obituary: all incarnations of a process below a number are gone.

        `word` is that number, with the bit `LEFT` if the last of them left properly.
        Returns the session that ended, if one did: its peer may be alive after all, or may wait
        until everybody has heard its goodbye, and the caller tells it.

        Raises:
            MalformedError: The name or the number is impossible.
        """
        left, floor = word >= LEFT, word & (LEFT - 1)
        if not floor or not name.isprintable():
            raise MalformedError("an impossible incarnation or name")
        if name == self.me.name and floor > self.me.incarnation:
            if self.closing and informant in self.live:
                self.live[informant].bye_acked = True
            self.superseded(floor, False, informant, now)
            return None
        if floor <= self.floors.get(name, 0):
            return None
        session = self.live.get(name)
        known = session.incarnation if session is not None else 0
        if floor > known + 1 and not self._believes(floor, now):
            self._stats.drop(DropReason.IMPLAUSIBLE_OBITUARY)
            return None
        if session is None and left and name not in self.known:
            self.obituaries.stranger_left(name, now)
        if session is None or not 0 < known < floor:
            self.announce(name, floor, now, left)
            return None
        if floor == known + 1 and left:
            self.left(session, now)
        elif floor == known + 1:
            self.known[name].gone = True
            reason = UNREAD if informant == name else ""
            self.end(session, floor, now, partial(PeerForgotten, reason=reason))
        else:
            self.end(session, floor, now, PeerRestarted)
        return session

    def room_for(self, obituaries: Collection[tuple[str, int]], now: float) -> bool:
        """Return whether there is room for obituaries, so that what follows may be accepted."""
        if not (room := self.obituaries.room_for(obituaries, self.live)):
            self.obituaries.drop_old(now, self._unbury, self.known)
        return room

    def ends(self, obituaries: Iterable[tuple[str, int]]) -> bool:
        """Return whether any of these obituaries, as they are sent, ends a session here."""
        for name, word in obituaries:
            session = self.live.get(name)
            if session is not None and 0 < session.incarnation < word & (LEFT - 1):
                return True
        return False

    def left(self, session: Session, now: float) -> None:
        """End the session of a peer that has closed down."""
        peer = self.known[session.name]
        peer.gone = peer.left = True
        tag = session.tag
        self.end(session, session.incarnation + 1, now, PeerLeft)
        self.departed[tag] = session
        if len(self.departed) > self._config.peers:
            del self.departed[next(iter(self.departed))]

    def forget(self, name: str, now: float) -> Session | None:
        """Give a process up: treat its living incarnation as dead.

        Returns its session if it was reached, so that it can be informed.
        """
        peer = self.known[name]
        session = peer.session
        peer.gone = True
        if session is None:
            return None
        floor = session.incarnation + 1 if session.incarnation else 0
        self.end(session, floor, now, PeerForgotten)
        return session if floor else None

    def close(self) -> None:
        """Say goodbye to everybody, with the next datagrams, until it is acknowledged."""
        self.closing = True
        for session in self.live.values():
            if session.established:
                session.control_due = session.bye_due = True
                self.active[session] = None

    def abort(self) -> None:
        """End all sessions without telling anybody; receipts that are not settled fail."""
        for session in self.live.values():
            self._ledger.call_in(session)
            session.end()
            self._emit(Confirmed(session))
        for peer in self.known.values():
            peer.session = peer.greet_at = None
        self.live.clear()
        self.active.clear()
        self.by_tag.clear()

    def reap(self, peer: Peer) -> None:
        """Drop the record of a peer that is gone, as far as nothing refers to it."""
        peer.aliases = [alias for alias in peer.aliases if not self._discard(alias)]
        if peer.session is not None or peer.wanted or peer.aliases:
            return
        if not peer.left or self._unbury(peer.name):
            del self.known[peer.name]

    def _unbury(self, name: str) -> bool:
        """Drop the obituary of a process, unless a peer or something here needs it."""
        untold = any(name in session.obituaries for session in self.live.values())
        if name in self.live or untold or not self._carrier.unbury(name):
            return False
        self.obituaries.drop(name)
        return True

    def _discard(self, alias: str) -> bool:
        if not self._carrier.discard(alias):
            return False
        session = self.by_alias.pop(alias)
        self.departed.pop(session.tag, None)
        return True
