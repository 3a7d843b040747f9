"""Groups whose members fail, leave, restart and are given up: seeded runs in virtual time."""

from __future__ import annotations

import pytest

from causewire.sim import Slow
from causewire.testing.wire import Faults, Wire, WireWorkload, play
from causewire.transport import PeerForgotten, PeerLeft, PeerRestarted, TransportConfig
from causewire.transport.link import Link

from .epoch_mistakes import MISTAKES
from .mistakes import found
from .pair import interpreted

PROTOCOLS = ("ks", "rst", "bss", "pak", "pak-credit", "pak-nak", "newtop", "mf", "cykas")
BROADCAST = ("bss", "pak", "pak-credit", "pak-nak", "newtop")


def chain() -> Wire:
    """p3 holds back two messages, whose order only a process knows that is dead.

    p0 writes to p3, on a way that takes seconds, and to p1, which writes to p3, rather slowly,
    and back to p0. p0 writes to p3 again, then to p2, which writes to p3. Under `ks`, the
    message of p2 says only that it has to wait for the second message of p0, which would have
    said that it has to wait for that of p1, which has to wait for the first message of p0.
    """
    lost = Slow(at=500_000_000, links=(("p0", "p3"),), oneway=True, factor=2000)
    late = Slow(at=500_000_000, links=(("p1", "p3"),), oneway=True, factor=30)
    wire = Wire(0, protocol="ks", workload=WireWorkload(processes=4), timeline=[lost, late])
    wire.run(0.51)
    for source, *to in (("p0", "p3", "p1"), ("p1", "p3", "p0"), ("p0", "p3", "p2"), ("p2", "p3")):
        host = wire.hosts[source]
        for name in to:
            wire.send(host, [name])
        wire.turn(host)
        wire.run(wire.now + 0.004)
    wire.run(wire.now + 0.1)
    assert not wire.hosts["p3"].delivered
    assert wire.hosts["p3"].transport._carrier.endpoint.held_back == 2  # type: ignore[attr-defined]
    wire.restart(wire.hosts["p0"])
    wire.run(wire.now + 8.0)
    return wire


def test_ks_delivers_what_it_held_back_in_causal_order() -> None:
    wire = chain()
    assert wire.verdict.fine, wire.verdict.complaints
    assert wire.hosts["p3"].delivered.bit_count() == 2


@interpreted
def test_in_the_order_of_arrival_it_would_be_wrong() -> None:
    with MISTAKES["held back, in order of arrival"].made():
        assert "depends on it" in chain().verdict.complaints[0]
    with MISTAKES["held back for ever"].made():
        assert not chain().hosts["p3"].delivered


def straggler() -> Wire:
    """A message of p0 is slow to reach p2; the group changes; p1, who has it, writes to p2."""
    late = Slow(at=500_000_000, links=(("p0", "p2"),), oneway=True, factor=300)
    wire = Wire(0, protocol="rst", workload=WireWorkload(processes=4), timeline=[late])
    wire.run(0.51)
    p0, p1, _, p3 = wire.hosts.values()
    wire.send(p0, ["p1", "p2"])
    wire.turn(p0)
    wire.run(wire.now + 0.01)
    wire.restart(p3)
    wire.run(wire.now + 0.05)
    wire.send(p1, ["p2"])
    wire.turn(p1)
    wire.run(wire.now + 5.0)
    return wire


def test_the_next_epoch_begins_when_the_messages_of_the_last_are_delivered() -> None:
    wire = straggler()
    assert wire.verdict.fine, wire.verdict.complaints
    assert wire.hosts["p2"].delivered.bit_count() == 2


@interpreted
def test_if_it_began_earlier_messages_would_be_lost() -> None:
    with MISTAKES["entering before all is delivered"].made():
        assert straggler().hosts["p2"].delivered.bit_count() < 2


def change(protocol: str, messages: int) -> float:
    """Return how many round trips a group of five needs to go on without one of them."""
    wire = Wire(
        1,
        protocol=protocol,
        faults=Faults(delay=(0.01, 0.01)),
        workload=WireWorkload(processes=5),
    )
    wire.run(0.5)
    *living, dead = wire.hosts.values()
    for k, host in enumerate(living):
        others = [name for name in wire.hosts if name != host.name]
        for _ in range(messages):
            wire.send(host, others if protocol in BROADCAST else [living[k - 1].name])
        wire.turn(host)
    links = [host.transport._carrier for host in living]
    assert all(isinstance(link, Link) and not link.changing for link in links)
    begin = wire.now
    dead.up = False
    living[0].transport.forget(dead.name, begin)
    wire.turn(living[0])
    wire.run(begin + 0.011)
    assert all(link.changing for link in links)
    while any(link.changing for link in links):
        wire.run(wire.now + 0.001)
    return (wire.now - begin) / 0.02


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_change_takes_few_round_trips(protocol: str) -> None:
    waits = protocol in ("pak", "pak-credit", "pak-nak", "mf", "cykas")
    assert change(protocol, 0) < 1.1
    assert change(protocol, 5) < (5.6 if waits else 1.6)


@pytest.mark.slow
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_members_fail_leave_restart_and_are_given_up(protocol: str) -> None:
    """`python -m causewire.testing.wire --failures --protocol ks` does the same for longer."""
    delivered = 0
    for seed in range(8):
        verdict = play(seed, protocol, failures=True)
        assert verdict.fine, f"seed {seed}: {verdict.complaints[:3]}"
        delivered += verdict.delivered
    assert delivered > 80


@pytest.mark.slow
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_several_restart_in_the_middle_of_traffic(protocol: str) -> None:
    """Two or more of five restart, some while the group changes already."""
    noticed: set[type] = set()
    for seed in range(3):
        wire = Wire(
            seed,
            protocol=protocol,
            faults=Faults(
                delay=(0.0005, 0.03), loss=0.1, restarts=4, forgets=1, leaves=1, give_up_after=5.0
            ),
            workload=WireWorkload(
                processes=5,
                messages=15,
                multicast=0.6 if protocol in ("ks", "rst") else 0.0,
                broadcast=protocol in BROADCAST,
                replies=0.7,
            ),
            config=TransportConfig(keepalive=2.0),
        )
        verdict = wire.play()
        assert verdict.fine, f"seed {seed}: {verdict.complaints[:3]}"
        for host in wire.hosts.values():
            noticed |= set(map(type, host.events))
    assert noticed & {PeerForgotten, PeerLeft}
    assert PeerRestarted in noticed


@pytest.mark.slow
@interpreted
@pytest.mark.parametrize("name", MISTAKES)
def test_the_judge_finds_mistakes_in_the_change_of_epochs(name: str) -> None:
    """`python -m tests.transport.epoch_mistakes` counts how often."""
    assert next(found(MISTAKES[name], range(200)), None) is not None
