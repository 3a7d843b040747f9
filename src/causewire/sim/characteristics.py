"""The characteristics of a generated deployment, compared with those of production systems.

Sources (docs/study.md has the full references):

    Luo 2021          Alibaba, SoCC '21: more than 20,000 microservices
    Luo 2022          Alibaba, IEEE TPDS 33(12)
    Alibaba 2022      the published trace cluster-trace-microservices-v2022, five hours of it:
                      64.7 million calls in 10.5 million traces
    Winchester 2025   Alibaba, arXiv:2504.13141: 67,760 microservices
    Huye 2023         Meta, USENIX ATC '23: 18,500 services
    Du 2025           Alibaba and Meta, arXiv:2412.19083
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from random import Random
from typing import NamedTuple

from .config import SimulationConfig
from .network import SimulatedNetwork
from .process import Processes
from .run import Simulation
from .times import Exponential, LogNormal
from .workloads.deployment import ENTRY, LEAF, MIDDLE, CallNode, Deployment, Requests

__all__ = ["HANDLING", "PUBLISHED", "Published", "characteristics"]

MILLISECOND = 10**6
REQUESTS = 20_000

HANDLING = LogNormal(250_000, 1.9)
"""The handling time that gives response times like those of Alibaba's trace."""


class Published(NamedTuple):
    """One characteristic: what has been published, and what is accepted as close to it."""

    key: str
    text: str
    published: str
    low: float
    high: float
    source: str


PUBLISHED = (
    Published("calls_mean", "calls in a call graph, mean", "6.2", 4, 16, "Alibaba 2022"),
    Published("calls_tail", "p99 / median of calls (heavy tail)", "heavy", 10, 1000, "Luo 2021"),
    Published("depth_p90", "depth of call graphs, 90 % at most", "2 to 6", 2, 6, "Luo 2022"),
    Published("children_max", "services called from one place, most", "10", 2, 10, "Du 2025"),
    Published("repeated", "calls that repeat the one before", "16 %", 0.08, 0.24, "Luo 2022"),
    Published("entry", "services that are entries", "13 %", 0.08, 0.18, "Winchester 2025"),
    Published("leaf", "services that are leaves", "39 %", 0.3, 0.45, "Winchester 2025"),
    Published("middle", "services in the middle", "48 %", 0.4, 0.6, "Winchester 2025"),
    Published("instances", "instances of a service, mean", "28", 20, 36, "Winchester 2025"),
    Published("instances_entry", "... of an entry", "16", 8, 32, "Winchester 2025"),
    Published("instances_middle", "... in the middle", "41", 28, 56, "Winchester 2025"),
    Published("instances_leaf", "... of a leaf", "17", 8, 32, "Winchester 2025"),
    Published("dependencies", "services that a service calls, mean", "3.7", 2, 16, "Alibaba 2022"),
    Published("hot", "share of calls to 5 % of the services", "hot spots", 0.2, 1, "Luo 2021"),
    Published("response_p50_ms", "response time, median (ms)", "1", 0.5, 2, "Alibaba 2022"),
    Published("response_p90_ms", "... p90", "10", 5, 20, "Alibaba 2022"),
    Published("response_p95_ms", "... p95", "25", 10, 50, "Alibaba 2022"),
    Published("response_p99_ms", "... p99", "117", 30, 250, "Alibaba 2022"),
)
"""What is compared. The bounds are wide, because the sources differ among themselves."""


def characteristics(deployment: Deployment, messages: int = 40_000) -> dict[str, float]:
    """Return the characteristics of a deployment by their keys in `PUBLISHED`.

    Args:
        deployment: The workload.
        messages: The number of messages in the simulated run from which response
            times are taken.
    """
    plan = deployment.plan
    random = Random(deployment.seed).random
    weights = [
        function.weight * plan.replicas[function.root.service] / _served(deployment, i)
        for i, function in enumerate(plan.functions)
    ]
    requests = Random(deployment.seed).choices(plan.functions, weights, k=REQUESTS)
    sizes, depths = [], []
    called: Counter[int] = Counter()
    repeated = calls = 0
    for function in requests:
        made = list(_realised(function.root, random, 0))
        sizes.append(len(made))
        depths.append(max((depth for _, depth, _ in made), default=0))
        for node, _, again in made:
            called[node.service] += 1
            calls += 1
            repeated += again
    sizes.sort()
    depths.sort()
    every = [node for function in plan.functions for node in function.root.nodes()]
    pairs = {(node.service, call.service) for node in every for call in node.calls}
    callers = {caller for caller, _ in pairs}
    hot = max(1, round(0.05 * len(plan.roles)))
    share = {role: plan.roles.count(role) / len(plan.roles) for role in (ENTRY, MIDDLE, LEAF)}
    return {
        "calls_mean": sum(sizes) / len(sizes),
        "calls_tail": _percentile(sizes, 0.99) / _percentile(sizes, 0.5),
        "depth_p90": float(_percentile(depths, 0.9)),
        "children_max": float(max(len({c.service for c in node.calls}) for node in every)),
        "repeated": repeated / calls,
        **share,
        "instances": sum(plan.replicas) / len(plan.roles),
        **{f"instances_{role}": _instances(deployment, role) for role in (ENTRY, MIDDLE, LEAF)},
        "dependencies": len(pairs) / len(callers),
        "hot": sum(number for _, number in called.most_common(hot)) / calls,
        **_response(deployment, messages),
    }


def _served(deployment: Deployment, index: int) -> float:
    """Return the sum of the weights of the functions with the same entry service."""
    functions = deployment.plan.functions
    service = functions[index].root.service
    return sum(f.weight for f in functions if f.root.service == service)


def _realised(
    node: CallNode, random: Callable[[], float], depth: int
) -> Iterator[tuple[CallNode, int, bool]]:
    """Yield the calls of one request: the call, its depth, and whether it is a repetition."""
    before = None
    for call in node.calls:
        if call.optional and random() < 0.5:
            continue
        yield call, depth + 1, call.service == before
        before = call.service
        yield from _realised(call, random, depth + 1)


def _instances(deployment: Deployment, role: str) -> float:
    plan = deployment.plan
    numbers = [n for r, n in zip(plan.roles, plan.replicas, strict=True) if r == role]
    return sum(numbers) / len(numbers)


def _percentile(ordered: Sequence[int], share: float) -> int:
    return max(1, ordered[min(len(ordered) - 1, int(share * len(ordered)))])


def _response(deployment: Deployment, messages: int) -> dict[str, float]:
    """Return response times of a simulated run without any order, within a zone."""
    config = SimulationConfig(
        protocol="unordered",
        workload=deployment,
        messages=messages,
        processes=Processes(think=Exponential(1000 * MILLISECOND), handling=HANDLING),
        network=SimulatedNetwork(latency=LogNormal(MILLISECOND // 4, 0.3)),
    )
    simulation = Simulation(config, None, "")
    simulation.run()
    traffic = simulation.traffic
    assert isinstance(traffic, Requests)
    return {
        f"response_p{percent}_ms": traffic.response.percentile(percent / 100) / MILLISECOND
        for percent in (50, 90, 95, 99)
    }
