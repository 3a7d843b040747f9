"""The error of the simulator."""

from __future__ import annotations

from ..core.errors import CausewireError

__all__ = ["SimulationError"]


class SimulationError(CausewireError):
    """The settings cannot be simulated; the message is one line that says why."""
