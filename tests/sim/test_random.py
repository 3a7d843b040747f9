"""Random systems: any protocol, workload, network, application and faults together.

A failure prints the settings, which repeat it.
"""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from causewire import protocols
from causewire.sim import Config, SimulationError, simulate

from .simulated import MS, WORKLOADS, Judge, play

GOOD = [
    name
    for name in protocols.names()
    if protocols.describe(name).causal and protocols.describe(name).live
]
LATENCIES: list[Any] = [
    0,
    "4ms",
    {"kind": "lognormal", "median": "3ms", "sigma": 1.2},
    {"kind": "exponential", "mean": "5ms"},
    {"kind": "regions", "names": ["a", "b"], "matrix": [["1ms", "50ms"], ["40ms", "2ms"]]},
]


def network(random: Random, protocol: protocols.Protocol) -> dict[str, Any]:
    chosen: dict[str, Any] = {}
    if protocol.tolerates_loss and random.random() < 0.5:
        chosen["loss"] = random.choice([0.01, 0.1, 0.3])
    if protocol.tolerates_duplication and random.random() < 0.5:
        chosen["duplicate"] = random.choice([0.05, 0.3])
    if not protocol.needs_fifo and random.random() < 0.3:
        chosen["reorder"] = 0.2
    elif random.random() < 0.3:
        chosen["fifo"] = True
    if random.random() < 0.5:
        chosen["latency"] = random.choice(LATENCIES)
    if random.random() < 0.3:
        chosen["bandwidth"] = random.choice(["20kB/s", "200kB/s"])
        chosen["shared"] = random.choice(["uplink", "link"])
    return chosen


def timeline(random: Random, protocol: protocols.Protocol) -> list[dict[str, Any]]:
    """Up to three faults, most of which end."""
    faults: list[dict[str, Any]] = []
    for number in range(random.randint(0, 3)):
        kinds = ["hold", "slow", "partition", "crash"][: 4 if protocol.tolerates_loss else 2]
        kind = random.choice(kinds)
        at = random.randint(0, 150) * MS
        where: dict[str, Any] = random.choice(
            [
                {"sides": random.choice([2, 3, [[0], [1, 2]]])},
                {"links": [[0, 1], [2, 3]], "oneway": random.random() < 0.5},
                {"processes": [random.randrange(4)]},
                {},
            ]
        )
        if kind == "partition":
            where = {"sides": 2}
        factor = {"factor": random.choice([0.1, 3, 20])} if kind == "slow" else {}
        faults.append({"kind": kind, "at": f"{at}ns", "name": f"f{number}"} | where | factor)
        if random.random() < 0.85:
            end = "release" if kind == "hold" else "heal"
            over = at + random.randint(0, 200) * MS
            faults.append({"kind": end, "at": f"{over}ns", "name": f"f{number}"})
    return faults


def system(seed: int) -> dict[str, Any]:
    random = Random(seed)
    protocol = protocols.describe(random.choice(GOOD))
    broadcasts = ["broadcast", "unpaced-broadcast"]
    workload = random.choice([*WORKLOADS] if protocol.unicast else broadcasts)
    processes: dict[str, Any] = {
        "think": random.choice(["0ms", "1ms", "10ms", {"kind": "exponential", "mean": "10ms"}])
    }
    if workload != "microservices":
        processes["count"] = random.randint(4, 8)
    if random.random() < 0.3:
        processes["handling"] = {"kind": "uniform", "low": "0ms", "high": "3ms"}
    if random.random() < 0.3:
        length = random.choice(["20ms", {"kind": "normal", "mean": "20ms", "deviation": "9ms"}])
        blocking = random.random() < 0.5
        processes["jobs"] = {"share": 0.3, "length": length, "blocking": blocking}
    return {
        "protocol": protocol.name,
        "workload": WORKLOADS[workload],
        "processes": processes,
        "messages": random.randint(0, 60),
        "network": network(random, protocol),
        "faults": timeline(random, protocol),
        "seed": seed,
    }


def lasting(faults: list[dict[str, Any]]) -> bool:
    """Whether something is cut or held, and stays so."""
    ended = {fault["name"] for fault in faults if fault["kind"] in ("heal", "release")}
    return any(
        fault["kind"] not in ("heal", "release", "slow") and fault["name"] not in ended
        for fault in faults
    )


@pytest.mark.slow
@pytest.mark.parametrize("block", range(8))
def test_random_systems(block: int) -> None:
    ran = 0
    for seed in range(block * 25, block * 25 + 25):
        settings = system(seed)
        try:
            config = Config.from_dict(settings)
        except SimulationError:
            continue
        judge = Judge()
        summary = simulate(config, judge)
        assert summary.messages <= settings["messages"], settings
        assert not judge.violations, settings
        assert summary.duplicates == 0, settings
        if summary.undelivered is None:
            assert judge.undelivered == 0, settings
            assert summary.messages == settings["messages"], settings
        else:
            assert summary.undelivered.copies == judge.undelivered, settings
            assert summary.undelivered.unavoidable, (summary.undelivered, settings)
            assert lasting(settings["faults"]), settings
        ran += 1
    assert ran > 15


def test_patience_begins_when_the_last_fault_is_over() -> None:
    """The link is down for much longer than anybody would repeat things in vain."""
    summary, _ = play(
        protocol="csps",
        processes=2,
        messages=20,
        network={"latency": "1ms"},
        retransmission="2ms",
        patience=5,
        faults=[{"kind": "partition", "at": "1ms", "sides": 2}, {"kind": "heal", "at": "1s"}],
    )
    assert summary.undelivered is None
