"""Messages that are cancelled, or whose time to live has passed, before they have left.

See `withdrawn` for what becomes of them. A message can be withdrawn until the first datagram
with it is made, for any of its receivers: a multicast is withdrawn as a whole or not at all.

With a store, deadlines survive a crash. The time here stops meanwhile, so the store has them by
the clock of the world. If that was set back, no message gets more time than it had at first.
"""

from __future__ import annotations

from collections.abc import Callable
from heapq import heapify, heappop, heappush
from typing import Any

from .accepted import Accepted
from .carrier import Carrier
from .events import Event, MessageWithdrawn
from .journal import Deadline, Journal
from .ledger import Ledger
from .peers import Peers

__all__ = ["Withdrawals"]

_FEW = 256
"""Deadlines of messages that are settled are looked for when there are as many more."""


class Withdrawals:
    """Withdraws messages that have not left, on request or at their deadline."""

    def __init__(
        self,
        peers: Peers,
        journal: Journal | None,
        *,
        carrier: Carrier,
        ledger: Ledger,
        emit: Callable[[Event], None],
    ) -> None:
        self._journal = journal
        if journal is not None:
            journal.resume = self._resume
        self._peers = peers
        self._carrier = carrier
        self._ledger = ledger
        self._emit = emit
        self._deadlines: list[tuple[float, int, Accepted]] = []
        """A heap."""
        self._count = 0
        self._sweep_at = _FEW

    @property
    def next(self) -> float | None:
        """When the next message expires."""
        return self._deadlines[0][0] if self._deadlines else None

    def withdraw(
        self, accepted: Accepted, when: float | None = None, until: Deadline = (0, 0)
    ) -> bool:
        """Withdraw a message that has not left, and return whether it will never be delivered.

        Args:
            accepted: The message; its `withdrawn` states the reason afterwards.
            when: The time at which it expires, unless it has left by then; None to cancel it
                now.
            until: The same by the clock of the world, and its time to live, in milliseconds;
                needed with a store.
        """
        if when is None:
            return self._withdraw(accepted, "cancelled")
        if self._journal is not None and not accepted.local:
            self._journal.expires(accepted, until)
        self._expire_at(accepted, when)
        return False

    def _resume(self, now: float, clock: int) -> None:
        for accepted, (until, ttl) in self._journal.expiring() if self._journal else ():
            self._expire_at(accepted, now + min(until - clock, ttl) / 1000)

    def _withdraw(self, accepted: Accepted, reason: str) -> bool:
        if accepted.withdrawn:
            return True
        mid, sessions, _ = accepted
        waiting = [session for session in sessions if not session.over]
        left = any(session.outbound.departed >= mid for session in sessions)
        if left or not waiting or accepted.local or not self._carrier.withdraws:
            return False
        for session in waiting:
            former: Any = self._carrier.withdraw(session.alias, mid)
            session.outbound.withdraw(mid, self._carrier.list_bytes)
            self._ledger.release(session, 0, len(former))
            self._emit(MessageWithdrawn(session, mid))
        accepted.withdrawn = reason
        self._peers.room_again()
        return True

    def _expire_at(self, accepted: Accepted, when: float) -> None:
        deadlines = self._deadlines
        if len(deadlines) >= self._sweep_at:
            deadlines[:] = [one for one in deadlines if _waits(one[2])]
            heapify(deadlines)
            self._sweep_at = 2 * len(deadlines) + _FEW
        self._count += 1
        heappush(deadlines, (when, self._count, accepted))

    def run(self, now: float) -> None:
        """Withdraw the messages whose time has passed."""
        deadlines = self._deadlines
        while deadlines and deadlines[0][0] <= now:
            self._withdraw(heappop(deadlines)[2], "expired")


def _waits(accepted: Accepted) -> bool:
    """Return whether a message can still be withdrawn."""
    mid, sessions, _ = accepted
    left = any(session.over or session.outbound.departed >= mid for session in sessions)
    return not left and not accepted.withdrawn
