"""What was behind an ack or a permit: the packets that had to arrive before it could leave.

A process that waits for a permit waits for whatever its sender waits for, and so
on, often until a process is found that was slow or frozen. A trace shows that
chain: the row in which a packet left follows the arrival that made it leave.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from .run import RunData
from .table import RECEIVED

__all__ = ["Leg", "arrival_before", "behind"]

_LONGEST = 5
"""Packets of a chain, at most."""

_LOOK_BACK = 200
"""Rows before an event in which its cause is looked for."""

_ARRIVALS = ("ack_receive", "permit_receive", "control_receive")


class Leg(NamedTuple):
    """A packet on its way: the rows of its departure and of its arrival."""

    departure: int
    arrival: int
    words: str


def arrival_before(run: RunData, row: int, lowest: int = -1, *, at_once: bool = True) -> int:
    """Return the row of what last arrived at a process before a row.

    Args:
        run: The run.
        row: The row whose cause is looked for.
        lowest: The place in the process that the cause has to come after.
        at_once: Whether it has to have arrived at the same moment, as in a simulation,
            where a process reacts without delay.

    Returns:
        The row of an arrival, or -1.
    """
    process, place = int(run.rows.process[row]), int(run.place[row])
    for k in range(place - 1, max(lowest, place - 1 - _LOOK_BACK, -1), -1):
        before = run.row_at(process, k)
        if at_once and run.timed and run.rows.time[before] != run.rows.time[row]:
            return -1
        kind = run.rows.kind[before]
        if kind == RECEIVED or run.kinds[int(kind)] in _ARRIVALS:
            return before
    return -1


def _departure(run: RunData, arrival: int) -> int:
    """Return the row in which the packet of an arrival left, or -1."""
    rows = run.rows
    peers = rows.peers[rows.first[arrival] : rows.first[arrival + 1]]
    sort = run.kinds[int(rows.kind[arrival])].removesuffix("_receive")
    if not len(peers) or sort not in run.kinds:
        return -1
    left = np.flatnonzero(
        (rows.kind[:arrival] == run.kinds.index(sort))
        & (rows.process[:arrival] == peers[0])
        & (rows.origin[:arrival] == rows.origin[arrival])
        & (rows.mid[:arrival] == rows.mid[arrival])
    )
    target = rows.process[arrival]
    for row in left[::-1].tolist():
        if target in rows.peers[rows.first[row] : rows.first[row + 1]]:
            return int(row)
    return -1


def behind(run: RunData, arrival: int) -> list[Leg]:
    """Return the packets behind an arrival, from it backwards, each with what it is in words."""
    legs: list[Leg] = []
    while len(legs) < _LONGEST:
        kind = run.kinds[int(run.rows.kind[arrival])]
        if kind not in _ARRIVALS:
            break
        departure = _departure(run, arrival)
        if departure < 0:
            break
        legs.append(Leg(departure, arrival, _words(run, arrival)))
        arrival = arrival_before(run, departure)
        if arrival < 0:
            break
        if run.rows.kind[arrival] == RECEIVED:
            copy = int(run.copies.of_row[arrival])
            if copy >= 0 and run.copies.release[copy] >= 0:
                release = int(run.copies.release[copy])
                legs.append(Leg(release, arrival, f"message {run.message(arrival)}"))
            break
    return legs


def _words(run: RunData, arrival: int) -> str:
    kind = run.kinds[int(run.rows.kind[arrival])].removesuffix("_receive")
    about = f" of {run.message(arrival)}" if run.rows.origin[arrival] >= 0 else ""
    return {"ack": f"ack{about}", "permit": f"permit{about}"}.get(kind, "control packet")
