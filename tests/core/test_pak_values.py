"""PAK endpoints and packets as values, and the input that they refuse."""

from __future__ import annotations

import copy
import pickle
from functools import partial
from random import Random
from typing import Any

import pytest

from causewire.core.bss import BssMessage
from causewire.core.endpoint import (
    LocalProtocolError,
    Packet,
    RemoteProtocolError,
)
from causewire.core.pak import Ack, Pak, PakCredit, PakMessage, PakNak

from .broadcasts import Group, play
from .pak_variants import ABC, OTHERS, VARIANTS, released, ticks, variants

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
