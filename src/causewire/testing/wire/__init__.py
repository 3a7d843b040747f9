"""Whole transports in the simulator's time, bytes and all, on a network that does its worst.

Everything that a node does short of the socket happens here: datagrams are built,
sealed, lost, copied, delayed, damaged, opened, read; timers fire; processes stand
still, move to another address, die and come back. Time and the network are those of
`causewire.sim`. One seed decides everything, so a run that goes wrong can be repeated:

    python -m causewire.testing.wire --seed 4711

The wire is its own judge (`judge.py`): it complains of causal violations, duplicates
and losses between processes that stay up, and of whatever is left in a buffer.
"""

from .host import Host
from .judge import Judge, JudgedMessage, Verdict
from .runs import play, seeded
from .settings import Faults, WireWorkload
from .wire import Wire

__all__ = [
    "Faults",
    "Host",
    "Judge",
    "JudgedMessage",
    "Verdict",
    "Wire",
    "WireWorkload",
    "play",
    "seeded",
]
