"""Vector-clock broadcast (Baldoni, Fig. 1): exactly causal order on any network without loss."""

from __future__ import annotations

import copy
import pickle
from random import Random
from typing import Any

import pytest

from causewire.core.bss import Bss, BssMessage
from causewire.core.endpoint import (
    Blocked,
    Delivery,
    LocalProtocolError,
    Packet,
    RemoteProtocolError,
    Wait,
)
from causewire.core.newtop import Null

from .broadcasts import Group, OrderError, play

ABC = ["a", "b", "c"]
OTHERS = ["b", "c"]


def endpoint(me: str = "a", group: Any = ABC) -> Bss:
    return Bss(me, group)


def test_a_packet_has_the_number_and_the_past_of_its_message() -> None:
    a = endpoint()
    a.receive("b", BssMessage(1, (0, 0), "x"))
    assert a.send(OTHERS, "y") == 1
    assert a.send(OTHERS, "z") == 2
    assert a.take_deliveries() == [Delivery("b", 1, "x")]
    assert a.take_packets() == [
        ("b", BssMessage(1, (1, 0), "y")),
        ("c", BssMessage(1, (1, 0), "y")),
        ("b", BssMessage(2, (1, 0), "z")),
        ("c", BssMessage(2, (1, 0), "z")),
    ]
    assert a.idle


def test_a_copy_to_oneself_is_delivered_inside_send() -> None:
    a = endpoint()
    a.send(ABC, "x")
    assert a.take_deliveries() == [Delivery("a", 1, "x")]
    assert [name for name, _ in a.take_packets()] == OTHERS


def test_blocked_names_the_last_missing_message_of_each_process() -> None:
    c = endpoint("c")
    c.receive("a", BssMessage(3, (2, 0), "late"))
    waits = (Wait("predecessor", "a", 2), Wait("predecessor", "b", 2))
    assert c.blocked() == [Blocked("a", 3, "c", "receiver", waits)]
    c.receive("a", BssMessage(1, (0, 0), "first"))
    assert c.blocked() == [Blocked("a", 3, "c", "receiver", waits)]
    c.receive("a", BssMessage(2, (0, 0), "second"))
    assert c.blocked() == [Blocked("a", 3, "c", "receiver", waits[1:])]
    c.receive("b", BssMessage(2, (0, 0), "b second"))
    assert c.blocked() == [
        Blocked("a", 3, "c", "receiver", waits[1:]),
        Blocked("b", 2, "c", "receiver", (Wait("predecessor", "b", 1),)),
    ]
    c.receive("b", BssMessage(1, (0, 0), "b first"))
    assert c.blocked() == []
    assert [d.payload for d in c.take_deliveries()] == [
        "first",
        "second",
        "b first",
        "b second",
        "late",
    ]


def test_footprint() -> None:
    c = endpoint("c")
    assert c.footprint()[:2] == (3, {"msg": 3})
    c.receive("a", BssMessage(2, (0, 0), "x"))
    assert c.footprint()[:2] == (3 + 3 + 1, {"msg": 3})
    assert BssMessage(2, (0, 0), "x").integers == 3
    c.send(["a", "b"], "y")
    assert {packet.integers for _, packet in c.take_packets()} == {3}


def test_a_copy_is_independent_and_equal_until_they_part() -> None:
    c = endpoint("c")
    c.receive("a", BssMessage(2, (0, 0), "x"))
    twin = copy.copy(c)
    assert twin == c
    assert hash(twin) == hash(c)
    twin.receive("a", BssMessage(1, (0, 0), "w"))
    assert twin != c
    assert len(c.blocked()) == 1
    c.receive("a", BssMessage(1, (0, 0), "w"))
    assert twin == c


def test_equality_does_not_depend_on_the_order_of_arrival() -> None:
    early = [("a", BssMessage(3, (0, 0), "x")), ("b", BssMessage(2, (0, 0), "y"))]
    one, two = endpoint("c"), endpoint("c")
    for source, packet in early:
        one.receive(source, packet)
    for source, packet in reversed(early):
        two.receive(source, packet)
    assert one == two
    assert hash(one) == hash(two)


def test_packets_survive_pickling() -> None:
    packet = BssMessage(2, (0, 5), ("any", "thing"))
    assert pickle.loads(pickle.dumps(packet)) == packet
    assert repr(packet) == "BssMessage(mid=2, past=(0, 5), payload=('any', 'thing'))"


@pytest.mark.parametrize(
    ("source", "packet"),
    [
        ("b", Null(1)),
        ("b", ("msg", 1, (0, 0), "x")),
        ("b", BssMessage(1, (0,), "too short")),
        ("b", BssMessage(1, (0, 0, 0), "too long")),
        ("b", BssMessage(2, (2, 0), "a has sent one message only")),
        ("b", BssMessage(3, (0, 0), "not what b sent as its third")),
        ("a", BssMessage(1, (0, 0), "from myself")),
        ("d", BssMessage(1, (0, 0), "from a stranger")),
    ],
)
def test_what_no_correct_peer_could_send(source: str, packet: Packet) -> None:
    a = endpoint()
    a.send(OTHERS, "x")
    a.receive("b", BssMessage(3, (1, 0), "third"))
    before = copy.copy(a)
    with pytest.raises(RemoteProtocolError):
        a.receive(source, packet)
    assert a == before


@pytest.mark.parametrize(
    "fields",
    [
        (0, (0, 0), "x"),
        (True, (0, 0), "x"),
        ("1", (0, 0), "x"),
        (1, [0, 0], "x"),
        (1, (0, -1), "x"),
        (1, (0, 0.0), "x"),
    ],
)
def test_malformed_packets(fields: Any) -> None:
    with pytest.raises(RemoteProtocolError):
        BssMessage(*fields)


@pytest.mark.parametrize("to", [[], "b", ["b"], ["a"], ["b", "c", "d"], 7])
def test_only_broadcasts(to: Any) -> None:
    a = endpoint()
    before = copy.copy(a)
    with pytest.raises(LocalProtocolError):
        a.send(to, "x")
    assert a == before


def test_a_group_is_needed_and_one_is_enough() -> None:
    with pytest.raises(LocalProtocolError):
        Bss("a")
    with pytest.raises(LocalProtocolError):
        Bss("a", ["b", "c"])
    alone = Bss("a", ["a"])
    assert alone.send("a", "x") == 1
    assert alone.take_deliveries() == [Delivery("a", 1, "x")]
    assert alone.idle


def missing_predecessors(group: Group, me: str, message: tuple[str, int]) -> set[Wait]:
    """By the definition: of each process, the last of what must come first."""
    last: dict[str, int] = {}
    for origin, mid in group.past[message] & group.missing(me):
        last[origin] = max(mid, last.get(origin, 0))
    return {Wait("predecessor", origin, mid) for origin, mid in last.items()}


@pytest.mark.parametrize("block", range(4))
def test_random_runs(block: int) -> None:
    """Safe, live and optimal: what is held is missing something, and blocked() says what."""
    held = 0
    for seed in range(100 * block, 100 * block + 100):
        rng = Random(seed)
        group = Group(Bss, rng.randint(2, 5))
        try:
            for me in play(group, rng, rng.randint(1, 20), fifo=False):
                for blocked in group[me].blocked():
                    waits = missing_predecessors(group, me, (blocked.origin, blocked.mid))
                    assert set(blocked.waits) == waits != set()
                    assert len(blocked.waits) == len(waits)
                    held += 1
            assert group.finished()
        except BaseException:
            print(f"seed {seed}")
            raise
    assert held > 100, "hardly anything was held back"


def test_duplicates_do_no_harm() -> None:
    again = 0
    for seed in range(150):
        rng = Random(seed)
        group = Group(Bss, 4)
        try:
            for _ in play(group, rng, 10, fifo=False):
                link = rng.choice(list(group.channels))
                if group.channels[link] and rng.random() < 0.4:
                    group.channels[link].append(rng.choice(group.channels[link]))
                    again += 1
            assert group.finished()
        except BaseException:
            print(f"seed {seed}")
            raise
    assert again > 1000


class AcceptsDuplicates(Bss):
    """Fig. 1 to the letter: the condition for the sender's entry is <= as well (ERRATA 7.6)."""

    def _known(self, source: Any, j: Any, message: Any) -> Any:
        return False


class CountsAfterTheUpcall(Bss):
    """Delivers, then counts (ERRATA 7.1)."""

    def _deliver(self, source: Any, mid: int, payload: Any) -> None:
        j = self.index[source]
        if source != self.me:
            self._v[j] = mid - 1
        super()._deliver(source, mid, payload)
        self._v[j] = mid


def test_the_letter_of_fig_1_delivers_duplicates() -> None:
    group = Group(AcceptsDuplicates, 2)
    group.send("p1")
    group.channels["p1", "p0"] *= 2
    group.hop("p1", "p0")
    with pytest.raises(OrderError, match="twice"):
        group.hop("p1", "p0")


@pytest.mark.parametrize("kind", [Bss, CountsAfterTheUpcall])
def test_state_comes_before_the_upcall(kind: type[Bss]) -> None:
    group = Group(kind, 3)
    group.react = lambda me: group.send(me) if me == "p0" else None
    group.send("p2")
    group.hop("p2", "p0")
    if kind is Bss:
        group.hop("p0", "p1")
        group.flush()
        assert group.delivered["p1"] == [("p2", 1), ("p0", 1)]
        assert group.finished()
    else:
        with pytest.raises(OrderError, match="before"):
            group.hop("p0", "p1")
