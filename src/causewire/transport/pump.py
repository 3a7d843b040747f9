"""What the protocol wants to send, on its way to the sessions.

    protocol -> messages to the Outbound of their session; acks and permits as its values

This happens once per turn, before datagrams are filled.
"""

from __future__ import annotations

from collections.abc import Callable

from ..core.run import MessageRun
from .arrivals import Arrivals
from .carrier import Carrier
from .events import Confirmed, Event
from .ledger import Ledger
from .observer import Observer
from .patience import Patience
from .peers import Peers
from .session import Session

__all__ = ["Pump"]


_new = tuple.__new__


class Pump:
    """Moves what the protocol of a process produces to its sessions."""

    def __init__(
        self,
        peers: Peers,
        *,
        carrier: Carrier,
        arrivals: Arrivals,
        ledger: Ledger,
        permit_delay: float,
        emit: Callable[[Event], None],
    ) -> None:
        self._peers = peers
        self._carrier = carrier
        self._arrivals = arrivals
        self._ledger = ledger
        self._permit_delay = permit_delay
        self._emit = emit
        self._linked, self._lists = carrier.linked, carrier.lists
        self._at_once = carrier.releases_at_once
        permits = carrier.permits and not carrier.lists
        self._patience = Patience(peers.active) if permits else None
        self.observer: Observer | None = None

    def run(self, now: float) -> None:
        """Move everything, until there is no more."""
        arrivals, carrier = self._arrivals, self._carrier
        if self._lists:
            for name in carrier.take_older():
                if (met := self._peers.live.get(name)) is not None and met.established:
                    self._peers.announce(name, met.incarnation, now)
        arrivals.collect()
        if arrivals.ready:
            arrivals.admit()
        by_alias, active = self._peers.by_alias, self._peers.active
        while runs := carrier.take_runs():
            for alias, run in runs:
                self._release(by_alias[alias], run)
            if self._at_once:
                break
        if self._patience is not None and carrier.holds():
            self._patience.end()
        if self.observer is not None:
            arrivals.tell_waits()
            self.observer.turn()
        for alias, mid in carrier.take_acks().items():
            session = by_alias[alias]
            if mid > session.delivered:
                session.delivered = mid
            if not session.over:
                session.control_due = True
                active[session] = None
        for alias, mid in carrier.take_permits().items():
            session = by_alias[alias]
            if mid > session.permit:
                session.permit = mid
            if session.over:
                continue
            if not session.peer_patient:
                session.control_due = True
            elif session.permit_by is None:
                session.permit_by = now + self._permit_delay
            active[session] = None
        if self._lists:
            for alias, record in carrier.take_control():
                by_alias[alias].stream.add(record)
                active[by_alias[alias]] = None
        if self._linked:
            self._confirm_linked()

    def _release(self, session: Session, run: MessageRun) -> None:
        """Queue messages that the protocol put on the network."""
        if session.over:  # on a link, by a protocol that cannot forget
            return
        self._peers.active[session] = None
        if self.observer is not None:
            self.observer.released(session, run)
        session.outbound.release(run)
        if self._patience is not None and not session.patient:
            self._patience.released(session)

    def confirm(self, session: Session, mid: int, messages: int, size: int) -> None:
        """Record that the peer's application has the messages up to `mid`."""
        session.confirmed = mid
        self._ledger.release(session, messages, size)
        self._emit(_new(Confirmed, (session,)))
        if self._peers.starved:
            self._peers.room_again()

    def _confirm_linked(self) -> None:
        """On a link: find out which messages the applications of others have by now."""
        for session in self._peers.live.values():
            session.outbound.released = session.accepted - self._carrier.queued(session.alias)
            confirmed = self._carrier.confirmed(session.alias, session.outbound.acked)
            if confirmed > session.confirmed:
                waiting = session.unconfirmed
                messages = size = 0
                while waiting and waiting[0][0] <= confirmed:
                    messages += 1
                    size += waiting.popleft()[1]
                self.confirm(session, confirmed, messages, size)
