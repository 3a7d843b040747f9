"""What the simulator refuses."""

from __future__ import annotations

__all__ = ["SimulationError"]


class SimulationError(Exception):
    """What was asked for cannot be simulated; the message is one line that says why."""
