"""Metrics on Spark are those of `causewire.metrics`, from tables and from files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from causewire.metrics import measure
from causewire.pipeline import metrics
from causewire.pipeline.limits import Limits
from causewire.trace import TraceError, arrow_schema, open_writer

from ..metrics.runs import simulate_runs


@pytest.fixture(scope="module")
def simulated() -> Any:
    return simulate_runs()[0]


def rows_of(table: pa.Table) -> list[dict[str, Any]]:
    return sorted(table.to_pylist(), key=str)


def test_tables_of_events(spark: SparkSession, simulated: Any) -> None:
    rows = pa.Table.from_pylist([event._asdict() for event in simulated], arrow_schema())
    events = spark.createDataFrame(rows).repartition(2)
    here = list(measure(simulated))
    for name in ("copies", "occupancy", "jobs", "processes"):
        found = getattr(metrics, name)(events).toArrow()
        wanted = pa.concat_tables(getattr(run, name)() for run in here)
        assert rows_of(found.cast(wanted.schema)) == rows_of(wanted), name
    found = metrics.runs(events).toArrow().cast(metrics.RUNS)
    assert rows_of(found) == sorted((run.summary() for run in here), key=str)


def test_files(spark: SparkSession, simulated: Any, tmp_path: Path) -> None:
    """Runs in one file, one of them long; and spread over files, one for each process."""
    wanted = sorted((run.summary() for run in measure(simulated)), key=lambda row: str(row["run"]))
    together, spread = tmp_path / "together", tmp_path / "spread"
    together.mkdir()
    spread.mkdir()
    with open_writer(together / "all.parquet") as writer:
        for event in simulated:
            writer.write(event)
    limits = Limits(large=1000, share=100)
    assert metrics.measure_paths([together], limits=limits).to_pylist() == wanted
    for process in sorted({event.process for event in simulated}):
        with open_writer(spread / f"{process}.parquet") as writer:
            for event in simulated:
                if event.process == process:
                    writer.write(event)
    assert metrics.measure_paths([spread]).to_pylist() == wanted
    (together / "all.parquet").write_bytes(b"PAR1 and nothing else")
    with pytest.raises(TraceError):
        metrics.measure_paths([together])
