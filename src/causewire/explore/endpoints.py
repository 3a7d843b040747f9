"""States of endpoints that the model checker leaves next to the trace of a counterexample.

They are in RUN.states.json: for each step what it does, and of each endpoint the fields
that are not empty after it. Step k is at k microseconds in the trace.
"""

from __future__ import annotations

import json
import os
from typing import Any

from ..report.names import visible
from ..verify.states import states_path
from .run import RunData

__all__ = ["EndpointStates"]

_STEP_NS = 1000
_MOST = 50_000_000
"""Bytes of a file that is read."""


class EndpointStates:
    """The states of all endpoints after each step of a counterexample."""

    def __init__(self, steps: list[dict[str, Any]]) -> None:
        self._steps = steps

    @classmethod
    def read(cls, trace: str | os.PathLike[str]) -> EndpointStates | None:
        """Return the states that belong to a trace; None if there are none, or no proper ones."""
        path = states_path(trace)
        try:
            if path.stat().st_size > _MOST:
                return None
            steps = json.loads(path.read_text(encoding="utf-8"))
            return cls([_step(step) for step in steps])
        except (OSError, ValueError, TypeError, KeyError, AttributeError):
            return None

    def after(self, run: RunData, row: int) -> dict[str, Any] | None:
        """Return what the step of a row does, and the state of each process after it."""
        number = int(run.rows.time[row]) // _STEP_NS
        if not 0 <= number < len(self._steps):
            return None
        step = self._steps[number]
        before = self._steps[number - 1]["endpoints"] if number else {}
        return {
            "step": number + 1,
            "steps": len(self._steps),
            "words": step["words"],
            "endpoints": [
                [
                    {"name": name, "value": value, "new": value != before.get(who, {}).get(name)}
                    for name, value in step["endpoints"].get(who, {}).items()
                ]
                for who in run.processes
            ],
        }


def _step(step: dict[str, Any]) -> dict[str, Any]:
    endpoints = {
        who: {visible(name): visible(value) for name, value in state.items()}
        for who, state in step["endpoints"].items()
    }
    return {"words": visible(step["words"]), "endpoints": endpoints}
