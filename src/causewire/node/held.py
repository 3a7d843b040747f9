"""Tells an application which messages had to wait, and from when to when.

A message that is not delivered in the turn of the loop in which it arrived, or that does not leave
in the turn in which it was accepted, has to wait: for what it depends on, for an earlier message
of its sender, or for room. The turn is what tells waiting from working, and no clock.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Literal, NamedTuple

from ..core.endpoint import Blocked, Delivery
from ..core.run import MessageRun
from ..transport import Observer, Session

__all__ = ["Held", "HeldObserver"]

MOST = 4096
"""Of how many messages it is remembered when they came; those of peers that die never end."""


class Held(NamedTuple):
    """A message had to wait at its receiver, until it was delivered, or at its sender."""

    where: Literal["receiver", "sender"]
    source: str
    incarnation: int
    """With `source` and `mid`, what `message_id` returns at the receiver."""
    mid: int
    began: int
    """When it arrived, or was accepted: nanoseconds, as from `time.time_ns`."""
    ended: int
    """When it was delivered, or left for the last of its destinations."""


class HeldObserver:
    """An observer of a transport that reports messages that had to wait."""

    def __init__(
        self,
        name: str,
        incarnation: Callable[[], int],
        tell: Callable[[Held], object],
        number: Callable[[int, bytes], int | None],
        other: Observer | None,
    ) -> None:
        self._name = name
        self._incarnation = incarnation
        self._number = number
        self._tell = tell
        self._other = other
        self._clock = 0
        self._turn = 0
        self._arrived: dict[tuple[str, int], tuple[int, int, Session]] = {}
        """For each message that is not delivered: the turn and the time when it came."""
        self._accepted: dict[int, tuple[int, int, int]] = {}
        """For each that has not left: the turn, the time, and how many destinations are left."""

    @property
    def clock(self) -> int:
        """The Lamport time: that of the trace, if there is one."""
        return self._clock if self._other is None else self._other.clock

    @clock.setter
    def clock(self, clock: int) -> None:
        if self._other is not None:
            self._other.clock = clock

    def begin_life(self) -> None:
        """Forget all messages: those of a new incarnation are numbered from 1 again."""
        self._arrived.clear()
        self._accepted.clear()

    def _numbers(self, run: MessageRun) -> list[int]:
        """Return the numbers of the messages of a run, without those of the protocol itself."""
        found = map(self._number, run.mids, run.payloads)
        return [mid for mid in found if mid is not None]

    def sent(self, mid: int, to: tuple[str, ...], size: int) -> None:
        """Note a message that was accepted."""
        if self._other is not None:
            self._other.sent(mid, to, size)
        others = len(to) - (self._name in to)
        if others:
            self._accepted[mid] = self._turn, time.time_ns(), others
            if len(self._accepted) > MOST:
                del self._accepted[next(iter(self._accepted))]

    def released(self, session: Session, run: MessageRun) -> None:
        """Report messages that leave for the last of their destinations, if they had to wait."""
        if self._other is not None:
            self._other.released(session, run)
        for mid in self._numbers(run):
            turn, began, others = self._accepted.pop(mid, (self._turn, 0, 0))
            if others > 1:
                self._accepted[mid] = turn, began, others - 1
            elif turn != self._turn:
                born = self._incarnation()
                self._tell(Held("sender", self._name, born, mid, began, time.time_ns()))

    def arrived(self, session: Session, run: MessageRun) -> None:
        """Note messages that arrive."""
        if self._other is not None:
            self._other.arrived(session, run)
        now = time.time_ns()
        for mid in self._numbers(run):
            self._arrived[session.alias, mid] = self._turn, now, session
        while len(self._arrived) > MOST:
            del self._arrived[next(iter(self._arrived))]

    def waiting(self, waits: list[Blocked], labels: dict[str, str]) -> None:
        """Pass on what messages wait for."""
        if self._other is not None:
            self._other.waiting(waits, labels)

    def delivered(self, deliveries: list[Delivery], labels: dict[str, str]) -> None:
        """Report messages that are delivered, if they had to wait."""
        if self._other is not None:
            self._other.delivered(deliveries, labels)
        for alias, mid, _ in deliveries:
            known = self._arrived.pop((alias, mid), None)
            if known is not None and known[0] != self._turn:
                _, began, session = known
                name, born = session.name, session.incarnation
                self._tell(Held("receiver", name, born, mid, began, time.time_ns()))

    def turn(self) -> None:
        """Note that the protocol had its turn: what is still here has to wait."""
        self._turn += 1
