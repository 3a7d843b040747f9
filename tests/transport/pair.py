"""Two transports, and a wire between them that a test holds in its hands."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from causewire.transport import (
    Confirmed,
    Delivered,
    Handled,
    MessageWithdrawn,
    PeerEvent,
    Room,
    Session,
    Transport,
    TransportConfig,
    session,
)

A, B = ("127.0.0.1", 1), ("127.0.0.1", 2)

interpreted = pytest.mark.skipif(
    not str(session.__file__).endswith(".py"),
    reason="methods of classes that are compiled cannot be replaced",
)
"""For tests that break the transport on purpose, or look at all of its attributes, which classes
that are compiled do not list (`make test-compiled` runs all others)."""
KEY = b"sixteen bytes or more"
PLAIN_AND_SEALED = pytest.mark.parametrize("key", [None, KEY], ids=["plain", "sealed"])


class Pair:
    """`ann` and `bob`."""

    def __init__(self, **settings: Any) -> None:
        self.now = 100.0
        self.settings = settings
        self.ann = self.start("ann", 1001)
        self.bob = self.start("bob", 2001)

    def start(self, name: str, incarnation: int, **more: Any) -> Transport[Any]:
        settings: dict[str, Any] = (
            {"config": TransportConfig(local_datagram=1232), "entropy": Random(name).randbytes}
            | self.settings
            | more
        )
        return Transport(name, incarnation=incarnation, **settings)

    def other(self, transport: Transport[Any]) -> Transport[Any]:
        return self.bob if transport is self.ann else self.ann

    def out(self, transport: Transport[Any]) -> list[bytes]:
        """What one of them sends."""
        return [data for data, _ in transport.datagrams_to_send(self.now)]

    def give(self, transport: Transport[Any], *datagrams: bytes) -> None:
        """Let one of them receive."""
        source = B if transport is self.ann else A
        for data in datagrams:
            transport.datagram_received(data, source, self.now)

    def exchange(self) -> int:
        """Carry datagrams until there are none; returns how many there were."""
        count = 0
        while some := [(t, data) for t in (self.ann, self.bob) for data in self.out(t)]:
            for transport, data in some:
                self.give(self.other(transport), data)
            count += len(some)
        return count

    def later(self, seconds: float) -> None:
        """Let time pass; timers fire, and nothing is carried."""
        self.now += seconds
        for transport in (self.ann, self.bob):
            due = transport.next_timer()
            if due is not None and due <= self.now:
                transport.timer_fired(self.now)

    def meet(self) -> Pair:
        """Establish the session."""
        self.ann.add_peer("bob", B, self.now)
        self.ann.timer_fired(self.now)
        self.exchange()
        assert self.session.established
        return self

    @property
    def session(self) -> Session:
        """That of ann with bob."""
        return self.ann._peers.session("bob")

    def send(self, payload: bytes = b"x", to: str = "bob") -> int:
        accepted = self.ann.send(to, payload)
        assert accepted is not None
        mid: int = accepted[0]
        return mid


def payloads(transport: Transport[Any]) -> list[bytes]:
    """Take what was delivered."""
    transport.refill()
    taken = [delivery.payload for delivery in transport.messages]
    transport.messages.clear()
    return taken


_seen: dict[
    Transport[Any], list[PeerEvent]
] = {}  # objects that are compiled have no weak references


def events(transport: Transport[Any]) -> list[PeerEvent]:
    """All that a transport has reported about peers so far; a list to be cleared at will."""
    seen = _seen.setdefault(transport, [])
    while (event := transport.next_event()) is not None:
        if not isinstance(event, Delivered | Confirmed | Handled | MessageWithdrawn | Room):
            seen.append(event)
    return seen
