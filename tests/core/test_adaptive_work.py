"""The work of `adaptive` for a message does not depend on what else there is.

Work is counted in lines of the core that run, not in seconds. Each test measures the same
few operations in a small system and in a large one: many messages for a frozen process, many
messages held back, many processes known, many entries known to the peer already.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from random import Random
from types import FrameType
from typing import Any

import pytest

from causewire.core.adaptive import Adaptive
from causewire.core.endpoint import Endpoint


def lines(action: Callable[[], object]) -> int:
    """Run an action, and count the lines of the core that it runs through."""
    count = 0

    def line(frame: FrameType, event: str, argument: Any) -> Any:
        nonlocal count
        count += event == "line"
        return line

    def call(frame: FrameType, event: str, argument: Any) -> Any:
        return line if "causewire/core" in frame.f_code.co_filename.replace("\\", "/") else None

    before = sys.gettrace()
    sys.settrace(call)
    try:
        action()
    finally:
        sys.settrace(before)
    return count


def carry(source: Endpoint, others: dict[str, Endpoint], frozen: str = "") -> None:
    """Bring what an endpoint has to send to the others, and what they answer, to the end."""
    endpoints = {source.me: source, **others}
    moving = True
    while moving:
        moving = False
        for endpoint in endpoints.values():
            for to, packet in endpoint.take_packets():
                if to != frozen and to in endpoints:
                    endpoints[to].receive(endpoint.me, packet)
                    moving = True
            endpoint.take_deliveries()


def exchange(backlog: int) -> int:
    """Lines for 40 messages each way between two processes, with a backlog for a frozen one."""
    a, b = Adaptive("a"), Adaptive("b")
    for _ in range(backlog):
        a.send("f", None)
    a.take_packets()

    def talk() -> None:
        for k in range(40):
            a.send("b", None)
            b.send("a", None)
            if k % 8 == 0:
                a.send("f", None)
            carry(a, {"b": b}, "f")

    return lines(talk)


@pytest.mark.slow
def test_a_frozen_process_with_32000_messages_for_it_costs_the_others_nothing() -> None:
    small, large = exchange(10), exchange(32_000)
    assert large <= small * 1.01


def test_a_backlog_for_a_frozen_process_costs_the_others_nothing() -> None:
    small, large = exchange(10), exchange(1000)
    assert large <= small * 1.01


def among(processes: int) -> int:
    """Lines for 30 messages to one process, when that many others are known and silent."""
    a, b = Adaptive("a"), Adaptive("b")
    for k in range(processes):
        a.send(f"p{k}", None)
    a.send("b", None)
    a.send("p0", None)  # which lists the others, once
    carry(a, {"b": b}, "")

    def talk() -> None:
        for k in range(30):
            a.send("b", None)
            if k % 6 == 0:
                a.send("p0", None)
            carry(a, {"b": b}, "")

    return lines(talk)


def test_the_number_of_processes_does_not_matter() -> None:
    small, large = among(5), among(60)
    assert large <= small * 1.05


def behind(held: int) -> int:
    """Lines for messages from one process while many of another are held back."""
    a, b, c = Adaptive("a"), Adaptive("b"), Adaptive("c")
    a.send("c", None)  # never arrives
    a.send("b", None)
    for to, packet in a.take_packets():
        if to == "b":
            b.receive("a", packet)
    for _ in range(held):
        b.send("c", None)
    for to, packet in b.take_packets():
        if to == "c":
            c.receive("b", packet)
    assert c.held_back == held
    d = Adaptive("d")

    def talk() -> None:
        for _ in range(30):
            d.send("c", None)
            carry(d, {"c": c}, "")

    return lines(talk)


def test_messages_that_are_held_back_cost_the_others_nothing() -> None:
    small, large = behind(5), behind(1500)
    assert large <= small * 1.01


@pytest.mark.slow
def test_work_follows_the_entries_that_are_listed() -> None:
    """In random traffic, lines per message are bounded by a constant for each entry."""
    random = Random(5)
    names = [f"p{k}" for k in range(8)]
    endpoints: dict[str, Endpoint] = {name: Adaptive(name) for name in names}
    wire: list[tuple[str, str, Any]] = []
    entries = packets = 0

    def run() -> None:
        nonlocal entries, packets
        for _ in range(400):
            name = random.choice(names)
            endpoints[name].send(random.choice([each for each in names if each != name]), None)
            for source, endpoint in endpoints.items():
                for to, packet in endpoint.take_packets():
                    wire.append((source, to, packet))
                    packets += 1
                    if packet.kind in ("msg", "news"):
                        entries += len(packet[-1])
                endpoint.take_deliveries()
            for _ in range(random.randint(0, 4)):
                if wire:
                    source, to, packet = wire.pop(random.randrange(len(wire)))
                    endpoints[to].receive(source, packet)

    total = lines(run)
    polling = 12 * 400 * len(names)  # take_packets of everybody, each time
    assert total - polling < 80 * packets + 80 * entries
