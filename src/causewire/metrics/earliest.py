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

Destinations do not depend on one another. If the vectors of all processes and of all
messages in flight do not fit into `MEMORY`, several passes are made, each for a block of
destinations.
"""

from __future__ import annotations

import numpy as np

from .._compiled import Bytes, Longs, Words, compiled

__all__ = ["NOTHING", "earliest"]

NOTHING = np.iinfo(np.int64).min
"""No arrival."""

MEMORY = 256 << 20
"""Bytes of vectors to use at once."""

SEND, DELIVER = 1, 2


def earliest(
    kind: Bytes,
    process: Words,
    message: Words,
    begin: Longs,
    destination: Words,
    arrival: Longs,
    place: Words,
    processes: int,
    memory: int = MEMORY,
) -> tuple[Longs, Words]:
    """For each copy: the earliest delivery, and the last place among its predecessors.

    Args:
        kind: 1 for a send, 2 for a delivery; the rows are in a causal order.
        process: Where it happens.
        message: The number of the message.
        begin: Of each message: its first copy. One more, for the end.
        destination: Of each copy.
        arrival: Of each copy: when it would have arrived, or `NOTHING`.
        place: Of each copy: its place in its destination's order of deliveries, or -1.
        processes: How many processes there are.
        memory: Bytes of vectors to use at once.

    Returns:
        Times (or `NOTHING`) and places (or -1).
    """
    # Ranks instead of times: half as wide, and of one type with places.
    by_time = np.argsort(arrival, kind="stable")
    rank = np.empty(len(arrival), np.int32)
    rank[by_time] = np.arange(len(arrival))
    rank[arrival == NOTHING] = -1
    out = np.full(len(destination), -1, np.int32)
    before = np.full(len(destination), -1, np.int32)
    slot, slots = _slots(kind, message, len(begin) - 1)
    width = min(processes, max(16, memory // (8 * max(1, processes + slots))))
    for lo in range(0, processes, width):
        block = (lo, min(processes, lo + width))
        _pass(
            *(kind, process, message, slot, begin, destination, rank, place),
            *(slots, processes, *block, out, before),
        )
    result: Longs = np.full(len(destination), NOTHING, np.int64)
    known = out >= 0
    result[known] = arrival[by_time[out[known]]]
    return result, before


@compiled
def _pass(
    kind: Bytes,
    process: Words,
    message: Words,
    slot: Words,
    begin: Longs,
    destination: Words,
    rank: Words,
    place: Words,
    slots: int,
    processes: int,
    lo: int,
    hi: int,
    earliest: Words,
    before: Words,
) -> None:
    """Find the earliest delivery of the copies to the destinations from lo to hi.

    The first half of a vector has ranks of arrivals, the second half has places.
    """
    width = hi - lo
    past = np.full((processes, 2 * width), -1, np.int32)
    sent = np.empty((slots, 2 * width), np.int32)
    for t in range(kind.shape[0]):
        p = process[t]
        s = slot[t]
        if kind[t] == SEND:
            m = message[t]
            for k in range(begin[m], begin[m + 1]):
                d = destination[k] - lo
                if 0 <= d < width:
                    before[k] = past[p, width + d]
                    earliest[k] = max(past[p, d], rank[k])
                    past[p, d] = earliest[k]
                    past[p, width + d] = max(past[p, width + d], place[k])
            if s >= 0:
                for d in range(2 * width):
                    sent[s, d] = past[p, d]
        elif s >= 0:
            for d in range(2 * width):
                past[p, d] = max(past[p, d], sent[s, d])


@compiled
def _slots(kind: Bytes, message: Words, messages: int) -> tuple[Words, int]:
    """Small numbers for messages from their send to their last delivery; -1: not delivered."""
    rows = kind.shape[0]
    last = np.full(messages, -1, np.int64)
    for t in range(rows):
        if kind[t] == DELIVER:
            last[message[t]] = t
    slot = np.full(rows, -1, np.int32)
    of = np.full(messages, -1, np.int32)
    free = np.empty(messages + 1, np.int32)
    many, used = 0, 0
    for t in range(rows):
        m = message[t]
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
            if last[m] == t and of[m] >= 0:
                free[many] = of[m]
                many += 1
    return slot, used
