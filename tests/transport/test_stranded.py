"""Processes that never reach each other again, while everybody else reaches them.

They moved, and nobody can look up where to. What they send to each other fails; what others
send must not wait for it.
"""

from __future__ import annotations

import pytest

from causewire.core.adaptive import Adaptive
from causewire.sim import Partition
from causewire.testing.wire import Faults, Wire, WireWorkload, play
from causewire.transport.listing import Listing


def given_up(*unreached: str) -> Wire:
    """p3 waits for a message that p0 has given up, and the first who knew that is dead.

    p0 does not reach some of the others. It writes to p3 and to p1, p1 writes to p2, p2 to
    p3, and p1 dies.
    """
    cuts = [Partition(at=0, name=name, sides=(("p0",), (name,))) for name in unreached]
    wire = Wire(
        0,
        protocol="adaptive",
        faults=Faults(give_up_after=2.0),
        workload=WireWorkload(processes=4),
        timeline=cuts,
    )
    wire.run(0.5)
    for source, *to in (("p0", "p3", "p1"), ("p1", "p2"), ("p2", "p3")):
        for name in to:
            assert wire.send(wire.hosts[source], [name])
        wire.turn(wire.hosts[source])
        wire.run(wire.now + 0.05)
    wire.hosts["p1"].up = False
    wire.run(wire.now + 6.0)
    return wire


def test_nobody_waits_for_a_message_that_was_given_up() -> None:
    wire = given_up("p3")
    assert wire.hosts["p3"].delivered.bit_count() == 1
    assert wire.hosts["p3"].transport.idle


def test_if_only_those_on_the_way_were_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Adaptive, "_report_dropped", lambda *_: None)
    monkeypatch.setattr(Listing, "absent", {})
    assert not given_up("p3").hosts["p3"].delivered


def test_nobody_waits_for_a_process_that_it_never_meets() -> None:
    wire = given_up("p2", "p3")
    assert wire.hosts["p3"].delivered.bit_count() == 1
    assert wire.hosts["p3"].transport.idle


def test_if_only_peers_were_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Listing, "absent", {})
    assert not given_up("p2", "p3").hosts["p3"].delivered


@pytest.mark.slow
def test_a_group_is_not_left_in_the_middle_of_a_change() -> None:
    """p2 and p5 cannot reach each other, the others reach both, and nobody has messages."""
    verdict = play(18, "bss", failures=True, strand=True)
    assert verdict.fine, verdict.complaints


@pytest.mark.slow
@pytest.mark.parametrize("protocol", ["csps", "sps", "adaptive"])
def test_everything_else_goes_on(protocol: str) -> None:
    """`python -m causewire.testing.wire --failures --stranded --runs 5000` does it for longer."""
    for seed in range(4):
        verdict = play(seed, protocol, failures=True, strand=True)
        assert verdict.fine, f"seed {seed}: {verdict.complaints[:3]}"
        assert verdict.delivered
