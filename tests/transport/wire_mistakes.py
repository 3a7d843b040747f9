"""Deliberate mistakes in the transport, to see that the seeded runs find them.

    python -m tests.transport.wire_mistakes [RUNS]

prints in how many runs each of them is found.
"""

from __future__ import annotations

from typing import Any

from causewire.transport.greeter import Greeter
from causewire.transport.peers import Peers
from causewire.transport.session import Session
from causewire.transport.transport import Transport

from .mistakes import Mistake, print_counts

_put_obituaries = Session._put_obituaries
_end = Peers.end
_delivered = Transport._delivered


def _tells_nobody(self: Session, budget: Any, sent: Any) -> bool:
    self.obituaries = {}
    return True


def _tells_too_late(self: Session, budget: Any, sent: Any) -> bool:
    """Obituaries leave after what is waiting to be sent, not before."""
    if self.outbound.pending:
        return True
    return _put_obituaries(self, budget, sent)


def _does_not_fence(self: Peers, session: Session, *arguments: Any) -> None:
    """A process that is gone is still listened to."""
    tags, inbound = session.tags if session.established else [], session.inbound
    _end(self, session, *arguments)
    session.inbound = inbound
    for tag in tags:
        self.by_tag[tag] = session


def _confirms_too_much(self: Transport[Any], session: Session, mid: int) -> None:
    """An ack of one message settles the receipts of all that have left."""
    _delivered(self, session, mid)
    session.confirmed = session.outbound.departed


def _loses_receipts(self: Peers, session: Session, *arguments: Any) -> None:
    """What was accepted for a process that is gone is dropped, and its receipts stay open."""
    _end(self, session, *arguments)
    session.over = False


def _accepts_the_buried(self: Greeter, peer: Any, *arguments: Any) -> None:
    """An incarnation that was given up may come back under its old number."""
    self._peers.floors.pop(peer.name, None)
    _answer(self, peer, *arguments)


def _stays_ignorant(self: Peers, *arguments: Any) -> None:
    """A process that nobody accepts any more does not notice it."""


_answer = Greeter._answer

MISTAKES = {
    "obituaries are not sent": Mistake(Session, "_put_obituaries", _tells_nobody),
    "obituaries follow messages": Mistake(Session, "_put_obituaries", _tells_too_late),
    "the dead are listened to": Mistake(Peers, "end", _does_not_fence),
    "the buried come back": Mistake(Greeter, "_answer", _accepts_the_buried),
    "receipts of others are settled": Mistake(Transport, "_delivered", _confirms_too_much),
    "receipts stay open": Mistake(Peers, "end", _loses_receipts),
    "the superseded do not notice": Mistake(Peers, "superseded", _stays_ignorant),
}


if __name__ == "__main__":
    print_counts(MISTAKES, 1000)
