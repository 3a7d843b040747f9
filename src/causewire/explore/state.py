"""The state of each process at one point of a run, as far as its trace shows it."""

from __future__ import annotations

from typing import Any

import numpy as np

from .arrays import Longs
from .run import RunData

__all__ = ["state_at"]

_NAMED = 3
"""Messages of a kind that are named; more are counted."""


def state_at(run: RunData, row: int) -> list[dict[str, Any]]:
    """Return what each process has sent and delivered, and what it holds, after a row.

    Rows are in causal order, so what has happened is what comes first.
    """
    c = run.copies
    sent = c.send <= row
    released = (c.release >= 0) & (c.release <= row)
    received = (c.receive >= 0) & (c.receive <= row)
    delivered = (c.deliver >= 0) & (c.deliver <= row)
    gone = released | received | delivered
    known = bool((c.release >= 0).any())
    processes = len(run.processes)
    sends = np.unique(c.send[sent])
    counts = np.bincount(run.rows.process[sends], minlength=processes)
    got = np.bincount(c.target[delivered], minlength=processes)
    holds = _by(run, np.flatnonzero(sent & ~gone), c.source) if known else {}
    keeps = _by(run, np.flatnonzero(received & ~delivered), c.target)
    flies = _by(run, np.flatnonzero((gone if known else sent) & ~received & ~delivered), c.target)
    return [
        {
            "sent": int(counts[p]),
            "delivered": int(got[p]),
            "unsent": holds.get(p, []),
            "held": keeps.get(p, []),
            "coming": flies.get(p, []),
        }
        for p in range(processes)
    ]


def _by(run: RunData, copies: Longs, process: Any) -> dict[int, list[str]]:
    """Return the names of messages by process, the first few of each."""
    result: dict[int, list[str]] = {}
    more: dict[int, int] = {}
    for copy in copies.tolist()[:5000]:
        p = int(process[copy])
        names = result.setdefault(p, [])
        if len(names) < _NAMED:
            names.append(run.message(int(run.copies.send[copy])))
        else:
            more[p] = more.get(p, 0) + 1
    for p, number in more.items():
        result[p].append(f"{number} more")
    return result
