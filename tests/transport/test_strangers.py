"""What others do to a system in virtual time: strangers, wrong processes and names, full disks."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from causewire.node.recorder import TraceRecorder
from causewire.testing.wire import Faults, Wire, WireWorkload, play
from causewire.testing.wire.strangers import NOBODY
from causewire.transport import PeerForgotten, Session
from causewire.transport.greeter import Greeter
from causewire.transport.paths import Paths

from .mistakes import Mistake, found
from .pair import interpreted

pytestmark = pytest.mark.slow

KEY = b"a cluster key of 32 random bytes"


@pytest.mark.parametrize("key", [None, KEY], ids=["plain", "sealed"])
@pytest.mark.parametrize("protocol", ["adaptive", "csps", "sps"])
def test_strangers_change_nothing_between_the_living(protocol: str, key: bytes | None) -> None:
    """`python -m causewire.testing.wire --failures --strangers` does the same for longer."""
    for seed in range(40):
        verdict = play(seed, protocol, key, failures=True, disturb=True)
        assert verdict.fine, f"seed {seed}: {verdict.complaints[:3]}"


@pytest.mark.parametrize("protocol", ["ks", "bss", "mf", "newtop"])
def test_protocols_on_a_link(protocol: str) -> None:
    for seed in range(8):
        verdict = play(seed, protocol, failures=True, disturb=True)
        assert verdict.fine, f"seed {seed}: {verdict.complaints[:3]}"


DIVERTED = 1018
"""A seed in which copies of greetings arrive first, in both directions, and once diverted two
processes for good, as each greeted the other at the right address and heard nothing there."""


def test_a_diversion_during_the_handshake_ends() -> None:
    verdict = play(DIVERTED, "adaptive", failures=True, disturb=True)
    assert verdict.fine, verdict.complaints[:3]


RECORDED = 800009682
"""A seed in which recordings of greetings, for a former incarnation, arrive while two processes
agree on keys. Each one changed the keys of one side, until the two never had the same again."""


def test_recordings_of_greetings_change_no_keys() -> None:
    verdict = play(RECORDED, "csps", b"k" * 32, failures=True, disturb=True)
    assert verdict.fine, verdict.complaints[:3]


def disturbed(seed: int, key: bytes | None = None, **faults: Any) -> Wire:
    """A system that others disturb, on a good network."""
    load = WireWorkload(processes=4, messages=12, multicast=0.5, replies=0.5)
    wire = Wire(seed, key=key, faults=Faults(give_up_after=2.0, **faults), workload=load)
    verdict = wire.play()
    assert verdict.fine, f"seed {seed}: {verdict.complaints[:3]}"
    return wire


@pytest.mark.parametrize("key", [None, KEY], ids=["plain", "sealed"])
def test_floods_are_dropped(key: bytes | None) -> None:
    reasons: Counter[str] = Counter()
    for seed in range(6):
        wire = disturbed(seed, key, floods=3)
        for host in wire.hosts.values():
            reasons.update(host.transport.stats.dropped)
    assert {"duplicate", "malformed", "other_version", "unverified"} <= set(reasons)
    assert reasons.total() > 1000


def test_strangers_are_answered_and_not_followed() -> None:
    answered = 0
    for seed in range(6):
        wire = disturbed(seed, diversions=3, restarts=2)
        assert wire.strangers is not None
        answered += wire.strangers._went.total()
        places = {session.address[0] for session in sessions(wire)}
        assert places == {"127.0.0.1"}
    assert answered


def sessions(wire: Wire) -> list[Session]:
    """The established sessions at the end."""
    return [
        session
        for host in wire.hosts.values()
        for session in host.transport._peers.live.values()
        if session.established
    ]


def test_both_sides_of_a_misfit_learn_why() -> None:
    """Under another protocol they are told; with another key they have to guess."""
    told: set[str] = set()
    for seed in range(6):
        wire = disturbed(seed, misfit=True)
        assert wire.strangers is not None
        told |= wire.strangers.informed
    assert told


def test_messages_to_a_process_that_never_was_fail() -> None:
    given_up = 0
    for seed in range(6):
        wire = disturbed(seed, absent=True)
        for host in wire.hosts.values():
            given_up += sum(
                isinstance(event, PeerForgotten) and event.name == NOBODY for event in host.events
            )
    assert given_up


def test_traces_end_where_the_disk_is_full() -> None:
    ended = 0
    for seed in range(6):
        wire = disturbed(seed, full_disks=1.0)
        for host in wire.hosts.values():
            recorder = host.transport.observer
            assert isinstance(recorder, TraceRecorder)
            ended += recorder.failure is not None
    assert ended > 6


# -- known-bads -----------------------------------------------------------------------------


def _believes(self: Paths, address: Any, repeats: bytes) -> bool:
    """Whoever greets is where the greeting comes from."""
    return True


def _follows(self: Paths, session: Session, address: Any, now: float) -> None:
    """An address is used without a challenge."""
    self._peers.moved(session, address)


def _mixes_protocols(self: Greeter, peer: Any, greeting: Any) -> str:
    """Every protocol is the same."""
    return ""


def _raises(self: TraceRecorder, error: Exception) -> None:
    """A trace that cannot be written any more is an error of whoever sends."""
    raise AssertionError from error


MISTAKES = {
    "the sender of a greeting is believed": Mistake(Paths, "proved", _believes),
    "addresses are used without a challenge": Mistake(Paths, "seen", _follows),
    "protocols are mixed": Mistake(Greeter, "_incompatible", _mixes_protocols),
    "a full disk is an error of the sender": Mistake(TraceRecorder, "_failed", _raises),
}


@interpreted
@pytest.mark.parametrize("name", MISTAKES)
def test_the_judge_finds_mistakes(name: str) -> None:
    assert next(found(MISTAKES[name], range(1000, 1200), disturb=True), None) is not None
