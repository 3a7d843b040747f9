"""Two starts of a process under one name: Spark says what one process says."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from causewire.check import OrderError, check
from causewire.pipeline.check import check_paths
from causewire.pipeline.limits import Limits
from causewire.pipeline.pieces import Runs, layout
from causewire.trace import Event, TraceError, open_trace, write_trace

from ..check.test_same_name import ALIKE, FIRST, OTHER, RECEIVED, SERVER
from .runs import SMALL


@pytest.mark.slow
@pytest.mark.parametrize(
    ("suffix", "limits", "second"),
    [
        (".jsonl", None, OTHER),
        (".jsonl", replace(SMALL, large=2), OTHER),
        (".parquet", None, OTHER),
        (".parquet", replace(SMALL, large=2), OTHER),
        (".jsonl", None, ALIKE),
        (".jsonl", replace(SMALL, large=2), ALIKE),
        (".parquet", None, ALIKE),
        (".parquet", replace(SMALL, large=2), ALIKE),
    ],
)
def test_the_error_names_both_files(
    spark: SparkSession, tmp_path: Path, suffix: str, limits: Limits | None, second: list[Event]
) -> None:
    paths = [tmp_path / f"{name}{suffix}" for name in ("a", "first", "second")]
    for path, rows in zip(paths, (SERVER, FIRST, second), strict=True):
        write_trace(path, rows)
    with pytest.raises(TraceError) as local:
        check(open_trace(*paths))
    with pytest.raises(TraceError) as caught:
        check_paths(paths, limits=limits)
    assert str(paths[1]) in str(caught.value)
    assert str(caught.value) == str(local.value)


def starts_in_order() -> list[Event]:
    """Two starts of a client, in an order in which the rows can be checked as they are stored."""
    deliver = [SERVER[0], SERVER[1], SERVER[2]._replace(mid=2)]
    second = ALIKE[1]._replace(seq=7, mid=2)
    return [deliver[0], *FIRST, deliver[1], ALIKE[0], second, deliver[2]]


def test_runs_of_a_task_have_no_second_start(tmp_path: Path) -> None:
    path = tmp_path / "one.parquet"
    write_trace(path, starts_in_order())
    pieces = layout([str(path)])
    with pytest.raises(OrderError, match="starts twice"):
        list(Runs(pieces, 0, len(pieces), ()))
    other = [event._replace(run="s") for event in starts_in_order()[4:]]
    write_trace(path, [*starts_in_order()[:4], *other])
    assert [run.name for run in Runs(layout([str(path)]), 0, 1, ())] == ["r", "s"]


@pytest.mark.slow
@pytest.mark.parametrize("suffix", [".jsonl", ".parquet"])
def test_a_second_start_in_one_file_whose_rows_are_in_order(
    spark: SparkSession, tmp_path: Path, suffix: str
) -> None:
    path = tmp_path / f"one{suffix}"
    write_trace(path, starts_in_order())
    with pytest.raises(TraceError, match="two rows with seq 0") as local:
        check(open_trace(path))
    with pytest.raises(TraceError) as caught:
        check_paths([path])
    assert str(caught.value) == str(local.value)


@pytest.mark.slow
@pytest.mark.parametrize("suffix", [".jsonl", ".parquet"])
@pytest.mark.parametrize("limits", [None, replace(SMALL, large=2)])
def test_messages_of_two_incarnations(
    spark: SparkSession, tmp_path: Path, suffix: str, limits: Limits | None
) -> None:
    paths = [tmp_path / f"{name}{suffix}" for name in ("a", "first")]
    for path, rows in zip(paths, (RECEIVED, FIRST), strict=True):
        write_trace(path, rows)
    report = check_paths(paths, limits=limits)
    assert report.bad.total() == 1
    assert report == check(open_trace(*paths))
