"""Verification on executors: workloads have nothing to do with one another.

A unit is a value, and so is what comes of it; each is a task. What a search needs
beside it, its tables, an executor makes for itself and keeps for the next task.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from ..verify import Result, Unit, check_unit
from .errors import PipelineError, reason
from .tasks import spread

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["check_units"]

_Work = tuple[int, Unit]


def check_units(spark: SparkSession, works: Sequence[_Work]) -> list[tuple[int, Result]]:
    """What comes of each unit, with its number."""
    try:
        rows = spread(spark, works, _check, "unit int, result binary").collect()
    except Exception as error:  # Py4J, gRPC and the JVM raise what they like
        raise PipelineError(f"the search on Spark failed: {reason(error)}") from None
    return [(row.unit, pickle.loads(row.result)) for row in rows]


def _check(work: _Work) -> Iterator[dict[str, Any]]:
    number, unit = work
    yield {"unit": number, "result": pickle.dumps(check_unit(unit))}
