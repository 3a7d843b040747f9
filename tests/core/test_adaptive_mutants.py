"""`adaptive`: its mutants are caught, and so are the schedules on which a prototype failed."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import count
from pathlib import Path

import pytest

from causewire import protocols
from causewire.testing import Network, load, narrate, replay, run

from .adaptive_mutants import FORGETFUL, STUCK, UNSAFE, Replacing, mutant
from .adaptive_world import PROFILES, adaptive, arrive_where, at_rest, endpoint_of

CASES = sorted((Path(__file__).parent / "adaptive_cases").glob("*.json"))


# -- schedules ----------------------------------------------------------------


@pytest.mark.parametrize("path", CASES, ids=lambda path: path.stem)
def test_schedules_on_which_a_prototype_failed(path: Path) -> None:
    case = load(path)
    assert case.protocol == "adaptive"
    for cap in {case.options["cap"], 0, 1, 2, None}:
        for groups in (0, 16):
            variant = replace(case, options={"cap": cap, "groups": groups})
            outcome = replay(variant)
            assert outcome.ok, narrate(variant)
            sent = sum(action[0] == "send" for action in case.schedule)
            assert outcome.messages == sent
            at_rest(outcome.play.network)


def test_all_schedules_are_there() -> None:
    assert len(CASES) == 13
    assert len({json.loads(path.read_text())["title"] for path in CASES}) == 13


# -- mutants ------------------------------------------------------------------


def first_failure(protocol: protocols.Protocol, kinds: set[str], most: int) -> int:
    """The first random run that goes wrong in one of these ways."""
    for seed in range(most):
        outcome = run(protocol, PROFILES[seed % len(PROFILES)], seed)
        if kinds & set(outcome.kinds):
            return seed
    raise AssertionError(f"{protocol.name} passed {most} runs")


@pytest.mark.parametrize(
    "name", [name for name in UNSAFE if name not in ("cover_any", "newest_done")]
)
def test_unsafe_mutants_are_caught(name: str) -> None:
    endpoint, options = UNSAFE[name]
    first_failure(mutant(endpoint, **options), {"causal"}, 1500)


@pytest.mark.parametrize("name", [name for name in STUCK if name != "newest"])
def test_mutants_that_get_stuck_are_caught(name: str) -> None:
    endpoint, options = STUCK[name]
    kinds = {"undelivered", "causal"}
    first_failure(mutant(endpoint, **options), kinds, 300)


def overtaken(protocol: protocols.Protocol) -> Network:
    """`m` waits at i while a later message of i leaves, and comes back as a dependency."""
    network = Network.of(protocol, ["i", "k", "d", "c", "e"])

    def quiet(source: str, to: str) -> bool:
        return to not in "ce" and {source, to} != {"i", "d"}

    network.send("k", "c", name="u")
    network.send("k", "e", name="v")
    network.send("k", "i", name="w")
    arrive_where(network, quiet)
    network.send("i", "d", name="m")
    assert [blocked.destination for blocked in network.endpoints["i"].blocked()] == ["d"]
    network.send("i", "k", name="y")
    arrive_where(network, quiet)
    network.send("k", "d", name="z")
    network.send("k", "i", name="q")
    arrive_where(network, quiet)
    network.settle()
    return network


def test_a_waiting_message_lists_what_was_known_when_it_was_sent() -> None:
    at_rest(overtaken(adaptive(cap=1)))
    endpoint, _ = STUCK["newest"]
    network = overtaken(mutant(endpoint, cap=1))
    assert {violation.message.name for violation in network.oracle.undelivered()} == {"m", "z"}


def later_message(protocol: protocols.Protocol) -> Network:
    """`m` waits at i with v on its list, and i sends to the destination of v meanwhile."""
    network = Network.of(protocol, ["o", "i", "d", "c", "e"])

    def quiet(source: str, to: str) -> bool:
        return to not in "ce" and {source, to} != {"i", "d"}

    network.send("o", "c", name="x")
    network.send("o", "e", name="v")
    network.send("o", "i", name="a")
    arrive_where(network, quiet)
    network.send("i", "d", name="m")
    network.send("i", "e", name="y")
    arrive_where(network, lambda source, to: {source, to} == {"i", "d"})
    network.send("d", "e", name="w")
    arrive_where(network, lambda source, to: {source, to} == {"d", "e"})
    network.settle()
    return network


def test_a_waiting_message_lists_what_a_later_message_also_lists() -> None:
    at_rest(later_message(adaptive(cap=1)))
    network = later_message(mutant(UNSAFE["cover_any"][0], cap=1))
    assert [violation.message.name for violation in network.oracle.violations] == ["w"]


def old_news(protocol: protocols.Protocol) -> Network:
    """i gets the news of the first message of a channel when it knows of the second."""
    network = Network.of(protocol, ["o", "i", "c"])
    network.send("o", "c", name="x1")
    network.send("o", "i", name="a")
    arrive_where(network, lambda source, to: "c" not in (source, to))
    arrive_where(network, lambda source, to: "c" in (source, to))
    assert [flying.packet.kind for flying in network.in_flight] == ["news"]
    network.send("o", "c", name="x2")
    network.send("o", "i", name="b")
    network.arrive(2)
    network.arrive(0)
    network.send("i", "c", name="w")
    arrive_where(network, lambda source, to: source == "i")
    network.settle()
    return network


def test_news_of_one_message_says_nothing_about_the_next() -> None:
    at_rest(old_news(adaptive()))
    network = old_news(mutant(UNSAFE["newest_done"][0]))
    assert [violation.message.name for violation in network.oracle.violations] == ["w"]


@pytest.mark.parametrize("name", FORGETFUL)
def test_forgetful_mutants_are_caught(name: str) -> None:
    endpoint, options = FORGETFUL[name]
    for seed in count():
        assert seed < 500, "nothing was left behind"
        network = run(mutant(endpoint, **options), PROFILES[seed % 7], seed).play.network
        if any(list(endpoint_of(network, each)._past) for each in network.endpoints):
            return


def forgotten(protocol: protocols.Protocol) -> Network:
    """k learns of x from f, which has sent to the destination of x, and is forgotten."""
    network = Network.of(protocol, ["o", "c", "f", "k"])
    network.send("o", "c", name="x")
    network.send("o", "f", name="a")
    arrive_where(network, lambda source, to: "c" not in (source, to))
    network.send("f", "c", name="y")
    network.send("f", "k", name="b")
    arrive_where(network, lambda source, to: "c" not in (source, to))
    for name in "ock":
        network.endpoints[name].forget("f")
    network.send("k", "c", name="w")
    arrive_where(network, lambda source, to: {source, to} == {"k", "c"})
    arrive_where(network, lambda source, to: "f" not in (source, to))
    return network


def test_a_message_does_not_replace_what_else_is_on_its_way_to_its_destination() -> None:
    """Without forgetting it could: the mutant passes all runs."""
    protocol = mutant(Replacing)
    for seed in range(150):
        assert run(protocol, PROFILES[seed % len(PROFILES)], seed).ok
    for about, overtaken in ((adaptive(), {"y"}), (protocol, {"x", "y"})):
        violations = forgotten(about).oracle.violations
        # Nobody waits for y, which will not come any more.
        assert {str(violation.earlier) for violation in violations} == overtaken
