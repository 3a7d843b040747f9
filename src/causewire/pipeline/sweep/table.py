"""The table of runs: the settings of each run, and its results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as F  # noqa: N812

from ..errors import PipelineError, reason
from . import results
from .experiment import Run

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["JOURNAL", "derived", "parameters_of", "results_of", "table_of"]

JOURNAL = f"end string, code string, row struct<{results.ddl(': ')}>"
"""The schema of a journal: what of it makes the table."""

_FIRST = ("grid", "protocol", "workload", "processes", "messages", "seed")


def parameters_of(spark: SparkSession, runs: Sequence[Run]) -> DataFrame:
    """Every setting of every run, one column each; `place` keeps their order.

    A setting that no run has is left out (but it is in `config`, as null).
    """
    import pyarrow as pa

    names = list(dict.fromkeys(name for run in runs for name in run.parameters))
    names = [*_FIRST[1:], *(name for name in names if name not in _FIRST)]
    columns: dict[str, Any] = {
        "place": pa.array(range(len(runs)), pa.int64()),
        "run": pa.array([run.run for run in runs], pa.string()),
        "grid": pa.array([run.grid for run in runs], pa.string()),
    }
    for name in names:
        values = [run.parameters.get(name) for run in runs]
        if any(value is not None for value in values):
            columns[name] = _column(values)
    columns["config"] = pa.array([run.config for run in runs], pa.string())
    return spark.createDataFrame(pa.table(columns))


def _column(values: Sequence[Any]) -> Any:
    """An Arrow array of the narrowest type that holds them all."""
    import pyarrow as pa

    kinds = {type(value) for value in values if value is not None}
    if len(kinds) == 1:
        return pa.array(values)
    if kinds == {int, float}:
        return pa.array([None if v is None else float(v) for v in values], pa.float64())
    return pa.array([None if v is None else str(v) for v in values], pa.string())


def results_of(entries: DataFrame, code: str) -> DataFrame:
    """The rows that a journal has kept, those of this code, each once."""
    ended = entries.where((F.col("end").isNotNull()) & (F.col("code") == code))
    return ended.select("row.*").dropDuplicates(["run"])


def table_of(parameters: DataFrame, rows: DataFrame, partitions: int = 1) -> DataFrame:
    """Settings and results of each run, in the order of the experiment."""
    joined = rows.join(F.broadcast(parameters), "run")
    if partitions == 1:  # sorting it where it is takes no sample of it first
        ordered = joined.coalesce(1).sortWithinPartitions("place")
    else:
        ordered = joined.repartitionByRange(partitions, "place").sortWithinPartitions("place")
    first = [name for name in _FIRST if name in parameters.columns]
    middle = [c for c in rows.columns if c != "run"]
    rest = [c for c in parameters.columns if c not in ("place", "run", *first)]
    return ordered.select(*(f"`{name}`" for name in ["run", *first, *middle, *rest]))


def derived(table: DataFrame, expressions: Mapping[str, str]) -> DataFrame:
    """The table with the columns that an experiment derives, in their order.

    Raises:
        PipelineError: An expression cannot be evaluated.
    """
    for name, expression in expressions.items():
        try:
            table = table.withColumn(name, F.expr(expression))
            _ = table.schema
        except Exception as error:
            raise PipelineError(f"derive.{name}: {reason(error)}") from None
    return table
