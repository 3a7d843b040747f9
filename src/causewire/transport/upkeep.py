"""What has to be done for a peer when time has passed: greet, repair, ping, notice silence."""

from __future__ import annotations

from collections.abc import Callable

from .config import TransportConfig
from .events import Address, Event, PeerSilent
from .greeter import Greeter
from .outbound import messages_in
from .peers import Peer, Peers
from .recovery import Sent
from .session import Session
from .stats import Stats

__all__ = ["Upkeep"]


class Upkeep:
    """Serves peers whose timer has fired."""

    def __init__(
        self,
        peers: Peers,
        greeter: Greeter,
        config: TransportConfig,
        stats: Stats,
        emit: Callable[[Event], None],
    ) -> None:
        self._peers = peers
        self._greeter = greeter
        self._config = config
        self._stats = stats
        self._emit = emit

    def arm(self, peer: Peer) -> None:
        """Have a peer served in time."""
        when = self._deadline(peer)
        if when is not None:
            self._peers.timers.arm(peer, when)

    def run(self, now: float) -> None:
        """Serve all peers whose time has come."""
        timers = self._peers.timers
        for peer in timers.due(now):
            self._serve(peer, now)
            when = self._deadline(peer)
            if when is not None:
                timers.again(peer, when, now)

    def _deadline(self, peer: Peer) -> float | None:
        """Return when a peer has to be served next."""
        session, config = peer.session, self._config
        if session is None or not session.established:
            return peer.greet_at
        when = max(session.heard_at, session.pinged_at) + config.keepalive
        due = session.recovery.deadline
        if due is not None and due < when:
            when = due
        owes = session.owes
        if owes is not None and not session.silent:
            when = min(when, owes + config.silent_after)
        return when

    def _serve(self, peer: Peer, now: float) -> None:
        session, config = peer.session, self._config
        if session is None or not session.established:
            if peer.greet_at is not None and peer.greet_at <= now:
                self._greet(peer, 0, peer.address)
                peer.greet_at = now + peer.greet_pause
                longest = config.keepalive if peer.refused else config.greet_at_most
                peer.greet_pause = min(2 * peer.greet_pause, longest)
            return
        recovery = session.recovery
        expiries = recovery.round_trip.backoff
        lost = recovery.expired(now)
        if lost:
            self.repair(session, lost)
        if recovery.round_trip.backoff > expiries:
            self._stats.timeouts += 1
            if expiries or session.received.largest < 0:
                # The peer may have missed our answer, or may have been restarted.
                self._greet(peer, session.incarnation, session.address)
        owes = session.owes
        if owes is not None and not session.silent and now >= owes + config.silent_after:
            session.silent = True
            self._emit(PeerSilent(peer.name, now - owes))
        if now >= max(session.heard_at, session.pinged_at) + config.keepalive:
            session.pinged_at = now
            if not recovery.sent:
                session.ping_due = True
                self._peers.active[session] = None

    def _greet(self, peer: Peer, answers: int, address: Address) -> None:
        """Greet a peer where it was last, and where the driver said that it is."""
        self._greeter.greet(peer, answers, False, address)
        if peer.home is not None and peer.home != address:
            self._greeter.greet(peer, answers, False, peer.home)

    def repair(self, session: Session, lost: list[Sent]) -> None:
        """Have the contents of lost datagrams sent again."""
        self._stats.lost += len(lost)
        self._stats.resent += sum(messages_in(item) for sent in lost for item in sent.items)
        session.lost(lost)
        self._peers.active[session] = None
