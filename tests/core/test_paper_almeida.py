"""The figures and examples of Almeida's paper as runs.

The starvation of its section 4.3, in which Cykas never sends and `csps` and `sps`
do, is with the other runs of Cykas.
"""

from __future__ import annotations

from typing import Any

import pytest

from causewire import protocols
from causewire.core.endpoint import Blocked, Wait
from causewire.testing import Network

from .figures import arrive, payloads

SIX = ("i", "j", "k", "h", "p", "q")
ME, J, K, H, P, Q = SIX
HYBRIDS = ("csps", "sps")


def on_its_way(network: Network, source: str, destination: str) -> bool:
    return any(flying[:2] == (source, destination) for flying in network.in_flight)


@pytest.mark.parametrize("protocol", HYBRIDS)
def test_fig1_only_what_is_delivered_before_the_causal_send_happened_before(protocol: str) -> None:
    """a hb c, but not b hb c: b is received before c is causal-sent, delivered
    after, and still before c is network-sent. So c waits for a's permit alone."""
    network = Network.of(protocol, SIX)
    network.send(J, P, "x")
    network.send(J, ME, "a")  # flagged: x is on its way
    network.send(K, ME, "before b")
    network.send(K, Q, "y")
    network.send(K, ME, "b")  # flagged: y is on its way
    arrive(network, J, ME)
    in_order = [n for n, f in enumerate(network.in_flight) if f[:2] == (K, ME)]
    network.arrive(in_order[1])  # b is received, and has to wait for its predecessor
    assert payloads(network, ME) == ["a"]
    network.send(ME, H, "c")
    arrive(network, K, ME)
    assert payloads(network, ME) == ["a", "before b", "b"]
    assert network.endpoints[ME].blocked() == [Blocked(ME, 1, H, "sender", (Wait("permit", J, 2),))]
    arrive(network, J, P)
    arrive(network, P, J, "ack")
    arrive(network, J, ME, "permit")
    assert on_its_way(network, ME, H), "c leaves, whatever b waits for"
    assert network.settle(retransmit=False)
    assert network.oracle.violations == []


def fig2(protocol: str | protocols.Protocol, to: str) -> list[str]:
    """The run of figure 2; returns at which of its moments m to `to` was released.

    R_b, c, R_a, R_c: i gets the permit for b; c; the permit for a; the one for c.
    """
    permit = "yct" if protocol == "cykas" else "permit"
    network = Network.of(protocol, SIX)
    moments: list[Any] = []

    def moment(name: str) -> None:
        if not moments and any("m" in flying.packet for flying in network.in_flight):
            moments.append(name)

    network.send(J, P, "x")
    network.send(J, ME, "a")
    network.send(K, Q, "y")
    network.send(K, ME, "b")
    arrive(network, K, ME)
    arrive(network, J, ME)
    network.send(ME, to, "m")
    moment("at once")
    arrive(network, ME, K)  # the ack of b
    arrive(network, K, Q)
    arrive(network, Q, K)  # k learns that y was delivered, and permits b
    network.send(K, P, "z")
    network.send(K, ME, "c")
    arrive(network, K, ME, permit)
    moment("R_b")
    arrive(network, K, ME)
    assert payloads(network, ME) == ["b", "a", "c"]
    moment("c")
    arrive(network, J, P)
    arrive(network, P, J)
    if protocol == "cykas":
        arrive(network, ME, J)  # Cykas wants the ack of a itself, too (ERRATA 5.5)
    arrive(network, J, ME, permit)
    moment("R_a")
    arrive(network, K, P)
    arrive(network, P, K)
    if protocol == "cykas":
        arrive(network, ME, K)
    arrive(network, K, ME, permit)
    moment("R_c")
    assert network.settle(retransmit=False)
    assert network.oracle.violations == []
    assert payloads(network, to) in (["m"], ["x", "m"])
    return moments


def test_fig2_csps_releases_m_at_the_optimal_time() -> None:
    assert fig2("csps", to=H) == ["R_a"]


def test_fig2_sps_releases_m_at_the_optimal_time_too() -> None:
    assert fig2("sps", to=H) == ["R_a"]


def test_fig2_sps_does_not_wait_for_the_permit_of_the_receiver() -> None:
    assert fig2("sps", to=J) == ["R_b"]
    assert fig2("csps", to=J) == ["R_a"]
    early = protocols.describe("csps").with_options(replies_early=True)
    assert fig2(early, to=J) == ["R_b"], "nor does csps, if it may reply early"


def test_fig2_cykas_waits_for_c_which_does_not_matter() -> None:
    assert fig2("cykas", to=H) == ["R_c"]


MULTICASTING = [
    name
    for name in protocols.names()
    if protocols.describe(name).causal and protocols.describe(name).multicast
]


@pytest.mark.parametrize("protocol", MULTICASTING)
def test_section57_an_answer_to_a_multicast_comes_after_it_everywhere(protocol: str) -> None:
    network = Network.of(protocol, ["i", "j", "k"])
    network.send(ME, {J, K}, "m")
    arrive(network, ME, J)
    network.send(J, K, "m3")
    if on_its_way(network, J, K):
        arrive(network, J, K)
    assert payloads(network, K) == []
    assert network.settle(retransmit=False)
    assert payloads(network, K) == ["m", "m3"]
    assert network.oracle.violations == []


@pytest.mark.parametrize("protocol", MULTICASTING)
def test_section57_two_unicasts_are_not_a_multicast(protocol: str) -> None:
    """m3 answers m1, which was sent before m2: it may come before m2."""
    network = Network.of(protocol, ["i", "j", "k"])
    network.send(ME, J, "m1")
    network.send(ME, K, "m2")
    arrive(network, ME, J)
    network.send(J, K, "m3")
    arrive(network, J, K)
    assert payloads(network, K) == ["m3"]
    assert network.settle(retransmit=False)
    assert network.oracle.violations == []


@pytest.mark.parametrize("protocol", HYBRIDS)
def test_section57_the_permit_goes_to_the_one_whose_own_ack_alone_is_missing(protocol: str) -> None:
    """The optimisation that the paper mentions: j may tell as soon as k has acked."""
    network = Network.of(protocol, ["i", "j", "k"])
    network.send(ME, {J, K}, "m")
    arrive(network, ME, J)
    network.send(J, K, "m3")
    assert not on_its_way(network, J, K)
    arrive(network, ME, K)
    arrive(network, K, ME)
    arrive(network, ME, J, "permit")
    assert on_its_way(network, J, K), "though i does not have j's ack yet"
    assert on_its_way(network, J, ME)
    assert not on_its_way(network, ME, K), "k's permit waits for j's ack"
    arrive(network, J, ME)
    arrive(network, ME, K, "permit")
    assert network.settle(retransmit=False)
    assert network.oracle.violations == []


@pytest.mark.parametrize(("protocol", "last"), [("csps", 3), ("sps", 79)])
def test_ping_pong_with_side_messages_is_bounded_by_round_trips_under_csps_alone(
    protocol: str, last: int
) -> None:
    """ERRATA 2.11: 40 strokes, each after a word to a third party; one-way delay 1.

    Under `sps` the strokes are not delayed at all, and the side messages more and
    more; under `csps` both take as many hops at the end as at the beginning.
    """
    network = Network.of(protocol, ["left", "right", "third"])
    other = {"left": "right", "right": "left"}
    sent: dict[tuple[str, int], int] = {}
    took: list[int] = []
    strokes = 0

    def stroke(player: str) -> None:
        nonlocal strokes
        strokes += 1
        sent[player, network.send(player, "third", "side").mid] = now
        network.send(player, other[player], "stroke")

    def react(process: str, message: Any) -> None:
        if process == "third":
            took.append(now - sent[message.origin, message.mid])
        elif strokes < 40:
            stroke(process)

    network.react = react
    now = 0
    stroke("left")
    while network.in_flight:
        now += 1
        for _ in range(len(network.in_flight)):
            network.arrive(0)
    assert len(took) == 40
    assert took[-1] == last
    assert network.oracle.violations == []
