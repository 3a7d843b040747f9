"""Why messages have not arrived, in words and at little cost.

The protocol can say of every single message what it waits for (`Endpoint.blocked`). With
thousands held back that is a long list of mostly the same line, while people want to know
which process is the cause. So this module looks at sessions, not at messages. Between this
process and each peer there are four places where messages can be stuck:

    held        here: the protocol has not released them, since permits are missing, namely
                of the peers whose last flagged message is above their last permit
    under way   released and not acknowledged, or the peer accepts no more at the moment
    gap         they arrived here, and a predecessor has not, of the same sender or of another
    queue       they arrived here in order, and the application's queue is full

A peer whose permits are missing waits for acks of other processes. It is asked for their
names (`why`), and its answer is part of the reason, so that the cause is named even where
nobody talks to that process.

Durations are lower bounds: they are sampled at each call of `Watch.look`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from .carrier import Carrier
    from .missing import Missing
    from .session import Session
    from .upkeep import Upkeep

__all__ = ["Reason", "Watch", "culprits"]

MOST_CULPRITS = 16
"""The most processes that an answer names."""


class Reason(NamedTuple):
    """Why messages from or to one peer make no progress."""

    where: str
    """`held`, `under way`, `gap` or `queue`."""
    peer: str
    messages: int
    """The least number of messages that are stuck."""
    seconds: float
    """How long there has been no progress, at least."""
    permits: tuple[str, ...]
    """The peers whose permits are missing."""
    why: str
    """All of this in words."""

    @property
    def key(self) -> tuple[str, str]:
        """What tells this reason from others."""
        return self.where, self.peer

    def __str__(self) -> str:
        return self.why


class Watch:
    """Looks at all sessions now and then, and reports once what has been stuck for long."""

    __slots__ = ("_carrier", "_late", "_missed", "_stuck", "_told", "_upkeep")

    def __init__(self, carrier: Carrier, upkeep: Upkeep, late: float) -> None:
        self._carrier = carrier
        self._upkeep = upkeep
        self._late = late
        self._told: set[tuple[str, str]] = set()
        self._missed: dict[tuple[str, str, int], float] = {}
        """Since when messages of a process have waited for one message, by both."""
        self._stuck: dict[tuple[str, str, int], float] = {}
        """Since when the first message that is under way, or waits for room, is the same one."""

    def look(
        self, sessions: Collection[Session], now: float, stalled: bool
    ) -> tuple[list[Reason], list[Session]]:
        """Return what has been stuck for long and is not yet reported, and the sessions
        whose permits are missing."""
        for session in sessions:
            _note(session, now)
        waits = self._carrier.missing
        self._missed = {key: self._missed.get(key, now) for key in map(_key, waits)}
        firsts = [first for one in sessions for first in _firsts(one, stalled)]
        self._stuck = {first: self._stuck.get(first, now) for first in firsts}
        news: list[Reason] = []
        missing: set[str] = set()
        for reason in self._reasons(sessions, now, stalled, waits):
            missing.update(reason.permits)
            if reason.seconds < self._late:
                self._told.discard(reason.key)
            elif reason.key not in self._told:
                self._told.add(reason.key)
                news.append(reason)
        return news, [session for session in sessions if session.name in missing]

    def reasons(self, sessions: Iterable[Session], now: float, stalled: bool) -> list[Reason]:
        """Return all that is stuck, and the peers that are not reached."""
        return self._reasons(sessions, now, stalled, self._carrier.missing)

    @property
    def needed(self) -> bool:
        """Whether there is something to look at, even if there are no messages."""
        return self._carrier.waits or self._upkeep.searches

    def _reasons(
        self, sessions: Iterable[Session], now: float, stalled: bool, waits: Iterable[Missing]
    ) -> list[Reason]:
        by_name = {session.name: session for session in sessions}
        missing = [s for _, s in sorted(by_name.items()) if s.flagged > s.permitted]
        by_source = {wait.source: wait for wait in waits}
        # Whether messages that have arrived at a peer may wait there for others.
        there = self._carrier.lists or self._carrier.linked
        found: list[Reason | None] = []
        for name, session in sorted(by_name.items()):
            found.append(_held(session, missing, now, self._carrier.group_waits))
            stuck = {first[0]: self._stuck.get(first, now) for first in _firsts(session, stalled)}
            found.append(_under_way(session, stuck.get("under way"), there, now))
            gaps = [_gap(session, now)]
            if (wait := by_source.get(name)) is not None:
                since = self._missed.get(_key(wait), now)
                gaps.append(_missing(wait, by_name.get(wait.origin), since, now))
            # One reason for both: otherwise the end of one would be taken for that of the other.
            found.append(max(filter(None, gaps), key=lambda gap: gap.seconds, default=None))
            found.append(_queue(session, stuck.get("queue"), now))
        reasons = [reason for reason in found if reason is not None]
        told = {reason.peer for reason in reasons if reason.where in ("held", "under way")}
        for name, (begun, trouble) in sorted(self._upkeep.unreached.items()):
            if name not in told:
                why = _not_reached(name, begun, trouble, now)
                reasons.append(Reason("under way", name, 0, now - begun, (), why))
        return reasons


def _key(wait: Missing) -> tuple[str, str, int]:
    return wait.source, wait.origin, wait.number


def _firsts(session: Session, stalled: bool) -> list[tuple[str, str, int]]:
    """Return the first message to and from a peer that waits for room in a queue, if there is one.

    A message to the peer may do so if all that may leave has left.
    """
    outbound, ready = session.outbound, session.inbound.ready
    firsts = []
    if outbound.last > outbound.acked and not outbound.pending:
        firsts.append(("under way", session.alias, outbound.acked))
    if stalled and ready:
        firsts.append(("queue", session.alias, ready[0].mids[0]))
    return firsts


def _note(session: Session, now: float) -> None:
    """Record the progress of a session."""
    released, tail = session.outbound.released, session.inbound.tail
    old = session.progress
    if old is None:
        session.progress = (released, tail, now, now)
    else:
        session.progress = (
            released,
            tail,
            old[2] if released == old[0] and session.held else now,
            old[3] if tail == old[1] and session.inbound.gap() else now,
        )


def culprits(sessions: Iterable[Session], asker: Session, now: float) -> list[str]:
    """Return the peers that have not acknowledged messages: permits wait for them."""
    behind = [
        session
        for session in sessions
        if session is not asker and session.outbound.last > session.outbound.acked
    ]
    behind.sort(key=lambda session: (session.owes or now, session.name))
    return [session.name for session in behind[:MOST_CULPRITS]]


def _messages(n: int) -> str:
    return "1 message" if n == 1 else f"{n} messages"


def _not_reached(
    name: str, since: float | None, trouble: str, now: float, gone: bool = False
) -> str:
    if gone:
        return f"{name} is gone; messages wait for its next incarnation"
    if trouble:
        return f"{name} was refused: {trouble}"
    tried = "" if since is None else f", tried for {now - since:.1f} s"
    return f"{name} has not been reached yet{tried} (a wrong address, nobody there, or another key)"


def _silence(session: Session, now: float) -> str:
    owes = session.owes
    if session.trouble or not session.established:
        return _not_reached(session.name, owes, session.trouble, now, session.awaited)
    if owes is None or now - owes < 1:
        return f"{session.name} answers"
    return f"nothing has come from {session.name} for {now - owes:.1f} s"


def _held(session: Session, missing: list[Session], now: float, group: str) -> Reason | None:
    if not session.held:
        return None
    seconds = now - session.progress[2] if session.progress else 0.0
    waits = []
    for other in missing:
        text = f"the permit of {other.name} for its message {other.flagged}"
        if other.because:
            text += f", which waits for {' and '.join(other.because)}"
        elif other is not session:
            text += f" ({_silence(other, now)})"
        waits.append(text)
    if not (waits or group or session.established):  # nothing holds them but the way to the peer
        why = f"{_messages(session.held)} to {session.name} not sent yet: {_silence(session, now)}"
        return Reason("under way", session.name, session.held, seconds, (), why)
    why = f"{_messages(session.held)} to {session.name} held here, "
    if group:
        why += group if session.established else f"{group}: {_silence(session, now)}"
    elif waits:
        why += "waiting for " + "; for ".join(waits)
    else:
        why += f"about to be sent: {_silence(session, now)}"
    names = tuple(other.name for other in missing)
    return Reason("held", session.name, session.held, seconds, names, why)


def _under_way(session: Session, since: float | None, there: bool, now: float) -> Reason | None:
    outbound = session.outbound
    if outbound.last <= outbound.acked:
        return None
    owes = session.owes
    seconds = now - min(when for when in (owes, since, now) if when is not None)
    count = max(1, session.has_messages - session.held)
    silence = _silence(session, now)
    if seconds >= 1 and silence == f"{session.name} answers":
        silence += ", and its application does not read"
        if there:
            silence += ", or they wait there for messages of others"
    why = (
        f"{_messages(count)} to {session.name} not acknowledged, "
        f"the next is {outbound.acked + 1} or later: {silence}"
    )
    return Reason("under way", session.name, count, seconds, (), why)


def _gap(session: Session, now: float) -> Reason | None:
    gap = session.inbound.gap()
    if gap is None:
        return None
    seconds = now - session.progress[3] if session.progress else 0.0
    mid, pid = gap
    why = (
        f"message {mid} of {session.name} is here, and waits for message {pid} of it "
        f"({_silence(session, now)})"
    )
    return Reason("gap", session.name, session.inbound.messages, seconds, (), why)


def _missing(wait: Missing, origin: Session | None, since: float, now: float) -> Reason:
    silence = f"{wait.origin} has not been met" if origin is None else _silence(origin, now)
    here = "is here, and waits" if wait.messages == 1 else "are here, and wait"
    why = f"{_messages(wait.messages)} of {wait.source} {here} for {wait.what} ({silence})"
    return Reason("gap", wait.source, wait.messages, now - since, (), why)


def _queue(session: Session, since: float | None, now: float) -> Reason | None:
    if since is None:
        return None
    count = sum(len(run.mids) for run in session.inbound.ready)
    why = f"{_messages(count)} of {session.name} here, waiting for room in the application's queue"
    return Reason("queue", session.name, count, now - since, (), why)
