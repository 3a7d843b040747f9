"""Deterministic simulation of whole systems, including faults, in simulated time.

    from causewire.sim import SimulationConfig, simulate, workloads

    config = SimulationConfig(protocol="csps", workload=workloads.Relay(hops=4), seed=7)
    summary = simulate(config)

`Config` is a short name for `SimulationConfig`.
"""

from . import workloads
from .config import SimulationConfig
from .errors import SimulationError
from .faults import Crash, Fault, Freeze, Heal, Hold, Partition, Release, Slow, Thaw
from .network import Regions, SimulatedNetwork
from .process import Jobs, Processes
from .recorder import Sink
from .run import simulate
from .sizes import Sizes
from .summary import Summary, Times, Undelivered
from .times import Constant, Exponential, LogNormal, Normal, Time, Uniform

Config = SimulationConfig

__all__ = [
    "Config",
    "Constant",
    "Crash",
    "Exponential",
    "Fault",
    "Freeze",
    "Heal",
    "Hold",
    "Jobs",
    "LogNormal",
    "Normal",
    "Partition",
    "Processes",
    "Regions",
    "Release",
    "SimulatedNetwork",
    "SimulationConfig",
    "SimulationError",
    "Sink",
    "Sizes",
    "Slow",
    "Summary",
    "Thaw",
    "Time",
    "Times",
    "Undelivered",
    "Uniform",
    "simulate",
    "workloads",
]
