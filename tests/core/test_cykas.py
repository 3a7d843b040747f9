"""Cykas and its broken variants: state, misuse, and what they tell of themselves."""

from __future__ import annotations

import copy
import pickle
from collections import deque
from typing import Any

import pytest

from causewire import protocols
from causewire.core.cykas import (
    Ack,
    Cykas,
    CykasAsPrinted,
    CykasSecretSends,
    Eager,
    Normal,
    Yct,
)
from causewire.core.endpoint import (
    Blocked,
    Delivery,
    Endpoint,
    LocalProtocolError,
    RemoteProtocolError,
    Wait,
)
from causewire.core.mf import Ack as OtherAck

FAMILY = [Cykas, CykasAsPrinted, CykasSecretSends]


def kinds(endpoint: Endpoint) -> list[tuple[str, str]]:
    """The packets that an endpoint has to send: to whom, and of what kind."""
    return [(to, packet.kind) for to, packet in endpoint.take_packets()]


def busy(make: type[Cykas] = Cykas) -> Cykas:
    """Sent 1 to bob and 2 to carol, got a secret from dave, then sent on and on."""
    alice = make("alice")
    alice.send("bob", "x")
    alice.send("carol", "x")
    alice.receive("dave", Eager(7, "a secret"))
    for to in ("erin", "bob", "bob", "carol", "dave"):
        alice.send(to, "x")
    return alice


# -- Algorithms 1 to 5 --------------------------------------------------------


def test_normal_if_nothing_is_unacked_else_eager() -> None:
    alice = Cykas("alice")
    for to in ("bob", "carol", "bob"):
        alice.send(to, "x")
    assert kinds(alice) == [("bob", "normal"), ("carol", "eager")]
    alice.receive("bob", Ack())
    assert kinds(alice) == [("bob", "eager")]
    assert alice._eager_sent == {"carol": deque([set()]), "bob": deque([{"carol"}])}


def test_yct_waits_for_all_before_the_message_and_for_the_message() -> None:
    alice = Cykas("alice")
    for to in ("bob", "carol", "dave"):
        alice.send(to, "x")
    alice.take_packets()
    alice.receive("dave", Ack())
    alice.receive("bob", Ack())
    assert kinds(alice) == []
    alice.receive("carol", Ack())
    assert kinds(alice) == [("carol", "yct"), ("dave", "yct")]
    assert alice.idle


def test_yct_waits_for_a_later_message_to_the_same_receiver() -> None:
    """ERRATA 5.5: the test of UNACK[receiver] looks at the last message to it."""
    alice = Cykas("alice")
    for to in ("bob", "carol"):
        alice.send(to, "x")
    alice.receive("carol", Ack())
    alice.send("carol", "y")
    alice.take_packets()
    alice.receive("bob", Ack())
    assert kinds(alice) == []
    alice.receive("carol", Ack())
    assert kinds(alice) == [("carol", "yct"), ("carol", "yct")]


def test_a_yct_is_not_acked() -> None:
    """ERRATA 5.4."""
    bob = Cykas("bob")
    bob.receive("alice", Eager(1, "x"))
    assert kinds(bob) == [("alice", "ack")]
    bob.receive("alice", Yct())
    assert kinds(bob) == []


def test_secret_mode_lasts_until_the_last_yct() -> None:
    bob = Cykas("bob")
    bob.receive("alice", Eager(1, "x"))
    bob.receive("carol", Eager(1, "x"))
    bob.receive("alice", Eager(3, "x"))
    bob.take_packets()
    bob.send("dave", "y")
    for source, mode in [("alice", 2), ("carol", 1)]:
        bob.receive(source, Yct())
        assert bob.mode == mode
        assert kinds(bob) == []
    bob.receive("alice", Yct())
    assert bob.mode == 0
    assert kinds(bob) == [("dave", "normal")]


@pytest.mark.parametrize("make", FAMILY)
def test_a_copy_to_oneself_is_delivered_inside_send(make: type[Cykas]) -> None:
    alice = busy(make)
    alice.take_deliveries()
    assert alice.send("alice", "note") == 8
    assert alice.send({"alice", "carol"}, "both") == 9
    assert alice.take_deliveries() == [Delivery("alice", 8, "note"), Delivery("alice", 9, "both")]
    assert alice.blocked()[-1][:3] == ("alice", 9, "carol")


def test_secret_mode_binds_what_is_sent_from_inside_the_delivery() -> None:
    bob = Cykas("bob")
    bob.on_delivery = lambda delivery: bob.send("carol", "have you heard?") and None
    bob.receive("alice", Eager(2, "a secret"))
    assert kinds(bob) == [("alice", "ack")]
    bob.receive("alice", Yct())
    assert kinds(bob) == [("carol", "normal")]


def test_an_application_that_fails_does_not_keep_the_ack_back() -> None:
    def fail(_: Delivery) -> None:
        raise ZeroDivisionError

    bob = Cykas("bob")
    bob.on_delivery = fail
    with pytest.raises(ZeroDivisionError):
        bob.receive("alice", Normal(1, "x"))
    assert kinds(bob) == [("alice", "ack")]


# -- the known-bads -----------------------------------------------------------


def test_as_printed_is_not_live() -> None:
    """ERRATA 5.1: and `blocked` shows it, a message that waits for nothing."""
    alice = CykasAsPrinted("alice")
    alice.send("bob", "x")
    alice.send("bob", "y")
    alice.take_packets()
    alice.receive("bob", Ack())
    assert kinds(alice) == []
    assert alice.blocked() == [Blocked("alice", 2, "bob", "sender", ())]
    assert not alice.idle


def six_messages(make: type[Cykas]) -> list[str]:
    """ERRATA 5.2: what 0 has released to 2 when all of e's acks have come but d's."""
    zero = make("0")
    zero.send("2", "a")
    zero.send("1", "b")
    zero.receive("2", Ack())
    zero.send("2", "c")
    zero.receive("2", Ack())
    zero.send("1", "d")
    zero.send("2", "e")
    zero.receive("1", Ack())  # of b: now d leaves, and e eagerly, on its heels
    zero.receive("2", Ack())  # of e
    return [packet.kind for to, packet in zero.take_packets() if to == "2"]


def test_as_printed_lets_a_secret_out_too_early() -> None:
    assert six_messages(Cykas) == ["normal", "eager", "yct", "eager"]
    assert six_messages(CykasAsPrinted) == ["normal", "eager", "eager", "yct", "yct"]


def test_the_loop_as_printed_does_not_depend_on_names() -> None:
    """The order of the first eager messages is the order of the loop, and is state."""
    one, other = CykasAsPrinted("0"), CykasAsPrinted("0")
    for endpoint, order in ((one, "132"), (other, "123")):
        for to in order:
            endpoint.send(to, "x")
        for to in order:
            endpoint.receive(to, Ack())
        endpoint.take_packets()
    assert list(one._eager_sent) == ["3", "2"]
    assert one._eager_sent == other._eager_sent
    assert one != other


def test_secret_sends_tells_the_last_confidant_only() -> None:
    carol = CykasSecretSends("carol")
    carol.receive("bob", Eager(2, "x"))
    carol.receive("alice", Eager(2, "x"))
    carol.take_packets()
    carol.send("alice", "y")
    carol.send("bob", "y")
    assert kinds(carol) == [("alice", "normal")]
    carol.receive("bob", Eager(3, "x"))
    assert kinds(carol) == [("bob", "eager"), ("bob", "ack")]
    carol.receive("bob", Ack())
    carol.receive("bob", Yct())  # of the first secret, not of the last
    carol.send("bob", "z")
    assert kinds(carol) == [("bob", "eager")]


# -- misuse and bad input -----------------------------------------------------


@pytest.mark.parametrize("make", FAMILY)
@pytest.mark.parametrize("to", [[], {"bob", "carol"}, "", 7, {"bob", ""}, [["bob"]]])
def test_misuse_changes_nothing(make: type[Cykas], to: Any) -> None:
    alice = busy(make)
    before = copy.copy(alice)
    with pytest.raises(LocalProtocolError):
        alice.send(to, "x")
    assert alice == before
    assert alice.send("bob", "x") == 8


@pytest.mark.parametrize("make", FAMILY)
@pytest.mark.parametrize(
    ("source", "packet"),
    [
        ("erin", Ack()),  # nothing was released to erin yet
        ("stranger", Ack()),
        ("bob", Yct()),  # has told no secret
        ("stranger", Yct()),
        ("alice", Normal(1, "x")),  # from oneself
        ("", Eager(1, "x")),
        ("bob", OtherAck(1)),  # of another protocol
        ("bob", ("ack",)),
        ("bob", None),
    ],
)
def test_what_no_correct_peer_sends_changes_nothing(
    make: type[Cykas], source: str, packet: Any
) -> None:
    alice = busy(make)
    before = copy.copy(alice)
    with pytest.raises(RemoteProtocolError):
        alice.receive(source, packet)
    assert alice == before
    alice.receive("bob", Ack())


@pytest.mark.parametrize("mid", [0, -1, 1.0, "1", None, True])
def test_malformed_packets_cannot_be_made(mid: Any) -> None:
    for kind in (Normal, Eager):
        with pytest.raises(RemoteProtocolError):
            kind(mid, "x")


# -- what they tell of themselves ---------------------------------------------


def test_blocked() -> None:
    permit = Wait("permit", "dave", 7)
    waits = {(b.mid, b.destination): b.waits for b in busy().blocked()}
    assert waits == {
        (3, "erin"): (permit,),
        (4, "bob"): (permit, Wait("ack", "bob", 1)),
        (5, "bob"): (Wait("ack", "bob", 4),),  # which 4 must leave for, so all the rest too
        (6, "carol"): (Wait("ack", "bob", 4), Wait("ack", "carol", 2)),
        (7, "dave"): (Wait("ack", "bob", 4), Wait("ack", "carol", 2)),
    }
    assert Cykas("alice").blocked() == []


def test_footprint() -> None:
    packet = {"normal": 1, "eager": 1, "ack": 0, "yct": 0}
    assert Cykas("alice").footprint()[:2] == (1, packet)
    # 5 messages in OB, 2 unacked, 1 secret of 1 sender, 1 set of 1 name for 1 receiver
    assert busy().footprint()[:2] == (1 + 5 * 2 + 2 * 2 + 2 + 2, packet)


@pytest.mark.parametrize("make", FAMILY)
def test_a_copy_is_equal_and_independent(make: type[Cykas]) -> None:
    alice = busy(make)
    twin = copy.copy(alice)
    assert twin == alice
    assert hash(twin) == hash(alice)
    assert twin.blocked() == alice.blocked()
    for source, packet in [
        ("bob", Ack()),
        ("carol", Ack()),
        ("dave", Eager(9, "x")),
        ("frank", Eager(1, "x")),
        ("dave", Yct()),
    ]:
        twin.receive(source, packet)
    twin.send("bob", "y")
    assert twin != alice
    assert alice == busy(make)
    assert alice.blocked() == busy(make).blocked()


@pytest.mark.parametrize("make", FAMILY)
def test_state_has_no_history(make: type[Cykas]) -> None:
    """Neither the order of things past, nor the numbers of messages past, show."""
    one, other = make("alice"), make("alice")
    for endpoint, names, mids in ((one, ("bob", "dave"), (1, 5)), (other, ("dave", "bob"), (2, 3))):
        for name, mid in zip(names, mids, strict=True):
            endpoint.receive(name, Eager(mid, "x"))
        endpoint.receive("carol", Eager(1, "x"))
        endpoint.receive("carol", Yct())
        endpoint.take_packets()
        endpoint.take_deliveries()
    assert one == other
    assert hash(one) == hash(other)
    one.receive("bob", Yct())
    assert one != other
    for endpoint in (one, other):
        while endpoint.mode:
            endpoint.receive(next(iter(endpoint._secrets)), Yct())
    assert one == other == make("alice")


def test_the_repaired_protocol_keeps_no_empty_queues() -> None:
    alice = Cykas("alice")
    for to in ("bob", "carol"):
        alice.send(to, "x")
    for to in ("bob", "carol"):
        alice.receive(to, Ack())
    assert not alice._eager_sent


def test_packets_are_values() -> None:
    packets = [Normal(3, "x"), Eager(3, "x"), Ack(), Yct()]
    assert len(set(packets)) == 4
    for packet in packets:
        again = pickle.loads(pickle.dumps(packet))
        assert again == packet
        assert type(again) is type(packet)
    assert repr(packets) == "[Normal(mid=3, payload='x'), Eager(mid=3, payload='x'), Ack(), Yct()]"


def test_state_has_no_bound_while_one_receiver_is_stalled() -> None:
    """So the registry must not claim that space depends on the number of processes alone."""
    alice, bob = Cykas("alice"), Cykas("bob")
    alice.send("stalled", "x")
    alice.take_packets()
    sizes = []
    for k in range(60):
        alice.send("bob", k)
        for _, packet in alice.take_packets():
            bob.receive("alice", packet)
        for _, packet in bob.take_packets():
            alice.receive("bob", packet)
        if k % 20 == 19:
            sizes.append((alice.footprint().state, bob.footprint().state))
    assert sizes[1][0] - sizes[0][0] == sizes[2][0] - sizes[1][0] == 20
    assert sizes[1][1] - sizes[0][1] == sizes[2][1] - sizes[1][1] == 20
    assert "e" in protocols.describe("cykas").process_space
