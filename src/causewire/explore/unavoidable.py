"""The part of each latency that no protocol could have avoided.

An omniscient protocol puts each message on the network at once, and delivers it
as soon as it and everything that happened before it has arrived. What a copy
took beyond that is non-causal latency.
"""

from __future__ import annotations

import numpy as np

from ..metrics.earliest import NOTHING, earliest
from .arrays import Floats
from .latency import Parts
from .run import Axis, RunData
from .table import DELIVERED, SENT

__all__ = ["unavoidable"]

_MOST = 2_000_000_000
"""Messages times processes up to which it is computed."""


def unavoidable(run: RunData, axis: Axis, parts: Parts) -> Floats | None:
    """Return the least latency of each copy; NaN where it was not delivered.

    Returns None where that cannot be known (the axis is not time, or the trace
    does not tell the time on the network), or would take too long.
    """
    c = run.copies
    processes = len(run.processes)
    if axis.name != "time" or not (c.receive >= 0).any() or not (c.release >= 0).any():
        return None
    if len(c) * processes > _MOST:
        return None
    sends = np.unique(c.send)
    message = np.full(len(run), -1, np.int32)
    message[sends] = np.arange(len(sends))
    known = np.flatnonzero(c.deliver >= 0)
    message[c.deliver[known]] = message[c.send[known]]
    rows = np.flatnonzero(message >= 0)
    kind = np.zeros(len(run), np.int8)
    kind[sends] = SENT + 1
    kind[c.deliver[known]] = DELIVERED - 1
    begin = np.searchsorted(c.send, np.append(sends, len(run)))  # copies are in that order
    arrival = np.full(len(c), NOTHING, np.int64)
    time = run.rows.time
    network = parts.network[known].astype(np.int64)
    arrival[known] = time[c.send[known]] + network
    least, _ = earliest(
        kind[rows],
        run.rows.process[rows],
        message[rows],
        begin,
        c.target,
        arrival,
        c.deliver.astype(np.int32),
        processes,
    )
    result = np.full(len(c), np.nan)
    result[known] = (least[known] - time[c.send[known]]).astype(np.float64)
    capped: Floats = np.minimum(result, parts.total)
    return capped
