"""Accepting messages from the application: is there room, and for whom.

`try_send` is the fast path. While a session has credit (see `ledger`), accepting a message
takes one look-up and two subtractions. It also keeps a sender that never pauses from
starving everybody else: without a call of `datagrams_to_send` in between, it accepts a
limited number of messages.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import TypeAlias

from ..core.endpoint import LocalProtocolError, destinations
from .arrivals import Arrivals
from .carrier import Carrier
from .config import TransportConfig
from .ledger import Ledger
from .observer import Observer
from .peers import Identity, Peers
from .session import Session
from .stats import Stats

__all__ = ["Acceptance", "Accepted", "UnknownPeer"]

Accepted: TypeAlias = tuple[int, tuple[Session, ...]]
"""The number of a message that was accepted, and the sessions with its receivers."""

BURST = 64
"""Messages that `try_send` accepts without credit before datagrams have to be sent."""


class UnknownPeer(LocalProtocolError):  # noqa: N818 - it names a state, like asyncio.QueueEmpty
    """A message cannot be sent because its destination is not known."""

    def __init__(self, names: list[str]) -> None:
        super().__init__(f"unknown peer: {', '.join(names)}")
        self.names = names


class Acceptance:
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
    ) -> None:
        self._me = me
        self._peers = peers
        self._live = peers.live
        self._carrier = carrier
        self._linked = not carrier.forgets
        self._ledger = ledger
        self._arrivals = arrivals
        self._config = config
        self._stats = stats
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

    def try_send(self, to: str | Collection[str], payload: bytes) -> Accepted | None:
        """Accept a message if that is possible at once and without harm to others.

        Returns None if there is no room, or if so many messages have been accepted in this
        turn that datagrams should be sent first. A `Room` event follows.

        Raises:
            UnknownPeer: A destination is not known.
            TypeError: The payload is not bytes.
            ValueError: The payload is too long.
        """
        if to.__class__ is str and payload.__class__ is bytes:
            session = self._live.get(to)
            if session is not None and session.credit:
                size = len(payload)
                if size <= session.credit_bytes:
                    mid = session.send(session.alias, payload)
                    session.credit -= 1
                    session.credit_bytes -= size
                    return mid, session.alone
        return self._try_send_without_credit(to, payload)

    def _try_send_without_credit(
        self, to: str | Collection[str], payload: bytes
    ) -> Accepted | None:
        session = self._live.get(to) if isinstance(to, str) else None
        used_up = session is not None and session.lent > 0
        if self._burst <= 0 or (used_up and session.lent_in == self._turn):  # type: ignore[union-attr]
            self._paused = True
            return None
        accepted = self.send(to, payload)
        if accepted is not None:
            self._burst -= 1
            session = accepted[1][0] if isinstance(to, str) and accepted[1] else None
            if session is not None and not self._linked and self.observer is None:
                self._ledger.lend(session)
                session.lent_in = self._turn
        return accepted

    def send(self, to: str | Collection[str], payload: bytes) -> Accepted | None:
        """Accept a message, or return None if there is no room; a `Room` event follows then.

        Raises:
            UnknownPeer: A destination is not known.
            TypeError: The payload is not bytes.
            ValueError: The payload is too long.
        """
        names = destinations(to)
        if payload.__class__ is not bytes:
            payload = _as_bytes(payload)
        size = len(payload)
        if size > self._config.message:
            raise ValueError(f"a message of {size} bytes, {self._config.message} are allowed")
        known = self._peers.known
        unknown = [name for name in names if name not in known and name != self._me.name]
        if unknown:
            raise UnknownPeer(unknown)
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
        return mid, sessions

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
