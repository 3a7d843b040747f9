"""Generated deployments: their distributions, their calls and replies, and their size."""

from __future__ import annotations

import hashlib
from collections import Counter
from typing import Any

import pytest

from causewire.sim import Config, SimulationError, simulate
from causewire.sim.characteristics import PUBLISHED, characteristics
from causewire.sim.workloads import Deployment
from causewire.sim.workloads.deployment import BROKER, ENTRY, LEAF, MIDDLE

from .simulated import Judge

SMALL = Deployment(size=40)


def run(workload: Deployment, protocol: str = "fifo", messages: int = 600) -> tuple[Any, Judge]:
    judge = Judge()
    settings = {
        "protocol": protocol,
        "workload": workload,
        "messages": messages,
        "processes": {"think": {"kind": "exponential", "mean": "50ms"}, "handling": "1ms"},
        "network": {"latency": {"kind": "lognormal", "median": "2ms", "sigma": 0.8}},
    }
    return simulate(Config.from_dict(settings), judge), judge


def role(name: str) -> str:
    return name.rstrip("0123456789.")


def test_a_seed_is_a_deployment() -> None:
    def shape(workload: Deployment) -> str:
        plan = workload.plan
        nodes = [[n.service for n in f.root.nodes()] for f in plan.functions]
        return repr((plan.roles, plan.replicas, nodes))

    assert shape(Deployment(size=300)) == shape(Deployment(size=300))
    assert shape(Deployment(size=300)) != shape(Deployment(size=300, seed=1))
    digest = hashlib.sha256(shape(Deployment(size=300)).encode()).hexdigest()
    assert digest[:16] == "de44e597f3c0e29f"


@pytest.mark.parametrize("size", [6, 10, 40, 300, 1000, 10_000])
def test_every_service_has_a_replica_and_the_sum_is_right(size: int) -> None:
    workload = Deployment(size=size)
    assert sum(workload.plan.replicas) == size == len(workload.own_names())
    assert min(workload.plan.replicas) >= 1
    assert set(workload.plan.roles) == {ENTRY, MIDDLE, LEAF, BROKER}


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.slow
def test_the_characteristics_are_those_that_have_been_published(seed: int) -> None:
    found = characteristics(Deployment(size=1000, seed=seed), messages=20_000)
    far = {
        row.key: found[row.key] for row in PUBLISHED if not row.low <= found[row.key] <= row.high
    }
    assert far == {}
    assert found["calls_mean"] == pytest.approx(6.2, rel=0.4)
    assert found["instances"] == pytest.approx(28, abs=1)


def test_a_check_of_characteristics_can_fail() -> None:
    flat = characteristics(Deployment(size=1000, tail=0.0, skew=0.0, calls=1.0), messages=500)
    far = [row.key for row in PUBLISHED if not row.low <= flat[row.key] <= row.high]
    assert {"calls_mean", "calls_tail"} <= set(far)


def test_graphs_obey_their_bounds() -> None:
    workload = Deployment(size=300, fanout=4, depth=3, most=50)
    callees: dict[int, set[int]] = {}
    for function in workload.plan.functions:
        assert function.root.depth() <= 3
        assert 1 <= function.root.size() <= 50
        for node in function.root.nodes():
            callees.setdefault(node.service, set()).update(call.service for call in node.calls)
            if workload.plan.roles[node.service] == LEAF:
                assert not node.calls
    assert max(map(len, callees.values())) <= 4


def test_who_calls_and_who_replies() -> None:
    _, judge = run(SMALL)
    pairs = Counter((role(row.process), role(row.peers[0])) for row in judge.of("send"))
    assert pairs[ENTRY, LEAF] > 0
    assert pairs[ENTRY, MIDDLE] > 0
    assert pairs[LEAF, LEAF] == 0
    assert pairs[LEAF, MIDDLE] > 0  # replies
    assert pairs[MIDDLE, ENTRY] > 0
    assert pairs[ENTRY, BROKER] > 0
    assert pairs[BROKER, MIDDLE] + pairs[BROKER, LEAF] > 0
    assert pairs[BROKER, ENTRY] == 0  # nobody replies to a queue


def test_without_queues_every_call_is_answered() -> None:
    """Between two processes as many messages go one way as the other, in the end."""
    workload = Deployment(size=40, queued=0.0, optional=0.0)
    summary, judge = run(workload, messages=3000)
    assert summary.undelivered is None
    assert BROKER not in {role(row.process) for row in judge.rows}
    ways = Counter((row.process, row.peers[0]) for row in judge.of("send"))
    there_and_back = sum(min(n, ways[q, p]) for (p, q), n in ways.items())
    assert there_and_back / ways.total() > 0.95  # some were under way when messages ran out


@pytest.mark.parametrize("balance", ["random", "round-robin", "sticky"])
def test_load_balancing(balance: str) -> None:
    workload = Deployment(size=60, balance=balance, queued=0.0)
    _, judge = run(workload, messages=2000)
    services: dict[tuple[str, str], set[str]] = {}
    for row in judge.of("send"):
        service = row.peers[0].partition(".")[0]
        if role(row.process) == ENTRY:
            services.setdefault((row.process, service), set()).add(row.peers[0])
    most = max(map(len, services.values()))
    assert most == 1 if balance == "sticky" else most > 2


@pytest.mark.parametrize("protocol", ["csps", "sps", "ks", "mf", "cykas", "adaptive"])
def test_under_every_protocol(protocol: str) -> None:
    summary, judge = run(SMALL, protocol, messages=400)
    assert summary.undelivered is None
    assert summary.messages == 400
    assert not judge.violations


def test_it_can_violate_causal_order() -> None:
    _, judge = run(Deployment(size=12), "fifo", messages=3000)
    assert judge.violations


@pytest.mark.slow
def test_ten_thousand_processes() -> None:
    config = Config.from_dict(
        {
            "protocol": "csps",
            "workload": Deployment(size=10_000),
            "messages": 5_000,
            "processes": {"think": {"kind": "exponential", "mean": "1s"}},
        }
    )
    summary = simulate(config)
    assert (summary.processes, summary.deliveries) == (10_000, 5_000)


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"entry": 0.6, "leaf": 0.4}, "must leave room"),
        ({"size": 10, "services": 11}, "need at least as many processes"),
        ({"size": 5}, "an integer from 6 upward"),
        ({"skew": 9}, "from 0 to 4"),
        ({"balance": "best"}, "one of random"),
    ],
)
def test_what_is_refused(settings: dict[str, Any], says: str) -> None:
    with pytest.raises(SimulationError, match=says):
        Deployment.from_dict(settings)
