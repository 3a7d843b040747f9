"""Continuing a session with a peer that has crashed and come back with its memory.

Such a peer is the same incarnation: its messages go on where they stopped, and so do acks and
permits, which are watermarks. What it has lost is the connection: the keys, the numbers of
datagrams, and messages that had arrived and were not in its store yet. Therefore it states in
its greetings how many times it has come back (`Greeting.connection`), and a process that sees
a higher number than before

- agrees on new keys with it, so that no datagram number is used twice under one key;
- starts to count datagrams again, in both directions;
- sends everything again that the peer's protocol has not acknowledged, and repeats its own
  watermarks. The peer does the same;
- begins a new stream of control packets (`stream`), and repeats those that the peer has not
  confirmed (`listing` says why that is enough).

A greeting with a lower number than is known is a recording, and is dropped. A recording of one
with a higher number tells the truth, since the peer has come back that often; its handshake
comes to nothing, as only the peer knows the key that belongs to it, and the next greeting of
the peer, which repeats its own until it is answered, puts that right.
"""

from __future__ import annotations

from collections.abc import Callable

from .events import Address, Event, PeerUp
from .heads import Greeting
from .names import PeerName
from .peers import Peers
from .session import Session
from .stream import ControlStream

__all__ = ["agree_again", "resume"]


def resume(
    peers: Peers,
    session: Session,
    greeting: Greeting,
    secret: bytes,
    address: Address,
    now: float,
    emit: Callable[[Event], None],
) -> bool:
    """Continue a session with a peer that has come back; return whether that is done.

    It is not if the peer's part of the handshake is still missing.
    """
    agreement = session.agreement
    assert agreement is not None
    agreement.received(greeting.exchange, secret, session.incarnation)
    seals = agreement.seals(session.incarnation)
    if seals is None or seals[1].tag == session.tag:
        return False
    for tag in session.tags:
        peers.by_tag.pop(tag, None)
    peers.arrivals.drop_parts(session)
    session.resume(seals, greeting)
    session.stream = ControlStream()
    peers.by_tag[session.tag] = session
    session.exchange = agreement.message
    peers.known[session.name].address = session.address = address
    session.heard_at = now
    session.owes = None
    if session.silent:
        session.silent = False
        emit(PeerUp(PeerName(session.name, session.incarnation)))
    session.bye_due = peers.closing
    peers.active[session] = None
    return True


def agree_again(peers: Peers, session: Session, message: bytes, secret: bytes) -> None:
    """Adopt other keys that the peer states, if nothing has arrived with those in use.

    After greetings that crossed, the two sides may have finished different handshakes. The
    last one counts; if the peer uses the keys of another after all, so does this process.
    """
    agreement = session.agreement
    if session.received.largest >= 0 or agreement is None:
        return
    agreement.received(message, secret, session.incarnation)
    seals = agreement.seals(session.incarnation)
    if seals is not None and seals[1].tag != session.tag:
        peers.by_tag[session.reseal(seals)] = session
        session.exchange = agreement.message
        if len(session.tags) > 5:
            del peers.by_tag[session.drop_oldest_keys()]
