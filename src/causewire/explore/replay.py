"""The same run under another protocol: its sends once more, in the simulator.

The workload `replay` keeps what each send depended on. The network of the
replay is like the one seen in the trace: its latencies have the same median and
the same spread, drawn anew for each packet.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import protocols
from ..core.errors import CausewireError
from ..sim import Config, simulate
from ..trace import Event, Trace, trace_of
from .dataset import Dataset
from .run import RunData
from .window import View

__all__ = ["MOST_MESSAGES", "ReplayError", "candidates", "replayed"]

MOST_MESSAGES = 50_000
"""Messages of a run that is replayed while somebody waits."""


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
    """Return a latency like that of the network in the trace."""
    if view.axis.name != "time":
        return {}
    seen = view.parts.network[np.isfinite(view.parts.network) & (view.parts.network > 0)]
    if len(seen) < 4:
        return {}
    median = float(np.median(seen))
    low, high = np.quantile(seen, [0.16, 0.84])
    sigma = float(np.clip(np.log(high / low) / 2, 0.0, 2.0)) if low > 0 else 0.5
    return {"latency": {"kind": "lognormal", "median": f"{max(int(median), 1)}ns", "sigma": sigma}}


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
