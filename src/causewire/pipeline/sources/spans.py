"""Spans on Spark: files are read in parallel, and joined to their senders after one shuffle.

The model, and what a file means, is that of `trace.formats`; here is only who does what.
Each task reads a file, or a part of a large one, and tells for each span in which runs it has a
part; after a shuffle by run, each task makes the rows of whole runs.
"""

from __future__ import annotations

import pickle
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING

import pyarrow as pa

from ...trace.formats.foreign import spans_of_file
from ...trace.formats.parts import Part, count_spans, numbered, parts_of, spans_of_part
from ...trace.formats.rows import Refused, Row, batches_of_rows
from ...trace.formats.spans import Span, SpanOptions, rows_of_run, runs_of
from ..schemas import ALL
from ..tasks import ask, spread_batches

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["NOTE", "PART", "divided", "rows_of_spans"]

NOTE = "note: "
"""How the reason of a row begins that is no row of the source, but a count: `row` times that."""

_SPANS = "run string, item binary"
_SCHEMA = pa.schema([("run", pa.string()), ("item", pa.binary())])
_REFUSED = ""
"""The run of what cannot be understood."""
_ROWS = 4096
PART = 16 << 20
"""Bytes of a large file that one task reads."""


def rows_of_spans(
    spark: SparkSession, files: Sequence[str], kind: str, options: SpanOptions
) -> DataFrame:
    """Return the rows of files of spans, as `ALL`, and notes (`NOTE`) among them."""

    def read(work: str | Part) -> Iterator[pa.RecordBatch]:
        runs: list[str] = []
        found: list[bytes] = []
        for item in spans_of_file(work, kind) if isinstance(work, str) else spans_of_part(work):
            mine = [_REFUSED] if isinstance(item, Refused) else list(runs_of(item, options))
            runs += mine
            found += [pickle.dumps(item)] * len(mine)
            if len(runs) >= _ROWS:
                yield pa.record_batch([runs, found], schema=_SCHEMA)
                runs, found = [], []
        yield pa.record_batch([runs, found], schema=_SCHEMA)

    def join(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return batches_of_rows(_joined(batches, options))

    spans = spread_batches(spark, divided(spark, files, kind), read, _SPANS)
    return spans.repartition("run").sortWithinPartitions("run").mapInArrow(join, ALL)


def divided(spark: SparkSession, files: Sequence[str], kind: str) -> list[str | Part]:
    """Return what each task reads: a file, or a part of a large one of JSON lines."""
    parts = {file: parts_of(file, kind, PART) for file in files}
    large = [part for mine in parts.values() for part in mine]
    counts = iter(ask(spark, large, count_spans, f"count the spans of {len(large)} parts of files"))
    works: list[str | Part] = []
    for file, mine in parts.items():
        found = list(islice(counts, len(mine)))
        works += numbered(mine, found) if max(found, default=0) > 0 <= min(found) else [file]
    return works


def _joined(batches: Iterator[pa.RecordBatch], options: SpanOptions) -> Iterator[Row | Refused]:
    """Yield the rows of runs, whose spans are together, and at the end the notes."""
    notes: Counter[str] = Counter()
    run = _REFUSED
    held: list[Span] = []
    for batch in batches:
        for name, stored in zip(batch["run"].to_pylist(), batch["item"].to_pylist(), strict=True):
            item: Span | Refused = pickle.loads(stored)
            if name != run:
                if held:
                    yield from rows_of_run(run, held, options, notes)
                run, held = name, []
            if isinstance(item, Refused):
                yield item
            else:
                held.append(item)
    if held:
        yield from rows_of_run(run, held, options, notes)
    for note, count in notes.items():
        if count:
            yield Refused("", count, NOTE + note)
