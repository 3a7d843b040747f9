"""Space-time diagrams of traces, and the reports of sweeps and checks.

svg = draw(open_trace("run.parquet").events())
"""

from .spacetime import draw
from .violations import Overtaking, overtakings
from .window import TimeWindow, choose

__all__ = ["Overtaking", "TimeWindow", "choose", "draw", "overtakings"]
