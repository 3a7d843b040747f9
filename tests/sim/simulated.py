"""What the tests of the simulator share: a judge of runs, and small systems."""

from __future__ import annotations

from collections import Counter
from typing import Any

from causewire.sim import Config, simulate, workloads
from causewire.testing import Oracle
from causewire.trace import Event

MS = 10**6

DIAMOND: dict[str, Any] = {
    "gateway": {"replicas": 2, "calls": ["cart", "stock"]},
    "cart": {"replicas": 2, "calls": ["stock", {"to": "price", "copies": 2}]},
    "stock": {"replicas": 1},
    "price": {"replicas": 1, "balance": "round-robin"},
}

WORKLOADS: dict[str, workloads.Workload] = {
    "uniform": workloads.Uniform(),
    "multicast": workloads.Uniform(fanout=3),
    "hotspot": workloads.Hotspot(share=0.2),
    "pipeline": workloads.Pipeline(),
    "wide-pipeline": workloads.Pipeline(stages=3),
    "star": workloads.RequestReply(outstanding=3),
    "request-reply": workloads.RequestReply(servers=2, outstanding=3),
    "relay": workloads.Relay(hops=4),
    "microservices": workloads.Microservices(services=DIAMOND),
    "broadcast": workloads.Broadcast(),
    "unpaced-broadcast": workloads.Broadcast(lockstep=False),
    "groups": workloads.Groups(),
}

TREES = ("pipeline", "wide-pipeline", "star")
"""Workloads in which there is only one way from one process to another: FIFO is enough."""


class Judge:
    """Takes the rows of a run, and judges them by the definition of causal order."""

    def __init__(self) -> None:
        self.rows: list[Any] = []
        """Events; Any, because a simulation always fills in what other traces may lack."""
        self._oracle = Oracle()

    def write(self, event: Event) -> None:
        self.rows.append(event)
        if event.kind == "send":
            self._oracle.sent(event.process, event.mid or 0, event.peers)
        elif event.kind == "deliver":
            self._oracle.delivered(event.process, event.origin or "", event.mid or 0)

    @property
    def violations(self) -> Counter[str]:
        return Counter(violation.kind for violation in self._oracle.violations)

    @property
    def undelivered(self) -> int:
        return len(self._oracle.undelivered())

    def of(self, *kinds: str) -> list[Any]:
        return [row for row in self.rows if row.kind in kinds]


def play(**settings: Any) -> tuple[Any, Judge]:
    """Simulate what these settings say, and judge it; returns a `Summary` and the judge."""
    judge = Judge()
    return simulate(Config.from_dict(settings), judge), judge
