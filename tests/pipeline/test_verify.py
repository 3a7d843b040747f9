"""Verification on executors finds what it finds here."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from causewire.pipeline.verify import check_units
from causewire.verify import (
    SearchOptions,
    Setup,
    Summary,
    Unit,
    parse,
    run_units,
    unicasts,
    up_to_renaming,
)
from causewire.verify.check import with_m1

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def numbers(summary: Summary) -> tuple[int, ...]:
    return (summary.done, summary.states, summary.transitions, summary.depth)


def test_workloads_are_spread(spark: SparkSession) -> None:
    setup = Setup("csps", 3)
    programs = up_to_renaming(unicasts(3, 1))
    units = [Unit(setup, program, SearchOptions(engine="python")) for program in programs]
    there = run_units(units, elsewhere=partial(check_units, spark))
    here = run_units(units, workers=1)
    assert numbers(there) == numbers(here)
    assert there.complete
    assert there.shortest is None


def test_choices_of_the_marked_message_are_spread(spark: SparkSession) -> None:
    """The same program, once for each message that may be overtaken."""
    program = parse("0>2,1; 1>2; 2>")
    units = with_m1(Unit(Setup("fifo", 3), program, SearchOptions(engine="python")))
    summary = run_units(units, elsewhere=partial(check_units, spark), keep_going=True)
    assert summary.done == 3
    assert summary.violating == 1
    assert summary.shortest is not None
    assert summary.shortest.violation is not None
    assert summary.shortest.violation.kind == "causal order"
    assert len(summary.shortest.violation.steps) == 5
