"""Accepting messages from the application: is there room, and for whom.

While a session has credit (see `ledger`), accepting a message takes one look-up, one comparison
and two subtractions. `try_send` keeps a sender that never pauses from starving everybody else:
without a call of `datagrams_to_send` in between, it accepts a limited number of messages. `send`
accepts as long as there is room.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any, Generic

from ..core.endpoint import destinations
from .accepted import A
from .arrivals import Arrivals
from .carrier import Carrier
from .config import TransportConfig
from .errors import PeerGone, Superseded, UnknownPeer
from .identity import Identity
from .ledger import COST, Ledger
from .observer import Observer
from .peers import Peers
from .stats import Stats

__all__ = ["Acceptance"]

_new = tuple.__new__


BURST = 64
"""Messages that `try_send` accepts without credit before datagrams have to be sent."""


class Acceptance(Generic[A]):
    """Accepts messages while there is room for them."""

    def __init__(
        self,
        me: Identity,
        peers: Peers,
        *,
        carrier: Carrier,
        ledger: Ledger,
        arrivals: Arrivals,
        config: TransportConfig,
        stats: Stats,
        receipt: type[A],
        driver: object,
    ) -> None:
        self._me = me
        self._peers = peers
        self._live = peers.live
        self._carrier = carrier
        self._linked = carrier.linked
        self._ledger = ledger
        self._arrivals = arrivals
        self._config = config
        self._stats = stats
        self._receipt = receipt
        self._driver = driver
        self.send = self._fast_path(self._send_without_credit)
        self.try_send = self._fast_path(self._try_send_without_credit)
        self.observer: Observer | None = None
        self._turn = 0
        """Calls of `next_turn` so far."""
        self._burst = BURST
        self._paused = False
        """Whether `try_send` turned a message down until datagrams have been sent."""

    def next_turn(self) -> bool:
        """Start a turn, as datagrams have been sent; return whether `Room` is due."""
        self._turn += 1
        self._burst = BURST
        paused = self._paused
        self._paused = False
        return paused

    def _fast_path(self, without_credit: Callable[..., A | None]) -> Callable[..., A | None]:
        """Return `send` or `try_send`: a closure, since every message goes through one.

        Args:
            without_credit: What to do for a session that has no credit left.
        """
        session_of = self._live.get
        receipt, driver = self._receipt, self._driver

        def send(to: str | Collection[str], payload: Any, wait_for_peer: bool = False) -> A | None:
            """Accept a message, or return None if there is no room; a `Room` event follows then.

            `try_send` also returns None if enough messages have been accepted in this turn
            that datagrams should be sent first.

            Args:
                to: The name of a process, or several names.
                payload: The message: bytes, or what can be copied into bytes.
                wait_for_peer: Whether to keep the message for the next incarnation of a
                    destination that is gone.

            Raises:
                UnknownPeer: A destination is not known.
                PeerGone: A destination left, or was given up.
                Superseded: Peers ignore this process.
                TypeError: The payload is not bytes.
                ValueError: The payload is too long.
            """
            try:
                session = session_of(to)  # type: ignore[arg-type]
            except TypeError:  # it is a list, say
                return without_credit(to, payload, wait_for_peer)
            if session is not None and payload.__class__ is bytes:
                left = session.credit_left - len(payload) - COST
                if left >= 0:
                    mid = session.send(payload)
                    session.credit -= 1
                    session.credit_left = left
                    return receipt((mid, session.alone, driver))
            return without_credit(to, payload, wait_for_peer)

        return send

    def _try_send_without_credit(
        self, to: str | Collection[str], payload: Any, wait_for_peer: bool
    ) -> A | None:
        session = self._live.get(to) if isinstance(to, str) else None
        used_up = session is not None and session.lent > 0
        if self._burst <= 0 or (used_up and session.lent_in == self._turn):  # type: ignore[union-attr]
            self._paused = True
            return None
        accepted = self._send_without_credit(to, payload, wait_for_peer)
        if accepted is not None:
            self._burst -= 1
        return accepted

    def _send_without_credit(
        self, to: str | Collection[str], payload: Any, wait_for_peer: bool
    ) -> A | None:
        """Accept a message, and give its session credit for more of them."""
        accepted = self._accept(to, payload, wait_for_peer)
        if accepted is not None:
            session = accepted[1][0] if isinstance(to, str) and accepted[1] else None
            short = session is not None and not self._linked and self.observer is None
            if short and session is not None and not self._peers.known[session.name].gone:
                self._ledger.lend(session)
                session.lent_in = self._turn
        return accepted

    def _accept(self, to: str | Collection[str], payload: Any, wait_for_peer: bool) -> A | None:
        names = destinations(to)
        if payload.__class__ is not bytes:
            payload = _as_bytes(payload)
        size = len(payload)
        if size > self._config.message:
            raise ValueError(f"a message of {size} bytes, {self._config.message} are allowed")
        self._check(names, wait_for_peer)
        if not self.room(names):
            self._peers.starved = True
            return None
        sessions = tuple([self._peers.session(name) for name in names if name != self._me.name])
        aliases = [session.alias for session in sessions]
        if len(aliases) < len(names):
            aliases.append(self._me.name)
        mid = self._carrier.send(aliases[0] if len(aliases) == 1 else aliases, payload)
        self._stats.sent += 1
        for session in sessions:
            self._ledger.charge(session, size)
            if self._linked:
                session.unconfirmed.append((mid, size))
        if self.observer is not None:
            labels = {session.name: session.label for session in sessions}
            self.observer.sent(mid, tuple([labels.get(n, n) for n in names]), size)
        accepted = _new(self._receipt, (mid, sessions, self._driver))
        if len(sessions) < len(names):
            accepted.local = True
        return accepted

    def _check(self, names: tuple[str, ...], wait_for_peer: bool) -> None:
        """Raise an error if a message to these processes cannot be accepted."""
        me, known = self._me, self._peers.known
        if me.superseded:
            raise Superseded(me.name, me.superseded)
        unknown = [name for name in names if name not in known and name != me.name]
        if unknown:
            raise UnknownPeer(unknown)
        if not wait_for_peer:
            gone = [name for name in names if name != me.name and known[name].gone]
            if gone:
                raise PeerGone(gone)

    def room(self, to: str | Collection[str]) -> bool:
        """Return whether there is room for a message to these processes."""
        ledger = self._ledger
        for name in (to,) if isinstance(to, str) else to:
            session = self._live.get(name)
            if session is not None:
                if not ledger.room(session):
                    ledger.call_in_all(self._live.values())
                    if not ledger.room(session):
                        return False
            elif name == self._me.name and self._arrivals.room <= 0:
                return False
        return True


def _as_bytes(payload: object) -> bytes:
    if not isinstance(payload, bytes | bytearray | memoryview):
        raise TypeError(f"a payload must be bytes, not {type(payload).__name__}")
    return bytes(payload)
