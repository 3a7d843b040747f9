"""Where the time of messages went: held at the sender, on the network, held at the receiver."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from .arrays import Floats, Longs
from .run import Axis, RunData

__all__ = ["Parts", "histogram", "parts_of"]

_BINS = 48


class Parts(NamedTuple):
    """Of each copy: its latency and the three parts of it; NaN if not delivered.

    Where a trace has no release or arrival, that time counts as network time.
    """

    total: Floats
    sender: Floats
    network: Floats
    receiver: Floats


def parts_of(run: RunData, axis: Axis) -> Parts:
    """Return the parts of the latency of all copies, in units of the axis."""
    c, x = run.copies, axis.x
    sent, done = x[c.send], np.where(c.deliver >= 0, x[c.deliver], np.nan)
    left = np.where(c.release >= 0, x[c.release], sent)
    came = np.where(c.receive >= 0, x[c.receive], done)
    left = np.maximum(sent, np.minimum(left, done))
    came = np.maximum(left, np.minimum(came, done))
    return Parts(done - sent, left - sent, came - left, done - came)


def histogram(parts: Parts, chosen: Longs, least: Floats | None = None) -> dict[str, Any]:
    """Return counts and mean parts of the latencies of some copies, in bins.

    The bins grow by a constant factor, because latencies spread over orders of
    magnitude; those below a thousandth of the longest share the first bin.
    `least` is the part of each latency that no protocol could have avoided.
    """
    total = parts.total[chosen]
    fine = np.isfinite(total) & (total >= 0)
    chosen, total = chosen[fine], total[fine]
    undelivered = int(len(fine) - fine.sum())
    if not len(chosen):
        return {"count": 0, "undelivered": undelivered, "edges": [], "bins": []}
    most = max(float(total.max()), 1.0)
    small = max(most / 1000, float(np.quantile(total, 0.005)), 1e-9)
    if small >= most / 4:
        edges = np.linspace(0, most * 1.0001, _BINS // 2 + 1)
    else:
        edges = np.geomspace(small, most * 1.0001, _BINS + 1)
        edges[0] = 0.0
    where = np.clip(np.searchsorted(edges, total, "right") - 1, 0, len(edges) - 2)
    counts = np.bincount(where, minlength=len(edges) - 1)
    sums = [np.bincount(where, parts[k][chosen], minlength=len(edges) - 1) for k in (1, 2, 3)]
    quantiles = np.quantile(total, [0.5, 0.99]).tolist()
    return {
        "count": len(chosen),
        "undelivered": undelivered,
        "edges": edges.tolist(),
        "bins": [
            [int(n), *(float(part[k]) for part in sums)] for k, n in enumerate(counts.tolist())
        ],
        "mean": float(total.mean()),
        "median": quantiles[0],
        "p99": quantiles[1],
        "most": most,
        "parts": [float(parts[k][chosen].mean()) for k in (1, 2, 3)],
        "unavoidable": None if least is None else float(least[chosen].mean()),
    }
