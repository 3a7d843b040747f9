"""The judge is judged: the oracle by the definition itself, the rest by toys that are broken."""

from __future__ import annotations

import ast
import copy
import doctest
import json
import subprocess
import sys
from collections.abc import Callable, Collection
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Any

import pytest

import causewire.testing.network
import causewire.testing.oracle
from campaigns import soak
from causewire import protocols
from causewire.core.endpoint import Blocked, LocalProtocolError, Packet, RemoteProtocolError
from causewire.core.fifo import Datagram, Unordered
from causewire.testing import Case, Network, Oracle, command, narrate, replay, run, runs, shrink
from causewire.testing.__main__ import main
from causewire.testing.network import RestlessError
from causewire.testing.oracle import SentMessage

# -- the oracle ---------------------------------------------------------------


def any_history(rng: Random) -> Oracle:
    """Sends and deliveries in any order at all, as no protocol would have them."""
    oracle = Oracle()
    processes = [f"p{k}" for k in range(rng.randint(2, 6))]
    sent: list[SentMessage] = []
    for _ in range(rng.randint(2, 30)):
        process = rng.choice(processes)
        mine = [m for m in sent if process in m.to]
        if not mine or rng.random() < 0.4:
            to = rng.sample(processes, rng.choice([1, 1, 2, len(processes)]))
            mid = 1 + sum(m.origin == process for m in sent)
            sent.append(oracle.sent(process, mid, to))
        else:
            message = rng.choice(mine)
            oracle.delivered(process, message.origin, message.mid)
    return oracle


Pairs = set[tuple[SentMessage, SentMessage]]


def by_rule(oracle: Oracle) -> Pairs:
    """What happened before what by one of the two rules of the definition (Almeida, 4.1)."""
    history = oracle.history
    return {
        (earlier.message, message)
        for k, (process, kind, message) in enumerate(history)
        if kind == "send"
        for earlier in history[:k]
        if earlier.process == process
    }


def then(first: Pairs, second: Pairs) -> Pairs:
    return {(a, d) for a, b in first for c, d in second if b is c}


def happened_before(oracle: Oracle) -> Pairs:
    """The definition to the letter: two rules, and the transitive closure."""
    hb = by_rule(oracle)
    while not (more := then(hb, hb)) <= hb:
        hb |= more
    return hb


def first_deliveries(oracle: Oracle, process: str) -> list[SentMessage]:
    return list(dict.fromkeys(e.message for e in oracle.history if e[:2] == (process, "deliver")))


def test_the_oracle_agrees_with_the_definition() -> None:
    rng = Random(1)
    found = 0
    for _ in range(400):
        oracle = any_history(rng)
        hb = happened_before(oracle)
        expected = set()
        for process in {event.process for event in oracle.history}:
            order = first_deliveries(oracle, process)
            for k, second in enumerate(order):
                for first in oracle.messages.values():
                    if (first, second) in hb and process in first.to and first not in order[:k]:
                        expected.add((process, first, second))
        causal = [v for v in oracle.violations if v.kind == "causal"]
        assert {(v.process, v.earlier, v.message) for v in causal} == expected
        assert len(causal) == len(expected)
        found += len(expected)
        pairs = len(oracle.messages) * (len(oracle.messages) - 1) // 2
        assert oracle.concurrent() == pairs - len(hb)
    assert found > 100


def test_chains_are_true_and_shortest() -> None:
    rng = Random(2)
    lengths = set()
    for _ in range(150):
        oracle = any_history(rng)
        step = by_rule(oracle)
        reached: Pairs = set()
        pairs = step
        length = 2
        while pairs - reached:
            for first, second in pairs - reached:
                chain = oracle.chain(first, second)
                assert len(chain) == length
                assert (chain[0], chain[-1]) == (first, second)
                assert step.issuperset(pairwise(chain))
                lengths.add(length)
            reached |= pairs
            pairs = then(pairs, step)
            length += 1
        messages = oracle.messages.values()
        assert not any(
            oracle.chain(a, b) for a in messages for b in messages if (a, b) not in reached
        )
    assert {2, 3, 4} <= lengths


def test_the_oracle_sees_every_other_wrong() -> None:
    oracle = Oracle()
    a = oracle.sent("p", 1, ["q", "r"], "hello", "a")
    assert oracle.delivered("q", "p", 1, "hello") is a
    assert oracle.delivered("q", "p", 1, "hello") is None
    assert oracle.delivered("s", "p", 1, "hello") is None
    assert oracle.delivered("q", "p", 2, "hello") is None
    assert oracle.delivered("r", "p", 1, "hullo") is a
    oracle.sent("p", 2, ["q"], None, "b")
    violations = [*oracle.violations, *oracle.undelivered()]
    assert [v.kind for v in violations] == [
        "duplicate",
        "misaddressed",
        "unsent",
        "altered",
        "undelivered",
    ]
    assert [oracle.explain(v) for v in violations] == [
        "q delivered a of p more than once",
        "s delivered a of p, not sent to it",
        "q delivered p#2 of p, which was never sent",
        "r delivered a of p with another payload",
        "q never delivered b of p",
    ]
    assert oracle.deliveries == 2


def test_the_oracle_explains_causality() -> None:
    oracle = Oracle()
    oracle.sent("p", 1, ["r"], name="a")
    oracle.sent("p", 2, ["q"], name="b")
    oracle.delivered("q", "p", 2)
    oracle.sent("q", 1, ["r"], name="c")
    oracle.delivered("r", "q", 1)
    (violation,) = oracle.violations
    assert not violation.fifo
    assert oracle.explain(violation) == (
        "r delivered c before a, which happened before it:\n"
        "    p sent a before it sent b\n"
        "    q delivered b before it sent c"
    )


def test_the_oracle_takes_back_only_the_last_send() -> None:
    oracle = Oracle()
    a = oracle.sent("p", 1, ["q"])
    b = oracle.sent("p", 2, ["q"])
    with pytest.raises(ValueError, match="not the last"):
        oracle.retract(a)
    with pytest.raises(ValueError, match="sent message 1 before"):
        oracle.sent("p", 1, ["q"])
    oracle.retract(b)
    assert list(oracle.messages.values()) == [a]
    assert [v.message for v in oracle.undelivered()] == [a]
    assert oracle.sent("p", 2, ["q"]).past == a.bit


def test_the_oracle_shares_no_code_with_what_it_judges() -> None:
    tree = ast.parse(Path(causewire.testing.oracle.__file__).read_text(encoding="utf-8"))
    imported = {
        node.module if isinstance(node, ast.ImportFrom) else node.names[0].name
        for node in ast.walk(tree)
        if isinstance(node, ast.Import | ast.ImportFrom)
    }
    assert imported <= {"__future__", "collections", "collections.abc", "itertools", "typing"}


def test_hypothesis_is_needed_by_the_strategies_alone() -> None:
    check = "import sys, causewire.testing; sys.exit('hypothesis' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", check], check=False).returncode == 0


# -- the network --------------------------------------------------------------


def test_the_example_in_the_documentation() -> None:
    assert doctest.testmod(causewire.testing.network) == (0, 7)


def test_the_network_does_what_it_is_told() -> None:
    network = Network.of("fifo", ["p", "q"])
    network.send("p", "q", "one")
    network.send("p", "q", "two")
    assert [f.number for f in network.in_flight] == [0, 1]
    network.arrive(1)
    assert [str(b) for b in network.endpoints["q"].blocked()] == [
        "message 2 from p to q, held at its receiver, waits for the delivery of message 1 of p"
    ]
    network.lose(0)
    assert not network.in_flight
    network.replay("p", "q", 0)
    assert network.oracle.deliveries == 2
    assert [f.source for f in network.in_flight] == ["q"]
    network.duplicate(0)
    assert network.in_flight[0] == network.in_flight[1]
    twin = copy.copy(network)
    assert network.settle()
    assert not network.in_flight
    assert len(twin.in_flight) == 2, "the copy went along"
    assert not twin.idle
    assert twin.settle()


def test_a_lazy_network_collects_when_told() -> None:
    network = Network.of("fifo", ["p", "q"], lazy=True)
    network.send("p", "q", "one")
    assert not network.in_flight
    network.collect("p")
    network.arrive()
    assert network.oracle.deliveries == 1
    assert not network.in_flight
    assert not network.idle
    assert network.settle()


@pytest.mark.parametrize("inside", [True, False])
def test_reactions(inside: bool) -> None:
    network = Network.of("csps", ["p", "q", "r"], inside=inside)
    seen = []

    def react(process: str, message: SentMessage) -> None:
        seen.append((process, message.payload))
        if message.payload == "ping":
            network.send(process, message.origin, "pong")

    network.react = react
    network.send("p", {"p", "q", "r"}, "ping")
    assert network.settle()
    assert sorted(seen) == [
        ("p", "ping"),
        ("p", "pong"),
        ("p", "pong"),
        ("p", "pong"),
        ("q", "ping"),
        ("r", "ping"),
    ]
    assert not network.oracle.violations
    assert not network.oracle.undelivered()


def test_what_an_endpoint_refuses_was_not_sent() -> None:
    network = Network.of("cykas", ["p", "q", "r"])
    with pytest.raises(LocalProtocolError):
        network.send("p", {"q", "r"}, "to two")
    assert not network.oracle.messages
    assert network.send("p", "q", "to one").mid == 1


# -- toys ---------------------------------------------------------------------


class Toy(Unordered):
    """Delivers on arrival, and does something wrong."""

    __slots__ = ()


class Twice(Toy):
    __slots__ = ()

    def receive(self, source: str, packet: Packet) -> None:
        super().receive(source, packet)
        super().receive(source, packet)


class Inventive(Toy):
    __slots__ = ()

    def receive(self, source: str, packet: Packet) -> None:
        self._deliver(source, packet[1] + 1000, "surprise")
        super().receive(source, packet)


class Nosy(Toy):
    __slots__ = ()

    def send(self, to: str | Collection[str], payload: Any) -> int:
        mid = super().send(to, payload)
        others = [("p0", packet) for _, packet in self._packets[:1] if self.me != "p0"]
        self._packets += others
        return mid


class Garbled(Toy):
    __slots__ = ()

    def receive(self, source: str, packet: Packet) -> None:
        super().receive(source, Datagram(packet[1], "garbled"))


class Deaf(Toy):
    __slots__ = ()

    def receive(self, source: str, packet: Packet) -> None:
        if packet[1] != 2:
            super().receive(source, packet)


class Chatty(Toy):
    """Answers everything, for ever."""

    __slots__ = ()

    def receive(self, source: str, packet: Packet) -> None:
        if packet[2] != "chat":
            super().receive(source, packet)
        self._packets.append((source, Datagram(1, "chat")))


class Busy(Toy):
    """Is never done."""

    __slots__ = ()

    @property
    def idle(self) -> bool:
        return False


class Hoarder(Toy):
    """Says that it is done, and that it is not."""

    __slots__ = ()

    @property
    def idle(self) -> bool:
        return True

    def blocked(self) -> list[Blocked]:
        return [Blocked("p0", 1, "p1", "sender", ())]


class Fragile(Toy):
    __slots__ = ()

    def receive(self, source: str, packet: Packet) -> None:
        raise KeyError(source)


class Suspicious(Toy):
    __slots__ = ()

    def receive(self, source: str, packet: Packet) -> None:
        raise RemoteProtocolError("I do not believe it")


class Miscounting(Toy):
    __slots__ = ()

    def send(self, to: str | Collection[str], payload: Any) -> int:
        return super().send(to, payload) + 1


@pytest.fixture
def toy(monkeypatch: pytest.MonkeyPatch) -> Callable[..., str]:
    def register(endpoint: type[Toy], causal: bool = True) -> str:
        about = replace(
            protocols.describe("unordered"), name="toy", endpoint=endpoint, causal=causal
        )
        monkeypatch.setitem(protocols._known, "toy", about)
        return "toy"

    return register


@pytest.mark.parametrize(
    ("endpoint", "kind"),
    [
        (Toy, "causal"),
        (Twice, "duplicate"),
        (Inventive, "unsent"),
        (Nosy, "misaddressed"),
        (Garbled, "altered"),
        (Deaf, "undelivered"),
        (Chatty, "RestlessError"),
        (Busy, "leftover"),
        (Hoarder, "leftover"),
        (Fragile, "KeyError"),
        (Suspicious, "RemoteProtocolError"),
        (Miscounting, "AssertionError"),
    ],
)
def test_broken_toys_are_caught(
    toy: Any, endpoint: type[Toy], kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Network.arrive_all, "__defaults__", (500,))
    name = toy(endpoint)
    caught = next(outcome for outcome in runs(name, "reorder", range(50)) if kind in outcome.kinds)
    small = shrink(caught.play.case(), kind)
    outcome = replay(small)
    assert kind in outcome.kinds
    assert outcome.messages <= 3
    assert outcome.explain()
    assert narrate(small)


def test_a_network_that_does_not_settle(toy: Any) -> None:
    network = Network.of(toy(Busy), ["p0", "p1"])
    assert network.settle() is False
    network = Network.of(toy(Chatty), ["p0", "p1"])
    network.send("p0", "p1", "hello")
    with pytest.raises(RestlessError):
        network.arrive_all(100)


# -- cases, shrinking, the command line ---------------------------------------


def test_only_what_fails_can_be_shrunk() -> None:
    with pytest.raises(ValueError, match="nothing is wrong"):
        shrink(run("csps", "reorder", 0).play.case())


def violating_seed() -> int:
    """Of the first random run in which `fifo` violates causality."""
    return next(seed for seed in range(100) if not run("fifo", "reorder", seed).ok)


def test_a_small_case_can_be_stored() -> None:
    small = shrink(run("fifo", "reorder", violating_seed()).play.case())
    stored = json.dumps(small.to_json())
    again = Case.from_json(json.loads(stored))
    assert again == small
    assert replay(again).kinds == ["causal"]


def test_the_narrative_of_a_small_case() -> None:
    """The smallest story there is of causality violated, told in full."""
    case = Case(
        protocol="unordered",
        processes=("p0", "p1", "p2"),
        net="reorder",
        schedule=(
            ("send", "p0", ("p1", "p2"), "a"),
            ("recv", "p0", "p1", 0),
            ("send", "p1", ("p2",), "b"),
            ("recv", "p1", "p2", 0),
        ),
    )
    assert narrate(case).splitlines() == [
        "unordered, network reorder: 3 processes",
        "   1. p0 sends a to p1, p2",
        "   2. p1 receives Datagram(mid=1, payload='a') from p0, delivers a",
        "   3. p1 sends b to p2",
        "   4. p2 receives Datagram(mid=1, payload='b') from p1, delivers b",
        "   5. all packets arrive: p2 delivers a",
        "in the end:",
        "      p2 delivered b before a, which happened before it:",
        "          p1 delivered a before it sent b",
    ]


def test_impossible_actions_are_skipped() -> None:
    case = Case(
        protocol="fifo",
        processes=("p0", "p1"),
        net="fifo",
        schedule=(
            ("recv", "p0", "p1", 0),
            ("send", "p0", ("p1",), "a"),
            ("send", "p0", ("p1",), "b"),
            ("recv", "p0", "p1", 1),
            ("drop", "p0", "p1", 0),
            ("take", "p0"),
            ("recv", "p0", "p1", 0),
            ("recv", "p0", "p1", 0),
        ),
    )
    outcome = replay(case)
    assert outcome.ok
    assert [action[0] for action in outcome.play.schedule] == ["send", "send", "recv"]


def test_the_command_that_repeats_a_run(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["csps", "lossy", "3"]) == 0
    assert "all is well" in capsys.readouterr().out
    bad = str(violating_seed())
    assert main(["fifo", "reorder", bad]) == 1
    told = capsys.readouterr().out
    assert "smaller:" in told
    assert "which happened before it" in told
    assert main(["fifo", "reorder", bad, "--json"]) == 1
    assert replay(Case.from_json(json.loads(capsys.readouterr().out))).kinds == ["causal"]
    assert main(["pak-credit", "fifo", "1", "--option", "ct=3"]) == 0
    assert capsys.readouterr().out.startswith("pak-credit, ct=3, network fifo")
    for wrong in ("ct=three", "no_such_option=1"):
        with pytest.raises(SystemExit, match="2"):
            main(["pak-credit", "fifo", "1", "--option", wrong])
    assert command("ks", "fifo", 7, {"complement": True}) == (
        "python -m causewire.testing ks fifo 7 --option complement=true"
    )


def test_soak(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["--runs", "70", "--jobs", "1", "--protocol", "csps", "--protocol", "fifo"]
    assert soak.main(arguments) == 0
    head, csps, fifo, summary = capsys.readouterr().out.splitlines()
    assert head.split()[:3] == ["protocol", "networks", "runs"]
    assert csps.split()[-1] == "ok"
    assert fifo.endswith("caught, as it must be")
    assert summary.startswith("140 runs")


def test_soak_fails_if_a_promise_is_broken(toy: Any, capsys: pytest.CaptureFixture[str]) -> None:
    toy(Toy)
    assert soak.main(["--runs", "100", "--jobs", "1", "--protocol", "toy"]) == 1
    told = capsys.readouterr().out
    assert "FAILED" in told
    assert "python -m causewire.testing toy " in told


def test_soak_fails_if_a_known_bad_is_not_caught(
    toy: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    about = replace(protocols.describe("csps"), name="toy", causal=False)
    toy(Toy)
    protocols._known["toy"] = about
    assert soak.main(["--runs", "100", "--jobs", "1", "--protocol", "toy"]) == 1
    assert "was not caught" in capsys.readouterr().out
