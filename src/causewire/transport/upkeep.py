"""What has to be done for a peer when time has passed: greet, repair, ping, notice silence."""

from __future__ import annotations

from collections.abc import Callable
from heapq import nlargest

from .config import TransportConfig
from .errors import Superseded, UnknownPeer
from .events import Address, Event, PeerSilent
from .frames import put_obituary
from .greeter import Greeter
from .identity import Identity, Peer
from .obituaries import LEFT
from .outbound import messages_in
from .peers import Peers
from .recovery import Sent
from .session import Session
from .stats import Stats

__all__ = ["Upkeep"]

DEAF = 0.5
"""A timer that fires this many seconds late shows that the process did not run meanwhile."""

WITNESSES = 3
"""How many other peers are pinged when one does not answer."""

MANY = 20
"""How many idle peers have no influence on how often each is pinged."""

GREET_RARELY = 15.0
"""The longest pause between greetings to a peer that refused this process, or is gone."""


class Upkeep:
    """Serves peers whose timer has fired."""

    def __init__(
        self,
        me: Identity,
        peers: Peers,
        greeter: Greeter,
        *,
        config: TransportConfig,
        stats: Stats,
        emit: Callable[[Event], None],
        give_up_after: Callable[[str], float | None],
    ) -> None:
        self._me = me
        self._policy = give_up_after
        self._peers = peers
        self._greeter = greeter
        self._config = config
        self._stats = stats
        self._emit = emit
        self._absent: dict[tuple[str, int], float] = {}
        """Incarnations that only others can reach, and since when."""
        self._sought: dict[Peer, tuple[Address, float]] = {}
        """Peers that the driver has named and that are not reached, at which address since when."""
        self._missed: set[Peer] = set()
        """Those of them that were reported."""
        self._soonest = min(config.least_timeout, config.silent_after / 2)
        """Nothing that begins at some time, an expected ack aside, is due sooner than this."""

    def arm(self, peer: Peer, now: float) -> None:
        """Have a peer served in time.

        A timer that fires too early does no harm: it is armed again. So if it is to fire
        before anything can become due that begins now, it is left as it is.
        """
        session, armed = peer.session, peer.armed
        if session is not None:
            if session.established:
                if (
                    armed is not None
                    and armed <= now + self._soonest
                    and (session.ack_by is None or armed <= session.ack_by)
                    and (session.permit_by is None or armed <= session.permit_by)
                    and session.recovery.loss_at is None
                ):
                    return
            elif peer.greet_at is None:
                # It became known by its own greeting, and is looked for as it has messages now.
                self._peers.greet_soon(peer, now)
        when = self._deadline(peer)
        if when is not None:
            self._peers.timers.arm(peer, when)

    def run(self, now: float) -> None:
        """Serve all peers whose time has come."""
        timers = self._peers.timers
        first = timers.first
        if first is not None and now - first > DEAF:
            # This process did not run for a while, and could not have heard anybody.
            for session in self._peers.live.values():
                if session.owes is not None:
                    session.owes = min(now, session.owes + now - first)
                session.heard_at = min(now, session.heard_at + now - first)
            for peer, (place, since) in self._sought.items():
                self._sought[peer] = place, min(now, since + now - first)
        for peer in timers.due(now):
            self._serve(peer, now)
            when = self._deadline(peer)
            if when is not None:
                timers.again(peer, when, now)

    def _give_up_after(self, name: str) -> float | None:
        """Return how long a peer may leave messages unanswered.

        A process that was given up itself gives nobody up: its peers do not answer it
        because they do not accept it any more.
        """
        return None if self._me.superseded else self._policy(name)

    def _deadline(self, peer: Peer) -> float | None:
        """Return when a peer has to be served next."""
        session, config = peer.session, self._config
        if session is None:
            if peer.greet_at is None and peer.gone and peer.name in self._peers.known:
                return peer.gone_at + config.linger
            return self._next_look(peer)
        patience = self._give_up_after(peer.name)
        owes = session.owes
        if not session.established:
            times = [self._next_look(peer)]
            if owes is not None and patience is not None:
                times.append(owes + patience)
            return min([when for when in times if when is not None], default=None)
        when = max(session.heard_at, session.pinged_at) + self._keepalive(peer)
        due = session.recovery.deadline
        if due is not None and due < when:
            when = due
        if session.ack_by is not None and session.ack_by < when:
            when = session.ack_by
        if session.permit_by is not None and session.permit_by < when:
            when = session.permit_by
        if owes is not None:
            if not session.silent:
                when = min(when, self._silent_at(session, owes))
            if patience is not None:
                when = min(when, owes + patience)
        return when

    def _next_look(self, peer: Peer) -> float | None:
        """Return when to greet a peer that is not reached, or to report it."""
        when, sought = peer.greet_at, self._sought.get(peer)
        if when is None or sought is None or peer in self._missed:
            return when
        return min(when, sought[1] + self._config.silent_after)

    def _keepalive(self, peer: Peer) -> float:
        """Return after how much silence a peer is sent a ping.

        Of two peers that are idle, the one with the lower name comes first. The other one's
        ping leaves after half of `silent_after`, unless peers are many, and so it notices within
        `silent_after` that the peer is dead (`_silent_at`). A process with many peers, such as a
        server, does not ping those that ping it, until the next ping of one is late.
        """
        config = self._config
        pause = config.keepalive
        if pause is None:
            often = 0.4 * config.silent_after
            pause = max(often, 0.5 * (len(self._peers.live) - MANY))
            rhythm = peer.session.rhythm if peer.session is not None else None
            if rhythm is not None and rhythm < pause > often:
                return 1.25 * max(often, rhythm)
        return pause if self._me.name < peer.name else 1.25 * pause

    def _silent_at(self, session: Session, owes: float) -> float:
        """Return when a peer that has not answered since `owes` counts as silent."""
        late = self._config.silent_after
        return max(owes + late / 2, session.heard_at + late)

    def _serve(self, peer: Peer, now: float) -> None:
        session = peer.session
        if session is None or not session.established:
            self._look_for(peer, now)
            return
        self._found(peer)
        if session.ack_by is not None and session.ack_by <= now:
            session.ack_due, session.ack_by = True, None
            self._peers.active[session] = None
        if session.permit_by is not None and session.permit_by <= now:
            session.control_due, session.permit_by = True, None
            self._peers.active[session] = None
        recovery = session.recovery
        expiries = recovery.round_trip.backoff
        while (due := recovery.deadline) is not None and due <= now:
            lost = recovery.expired(now)
            if lost:
                self.repair(session, lost)
        if recovery.round_trip.backoff > expiries:
            self._stats.timeouts += 1
            if expiries or session.received.largest < 0:
                # The peer may have missed our answer, or may have been restarted.
                self._greet(peer, session.incarnation, session.address)
            if expiries:
                self._ask_others(session, now)
        owes = session.owes
        if owes is not None:
            patience = self._give_up_after(peer.name)
            if patience is not None and now >= owes + patience:
                if self._cut_off(session, owes, now):
                    self._peers.cut_off(now - owes, now)
                else:
                    self.forget(peer.name, now)
                return
            if not session.silent and now >= self._silent_at(session, owes):
                self._silent(session, now - min(owes, session.heard_at))
        if now >= max(session.heard_at, session.pinged_at) + self._keepalive(peer):
            session.pinged_at, session.rhythm = now, None  # it may ping less often now
            if not recovery.sent:
                session.ping_due = True
                self._peers.active[session] = None

    def _silent(self, session: Session, seconds: float) -> None:
        session.silent = True
        if not self._me.superseded:  # otherwise it is no wonder that nobody answers
            self._emit(PeerSilent(session.name, seconds))

    def _others(self, session: Session) -> list[Session]:
        """Return the established sessions but one."""
        return [one for one in self._peers.live.values() if one.established and one is not session]

    def _ask_others(self, session: Session, now: float) -> None:
        """Ping a few others, as one peer does not answer: is this process cut off?

        They are asked whenever none of them was heard for a quarter of the time after which
        the peer is given up. Since timeouts double, they are asked in time (`_cut_off`).
        """
        patience, others = self._give_up_after(session.name), self._others(session)
        if patience is None or any(one.heard_at > now - patience / 4 for one in others):
            return
        for one in nlargest(WITNESSES, others, key=lambda one: one.heard_at):
            if not one.recovery.sent:
                one.ping_due = True
                self._peers.active[one] = None

    def _cut_off(self, session: Session, owes: float, now: float) -> bool:
        """Return whether nobody has answered since `owes`, although others were asked too.

        What came in the first quarter of that time may have been under way before. With one
        peer only, nothing can be concluded, and the peer is given up. The same is true if
        there is a peer that must never be given up.
        """
        others = self._others(session)
        asked = [one.owes for one in others if one.owes is not None]
        since = owes + (now - owes) / 4
        return (
            bool(asked)
            and min(asked) <= (owes + now) / 2
            and not any(one.heard_at > since or self._policy(one.name) is None for one in others)
        )

    def _greet(self, peer: Peer, answers: int, address: Address) -> None:
        """Greet a peer where it was last, and where the driver said that it is."""
        self._greeter.greet(peer, answers, False, address)
        if peer.home is not None and peer.home != address:
            self._greeter.greet(peer, answers, False, peer.home)

    @property
    def searches(self) -> bool:
        """Whether a peer was not reached in time."""
        return bool(self._missed)

    @property
    def unreached(self) -> dict[str, tuple[float, str]]:
        """Peers that were not reached in time or were refused: since when, and why if known."""
        return {
            peer.name: (since, peer.trouble)
            for peer, (_, since) in self._sought.items()
            if peer.greet_at is not None and (peer.refused or peer in self._missed)
        }

    def _seek(self, peer: Peer, now: float) -> None:
        """Report a peer that the driver has named, and that is not reached for too long."""
        if not peer.wanted or peer.gone or peer.greet_at is None:
            self._found(peer)
            return
        place, since = self._sought.get(peer, (None, now))
        if place != peer.address:
            self._found(peer)
            self._sought[peer] = peer.address, now
        elif peer not in self._missed and now >= since + self._config.silent_after:
            self._missed.add(peer)
            if not (peer.refused or self._me.superseded):
                self._emit(PeerSilent(peer.name, now - since))

    def _found(self, peer: Peer) -> None:
        """Look for a peer no more, or elsewhere."""
        if peer in self._sought:
            del self._sought[peer]
            self._missed.discard(peer)

    def _look_for(self, peer: Peer, now: float) -> None:
        """Greet a peer that has not answered yet, or give it up."""
        session, config = peer.session, self._config
        self._seek(peer, now)
        if session is not None and (session.taken or session.incarnation):
            if session.owes is None:
                session.owes = now
            patience = self._give_up_after(peer.name)
            if patience is not None and now >= session.owes + patience:
                self.forget(peer.name, now)
            elif peer in self._missed:
                session.silent = True
            elif not session.silent and now >= session.owes + config.silent_after:
                self._silent(session, now - session.owes)
        if session is None and not peer.wanted and peer.greet_at is not None:
            patience = self._give_up_after(peer.name)
            if peer.credit is None and patience is not None and now >= peer.gone_at + patience:
                peer.greet_at, peer.gone, peer.gone_at = None, True, now
        if peer.greet_at is not None and peer.greet_at <= now:
            if peer.credit is None:
                self._greet(peer, 0, peer.address)
            elif peer.credit > 0:
                peer.credit -= 1
                self._greet(peer, 0, peer.address)
            peer.greet_at = now + peer.greet_pause
            unlikely = peer.refused or peer.gone
            longest = GREET_RARELY if unlikely else config.greet_at_most
            peer.greet_pause = min(2 * peer.greet_pause, longest)
        elif session is None and peer.gone and now >= peer.gone_at + config.linger:
            peer.gone_at = now
            self._peers.reap(peer)

    def give_up(self, name: str, now: float) -> None:
        """Give a peer up: treat it as dead, and tell everybody.

        Messages to it fail, and nothing waits for it any longer.

        Raises:
            UnknownPeer: There is no such peer.
            Superseded: This process was given up itself.
        """
        me = self._me
        if me.superseded:
            raise Superseded(me.name, me.superseded)
        if name not in self._peers.known:
            raise UnknownPeer([name])
        self.forget(name, now)

    def forget(self, name: str, now: float) -> None:
        """Give a peer up, and tell it so in case it is alive."""
        session = self._peers.forget(name, now)
        if session is not None:
            self.tell_forgotten(session)

    def give_up_absent(self, absent: dict[str, int], now: float) -> None:
        """Give up processes that only others can reach, once that has lasted for too long."""
        former, self._absent = self._absent, {}
        for name, incarnation in absent.items():
            since = former.get((name, incarnation), now)
            self._absent[name, incarnation] = since
            patience = self._give_up_after(name)
            if patience is not None and now >= since + patience:
                self._peers.obituary(name, incarnation + 1, self._me.name, now)

    def tell_forgotten(self, session: Session) -> None:
        """Tell the peer of a session that ended that its incarnation is gone.

        If it has left, it need not wait until its own goodbye has arrived here.
        """
        name, floor = session.name, self._peers.floors[session.name]
        if session.tag and self._peers.known[name].left:
            datagram = session.single(put_obituary(name, LEFT | floor))
            self._greeter.out.append((datagram, session.address))
        else:
            self._greeter.greet(self._peers.known[name], floor, True, session.address)

    def repair(self, session: Session, lost: list[Sent]) -> None:
        """Have the contents of lost datagrams sent again."""
        self._stats.lost += len(lost)
        self._stats.resent += sum(messages_in(item) for sent in lost for item in sent.items)
        session.lost(lost)
        self._peers.active[session] = None
