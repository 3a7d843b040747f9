"""PAK, PAK with credits (of sender and receiver) and PAK-NAK."""

from __future__ import annotations

import copy
import pickle
from collections import Counter
from collections.abc import Callable
from functools import partial
from random import Random
from typing import Any

import pytest

from causewire.core.bss import BssMessage
from causewire.core.endpoint import (
    Blocked,
    Delivery,
    LocalProtocolError,
    Packet,
    RemoteProtocolError,
    Wait,
)
from causewire.core.pak import Ack, Pak, PakCredit, PakMessage, PakNak

from .broadcasts import Group, play, verdict

ABC = ["a", "b", "c"]
OTHERS = ["b", "c"]

UNBOUNDED = 2**60
"""A modulus that is never reached: plain vector time."""

VARIANTS: dict[str, Callable[..., PakCredit]] = {
    "pak": Pak,
    "pak k=4": partial(Pak, k=4),
    "credit 2": PakCredit,
    "credit 3": partial(PakCredit, ct=3),
    "nak 2": PakNak,
    "nak 3": partial(PakNak, ct=3, k=8),
    "receiver 2/1": partial(PakCredit, ct=2, wr=1),
    "receiver 3/2": partial(PakCredit, ct=3, wr=2),
    "receiver 4/1": partial(PakCredit, ct=4, wr=1),
}


def ticks(variant: str) -> float:
    """Discarded messages have to be sent again."""
    return 0.1 if variant.startswith("receiver") else 0.0


variants = pytest.mark.parametrize("variant", VARIANTS)


# -- the send condition ---------------------------------------------------------


def released(endpoint: PakCredit) -> list[object]:
    """The payloads of what leaves for b."""
    return [p[2] for name, p in endpoint.take_packets() if name == "b" and p.kind == "msg"]


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


# -- modulo k -------------------------------------------------------------------


def residues(packet: Packet, k: int) -> tuple[Any, ...]:
    """A packet as it would look with counters modulo k."""
    if packet.kind == "ack":
        return ("ack", packet[1] % k)
    return ("msg", tuple(count % k for count in packet[1]), packet[2])


@variants
def test_modulo_k_decides_as_unbounded_vectors_do(variant: str) -> None:
    """In lock-step: the same packets, deliveries and reasons to wait at every step."""
    make = VARIANTS[variant]
    k = make("p0", ["p0"]).k
    wrapped = 0
    for seed in range(30):
        n = 3 + seed % 2
        small = Group(make, n)
        large = Group(partial(make, k=UNBOUNDED), n)
        runs = [play(group, Random(seed), 20, ticks=ticks(variant)) for group in (small, large)]
        try:
            for me, same in zip(*runs, strict=True):
                assert me == same
                assert small.delivered[me] == large.delivered[me]
                assert small[me].blocked() == large[me].blocked()
                for link in small.channels:
                    assert len(small.channels[link]) == len(large.channels[link])
                    if link[0] == me and small.channels[link]:
                        ours, theirs = small.channels[link][-1], large.channels[link][-1]
                        assert tuple(ours) == residues(theirs, k)
            wrapped += max(max(endpoint._v) for endpoint in small.endpoints.values()) >= k
        except BaseException:
            print(f"{variant}, seed {seed}")
            raise
    assert wrapped > 3, "hardly a counter went round"


class SmallK(PakCredit):
    """Takes a k that is too small."""

    _least_k = 1


class SmallKPak(Pak):
    _least_k = 1


class SmallKNak(PakNak):
    _least_k = 1


@pytest.mark.parametrize(
    "make",
    [
        partial(SmallKPak, k=2),
        partial(SmallK, ct=2, k=4),
        partial(SmallK, ct=3, k=6),
        partial(SmallKNak, ct=2, k=4),
        partial(SmallKNak, ct=3, k=6),
    ],
)
def test_k_of_2ct_is_too_small(make: Any) -> None:
    """ERRATA 8.1: 2ct + 1 is tight."""
    assert "causal" in {verdict(make, seed) for seed in range(60)}


# -- mistakes that must be caught -----------------------------------------------


class Lenient(PakCredit):
    """Does not refuse what falls out of the causal window, which would give it away."""

    def _in_window(self, vt: Any) -> Any:
        return True


class AnonymousAcks(Lenient):
    """Line S4 literally: one ack satisfies every broadcast that waits (ERRATA 8.3)."""

    def _receive_ack(self, j: Any, ack: Any) -> None:
        last = self._v[self._i]
        if self._acked[j] < last:
            self._acknowledge(j, last)


class CountsModuloK(PakNak):
    """Chooses what is acked by V[me] modulo k, not by a plain counter (ERRATA 8.4)."""

    _in_window = Lenient._in_window

    def _asks(self, number: Any) -> Any:
        while number > 0 and (number - 1) % self.k % self.ct != self.ct - 1:
            number -= 1
        return number


class CountsAfterTheUpcall(Pak):
    """Delivers, then counts (ERRATA 7.1)."""

    def _deliver(self, source: Any, mid: int, payload: Any) -> None:
        j = self.index[source]
        if source != self.me:
            self._v[j] -= 1
        super()._deliver(source, mid, payload)
        if source != self.me:
            self._v[j] += 1


class AcksAtOnce(PakCredit):
    """An ack takes effect though a message before it is not delivered."""

    _take_ack = PakCredit._acknowledge


class LenientAcksAtOnce(Lenient, AcksAtOnce):
    pass


@pytest.mark.parametrize(
    ("make", "how", "runs"),
    [
        (AnonymousAcks, "stuck", 60),
        (partial(AnonymousAcks, k=9), "stuck", 60),
        (AnonymousAcks, "causal", 400),
        (CountsModuloK, "stuck", 60),
        (partial(CountsModuloK, k=7), "stuck", 120),
        (CountsAfterTheUpcall, "causal", 60),
    ],
)
def test_known_bads_are_caught(make: Any, how: str, runs: int) -> None:
    assert any(verdict(make, seed) == how for seed in range(runs))


@pytest.mark.parametrize("k", [6, 8])
def test_counting_modulo_k_is_right_if_ct_divides_k(k: int) -> None:
    """ERRATA 8.4: the mistake shows at the wrap only."""
    assert {verdict(partial(CountsModuloK, k=k), seed) for seed in range(60)} == {"good"}


def test_taking_acks_at_once_makes_no_difference_if_nothing_is_discarded() -> None:
    """ERRATA 8.2, and more: not even a packet leaves earlier."""
    late = 0
    for seed in range(40):
        groups = [Group(kind, 3 + seed % 2) for kind in (PakCredit, AcksAtOnce)]
        for me, _ in zip(*(play(group, Random(seed), 20) for group in groups), strict=True):
            late += len(groups[0][me]._late)
            assert groups[0].channels == groups[1].channels, f"seed {seed}"
            assert groups[0].delivered == groups[1].delivered, f"seed {seed}"
    assert late > 10, "no ack ever waited"


def test_taking_acks_at_once_is_fatal_if_messages_are_discarded() -> None:
    """The remark of section 5.1 needs the rule that acks wait."""
    outcomes = {
        kind: {verdict(partial(kind, ct=2, wr=1), seed, ticks=0.1) for seed in range(40)}
        for kind in (PakCredit, AcksAtOnce, LenientAcksAtOnce)
    }
    assert outcomes == {
        PakCredit: {"good"},
        AcksAtOnce: {"good", "refused"},
        LenientAcksAtOnce: {"good", "stuck"},
    }


def test_fifo_channels_are_needed() -> None:
    """An ack overtakes a message: the window is exceeded, and the message waits for ever."""
    group = Group(Pak, 3)
    group.send("p0")
    group.send("p1")
    group.hop("p0", "p1")
    group.hop("p0", "p2")
    assert [packet.kind for packet in group.channels["p1", "p0"]] == ["msg", "ack"]
    group.hop("p1", "p0", 1)
    group.hop("p2", "p0")
    group.send("p0")
    group.hop("p0", "p2")
    group.hop("p1", "p2")
    waits = (Wait("predecessor", "p0", 3),)
    assert group["p2"].blocked() == [Blocked("p1", 1, "p2", "receiver", waits)]
    with pytest.raises(RemoteProtocolError, match="outside the window"):
        group.hop("p1", "p0")


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


# -- as values ------------------------------------------------------------------


def test_footprint() -> None:
    a = PakCredit("a", ABC)
    state = 3 + 1 + 2 * 2 + 2
    assert a.footprint()[:2] == (state, {"msg": 3, "ack": 1})
    a.receive("b", PakMessage((0, 0, 1), "x"))
    assert a.footprint().state == state + 4
    for payload in "xyz":
        a.send(OTHERS, payload)
    assert a.footprint().state == state + 4, "neither flight nor buffer has metadata"
    a.receive("b", Ack(1))
    assert a.footprint().state == state + 4 + 2
    assert {packet.integers for _, packet in a.take_packets()} == {3}
    assert Ack(1).integers == 1
    a = PakCredit("a", ABC, ct=3, wr=1)
    a.send(OTHERS, "x")
    a.send(OTHERS, "y")
    assert a.footprint().state == state + 2 * 3


@variants
def test_copies_are_independent_and_equal_until_they_part(variant: str) -> None:
    """At a random point of a random run; a copy and a copy of the copy get the same packet."""
    parted = 0
    for seed in range(8):
        rng = Random(seed)
        group = Group(VARIANTS[variant], 4)
        run = play(group, rng, 16, ticks=ticks(variant))
        for _ in range(rng.randint(5, 50)):
            next(run, None)
        for (source, me), packets in group.channels.items():
            if packets:
                endpoint = group[me]
                before = (hash(endpoint), endpoint.footprint(), endpoint.blocked())
                twin = copy.copy(endpoint)
                again = copy.copy(twin)
                assert endpoint == twin == again
                assert hash(twin) == hash(again) == before[0]
                twin.receive(source, packets[0])
                parted += twin != again
                again.receive(source, packets[0])
                assert twin == again
                assert hash(twin) == hash(again)
                assert (hash(endpoint), endpoint.footprint(), endpoint.blocked()) == before
    assert parted > 20


def test_options_are_part_of_the_state() -> None:
    kinds = [PakCredit("a", ABC), PakCredit("a", ABC, k=6), PakCredit("a", ABC, wr=1)]
    assert len({*kinds, PakNak("a", ABC), Pak("a", ABC)}) == 5


def test_what_was_discarded_is_part_of_the_state() -> None:
    """What matters of it is that it came: an ack behind it has to wait."""
    ends = [PakCredit("c", ABC, wr=1) for _ in range(2)]
    for c in ends:
        c.receive("b", PakMessage((1, 0, 0), "x"))
    ends[1].receive("b", PakMessage((1, 1, 0), "discarded"))
    assert ends[0] != ends[1]


def test_what_may_have_to_be_sent_again_is_part_of_the_state() -> None:
    ends = []
    for payload in "xy":
        a = PakCredit("a", ABC, wr=1)
        a.send(OTHERS, payload)
        a.take_packets()
        ends.append(a)
    assert ends[0] != ends[1]
    twin = copy.copy(ends[0])
    twin.receive("b", Ack(1))
    twin.receive("c", Ack(1))
    ends[0].retransmit()
    assert released(ends[0]) == ["x"]


@pytest.mark.parametrize("packet", [PakMessage((0, 2, 1), ("any", "thing")), Ack(0)])
def test_packets_survive_pickling(packet: Packet) -> None:
    assert pickle.loads(pickle.dumps(packet)) == packet


# -- bad input ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("source", "packet"),
    [
        ("b", BssMessage(1, (0, 0), "of another protocol")),
        ("b", ("ack", 1)),
        ("b", PakMessage((0, 1), "too short")),
        ("b", PakMessage((0, 1, 0, 0), "too long")),
        ("b", PakMessage((0, 7, 0), "not modulo k")),
        ("b", PakMessage((0, 1, 7), "not modulo k")),
        ("b", PakMessage((0, 0, 0), "b's first once more")),
        ("b", PakMessage((0, 2, 0), "b's third before its second")),
        ("b", PakMessage((3, 1, 0), "a has released two only")),
        ("b", PakMessage((6, 1, 0), "less than nothing from a")),
        ("b", PakMessage((0, 1, 3), "more from c than its credit")),
        ("b", PakMessage((0, 1, 6), "less than nothing from c")),
        ("c", PakMessage((0, 0, 0), "c's first once more")),
        ("b", Ack(2)),
        ("b", Ack(0)),
        ("b", Ack(4)),
        ("b", Ack(8)),
        ("c", Ack(2)),
        ("a", Ack(1)),
        ("d", Ack(1)),
        ("d", PakMessage((0, 0, 0), "from a stranger")),
    ],
)
def test_what_no_correct_peer_could_send(source: str, packet: Packet) -> None:
    """ct = 2, k = 7; a has released two, c acked one, b's first is here, c's first waits."""
    a = PakCredit("a", ABC, k=7)
    a.send(OTHERS, "x")
    a.send(OTHERS, "y")
    a.receive("b", PakMessage((0, 0, 0), "first"))
    a.receive("c", PakMessage((0, 2, 0), "waits"))
    a.receive("c", Ack(1))
    if source == "c" and packet == Ack(2):
        a.receive("c", Ack(2))
    before = copy.copy(a)
    with pytest.raises(RemoteProtocolError):
        a.receive(source, packet)
    assert a == before


@pytest.mark.parametrize(
    "packet",
    [
        PakMessage((0, 4, 0), "beyond the credit of b"),
        PakMessage((0, 3, 0), "skips the third"),
        PakMessage((0, 1, 0), "not what b sent as its second"),
        PakMessage((0, 6, 0), "as old as nothing of b can be"),
    ],
)
def test_what_no_correct_peer_could_send_again(packet: Packet) -> None:
    """With a receiver's credit, where duplicates are normal."""
    a = PakCredit("a", ABC, ct=3, wr=2)
    a.receive("b", PakMessage((0, 0, 1), "first"))
    a.receive("b", PakMessage((0, 1, 1), "second"))
    before = copy.copy(a)
    with pytest.raises(RemoteProtocolError):
        a.receive("b", packet)
    assert a == before
    a.receive("b", PakMessage((0, 1, 1), "second"))
    assert a == before


def test_more_than_the_credit_of_its_sender() -> None:
    a = PakCredit("a", ABC, ct=2)
    a.receive("b", PakMessage((0, 0, 1), "first"))
    a.receive("b", PakMessage((0, 1, 1), "second"))
    before = copy.copy(a)
    with pytest.raises(RemoteProtocolError, match="window"):
        a.receive("b", PakMessage((0, 2, 1), "third, with no ack for the first"))
    assert a == before


def test_an_ack_that_nak_does_not_ask_for() -> None:
    a = PakNak("a", ABC)
    a.send(OTHERS, "x")
    before = copy.copy(a)
    for number in range(5):
        with pytest.raises(RemoteProtocolError):
            a.receive("b", Ack(number))
    assert a == before


@pytest.mark.parametrize("vt", [[0, 0], (0, -1), (0, True), (0, "1"), None])
def test_malformed_packets(vt: Any) -> None:
    with pytest.raises(RemoteProtocolError):
        PakMessage(vt, "x")
    with pytest.raises(RemoteProtocolError):
        Ack(vt)


@pytest.mark.parametrize("to", [[], "b", ["b"], ["a"], ["b", "c", "d"]])
def test_only_broadcasts(to: Any) -> None:
    a = PakCredit("a", ABC)
    before = copy.copy(a)
    with pytest.raises(LocalProtocolError):
        a.send(to, "x")
    assert a == before


@pytest.mark.parametrize(
    "make",
    [
        partial(Pak, k=2),
        partial(PakCredit, ct=2, k=4),
        partial(PakNak, ct=3, k=6),
        partial(PakCredit, ct=0),
        partial(PakCredit, ct="2"),  # type: ignore[arg-type]
        partial(PakCredit, ct=True),
        partial(PakCredit, k=7.0),  # type: ignore[arg-type]
        partial(PakCredit, wr=0),
        partial(PakCredit, ct=2, wr=3),
    ],
)
def test_options_out_of_range(make: Any) -> None:
    with pytest.raises(LocalProtocolError):
        make("a", ABC)


@variants
def test_a_group_of_one(variant: str) -> None:
    alone = VARIANTS[variant]("a", ["a"])
    for number in range(1, 9):
        assert alone.send("a", "x") == number
    assert len(alone.take_deliveries()) == 8
    alone.retransmit()
    assert alone.blocked() == []
    assert alone.idle
