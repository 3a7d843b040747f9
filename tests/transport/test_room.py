"""Room: a slow receiver holds back its sender, and memory is bounded at both ends."""

from __future__ import annotations

from typing import Any

from causewire.transport import (
    Room,
    TransportConfig,
)

from .pair import Pair, events, payloads

SMALL = TransportConfig(peer_messages=10, peer_bytes=1000, queue_messages=4, local_datagram=1232)


def test_a_slow_receiver_holds_back_its_sender_not_its_own_memory() -> None:
    pair = Pair(config=SMALL).meet()
    accepted = 0
    for _ in range(30):
        while pair.ann.room("bob"):
            pair.send(b"%d" % accepted)
            accepted += 1
        pair.exchange()
        pair.later(0.01)
    assert len(pair.bob.messages) == 4
    assert accepted == 4 + 10
    assert pair.session.confirmed == 4  # acked when there was room, no earlier
    assert pair.bob._peers.session("ann").inbound.messages == 10
    assert pair.bob._arrivals.stalled
    assert "application's queue" in str(pair.bob.blocked(pair.now)[-1])
    taken: list[bytes] = []
    while len(taken) < accepted:
        taken += payloads(pair.bob)
        pair.exchange()
    assert taken == [b"%d" % k for k in range(accepted)]
    assert pair.ann.idle


def test_room_is_bounded_in_bytes_too() -> None:
    pair = Pair(config=SMALL).meet()
    pair.send(bytes(999))
    assert pair.ann.room("bob")
    pair.send(bytes(10))
    assert not pair.ann.room("bob")
    pair.exchange()
    assert pair.ann.room("bob")


def test_room_for_all_peers_together() -> None:
    pair = Pair(config=TransportConfig(peer_messages=10, total_messages=15)).meet()
    pair.ann.add_peer("carol", ("127.0.0.1", 3), pair.now)
    for _ in range(10):
        pair.send()
    assert not pair.ann.room("bob")
    assert pair.ann.room("carol")
    for _ in range(5):
        pair.send(to="carol")
    assert not pair.ann.room("carol")
    pair.exchange()
    assert pair.ann.room("carol")


def test_credit_counts_as_taken_and_can_be_called_in() -> None:
    pair = Pair(config=TransportConfig(peer_messages=10, total_messages=12)).meet()
    pair.ann.add_peer("carol", ("127.0.0.1", 3), pair.now)
    session = pair.session
    for _ in range(3):
        assert pair.ann.try_send("bob", b"x") is not None
    assert session.credit == 7
    assert session.has_messages == 3
    for _ in range(5):
        pair.send(to="carol")
    assert pair.ann.status().accepted == 8
    assert session.credit == 0
    assert pair.ann.status().counters["sent"] == 8
    pair.exchange()
    assert session.has_messages == session.has_bytes == 0
    assert session.confirmed == 3


def test_who_sends_without_a_pause_is_paused_until_datagrams_have_left() -> None:
    pair = Pair().meet()
    events(pair.ann)
    accepted = 0
    while pair.ann.try_send("bob", b"x") is not None:
        accepted += 1
    assert 1000 < accepted < 3000
    assert pair.ann.next_event() is None
    assert pair.ann.room("bob")
    pair.out(pair.ann)
    assert pair.ann.next_event() == Room()
    assert pair.ann.try_send("bob", b"x") is not None


def test_send_takes_the_short_way_while_there_is_room_and_does_not_pause() -> None:
    pair = Pair().meet()
    acceptance = pair.ann._acceptance
    looked, accept = 0, acceptance._accept

    def counted(*arguments: Any) -> Any:
        nonlocal looked
        looked += 1
        return accept(*arguments)

    acceptance._accept = counted  # type: ignore[method-assign,assignment]
    sent = 0
    while pair.ann.send("bob", b"x") is not None:
        sent += 1
    assert sent == TransportConfig().peer_messages
    assert looked < sent / 1000
    pair.exchange()
    assert payloads(pair.bob)[:2] == [b"x", b"x"]


def test_who_was_turned_down_hears_of_room() -> None:
    pair = Pair(config=SMALL).meet()
    events(pair.ann)
    while pair.ann.send("bob", b"x") is not None:
        pass
    assert pair.ann.next_event() is None
    pair.exchange()
    found = []
    while (event := pair.ann.next_event()) is not None:
        found.append(event)
    assert Room() in found


def test_what_a_liar_sends_too_much_is_dropped() -> None:
    """Memory stays bounded when a peer does not keep to the window it was given."""
    pair = Pair(config=SMALL).meet()
    pair.session.outbound.peer_messages = pair.session.outbound.peer_bytes = 1 << 30
    for _ in range(500):
        pair.ann._carrier.send("bob", bytes(50))
    for _ in range(50):
        pair.exchange()
        pair.later(0.05)
    assert pair.bob._peers.session("ann").inbound.messages <= 2 * 10 + 60
    assert pair.bob.stats.dropped["no_room"] > 0
