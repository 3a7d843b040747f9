"""Those who wait for receipts to be settled, on asyncio."""

from __future__ import annotations

import asyncio
from heapq import heappop, heappush

from ..transport import Session

__all__ = ["ReceiptWaiters", "wake"]

LARGEST = 1 << 62
"""No message has a higher number."""


class ReceiptWaiters:
    """Tasks that wait until a message is delivered, or handled, or never will be."""

    def __init__(self) -> None:
        self._delivered: dict[Session, list[tuple[int, int, asyncio.Future[None]]]] = {}
        """For each session a heap, by the number of the message."""
        self._handled: dict[Session, list[tuple[int, asyncio.Future[None]]]] = {}

    async def delivered(self, session: Session, mid: int) -> None:
        """Wait until a session has confirmed a message, or is over."""
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        heappush(self._delivered.setdefault(session, []), (mid, id(future), future))
        await future

    async def handled(self, session: Session, mid: int) -> None:
        """Wait until a message is handled, or the session is over, or established."""
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._handled.setdefault(session, []).append((mid, future))
        await future

    def confirmed(self, session: Session) -> None:
        """Wake those who wait for messages that are confirmed, or never will be."""
        if session.over and self._handled:
            self.reported(session)
        waiters = self._delivered.get(session)
        if not waiters:
            return
        while waiters and (session.over or waiters[0][0] <= session.confirmed):
            future = heappop(waiters)[2]
            if not future.done():
                future.set_result(None)
        if not waiters:
            del self._delivered[session]

    def reported(self, session: Session, low: int = 0, high: int = LARGEST) -> None:
        """Wake those who wait for the handling of messages from `low` to `high`."""
        waiting = self._handled.pop(session, [])
        wake([future for mid, future in waiting if low <= mid <= high])
        if rest := [one for one in waiting if not low <= one[0] <= high]:
            self._handled[session] = rest

    def withdrawn(self, session: Session, mid: int) -> None:
        """Wake those who wait for a message that does not come."""
        wake([future for one, _, future in self._delivered.get(session, ()) if one == mid])
        self.reported(session, mid, mid)

    def met(self, name: str) -> None:
        """Let those look again who wait for a peer that was not reached before."""
        for session in [session for session in self._handled if session.name == name]:
            self.reported(session)

    def wake_all(self) -> None:
        """Wake everybody, as the node is closed."""
        for waiters in self._delivered.values():
            wake([future for _, _, future in waiters])
        self._delivered.clear()
        for session in list(self._handled):
            self.reported(session)


def wake(waiting: list[asyncio.Future[None]]) -> None:
    """Let all continue that wait for these futures, and clear the list."""
    for future in waiting:
        if not future.done():
            future.set_result(None)
    waiting.clear()
