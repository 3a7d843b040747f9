"""What strangers, copies and floods can do, and what they cannot."""

from __future__ import annotations

import os
from itertools import count
from random import Random
from typing import Any

import pytest

from causewire.transport import PeerMoved, PeerRefused, TransportConfig, seal
from causewire.transport.frames import put_because, read
from causewire.transport.heads import Greeting
from causewire.transport.noise import public_key
from causewire.transport.varint import MalformedError

from .pair import A, B, Pair, events, payloads

KEY, NEW_KEY = b"the cluster's key", b"another, newer key"
EVE = ("127.0.0.1", 666)
IDENTITIES = {"ann": b"a" * 32, "bob": b"b" * 32}


def talks(pair: Pair) -> bool:
    """Return whether a message from ann reaches bob."""
    pair.send(b"hello")
    for _ in range(20):
        pair.exchange()
        pair.later(0.1)
    return payloads(pair.bob) == [b"hello"]


# -- keys ------------------------------------------------------------------------------


def test_the_same_incarnations_never_share_keys() -> None:
    """A snapshot that is restored, incarnation included, does not repeat key and nonce."""
    pairs = [Pair(key=KEY, entropy=os.urandom).meet() for _ in range(2)]
    for pair in pairs:
        pair.send(b"secret")
    first, second = (pair.out(pair.ann)[0] for pair in pairs)
    assert first[1:9] != second[1:9]  # the tags of the sessions
    assert first[17:] != second[17:]


def test_a_greeting_never_repeats_its_nonce() -> None:
    pair = Pair(key=KEY)
    pair.ann.add_peer("bob", B, pair.now)
    greetings = []
    for _ in range(5):
        pair.later(5.0)
        greetings += pair.out(pair.ann)
    assert len(greetings) == len(set(greetings)) >= 4


def test_keys_move_on_and_old_datagrams_still_open(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(seal, "EPOCH", 4)
    pair = Pair(key=KEY).meet()
    late: list[bytes] = []
    for number in range(40):
        pair.send(b"%d" % number)
        datagrams = pair.out(pair.ann)
        if number % 5 == 2:
            late = datagrams
            continue
        pair.give(pair.bob, *datagrams)
        pair.give(pair.bob, *late)
        late = []
        pair.exchange()
    pair.exchange()
    assert payloads(pair.bob) == [b"%d" % number for number in range(40)]
    assert pair.session._sealing._epoch > 5  # type: ignore[attr-defined]
    assert "unverified" not in pair.bob.stats.dropped


def test_a_late_greeting_of_a_former_incarnation_does_not_spoil_the_keys_of_the_next() -> None:
    """ann establishes a session with a bob that is dead, while she meets the one that lives."""
    pair = Pair(key=KEY)

    def looks_for(transport: Any, name: str, address: Any) -> list[bytes]:
        transport.add_peer(name, address, pair.now)
        transport.timer_fired(pair.now)
        return pair.out(transport)

    pair.give(pair.bob, *looks_for(pair.ann, "bob", B))
    late = pair.out(pair.bob)  # what bob answered before he died
    pair.bob = pair.start("bob", 3001, entropy=Random(3001).randbytes)
    greeting = looks_for(pair.bob, "ann", A)
    pair.give(pair.ann, *greeting)
    pair.give(pair.bob, *pair.out(pair.ann))
    settled = pair.out(pair.bob)
    pair.give(pair.ann, *late, *greeting, *settled)
    assert pair.session.incarnation == 2001
    pair.send(b"to the dead")
    for _ in range(8):  # ann greets both of them, and bob's answers are lost
        pair.give(pair.ann, *greeting)
        pair.give(pair.bob, *pair.out(pair.ann))
        pair.out(pair.bob)
        pair.later(1.0)
    for _ in range(40):
        pair.exchange()
        pair.later(0.25)
    assert pair.session.incarnation == 3001
    assert talks(pair)


def test_the_last_of_many_handshakes_counts() -> None:
    """Two processes called ann greet bob in turn while he stands still; then one of them dies."""
    pair = Pair(key=KEY)
    pair.bob.add_peer("ann", A, pair.now)
    waiting = []
    for _ in range(8):
        rival = pair.start("ann", 500, entropy=os.urandom)
        for ann in (pair.ann, rival):
            ann.add_peer("bob", B, pair.now)
            ann.timer_fired(pair.now)
            waiting += pair.out(ann)
        pair.later(2.0)
    pair.give(pair.bob, *waiting)
    assert talks(pair)


def test_a_cluster_key_is_replaced_without_a_stop() -> None:
    for keys in (
        [[KEY], [KEY, NEW_KEY]],
        [[KEY, NEW_KEY], [NEW_KEY, KEY]],
        [[NEW_KEY, KEY], [NEW_KEY]],
    ):
        for ann, bob in (keys, keys[::-1]):
            pair = Pair()
            pair.ann = pair.start("ann", 1001, key=ann)
            pair.bob = pair.start("bob", 2001, key=bob)
            assert talks(pair.meet())


def test_members_with_other_keys_do_not_meet() -> None:
    pair = Pair()
    pair.ann = pair.start("ann", 1001, key=KEY)
    pair.bob = pair.start("bob", 2001, key=NEW_KEY)
    pair.ann.add_peer("bob", B, pair.now)
    for _ in range(10):
        pair.later(0.5)
        pair.exchange()
    assert not pair.session.established
    assert pair.bob.stats.dropped["unverified"] >= 3


def members(**changes: bytes) -> Pair:
    """A pair with key pairs; `changes` replaces private keys."""
    pair = Pair(key=KEY)
    public = {name: public_key(private) for name, private in IDENTITIES.items()}
    for name, born in (("ann", 1001), ("bob", 2001)):
        private = changes.get(name, IDENTITIES[name])
        others = {other: key for other, key in public.items() if other != name}
        made = pair.start(name, born, identity=private, identities=others)
        setattr(pair, name, made)
    pair.ann.add_peer("bob", B, pair.now)
    return pair


def test_members_with_key_pairs() -> None:
    pair = members()
    pair.later(0.1)
    pair.exchange()
    assert talks(pair)


@pytest.mark.parametrize("liar", ["ann", "bob"])
def test_a_member_cannot_speak_for_another(liar: str) -> None:
    """It has the cluster key, and takes the name of another one."""
    pair = members(**{liar: b"e" * 32})
    for _ in range(10):
        pair.later(0.5)
        pair.exchange()
    assert not pair.session.established
    assert not pair.bob._peers.session("ann").established


def test_a_peer_whose_public_key_is_unknown_is_refused_with_a_reason() -> None:
    pair = Pair(key=KEY)
    pair.ann = pair.start("ann", 1001, identity=b"a" * 32, identities={})
    pair.ann.add_peer("bob", B, pair.now)
    pair.ann.timer_fired(pair.now)
    (refused,) = [event for event in events(pair.ann) if isinstance(event, PeerRefused)]
    assert "public key of 'bob' is not known" in refused.reason


def test_key_pairs_need_a_cluster_key() -> None:
    with pytest.raises(ValueError, match="need a cluster key"):
        Pair(identity=b"a" * 32, identities={})


# -- addresses ---------------------------------------------------------------------------


@pytest.mark.parametrize("key", [None, KEY], ids=["plain", "sealed"])
def test_a_copy_from_elsewhere_does_not_divert_a_session(key: bytes | None) -> None:
    """A stranger races a copy of one datagram in each direction from his own address."""
    pair = Pair(key=key).meet()
    for sender, receiver in ((pair.ann, pair.bob), (pair.bob, pair.ann)):
        sender.send(pair.other(sender).me.name, b"x")
        for data in pair.out(sender):
            receiver.datagram_received(data, EVE, pair.now)  # the copy is faster
            pair.give(receiver, data)
    diverted = [
        address
        for transport in (pair.ann, pair.bob)
        for _, address in transport.datagrams_to_send(pair.now)
        if address == EVE
    ]
    assert len(diverted) <= 2  # a challenge each, and nothing else
    for _ in range(20):
        pair.later(0.1)
        pair.exchange()
    assert pair.session.address == B
    assert pair.bob._peers.session("ann").address == A
    assert not [e for t in (pair.ann, pair.bob) for e in events(t) if isinstance(e, PeerMoved)]


@pytest.mark.parametrize("key", [None, KEY], ids=["plain", "sealed"])
def test_copies_from_elsewhere_do_not_divert_a_handshake(key: bytes | None) -> None:
    """A stranger copies every greeting; his copies are faster, and come from his own address."""
    pair = Pair(key=key)
    pair.ann.add_peer("bob", B, pair.now)
    pair.ann.timer_fired(pair.now)
    came = went = 0
    receipt = None
    for _ in range(20):
        for sender, receiver in ((pair.ann, pair.bob), (pair.bob, pair.ann)):
            for data, address in sender.datagrams_to_send(pair.now):
                if address == EVE:
                    went += len(data)
                    continue
                came += len(data)
                receiver.datagram_received(data, EVE, pair.now)
                pair.give(receiver, data)
        if receipt is None and "ann" in pair.bob._peers.live:
            receipt = pair.bob.send("ann", b"x" * 20_000)
        pair.later(0.1)
    assert pair.session.address == B
    assert pair.bob._peers.session("ann").address == A
    assert 0 < went <= 3 * came
    assert payloads(pair.ann) == [b"x" * 20_000]


def test_an_address_that_only_greetings_name_gets_few_greetings() -> None:
    """A stranger sends a copy of one greeting, and nothing ever answers at his address."""
    pair = Pair(give_up_after=None)
    pair.bob.add_peer("ann", A, pair.now)
    pair.bob.timer_fired(pair.now)
    (greeting,) = pair.out(pair.bob)
    pair.ann.datagram_received(greeting, EVE, pair.now)
    assert pair.ann.send("bob", b"for whoever is there") is not None
    went = 0
    for _ in range(100):
        went += sum(len(data) for data, _ in pair.ann.datagrams_to_send(pair.now))
        pair.later(0.5)
    assert 0 < went <= 3 * len(greeting)


@pytest.mark.parametrize("key", [None, KEY], ids=["plain", "sealed"])
def test_two_that_were_both_diverted_find_each_other(key: bytes | None) -> None:
    pair = Pair(key=key).meet()
    pair.session.address = pair.bob._peers.session("ann").address = EVE
    pair.send(b"x")
    for _ in range(40):
        pair.later(0.1)
        for sender, receiver in ((pair.ann, pair.bob), (pair.bob, pair.ann)):
            for data, address in sender.datagrams_to_send(pair.now):
                if address != EVE:
                    pair.give(receiver, data)
    assert pair.session.address == B
    assert pair.bob._peers.session("ann").address == A
    assert [message.payload for message in pair.bob.messages] == [b"x"]


def test_a_peer_that_really_moved_is_followed() -> None:
    pair = Pair(key=KEY).meet()
    elsewhere = ("127.0.0.1", 3)
    pair.send(b"from elsewhere")
    for _ in range(4):
        for data in pair.out(pair.ann):
            pair.bob.datagram_received(data, elsewhere, pair.now)
        for data, address in pair.bob.datagrams_to_send(pair.now):
            if address == elsewhere:
                pair.give(pair.ann, data)
        pair.later(0.3)
    assert PeerMoved("ann", elsewhere) in events(pair.bob)
    assert pair.bob._peers.session("ann").address == elsewhere


def test_the_configured_address_stays_a_candidate() -> None:
    """A session was diverted all the same: the silent peer is looked for at home, too."""
    pair = Pair(key=KEY).meet()
    pair.session.address = EVE
    pair.send(b"x")
    addresses: set[tuple[str, int]] = set()
    for _ in range(40):
        pair.later(0.1)
        addresses.update(address for _, address in pair.ann.datagrams_to_send(pair.now))
    assert B in addresses


# -- floods --------------------------------------------------------------------------------


def test_forged_greetings_cost_one_hash(monkeypatch: pytest.MonkeyPatch) -> None:
    """No key is derived for a greeting that was not made with the cluster key."""
    pair = Pair(key=KEY).meet()
    pair.ann.add_peer("carol", EVE, pair.now)
    pair.ann.timer_fired(pair.now)
    genuine = next(d for d, address in pair.ann.datagrams_to_send(pair.now) if address == EVE)
    derived = count()
    real = seal._derive

    def counted(key: bytes, info: bytes) -> bytes:
        next(derived)
        return real(key, info)

    monkeypatch.setattr(seal, "_derive", counted)
    random = Random(1)
    for _ in range(500):
        forged = bytearray(genuine)
        forged[random.randrange(1, len(forged))] ^= random.randint(1, 255)
        pair.bob.datagram_received(bytes(forged), EVE, pair.now)
    assert pair.bob.stats.dropped["unverified"] == 500
    assert next(derived) == 0


@pytest.mark.parametrize("key", [None, KEY], ids=["plain", "sealed"])
def test_a_flood_of_genuine_greetings_is_bounded(key: bytes | None) -> None:
    """Recordings of real greetings: only a limited number per second is processed."""
    pair = Pair(key=key, config=TransportConfig(greetings_per_address=10))
    pair.ann.add_peer("bob", B, pair.now)
    pair.ann.timer_fired(pair.now)
    (greeting,) = pair.out(pair.ann)
    for _ in range(1000):
        pair.bob.datagram_received(greeting, EVE, pair.now)
    assert len(pair.bob.datagrams_to_send(pair.now)) == 20
    assert pair.bob.stats.dropped["too_many_greetings"] == 980
    pair.later(1.0)
    assert talks(pair.meet())


def test_answers_are_no_longer_than_three_times_what_came() -> None:
    for settings in ({}, {"key": KEY}):
        pair = Pair(**_any(settings))
        pair.ann.add_peer("bob", B, pair.now)
        pair.ann.timer_fired(pair.now)
        (greeting,) = pair.out(pair.ann)
        pair.bob.datagram_received(greeting, EVE, pair.now)
        answers = [data for data, address in pair.bob.datagrams_to_send(pair.now)]
        assert sum(map(len, answers)) <= 3 * len(greeting)


def _any(settings: dict[str, Any]) -> dict[str, Any]:
    return settings


# -- words of others -----------------------------------------------------------------------


def test_control_characters_of_a_peer_reach_nobody() -> None:
    escape = "\x1b[2J"
    with pytest.raises(MalformedError):
        read(put_because([escape], 100))
    greeting = Greeting(1, False, escape, 1, 1, 1, 1232, bytes(8), bytes(8))
    with pytest.raises(MalformedError):
        Greeting.decode(greeting.encode())
