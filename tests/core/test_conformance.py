"""Every protocol keeps what the registry promises, on every network that it must bear.

Runs are judged by an oracle that knows nothing but the definition of causal order.
They are random, from seeds and from Hypothesis; `python -m campaigns.soak` does the same
for a hundred thousand seeds. A test here that passed because nothing happened would
be worth nothing, so what did happen is tested as well: messages were concurrent,
packets overtook one another, were lost, came twice, and messages were held back.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from hypothesis import Phase, given, settings

from causewire import protocols
from causewire.testing import (
    VARIANTS,
    Outcome,
    admits,
    command,
    narrate,
    replay,
    run,
    runs,
    shrink,
    tolerated_networks,
)
from causewire.testing.play import Play
from causewire.testing.strategies import outcomes

NAMES = protocols.names()
EVERYTHING: Any = [(name, {}) for name in NAMES]
EVERYTHING += [(name, options) for name in NAMES for options in VARIANTS.get(name, ())]
GOOD = [name for name in NAMES if not admits(name)]
KNOWN_BADS = [name for name in NAMES if admits(name)]
SEEDS = range(250)


def complaint(outcome: Outcome) -> str:
    """What is wrong with a run, and a small one that is wrong in the same way."""
    return f"{outcome.explain()}\n\nsmaller:\n{narrate(shrink(outcome.play.case()))}"


@pytest.mark.parametrize(
    ("protocol", "profile", "options"),
    [
        (name, profile.name, options)
        for name, options in EVERYTHING
        for profile in tolerated_networks(name, options)
    ],
    ids=str,
)
def test_seeded_runs(protocol: str, profile: str, options: dict[str, object]) -> None:
    seeds = SEEDS if not options else SEEDS[:100]
    messages = deliveries = 0
    for seed, outcome in zip(
        seeds, runs(protocol, profile, seeds, protocol_options=options), strict=True
    ):
        if not set(outcome.kinds) <= admits(protocol):
            print(command(protocol, profile, seed, options))
            pytest.fail(complaint(outcome))
        messages += outcome.messages
        deliveries += outcome.deliveries
    assert messages > 5 * len(seeds)
    assert deliveries > (4 if not protocols.describe(protocol).live else 5) * len(seeds)


@pytest.mark.parametrize("protocol", GOOD)
def test_runs_by_hypothesis(protocol: str) -> None:
    @settings(max_examples=25)
    @given(outcomes(protocol, max_processes=5))
    def all_is_well(outcome: Outcome) -> None:
        assert outcome.ok, complaint(outcome)

    all_is_well()


@pytest.mark.parametrize("protocol", GOOD)
def test_when_all_is_done_there_is_silence(protocol: str) -> None:
    """An idle endpoint has nothing to say, however often it is given the occasion."""
    for profile in tolerated_networks(protocol):
        for outcome in runs(protocol, profile.name, range(20)):
            network = outcome.play.network
            for process in network.endpoints:
                network.retransmit(process)
                network.collect(process)
            assert not network.in_flight


# -- what must be caught ------------------------------------------------------


@pytest.mark.parametrize(
    ("protocol", "profile", "kind", "most"),
    [
        ("unordered", "reorder", "causal", 2),
        ("unordered", "fifo", "causal", 2),
        ("fifo", "fifo", "causal", 2),
        ("fifo", "lossy", "causal", 2),
        ("cykas-secret-sends", "fifo-delay", "causal", 5),
        ("cykas-as-printed", "fifo", "undelivered", 2),
    ],
)
def test_known_bads_are_caught(protocol: str, profile: str, kind: str, most: int) -> None:
    """Each with a counterexample of few messages, that is a case and fails by itself."""
    caught = next(
        outcome for outcome in runs(protocol, profile, range(20_000)) if kind in outcome.kinds
    )
    small = shrink(caught.play.case(), kind)
    outcome = replay(small)
    print(narrate(small))
    assert kind in outcome.kinds
    assert outcome.messages <= most
    assert len(small.processes) <= 3
    assert len(small.schedule) <= len(caught.play.schedule)


def test_every_known_bad_is_there() -> None:
    assert KNOWN_BADS == ["cykas-as-printed", "cykas-secret-sends", "fifo", "unordered"]


def test_hypothesis_catches_them_too() -> None:
    @settings(
        max_examples=300,
        phases=[Phase.generate],
    )
    @given(outcomes("fifo"))
    def all_is_well(outcome: Outcome) -> None:
        assert outcome.ok

    with pytest.raises(AssertionError):
        all_is_well()


def test_fifo_keeps_the_order_of_each_sender() -> None:
    """All that it does wrong is between messages of different senders."""
    for profile in tolerated_networks("fifo"):
        for outcome in runs("fifo", profile.name, range(50)):
            assert not any(violation.fifo for violation in outcome.violations)


@pytest.mark.parametrize(
    ("protocol", "profile"),
    [
        (name, profile)
        for name in GOOD
        for profile, borne in [
            ("reorder", not protocols.describe(name).needs_fifo),
            ("loss", protocols.describe(name).tolerates_loss),
            ("duplication", protocols.describe(name).tolerates_duplication),
        ]
        if not borne
    ],
)
def test_what_is_not_promised_does_not_hold(protocol: str, profile: str) -> None:
    """The registry does not promise too little: on other networks, the protocol fails."""
    assert any(not outcome.ok for outcome in runs(protocol, profile, range(300)))


# -- that something happened --------------------------------------------------


class Observer:
    """Sees which messages are held back on the way."""

    def __init__(self) -> None:
        self.held: Counter[str] = Counter()
        self.reasons: Counter[str] = Counter()

    def __call__(self, play: Play) -> None:
        for endpoint in play.network.endpoints.values():
            for blocked in endpoint.blocked():
                self.held[blocked.where] += 1
                self.reasons.update(wait.kind for wait in blocked.waits)


@pytest.mark.parametrize("protocol", NAMES)
def test_the_runs_are_worth_something(protocol: str) -> None:
    about = protocols.describe(protocol)
    seen: Counter[str] = Counter()
    observer = Observer()
    for profile in tolerated_networks(protocol):
        for seed in range(25):
            outcome = run(protocol, profile.name, seed, probe=observer)
            play = outcome.play
            seen["concurrent"] += outcome.play.network.oracle.concurrent()
            seen["overtaken" if not profile.replay else ""] += outcome.overtaken
            seen["lost"] += play.lost
            seen["replayed"] += play.replayed
            seen["sent inside deliveries"] += play.reacted * play.inside
            seen["sent after deliveries"] += play.reacted * (not play.inside)
            seen["collected late"] += play.lazy
            seen["many processes"] += len(play.network.endpoints) > 5
            seen["to oneself"] += any(
                message.origin in message.to for message in play.network.oracle.messages.values()
            )
    some = ["concurrent", "sent inside deliveries", "sent after deliveries", "collected late"]
    some += ["many processes", "to oneself"]
    some += ["overtaken"] if not about.needs_fifo else []
    some += ["lost"] if about.tolerates_loss else []
    some += ["replayed"] if about.tolerates_duplication else []
    for what in some:
        assert seen[what] > 5, what
    assert not about.needs_fifo or not seen["overtaken"], "these channels are not FIFO"
    where = {"none": [], "hybrid": ["sender", "receiver"], "both": ["sender", "receiver"]}
    for place in where.get(about.buffering, [about.buffering]):
        assert observer.held[place] > 10, f"nothing was held back at its {place}"


# -- runs as values -----------------------------------------------------------


@pytest.mark.parametrize("protocol", NAMES)
def test_a_run_is_a_function_of_its_seed(protocol: str) -> None:
    for profile in tolerated_networks(protocol):
        for seed in range(5):
            first, second = (run(protocol, profile.name, seed) for _ in range(2))
            again = replay(first.play.case())
            for other in (second, again):
                assert other.play.schedule == first.play.schedule
                assert other.kinds == first.kinds
                assert other.play.network.links == first.play.network.links
                assert [str(e) for e in other.play.network.oracle.history] == [
                    str(e) for e in first.play.network.oracle.history
                ]


@pytest.mark.parametrize("protocol", NAMES)
def test_all_that_is_undelivered_is_accounted_for(protocol: str) -> None:
    """At any time, what is not delivered is in flight or `blocked`, in just one place."""
    about = protocols.describe(protocol)

    def look(play: Play) -> None:
        network = play.network
        missing = {
            (v.message.origin, v.message.mid, v.process) for v in network.oracle.undelivered()
        }
        held = [
            (blocked.origin, blocked.mid, blocked.destination)
            for endpoint in network.endpoints.values()
            for blocked in endpoint.blocked()
        ]
        assert len(held) == len(set(held))
        assert set(held) <= missing, "held back, and yet delivered"
        for endpoint in network.endpoints.values():
            for blocked in endpoint.blocked():
                assert blocked.waits or not about.live, f"{blocked} waits for nothing"
                here = blocked.origin if blocked.where == "sender" else blocked.destination
                assert here == endpoint.me
                for wait in blocked.waits:
                    if wait.kind == "predecessor" and blocked.where == "receiver":
                        assert (wait.peer, wait.mid, endpoint.me) in missing, f"not so: {blocked}"
        if not play.lazy:
            flying = [
                (source, destination)
                for source, destination, _, packet in network.in_flight
                if "payload" in packet.fields
            ]
            elsewhere = [(origin, to) for origin, _, to in missing - set(held)]
            surplus = Counter(flying)
            surplus.subtract(Counter(elsewhere))
            assert min(surplus.values(), default=0) >= 0, "neither in flight nor held back"
            if not about.tolerates_loss:
                assert not any(surplus.values()), "in flight, and yet delivered or held back"

    for profile in ["fifo", "fifo-delay"] if about.needs_fifo else ["reorder", "delay"]:
        for seed in range(20):
            run(protocol, profile, seed, probe=look)
