"""What people look at: space-time diagrams of traces.

svg = draw(open_trace("run.parquet").events())
"""

from .spacetime import draw
from .violations import Overtaking, overtakings
from .window import Window, choose

__all__ = ["Overtaking", "Window", "choose", "draw", "overtakings"]
