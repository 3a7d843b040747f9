"""Protocols that run on a link: members fail, leave, restart and join, and the group goes on."""

from __future__ import annotations

from typing import Any

import pytest

from causewire import protocols
from causewire.core.endpoint import LocalProtocolError
from causewire.core.mf import Ack, MfMessage
from causewire.node import Node
from causewire.protocols import Protocol
from causewire.transport import (
    PeerForgotten,
    PeerLeft,
    PeerRestarted,
    PeerUp,
    TransportConfig,
)
from causewire.transport.carrier import is_native
from causewire.transport.epochs import View, decode, encode
from causewire.transport.link import Link
from causewire.transport.varint import LARGEST, MalformedError

from .pair import events, payloads
from .three import Three, transport

LINKED = sorted(name for name in protocols.names() if not is_native(protocols.describe(name)))
GOOD = [name for name in LINKED if protocols.describe(name).causal]


def broadcasts(protocol: str) -> bool:
    return not protocols.describe(protocol).unicast


def three(protocol: str, **settings: Any) -> Three:
    return Three(protocol=protocol, **settings)


def say(group: Three, source: str, text: bytes, *to: str) -> None:
    """A message to some members; one message to each if the protocol has no multicasts."""
    names = to or tuple(name for name in group.all if name != source)
    if protocols.describe(group.settings["protocol"]).multicast or broadcasts(
        group.settings["protocol"]
    ):
        assert group[source].send(names, text) is not None
    else:
        for name in names:
            assert group[source].send(name, text) is not None


def restart(group: Three, name: str, incarnation: int = 9) -> None:
    group.all[name] = transport(name, incarnation << 20, **group.settings)
    group.introduce(name)


def test_these_are_the_protocols_on_a_link() -> None:
    assert {"ks", "rst", "bss", "pak", "newtop", "mf", "cykas"} <= set(LINKED)
    assert not {"csps", "sps", "adaptive", "fifo"} & set(LINKED)


@pytest.mark.parametrize("protocol", LINKED)
def test_every_node_can_give_up_a_peer(protocol: str) -> None:
    Node("ann", peers={"bob": "127.0.0.1:9"}, protocol=protocol, give_up_after=5.0)
    Node("ann", peers={"bob": "127.0.0.1:9"}, protocol=protocol)


@pytest.mark.parametrize("protocol", GOOD)
def test_a_member_that_restarts_takes_part(protocol: str) -> None:
    group = three(protocol)
    say(group, "ann", b"before")
    group.run(1.0)
    assert payloads(group["bob"]) == payloads(group["carol"]) == [b"before"]
    restart(group, "carol")
    group.run(3.0)
    assert PeerRestarted in map(type, events(group["ann"]))
    for name in ("carol", "ann", "bob"):
        say(group, name, name.encode())
    group.run(2.0)
    assert sorted(payloads(group["ann"])) == [b"bob", b"carol"]
    assert sorted(payloads(group["bob"])) == [b"ann", b"carol"]
    assert sorted(payloads(group["carol"])) == [b"ann", b"bob"]
    assert all(one.idle for one in group.all.values())


@pytest.mark.parametrize("protocol", GOOD)
def test_what_is_sent_while_the_group_changes_waits_and_arrives(protocol: str) -> None:
    group = three(protocol)
    restart(group, "carol")
    receipts = []
    for k in range(3):
        name = "bob" if k else "carol"
        to = [name] if not broadcasts(protocol) else ["bob", "carol"]
        receipts.append(group["ann"].send(to, b"%d" % k))
    group.run(3.0)
    assert payloads(group["bob"])[-2:] == [b"1", b"2"]
    # What was sent to the former incarnation failed, or reached the new one.
    for receipt in receipts:
        assert receipt is not None
        assert all(s.over or s.confirmed >= receipt.mid for s in receipt.sessions)
    assert group["ann"].idle


@pytest.mark.parametrize("protocol", GOOD)
def test_a_member_that_leaves_costs_nobody_anything(protocol: str) -> None:
    group = three(protocol)
    say(group, "carol", b"bye")
    group.run(0.5)
    assert group["carol"].settled
    group["carol"].close()
    group.run(1.0)
    assert PeerLeft in map(type, events(group["ann"]))
    say(group, "ann", b"we are two", "bob")
    group.run(1.0)
    assert payloads(group["bob"]) == [b"bye", b"we are two"]
    assert group["ann"].idle


@pytest.mark.parametrize("protocol", GOOD)
def test_the_group_goes_on_without_a_member_that_is_given_up(protocol: str) -> None:
    group = three(protocol, give_up_after=5.0)
    group.isolate("carol")
    say(group, "ann", b"to both")
    say(group, "ann", b"more", "bob")
    group.run(20.0)
    assert PeerForgotten in map(type, events(group["ann"]))
    say(group, "bob", b"answer", "ann")
    group.run(2.0)
    assert payloads(group["bob"]) == [b"to both", b"more"]
    assert payloads(group["ann"]) == [b"answer"]
    group.cut.clear()
    group.run(40.0)  # carol learns that it was given up
    assert group["carol"].me.superseded


@pytest.mark.parametrize("protocol", ["ks", "bss", "pak-credit", "newtop"])
def test_two_members_fail_at_once(protocol: str) -> None:
    group = three(protocol)
    say(group, "carol", b"x")
    for name in ("bob", "carol"):
        restart(group, name)
    group.run(5.0)
    for name in ("ann", "bob", "carol"):
        say(group, name, name.encode())
    group.run(2.0)
    assert sorted(payloads(group["ann"]))[-2:] == [b"bob", b"carol"] or b"x" in payloads(
        group["ann"]
    )
    assert sorted(payloads(group["bob"])) == [b"ann", b"carol"]


@pytest.mark.parametrize("protocol", ["ks", "bss", "rst"])
def test_a_group_that_is_idle_gives_up_a_member_that_only_some_can_reach(protocol: str) -> None:
    """Otherwise the first message would have to wait for that."""
    group = three(protocol, give_up_after=5.0)
    restart(group, "carol")
    group.cut |= {("ann", "carol"), ("carol", "ann")}
    group.run(20.0)
    assert not group["bob"]._carrier.changing
    alive = [name for name in group.all if not group[name].me.superseded]
    assert len(alive) == 2
    assert "bob" in alive


def test_a_member_that_only_some_can_reach_is_given_up_by_the_others() -> None:
    """carol restarts, and ann cannot reach it any more: bob's messages to ann must not wait."""
    group = three("ks", give_up_after=5.0)
    group.cut |= {("ann", "carol"), ("carol", "ann")}
    restart(group, "carol")
    group.run(2.0)
    assert any(event.name == "carol" for event in events(group["bob"]) if isinstance(event, PeerUp))
    group["ann"].send("bob", b"waits")
    group.run(20.0)
    assert payloads(group["bob"]) == [b"waits"]
    assert group["carol"].me.superseded


@pytest.mark.parametrize("protocol", ["bss", "newtop", "pak-credit"])
def test_who_a_broadcast_is_not_for_does_not_get_it(protocol: str) -> None:
    group = three(protocol)
    group["ann"].send("bob", b"for bob")
    group["ann"].send(["bob", "carol"], b"for both")
    group.run(1.0)
    assert payloads(group["bob"]) == [b"for bob", b"for both"]
    assert payloads(group["carol"]) == [b"for both"]
    assert group["ann"].idle


class Stubborn(protocols.describe("mf").endpoint):  # type: ignore[misc]
    """A protocol with acks that cannot go on without a member."""

    packets = (MfMessage, Ack)


def test_what_cannot_go_on_is_refused_at_construction() -> None:
    stubborn = Protocol(name="stubborn", endpoint=Stubborn)
    with pytest.raises(LocalProtocolError, match="could not go on when a member fails"):
        Node("ann", protocol=stubborn)


def test_why_messages_wait_while_the_group_changes() -> None:
    group = three("bss")
    group.isolate("carol")
    restart(group, "bob")
    group.run(3.0)
    say(group, "ann", b"x", "bob")
    reasons = {reason.peer: reason for reason in group["ann"].blocked(group.now)}
    assert reasons["bob"].why == (
        "1 message to bob held here, waiting for bob and carol to agree that the group changes"
    )
    assert reasons["bob"].messages == 1


def test_why_messages_to_a_process_that_never_came_wait() -> None:
    group = three("ks")
    group["ann"].add_peer("yan", ("::1", 9), group.now, "its address is IPv6")
    group["ann"].add_peer("zoe", ("127.0.0.1", 9), group.now)
    for name in ("zoe", "bob", "yan"):
        group["ann"].send(name, b"x")
    reasons = {reason.peer: reason.why for reason in group["ann"].blocked(group.now)}
    expected = "waiting for zoe to be reached and to join the group"
    assert reasons["bob"] == f"1 message to bob held here, {expected}"
    assert reasons["zoe"].startswith(
        f"1 message to zoe held here, {expected}: zoe has not been reached yet"
    )
    assert reasons["yan"].endswith(": yan was refused: its address is IPv6")


@pytest.mark.parametrize("protocol", ["ks", "bss", "pak-credit"])
def test_an_application_that_does_not_read_does_not_hold_the_group_up(protocol: str) -> None:
    group = three(protocol, config=TransportConfig(queue_messages=2))
    for k in range(8):
        say(group, "ann", b"%d" % k)
    group.run(1.0)
    assert len(group["bob"].messages) == len(group["carol"].messages) == 2
    restart(group, "carol")
    group.run(3.0)
    assert not group["ann"]._carrier.changing
    say(group, "carol", b"I am back", "ann")
    group.run(1.0)
    assert payloads(group["ann"]) == [b"I am back"]


@pytest.mark.parametrize("protocol", ["ks", "bss"])
def test_the_longest_message_fits_with_what_the_protocol_adds(protocol: str) -> None:
    group = three(protocol, config=TransportConfig(message=5000, local_datagram=1232))
    say(group, "ann", b"x" * 5000)
    group.run(1.0)
    assert payloads(group["bob"]) == [b"x" * 5000]


def test_a_newcomer_need_not_know_who_left_long_ago() -> None:
    group = three("ks", config=TransportConfig(linger=1.0))
    for name in ("ann", "bob"):
        group[name]._peers.known["carol"].wanted = False  # it came by itself
    group["carol"].close()
    group.run(1.0)
    del group.all["carol"]
    group.run(10.0)
    assert "carol" not in group["ann"]._peers.floors
    restart(group, "bob")
    group.run(3.0)
    say(group, "ann", b"x", "bob")
    group.run(1.0)
    assert payloads(group["bob"]) == [b"x"]


def test_who_was_met_by_some_only_is_given_up_and_the_group_agrees_again() -> None:
    """ann and bob have stopped, and carol has not; their views have other numbers then."""
    group = three("ks", give_up_after=5.0)
    zoe, place = transport("zoe", 9 << 20, **group.settings), ("127.0.0.1", 9)
    group.all["zoe"], group.places["zoe"] = zoe, place
    group.cut |= {("zoe", "carol"), ("carol", "zoe")}
    for name in ("ann", "bob"):
        zoe.add_peer(name, group.places[name], group.now)
    group.run(1.0)
    assert group["ann"]._carrier.changing
    assert not group["carol"]._carrier.changing
    group["ann"].forget("zoe", group.now)
    say(group, "bob", b"on we go", "ann", "carol")
    group.run(1.0)
    assert not any(group[name]._carrier.changing for name in ("ann", "bob", "carol"))
    assert payloads(group["ann"]) == payloads(group["carol"]) == [b"on we go"]


def test_a_view_that_lies_does_no_lasting_harm() -> None:
    """It says that another process is alive, or has a number that would use up all numbers."""
    group = three("ks")
    ann, bob = group["ann"]._carrier, group["bob"]._carrier
    assert isinstance(ann, Link)
    assert isinstance(bob, Link)
    number, alive = ann._epochs.known
    lies = [
        View(number, {**alive, "zoe": 1 << 62}),
        View(number, {**alive, "zoe": 1 << 63}),
        View(number, {**alive, "zoe": 0}),
        View(LARGEST, alive),
        View(number + 1000, alive),
    ]
    for lie in lies:
        bob._fifo.send("ann", b"\x02" + encode(lie))
        group.run(1.0)
    assert group["ann"].stats.dropped["protocol_violation"] == 3
    assert "zoe" not in ann._epochs.known.alive
    restart(group, "bob")
    group.run(1.0)
    assert number + 1000 < ann._epochs.current.number < number + 1010
    say(group, "ann", b"x")
    group.run(1.0)
    assert payloads(group["bob"]) == payloads(group["carol"]) == [b"x"]


@pytest.mark.parametrize(
    "data", [b"", b"\0\1", b"\0\1\1a", b"\0\0x", b"\0\1\1\7" + bytes(8), b"\0\1\1a" + bytes(8)]
)
def test_bytes_that_are_no_view(data: bytes) -> None:
    with pytest.raises(MalformedError):
        decode(data, 0)
