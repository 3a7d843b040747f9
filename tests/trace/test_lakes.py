"""Delta and Iceberg tables: the rows of one version are read, not those of all files."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from causewire.check import check
from causewire.sim import Config, simulate
from causewire.sim.workloads import Relay
from causewire.trace import TraceError, open_trace, open_writer

from ..bucket import empty_bucket

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


def test_a_table_below_a_directory_has_to_be_named(tmp_path: Path) -> None:
    deltalake.write_deltalake(tmp_path / "all" / "table", rows(tmp_path / "b.parquet", 7))
    rows(tmp_path / "all" / "other.parquet", 1)
    with pytest.raises(TraceError, match="table is a table with a log: name it itself"):
        open_trace(tmp_path / "all")


# -- Iceberg -----------------------------------------------------------------------------------


def iceberg_table(place: Path, first: pa.Table, **settings: str) -> Any:
    """A table of a catalog below a directory, with these rows."""
    pytest.importorskip("sqlalchemy")
    catalogs = pytest.importorskip("pyiceberg.catalog.sql")
    place.mkdir(exist_ok=True)
    settings = {"warehouse": place.as_uri(), **settings}
    catalog = catalogs.SqlCatalog("events", uri=f"sqlite:///{place}/catalog.db", **settings)
    catalog.create_namespace("shop")
    table = catalog.create_table("shop.events", schema=first.schema)
    table.append(first)
    catalog.engine.dispose()
    return table


def place_of(table: Any) -> Path:
    """The directory of a table."""
    return Path(str(table.location()).removeprefix("file://"))


def metadata_of(table: Any) -> Path:
    """The metadata file of its current version, which the catalog knows."""
    return Path(table.metadata_location.removeprefix("file://"))


def make_hint(table: Any, version: int) -> None:
    """Name the files as those of a table without a catalog, and note the current version."""
    folder = place_of(table) / "metadata"
    for number, file in enumerate(sorted(folder.glob("*.metadata.json")), 1):
        file.rename(folder / f"v{number}.metadata.json")
    (folder / "version-hint.text").write_text(f"{version}\n")


@pytest.mark.slow
def test_an_iceberg_table_is_read_as_its_metadata_says(tmp_path: Path) -> None:
    first, second = rows(tmp_path / "a.parquet", 1), rows(tmp_path / "b.parquet", 7)
    table = iceberg_table(tmp_path / "lake", first)
    before = metadata_of(table)
    table.overwrite(second.slice(0, 300))
    table.append(second.slice(300))
    assert len(list(place_of(table).rglob("*.parquet"))) == 3
    wanted, found = check(tmp_path / "b.parquet"), check(open_trace(metadata_of(table)))
    assert wanted.violations > 0
    assert found == wanted
    assert check(open_trace(before)) == check(tmp_path / "a.parquet") != found
    with pytest.raises(TraceError, match="only its catalog knows which version is current"):
        open_trace(place_of(table))
    newest = max(place_of(table).glob("metadata/*.metadata.json"))
    make_hint(table, len(list(newest.parent.glob("*.metadata.json"))) - 1)  # the hint is behind
    assert check(open_trace(place_of(table))) == wanted


@pytest.mark.slow
def test_an_iceberg_table_whose_columns_were_renamed(tmp_path: Path) -> None:
    first = rows(tmp_path / "a.parquet", 1).rename_columns({"seq": "number"})
    table = iceberg_table(tmp_path / "lake", first)
    with table.update_schema() as update:
        update.rename_column("number", "seq")
    with pytest.raises(TraceError, match="columns that were renamed or replaced: read it with Sp"):
        open_trace(metadata_of(table))


@pytest.mark.slow
def test_an_iceberg_table_with_delete_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = iceberg_table(tmp_path / "lake", rows(tmp_path / "a.parquet", 1))
    planned = type(table.scan()).plan_files

    def with_deletes(scan: Any) -> Any:
        for task in planned(scan):
            task.delete_files = {task.file}
            yield task

    monkeypatch.setattr(type(table.scan()), "plan_files", with_deletes)
    with pytest.raises(TraceError, match="rows that were deleted by delete files: read it with"):
        open_trace(metadata_of(table))


def test_an_iceberg_table_without_the_package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "metadata").mkdir()
    (tmp_path / "metadata" / "v1.metadata.json").write_text("{}")
    rows(tmp_path / "data.parquet", 7)
    with pytest.raises(TraceError, match="only its catalog knows"):
        open_trace(tmp_path)
    (tmp_path / "metadata" / "version-hint.text").write_text("1")
    monkeypatch.setitem(sys.modules, "pyiceberg.table", None)
    with pytest.raises(TraceError, match=r'pip install "causewire\[iceberg\]"'):
        open_trace(tmp_path)


@pytest.mark.slow
def test_an_iceberg_table_whose_metadata_is_damaged(tmp_path: Path) -> None:
    pytest.importorskip("pyiceberg")
    (tmp_path / "metadata").mkdir()
    (tmp_path / "metadata" / "v1.metadata.json").write_text("{}")
    with pytest.raises(TraceError, match="an Iceberg table that cannot be read"):
        open_trace(tmp_path / "metadata" / "v1.metadata.json")


@pytest.mark.slow
def test_tables_in_a_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = rows(tmp_path / "a.parquet", 1), rows(tmp_path / "b.parquet", 7)
    wanted = check(tmp_path / "b.parquet")
    with empty_bucket(monkeypatch) as store:
        options = {**store.settings, "AWS_ALLOW_HTTP": "true"}
        for data in (first, second):
            deltalake.write_deltalake(
                "s3://runs/delta", data, mode="overwrite", storage_options=options
            )
        settings = {"s3.endpoint": store.settings["AWS_ENDPOINT_URL"], "s3.region": "us-east-1"}
        table = iceberg_table(tmp_path / "lake", first, warehouse="s3://runs/lake", **settings)
        table.overwrite(second)
        assert check(open_trace("s3://runs/delta")) == wanted
        assert check(open_trace(table.metadata_location)) == wanted
        with pytest.raises(TraceError, match="only its catalog knows"):
            open_trace(table.location())
        with pytest.raises(TraceError, match="delta is a table with a log: name it itself"):
            open_trace("s3://runs")
