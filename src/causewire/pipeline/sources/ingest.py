"""Both tables of a source at once: the events, and what could not be understood."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from ...trace import NAMES
from ...trace.formats.rows import batches_of_rows
from ...trace.formats.spans import SpanOptions
from ...trace.formats.tables import mapped, mapper
from ...trace.storage import absolute, expand
from ..schemas import ALL
from .source import SPAN_KINDS, register
from .spans import NOTE, rows_of_spans

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["Ingested", "from_table", "ingest"]


@dataclass(frozen=True)
class Ingested:
    """`rows` is everything; the other two are its parts."""

    rows: DataFrame

    @property
    def events(self) -> DataFrame:
        """What was understood, as a trace."""
        return self.rows.where("reason is null").select(*NAMES)

    @property
    def quarantine(self) -> DataFrame:
        """What was not, and why."""
        refused = self.rows.where(f"reason is not null and not startswith(reason, '{NOTE}')")
        return refused.select("file", "row", "reason", "text")

    def understood(self, files: Iterable[str]) -> set[str]:
        """Return those of the files that have events."""
        names = list(files)
        if not names:
            return set()
        rows = self.rows.where("reason is null").select("file").distinct()
        return {row.file for row in rows.where(rows.file.isin(names)).collect()}

    def notes(self) -> Counter[str]:
        """Count what a report should say about the data, in addition to what was found in it."""
        rows = self.rows.where(f"startswith(reason, '{NOTE}')").select("row", "reason").collect()
        notes: Counter[str] = Counter()
        for row in rows:
            notes[row.reason.removeprefix(NOTE)] += row.row
        return notes


def ingest(
    spark: SparkSession, paths: Sequence[str], kind: str = "trace", **options: str
) -> Ingested:
    """Read files with the source `causewire`; options as there.

    Spans are read by many tasks, and joined to their senders after a shuffle by run.
    """
    if kind in SPAN_KINDS:
        files = [absolute(str(file)) for path in paths for file in expand(path)]
        chosen = {name.lower(): value for name, value in options.items()}
        how = SpanOptions.checked(chosen.get("processby"), chosen.get("runby"), chosen.get("run"))
        return Ingested(rows_of_spans(spark, files, "auto" if kind == "spans" else kind, how))
    register(spark)
    reader = spark.read.format("causewire").options(kind=kind, show="all", **options)
    places = [absolute(str(path)) for path in paths]  # Spark may be in another directory
    return Ingested(reader.option("paths", json.dumps(places)).load())


def from_table(table: DataFrame, columns: str | Mapping[str, Any], name: str = "table") -> Ingested:
    """Any table as events; `row` counts within a partition of the table.

    `columns` is the mapping. If it gives no `seq`, but an `order`, a column of
    the table, then the rows of a process are numbered in that order.
    """
    from pyspark.sql import Window
    from pyspark.sql import functions as f

    mapping: dict[str, Any] = dict(json.loads(columns) if isinstance(columns, str) else columns)
    order = mapping.pop("order", None)
    if order is not None:
        keys = [_column(mapping[key]) for key in ("run", "process") if key in mapping]
        along = Window.partitionBy(*[key for key in keys if key]).orderBy(order)
        table = table.withColumn("__seq", f.row_number().over(along) - 1)
        mapping["seq"] = "__seq"
    mapper(mapping)

    def convert(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        apply = mapper(mapping)
        done = 0
        for batch in batches:
            yield from batches_of_rows(mapped(iter(batch.to_pylist()), apply, name, done + 1))
            done += batch.num_rows

    return Ingested(table.mapInArrow(convert, ALL))


def _column(how: Any) -> str | None:
    """The column that a part of a mapping is about."""
    if isinstance(how, str):
        return how
    name = how.get("column") if isinstance(how, Mapping) else None
    return name if isinstance(name, str) else None
