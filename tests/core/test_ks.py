"""The Kshemkalyani-Singhal endpoint: runs, what it waits for, and what it refuses.

What the paper itself says about the algorithm is tested in test_paper_ks.py.
"""

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
from causewire.core.ks import AllBut, Ks, KsMessage

from .world import World, names, play, some

OPTIONS = {
    "plain": {},
    "hardware": {"hardware_multicast": True},
    "complement": {"complement": True},
    "both": {"hardware_multicast": True, "complement": True},
    "broadcast": {"broadcast": True},
}
NOBODY: Any = frozenset()


def posted(endpoint: Any, to: Any, payload: Any = "x") -> Any:
    """Send, and return the packet to each destination."""
    endpoint.send(to, payload)
    return dict(endpoint.take_packets())


def dests(*who: Any) -> Any:
    return frozenset(who)


# -- random runs, judged by an omniscient observer -----------------------------------


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("options", OPTIONS)
def test_random_runs(options: Any, seed: int) -> None:
    """Causal, live, and after every step `blocked` is exact."""
    rng = Random(seed)
    group = names(rng.randint(2, 6))
    world = World([Ks(me, group, **OPTIONS[options]) for me in group])
    broadcast = options == "broadcast"
    choose = (lambda rng, population: population) if broadcast else some
    for me in play(world, rng, rng.randint(5, 25), choose=choose, duplicates=0.15):
        blocked = world.endpoints[me].blocked()
        assert {(b.origin, b.mid) for b in blocked} == world.held(me), f"seed {seed}"
        for origin, mid, destination, where, waits in blocked:
            assert (destination, where) == (me, "receiver")
            missing = world.missing(me, origin, mid)
            assert missing, f"latency-optimal: nothing else is held back, seed {seed}"
            if broadcast:  # of each sender the last one
                needs = {(i, max(a for k, a in missing if k == i)) for i, _ in missing}
            else:  # the facts that are necessary
                facts = world.facts(world.sent[origin, mid].past)
                needs = {(i, a) for i, a, d in facts if d == me} & missing
            assert waits == tuple(Wait("predecessor", *n) for n in sorted(needs)), f"seed {seed}"
    assert not world.undelivered(), f"seed {seed}"
    assert all(endpoint.idle for endpoint in world.endpoints.values())


def test_random_runs_see_something() -> None:
    """The check above is worth nothing if no message ever has to wait."""
    world = World([Ks(me) for me in names(5)])
    most = max(len(world.endpoints[me].blocked()) for me in play(world, Random(0), 60))
    assert most >= 3


@pytest.mark.parametrize("seed", range(10))
def test_all_packets_are_well_formed(seed: int) -> None:
    """What endpoints make without a check passes the check that unpickling does."""
    rng = Random(seed)
    group = names(5)
    options = rng.choice(list(OPTIONS.values())[:4])
    world = World([Ks(me, group, **options) for me in group])
    for _ in play(world, rng, 25):
        for _, _, packet in world.flying:
            twin = pickle.loads(pickle.dumps(packet))
            assert twin == packet
            assert type(twin) is KsMessage
            assert hash(twin) == hash(packet)


# -- cases of the errata ---------------------------------------------------------------


def test_state_before_delivery() -> None:
    """ERRATA 7.1: what is sent from inside a delivery depends on what was delivered."""
    a, b, c = Ks("a"), Ks("b"), Ks("c")
    multicast = posted(a, ["b", "c"])
    b.on_delivery = lambda delivery: b.send("c", "answer")
    b.receive("a", multicast["b"])
    [(_, answer)] = b.take_packets()
    c.receive("b", answer)
    assert c.blocked() == [Blocked("b", 1, "c", "receiver", (Wait("predecessor", "a", 1),))]
    c.receive("a", multicast["c"])
    assert [d.source for d in c.take_deliveries()] == ["a", "b"]


def test_entries_about_the_sender_are_waited_for() -> None:
    """ERRATA 7.3: on a FIFO channel too, where the first answer arrives and has to wait."""
    a, b, c = Ks("a"), Ks("b"), Ks("c")
    multicast = posted(a, ["b", "c"])
    b.receive("a", multicast["b"])
    one, two = posted(b, "c", 1)["c"], posted(b, "c", 2)["c"]
    c.receive("b", one)
    c.receive("b", two)
    assert [(x.mid, x.waits) for x in c.blocked()] == [
        (1, (Wait("predecessor", "a", 1),)),
        (2, (Wait("predecessor", "b", 1),)),
    ]
    c.receive("a", multicast["c"])
    assert [d.payload for d in c.take_deliveries()] == ["x", 1, 2]


# -- sending and delivering --------------------------------------------------------------


def test_packets() -> None:
    a, b = Ks("a"), Ks("b")
    a.send("c", "first")
    a.take_packets()
    packets = posted(a, ["c", "b", "a"], "second")
    assert list(packets) == ["b", "c"]
    assert packets["b"] == KsMessage(2, dests("b", "c"), (("a", ((1, NOBODY),)),), "second")
    assert packets["c"] == KsMessage(2, dests("b", "c"), (("a", ((1, dests("c")),)),), "second")
    assert (packets["b"].integers, packets["b"].identifiers) == (2, 2 + 1)
    assert (packets["c"].integers, packets["c"].identifiers) == (2, 2 + 2)
    b.receive("a", packets["b"])
    assert b.take_deliveries() == [Delivery("a", 2, "second")]
    assert b.log == (("a", ((2, dests("c")),)),)


def test_copy_to_oneself() -> None:
    """Delivered inside `send`, leaves no entry, and never goes on the network."""
    a = Ks("a")
    assert a.send("a", "note") == 1
    assert a.take_packets() == []
    assert a.take_deliveries() == [Delivery("a", 1, "note")]
    assert a.log == ()
    a.on_delivery = lambda delivery: a.send("b", "inside") if delivery.mid == 2 else None
    a.send(["a", "b"], "both")
    (_, both), (_, inside) = a.take_packets()
    assert inside[3] == (("a", ((2, dests("b")),)),)
    assert both[3] == ()


def test_release_in_a_chain() -> None:
    """One arrival frees all that waited for it, directly or not, in causal order."""
    a, c = Ks("a"), Ks("c")
    first, *rest = (posted(a, "c")["c"] for _ in range(6))
    for packet in reversed(rest):
        c.receive("a", packet)
    assert len(c.blocked()) == 5
    c.receive("a", first)
    assert [d.mid for d in c.take_deliveries()] == [1, 2, 3, 4, 5, 6]
    assert c.idle


def test_complement() -> None:
    group = names(6)
    p0, p1 = (Ks(me, group, complement=True) for me in group[:2])
    packet = posted(p0, group)["p1"]
    assert packet == KsMessage(1, AllBut(NOBODY), (), "x")
    assert packet.identifiers == 0
    p1.receive("p0", packet)
    assert p1.log == (("p0", ((1, dests("p2", "p3", "p4", "p5")),)),)
    answer = posted(p1, "p2")["p2"]
    assert answer[2] == dests("p2")
    assert answer[3] == (("p0", ((1, AllBut(dests("p1"))),)),)
    assert (answer.integers, answer.identifiers) == (2, 3)
    p2 = Ks("p2", group, complement=True)
    p2.receive("p1", answer)
    assert p2.blocked()[0].waits == (Wait("predecessor", "p0", 1),)


def test_broadcast() -> None:
    group = names(4)
    p0, p1, p2, _ = (Ks(me, group, broadcast=True) for me in group)
    first = posted(p0, group)
    assert first["p1"] is first["p2"] is first["p3"]
    assert first["p1"] == KsMessage(1, NOBODY, (), "x")
    p1.receive("p0", first["p1"])
    answer = posted(p1, [*group[2:], "p0"])["p2"]
    assert answer == KsMessage(1, NOBODY, (("p0", ((1, NOBODY),)),), "x")
    p2.receive("p1", answer)
    assert p2.blocked()[0].waits == (Wait("predecessor", "p0", 1),)
    p0.receive("p1", answer)  # knows its own
    assert [d.source for d in p0.take_deliveries()] == ["p0", "p1"]


# -- footprint, and as a value -------------------------------------------------------------


def test_footprint() -> None:
    a, b = Ks("a"), Ks("b")
    assert a.footprint()[:2] == (1, {"msg": 2})
    first, second = posted(a, "b")["b"], posted(a, ["b", "c"])["b"]
    assert a.log == (("a", ((2, dests("b", "c")),)),)
    assert a.footprint()[:2] == (1 + 4, {"msg": 2 + 4})
    b.receive("a", second)
    assert b.footprint().state == 1 + (1 + 2 + 2 + 2)  # source, clocks, entry, destinations
    b.receive("a", first)
    assert b.log == (("a", ((2, dests("c")),)),)
    assert b.footprint()[:2] == (1 + 2 + 3, {"msg": 2 + 3})
    packet = posted(b, "z")["z"]
    assert packet.integers + packet.identifiers == 5


@pytest.mark.parametrize("options", OPTIONS)
def test_footprint_is_that_of_the_next_packet(options: Any) -> None:
    rng = Random(1)
    group = names(5)
    world = World([Ks(me, group, **OPTIONS[options]) for me in group])
    broadcast = options == "broadcast"
    choose = (lambda rng, population: population) if broadcast else some
    for me in play(world, rng, 20, choose=choose):
        twin = copy.copy(world.endpoints[me])
        expected = twin.footprint().packet["msg"]
        twin.send(group if broadcast else next(d for d in group if d != me), None)
        packet = twin.take_packets()[0][1]
        assert packet.integers + packet.identifiers == expected


def test_copies_are_independent() -> None:
    a, b = Ks("a"), Ks("b")
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
    assert b.log == ()
    b.receive("a", first)
    assert [d.payload for d in b.take_deliveries()] == [1, 2]
    assert b.take_packets() == []


def test_equal_states_whatever_the_order() -> None:
    a, b, c = Ks("a"), Ks("b"), Ks("c")
    first, late = posted(a, ["b", "c", "d"])["c"], posted(a, "c")["c"]
    from_b = posted(b, ["a", "c"])["c"]
    ends = []
    for order in (["a", "b"], ["b", "a"]):
        end = copy.copy(c)
        for source in order:
            end.receive(source, {"a": late, "b": from_b}[source])
        end.receive("a", first)
        end.take_deliveries()
        ends.append(end)
    assert ends[0] == ends[1]
    assert hash(ends[0]) == hash(ends[1])
    assert ends[0] != c


def test_options_are_part_of_the_state() -> None:
    group = ["a", "b"]
    made = [Ks("a", group, **options) for options in OPTIONS.values()]
    assert len(set(made)) == len(OPTIONS)
    assert Ks("a", group) == Ks("a")  # not asked for, so not looked at
    assert all(copy.copy(endpoint) == endpoint for endpoint in made)


# -- misuse, duplicates and lies --------------------------------------------------------------


@pytest.mark.parametrize("option", ["complement", "broadcast"])
def test_options_that_need_the_group(option: Any) -> None:
    with pytest.raises(LocalProtocolError, match="group"):
        Ks("a", None, **{option: True})
    with pytest.raises(LocalProtocolError, match="member"):
        Ks("a", ["b"], **{option: True})
    a = Ks("a", ["a", "b", "c"], **{option: True})
    with pytest.raises(LocalProtocolError):
        a.send(["b", "c", "d"], "x")
    assert a == Ks("a", ["a", "b", "c"], **{option: True})


@pytest.mark.parametrize("to", ["a", "b", ["a", "b"]])
def test_broadcast_goes_to_everybody(to: Any) -> None:
    a = Ks("a", ["a", "b", "c"], broadcast=True)
    with pytest.raises(LocalProtocolError):
        a.send(to, "x")
    assert a.send(["b", "c"], "x") == 1


@pytest.mark.parametrize("to", [[], "", None, ["b", 1]])
def test_local_misuse(to: Any) -> None:
    a = Ks("a")
    with pytest.raises(LocalProtocolError):
        a.send(to, "x")
    assert a == Ks("a")
    assert a.send("b", "x") == 1


def test_duplicates_are_dropped() -> None:
    a, b = Ks("a"), Ks("b")
    one, two, three = (posted(a, "b", payload)["b"] for payload in (1, 2, 3))
    for packet in (two, two, one, one, two, three, two, one):
        b.receive("a", packet)
    assert [d.payload for d in b.take_deliveries()] == [1, 2, 3]
    assert b.idle


B = dests("b")


@pytest.mark.parametrize(
    "fields",
    [
        (0, B, (), "x"),
        (True, B, (), "x"),
        (1, {"b"}, (), "x"),
        (1, ("b",), (), "x"),
        (1, dests(1), (), "x"),
        (1, dests(""), (), "x"),
        (1, AllBut(("b",)), (), "x"),  # type: ignore[arg-type]
        (1, B, [], "x"),
        (1, B, ("a",), "x"),
        (1, B, (("a", ()),), "x"),
        (1, B, (("a", [(1, B)]),), "x"),
        (1, B, (("", ((1, B),)),), "x"),
        (1, B, ((1, ((1, B),)),), "x"),
        (1, B, (("a", ((1,),)),), "x"),
        (1, B, (("a", ((0, B),)),), "x"),
        (1, B, (("a", ((1, {"b"}),)),), "x"),
        (1, B, (("a", ((2, B), (1, dests("c")))),), "x"),  # not in the order of clocks
        (1, B, (("a", ((1, B), (2, B))),), "x"),  # Lemma 1
        (1, B, (("a", ((1, NOBODY), (2, B))),), "x"),  # Lemma 7
        (1, B, (("b", ((1, B),)),), "x"),  # to its sender
        (1, B, (("b", ((1, AllBut(B)),)),), "x"),
        (1, B, (("c", ((1, B),)), ("a", ((1, B),))), "x"),
        (1, B, (("c", ((1, B),)), ("c", ((2, B),))), "x"),
    ],
)
def test_malformed_packets(fields: Any) -> None:
    with pytest.raises(RemoteProtocolError):
        KsMessage(*fields)


class Unknown(Packet):
    __slots__ = ()
    kind = "unknown"
    fields = ()


def message(mid: int = 9, to: Any = B, payload: str = "x", **log: Any) -> Any:
    """What a may send to b in the run below; b then waits for a's message 6."""
    rows = {"a": ((6, B),), **log}
    return KsMessage(mid, to, tuple(sorted((i, row) for i, row in rows.items() if row)), payload)


LIES = {
    "no packet of ks": ("a", tuple.__new__(Unknown, ("unknown",))),
    "from myself": ("b", message()),
    "from nobody": ("", message(a=())),
    "not for me": ("a", message(to=dests("c"))),
    "a broadcast": ("a", message(to=NOBODY)),
    "to its sender": ("a", message(to=dests("a", "b"))),
    "a complement": ("a", message(to=AllBut(NOBODY))),
    "a complement in the log": ("a", message(c=((1, AllBut(dests("a"))),))),
    "sent before its predecessors": ("a", message(a=((9, B),))),
    "I never sent that": ("a", message(b=((3, dests("a")),))),
    "another message of that number": ("a", message(mid=6, a=((5, B),), payload="y")),
    "a number that went to others": ("a", message(mid=4, a=((3, B),))),
}


def b_in_a_run(**options: Any) -> Any:
    """b sent two messages, delivered 1 and 3 of a, and holds 6, which waits for 5.

    Of 2 and 4, which went to c, it has heard from c.
    """
    group = ["a", "b", "c"]
    a, b, c = (Ks(me, group, **options) for me in group)
    posted(b, "a")
    posted(b, "a")
    packets = [posted(a, to) for to in "bcbcbb"]
    for k in (1, 3, 6):
        b.receive("a", packets[k - 1]["b"])
    for k in (2, 4):
        c.receive("a", packets[k - 1]["c"])
    b.receive("c", posted(c, "b")["b"])
    assert [d.source for d in b.take_deliveries()] == ["a", "a", "c"]
    return b, packets[4]["b"]


def test_no_lie() -> None:
    b, _ = b_in_a_run()
    b.receive("a", message(b=((2, dests("a")),)))
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


@pytest.mark.parametrize(
    ("source", "packet"),
    [
        ("d", message()),
        ("a", message(to=dests("b", "d"))),
        ("a", message(c=((1, dests("d")),))),
        ("a", message(d=((1, dests("c")),))),
        ("a", message(to=AllBut(dests("d")))),
        ("a", message(c=((1, AllBut(dests("d"))),))),
        ("a", message(c=((1, AllBut(dests("a", "b"))), (2, B)))),  # Lemma 7, written out
        ("a", message(c=((1, AllBut(NOBODY)), (2, B)))),  # Lemma 1, written out
    ],
)
def test_lies_in_a_known_group(source: Any, packet: Any) -> None:
    b, _ = b_in_a_run(complement=True)
    before = copy.copy(b)
    with pytest.raises(RemoteProtocolError):
        b.receive(source, packet)
    assert b == before


@pytest.mark.parametrize("packet", [message(), KsMessage(1, B, (), "x"), message(to=NOBODY)])
def test_destinations_where_all_is_broadcast(packet: Any) -> None:
    b = Ks("b", ["a", "b", "c"], broadcast=True)
    with pytest.raises(RemoteProtocolError):
        b.receive("a", packet)
    assert b == Ks("b", ["a", "b", "c"], broadcast=True)
