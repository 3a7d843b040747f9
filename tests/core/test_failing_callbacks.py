"""An application that fails on a delivery loses nothing, whatever the protocol.

The contract: the exception reaches the caller, the message that caused it counts as
delivered, and everything behind it is delivered by the same call or by the next one.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from random import Random
from typing import Any

import pytest

from causewire import protocols
from causewire.core import Delivery, Endpoint, MessageRun, Packet
from causewire.core.fifo import FifoEndpoint
from causewire.core.hybrid import Permit
from causewire.testing import VARIANTS

EVERYTHING: list[tuple[str, dict[str, Any]]] = [(name, {}) for name in protocols.names()]
EVERYTHING += [(name, options) for name, _ in EVERYTHING for options in VARIANTS.get(name, ())]


class BoomError(Exception):
    pass


def drive(
    protocol: str, options: dict[str, Any], seed: int, failing: float
) -> tuple[list[Delivery], int]:
    """Let three processes exchange messages; `p0` fails on a share of its deliveries.

    Returns what the application of `p0` was given, and how many calls raised.
    """
    about = protocols.describe(protocol)
    chance = Random(f"{protocol} {seed}")
    fails = Random(seed)
    group = ["p0", "p1", "p2"]
    endpoints = {name: protocols.create(protocol, name, group, **options) for name in group}
    seen: list[Delivery] = []
    boom = 0

    def deliver(delivery: Delivery) -> None:
        seen.append(delivery)
        if fails.random() < failing:
            raise BoomError

    def guarded(method: Callable[..., Any], *args: Any) -> Any:
        nonlocal boom
        try:
            return method(*args)
        except BoomError:
            boom += 1
            return None

    endpoints["p0"].on_delivery = deliver
    fifo = about.needs_fifo or options.get("fifo")
    wire: list[tuple[str, str, Packet]] = []

    def collect() -> None:
        for name, endpoint in endpoints.items():
            while (taken := guarded(endpoint.take_packets)) is None:
                pass  # a call that fails takes nothing
            wire.extend((name, to, packet) for to, packet in taken)
            if name != "p0":
                endpoint.take_deliveries()

    def arrive(k: int) -> None:
        if fifo:
            k = next(i for i, p in enumerate(wire) if p[:2] == wire[k][:2])
        source, to, packet = wire.pop(k)
        guarded(endpoints[to].receive, source, packet)

    everybody_else = {name: [o for o in group if o != name] for name in group}
    broadcasting = not about.unicast or options.get("broadcast")
    for _ in range(40):
        name = chance.choice(group)
        to: Any = everybody_else[name]
        if not broadcasting:
            to = chance.choice(group)
        elif chance.random() < 0.3:
            to = group
        guarded(endpoints[name].send, to, chance.random())
        if chance.random() < 0.4:
            collect()
        if chance.random() < 0.2:
            guarded(endpoints[name].retransmit)
        for _ in range(chance.randint(0, 4)):
            if wire:
                arrive(chance.randrange(len(wire)))
    for _ in range(40):
        collect()
        while wire:
            arrive(chance.randrange(len(wire)))
            collect()
        for endpoint in endpoints.values():
            guarded(endpoint.retransmit)
        if all(endpoint.idle for endpoint in endpoints.values()):
            break
    if about.live:
        assert all(endpoint.idle for endpoint in endpoints.values())
        assert not endpoints["p0"].take_deliveries()
    return seen, boom


@pytest.mark.parametrize(("protocol", "options"), EVERYTHING, ids=str)
def test_what_fails_is_delivered_once_and_nothing_is_lost(
    protocol: str, options: dict[str, Any]
) -> None:
    """The application is given the same messages in the same order, failing or not."""
    failed = 0
    for seed in range(6):
        expected, _ = drive(protocol, options, seed, 0.0)
        assert len(expected) > 5
        for failing in (0.2, 0.9, 1.0):
            seen, boom = drive(protocol, options, seed, failing)
            assert seen == expected, f"seed {seed}"
            failed += boom
    assert failed > 50


def behind(protocol: str) -> tuple[Endpoint, list[Delivery], list[int]]:
    """An endpoint that was interrupted: its callback has failed on the first of four messages."""
    group = ["a", "b"]
    a, b = (protocols.create(protocol, name, group) for name in group)
    for k in range(4):
        a.send("b", k)
    first, *others = [packet for _, packet in a.take_packets()]
    for packet in reversed(others):
        b.receive("a", packet)
    if protocol in ("csps", "sps"):
        b.receive("a", Permit(4))
    seen: list[Delivery] = []
    failing = [1]

    def fail(delivery: Delivery) -> None:
        seen.append(delivery)
        if failing[0]:
            failing[0] -= 1
            raise BoomError

    b.on_delivery = fail
    with pytest.raises(BoomError):
        b.receive("a", first)
    assert [d.payload for d in seen] == [0]
    assert not b.idle, "three messages are left to hand over"
    return b, seen, failing


CALLS: dict[str, Callable[[Endpoint], Any]] = {
    "retransmit": lambda b: b.retransmit(),
    "send": lambda b: b.send("a", "x"),
    "send to oneself": lambda b: b.send("b", 4),
    "take_packets": lambda b: b.take_packets(),
}
RECEIVERS = ["rst", "ks", "bss", "fifo", "csps", "sps"]


@pytest.mark.parametrize(
    ("protocol", "call"),
    [
        (protocol, call)
        for protocol in RECEIVERS
        for call in CALLS
        if (protocol, call) != ("bss", "send to oneself")  # it has broadcasts only
    ],
)
def test_the_next_call_hands_over_what_was_behind(protocol: str, call: str) -> None:
    b, seen, _ = behind(protocol)
    CALLS[call](b)
    assert [d.payload for d in seen][:4] == [0, 1, 2, 3]
    assert not b.blocked()
    assert b.take_deliveries() == []


@pytest.mark.parametrize("protocol", RECEIVERS)
def test_without_the_callback_it_is_queued(protocol: str) -> None:
    b, seen, _ = behind(protocol)
    twin = copy.copy(b)
    assert twin == b
    assert hash(twin) == hash(b)
    assert repr(twin) == repr(b)
    b.on_delivery = None
    assert [d.payload for d in b.take_deliveries()] == [1, 2, 3]
    assert [d.payload for d in twin.take_deliveries()] == [1, 2, 3]
    assert len(seen) == 1
    b.take_packets()
    assert type(b) is type(protocols.create(protocol, "b", ["a", "b"]))


@pytest.mark.parametrize("protocol", RECEIVERS)
def test_a_callback_that_keeps_failing_gets_one_message_a_call(protocol: str) -> None:
    b, seen, failing = behind(protocol)
    failing[0] = 2
    for handed_over in (2, 3):
        with pytest.raises(BoomError):
            b.retransmit()
        assert len(seen) == handed_over
    b.retransmit()
    assert [d.payload for d in seen] == [0, 1, 2, 3]


@pytest.mark.parametrize("protocol", RECEIVERS)
def test_a_call_that_hands_over_does_its_own_work(protocol: str) -> None:
    """Even if the callback fails again: what was sent is sent."""
    b, seen, failing = behind(protocol)
    failing[0] = 1
    with pytest.raises(BoomError):
        b.send("a", "x")
    assert len(seen) == 2
    messages = [packet for _, packet in b.take_packets() if packet.kind == "msg"]
    assert len(messages) == 1
    assert len(seen) == 4


@pytest.mark.parametrize("protocol", RECEIVERS)
def test_what_is_sent_on_being_handed_over_is_sent_once(protocol: str) -> None:
    b, _, _ = behind(protocol)
    b.on_delivery = lambda delivery: b.send("a", delivery.payload) and None
    b.retransmit()
    b.retransmit()
    sent = [delivery for delivery in b.take_packets() if delivery[1].kind == "msg"]
    assert {packet[1] for _, packet in sent} == {1, 2, 3}


@pytest.mark.parametrize("protocol", ["fifo", "csps", "sps"])
def test_a_run_in_which_one_message_fails(protocol: str) -> None:
    endpoint = protocols.create(protocol, "b")
    assert isinstance(endpoint, FifoEndpoint)
    seen: list[Any] = []

    def fail(delivery: Delivery) -> None:
        seen.append(delivery.payload)
        if delivery.payload == 1:
            raise BoomError

    endpoint.on_delivery = fail
    endpoint.receive_run("a", MessageRun([5], 4, ["later"]))
    with pytest.raises(BoomError):
        endpoint.receive_run("a", MessageRun([1, 2, 4], 0, [0, 1, 2]))
    assert endpoint.take_acks() == {"a": 5}
    assert seen == [0, 1, 2, "later"]
    assert not endpoint.blocked()


def test_an_exception_that_the_callback_catches_itself() -> None:
    """A copy to oneself fails inside the delivery of another message, which goes on."""
    a, b = (protocols.create("fifo", name) for name in "ab")
    for k in range(3):
        a.send("b", k)
    one, two, three = [packet for _, packet in a.take_packets()]
    b.receive("a", three)
    b.receive("a", two)
    seen: list[Any] = []

    def deliver(delivery: Delivery) -> None:
        seen.append(delivery.payload)
        if delivery.payload == 0:
            with pytest.raises(BoomError):
                b.send("b", "note")
        if delivery.payload == "note":
            raise BoomError

    b.on_delivery = deliver
    b.receive("a", one)
    b.retransmit()
    assert seen == [0, "note", 1, 2]
