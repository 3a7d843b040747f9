"""The first picture of a large run: how many events there are, before messages are joined.

Joining the rows of ten million events takes as long as reading them. Until that
is done the page shows density only, which needs nothing but processes and times.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..report.names import shown
from .arrays import Floats
from .table import NO_TIME, Table
from .window import MOST_EVENTS, Window

__all__ = ["Preview"]


class Preview:
    """Answers the first questions about a run from its rows alone."""

    def __init__(self, table: Table, name: str) -> None:
        rows, processes = table.run(name)
        self._name = name
        self._processes = [shown(process) for process in processes]
        self._process = rows.process
        time = rows.time
        known = bool((time != NO_TIME).all())
        start = int(time.min()) if known else 0
        self._timed = known and int(time.max()) > start
        x = time - start if self._timed else np.arange(len(rows))
        self._x: Floats = x.astype(np.float64)
        self._end = float(self._x.max())

    @staticmethod
    def wanted(table: Table, name: str) -> bool:
        """Tell whether a run is so large that a preview helps."""
        return table.rows_in(name) > 20 * MOST_EVENTS

    def run(self) -> dict[str, Any]:
        """Return what the page has to know about the run."""
        counts = np.bincount(self._process, minlength=len(self._processes))
        return {
            "name": shown(self._name),
            "preview": True,
            "processes": self._processes,
            "events": counts.tolist(),
            "rows": len(self._x),
            "messages": 0,
            "control_per_message": 0.0,
            "copies": 0,
            "timed": self._timed,
            "axis": "time" if self._timed else "order",
            "end": self._end,
            "faults": [],
        }

    def _counted(self, low: float, high: float, bins: int) -> Floats:
        inside = (self._x >= low) & (self._x <= high)
        x, process = self._x[inside], self._process[inside].astype(np.int64)
        column = np.minimum(((x - low) * (bins / (high - low))).astype(np.int64), bins - 1)
        size = len(self._processes) * bins
        counts = np.bincount(process * bins + column, minlength=size)
        result: Floats = counts.reshape(-1, bins).astype(np.float64)
        return result

    def window(self, window: Window) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return the density of a window, and no messages."""
        bins = max(16, min(window.pixels, 2048))
        counts = self._counted(window.low, window.high, bins)
        every = range(len(self._processes)) if window.lanes is None else window.lanes
        lanes = np.array(every, np.int64)
        chosen = counts[lanes].astype(np.float32)
        facts = {
            "exact": False,
            "low": window.low,
            "high": window.high,
            "events": int(chosen.sum()),
            "messages": 0,
            "drawn": 0,
            "bins": bins,
        }
        none, places = np.zeros(0, np.uint32), np.zeros(0)
        arrays: dict[str, Any] = {
            "density_process": lanes.astype(np.uint32),
            "density": chosen,
            "held_sender": np.zeros_like(chosen),
            "held_receiver": np.zeros_like(chosen),
            **dict.fromkeys(("copy", "copy_from", "copy_to"), none),
        }
        ends = ("mid", "send", "release", "receive", "deliver")
        arrays |= {f"copy_{end}": places for end in ends}
        arrays |= {f"copy_{end}_place": none.astype(np.int32) for end in ("send", "deliver")}
        return facts, arrays

    def overview(self, bins: int) -> dict[str, Any]:
        """Return the density of the whole run, all processes together."""
        events = self._counted(0.0, self._end or 1.0, bins).sum(0).astype(np.float32)
        return {"events": events, "sender": events * 0, "receiver": events * 0}
