"""The same run under another protocol: its sends once more, in the simulator.

The workload `replay` keeps what each send depended on. The network of the
replay is like the one seen in the trace: latencies are drawn from the uniform,
normal or log-normal distribution that comes closest to those seen.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import protocols
from ..core.errors import CausewireError
from ..sim import Config, simulate
from ..trace import Event, Trace, trace_of
from .arrays import Floats
from .dataset import Dataset
from .run import RunData
from .window import View

__all__ = ["MOST_MESSAGES", "ReplayError", "candidates", "replayed"]

MOST_MESSAGES = 50_000
"""Messages of a run that can be replayed: more would take too long to wait for."""


class ReplayError(CausewireError):
    """A run that cannot be replayed, and why."""


class _Kept:
    """Takes the rows of a simulation."""

    def __init__(self) -> None:
        self.events: list[Event] = []

    def write(self, event: Event) -> None:
        """Keep one row."""
        self.events.append(event)


def candidates() -> list[dict[str, str]]:
    """Return the protocols that a replay may use, with what each does."""
    return [
        {"name": name, "summary": protocols.describe(name).summary} for name in protocols.names()
    ]


def _network(run: RunData, view: View) -> dict[str, Any]:
    """Return a network with latencies like those in the trace."""
    if view.axis.name != "time":
        return {}
    seen = view.parts.network[np.isfinite(view.parts.network) & (view.parts.network > 0)]
    return {"latency": _fitted(seen)} if len(seen) >= 8 else {}


def _fitted(seen: Floats) -> dict[str, Any]:
    """Return the distribution that comes closest to the latencies seen, by its quantiles."""
    shares = np.array([0.05, 0.25, 0.5, 0.75, 0.95])
    normal = np.array([-1.645, -0.674, 0.0, 0.674, 1.645])
    quantiles = np.quantile(seen, shares)
    low, high = np.quantile(seen, [0.005, 0.995])
    median, mean, deviation = quantiles[2], seen.mean(), seen.std()
    sigma = min(float(np.log(quantiles[4] / quantiles[0])) / 3.29, 10.0)
    fits: list[tuple[Floats, dict[str, Any]]] = [
        (low + shares * (high - low), {"kind": "uniform", "low": low, "high": high}),
        (mean + normal * deviation, {"kind": "normal", "mean": mean, "deviation": deviation}),
        (median * np.exp(normal * sigma), {"kind": "lognormal", "median": median, "sigma": sigma}),
    ]
    _, best = min(fits, key=lambda fit: float(np.abs(fit[0] / quantiles - 1).max()))
    plain = ("kind", "sigma")
    return {k: v if k in plain else f"{max(round(v), 1)}ns" for k, v in best.items()}


def replayed(run: RunData, view: View, trace: Trace, name: str, protocol: str) -> Dataset:
    """Replay a run and return the result, read and checked.

    Raises:
        ReplayError: The run is too long, or the protocol cannot carry it.
    """
    messages = len(np.unique(run.copies.send))
    if messages > MOST_MESSAGES:
        raise ReplayError(
            f"a replay takes up to {MOST_MESSAGES:,} messages, and this run has {messages:,}: "
            "causewire simulate --workload replay has no such limit"
        )
    try:
        config = Config.from_dict(
            {
                "protocol": protocol,
                "workload": {"kind": "replay", "trace": trace, "run": name},
                "network": _network(run, view),
                "seed": 1,
            }
        )
        kept = _Kept()
        summary = simulate(config, kept, run=f"{name} under {protocol}")
    except CausewireError as error:
        raise ReplayError(str(error)) from None
    result = Dataset(
        lambda: trace_of(kept.events, f"replay under {protocol}"),
        f"replay under {protocol}",
        summary={
            "protocol": summary.protocol,
            "messages": summary.messages,
            "mean_ns": summary.latency.mean_ns,
            "sender_ns": summary.held_at_sender.mean_ns,
            "receiver_ns": summary.held_at_receiver.mean_ns,
            "control_per_message": summary.control_per_message,
            "metadata_per_message": summary.metadata_bytes / max(summary.messages, 1),
        },
    )
    result.load()
    return result
