"""Messages, datagrams, addresses and silence: what a transport promises."""

from __future__ import annotations

import pytest

from causewire import protocols
from causewire.core.endpoint import LocalProtocolError
from causewire.transport import (
    PeerMoved,
    PeerSilent,
    PeerUp,
    Transport,
    TransportConfig,
)
from causewire.transport.carrier import is_native

from .pair import KEY, PLAIN_AND_SEALED, B, Pair, events, payloads


@PLAIN_AND_SEALED
def test_messages_arrive_once_and_in_order(key: bytes | None) -> None:
    pair = Pair(key=key).meet()
    for k in range(500):
        pair.send(b"%d" % k)
    pair.exchange()
    assert payloads(pair.bob) == [b"%d" % k for k in range(500)]
    assert pair.ann.idle
    assert pair.bob.idle
    assert pair.session.confirmed == 500


def test_messages_sent_before_the_peer_is_known_wait_for_it() -> None:
    pair = Pair()
    pair.ann.add_peer("bob", B, pair.now)
    pair.send(b"early")
    assert [reason.where for reason in pair.ann.blocked(pair.now)] == ["under way"]
    pair.meet()
    assert payloads(pair.bob) == [b"early"]


def test_who_is_unknown() -> None:
    with pytest.raises(LocalProtocolError, match="zoe"):
        Pair().meet().send(to="zoe")


def test_many_messages_share_a_datagram_and_acks_ride_on_data() -> None:
    pair = Pair(protocol="fifo").meet()
    for _ in range(100):
        pair.send(bytes(10))
    (datagram,) = pair.out(pair.ann)
    assert len(datagram) < 100 * 10 + 64
    pair.give(pair.bob, datagram)
    pair.bob.send("ann", b"answer")
    (datagram,) = pair.out(pair.bob)  # the acks of both kinds, and the answer
    pair.give(pair.ann, datagram)
    assert payloads(pair.ann) == [b"answer"]
    assert pair.session.confirmed == 100
    assert not pair.session.recovery.sent


def test_an_ack_alone_leaves_at_the_end_of_the_turn_and_ends_there() -> None:
    pair = Pair().meet()
    pair.send()
    assert pair.exchange() == 2  # the message, and the ack of it
    assert pair.ann.idle
    pair.later(pair.ann.config.ack_delay)
    assert pair.exchange() == 1  # the ack of that ack, when nothing came that it could share


@pytest.mark.parametrize("size", [0, 1, 1100, 1201, 5000, 100_000])
def test_payloads_of_any_size(size: int) -> None:
    pair = Pair().meet()
    payload = bytes(k % 251 for k in range(size))
    for each in (b"before", payload, b"after"):
        pair.send(each)
    for _ in range(20):
        pair.exchange()
    assert payloads(pair.bob) == [b"before", payload, b"after"]
    assert pair.ann.idle
    assert pair.ann.stats.lost == 0


def test_payloads_have_a_limit() -> None:
    pair = Pair(config=TransportConfig(message=1000)).meet()
    with pytest.raises(ValueError, match="1001 bytes"):
        pair.send(bytes(1001))
    pair.send(bytes(1000))


def test_a_message_longer_than_the_receiver_takes_is_dropped() -> None:
    pair = Pair()
    pair.bob = pair.start("bob", 2002, config=TransportConfig(message=1000, local_datagram=400))
    pair.meet()
    pair.send(bytes(5000))
    pair.exchange()
    assert payloads(pair.bob) == []
    assert pair.bob.stats.dropped["malformed"] > 0


# -- addresses and silence ---------------------------------------------------------


def test_a_peer_is_followed_to_its_new_address() -> None:
    pair = Pair().meet()
    elsewhere = ("127.0.0.1", 77)
    pair.bob.send("ann", b"from elsewhere")
    (datagram,) = pair.out(pair.bob)
    pair.ann.datagram_received(datagram, elsewhere, pair.now)
    assert not [event for event in events(pair.ann) if isinstance(event, PeerMoved)]
    challenge, *_ = [data for data, to in pair.ann.datagrams_to_send(pair.now) if to == elsewhere]
    pair.give(pair.bob, challenge)
    for data in pair.out(pair.bob):
        pair.ann.datagram_received(data, elsewhere, pair.now)
    assert PeerMoved("bob", elsewhere) in events(pair.ann)
    pair.send()
    assert {address for _, address in pair.ann.datagrams_to_send(pair.now)} == {elsewhere}


def test_an_old_datagram_from_elsewhere_moves_nobody() -> None:
    pair = Pair().meet()
    pair.bob.send("ann", b"one")
    (delayed,) = pair.out(pair.bob)
    pair.bob.send("ann", b"two")
    pair.give(pair.ann, *pair.out(pair.bob))
    pair.ann.datagram_received(delayed, ("127.0.0.1", 77), pair.now)
    assert pair.session.address == B


def test_silence_is_noticed_and_its_end_too() -> None:
    pair = Pair().meet()
    events(pair.ann).clear()
    pair.send(b"x")
    kept: list[bytes] = []
    for _ in range(20):
        kept += pair.out(pair.ann)
        pair.later(0.25)
    silent = [event for event in events(pair.ann) if isinstance(event, PeerSilent)]
    assert len(silent) == 1
    assert silent[0].seconds >= 3
    assert "nothing has come from bob for" in str(pair.ann.blocked(pair.now)[0])
    pair.give(pair.bob, *kept)
    pair.exchange()
    assert events(pair.ann)[-1] == PeerUp("bob")
    assert payloads(pair.bob) == [b"x"]


def test_a_peer_that_is_gone_gets_few_datagrams() -> None:
    """However much is waiting for it: no storm."""
    pair = Pair().meet()
    for _ in range(5000):
        pair.send(bytes(64))
    first = len(pair.out(pair.ann))
    assert first <= 17
    sent = 0
    for _ in range(600):
        pair.later(0.1)
        sent += len(pair.out(pair.ann))
    assert sent <= 2 * (60 / 2 + 8)  # a datagram and a greeting per timeout


def test_an_idle_peer_is_asked_for_a_sign_now_and_then() -> None:
    pair = Pair(config=TransportConfig(keepalive=5.0)).meet()
    count = 0
    for _ in range(60):
        pair.later(1.0)
        count += pair.exchange()
    assert 10 <= count <= 60


def test_the_whole_of_it_is_a_value_without_a_clock() -> None:
    """The same calls give the same bytes."""

    def bytes_of() -> list[bytes]:
        pair = Pair(key=KEY).meet()
        pair.send(b"x")
        return pair.out(pair.ann)

    assert bytes_of() == bytes_of()


def test_names_that_cannot_travel() -> None:
    for name in ("", "x" * 256, "a\0b", "tab\t"):
        with pytest.raises(ValueError, match="process name"):
            Transport(name, incarnation=1, entropy=bytes, protocol="csps")


def test_only_endpoints_whose_messages_fit_in_runs_are_driven_directly() -> None:
    native = {name for name in protocols.names() if is_native(protocols.describe(name))}
    assert native == {"adaptive", "csps", "sps", "fifo"}
