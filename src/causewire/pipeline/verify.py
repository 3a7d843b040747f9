"""Verification on executors: programs have nothing to do with one another.

A unit is a value, and so is its result; each unit is a task. The tables that a search
needs are made by the executor, which keeps them for the next task.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING

from ..verify import Checker, Result, Unit
from .errors import PipelineError, reason
from .tasks import ask

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["check_units"]

_Work = tuple[int, Unit]


@cache
def _checker() -> Checker:
    """Return the checker of this executor process, which keeps tables between tasks."""
    return Checker()


def check_units(spark: SparkSession, works: Sequence[_Work]) -> list[tuple[int, Result]]:
    """What comes of each unit, with its number.

    Raises:
        PipelineError: The search on Spark failed.
    """
    try:
        return ask(spark, works, _check)
    except Exception as error:  # Py4J, gRPC and the JVM raise what they like
        raise PipelineError(f"the search on Spark failed: {reason(error)}") from None


def _check(work: _Work) -> tuple[int, Result]:
    number, unit = work
    return number, _checker().check(unit)
