"""The figures of the Cykas paper as runs, and the starvation that Almeida found."""

from __future__ import annotations

from collections import deque
from typing import NamedTuple

import pytest

from causewire.core.cykas import Cykas
from causewire.core.endpoint import Blocked, Wait
from causewire.testing import Flying, Network

from .figures import arrive, kinds, payloads

ALICE, BOB, CAROL = TRIO = ("alice", "bob", "carol")


def cykas(network: Network, process: str) -> Cykas:
    endpoint = network.endpoints[process]
    assert isinstance(endpoint, Cykas)
    return endpoint


def gossip(protocol: str) -> Network:
    """Figs. 1 and 2: Alice sends m1 to Carol, then m2 to Bob; Bob gets m2, does his
    job, and sends m3 to Carol, which he does when the test says so."""
    network = Network.of(protocol, TRIO)
    network.send(ALICE, CAROL, "m1")
    network.send(ALICE, BOB, "m2")
    return network


# -- Fig. 1 -------------------------------------------------------------------


def test_fig1_left_and_fig2_center_a_violation_of_causal_delivery() -> None:
    network = gossip("unordered")
    arrive(network, ALICE, BOB)
    network.send(BOB, CAROL, "m3")
    arrive(network, BOB, CAROL)
    arrive(network, ALICE, CAROL)
    assert payloads(network, CAROL) == ["m3", "m1"]
    assert [v.kind for v in network.oracle.violations] == ["causal"]


def test_fig1_center_the_receiver_queues_m3() -> None:
    network = gossip("rst")
    arrive(network, ALICE, BOB)
    network.send(BOB, CAROL, "m3")
    arrive(network, BOB, CAROL)
    assert [(b.origin, b.where) for b in network.endpoints[CAROL].blocked()] == [(BOB, "receiver")]
    arrive(network, ALICE, CAROL)
    assert payloads(network, CAROL) == ["m1", "m3"]


def test_fig1_right_the_sender_queues_m2() -> None:
    network = gossip("mf")
    assert [(b.origin, b.where) for b in network.endpoints[ALICE].blocked()] == [(ALICE, "sender")]
    arrive(network, ALICE, CAROL)
    arrive(network, CAROL, ALICE)
    arrive(network, ALICE, BOB)
    network.send(BOB, CAROL, "m3")
    arrive(network, BOB, CAROL)
    assert payloads(network, CAROL) == ["m1", "m3"]


# -- Fig. 2 -------------------------------------------------------------------


def test_fig2_left_under_mf_bobs_job_starts_after_the_ack() -> None:
    network = gossip("mf")
    arrive(network, ALICE, CAROL)
    assert kinds(network) == [(CAROL, ALICE, "ack")]
    assert payloads(network, BOB) == []


def test_fig2_right_under_cykas_bobs_job_starts_at_once() -> None:
    network = gossip("cykas")
    alice, bob = cykas(network, ALICE), cykas(network, BOB)
    assert kinds(network) == [(ALICE, CAROL, "normal"), (ALICE, BOB, "eager")]
    assert alice._eager_sent == {BOB: deque([{CAROL}])}  # section 2.2.1: [001]

    arrive(network, ALICE, BOB)
    assert payloads(network, BOB) == ["m2"]  # the job starts
    assert bob.mode == 1
    network.send(BOB, CAROL, "m3")  # the job is done, but it is a secret
    assert bob.blocked() == [Blocked(BOB, 1, CAROL, "sender", (Wait("permit", ALICE, 2),))]

    arrive(network, BOB, ALICE)  # the ack of m2 alone makes no YCT
    assert kinds(network) == [(ALICE, CAROL, "normal")]
    arrive(network, ALICE, CAROL)
    arrive(network, CAROL, ALICE)
    assert kinds(network) == [(ALICE, BOB, "yct")]
    arrive(network, ALICE, BOB)
    assert bob.mode == 0
    assert kinds(network) == [(BOB, CAROL, "normal")]
    arrive(network, BOB, CAROL)
    assert payloads(network, CAROL) == ["m1", "m3"]
    assert network.settle(retransmit=False)
    assert not network.oracle.violations


# -- Fig. 3 -------------------------------------------------------------------


def fig3(protocol: str) -> Network:
    network = Network.of(protocol, TRIO)
    network.send(BOB, ALICE, "ns1")
    network.send(BOB, CAROL, "es1")
    network.send(ALICE, BOB, "ns2")
    network.send(ALICE, CAROL, "es2")
    arrive(network, BOB, CAROL)
    arrive(network, ALICE, CAROL)
    assert payloads(network, CAROL) == ["es1", "es2"]
    assert cykas(network, CAROL).mode == 2
    network.send(CAROL, ALICE, "ns3")
    return network


def test_fig3_sending_in_secret_mode_violates_causality() -> None:
    network = fig3("cykas-secret-sends")
    arrive(network, CAROL, ALICE)  # the ack of es2
    arrive(network, CAROL, ALICE)
    assert payloads(network, ALICE) == ["ns3"]
    assert network.oracle.explain(network.oracle.violations[0]).splitlines() == [
        "alice delivered carol#1 before bob#1, which happened before it:",
        "    bob sent bob#1 before it sent bob#2",
        "    carol delivered bob#2 before it sent carol#1",
    ]


def test_fig3_only_the_last_confidant_may_be_told() -> None:
    network = fig3("cykas-secret-sends")
    network.send(CAROL, BOB, "to Bob, who told the first secret")
    waits = (Wait("permit", ALICE, 2), Wait("permit", BOB, 2))
    assert network.endpoints[CAROL].blocked() == [Blocked(CAROL, 2, BOB, "sender", waits)]


def test_fig3_under_cykas_ns3_waits_for_both() -> None:
    network = fig3("cykas")
    waits = (Wait("permit", ALICE, 2), Wait("permit", BOB, 2))
    assert network.endpoints[CAROL].blocked() == [Blocked(CAROL, 1, ALICE, "sender", waits)]
    assert network.settle(retransmit=False)
    assert not network.oracle.violations


# -- Almeida, section 4.3 -----------------------------------------------------


class Starvation(NamedTuple):
    """What came of the run in which two senders keep i in secret mode."""

    released: int | None
    """The round in which i released m; None if it was not in all the rounds."""
    modes: list[int]
    """MODE at i, in the middle and at the end of each round (Cykas alone)."""
    delivered: bool
    """Whether m was delivered, some time after the senders had stopped."""


def starvation(protocol: str, rounds: int) -> Starvation:
    """Two processes take turns, one round each: the one whose turn it is sends to
    its sink and then to i. What it sent to its sink arrives in the next round,
    after what the other one sends to i; all else arrives in its own round. When i
    has got its first message it sends m to somebody who has no part in this."""
    names = ("i", "j", "k", "sink of j", "sink of k", "z")
    network = Network.of(protocol, names)
    modes = []
    released = None

    def react(process: str, _: object) -> None:
        if process == "i" and ("i", 1) not in network.oracle.messages:
            network.send("i", "z", "m")

    def all_arrive(slow: tuple[str, str], among: tuple[str, ...]) -> None:
        def comes(flying: Flying) -> bool:
            source, destination = flying[:2]
            return (source, destination) != slow and source in among and destination in among

        while any(coming := [comes(flying) for flying in network.in_flight]):
            network.arrive(coming.index(True))

    def note_mode() -> None:
        if protocol == "cykas":
            modes.append(cykas(network, "i").mode)

    network.react = react
    for turn in range(rounds):
        sender = "jk"[turn % 2]
        slow = (sender, f"sink of {sender}")
        network.send(sender, slow[1], "aside")
        network.send(sender, "i", "to i")
        all_arrive(slow, (sender, "i"))
        note_mode()
        all_arrive(slow, names)
        note_mode()
        assert {flying[:2] for flying in network.in_flight} == {slow}
        if released is None and ("i", "z") in network.links:
            released = turn
    assert network.settle(retransmit=False)
    assert not network.oracle.violations
    return Starvation(released, modes, payloads(network, "z") == ["m"])


@pytest.mark.parametrize(
    ("protocol", "released"), [("cykas", None), ("csps", 1), ("sps", 1), ("mf", 1), ("rst", 0)]
)
def test_almeida_4_3_starvation(protocol: str, released: int | None) -> None:
    """Under Cykas m stays for as long as the senders go on, though every packet
    arrives within two rounds. The others let it go: csps and sps with the permit
    for the one message that happened before m, in round 1; mf at once, but there
    that message comes a round later; the matrix protocol at once."""
    outcome = starvation(protocol, rounds=300)
    assert outcome.released == released
    assert outcome.delivered
    if protocol == "cykas":
        assert outcome.modes == [1, 1] + [2, 1] * 299
