"""Delta tables: the rows of the last version are read, not those of all files."""

from __future__ import annotations

import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from causewire.check import check
from causewire.sim import Config, simulate
from causewire.sim.workloads import Relay
from causewire.trace import TraceError, open_trace, open_writer

deltalake = pytest.importorskip("deltalake")


def rows(path: Path, seed: int, protocol: str = "fifo") -> pa.Table:
    with open_writer(path) as writer:
        simulate(Config(protocol=protocol, workload=Relay(), messages=200, seed=seed), writer)
    return pq.read_table(path)


def test_a_delta_table_is_read_as_its_log_says(tmp_path: Path) -> None:
    first, second = rows(tmp_path / "a.parquet", 1), rows(tmp_path / "b.parquet", 7)
    table = tmp_path / "table"
    deltalake.write_deltalake(table, first)
    deltalake.write_deltalake(table, second.slice(0, 300), mode="overwrite")
    deltalake.write_deltalake(table, second.slice(300), mode="append")
    assert len(list(table.glob("*.parquet"))) == 3
    wanted, found = check(tmp_path / "b.parquet"), check(open_trace(table))
    assert wanted.violations > 0
    assert (found.events, found.violations) == (wanted.events, wanted.violations)


def test_partitions_of_a_delta_table_are_columns(tmp_path: Path) -> None:
    table = tmp_path / "table"
    deltalake.write_deltalake(table, rows(tmp_path / "b.parquet", 7), partition_by=["run"])
    found = check(open_trace(table))
    assert (found.runs, found.violations) == (1, check(tmp_path / "b.parquet").violations)


def test_a_delta_table_without_the_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "_delta_log").mkdir()
    monkeypatch.setitem(sys.modules, "deltalake", None)
    with pytest.raises(TraceError, match="pip install deltalake"):
        open_trace(tmp_path)


def test_a_delta_table_whose_log_is_damaged(tmp_path: Path) -> None:
    (tmp_path / "_delta_log").mkdir()
    (tmp_path / "_delta_log" / f"{0:020}.json").write_text("nothing")
    with pytest.raises(TraceError, match="a Delta table that cannot be read"):
        open_trace(tmp_path)


def test_an_iceberg_table_is_not_taken_for_a_directory(tmp_path: Path) -> None:
    (tmp_path / "metadata").mkdir()
    (tmp_path / "metadata" / "v1.metadata.json").write_text("{}")
    rows(tmp_path / "data.parquet", 7)
    with pytest.raises(TraceError, match="an Iceberg table: read it with Spark"):
        open_trace(tmp_path)
