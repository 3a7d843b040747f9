"""Bounded verification: the objects that run, model-checked.

    from causewire.verify import Network, Setup, Unit, run_units, unicasts, up_to_renaming

    setup = Setup("csps", processes=3)
    units = [Unit(setup, workload) for workload in up_to_renaming(unicasts(3, 2))]
    summary = run_units(units)
    assert summary.passed

The parts, from below: `setup` (what is checked), `workloads` (what clients do),
`ghost` (what the check itself keeps), `post` (packets on their way), `event` and
`actor` (one process as tables), `machine` (the system as numbers), `search` and
`compiled`, with `library` and `kernel` (the same search twice),
`reduction` (which packets commute), `check`, `jobs` and `workers` (one workload, and many),
`counterexample`, `lasso` (starvation), `sometimes` (against vacuity), `mutants`
(what must be found).
"""

from .check import How, Result, Unit, Violation, check_unit
from .counterexample import Counterexample
from .jobs import Checkpoint, CheckpointError, Summary, run_units
from .lasso import look
from .mutants import MUTANTS
from .setup import PROPERTIES, Network, Setup
from .workers import WorkerLostError
from .workloads import (
    PROGRAMS,
    Workload,
    WorkloadError,
    broadcasts,
    multicasts,
    parse,
    unicasts,
    up_to_renaming,
    written,
)

__all__ = [
    "MUTANTS",
    "PROGRAMS",
    "PROPERTIES",
    "Checkpoint",
    "CheckpointError",
    "Counterexample",
    "How",
    "Network",
    "Result",
    "Setup",
    "Summary",
    "Unit",
    "Violation",
    "WorkerLostError",
    "Workload",
    "WorkloadError",
    "broadcasts",
    "check_unit",
    "look",
    "multicasts",
    "parse",
    "run_units",
    "unicasts",
    "up_to_renaming",
    "written",
]
