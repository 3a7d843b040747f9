"""What the simulator refuses."""

from __future__ import annotations

from ..core.errors import CausewireError

__all__ = ["SimulationError"]


class SimulationError(CausewireError):
    """What was asked for cannot be simulated; the message is one line that says why."""
