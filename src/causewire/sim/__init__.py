"""Deterministic simulation of whole systems, faults included, in simulated time.

from causewire.sim import Config, simulate, workloads

summary = simulate(Config(protocol="csps", workload=workloads.Relay(hops=4), seed=7))
"""

from . import workloads
from .config import Config
from .errors import SimulationError
from .faults import Crash, Fault, Heal, Hold, Partition, Release, Slow
from .network import Network, Regions
from .process import Jobs, Processes
from .recorder import Sink
from .run import simulate
from .sizes import Sizes
from .summary import Summary, Times, Undelivered
from .times import Constant, Exponential, LogNormal, Normal, Time, Uniform

__all__ = [
    "Config",
    "Constant",
    "Crash",
    "Exponential",
    "Fault",
    "Heal",
    "Hold",
    "Jobs",
    "LogNormal",
    "Network",
    "Normal",
    "Partition",
    "Processes",
    "Regions",
    "Release",
    "SimulationError",
    "Sink",
    "Sizes",
    "Slow",
    "Summary",
    "Time",
    "Times",
    "Undelivered",
    "Uniform",
    "simulate",
    "workloads",
]
