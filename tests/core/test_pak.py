"""PAK, PAK with credits (of sender and receiver) and PAK-NAK: when they send, what they hold."""

from __future__ import annotations

from collections import Counter
from random import Random
from typing import Any

from causewire.core.endpoint import (
    Blocked,
    Delivery,
    Wait,
)
from causewire.core.pak import Ack, Pak, PakCredit, PakMessage, PakNak

from .broadcasts import Group, play
from .pak_variants import ABC, OTHERS, VARIANTS, released, ticks, variants

# -- the send condition ---------------------------------------------------------


def test_stop_and_wait() -> None:
    a = Pak("a", ABC)
    assert [a.send(OTHERS, payload) for payload in "xyz"] == [1, 2, 3]
    assert a.take_packets() == [
        ("b", PakMessage((0, 0, 0), "x")),
        ("c", PakMessage((0, 0, 0), "x")),
    ]
    a.receive("b", Ack(1))
    assert a.take_packets() == []
    a.receive("c", Ack(1))
    assert a.take_packets() == [
        ("b", PakMessage((1, 0, 0), "y")),
        ("c", PakMessage((1, 0, 0), "y")),
    ]
    a.receive("c", Ack(2))
    a.receive("b", Ack(2))
    assert released(a) == ["z"]
    assert not a.idle
    a.receive("c", Ack(0))
    a.receive("b", Ack(0))
    assert a.idle


def test_credits() -> None:
    a = PakCredit("a", ABC, ct=3)
    for payload in "uvwxyz":
        a.send(OTHERS, payload)
    assert released(a) == ["u", "v", "w"]
    a.receive("b", Ack(1))
    a.receive("b", Ack(2))
    assert released(a) == []
    a.receive("c", Ack(1))
    assert released(a) == ["x"]
    a.receive("c", Ack(2))
    assert released(a) == ["y"]
    a.receive("c", Ack(3))
    assert released(a) == []
    a.receive("b", Ack(3))
    assert released(a) == ["z"]


def test_nak_waits_for_the_acks_of_every_ctth_message() -> None:
    a = PakNak("a", ABC, ct=3)
    for payload in "tuvwxyz":
        a.send(OTHERS, payload)
    assert released(a) == ["t", "u", "v"]
    a.receive("b", Ack(3))
    assert released(a) == []
    a.receive("c", Ack(3))
    assert released(a) == ["w", "x", "y"]
    a.receive("c", Ack(6))
    a.receive("b", Ack(6))
    assert released(a) == ["z"]
    assert a.idle, "a message that asks for no ack leaves nothing to wait for"


def test_who_acknowledges_what() -> None:
    acks: dict[Any, Any] = {}
    for name, make in {"credit": PakCredit, "nak": PakNak}.items():
        b = make("b", ABC, ct=2)
        acks[name] = []
        for number in range(5):
            b.receive("a", PakMessage((number, 0, 0), "x"))
            acks[name] += b.take_packets()
    assert acks["credit"] == [("a", Ack(number)) for number in (1, 2, 3, 4, 0)]
    assert acks["nak"] == [("a", Ack(number)) for number in (2, 4)]


def test_vector_time_is_that_of_the_release() -> None:
    a = Pak("a", ABC)
    a.send(OTHERS, "x")
    a.send(OTHERS, "y")
    a.take_packets()
    a.receive("b", PakMessage((0, 0, 0), "of b"))
    a.receive("b", Ack(1))
    a.receive("c", Ack(1))
    assert a.take_packets()[1:] == [(name, PakMessage((1, 1, 0), "y")) for name in OTHERS]


def test_a_copy_to_oneself_is_delivered_inside_send_even_if_the_message_waits() -> None:
    a = Pak("a", ABC)
    a.send(ABC, "x")
    a.send(ABC, "y")
    assert a.take_deliveries() == [Delivery("a", 1, "x"), Delivery("a", 2, "y")]
    assert len(a.blocked()) == 2


def test_numbers_are_counted_by_the_receiver() -> None:
    b = Pak("b", ABC)
    for number in range(7):
        b.receive("a", PakMessage((number % 3, 0, 0), "x"))
    assert [d.mid for d in b.take_deliveries()] == [1, 2, 3, 4, 5, 6, 7]


def test_the_ack_leaves_before_what_the_application_sends_on_delivery() -> None:
    b = PakCredit("b", ABC)
    b.on_delivery = lambda delivery: b.send(["a", "c"], "reaction")
    b.receive("a", PakMessage((0, 0, 0), "x"))
    kinds = [packet.kind for name, packet in b.take_packets() if name == "a"]
    assert kinds == ["ack", "msg"]


# -- what is held, and why ------------------------------------------------------


def test_blocked_at_the_sender() -> None:
    a = PakCredit("a", ABC, ct=2)
    for payload in "vwxyz":
        a.send(OTHERS, payload)
    a.receive("b", Ack(1))

    def expected(number: int, *waits: Wait) -> list[Blocked]:
        return [Blocked("a", number, name, "sender", waits) for name in OTHERS]

    assert a.blocked() == [
        *expected(3, Wait("ack", "c", 1)),
        *expected(4, Wait("ack", "b", 2), Wait("ack", "c", 2)),
        *expected(5, Wait("ack", "b", 3), Wait("ack", "c", 3)),
    ]


def test_blocked_at_the_sender_nak() -> None:
    a = PakNak("a", ABC, ct=2)
    for payload in "vwxyz":
        a.send(OTHERS, payload)
    a.receive("b", Ack(2))
    waits = {blocked.mid: blocked.waits for blocked in a.blocked()}
    assert waits == {
        3: (Wait("ack", "c", 2),),
        4: (Wait("ack", "c", 2),),
        5: (Wait("ack", "b", 4), Wait("ack", "c", 4)),
    }


def test_blocked_at_the_receiver() -> None:
    c = PakCredit("c", ABC, ct=2)
    c.receive("b", PakMessage((2, 0, 0), "x"))
    c.receive("b", PakMessage((2, 1, 0), "y"))
    assert c.blocked() == [
        Blocked("b", 1, "c", "receiver", (Wait("predecessor", "a", 2),)),
        Blocked(
            "b", 2, "c", "receiver", (Wait("predecessor", "a", 2), Wait("predecessor", "b", 1))
        ),
    ]
    c.receive("a", PakMessage((0, 0, 0), "v"))
    assert len(c.blocked()) == 2
    c.receive("a", PakMessage((1, 0, 0), "w"))
    assert c.blocked() == []
    assert [d.payload for d in c.take_deliveries()] == ["v", "w", "x", "y"]


def test_an_ack_waits_for_the_messages_before_it() -> None:
    c = Pak("c", ABC)
    c.send(["a", "b"], "mine")
    c.send(["a", "b"], "next")
    c.receive("b", PakMessage((1, 0, 0), "depends on a's first"))
    c.receive("b", Ack(1))
    waits = (Wait("ack", "a", 1), Wait("predecessor", "b", 1))
    assert {b.waits for b in c.blocked() if b.where == "sender"} == {waits}
    c.receive("a", PakMessage((0, 0, 0), "first"))
    assert {b.waits for b in c.blocked()} == {waits[:1]}
    c.take_packets()
    c.receive("a", Ack(1))
    assert c.take_packets() == [(name, PakMessage((1, 1, 1), "next")) for name in ("a", "b")]


def test_each_ack_waits_for_its_own_messages() -> None:
    c = PakCredit("c", ABC)
    for payload in "wxyz":
        c.send(["a", "b"], payload)

    def waits_for_b() -> dict[int, Wait]:
        return {b.mid: b.waits[-1] for b in c.blocked() if b.where == "sender"}

    c.receive("b", PakMessage((1, 0, 0), "depends on a's first"))
    c.receive("b", Ack(1))
    assert waits_for_b() == {3: Wait("predecessor", "b", 1), 4: Wait("ack", "b", 2)}
    c.receive("b", PakMessage((1, 1, 0), "so does this"))
    c.receive("b", Ack(2))
    assert waits_for_b() == {3: Wait("predecessor", "b", 1), 4: Wait("predecessor", "b", 2)}


def met(endpoint: PakCredit, wait: Wait) -> bool:
    j = endpoint.index[wait.peer]
    if wait.kind == "predecessor":
        return endpoint._v[j] >= wait.mid
    assert wait.kind == "ack"
    return endpoint._acked[j] >= wait.mid


@variants
def test_random_runs(variant: str) -> None:
    """Safe and live; blocked() has no wait that is met, and what leaves it has none unmet."""
    make = VARIANTS[variant]
    places = set()
    for seed in range(50):
        rng = Random(seed)
        group = Group(make, rng.randint(2, 5))
        before: Any = {name: [] for name in group.names}
        try:
            for me in play(group, rng, rng.randint(1, 24), ticks=ticks(variant)):
                endpoint = group[me]
                blocked = endpoint.blocked()
                still = {b[:4] for b in blocked}
                assert len(still) == len(blocked)
                for b in blocked:
                    assert b.waits
                    assert not any(met(endpoint, wait) for wait in b.waits)
                    places.add(b.where)
                for b in before[me]:
                    if b[:4] not in still:
                        assert all(met(endpoint, wait) for wait in b.waits)
                before[me] = blocked
            group.settle()
            assert group.finished()
        except BaseException:
            print(f"{variant}, seed {seed}")
            raise
    assert places == {"sender", "receiver"}, "nothing was ever held back there"


@variants
def test_a_receiver_holds_no_more_than_its_credit(variant: str) -> None:
    most = 0
    make = VARIANTS[variant]
    for seed in range(40):
        rng = Random(seed)
        group = Group(make, 4)
        for me in play(group, rng, 24, ticks=ticks(variant)):
            here = [b for b in group[me].blocked() if b.where == "receiver"]
            index, wr = group[me].index, group[me].wr
            assert all(b.mid <= group[me]._v[index[b.origin]] + wr for b in here)
            held = Counter(b.origin for b in here)
            most = max([most, *held.values()])
            assert most <= wr
    assert most == make("p0", ["p0"]).wr


# -- the receiver's credit ------------------------------------------------------


def test_what_is_beyond_the_receivers_credit_is_discarded_and_sent_again() -> None:
    c = PakCredit("c", ABC, ct=2, wr=1)
    x, y = PakMessage((1, 0, 0), "x"), PakMessage((1, 1, 0), "y")
    c.receive("b", x)
    c.receive("b", y)
    assert [b.mid for b in c.blocked()] == [1], "y was discarded"
    c.receive("a", PakMessage((0, 0, 0), "w"))
    assert [d.payload for d in c.take_deliveries()] == ["w", "x"]
    assert c.take_packets() == [("a", Ack(1)), ("b", Ack(1))]
    c.receive("b", x)
    assert c.take_packets() == [], "known, and acknowledged already"
    c.receive("b", y)
    assert c.take_packets() == [("b", Ack(2))]
    assert c.take_deliveries() == [Delivery("b", 2, "y")]


def test_a_gap_that_discarding_left_is_filled() -> None:
    c = PakCredit("c", ABC, ct=4, wr=2)
    stream = [PakMessage((1, number, 0), number) for number in range(4)]
    for message in stream[:3]:
        c.receive("b", message)
    c.receive("a", PakMessage((0, 0, 0), "w"))
    assert [d.payload for d in c.take_deliveries()] == ["w", 0, 1]
    c.receive("b", stream[3])
    assert c.blocked() == [Blocked("b", 4, "c", "receiver", (Wait("predecessor", "b", 3),))]
    c.receive("b", stream[3])
    c.receive("b", stream[2])
    assert [d.payload for d in c.take_deliveries()] == [2, 3]


def test_retransmit_sends_each_what_it_has_not_acknowledged() -> None:
    a = PakCredit("a", ABC, ct=3, wr=1)
    for payload in "xyz":
        a.send(OTHERS, payload)
    _, y, z = [packet for name, packet in a.take_packets() if name == "b"]
    a.receive("b", Ack(1))
    a.receive("c", Ack(1))
    a.receive("c", Ack(2))
    a.retransmit()
    assert a.take_packets() == [("b", y), ("b", z), ("c", z)]
    a.receive("b", Ack(2))
    a.receive("b", Ack(3))
    a.receive("c", Ack(3))
    a.retransmit()
    assert a.take_packets() == []
    assert a.idle


def test_nothing_is_sent_again_if_nothing_is_discarded() -> None:
    a = PakCredit("a", ABC)
    a.send(OTHERS, "x")
    a.take_packets()
    a.retransmit()
    assert a.take_packets() == []
