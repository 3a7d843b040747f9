"""The test kit is judged by toys that are broken: the network, cases, shrinking, commands."""

from __future__ import annotations

import copy
import doctest
import json
from collections.abc import Callable, Collection
from dataclasses import replace
from typing import Any

import pytest

import causewire.testing.network
import causewire.testing.oracle
from campaigns import soak
from causewire import protocols
from causewire.core.endpoint import Blocked, LocalProtocolError, Packet, RemoteProtocolError
from causewire.core.fifo import Datagram, Unordered
from causewire.testing import Case, Network, command, narrate, replay, run, runs, shrink
from causewire.testing.__main__ import main
from causewire.testing.network import RestlessError
from causewire.testing.oracle import SentMessage

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
