"""The smallest trace that shows what is on the screen, for a bug report."""

from __future__ import annotations

import json
from collections.abc import Sequence

import numpy as np

from .arrays import Longs
from .run import RunData
from .table import NO_TIME
from .window import View, Window

__all__ = ["extract"]

MOST = 20_000
"""Rows of an extract, at most."""


def extract(run: RunData, view: View, window: Window, copies: Sequence[int]) -> bytes:
    """Return rows as JSON lines, which `causewire check` reads.

    Args:
        run: The run to take them from.
        view: The axis on which the window lies.
        window: What is on the screen.
        copies: Messages that matter, such as the chain of a violation. If there
            are any, the extract has only the rows that tell of them.

    Returns:
        The sends and deliveries of these messages, or all rows of the window
        with the sends of everything that is delivered in it. Destinations that
        are not part of the extract are left out, so that nothing counts as
        undelivered that the extract merely does not show.
    """
    c = run.copies
    if copies:
        chosen = np.array(sorted(set(copies)), np.int64)
        rows = np.concatenate([c.send[chosen], c.deliver[chosen]])
    else:
        lanes = np.zeros(len(run.processes), np.bool_)
        lanes[list(window.lanes) if window.lanes is not None else slice(None)] = True
        seen = view.axis.rows_between(window.low, window.high)
        seen = seen[lanes[run.rows.process[seen]]][:MOST]
        inside = np.zeros(len(run), np.bool_)
        inside[seen] = True
        chosen = view.chosen(window)
        known = c.deliver[chosen] >= 0
        shown = chosen[known & (inside[c.send[chosen]] | inside[c.deliver[chosen]])]
        pending = chosen[~known & inside[c.send[chosen]]]
        chosen = np.concatenate([shown, pending])
        rows = np.concatenate([seen, c.send[chosen], c.deliver[shown]])
    rows = np.unique(rows[rows >= 0])
    return _lines(run, rows, chosen)


def _lines(run: RunData, rows: Longs, copies: Longs) -> bytes:
    kept: dict[int, set[int]] = {}
    for send, target in zip(
        run.copies.send[copies].tolist(), run.copies.target[copies].tolist(), strict=True
    ):
        kept.setdefault(send, set()).add(target)
    data, lines = run.rows, []
    for row in rows.tolist():
        peers = data.peers[data.first[row] : data.first[row + 1]].tolist()
        if run.kinds[int(data.kind[row])] == "send":
            peers = [peer for peer in peers if peer in kept.get(row, ())]
            if not peers:
                continue
        time, lamport = int(data.time[row]), int(data.lamport[row])
        origin = int(data.origin[row])
        lines.append(
            json.dumps(
                {
                    "run": run.name,
                    "process": run.processes[int(data.process[row])],
                    "seq": int(data.seq[row]),
                    "time_ns": None if time == NO_TIME else time,
                    "lamport": None if lamport == NO_TIME else lamport,
                    "kind": run.kinds[int(data.kind[row])],
                    "origin": run.processes[origin] if origin >= 0 else None,
                    "mid": int(data.mid[row]) if origin >= 0 else None,
                    "peers": [run.processes[peer] for peer in peers],
                },
                separators=(",", ":"),
            )
            + "\n"
        )
    return "".join(lines).encode()
