"""Whole transports in virtual time: seeded runs on a network that does its worst."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from causewire.sim import Slow
from causewire.testing.wire import Faults, Wire, WireWorkload, play
from causewire.testing.wire.runs import failing, seeded
from causewire.transport import (
    NameInUse,
    NodeRenumbered,
    PeerForgotten,
    PeerLeft,
    PeerMoved,
    PeerRestarted,
    TransportConfig,
)
from causewire.transport.session import Session

from .mistakes import found
from .pair import interpreted
from .wire_mistakes import MISTAKES

pytestmark = pytest.mark.slow

KEY = b"a cluster key of 32 random bytes"

SEEDS = {"csps": 150, "sps": 75}
OTHERS = ("mf", "cykas", "ks", "rst", "bss", "newtop", "pak", "pak-credit", "pak-nak")


@pytest.mark.parametrize("protocol", SEEDS)
@pytest.mark.parametrize("part", range(3))
def test_nothing_goes_wrong_however_bad_the_network(protocol: str, part: int) -> None:
    """`python -m causewire.testing.wire --runs 5000` does the same for longer."""
    share = SEEDS[protocol] // 3
    concurrent = delivered = dropped = 0
    for seed in range(part * share, (part + 1) * share):
        verdict = play(seed, protocol)
        assert verdict.fine, f"seed {seed}: {verdict.complaints[:3]}"
        concurrent += verdict.concurrent
        delivered += verdict.delivered
        dropped += verdict.dropped
    # Something really happened: messages, concurrency, damage.
    assert delivered > 10 * share
    assert concurrent > share
    assert dropped > share


@pytest.mark.parametrize("protocol", OTHERS)
def test_every_protocol_runs_on_the_same_transport(protocol: str) -> None:
    for seed in range(15):
        verdict = play(seed, protocol)
        assert verdict.fine, f"seed {seed}: {verdict.complaints[:3]}"
        assert verdict.delivered


@pytest.mark.parametrize("protocol", ["fifo", "unordered"])
def test_the_judge_sees_the_known_bads(protocol: str) -> None:
    complaints = [text for seed in range(25) for text in play(seed, protocol).complaints]
    assert any("depends on it" in text for text in complaints)
    assert all("depends on it" in text for text in complaints)


def test_encrypted_runs() -> None:
    for seed in range(30):
        verdict = play(seed, key=KEY)
        assert verdict.fine, f"seed {seed}: {verdict.complaints[:3]}"


@pytest.mark.parametrize("seed", [3, 14, 159])
def test_a_seed_decides_everything(seed: int) -> None:
    one, other = play(seed), play(seed)
    assert one.log == other.log
    assert one == other
    assert one.log != play(seed + 1).log


PRINT = "from causewire.testing.wire import play; print([play(s).log for s in range(4)])"


def test_in_every_process() -> None:
    """Sets of names have another order in each; nothing may depend on it."""
    printed = {
        subprocess.run(
            [sys.executable, "-c", PRINT],
            env=os.environ | {"PYTHONHASHSEED": seed},
            capture_output=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(printed) == 1


def test_restarts_are_survived_and_noticed() -> None:
    noticed = 0
    for seed in range(20):
        wire = Wire(
            seed,
            faults=Faults(delay=(0.0005, 0.08), restarts=3, loss=0.1),
            workload=WireWorkload(processes=4, messages=12, multicast=0.6, replies=0.7, pace=0.004),
            config=TransportConfig(keepalive=2.0),
        )
        verdict = wire.play()
        assert verdict.fine, f"seed {seed}: {verdict.complaints[:3]}"
        for host in wire.hosts.values():
            noticed += sum(isinstance(event, PeerRestarted) for event in host.events)
    assert noticed > 20


def last_words(protocol: str = "csps") -> Wire:
    """p0 sends to p2, on a slow way, then to p1, and dies; p1 passes it on to p2."""
    slowly = Slow(at=100_000_000, links=(("p0", "p2"),), oneway=True, factor=1000)
    workload = WireWorkload(processes=3)
    wire = Wire(0, protocol=protocol, workload=workload, timeline=[slowly])
    p0, p1, p2 = wire.hosts.values()
    wire.run(0.1)
    wire.send(p0, ["p2"])
    wire.send(p0, ["p1"])
    wire.turn(p0)
    wire.run(0.2)
    assert p1.delivered
    wire.send(p1, ["p2"])
    wire.turn(p1)
    wire.run(0.3)
    assert not p2.delivered  # p1 waits for the permit of p0, or p2 for the message of p0
    wire.restart(p0)
    wire.run(0.6)
    assert p2.delivered  # which will never come
    wire.run(5.0)
    return wire


@pytest.mark.parametrize("protocol", ["csps", "sps", "adaptive"])
def test_who_depends_on_the_dead_is_told_not_to_hear_their_last_words(protocol: str) -> None:
    wire = last_words(protocol)
    assert wire.verdict.fine, wire.verdict.complaints
    assert wire.hosts["p2"].transport.stats.dropped["unknown_session"] == 1


@interpreted
def test_without_obituaries_they_would_be_heard_too_late(monkeypatch: pytest.MonkeyPatch) -> None:
    def tells_nobody(self: Session, budget: object, sent: object) -> bool:
        self.obituaries = {}
        return True

    monkeypatch.setattr(Session, "_put_obituaries", tells_nobody)
    assert "depends on it" in last_words().verdict.complaints[0]


def test_a_peer_that_moves_goes_on() -> None:
    moved = 0
    for seed in range(10):
        wire = Wire(
            seed,
            faults=Faults(moves=4, loss=0.05),
            workload=WireWorkload(processes=3, messages=15, pace=0.03),
            config=TransportConfig(keepalive=2.0),
        )
        verdict = wire.play()
        assert verdict.fine, f"seed {seed}: {verdict.complaints[:3]}"
        for host in wire.hosts.values():
            moved += sum(isinstance(event, PeerMoved) for event in host.events)
    assert moved > 10


FAILING = {"csps": 120, "sps": 60}


@pytest.mark.parametrize("protocol", FAILING)
def test_processes_that_fail_leave_and_collide(protocol: str) -> None:
    """They are given up, dead or alive; they leave; their clocks are set back; names collide.

    `python -m causewire.testing.wire --failures --runs 5000` does the same for longer.
    """
    delivered = 0
    for seed in range(FAILING[protocol]):
        verdict = play(seed, protocol, failures=True)
        assert verdict.fine, f"seed {seed}: {verdict.complaints[:3]}"
        delivered += verdict.delivered
    assert delivered > 8 * FAILING[protocol]


def test_what_the_failing_runs_are_made_of() -> None:
    """Every kind of fault really happens in them."""
    seen: set[type] = set()
    unread = 0
    for seed in range(FAILING["csps"]):
        faults, workload, config = seeded(seed)
        faults, workload = failing(seed, faults, workload)
        wire = Wire(seed, faults=faults, workload=workload, config=config)
        wire.play()
        for host in wire.hosts.values():
            seen |= set(map(type, host.events))
            unread += sum(
                isinstance(event, PeerForgotten) and bool(event.reason) for event in host.events
            )
    assert seen >= {NameInUse, NodeRenumbered, PeerForgotten, PeerLeft, PeerRestarted}
    assert unread > 3


@interpreted
@pytest.mark.parametrize("name", MISTAKES)
def test_the_judge_finds_mistakes_in_the_handling_of_failures(name: str) -> None:
    """`python -m tests.transport.wire_mistakes` counts how often."""
    assert next(found(MISTAKES[name], range(300)), None) is not None


LATE_NEWS = {41001437: "adaptive", 41004170: "csps", 41006171: "csps", 41009928: "csps"}
"""Seeds whose last news, that a name was taken, waits for a keepalive when all else is quiet."""


@pytest.mark.parametrize("seed", LATE_NEWS)
def test_a_process_whose_name_was_taken_is_told_with_a_keepalive(seed: int) -> None:
    verdict = play(seed, LATE_NEWS[seed], failures=True)
    assert verdict.fine, verdict.complaints[:3]
