"""Work for executors that travels as task arguments, not through a shuffle.

    ask(spark, works, job)

is what `job` returns for each of `works`: a task of its own for each, which looks at
the one value and returns another. `spread_batches` is the same for much data, which
stays in Spark. A task that is run again, because its executor was lost, does the same
again.

Answers travel as bytes. Spark would take a table of them apart and put it together
again, row by row, in a Java machine that needs the cores which the next tasks want.
"""

from __future__ import annotations

import gc
import pickle
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar, cast

import pyarrow as pa

from .session import is_connect

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

__all__ = [
    "arrow_of",
    "ask",
    "described",
    "rows_to_batches",
    "settle",
    "spark_of",
    "spread_batches",
]

A = TypeVar("A")
W = TypeVar("W")
Row = Mapping[str, Any]

_ROWS = 4096
"""Rows of a result that are handed over together."""

_ANSWER = pa.schema([("task", pa.int64()), ("answer", pa.binary())])


def ask(spark: SparkSession, works: Sequence[W], job: Callable[[W], A], what: str = "") -> list[A]:
    """Return what `job` returns for each of the works, which are done at the same time.

    Args:
        spark: The session.
        works: Values that can be pickled, one for each task.
        job: A function of the package, or one that can be pickled.
        what: The description of the job, for Spark's user interface.
    """
    if not works:
        return []
    with described(spark, what):
        return _ask(spark, works, job)


@contextmanager
def described(spark: SparkSession, what: str) -> Iterator[None]:
    """Describe the jobs of a block in Spark's user interface; over Spark Connect, do nothing."""
    if not what or is_connect(spark):
        yield
        return
    spark.sparkContext.setJobDescription(what)
    try:
        yield
    except (KeyboardInterrupt, SystemExit):
        raise  # in the middle of a call to Java, which would fail if another one began now
    except BaseException:
        spark.sparkContext.setLocalProperty("spark.job.description", cast(Any, None))
        raise
    spark.sparkContext.setLocalProperty("spark.job.description", cast(Any, None))


def _ask(spark: SparkSession, works: Sequence[W], job: Callable[[W], A]) -> list[A]:

    def run(task: int, work: W) -> Iterator[pa.RecordBatch]:
        yield pa.record_batch([[task], [pickle.dumps(job(work))]], schema=_ANSWER)

    if not is_connect(spark):
        return _ask_at_once(spark, works, job)
    rows = _spread(spark, works, run, spark_of(_ANSWER)).collect()
    answers = {row.task: row.answer for row in rows}
    return [pickle.loads(answers[task]) for task in range(len(works))]


def _ask_at_once(spark: SparkSession, works: Sequence[W], job: Callable[[W], A]) -> list[A]:
    """The same without a query, which Java takes as long to plan as many a job runs.

    Spark Connect knows nothing but queries.
    """

    def run(works: Iterable[bytes]) -> Iterable[bytes]:
        for work in works:
            yield pickle.dumps(job(pickle.loads(work)))
        settle()

    told = spark.sparkContext.parallelize([pickle.dumps(work) for work in works], len(works))
    return [pickle.loads(answer) for answer in told.mapPartitions(run).collect()]


def spread_batches(
    spark: SparkSession,
    works: Sequence[W],
    job: Callable[[W], Iterator[pa.RecordBatch]],
    schema: str,
) -> DataFrame:
    """The record batches that `job` gives for each of the works."""
    return _spread(spark, works, lambda _, work: job(work), schema)


def _spread(
    spark: SparkSession,
    works: Sequence[W],
    job: Callable[[int, W], Iterator[pa.RecordBatch]],
    schema: StructType | str,
) -> DataFrame:
    told = [pickle.dumps(work) for work in works]  # with the code, once to each executor

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for task in batch["id"].to_pylist():
                yield from job(task, pickle.loads(told[task]))
        settle()

    return spark.range(0, len(works), 1, max(1, len(works))).mapInArrow(run, schema)


_settled = False
"""Of a Python worker: whether it has everything loaded."""


def settle() -> None:
    """To be called when a task ends: makes the way to the next one short.

    PySpark looks for garbage after each task, among all that the worker has loaded:
    with Numba and Arrow that takes as long as many a task. What there is after the
    first stays, and need not be looked at again.
    """
    global _settled
    if not _settled:
        _settled = True
        gc.collect()
        gc.freeze()


def spark_of(schema: pa.Schema) -> StructType:
    """A schema of Arrow as one of Spark."""
    from pyspark.sql.pandas.types import from_arrow_schema

    return from_arrow_schema(schema)


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
