"""When could an omniscient protocol have delivered each message, and what was it after?

Such a protocol puts every message on the network at once, and delivers it as soon
as it and everything that happened before it has arrived. With the same sends, and
the times on the network that were seen,

    earliest(m, d) = max over all m' up to and including m that are addressed to d
                     of  sent(m') + network(m', d),

the unavoidable latency of m (Almeida, section 2.2: whatever comes on top is
non-causal). For each process keep, for each destination d, the greatest such
arrival among all messages in its past: a vector that travels with messages, and
is merged when they are delivered, like a clock. In the same way travels the place
of the last of these messages in d's order of delivery: the predecessor that m may
have waited for.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from .._compiled import Bytes, Longs, Words, compiled

__all__ = ["NOTHING", "earliest"]

NOTHING = np.iinfo(np.int64).min
"""No arrival, no predecessor."""

SEND, DELIVER = 1, 2


@compiled
def _run(
    kind: Bytes,
    process: Words,
    slot: Words,
    begin: Longs,
    end: Longs,
    destination: Words,
    arrival: Longs,
    place: Longs,
    slots: int,
    processes: int,
    earliest: Longs,
    before: Longs,
) -> None:
    """Rows in order; row t sends the copies begin[t]:end[t], or delivers slot[t]."""
    when = np.full((processes, processes), NOTHING, np.int64)
    last = np.full((processes, processes), NOTHING, np.int64)
    sent_when = np.empty((slots, processes), np.int64)
    sent_last = np.empty((slots, processes), np.int64)
    for t in range(kind.shape[0]):
        p = process[t]
        s = slot[t]
        if kind[t] == SEND:
            for k in range(begin[t], end[t]):
                d = destination[k]
                before[k] = last[p, d]
                earliest[k] = when[p, d]
            for k in range(begin[t], end[t]):
                d = destination[k]
                if arrival[k] != NOTHING:
                    earliest[k] = max(earliest[k], arrival[k])
                    when[p, d] = max(when[p, d], arrival[k])
                last[p, d] = max(last[p, d], place[k])
            if s >= 0:
                for d in range(processes):
                    sent_when[s, d] = when[p, d]
                    sent_last[s, d] = last[p, d]
        elif s >= 0:
            for d in range(processes):
                when[p, d] = max(when[p, d], sent_when[s, d])
                last[p, d] = max(last[p, d], sent_last[s, d])


def earliest(
    kind: Bytes,
    process: Words,
    message: Longs,
    begin: Longs,
    end: Longs,
    destination: Words,
    arrival: Longs,
    place: Longs,
    processes: int,
) -> tuple[Longs, Longs]:
    """For each copy: the earliest delivery, and the last place among its predecessors.

    Rows are the sends and deliveries of a run in order; `message` numbers them
    (-1 for a delivery of nothing that was sent). Copies have a destination, an
    arrival, and a place in its order of deliveries, or `NOTHING`.
    """
    out = np.full(len(destination), NOTHING, np.int64)
    before = np.full(len(destination), NOTHING, np.int64)
    slot, slots = _slots(kind, message)
    _run(
        kind, process, slot, begin, end, destination, arrival, place, slots, processes, out, before
    )
    return out, before


def _slots(kind: Bytes, message: Longs) -> tuple[Words, int]:
    """Small numbers for messages from their send to their last delivery."""
    rows = np.arange(len(kind))
    messages = int(message.max(initial=-1)) + 1
    last = np.full(messages, -1, np.int64)
    delivered = (kind == DELIVER) & (message >= 0)
    last[message[delivered]] = rows[delivered]
    ends: npt.NDArray[Any] = np.zeros(len(kind), np.bool_)
    ends[last[last >= 0]] = True
    slot = np.full(len(kind), -1, np.int32)
    return _assign(kind, message, last, ends, slot)


@compiled
def _assign(kind: Bytes, message: Longs, last: Longs, ends: Any, slot: Words) -> tuple[Words, int]:
    of = np.full(last.shape[0], -1, np.int32)
    free = np.empty(last.shape[0] + 1, np.int32)
    many, used = 0, 0
    for t in range(kind.shape[0]):
        m = message[t]
        if m < 0:
            continue
        if kind[t] == SEND:
            if last[m] > t:
                if many > 0:
                    many -= 1
                    of[m] = free[many]
                else:
                    of[m] = used
                    used += 1
                slot[t] = of[m]
        else:
            slot[t] = of[m]
            if ends[t] and of[m] >= 0:
                free[many] = of[m]
                many += 1
    return slot, used
