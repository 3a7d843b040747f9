"""The figures of Mattern and Fünfrocken, as runs.

In the buffer protocol as it is here, a message is delivered as it is got, so the
order of gets at an input buffer is the order of deliveries.
"""

from __future__ import annotations

import copy
from itertools import product
from typing import Any

import pytest

from causewire import protocols
from causewire.core.endpoint import Blocked, Endpoint, LocalProtocolError, Packet, Wait
from causewire.testing import Network

from .figures import arrive, kinds, payloads

P1, P2, P3 = TRIO = ("P1", "P2", "P3")


def test_fig2_a_single_message_passing_operation() -> None:
    network = Network.of("mf", TRIO)
    network.send(P1, P2, "m")  # send, insert, post
    assert kinds(network) == [(P1, P2, "msg")]
    arrive(network, P1, P2)  # get, deliver, receive
    assert payloads(network, P2) == ["m"]
    assert kinds(network) == [(P2, P1, "ack")]
    assert not network.endpoints[P1].idle
    arrive(network, P2, P1)  # acknowledge
    assert network.idle


def test_fig3_no_deadlock_where_synchronous_sends_would() -> None:
    """Fig. 1: each waits for the other to accept its message; here, neither does."""
    network = Network.of("mf", TRIO)
    network.send(P1, P2, "m")
    network.send(P2, P1, "n")
    assert kinds(network) == [(P1, P2, "msg"), (P2, P1, "msg")]
    arrive(network, P1, P2)
    arrive(network, P2, P1)
    assert (payloads(network, P1), payloads(network, P2)) == (["n"], ["m"])
    assert network.settle(retransmit=False)


# -- section 4.1: the first program -------------------------------------------
#
#   P1: send x to P3; send y to P2      P2: receive; send z to P3      P3: receive; receive


def first_program(protocol: str) -> Network:
    network = Network.of(protocol, TRIO)
    network.react = lambda process, message: (
        network.send(process, P3, "z") and None if message.payload == "y" else None
    )
    network.send(P1, P3, "x")
    network.send(P1, P2, "y")
    return network


def test_fig4_without_causal_order_z_overtakes_x() -> None:
    network = first_program("unordered")
    arrive(network, P1, P2)
    arrive(network, P2, P3)
    arrive(network, P1, P3)
    assert payloads(network, P3) == ["z", "x"]
    assert [v.kind for v in network.oracle.violations] == ["causal"]


def test_fig5_the_matrix_protocol_delays_z_at_its_receiver() -> None:
    network = first_program("rst")
    arrive(network, P1, P2)
    arrive(network, P2, P3)
    assert payloads(network, P3) == []
    assert network.endpoints[P3].blocked() == [
        Blocked(P2, 1, P3, "receiver", (Wait("predecessor", P1, 1),))
    ]
    arrive(network, P1, P3)
    assert payloads(network, P3) == ["x", "z"]
    assert not network.oracle.violations


def test_fig6_the_buffer_protocol_delays_y_at_its_sender() -> None:
    """The first message of the chain that might overtake waits, not the last."""
    network = first_program("mf")
    assert kinds(network) == [(P1, P3, "msg")]
    assert network.endpoints[P1].blocked() == [Blocked(P1, 2, P2, "sender", (Wait("ack", P3, 1),))]
    arrive(network, P1, P3)
    assert kinds(network) == [(P3, P1, "ack")]
    arrive(network, P3, P1)
    assert kinds(network) == [(P1, P2, "msg")]
    arrive(network, P1, P2)
    arrive(network, P2, P3)
    assert payloads(network, P3) == ["x", "z"]
    assert not network.oracle.violations


# -- section 4.2: the second program, and its crowns --------------------------
#
#   P1: send e to P2; send d to P3; receive; receive
#   P2: send c to P3; send b to P1; receive; receive
#   P3: send a to P1; send f to P2; receive; receive

SECOND_PROGRAM = [(P1, P2, "e"), (P1, P3, "d"), (P2, P3, "c"), (P2, P1, "b"), (P3, P1, "a")]
SECOND_PROGRAM += [(P3, P2, "f")]

Outcome = tuple[str, str, str]
"""What P1, P2 and P3 received, in order."""

OVERLAPPING: Outcome = ("ab", "ef", "cd")  # Fig. 7
NESTED: Outcome = ("ba", "fe", "dc")  # Fig. 8
ALL = set(product(("ab", "ba"), ("ef", "fe"), ("cd", "dc")))


def second_program(protocol: str) -> Network:
    network = Network.of(protocol, TRIO)
    for source, destination, payload in SECOND_PROGRAM:
        network.send(source, destination, payload)
    return network


def outcome(network: Network) -> Outcome:
    one, two, three = ("".join(payloads(network, name)) for name in TRIO)
    return one, two, three


def test_fig7_overlapping_crowns_under_the_buffer_protocol() -> None:
    network = second_program("mf")
    for source, destination in [(P1, P2), (P2, P3), (P3, P1)]:  # e, c, a
        arrive(network, source, destination)
        arrive(network, destination, source)
    for source, destination in [(P1, P3), (P2, P1), (P3, P2)]:  # d, b, f
        arrive(network, source, destination)
    assert outcome(network) == OVERLAPPING
    assert not network.oracle.violations


def test_fig8_nested_crowns_under_the_matrix_protocol() -> None:
    network = second_program("rst")
    for source, destination in [(P2, P1), (P1, P3), (P3, P2)]:  # b, d, f
        arrive(network, source, destination)
    for source, destination in [(P2, P3), (P1, P2), (P3, P1)]:  # c, e, a
        arrive(network, source, destination)
    assert outcome(network) == NESTED
    assert not network.oracle.violations


def outcomes(protocol: str) -> set[Outcome]:
    """All that can come of the second program, by trying every order of arrival."""
    start = [protocols.create(protocol, name, TRIO) for name in TRIO]
    for source, destination, payload in SECOND_PROGRAM:
        start[TRIO.index(source)].send(destination, payload)
    flying: list[tuple[str, str, Packet]] = []
    for endpoint in start:
        flying += [(endpoint.me, to, packet) for to, packet in endpoint.take_packets()]
    State = tuple[tuple[Endpoint, ...], frozenset[tuple[str, str, Packet]], Outcome]  # noqa: N806
    todo: list[State] = [(tuple(start), frozenset(flying), ("", "", ""))]
    seen = set(todo)
    found = set()
    for endpoints, on_their_way, got in todo:
        if not on_their_way:
            found.add(got)
        for source, destination, packet in on_their_way:
            place = TRIO.index(destination)
            endpoint = copy.copy(endpoints[place])
            endpoint.receive(source, packet)
            rest = on_their_way - {(source, destination, packet)}
            sent = {(destination, to, packet) for to, packet in endpoint.take_packets()}
            assert not rest & sent, "a set must do: no packet is on its way twice"
            more = "".join(delivery.payload for delivery in endpoint.take_deliveries())
            after: Any = (
                (*endpoints[:place], endpoint, *endpoints[place + 1 :]),
                rest | sent,
                (*got[:place], got[place] + more, *got[place + 1 :]),
            )
            if after not in seen:
                seen.add(after)
                todo.append(after)
    return found


def test_nested_crowns_are_possible_under_the_matrix_protocol() -> None:
    assert outcomes("rst") == ALL


def test_nested_crowns_and_nothing_else_are_impossible_under_the_buffer_protocol() -> None:
    assert outcomes("mf") == ALL - {NESTED}


# -- footnote 4, and section 5 ------------------------------------------------


def test_footnote4_messages_to_one_receiver_do_not_wait_for_each_other() -> None:
    network = Network.of("mf", TRIO, protocol_options={"fifo": True})
    for destination in (P2, P2, P3, P2):
        network.send(P1, destination)
    assert kinds(network) == [(P1, P2, "msg")] * 2
    arrive(network, P1, P2)
    arrive(network, P2, P1)
    assert kinds(network) == [(P1, P2, "msg")]
    arrive(network, P1, P2)
    arrive(network, P2, P1)
    assert kinds(network) == [(P1, P3, "msg")]
    assert network.settle(retransmit=False)
    assert not network.oracle.violations


def test_section5_broadcasts_are_left_to_future_work() -> None:
    """Were copies posted like messages, an answer could overtake one: it is sent by
    another process, which knows nothing of the acks that are missing."""
    network = Network.of("mf", TRIO)
    with pytest.raises(LocalProtocolError, match="unicast"):
        network.send(P1, {P2, P3}, "question")
    network.send(P1, P2, "question")
    network.send(P1, P3, "question")
    arrive(network, P1, P2)
    network.send(P2, P3, "answer")
    arrive(network, P2, P3)
    assert payloads(network, P3) == ["answer"]
