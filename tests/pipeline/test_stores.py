"""Traces in an object store and tables of other systems, checked on Spark as files are."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as f

from causewire.check import check
from causewire.pipeline import PipelineError, large
from causewire.pipeline.check import check_dataframe, check_paths
from causewire.pipeline.metrics import measure_paths
from causewire.pipeline.outcomes import OUTCOME, report_of
from causewire.pipeline.stretches import over_stretches
from causewire.trace import write_trace

from ..bucket import Bucket
from .runs import SMALL, frame_of, long_run, noting


@pytest.mark.slow
def test_a_store_on_spark(spark: SparkSession, bucket: Bucket, tmp_path: Path) -> None:
    """A long run in one file, and in files of nodes, gives the report of the local files."""
    events = long_run(7, steps=300, causal=False)
    write_trace(tmp_path / "whole.parquet", events)
    names = sorted({event.process for event in events})
    for name in names:
        write_trace(tmp_path / f"{name}.parquet", [e for e in events if e.process == name])
    files = {"whole/a trace.parquet": "whole.parquet"}
    files |= {f"nodes/{name}.parquet": f"{name}.parquet" for name in names}
    for name, file in files.items():
        bucket.write(name, (tmp_path / file).read_bytes())
    wanted = check(tmp_path / "whole.parquet")
    assert wanted.violations > 0
    for place in ("s3://runs/whole", "s3://runs/nodes"):
        found = check_paths([place], limits=SMALL, scratch=tmp_path)
        assert found.to_json() == check(place).to_json()
        assert found.violations == wanted.violations
    (row,) = measure_paths(["s3://runs/nodes"]).to_pylist()
    assert row["delivered"] > 0


def test_any_table_is_checked_in_parallel(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A long run of a table is cut into stretches, a short one is checked whole."""
    events = [*long_run(7, steps=300, causal=False), *long_run(1, name="short", steps=40)]
    shapes: list[Any] = []
    monkeypatch.setattr(large, "over_stretches", noting(shapes, 2, over_stretches))
    frame = frame_of(spark, events).drop("payload_bytes")
    frame = frame.withColumn("time_ns", f.timestamp_micros(f.col("time_ns")))
    outcomes = check_dataframe(frame, limits=SMALL, scratch=tmp_path)
    found = report_of(outcomes.toArrow().cast(OUTCOME), 10)
    assert found.to_json() == check(events[::-1]).to_json()  # which sorts as Spark does
    assert found.violations > 0
    assert shapes[0] > 1
    with pytest.raises(PipelineError, match="the table has no column peers"):
        check_dataframe(frame.drop("peers"))


def test_a_long_run_without_lamport_times_is_not_read_again_and_again(
    spark: SparkSession, tmp_path: Path
) -> None:
    """Its rows are counted, and written once; everything else reads what was written."""
    reads = tmp_path / "reads"
    reads.mkdir()

    def noted(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        (reads / uuid.uuid4().hex).touch()
        yield from batches

    events = long_run(7, steps=300, causal=False)
    frame = frame_of(spark, events).drop("lamport").coalesce(1)
    frame = frame.mapInArrow(noted, frame.schema)
    outcomes = check_dataframe(frame, limits=SMALL, scratch=tmp_path)
    found = report_of(outcomes.toArrow().cast(OUTCOME), 10)
    assert found.violations == check(events).violations > 0
    assert len(list(reads.iterdir())) <= 2
