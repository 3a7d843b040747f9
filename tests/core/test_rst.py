"""The matrix protocol: its invariant, what it waits for, and what it refuses."""

from __future__ import annotations

import copy
import pickle
from random import Random
from typing import Any

import pytest

from causewire.core.endpoint import (
    Blocked,
    Delivery,
    LocalProtocolError,
    Packet,
    RemoteProtocolError,
    Wait,
)
from causewire.core.rst import Rst, RstMessage

from .world import World, names, play

GROUP = ["a", "b", "c"]
NOTHING = ((0, 0, 0),) * 3
SEEDS = range(40)


def trio() -> Any:
    return (Rst(me, GROUP) for me in GROUP)


def posted(endpoint: Any, to: Any, payload: Any = "x") -> Any:
    """Send, and return the packet to each destination."""
    endpoint.send(to, payload)
    return dict(endpoint.take_packets())


# -- random runs, judged by an omniscient observer ---------------------------------


@pytest.mark.parametrize("seed", SEEDS)
def test_random_runs(seed: int) -> None:
    """Causal, live, and after every step the matrix and `blocked` are what they claim."""
    rng = Random(seed)
    group = names(rng.randint(2, 6))
    world = World([Rst(me, group) for me in group])
    for me in play(world, rng, rng.randint(5, 30), duplicates=rng.choice([0, 0.2])):
        endpoint = world.endpoints[me]
        assert endpoint._matrix == tuple(
            tuple(world.last_sent(world.past[me], i, d) for d in group) for i in group
        ), f"seed {seed}"
        blocked = endpoint.blocked()
        assert {(b.origin, b.mid) for b in blocked} == world.held(me), f"seed {seed}"
        for origin, mid, destination, where, waits in blocked:
            assert (destination, where) == (me, "receiver")
            missing = world.missing(me, origin, mid)
            # Of each sender the last: before that one, the others must be delivered.
            last = {i: max(a for k, a in missing if k == i) for i, _ in missing}
            assert waits == tuple(Wait("predecessor", *need) for need in sorted(last.items()))
            assert waits, f"latency-optimal: nothing else is held back, seed {seed}"
    assert not world.undelivered(), f"seed {seed}"
    assert all(endpoint.idle for endpoint in world.endpoints.values())


def test_random_runs_saw_something() -> None:
    """The check above is worth nothing if no message ever had to wait."""
    rng = Random(0)
    world = World([Rst(me, names(5)) for me in names(5)])
    most = max(len(world.endpoints[me].blocked()) for me in play(world, rng, 60))
    assert most >= 3


# -- cases of the errata -------------------------------------------------------------


def test_receiver_counts_all_destinations() -> None:
    """ERRATA 7.2: b learns from c's multicast that something is on its way to a."""
    a, b, c = trio()
    multicast = posted(c, ["a", "b"])
    b.receive("c", multicast["b"])
    a.receive("b", posted(b, "a")["a"])
    assert a.blocked() == [Blocked("b", 1, "a", "receiver", (Wait("predecessor", "c", 1),))]
    a.receive("c", multicast["a"])
    assert [d.source for d in a.take_deliveries()] == ["c", "b"]


def test_state_before_delivery() -> None:
    """ERRATA 7.1: what is sent from inside a delivery depends on what was delivered."""
    a, b, c = trio()
    multicast = posted(a, ["b", "c"])
    c.on_delivery = lambda delivery: c.send("b", "answer")
    c.receive("a", multicast["c"])
    [(_, answer)] = c.take_packets()
    b.receive("c", answer)
    assert b.take_deliveries() == []
    b.receive("a", multicast["b"])
    assert [d.source for d in b.take_deliveries()] == ["a", "c"]


# -- sending and delivering ------------------------------------------------------------


def test_a_packet() -> None:
    a, b, _ = trio()
    a.send("c", "first")
    a.take_packets()
    packets = posted(a, ["c", "b", "a"], "second")
    assert packets["b"] is packets["c"]
    assert packets["b"] == RstMessage(2, ("b", "c"), ((0, 0, 1), (0, 0, 0), (0, 0, 0)), "second")
    assert (packets["b"].integers, packets["b"].identifiers) == (1 + 9, 2)
    b.receive("a", packets["b"])
    assert b.take_deliveries() == [Delivery("a", 2, "second")]


def test_copy_to_oneself() -> None:
    """Delivered inside `send`, after the state is up to date, and never on the network."""
    a, *_ = trio()
    assert a.send("a", "note") == 1
    assert a.take_packets() == []
    assert a.take_deliveries() == [Delivery("a", 1, "note")]
    a.on_delivery = lambda delivery: a.send("b", "inside") if delivery.mid == 2 else None
    a.send(["a", "b"], "both")
    assert [(d, packet.integers, packet[1]) for d, packet in a.take_packets()] == [
        ("b", 10, 2),
        ("b", 10, 3),
    ]


def test_rows_are_shared() -> None:
    """A message takes no copy of the matrix, and a receiver takes over rows whole."""
    a, b, c = trio()
    b.receive("a", posted(a, "b")["b"])
    first, second = posted(b, "c")["c"], posted(b, "a")["a"]
    assert first[3][0] is second[3][0]
    c.receive("b", first)
    assert c._matrix[0] is first[3][0]


def test_release_in_a_chain() -> None:
    """One arrival frees all that waited for it, directly or not, in causal order."""
    a, b, c = trio()
    late = [posted(a, ["b", "c"])["c"]]
    packets = [posted(a, "c")["c"] for _ in range(5)]
    for packet in reversed(packets):
        c.receive("a", packet)
    assert len(c.blocked()) == 5
    c.receive("a", late.pop())
    assert [d.mid for d in c.take_deliveries()] == [1, 2, 3, 4, 5, 6]
    assert c.idle
    assert b.idle


def test_nothing_is_lost_when_the_application_fails() -> None:
    a, b, _ = trio()
    one, two = (posted(a, "b", payload)["b"] for payload in (1, 2))
    b.receive("a", two)

    def fail(delivery: Any) -> None:
        raise ZeroDivisionError

    b.on_delivery = fail
    with pytest.raises(ZeroDivisionError):
        b.receive("a", one)
    b.on_delivery = None
    assert not b.idle
    assert [d.payload for d in b.take_deliveries()] == [2]
    assert b.idle
    b.receive("a", posted(a, "b", 3)["b"])
    assert [d.payload for d in b.take_deliveries()] == [3]


# -- footprint, and as a value -----------------------------------------------------------


def test_footprint() -> None:
    a, b, _ = trio()
    assert a.footprint()[:2] == (1 + 9, {"msg": 1 + 9 + 1})
    first, second = posted(a, "b")["b"], posted(a, ["b", "c"])["b"]
    b.receive("a", second)
    assert b.footprint().state == 1 + 9 + (1 + 10 + 2)  # source, integers, destinations
    b.receive("a", first)
    assert b.footprint().state == 1 + 9
    assert posted(b, "a")["a"].integers + 1 == b.footprint().packet["msg"]


def test_copies_are_independent() -> None:
    a, b, _ = trio()
    first, second = posted(a, "b", 1)["b"], posted(a, "b", 2)["b"]
    b.receive("a", second)
    twin = copy.copy(b)
    assert twin == b
    assert hash(twin) == hash(b)
    twin.receive("a", first)
    twin.send("c", "more")
    assert twin != b
    assert [d.payload for d in twin.take_deliveries()] == [1, 2]
    assert len(b.blocked()) == 1
    assert b.take_packets() == []
    b.receive("a", first)
    assert [d.payload for d in b.take_deliveries()] == [1, 2]


def test_equal_states_whatever_the_order() -> None:
    a, b, c = trio()
    from_a, from_b = posted(a, "c")["c"], posted(b, "c")["c"]
    late = posted(a, "c")["c"]
    ends = []
    for order in (["a", "b"], ["b", "a"]):
        end = copy.copy(c)
        for source in order:
            end.receive(source, {"a": late, "b": from_b}[source])
        end.receive("a", from_a)
        end.take_deliveries()
        ends.append(end)
    assert ends[0] == ends[1]
    assert hash(ends[0]) == hash(ends[1])
    assert ends[0] != c
    assert Rst("a", ["a", "b"]) != Rst("a", ["a", "c"])


def test_packets_survive_pickling() -> None:
    a, _, _ = trio()
    a.send("b", 1)
    packet = posted(a, ["b", "c"], ("any", "thing"))["c"]
    twin = pickle.loads(pickle.dumps(packet))
    assert twin == packet
    assert type(twin) is RstMessage
    assert hash(twin) == hash(packet)
    assert repr(packet).startswith("RstMessage(mid=2, dests=('b', 'c'), matrix=((0, 1, 0)")


# -- misuse, duplicates and lies -----------------------------------------------------------


def test_needs_its_group() -> None:
    with pytest.raises(LocalProtocolError, match="group"):
        Rst("a")
    with pytest.raises(LocalProtocolError, match="member"):
        Rst("d", GROUP)


@pytest.mark.parametrize("to", [[], "d", ["b", "d"], "", None, ["b", 1]])
def test_local_misuse(to: Any) -> None:
    a, *_ = trio()
    before = copy.copy(a)
    with pytest.raises(LocalProtocolError):
        a.send(to, "x")
    assert a == before
    assert a.send("b", "x") == 1


def test_duplicates_are_dropped() -> None:
    a, b, _ = trio()
    one, two, three = (posted(a, "b", payload)["b"] for payload in (1, 2, 3))
    for packet in (two, two, one, one, two, three, two, one):
        b.receive("a", packet)
    assert [d.payload for d in b.take_deliveries()] == [1, 2, 3]
    assert b.idle


@pytest.mark.parametrize(
    "fields",
    [
        (0, ("b",), NOTHING, "x"),
        (True, ("b",), NOTHING, "x"),
        ("1", ("b",), NOTHING, "x"),
        (1, ["b"], NOTHING, "x"),
        (1, (), NOTHING, "x"),
        (1, ("b", 1), NOTHING, "x"),
        (1, ("",), NOTHING, "x"),
        (1, ("c", "b"), NOTHING, "x"),
        (1, ("b", "b"), NOTHING, "x"),
        (1, ("b",), [(0,)], "x"),
        (1, ("b",), ([0],), "x"),
        (1, ("b",), ((0, 0),), "x"),
        (1, ("b",), ((-1,),), "x"),
        (1, ("b",), ((0.5,),), "x"),
    ],
)
def test_malformed_packets(fields: Any) -> None:
    with pytest.raises(RemoteProtocolError):
        RstMessage(*fields)


class Unknown(Packet):
    __slots__ = ()
    kind = "unknown"
    fields = ()


def message(
    mid: int = 9,
    dests: Any = ("b",),
    a: Any = (0, 6, 4),
    b: Any = (0, 0, 0),
    c: Any = (1, 0, 0),
    payload: str = "x",
) -> Any:
    """What a may send to b in the run below; b then waits for a's message 6."""
    return RstMessage(mid, dests, (a, b, c), payload)


LIES = {
    "no packet of rst": ("a", tuple.__new__(Unknown, ("unknown",))),
    "from a stranger": ("d", message()),
    "from myself": ("b", message()),
    "not for me": ("a", message(dests=("c",))),
    "to its sender": ("a", message(dests=("a", "b"))),
    "to a stranger": ("a", message(dests=("b", "d"))),
    "matrix of another group": ("a", RstMessage(9, ("b",), ((0,) * 4,) * 4, "x")),
    "matrix of nobody": ("a", RstMessage(9, ("b",), (), "x")),
    "sent before its predecessors": ("a", message(a=(0, 6, 9))),
    "I never sent that": ("a", message(b=(3, 0, 0))),
    "I never sent that to c": ("a", message(b=(2, 0, 1))),
    "a forgot what it sent": ("a", message(a=(0, 1, 2))),
    "a forgot what it sent me": ("a", message(a=(0, 1, 4))),
    "a forgot what it sent to c": ("a", message(a=(0, 6, 0))),
    "c sent to itself": ("a", message(c=(1, 0, 1))),
    "c sent something else": ("a", message(c=(0, 2, 0))),
    "a duplicate of what never was": ("a", message(mid=3, a=(0, 1, 2), b=(3, 0, 0))),
    "a duplicate that knows too much": ("a", message(mid=3, a=(0, 2, 1), c=(0, 2, 0))),
    "another message of that number": ("a", message(mid=6, a=(0, 5, 4), payload="y")),
}


def b_in_a_run() -> Any:
    """b sent two messages, delivered 1 and 3 of a, and holds 6, which waits for 5."""
    a, b, c = trio()
    posted(b, "a")
    posted(b, "a")
    a.receive("c", posted(c, "a")["a"])
    packets = [posted(a, to) for to in "bcbcbb"]
    for k in (1, 3, 6):
        b.receive("a", packets[k - 1]["b"])
    b.take_deliveries()
    assert b._matrix == ((0, 3, 2), (2, 0, 0), (1, 0, 0))
    return b, packets[4]["b"]


def test_no_lie() -> None:
    b, _ = b_in_a_run()
    b.receive("a", message())
    assert [(x.mid, x.waits) for x in b.blocked()] == [
        (6, (Wait("predecessor", "a", 5),)),
        (9, (Wait("predecessor", "a", 6),)),
    ]


@pytest.mark.parametrize("lie", LIES)
def test_lies_change_nothing(lie: Any) -> None:
    b, missing = b_in_a_run()
    before = copy.copy(b)
    with pytest.raises(RemoteProtocolError):
        b.receive(*LIES[lie])
    assert b == before
    b.receive("a", missing)
    assert [d.mid for d in b.take_deliveries()] == [5, 6]
