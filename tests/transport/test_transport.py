"""Sessions, incarnations, seals, room, repair: what a transport promises."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from causewire import protocols
from causewire.core.endpoint import LocalProtocolError
from causewire.transport import (
    NodeRenumbered,
    NodeSuperseded,
    PeerLeft,
    PeerMoved,
    PeerRefused,
    PeerRestarted,
    PeerSilent,
    PeerUp,
    Room,
    Superseded,
    Transport,
    TransportConfig,
)
from causewire.transport.carrier import is_native

from .pair import A, B, Pair, events, payloads

KEY = b"sixteen bytes or more"
BOTH = pytest.mark.parametrize("key", [None, KEY], ids=["plain", "sealed"])


@BOTH
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
    assert [reason.where for reason in pair.ann.blocked(pair.now)] == ["held"]
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
    assert pair.exchange() == 3  # the message, the ack of it, the ack of that ack
    assert pair.ann.idle


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


# -- seals -------------------------------------------------------------------------


@BOTH
def test_any_change_of_a_datagram_is_found_out(key: bytes | None) -> None:
    pair = Pair(key=key).meet()
    pair.send(b"precious")
    (datagram,) = pair.out(pair.ann)
    for k in range(len(datagram)):
        pair.give(pair.bob, datagram[:k] + bytes([datagram[k] ^ 1]) + datagram[k + 1 :])
        pair.give(pair.bob, datagram[:k])
    assert sum(pair.bob.stats.dropped.values()) == 2 * len(datagram)
    assert payloads(pair.bob) == []
    pair.give(pair.bob, datagram)
    assert payloads(pair.bob) == [b"precious"]


@BOTH
def test_a_copy_of_a_datagram_changes_nothing(key: bytes | None) -> None:
    pair = Pair(key=key).meet()
    pair.send(b"once")
    (datagram,) = pair.out(pair.ann)
    pair.give(pair.bob, datagram, datagram)
    pair.exchange()
    pair.give(pair.bob, datagram)
    pair.exchange()
    assert payloads(pair.bob) == [b"once"]
    assert pair.bob.stats.dropped == {"duplicate": 2}


def test_encrypted_means_that_nothing_can_be_read() -> None:
    for key, legible in ((None, True), (KEY, False)):
        pair = Pair(key=key).meet()
        pair.send(b"secret plans")
        assert any(b"secret" in datagram for datagram in pair.out(pair.ann)) is legible


def test_another_key_is_no_key() -> None:
    pair = Pair(key=KEY)
    pair.bob = pair.start("bob", 2002, key=b"another key altogether")
    pair.ann.add_peer("bob", B, pair.now)
    pair.ann.timer_fired(pair.now)
    assert pair.exchange() == 1
    assert pair.bob.stats.dropped == {"unverified": 1}
    assert not pair.bob._peers.known


def test_keys_differ_by_direction_and_incarnation() -> None:
    pair = Pair(key=KEY).meet()
    pair.send(b"x")
    (first,) = pair.out(pair.ann)
    again = Pair(key=KEY)
    again.ann = again.start("ann", 1002, entropy=Random("later").randbytes)
    again.meet()
    again.send(b"x")
    (second,) = again.out(again.ann)
    assert first[1:9] != second[1:9]
    assert first[17:] != second[17:]
    again.give(again.bob, first)
    assert again.bob.stats.dropped["unknown_session"] == 1


def test_a_short_key_is_refused() -> None:
    with pytest.raises(ValueError, match="16"):
        Pair(key=b"short")


# -- incarnations ------------------------------------------------------------------


@BOTH
def test_a_peer_that_restarts_is_another_process(key: bytes | None) -> None:
    pair = Pair(key=key).meet()
    pair.send(b"one")
    pair.exchange()
    payloads(pair.bob)
    failing = pair.send(b"lost with the first bob")
    session = pair.session
    stale = pair.out(pair.ann)
    pair.bob = pair.start("bob", 2002)
    pair.bob.add_peer("ann", A, pair.now)
    pair.bob.timer_fired(pair.now)
    pair.exchange()
    assert PeerRestarted("bob", 1) in events(pair.ann)
    assert session.over
    assert session.confirmed < failing
    assert pair.ann.idle  # nobody waits for the dead
    pair.give(pair.bob, *stale)
    assert pair.bob.stats.dropped["unknown_session"] == 1
    pair.send(b"two")
    pair.exchange()
    assert payloads(pair.bob) == [b"two"]
    pair.bob.send("ann", b"three")
    pair.exchange()
    assert [(d.source, d.payload) for d in pair.ann.messages] == [("bob", b"three")]


def test_a_dead_peer_is_found_out_by_whoever_sends_to_it() -> None:
    """The new bob knows nobody; ann's timer brings them together."""
    pair = Pair().meet()
    pair.bob = pair.start("bob", 2002)
    pair.send(b"x")
    for _ in range(8):
        pair.exchange()
        pair.later(0.5)
    assert any(isinstance(event, PeerRestarted) for event in events(pair.ann))


@BOTH
def test_recorded_greetings_are_of_no_use(key: bytes | None) -> None:
    """Of an incarnation that is gone: they change nothing."""
    pair = Pair(key=key)
    recorded = []
    pair.ann.add_peer("bob", B, pair.now)
    pair.ann.timer_fired(pair.now)
    for _ in range(3):
        for transport in (pair.ann, pair.bob):
            for data in pair.out(transport):
                recorded.append((transport, data))
                pair.give(pair.other(transport), data)
    assert pair.session.established
    pair.bob = pair.start("bob", 2002)
    pair.bob.add_peer("ann", A, pair.now)
    pair.bob.timer_fired(pair.now)
    pair.exchange()
    session = pair.session
    events(pair.ann).clear()
    for transport, data in recorded:
        pair.give(pair.bob if transport is pair.ann else pair.ann, data)
    pair.exchange()
    assert pair.session is session
    assert not events(pair.ann)
    pair.send(b"all is well")
    pair.exchange()
    assert payloads(pair.bob) == [b"all is well"]


def test_an_old_greeting_does_not_fool_one_who_just_started() -> None:
    pair = Pair(key=KEY)
    pair.bob.add_peer("ann", A, pair.now)
    pair.bob.timer_fired(pair.now)
    (old,) = pair.out(pair.bob)
    pair.bob = pair.start("bob", 2002)
    pair.give(pair.ann, old)
    assert "bob" not in pair.ann._live


def meet_again(pair: Pair, newcomer: Transport[Any]) -> Transport[Any]:
    """Let another bob meet ann; returns the former one."""
    former, pair.bob = pair.bob, newcomer
    newcomer.add_peer("ann", A, pair.now)
    newcomer.timer_fired(pair.now)
    pair.exchange()
    pair.later(0.01)
    pair.exchange()
    return former


def test_a_number_that_is_too_low_is_raised() -> None:
    """The clock was set back before a restart: a peer knows better, and says so."""
    pair = Pair().meet()
    pair.send(b"x")
    pair.exchange()
    meet_again(pair, pair.start("bob", 1999))
    assert pair.bob.me.incarnation > 2001
    assert NodeRenumbered("bob", pair.bob.me.incarnation) in events(pair.bob)
    assert PeerRestarted("ann", 0) not in events(pair.bob)
    assert pair.session.incarnation == pair.bob.me.incarnation
    pair.send(b"to the new one")
    pair.exchange()
    assert payloads(pair.bob) == [b"to the new one"]


def test_a_number_that_is_too_low_is_not_raised_beyond_reason() -> None:
    pair = Pair()
    pair.ann._peers.floors["bob"] = (1 << 63) - 1
    pair.bob.add_peer("ann", A, pair.now)
    pair.bob.timer_fired(pair.now)
    pair.exchange()
    assert pair.bob.me.incarnation == 2001


def test_one_who_was_superseded_is_told_and_cannot_send() -> None:
    pair = Pair().meet()
    former = meet_again(pair, pair.start("bob", 3001))
    told = [data for data, _ in pair.ann.datagrams_to_send(pair.now)]
    assert not told  # that was at once
    former.send("ann", b"x")
    for _ in range(5):
        for data, _ in former.datagrams_to_send(pair.now):
            pair.give(pair.ann, data)
        for data in pair.out(pair.ann):
            former.datagram_received(data, A, pair.now)
        pair.later(0.5)
        former.timer_fired(pair.now)
    assert NodeSuperseded("bob", 3001) in events(former)
    with pytest.raises(Superseded, match="rejoin"):
        former.try_send("ann", b"x")


def test_goodbye() -> None:
    pair = Pair().meet()
    pair.send(b"x")
    pair.exchange()
    mid = pair.send(b"too late")
    session = pair.session
    pair.bob.close()
    pair.give(pair.ann, *pair.out(pair.bob))
    assert events(pair.ann)[-1] == PeerLeft("bob", 1)
    assert session.over
    assert session.confirmed == mid - 1


def test_protocols_must_agree() -> None:
    pair = Pair()
    pair.bob = pair.start("bob", 2002, protocol="sps")
    pair.ann.add_peer("bob", B, pair.now)
    pair.ann.timer_fired(pair.now)
    pair.exchange()
    assert events(pair.bob) == [PeerRefused("ann", "it runs csps, this is sps")]


def test_a_protocol_on_a_link_does_not_let_a_peer_in_again() -> None:
    pair = Pair(protocol="ks", peers=("ann", "bob")).meet()
    pair.send(b"x")
    pair.exchange()
    pair.bob = pair.start("bob", 2002)
    pair.bob.add_peer("ann", A, pair.now)
    pair.bob.timer_fired(pair.now)
    pair.exchange()
    kinds = [type(event) for event in events(pair.ann)]
    assert PeerRestarted in kinds
    assert "bob" not in pair.ann._live


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


# -- repair ------------------------------------------------------------------------


def test_a_lost_datagram_is_repaired_without_waiting_for_a_timeout() -> None:
    pair = Pair().meet()
    for k in range(6):
        pair.send(b"%d" % k)
        data = pair.out(pair.ann)
        if k != 1:
            pair.give(pair.bob, *data)
        pair.now += 0.001
    assert pair.ann.stats.timeouts == 0
    pair.exchange()
    assert payloads(pair.bob) == [b"%d" % k for k in range(6)]
    assert pair.ann.stats.timeouts == 0
    assert pair.ann.stats.resent == 1


def test_messages_that_leave_again_are_counted_one_by_one() -> None:
    pair = Pair().meet()
    for k in range(5):
        pair.send(b"%d" % k)
    assert len(pair.out(pair.ann)) == 1  # and it is lost, with all of them
    for k in range(5, 9):
        pair.send(b"%d" % k)
        pair.give(pair.bob, *pair.out(pair.ann))
        pair.now += 0.001
    pair.exchange()
    assert payloads(pair.bob) == [b"%d" % k for k in range(9)]
    assert pair.ann.stats.resent == 5


def test_reordering_teaches_patience() -> None:
    pair = Pair().meet()
    for _ in range(8):
        late = []
        for _ in range(6):
            pair.send()
            late += pair.out(pair.ann)
        for data in [*late[1:], late[0]]:
            pair.give(pair.bob, data)
            pair.give(pair.ann, *pair.out(pair.bob))
        pair.exchange()
        pair.now += 0.001
    assert 1 <= pair.ann.stats.lost <= 3
    assert len(payloads(pair.bob)) == 48


def test_a_lost_permit_is_told_again() -> None:
    """Nothing else is under way, so only the datagram's ack can tell."""
    pair = Pair().meet()
    pair.send(b"one")
    pair.send(b"two")  # flagged: its permit follows
    pair.give(pair.bob, *pair.out(pair.ann))
    pair.give(pair.ann, *pair.out(pair.bob))
    assert pair.out(pair.ann)  # the permit, lost
    pair.bob.send("ann", b"held")
    pair.bob.datagrams_to_send(pair.now)
    assert "permit of ann" in str(pair.bob.blocked(pair.now)[0])
    for _ in range(5):
        pair.later(0.3)
        pair.exchange()
    assert payloads(pair.ann) == [b"held"]


# -- room --------------------------------------------------------------------------

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
    """`adaptive` derives from the FIFO endpoint, but its messages carry entries."""
    native = {name for name in protocols.names() if is_native(protocols.describe(name))}
    assert native == {"csps", "sps", "fifo"}
