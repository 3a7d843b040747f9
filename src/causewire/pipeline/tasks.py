"""Work for executors that is told to them, not sent through a shuffle.

    spread(spark, works, job, "run string, violations bigint")

is a DataFrame of what `job` gives for each of `works`: a task of its own for
each, which looks at the one value and returns rows, to which `task` is added, the
number of the work. A task that is run again, because its executor was lost, does
the same again.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar, cast

import pyarrow as pa

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["arrow_of", "rows_to_batches", "spread", "spread_batches"]

W = TypeVar("W")
Row = Mapping[str, Any]

_ROWS = 4096
"""Rows of a result that are handed over together."""


def spread(
    spark: SparkSession,
    works: Sequence[W],
    job: Callable[[W], Iterable[Row]],
    schema: str,
) -> DataFrame:
    """What `job` returns for each of the works, which are done side by side."""
    schema = f"task int, {schema}"
    arrow = arrow_of(schema)

    def run(task: int, work: W) -> Iterator[pa.RecordBatch]:
        return rows_to_batches(({"task": task, **row} for row in job(work)), arrow)

    return _spread(spark, works, run, schema)


def spread_batches(
    spark: SparkSession,
    works: Sequence[W],
    job: Callable[[W], Iterator[pa.RecordBatch]],
    schema: str,
) -> DataFrame:
    """The same for much data: record batches, and no `task`."""
    return _spread(spark, works, lambda _, work: job(work), schema)


def _spread(
    spark: SparkSession,
    works: Sequence[W],
    job: Callable[[int, W], Iterator[pa.RecordBatch]],
    schema: str,
) -> DataFrame:
    told = [pickle.dumps(work) for work in works]  # with the code, once to each executor

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for task in batch["id"].to_pylist():
                yield from job(task, pickle.loads(told[task]))

    return spark.range(0, len(works), 1, max(1, len(works))).mapInArrow(run, schema)


def arrow_of(schema: str) -> pa.Schema:
    """A schema in Spark's words as one of Arrow."""
    from pyspark.sql.pandas.types import to_arrow_schema
    from pyspark.sql.types import StructType

    return to_arrow_schema(cast(StructType, StructType.fromDDL(schema)))


def rows_to_batches(rows: Iterable[Row], schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """Rows as record batches."""
    some: list[Row] = []
    for row in rows:
        some.append(row)
        if len(some) == _ROWS:
            yield pa.RecordBatch.from_pylist(some, schema)
            some = []
    if some:
        yield pa.RecordBatch.from_pylist(some, schema)
