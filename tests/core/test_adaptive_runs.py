"""`adaptive` in runs: the same messages, lists and control packets as in packets."""

from __future__ import annotations

import copy
import random
from collections import defaultdict
from typing import Any

import pytest

from causewire import protocols
from causewire.core.adaptive import Adaptive, AdaptiveMessage, Listed
from causewire.core.endpoint import Packet, RemoteProtocolError
from causewire.core.fifo import Ack
from causewire.core.run import MessageRun

from .adaptive_world import adaptive

Taken = tuple[dict[str, list[Packet]], dict[str, int], list[Any]]


def by_packet(endpoint: Adaptive) -> Taken:
    """What an endpoint sends: messages by peer, acks, everything else."""
    messages: dict[str, list[Packet]] = defaultdict(list)
    acks: dict[str, int] = {}
    control = []
    for to, packet in endpoint.take_packets():
        if isinstance(packet, AdaptiveMessage):
            messages[to].append(packet)
        elif isinstance(packet, Ack):
            acks[to] = packet[1]
        else:
            control.append((to, packet))
    return messages, acks, control


def by_run(endpoint: Adaptive) -> tuple[Taken, list[tuple[str, MessageRun]]]:
    """The same, taken as a node takes it; and the runs."""
    messages: dict[str, list[Packet]] = defaultdict(list)
    runs = endpoint.take_runs()
    for to, (mids, pid, payloads, per, _) in runs:
        for mid, payload in zip(mids, payloads, strict=True):
            assert isinstance(payload, Listed) == per
            fields = payload if per else (payload, (), ())
            messages[to].append(AdaptiveMessage(mid, pid, *fields))
            pid = mid
    return (messages, endpoint.take_acks(), endpoint.take_control()), runs


def cut(run: MessageRun, chance: random.Random) -> list[MessageRun]:
    """The run, or two runs with the same messages."""
    k = chance.randint(0, len(run.mids))
    mids, pid, payloads, per, _ = run
    if k in (0, len(mids)):
        return [run]
    last = mids[k - 1]
    return [
        MessageRun(mids[:k], pid, payloads[:k], per),
        MessageRun(mids[k:], last, payloads[k:], per),
    ]


class Lockstep:
    """A system in which every endpoint has a twin: one gets packets, the other gets runs."""

    def __init__(self, seed: int, cap: int | None, groups: int) -> None:
        self.chance = random.Random(seed)
        self.names = ["a", "b", "c", "d"]
        about = adaptive(cap=cap, groups=groups)
        self.packets: dict[str, Any] = {n: protocols.create(about, n) for n in self.names}
        self.runs: dict[str, Any] = {n: protocols.create(about, n) for n in self.names}
        self.chains: dict[tuple[str, str], list[MessageRun]] = defaultdict(list)
        self.control: list[tuple[str, str, Packet]] = []
        self.longest = self.listed = self.held = 0

    def send(self, name: str) -> None:
        for _ in range(self.chance.randint(1, 5)):
            to = self.chance.sample(self.names, self.chance.choice([1, 1, 1, 2, 3]))
            payload = self.chance.randbytes(2)
            assert self.packets[name].send(to, payload) == self.runs[name].send(to, payload)

    def arrive(self, name: str) -> None:
        chains = [pair for pair, queue in self.chains.items() if pair[1] == name and queue]
        if chains and self.chance.random() < 0.6:
            pair = self.chance.choice(chains)
            first, *rest = cut(self.chains[pair].pop(0), self.chance)
            self.chains[pair][:0] = rest
            self.runs[name].receive_run(pair[0], first)
            pid = first.pid
            for mid, payload in zip(first.mids, first.payloads, strict=True):
                fields = payload if first.per else (payload, (), ())
                self.packets[name].receive(pair[0], AdaptiveMessage(mid, pid, *fields))
                pid = mid
            return
        here = [k for k, packet in enumerate(self.control) if packet[1] == name]
        if here:
            source, _, packet = self.control.pop(self.chance.choice(here))
            for endpoint in (self.packets[name], self.runs[name]):
                endpoint.receive(source, packet)

    def take(self, name: str) -> None:
        one, runs = by_run(self.runs[name])
        assert by_packet(self.packets[name]) == one
        for to, run in runs:
            self.chains[name, to].append(run)
            self.longest = max(self.longest, len(run.mids))
            self.listed += run.per
        self.control += [(name, to, Ack(mid)) for to, mid in one[1].items()]
        self.control += [(name, to, packet) for to, packet in one[2]]

    def step(self, sending: bool) -> None:
        name = self.chance.choice(self.names)
        if sending and self.chance.random() < 0.3:
            self.send(name)
        else:
            self.arrive(name)
        self.held += self.runs[name].held_back
        if self.chance.random() < 0.6:
            self.take(name)
        one, other = self.packets[name], self.runs[name]
        assert one.take_deliveries() == other.take_deliveries()
        assert one.blocked() == other.blocked()
        assert one == other

    def finish(self) -> None:
        while self.control or any(self.chains.values()):
            self.step(False)
        for name in self.names:
            self.take(name)


@pytest.mark.parametrize(("cap", "groups"), [(None, 16), (1, 1), (0, 16), (2, 0)])
def test_runs_and_packets_are_in_lock_step(cap: int | None, groups: int) -> None:
    longest = listed = held = 0
    for seed in range(12):
        world = Lockstep(seed, cap, groups)
        for _ in range(150):
            world.step(True)
        for _ in range(8):
            world.finish()
        assert all(endpoint.idle for endpoint in world.runs.values())
        longest, listed = max(longest, world.longest), listed + world.listed
        held += world.held
    assert longest > 2
    assert min(listed, held) > 100


def test_a_stream_has_no_list_and_is_one_run() -> None:
    endpoint = Adaptive("a")
    send = endpoint.sender_to("b")
    for _ in range(50):
        send(b"x")
    ((to, run),) = endpoint.take_runs()
    assert (to, list(run.mids), run.per) == ("b", list(range(1, 51)), False)


def test_messages_that_leave_together_share_their_list() -> None:
    """The first to each destination has it; it names the last to the others."""
    endpoint = Adaptive("a")
    for _ in range(10):
        endpoint.send("b", b"x")
        endpoint.send("c", b"x")
    runs = endpoint.take_runs()
    assert [(to, list(run.mids), run.per) for to, run in runs] == [
        ("b", [1], True),
        ("b", list(range(3, 20, 2)), False),
        ("c", [2], True),
        ("c", list(range(4, 21, 2)), False),
    ]
    assert runs[0][1].payloads[0].entries == (("a", "c", 20),)
    assert runs[2][1].payloads[0].entries == (("a", "b", 19),)


def test_what_was_learnt_later_is_not_listed_earlier() -> None:
    """A burst ends where something is learnt."""
    b = Adaptive("b")
    b.send("c", "before")
    b.receive("a", AdaptiveMessage(2, 0, "list", (), (("a", "c", 1),)))
    b.send("c", "after")
    first, second = [packet for to, packet in b.take_packets() if to == "c"]
    assert (first[5], second[5]) == ((), (("a", "c", 1),))


@pytest.mark.parametrize(
    "run",
    [
        MessageRun([1], 0, ["no list"], True),
        MessageRun([1], 0, [Listed("x", ("a", "b"), ())], True),
        MessageRun([1], 0, [Listed("x", (), (("a", "here", 1),))], True),
        MessageRun([1, 2], 0, [Listed("x", (), ()), Listed("x", (), (("here", "b", 9),))], True),
        MessageRun([2, 1], 0, ["x", "y"]),
    ],
)
def test_no_run_that_no_correct_peer_could_send(run: MessageRun) -> None:
    endpoint = Adaptive("here")
    before = copy.copy(endpoint)
    with pytest.raises(RemoteProtocolError):
        endpoint.receive_run("a", run)
    assert endpoint == before
