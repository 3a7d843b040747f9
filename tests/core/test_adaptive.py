"""`adaptive`: what a message waits for, what it lists, and what is left when all is done."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from itertools import count
from pathlib import Path
from random import Random
from typing import Any

import pytest

from causewire import protocols
from causewire.core.adaptive import Adaptive, Part
from causewire.core.endpoint import LocalProtocolError
from causewire.testing import Network, load, narrate, replay, run, tolerated_networks

from .adaptive_mutants import FORGETFUL, STUCK, UNSAFE, Replacing, mutant
from .adaptive_world import Invariants, adaptive

CAPS = [0, 1, 2, 4, 8, 16, 64, None]
PROFILES = [profile.name for profile in tolerated_networks("adaptive")]
CASES = sorted((Path(__file__).parent / "adaptive_cases").glob("*.json"))
Link = tuple[str, str]


def endpoint_of(network: Network, name: str) -> Adaptive:
    endpoint = network.endpoints[name]
    assert isinstance(endpoint, Adaptive)
    return endpoint


def arrive_where(network: Network, admitted: Callable[[str, str], bool]) -> None:
    """Let packets arrive in order, those on admitted links only, until no more are there."""
    while True:
        ready = (k for k, f in enumerate(network.in_flight) if admitted(f.source, f.destination))
        k = next(ready, None)
        if k is None:
            return
        network.arrive(k)


def at_rest(network: Network) -> None:
    """Assert that everything was delivered, and nothing is remembered but what is delivered."""
    assert not network.oracle.violations
    assert not network.oracle.undelivered()
    for name in network.endpoints:
        endpoint = endpoint_of(network, name)
        assert endpoint.idle
        assert not list(endpoint._past)
        assert not list(endpoint._past.owed())
        assert not endpoint._indexed
        assert not endpoint._open
        assert not endpoint._copies
        assert not any(p.sent or p.parts or p.lane for p in endpoint._peers.values())


# -- invariants ---------------------------------------------------------------


@pytest.mark.parametrize("cap", CAPS)
def test_invariants_after_every_step(cap: int | None) -> None:
    invariants = Invariants()
    for seed in range(42):
        profile = PROFILES[seed % len(PROFILES)]
        outcome = run(adaptive(cap=cap, groups=seed % 3), profile, seed, probe=invariants)
        assert outcome.ok, (profile, seed, outcome.explain())
        at_rest(outcome.play.network)
    assert min(invariants.listed, invariants.undelivered) > 1000


class Program:
    """Random sends that relay, cross and reach a third party late, with invariants checked.

    Links to one process are slow, so that much is undelivered there; each other process
    answers, relays or writes to the slow one.
    """

    def __init__(self, protocol: protocols.Protocol, seed: int) -> None:
        self.random = random = Random(f"program {seed}")
        n = random.choice([4, 4, 5])
        self.names = [f"p{k}" for k in range(n)]
        self.network = Network.of(protocol, self.names)
        self.slow = self.names[-1]
        self.left = random.randint(5, 8)
        self.last: dict[str, str] = {}
        self.network.react = self.react
        self.size = random.choice([1, 1, 2, 3])

    def send(self, name: str) -> None:
        if not self.left:
            return
        self.left -= 1
        random = self.random
        others = [each for each in self.names if each != name]
        if random.random() < 0.35 and name != self.slow:
            to = {self.slow}
        elif name in self.last and random.random() < 0.3:
            to = {self.last[name]}
        else:
            to = set(random.sample(others, min(self.size, len(others))))
        self.network.send(name, to, name=f"m{self.left}")

    def react(self, process: str, message: Any) -> None:
        self.last[process] = message.origin
        if self.random.random() < 0.5:
            self.send(process)

    def play(self, probe: Callable[[Network], None]) -> Network:
        random, network = self.random, self.network
        while self.left or network.in_flight:
            if self.left and random.random() < 0.3:
                self.send(random.choice(self.names))
            fast = [k for k, f in enumerate(network.in_flight) if self.slow not in f[:2]]
            if fast and random.random() < 0.93:
                network.arrive(random.choice(fast))
            elif network.in_flight:
                network.arrive(random.randrange(len(network.in_flight)))
            probe(network)
        return network


@pytest.mark.parametrize("cap", [0, 1, 2, None])
def test_relays_crossings_and_late_third_parties(cap: int | None) -> None:
    invariants = Invariants()
    for seed in range(60):
        network = Program(adaptive(cap=cap, groups=seed % 2), seed).play(invariants.judge)
        at_rest(network)
    assert min(invariants.listed, invariants.undelivered) > 300


# -- without a cap it is optimal ----------------------------------------------


class Twins:
    """The same sends and arrivals of messages under `ks` and `adaptive`, compared each time."""

    def __init__(self, seed: int) -> None:
        self.random = random = Random(f"twins {seed}")
        self.names = [f"p{k}" for k in range(random.randint(3, 6))]
        self.ks = Network.of("ks", self.names)
        self.ours = Network.of(adaptive(cap=None, groups=seed % 3), self.names)
        self.multicast = random.random() * (seed % 2)
        self.held = 0

    def send(self) -> None:
        random = self.random
        name = random.choice(self.names)
        size = random.randint(2, len(self.names)) if random.random() < self.multicast else 1
        to = random.sample(self.names, size)
        for network in (self.ks, self.ours):
            network.send(name, to)

    def arrive(self) -> None:
        """A copy of a message arrives in both worlds, and control packets in one of them."""
        random, ours = self.random, self.ours
        control = [k for k, f in enumerate(ours.in_flight) if f.packet.kind != "msg"]
        while control and random.random() < 0.6:
            ours.arrive(random.choice(control))
            control = [k for k, f in enumerate(ours.in_flight) if f.packet.kind != "msg"]
        copies = self.copies(self.ks)
        if copies:
            copy = random.choice(sorted(copies))
            self.ks.arrive(copies[copy])
            ours.arrive(self.copies(ours)[copy])
        self.compare()

    @staticmethod
    def copies(network: Network) -> dict[tuple[str, str, int], int]:
        """Where in flight each copy of a message is."""
        return {
            (f.source, f.destination, f.packet[1]): k
            for k, f in enumerate(network.in_flight)
            if f.packet.kind == "msg"
        }

    def compare(self) -> None:
        assert self.ks.oracle._got == self.ours.oracle._got
        self.held += sum(e.held_back for e in self.ours.endpoints.values())


def test_without_a_cap_everything_is_delivered_at_the_same_step_as_under_ks() -> None:
    held = 0
    for seed in range(150):
        twins = Twins(seed)
        for _ in range(14):
            twins.send()
            while twins.random.random() < 0.6:
                twins.arrive()
        while twins.ks.in_flight:
            twins.arrive()
        assert not twins.ours.oracle.violations
        held += twins.held
    assert held > 1000, "hardly any message had to wait"


# -- isolation ----------------------------------------------------------------


def frozen_run(seed: int, cap: int | None) -> tuple[Network, str, int]:
    """A run in which no packet reaches one process from some time on; returns that process.

    The process itself sends nothing, since what waits there waits with it.
    """
    random = Random(f"frozen {seed}")
    names = [f"p{k}" for k in range(random.randint(3, 6))]
    network = Network.of(adaptive(cap=cap, groups=seed % 3), names)
    frozen = random.choice(names)
    multicast = random.random() < 0.5

    def send(name: str) -> None:
        size = random.randint(1, len(names)) if multicast else 1
        network.send(name, random.sample(names, size))

    living = [name for name in names if name != frozen]
    for _ in range(random.randint(0, 6)):
        send(random.choice(living))
        for _ in range(random.randint(0, 5)):
            if network.in_flight:
                network.arrive(random.randrange(len(network.in_flight)))
    for _ in range(12):
        send(random.choice(living))
        for _ in range(random.randint(0, 5)):
            ready = [k for k, f in enumerate(network.in_flight) if f.destination != frozen]
            if ready:
                network.arrive(random.choice(ready))
    arrive_where(network, lambda _, to: to != frozen)
    waiting = sum(e.held_back for e in network.endpoints.values())
    return network, frozen, waiting


@pytest.mark.parametrize("cap", CAPS)
def test_a_frozen_process_delays_only_messages_to_itself(cap: int | None) -> None:
    """Without a timer, and whatever the cap; and after the thaw everything is delivered."""
    stuck = 0
    for seed in range(60):
        network, frozen, waiting = frozen_run(seed, cap)
        undelivered = network.oracle.undelivered()
        assert {violation.process for violation in undelivered} <= {frozen}
        stuck += waiting
        network.arrive_all()
        at_rest(network)
    assert stuck > 20 or cap not in (0, 1)


def test_two_frozen_processes_delay_only_messages_to_themselves() -> None:
    names = ["a", "b", "c", "d", "e"]
    network = Network.of(adaptive(cap=2), names)
    for k in range(30):
        network.send(names[k % 3], [names[(k + 1) % 3], names[3 + k % 2]])
        arrive_where(network, lambda _, to: to not in "de")
    assert {violation.process for violation in network.oracle.undelivered()} == {"d", "e"}
    network.arrive_all()
    at_rest(network)


@pytest.mark.slow
@pytest.mark.parametrize("cap", [0, 1, None])
def test_isolation_in_every_interleaving(cap: int | None) -> None:
    """Three living processes relay, one is frozen: in every order all the others' arrive."""
    from copy import copy

    start = Network.of(adaptive(cap=cap), ["a", "b", "c", "f"], inside=False)
    start.send("a", ["f", "b"])
    start.send("b", "f")
    start.send("a", "c")
    seen: set[Any] = set()
    stack = [(start, 2)]
    ends = 0
    while stack:
        network, left = stack.pop()
        state = (network.state(), tuple(sorted(map(hash, network.in_flight))), left)
        if state in seen:
            continue
        seen.add(state)
        ready = [k for k, f in enumerate(network.in_flight) if f.destination != "f"]
        for k in ready:
            twin = copy(network)
            twin.arrive(k)
            stack.append((twin, left))
        if left:
            twin = copy(network)
            twin.send("b" if left == 2 else "c", "c" if left == 2 else "a")
            stack.append((twin, left - 1))
        if not ready and not left:
            ends += 1
            assert not network.oracle.violations
            assert {v.process for v in network.oracle.undelivered()} == {"f"}
    assert ends
    assert len(seen) > 200


# -- parts --------------------------------------------------------------------


def overflowing(cap: int, others: int) -> Network:
    """A network in which `a` has unacked messages to many, and one for `z` on top."""
    names = ["a", "z", *(f"p{k}" for k in range(others))]
    network = Network.of(adaptive(cap=cap), names)
    for k in range(others):
        network.send("a", f"p{k}")
    network.send("a", "z")
    return network


def test_a_long_list_travels_in_parts_and_its_message_waits_for_its_destination_alone() -> None:
    network = overflowing(cap=4, others=5)
    (blocked,) = endpoint_of(network, "a").blocked()
    assert (blocked.destination, blocked.where) == ("z", "sender")
    assert [(wait.kind, wait.peer) for wait in blocked.waits] == [("ack", "z")]
    arrive_where(network, lambda source, to: {source, to} == {"a", "z"})
    parts = [packet for packet in network.links["a", "z"] if isinstance(packet, Part)]
    assert [len(part[3]) for part in parts] == [0, 4]
    assert [event.process for event in network.oracle.history if event.kind == "deliver"] == ["z"]
    assert len(endpoint_of(network, "z")._past) == 5
    network.arrive_all()
    at_rest(network)


def test_acks_shorten_the_list_of_a_waiting_message() -> None:
    network = overflowing(cap=4, others=5)
    assert endpoint_of(network, "a").blocked()
    arrive_where(network, lambda source, to: "p1" in (source, to))
    assert not endpoint_of(network, "a").blocked()
    parts = [packet for packet in network.links["a", "z"] if isinstance(packet, Part)]
    assert [len(part[3]) for part in parts] == [0]


@pytest.mark.parametrize("cap", [0, 1, 2])
@pytest.mark.parametrize("groups", [0, 16])
def test_a_multicast_larger_than_the_cap(cap: int, groups: int) -> None:
    """Its copies do not wait for each other: nothing but parts has to be confirmed."""
    names = [f"p{k}" for k in range(6)]
    network = Network.of(adaptive(cap=cap, groups=groups), names)
    network.send("p0", names)
    network.arrive_all()
    at_rest(network)


# -- groups -------------------------------------------------------------------


def test_a_broadcast_lists_one_entry_for_each_process_heard_from() -> None:
    names = [f"p{k}" for k in range(12)]
    network = Network.of("adaptive", names)
    most = 0
    random = Random(3)
    for _ in range(60):
        name = random.choice(names)
        network.send(name, [each for each in names if each != name])
        for _ in range(random.randint(0, 14)):
            if network.in_flight:
                network.arrive(random.randrange(len(network.in_flight)))
        most = max(most, *(len(f.packet[5]) for f in network.in_flight if f.packet.kind == "msg"))
    assert 3 < most < len(names)
    network.arrive_all()
    at_rest(network)


def test_groups_beyond_the_limit_are_listed_by_member() -> None:
    names = [f"p{k}" for k in range(5)]
    network = Network.of(adaptive(groups=1), names)
    network.send("p0", ["p1", "p2"])
    network.send("p0", ["p3", "p4"])
    group, members = (network.links["p0", name][0] for name in ("p1", "p3"))
    assert group[4] == ("p0", "p1", "p2")
    assert members[4] == ()
    assert members[5] == (("p0", ("p0", "p1", "p2"), 1), ("p0", "p4", 2))
    network.arrive_all()
    at_rest(network)


# -- metadata -----------------------------------------------------------------


def test_two_processes_that_talk_list_nothing() -> None:
    network = Network.of("adaptive", ["a", "b"])
    for k in range(40):
        network.send("ab"[k % 2], "ba"[k % 2])
        if k % 5 == 0:
            network.arrive(len(network.in_flight) - 1)
    network.arrive_all()
    packets = [packet for link in network.links.values() for packet in link]
    assert {packet.kind for packet in packets} == {"msg", "ack"}
    assert not any(packet[5] for packet in packets if packet.kind == "msg")


def test_nothing_is_listed_twice_to_the_same_process() -> None:
    network = Network.of("adaptive", ["a", "b", "c"])
    network.send("a", "c")
    for _ in range(5):
        network.send("a", "b")
    listed = [packet[5] for packet in network.links["a", "b"]]
    assert listed == [(("a", "c", 1),), (), (), (), ()]


def test_ping_pong_with_side_messages_takes_one_hop() -> None:
    """Each player sends to its own sink before every stroke; no stroke waits anywhere."""
    network = Network.of(adaptive(cap=1), ["a", "b", "x", "y"])
    for k in range(30):
        player, other, sink = ("a", "b", "x") if k % 2 == 0 else ("b", "a", "y")
        network.send(player, sink)
        stroke = network.send(player, other)
        arrive_where(network, lambda source, to: {source, to} == {"a", "b"})
        last = network.oracle.history[-1]
        assert (last.kind, last.message) == ("deliver", stroke)
    network.arrive_all()
    at_rest(network)


# -- state --------------------------------------------------------------------


def test_state_stays_flat_while_a_process_is_frozen() -> None:
    """Apart from its own lane: one entry for each process that wrote to it, however often."""
    names = [f"p{k}" for k in range(6)]
    network = Network.of("adaptive", names)
    random = Random(1)
    sizes: list[int] = []
    for k in range(1200):
        source = random.choice(names[1:])
        network.send(source, random.choice([each for each in names if each != source]))
        arrive_where(network, lambda _, to: to != "p0")
        if k % 300 == 299:
            endpoints = [endpoint_of(network, name) for name in names[1:]]
            sizes.append(max(e.footprint().state - e._peers["p0"].footprint() for e in endpoints))
    assert max(sizes) < 1.1 * sizes[0], sizes
    network.arrive_all()
    at_rest(network)


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


# -- options ------------------------------------------------------------------


@pytest.mark.parametrize("options", [{"cap": -1}, {"cap": 1.5}, {"cap": "8"}, {"groups": None}])
def test_options_that_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(LocalProtocolError, match="must be an integer"):
        protocols.create("adaptive", "a", **options)
