"""Two starts of a process under one name: Spark says what one process says."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from causewire.check import check
from causewire.pipeline.check import check_paths
from causewire.pipeline.limits import Limits
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
