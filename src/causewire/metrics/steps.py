"""The rows that tell of each copy: its send, release, arrival and delivery.

A copy is one message for one destination. Copies are numbered in the order of their sends,
those of a message by destination; messages are found by origin and number in a hash table,
and a copy among those of its message by bisection.

Rows are taken as they are stored if each process's rows are in the order of `seq`, and each
message is sent before it is delivered. Otherwise they are sorted by process, identical rows
are dropped, and an order of sends and deliveries is found along processes and messages.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from .._compiled import Bytes, Longs, Words, compiled
from ..check.order import longest_chains
from ..trace import TraceError
from .rows import DELIVERED, LAST_ARRIVAL, RECEIVED, RELEASED, SENT, RunRows

__all__ = ["Steps", "find_steps"]


class Steps(NamedTuple):
    """Copies, and the rows that tell of them, -1 where there is none."""

    rows: RunRows
    send: Longs
    """Of each message: the row that sends it."""
    begin: Longs
    """Of each message: its first copy. One more, for the end."""
    message: Words
    destination: Words
    release: Longs
    receive: Longs
    deliver: Longs
    """Of each copy; of several rows, the first counts."""
    came: Longs
    """Of each copy: the last arrival at the sender before the release."""
    copy: Words
    """Of each row: the copy that it is a step of; -2 - m for a row that is a step of several
    copies of message m; or -1."""
    delivered: Words
    """Of each row: the message that it delivers, or -1."""
    order: Longs
    """The sends and deliveries of messages, in a causal order."""


def find_steps(rows: RunRows) -> Steps:
    """Return the copies of a run.

    Raises:
        TraceError: The events of the run form a cycle.
    """
    stored = _in_order(rows.process, rows.seq, len(rows.processes))
    if not stored:
        rows = _by_process(rows)
    steps, causal = _steps(rows)
    if causal and stored:
        return steps
    if stored:
        rows = _by_process(rows)
        steps, _ = _steps(rows)
    return steps._replace(order=_causal_order(steps))


@compiled
def _in_order(process: Words, seq: Longs, processes: int) -> bool:
    last = np.full(processes, -1, np.int64)
    for t in range(process.shape[0]):
        p = process[t]
        if seq[t] <= last[p]:
            return False
        last[p] = seq[t]
    return True


def _by_process(rows: RunRows) -> RunRows:
    """Sort by process and `seq`; of rows with the same place, the first counts."""
    order = np.lexsort((rows.seq, rows.process))
    process, seq = rows.process[order], rows.seq[order]
    fresh = np.ones(len(order), np.bool_)
    fresh[1:] = (process[1:] != process[:-1]) | (seq[1:] != seq[:-1])
    return rows.take(order[fresh])


def _steps(rows: RunRows) -> tuple[Steps, bool]:
    """Find the steps, and say whether each message is sent before it is delivered."""
    kind, process, origin, mid = rows.kind, rows.process, rows.origin, rows.mid
    sends = np.flatnonzero((kind == SENT) & (process == origin))
    table = np.full(_size(len(sends)), -1, np.int32)
    send = sends[: _enter(sends, origin, mid, table)]
    begin = np.empty(len(send) + 1, np.int64)
    room = int((rows.first[send + 1] - rows.first[send]).sum())
    destination = np.empty(room, np.int32)
    message = np.empty(room, np.int32)
    many = _destinations(send, rows.first, rows.peers, begin, destination, message)
    destination, message = destination[:many], message[:many]
    release, receive, deliver, came = (np.full(many, -1, np.int64) for _ in range(4))
    copy = np.full(len(kind), -1, np.int32)
    copy[send] = -2 - np.arange(len(send))
    delivered = np.full(len(kind), -1, np.int32)
    causal = _walk(
        kind,
        process,
        origin,
        mid,
        rows.first,
        rows.peers,
        table,
        send,
        begin,
        destination,
        release,
        receive,
        deliver,
        came,
        copy,
        delivered,
        len(rows.processes),
    )
    takes_part = delivered >= 0
    takes_part[send] = True
    order: Longs = np.flatnonzero(takes_part)
    return (
        Steps(
            rows,
            send,
            begin,
            message,
            destination,
            release,
            receive,
            deliver,
            came,
            copy,
            delivered,
            order,
        ),
        causal,
    )


def _causal_order(steps: Steps) -> Longs:
    """Return an order of sends and deliveries; the rows are sorted by process."""
    rows, order = steps.rows, steps.order
    place = np.full(len(rows.kind), -1, np.int64)
    place[order] = np.arange(len(order))
    message = steps.delivered[order]
    sent = np.where(message >= 0, place[steps.send[message]], -1)
    levels = longest_chains(rows.process[order], sent)
    if len(levels) and levels.min() < 0:
        raise TraceError(f"run {rows.run!r}", None, "its events form a cycle")
    result: Longs = order[np.argsort(levels, kind="stable")]
    return result


# -- a hash table of messages -----------------------------------------------------------

_MULTIPLY = np.uint64(0x9E3779B97F4A7C15)
_AGAIN = np.uint64(0xD6E8FEB86659FD93)
_HIGH = np.uint64(32)


def _size(messages: int) -> int:
    size = 16
    while size < 2 * messages:
        size *= 2
    return size


@compiled(inline=True)
def _hashed(origin: int, mid: int, size: int) -> int:
    mixed = (np.uint64(mid) * _MULTIPLY ^ np.uint64(origin)) * _AGAIN
    return int(np.int64(mixed >> _HIGH)) & (size - 1)


@compiled
def _enter(sends: Longs, origin: Words, mid: Longs, table: Words) -> int:
    """Enter messages into the table, and move their sends to the front; the first counts."""
    many = 0
    for k in range(sends.shape[0]):
        t = sends[k]
        at = _hashed(origin[t], mid[t], table.shape[0])
        fresh = True
        while table[at] >= 0:
            s = sends[table[at]]
            if mid[s] == mid[t] and origin[s] == origin[t]:
                fresh = False
                break
            at = (at + 1) & (table.shape[0] - 1)
        if fresh:
            table[at] = many
            sends[many] = t
            many += 1
    return many


@compiled(inline=True)
def _message(table: Words, send: Longs, origins: Words, mids: Longs, origin: int, mid: int) -> int:
    at = _hashed(origin, mid, table.shape[0])
    m = int(table[at])
    while m >= 0 and (mids[send[m]] != mid or origins[send[m]] != origin):
        at = (at + 1) & (table.shape[0] - 1)
        m = int(table[at])
    return m


@compiled(inline=True)
def _copy(begin: Longs, destination: Words, m: int, d: int) -> int:
    lo, hi = int(begin[m]), int(begin[m + 1])
    end = hi
    while lo < hi:
        middle = (lo + hi) >> 1
        if destination[middle] < d:
            lo = middle + 1
        else:
            hi = middle
    return lo if lo < end and destination[lo] == d else -1


@compiled
def _destinations(
    send: Longs, first: Longs, peers: Words, begin: Longs, destination: Words, message: Words
) -> int:
    """List the destinations of each message, each once, in order."""
    k = 0
    for m in range(send.shape[0]):
        begin[m] = k
        start, end = first[send[m]], first[send[m] + 1]
        if end - start == 1:
            destination[k] = peers[start]
            message[k] = m
            k += 1
            continue
        last = np.int32(-1)
        for d in np.sort(peers[start:end]):
            if d != last:
                destination[k] = d
                message[k] = m
                k += 1
                last = d
    begin[send.shape[0]] = k
    return k


@compiled
def _walk(
    kind: Bytes,
    process: Words,
    origin: Words,
    mid: Longs,
    first: Longs,
    peers: Words,
    table: Words,
    send: Longs,
    begin: Longs,
    destination: Words,
    release: Longs,
    receive: Longs,
    deliver: Longs,
    came: Longs,
    copy: Words,
    delivered: Words,
    processes: int,
) -> bool:
    """Find the copies that rows tell of; whether messages are sent before they are delivered."""
    last = np.full(processes, -1, np.int64)  # the last arrival at each process
    causal = True
    for t in range(kind.shape[0]):
        what = kind[t]
        p = process[t]
        if what == RELEASED:
            if p != origin[t]:
                continue
            m = _message(table, send, origin, mid, origin[t], mid[t])
            if m < 0:
                continue
            for k in range(first[t], first[t + 1]):
                c = _copy(begin, destination, m, peers[k])
                if c >= 0 and release[c] < 0:
                    release[c] = t
                    came[c] = last[p]
                    copy[t] = c if first[t + 1] - first[t] == 1 else -2 - m
        elif what in (RECEIVED, DELIVERED):
            m = _message(table, send, origin, mid, origin[t], mid[t])
            c = -1
            if m >= 0:
                c = _copy(begin, destination, m, p)
            if c >= 0:
                if what == DELIVERED:
                    delivered[t] = m
                    if send[m] >= t:
                        causal = False
                    if deliver[c] < 0:
                        deliver[c] = t
                        copy[t] = c
                elif receive[c] < 0:
                    receive[c] = t
                    copy[t] = c
        if what >= RECEIVED and what <= LAST_ARRIVAL:
            last[p] = t
    return causal
