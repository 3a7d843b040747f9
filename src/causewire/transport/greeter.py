"""Greetings, by which processes find each other and establish sessions (see `heads`)."""

from __future__ import annotations

from collections.abc import Callable

from .allowance import Allowance
from .carrier import Carrier
from .config import TransportConfig
from .events import Address, Event, PeerRefused
from .heads import GREETING, Greeting, greeting_head, read_greeting_head
from .identity import Identity, Peer
from .noise import HandshakeError
from .paths import Paths
from .peers import Peers
from .resumption import agree_again, resume
from .seal import Exchange, Sealer
from .stats import DropReason, Stats
from .suspects import Suspects
from .varint import MalformedError

__all__ = ["Greeter"]

CALLERS = 64
"""How many processes that call this one by another name are reported."""


class Greeter:
    """Writes greetings, and acts on those that arrive."""

    def __init__(
        self,
        me: Identity,
        peers: Peers,
        paths: Paths,
        *,
        carrier: Carrier,
        sealer: Sealer,
        config: TransportConfig,
        stats: Stats,
        emit: Callable[[Event], None],
    ) -> None:
        self._me = me
        self._peers = peers
        self._paths = paths
        self._carrier = carrier
        self._sealer = sealer
        self._config = config
        self._stats = stats
        self._emit = emit
        self._allowance = Allowance(config.greetings, config.greetings_per_address)
        self._suspects = Suspects(emit)
        self._callers: set[str] = set()
        """Processes that were reported since they call this one by another name."""
        self.out: list[tuple[bytes, Address]] = []
        """Greetings to be sent."""

    def greet(
        self, peer: Peer, answers: int, settled: bool, address: Address, rival: bool = False
    ) -> None:
        """Write a greeting to a peer.

        Args:
            peer: The peer.
            answers: The incarnation of the peer that is known, or 0.
            settled: Whether the session is established, so that no answer is needed.
            address: Where to send the greeting.
            rival: Whether another living process has the name of the peer.
        """
        me, config = self._me, self._config
        session = peer.session
        try:
            if session is not None and session.established and answers == session.incarnation:
                exchange = session.exchange
            else:
                exchange = self._exchange(peer).message
        except HandshakeError as error:
            self._refused(peer, str(error))
            return
        head = greeting_head(me.name, me.incarnation, peer.name)
        contents = Greeting(
            answers,
            settled,
            me.protocol,
            me.life,
            config.peer_messages,
            config.peer_bytes,
            config.accepted_datagram,
            self._paths.token(address),
            peer.token,
            exchange,
            rival,
            me.connection,
            me.reports,
        ).encode()
        self.out.append((self._sealer.close_greeting(head, contents), address))

    def _exchange(self, peer: Peer) -> Exchange:
        """Return the agreement on the keys of the next session with a peer."""
        if peer.exchange is None:
            me = self._me
            peer.exchange = self._sealer.exchange(me.name, me.incarnation, peer.name, me.connection)
        return peer.exchange

    def received(self, data: bytes, address: Address, now: float) -> None:
        """Act on a datagram that claims to be a greeting.

        Raises:
            MalformedError: It is not one.
        """
        me, stats, peers = self._me, self._stats, self._peers
        if data[0] != GREETING:
            stats.drop(DropReason.OTHER_VERSION)
            return
        if not self._sealer.genuine(data):
            stats.drop(DropReason.UNVERIFIED)
            self._suspects.note(address, now)
            return
        if not self._allowance.take(address, now):
            stats.drop(DropReason.TOO_MANY_GREETINGS)
            return
        source, born, target, at = read_greeting_head(data)
        if source == me.name or not (source.isprintable() and target.isprintable()):
            stats.drop(DropReason.NOT_FOR_US)
            return
        opened = self._sealer.open_greeting(data, at)
        if opened is None:
            stats.drop(DropReason.UNVERIFIED)
            self._suspects.note(address, now)
            return
        contents, secret = opened
        greeting = Greeting.decode(contents)
        if not 0 < born < 1 << 63:
            raise MalformedError("an impossible incarnation")
        if target != me.name:
            self._misnamed(source, target, greeting, address)
            return
        refuses = greeting.settled and not greeting.answers
        if refuses and self._found_instead(source, address):
            return
        peer = peers.known.get(source) or peers.meet(source, address)
        if peer is None:
            stats.drop(DropReason.TOO_MANY_PEERS)
            return
        peers.greeted(peer, address)
        if born < peers.floor_of(source):
            self._answer(peer, born, greeting, secret, address, now)
        elif reason := self._incompatible(peer, greeting):
            self._refuse(peer, reason, greeting, address)
        elif refuses:
            self._refused(peer, "it refuses this process; its log says why")
        else:
            self._answer(peer, born, greeting, secret, address, now)

    def _answer(
        self,
        peer: Peer,
        born: int,
        greeting: Greeting,
        secret: bytes,
        address: Address,
        now: float,
    ) -> None:
        """Act on a greeting of a compatible peer, and answer it unless it is settled."""
        me, peers = self._me, self._peers
        known = peer.session.incarnation if peer.session is not None else 0
        floor = peers.floor_of(peer.name)
        if greeting.answers > me.incarnation or greeting.rival:
            # Even a peer that is itself given up here may say so: then both come back.
            was = me.superseded
            peers.superseded(greeting.answers, greeting.rival, peer.name, now)
            if me.superseded and not was:
                self.greet(peer, 0, False, address)  # so that a rival and this process learn of it
        if born < floor:
            self._stats.drop(DropReason.STALE_INCARNATION)
            if not greeting.settled:
                self._tell_stale(peer, born, floor, address)
            return
        peer.token = greeting.token
        proved = self._paths.proved(address, greeting.repeats)
        asks = not greeting.settled
        settled = peer.session is not None and peer.session.established and born == known
        if settled and peer.session is not None:
            if greeting.connection < peer.session.connection:
                self._stats.drop(DropReason.STALE_INCARNATION)
                return
            if greeting.connection == peer.session.connection:
                # A recording, or what is for a former incarnation of this process, has other keys.
                if greeting.answers == me.incarnation and proved:
                    agree_again(peers, peer.session, greeting.exchange, secret)
                if address != peer.session.address:  # this may be a copy, or else the other was
                    self._paths.seen(peer.session, address, now)
            elif not proved:
                settled, asks = False, True
            else:
                settled = resume(peers, peer.session, greeting, secret, address, now, self._emit)
                if settled:
                    self._carrier.resumed(peer.session.alias)
        else:
            try:
                exchange = self._exchange(peer)
            except HandshakeError as error:
                self._refuse(peer, str(error), greeting, address)
                return
            exchange.received(greeting.exchange, secret, born)
            if not proved:
                asks = asks or greeting.answers == me.incarnation
            elif greeting.answers == me.incarnation and exchange.seals(born) is not None:
                former = peer.session
                peers.establish(peer, born, greeting, address, now)
                settled = True
                if former is not None and former.over:
                    self.greet(peer, born, True, former.address)  # it may be alive after all
        if asks:
            self.greet(peer, born, settled, address)

    def _tell_stale(self, peer: Peer, born: int, floor: int, address: Address) -> None:
        """Tell an incarnation that it is not accepted any more, and its rival of it.

        If this one was not met before, the one with the higher number may have ended, and the
        clock may have been set back. Then it is a rival if it still answers.
        """
        session = peer.session
        rival = session is not None and session.established and not session.silent
        if rival and session is not None and born != peer.replaced:
            if peer.doubted is None:
                peer.doubted = session.received.largest
                session.ping_due = True
                self._peers.active[session] = None
            rival = session.received.largest > peer.doubted
        self.greet(peer, floor, True, address, rival)
        if rival and session is not None and session.address != address:
            self.greet(peer, session.incarnation, True, session.address, rival)

    def _incompatible(self, peer: Peer, greeting: Greeting) -> str:
        """Return why this process cannot work with a peer, or nothing."""
        mine = self._me.protocol
        if greeting.protocol != mine:
            return f"it runs {greeting.protocol}, this is {mine}"
        return ""

    def _misnamed(self, source: str, target: str, greeting: Greeting, address: Address) -> None:
        """Refuse a process that calls this one by another name, without a record of it."""
        self._stats.drop(DropReason.NOT_FOR_US)
        if greeting.settled:
            return
        if source not in self._callers and len(self._callers) < CALLERS:
            self._callers.add(source)
            name = self._me.name
            self._emit(PeerRefused(source, f"it calls this process {target!r}; this is {name!r}"))
        caller = Peer(source, address)
        caller.token, caller.refused = greeting.token, True
        self.greet(caller, 0, True, address)

    def _found_instead(self, source: str, address: Address) -> bool:
        """Act on a refusal by a process that may be at the address of others, never reached.

        Returns whether it refuses them only, and not this process, by its own name.
        """
        known = self._peers.known
        others = [
            peer
            for peer in known.values()
            if peer.name != source and address in (peer.address, peer.home) and _sought(peer)
        ]
        for peer in others:
            self._refused(peer, f"{source!r} is at its address")
        refuser = known.get(source)
        if refuser is None or (others and not _sought(refuser)):
            return True
        session = refuser.session
        return session is not None and session.established and not session.silent

    def _refuse(self, peer: Peer, reason: str, greeting: Greeting, address: Address) -> None:
        """Refuse a peer, and let it know who refuses it."""
        self._stats.drop(DropReason.REFUSED_PEER)
        self._refused(peer, reason)
        if not greeting.settled:
            self.greet(peer, 0, True, address)

    def _refused(self, peer: Peer, reason: str) -> None:
        peer.trouble = reason
        if peer.session is not None:
            peer.session.trouble = reason
        if not peer.refused:
            peer.refused = True
            self._emit(PeerRefused(peer.name, reason))


def _sought(peer: Peer) -> bool:
    """Return whether this process looks for a peer that it has not reached."""
    return peer.wanted and not (peer.session is not None and peer.session.established)
