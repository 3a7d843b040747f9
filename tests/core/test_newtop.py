"""Newtop: one Lamport clock per message, null messages, one order for all."""

from __future__ import annotations

import copy
import pickle
from itertools import combinations
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
from causewire.core.newtop import Newtop, NewtopMessage, Null

from .broadcasts import Group, OrderError, play, verdict

ABC = ["a", "b", "c"]
OTHERS = ["b", "c"]


def endpoint(me: str = "a", group: Any = ABC) -> Newtop:
    return Newtop(me, group)


def eager(me: str, group: list[str]) -> Newtop:
    return Newtop(me, group, eager_nulls=True)


def test_a_message_waits_for_word_from_everybody() -> None:
    a = endpoint()
    a.receive("b", NewtopMessage(1, "x"))
    assert a.take_deliveries() == []
    assert a.blocked() == [Blocked("b", 1, "a", "receiver", (Wait("word", "c", 1),))]
    a.receive("c", Null(1))
    assert a.take_deliveries() == [Delivery("b", 1, "x")]
    assert a.blocked() == []


def test_delivery_in_the_order_of_clock_and_name() -> None:
    a = endpoint()
    a.receive("c", NewtopMessage(1, "c at 1"))
    a.receive("c", NewtopMessage(2, "c at 2"))
    a.receive("b", NewtopMessage(1, "b at 1"))
    assert [d.payload for d in a.take_deliveries()] == ["b at 1", "c at 1"]
    a.receive("b", NewtopMessage(5, "b at 5"))
    assert a.take_deliveries() == [Delivery("c", 2, "c at 2")]
    a.receive("c", Null(4))
    assert a.blocked() == [Blocked("b", 2, "a", "receiver", (Wait("word", "c", 5),))]


def test_blocked_is_in_the_order_of_delivery_and_names_every_silent_process() -> None:
    a = Newtop("a", ["a", "b", "c", "d"])
    a.receive("c", NewtopMessage(4, "x"))
    a.receive("b", NewtopMessage(2, "y"))
    assert a.blocked() == [
        Blocked("b", 1, "a", "receiver", (Wait("word", "d", 2),)),
        Blocked("c", 1, "a", "receiver", (Wait("word", "b", 4), Wait("word", "d", 4))),
    ]


def test_the_clock_goes_beyond_all_that_has_arrived() -> None:
    a = endpoint()
    a.receive("b", NewtopMessage(7, "x"))
    a.send(OTHERS, "y")
    assert a.take_packets() == [("b", NewtopMessage(8, "y")), ("c", NewtopMessage(8, "y"))]


def test_a_null_does_not_advance_the_clock() -> None:
    a = endpoint()
    a.receive("b", NewtopMessage(7, "x"))
    a.retransmit()
    assert a.take_packets() == [("b", Null(7)), ("c", Null(7))]
    a.send(OTHERS, "y")
    assert a.take_packets() == [("b", NewtopMessage(8, "y")), ("c", NewtopMessage(8, "y"))]


def test_a_null_is_due_when_something_arrived_from_beyond_what_was_told() -> None:
    a = endpoint()
    a.retransmit()
    assert a.take_packets() == [], "nobody waits"
    a.send(OTHERS, "x")
    a.take_packets()
    a.retransmit()
    assert a.take_packets() == [], "the message itself has told"
    a.receive("b", NewtopMessage(1, "y"))
    a.receive("c", Null(1))
    a.take_deliveries()
    a.retransmit()
    assert a.take_packets() == [], "the others know that this clock has passed 1"
    assert a.idle
    a.receive("b", NewtopMessage(2, "z"))
    a.receive("c", Null(2))
    a.take_deliveries()
    assert not a.idle, "others may wait"
    a.retransmit()
    assert a.take_packets() == [("b", Null(2)), ("c", Null(2))]
    a.retransmit()
    assert a.take_packets() == []
    assert a.idle


def test_without_a_tick_a_lone_broadcast_is_not_delivered() -> None:
    """ERRATA 7.7: null messages are essential."""
    group = Group(Newtop, 3)
    group.send("p0")
    group.flush()
    assert group.missing("p1") == group.missing("p2") == {("p0", 1)}
    group.settle()
    assert group.finished()


@pytest.mark.parametrize("n", [2, 3, 6])
def test_one_round_of_nulls_is_enough_and_then_there_is_silence(n: int) -> None:
    group = Group(Newtop, n)
    group.send("p0", to_self=True)
    group.send("p0")
    group.flush()
    before = group.packets
    for name in group.names:
        group.tick(name)
    group.flush()
    assert group.finished()
    assert group.packets - before == (n - 1) * (n - 1), "a null from each of the others"
    for name in group.names:
        group.tick(name)
    assert not group.busy()


def test_eager_nulls_leave_at_once() -> None:
    group = Group(eager, 3)
    group.send("p0")
    group.hop("p0", "p1")
    assert group.channels["p1", "p2"] == [Null(1)]
    group.flush()
    assert group.finished()


def test_a_reaction_makes_the_eager_null_needless() -> None:
    group = Group(eager, 2)
    group.react = lambda me: group.send(me) if len(group.past) < 2 else None
    group.send("p0")
    group.hop("p0", "p1")
    assert group.channels["p1", "p0"] == [NewtopMessage(2, ("p1", 1))]
    group.flush()
    assert group.finished()


def test_a_copy_to_oneself_is_delivered_inside_send() -> None:
    a = endpoint()
    a.receive("b", NewtopMessage(1, "held back"))
    a.send(ABC, "x")
    assert a.take_deliveries() == [Delivery("a", 1, "x")]


def test_footprint() -> None:
    a = endpoint()
    assert a.footprint()[:2] == (7, {"msg": 1, "null": 1})
    a.receive("b", NewtopMessage(3, "x"))
    assert a.footprint()[:2] == (10, {"msg": 1, "null": 1})
    a.send(OTHERS, "y")
    a.receive("c", Null(3))
    a.receive("b", NewtopMessage(5, "z"))
    a.retransmit()
    assert [(p.kind, p.integers) for _, p in a.take_packets()] == [("msg", 1)] * 2 + [
        ("null", 1)
    ] * 2


def test_a_copy_is_independent_and_equal_until_they_part() -> None:
    a = endpoint()
    a.receive("b", NewtopMessage(1, "x"))
    twin = copy.copy(a)
    assert twin == a
    assert hash(twin) == hash(a)
    twin.receive("c", Null(1))
    assert twin != a
    assert len(a.blocked()) == 1
    assert a.take_deliveries() == []
    a.receive("c", Null(1))
    assert twin == a
    a.retransmit()
    a.take_packets()
    assert twin != a, "one has sent its null"
    twin.retransmit()
    twin.take_packets()
    assert twin == a
    twin.receive("b", NewtopMessage(2, "y"))
    a.receive("b", Null(2))
    a.receive("b", NewtopMessage(3, "z"))
    assert [blocked.mid for blocked in a.blocked()] == [2]


def test_numbers_are_part_of_the_state() -> None:
    one, two = endpoint(), endpoint()
    for source in OTHERS:
        one.receive(source, Null(1))
        two.receive(source, NewtopMessage(1, "x"))
    two.take_deliveries()
    assert one != two, "the next of b is its first here, its second there"


def test_equality_does_not_depend_on_the_order_of_arrival() -> None:
    streams = {
        "b": [NewtopMessage(1, "w"), NewtopMessage(4, "x")],
        "c": [NewtopMessage(2, "y"), NewtopMessage(3, "z")],
    }
    ends = []
    for order in ("bbcc", "bcbc", "ccbb"):
        d = Newtop("d", ["a", "b", "c", "d"])
        left = {name: iter(stream) for name, stream in streams.items()}
        for name in order:
            d.receive(name, next(left[name]))
        ends.append(d)
    assert len(ends[0].blocked()) == 4
    assert len(set(ends)) == 1


def test_eager_is_part_of_the_state() -> None:
    assert eager("a", ABC) != endpoint()


@pytest.mark.parametrize("packet", [NewtopMessage(3, ("any", "thing")), Null(3)])
def test_packets_survive_pickling(packet: Packet) -> None:
    assert pickle.loads(pickle.dumps(packet)) == packet


@pytest.mark.parametrize(
    ("source", "packet"),
    [
        ("b", BssMessage(5, (0, 0), "of another protocol")),
        ("b", ("null", 5)),
        ("b", NewtopMessage(3, "the clock of b was 4")),
        ("b", NewtopMessage(4, "twice")),
        ("b", Null(4)),
        ("c", Null(2)),
        ("a", Null(9)),
        ("d", NewtopMessage(9, "from a stranger")),
    ],
)
def test_what_no_correct_peer_could_send(source: str, packet: Packet) -> None:
    a = endpoint()
    a.receive("b", NewtopMessage(4, "x"))
    a.receive("c", Null(2))
    before = copy.copy(a)
    with pytest.raises(RemoteProtocolError):
        a.receive(source, packet)
    assert a == before


@pytest.mark.parametrize("clock", [0, -1, True, "1", 1.0, None])
def test_malformed_packets(clock: Any) -> None:
    with pytest.raises(RemoteProtocolError):
        NewtopMessage(clock, "x")
    with pytest.raises(RemoteProtocolError):
        Null(clock)


@pytest.mark.parametrize("to", [[], "b", ["b"], ["a"], ["b", "c", "d"]])
def test_only_broadcasts(to: Any) -> None:
    a = endpoint()
    before = copy.copy(a)
    with pytest.raises(LocalProtocolError):
        a.send(to, "x")
    assert a == before


def test_a_group_of_one() -> None:
    alone = Newtop("a", ["a"])
    assert alone.send("a", "x") == 1
    assert alone.take_deliveries() == [Delivery("a", 1, "x")]
    alone.retransmit()
    assert alone.idle


def one_order_for_all(group: Group) -> None:
    """Any two processes agree on the messages that neither of them sent."""
    for one, two in combinations(group.names, 2):
        orders = [[m for m in group.delivered[me] if m[0] not in (one, two)] for me in (one, two)]
        assert orders[0] == orders[1]


@pytest.mark.parametrize("make", [Newtop, eager])
@pytest.mark.parametrize("block", range(3))
def test_random_runs(make: Any, block: int) -> None:
    held = 0
    for seed in range(100 * block, 100 * block + 100):
        rng = Random(seed)
        group = Group(make, rng.randint(2, 5))
        try:
            for me in play(group, rng, rng.randint(1, 20), ticks=0.1 if make is Newtop else 0):
                v = group[me]._v
                assert v[group[me].index[me]] == max(v)
                for blocked in group[me].blocked():
                    assert blocked.waits
                    assert {v[group[me].index[w.peer]] < w.mid for w in blocked.waits} == {True}
                    held += 1
            if make is Newtop:
                group.settle()
            assert group.finished()
            one_order_for_all(group)
        except BaseException:
            print(f"seed {seed}")
            raise
    assert held > 100, "hardly anything was held back"


class WithoutNulls(Newtop):
    def _say_null(self) -> None:
        pass


class DeliversOnArrival(Newtop):
    def _settle(self) -> None:
        while self._held:
            _, j, mid, payload = self._held.pop(0)
            self._deliver(self.group[j], mid, payload)


def test_known_bads_are_caught() -> None:
    assert "stuck" in {verdict(WithoutNulls, seed) for seed in range(20)}
    assert "causal" in {verdict(DeliversOnArrival, seed) for seed in range(200)}


def test_fifo_channels_are_needed() -> None:
    """ERRATA 7.7: the last clock says nothing about what is missing before it."""
    group = Group(Newtop, 2)
    group.send("p1")
    group.send("p1")
    with pytest.raises(OrderError):
        group.hop("p1", "p0", 1)
