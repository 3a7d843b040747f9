"""`adaptive`: a frozen process delays only the messages that are sent to it."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from causewire.testing import Network

from .adaptive_world import CAPS, adaptive, arrive_where, at_rest


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
