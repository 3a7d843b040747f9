"""Bounded verification: the endpoints that run in a node, model-checked.

    from causewire.verify import NetworkModel, Setup, Unit, run_units, unicasts, up_to_renaming

    setup = Setup("csps", processes=3)
    units = [Unit(setup, program) for program in up_to_renaming(unicasts(3, 2))]
    summary = run_units(units)
    assert summary.passed

The parts, from below: `setup` (what is checked), `programs` (what clients do),
`ghost` (what the check itself keeps), `post` (packets on their way), `event` and
`actor` (one process as tables), `machine` (the system as numbers), `search` and
`compiled`, with `library` and `kernel` (the same search twice),
`reduction` (which packets commute), `check`, `jobs` and `workers` (one program, and many),
`selfcheck` (whether endpoints can be copied and compared), `counterexample`, `lasso`
(starvation), `sometimes` (against vacuity), `mutants` (what must be found), `variants`,
`driver` and `channels` (the calls and the links of a node), `obituaries` (forgetting a
process), `generator` (programs of relays).
"""

from .check import Checker, Result, SafetyViolation, SearchOptions, Unit, check_unit
from .counterexample import Counterexample
from .jobs import Checkpoint, CheckpointError, Summary, run_units
from .lasso import find_starvation
from .mutants import MUTANTS, find
from .programs import (
    PROGRAMS,
    Program,
    ProgramError,
    broadcasts,
    multicasts,
    parse,
    unicasts,
    up_to_renaming,
    written,
)
from .selfcheck import EndpointError
from .setup import PROPERTIES, NetworkModel, Setup
from .workers import WorkerLostError

__all__ = [
    "MUTANTS",
    "PROGRAMS",
    "PROPERTIES",
    "Checker",
    "Checkpoint",
    "CheckpointError",
    "Counterexample",
    "EndpointError",
    "NetworkModel",
    "Program",
    "ProgramError",
    "Result",
    "SafetyViolation",
    "SearchOptions",
    "Setup",
    "Summary",
    "Unit",
    "WorkerLostError",
    "broadcasts",
    "check_unit",
    "find",
    "find_starvation",
    "multicasts",
    "parse",
    "run_units",
    "unicasts",
    "up_to_renaming",
    "written",
]
