"""Every causal protocol, under every workload it carries and every fault it bears.

Judged by an oracle that knows sends and deliveries only. And the other way round:
`fifo` is caught wherever a violation is possible, so the runs here can show one.
"""

from __future__ import annotations

from typing import Any

import pytest

from causewire import protocols
from causewire.sim import Config, Processes, SimulationError, Summary, workloads
from causewire.trace import trace_of

from .simulated import TREES, WORKLOADS, Judge, play

NETWORKS: dict[str, dict[str, Any]] = {
    "plain": {},
    "long-tail": {"latency": {"kind": "lognormal", "median": "4ms", "sigma": 1.0}},
    "slow-uplinks": {"bandwidth": "30kB/s"},
    "reordering": {"reorder": 0.3},
    "duplicating": {"duplicate": 0.2},
    "losing": {"loss": 0.1},
    "all-bad": {"loss": 0.1, "duplicate": 0.1, "reorder": 0.1},
}

FAULTS: dict[str, list[dict[str, Any]]] = {
    "partition": [
        {"kind": "partition", "at": "20ms", "sides": 2},
        {"kind": "heal", "at": "90ms"},
    ],
    "crash": [
        {"kind": "crash", "at": "20ms", "links": [[0, 1], [2, 3], [4, 0]]},
        {"kind": "heal", "at": "90ms"},
    ],
    "hold": [
        {"kind": "hold", "at": "20ms", "links": [[0, 1], [1, 2], [4, 5]]},
        {"kind": "release", "at": "90ms"},
    ],
    "slow": [
        {"kind": "slow", "at": "20ms", "factor": 6, "processes": [1]},
        {"kind": "heal", "at": "90ms"},
    ],
}

CAUSAL = [name for name in protocols.names() if protocols.describe(name).causal]


def settings(
    protocol: str, workload: workloads.Workload, think: str = "10ms", **more: Any
) -> dict[str, Any]:
    own = isinstance(workload, workloads.Microservices)
    processes = Processes.from_dict({"count": None if own else 6, "think": think})
    return {"protocol": protocol, "workload": workload, "processes": processes} | more


def carries(protocol: str, workload: workloads.Workload, **more: Any) -> bool:
    try:
        Config.from_dict(settings(protocol, workload, **more))
    except SimulationError:
        return False
    return True


PAIRS = [
    (protocol, name)
    for protocol in CAUSAL
    for name, workload in WORKLOADS.items()
    if carries(protocol, workload)
]


def check(summary: Summary, judge: Judge, what: str) -> None:
    assert not judge.violations, what
    assert summary.undelivered is None, what
    assert judge.undelivered == 0, what
    assert summary.duplicates == 0, what


@pytest.mark.parametrize(("protocol", "name"), PAIRS)
def test_causal_protocols_keep_their_promise_on_any_network_they_bear(
    protocol: str, name: str
) -> None:
    ran = []
    for kind, network in NETWORKS.items():
        if carries(protocol, WORKLOADS[name], network=network):
            summary, judge = play(
                **settings(protocol, WORKLOADS[name], network=network, messages=30, seed=1)
            )
            check(summary, judge, f"{protocol} {name} {kind} seed=1")
            ran.append(kind)
    described = protocols.describe(protocol)
    assert "plain" in ran
    assert ("losing" in ran) == described.tolerates_loss
    assert ("duplicating" in ran) == described.tolerates_duplication


@pytest.mark.parametrize(("protocol", "name"), PAIRS)
def test_causal_protocols_keep_their_promise_through_the_faults_they_bear(
    protocol: str, name: str
) -> None:
    for kind, faults in FAULTS.items():
        if carries(protocol, WORKLOADS[name], faults=faults):
            summary, judge = play(
                **settings(protocol, WORKLOADS[name], faults=faults, messages=30, seed=2)
            )
            check(summary, judge, f"{protocol} {name} {kind} seed=2")
            assert (summary.lost > 0) <= (kind in ("partition", "crash"))


@pytest.mark.parametrize("kind", FAULTS)
def test_the_faults_made_a_difference(kind: str) -> None:
    """Or the runs above would show nothing."""
    quiet, _ = play(**settings("csps", WORKLOADS["uniform"], messages=40, seed=2))
    summary, _ = play(
        **settings("csps", WORKLOADS["uniform"], faults=FAULTS[kind], messages=40, seed=2)
    )
    assert summary.latency.max_ns > 1.5 * quiet.latency.max_ns
    assert (summary.lost > 0) == (kind in ("partition", "crash"))


def test_messages_were_held_on_both_sides() -> None:
    summary, _ = play(**settings("csps", WORKLOADS["uniform"], think="3ms", messages=200))
    assert summary.held_at_sender.max_ns > 0
    assert summary.held_at_receiver.max_ns > 0
    assert summary.max_send_buffer > 0


VIOLABLE = [name for name in WORKLOADS if name not in TREES]


def first_violation(protocol: str, workload: workloads.Workload) -> int | None:
    """The first seed whose run violates causal order."""
    network = {"latency": {"kind": "lognormal", "median": "3ms", "sigma": 1.5}}
    dense: dict[str, Any] = {"think": "3ms", "messages": 100, "network": network}
    for seed in range(20):
        _, judge = play(**settings(protocol, workload, **dense, seed=seed))
        assert set(judge.violations) <= {"causal"}
        if judge.violations["causal"]:
            return seed
    return None


@pytest.mark.parametrize("name", VIOLABLE)
def test_fifo_is_caught_wherever_there_are_two_ways(name: str) -> None:
    assert first_violation("fifo", WORKLOADS[name]) is not None


@pytest.mark.parametrize("name", TREES)
def test_fifo_is_enough_where_there_is_one_way_only(name: str) -> None:
    assert first_violation("fifo", WORKLOADS[name]) is None
    assert first_violation("unordered", WORKLOADS[name]) is not None


def test_fifo_is_caught_in_a_replay() -> None:
    for seed in range(20):
        network = {"latency": {"kind": "uniform", "low": "1ms", "high": "40ms"}}
        _, original = play(**settings("csps", WORKLOADS["relay"], messages=100, seed=seed))
        replay = workloads.Replay(trace=trace_of(original.rows), pace=False)
        _, judge = play(protocol="fifo", workload=replay, network=network, seed=seed)
        if judge.violations["causal"]:
            return
    raise AssertionError("no violation in 20 replays")


def test_the_broken_variant_of_cykas_is_caught() -> None:
    assert first_violation("cykas-secret-sends", WORKLOADS["uniform"]) is not None


def test_reactions_happen_inside_deliveries() -> None:
    """A relayed message depends on what was delivered up to there, and nothing later."""
    _, judge = play(**settings("fifo", WORKLOADS["relay"], messages=200, seed=4))
    inside = [
        row
        for before, row, after in zip(judge.rows, judge.rows[1:], judge.rows[2:], strict=False)
        if before.kind == "deliver" and row.kind == "send" and after.kind == "deliver"
        if before.process == row.process == after.process and before.time_ns == after.time_ns
    ]
    assert inside, "a message was sent between two deliveries of one arrival"
