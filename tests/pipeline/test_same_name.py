"""Two starts of a process under one name: Spark says what one process says."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

from causewire.check import OrderError, Report, check
from causewire.check.report import RECEIVED_AGAIN
from causewire.pipeline.check import check_paths
from causewire.pipeline.foreign import check_foreign
from causewire.pipeline.limits import Limits
from causewire.pipeline.namesakes import with_namesakes
from causewire.pipeline.outcomes import OUTCOME, row_of
from causewire.pipeline.pieces import Runs, layout
from causewire.pipeline.schemas import EVENTS
from causewire.trace import NAMES, Event, TraceError, open_trace, write_trace
from causewire.trace.formats.foreign import read_foreign

from ..check.test_same_name import (
    ALIKE,
    DUPLICATE,
    FIRST,
    OTHER,
    OVERTAKEN,
    RECEIVED,
    RECEIVED_TWICE,
    SERVER,
    THREE_TIMES,
    renamed,
)
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


UNSENT = Event("b", "d", 1, 1, 2, "deliver", "c", 1, ("c",))
NAMELESS = [RECEIVED[1]._replace(seq=seq, origin=None, mid=None) for seq in (8, 9)]
RUNS = {
    "received again": [*renamed("a", [*RECEIVED, *FIRST])],
    "never sent": [UNSENT],
    "two more": renamed("c", [*THREE_TIMES, *FIRST]),
    "delivered once": renamed("d", [*RECEIVED_TWICE, *FIRST]),
    "no duplicates": renamed("e", RECEIVED),
    "no message": renamed("f", [*RECEIVED, *NAMELESS, *FIRST]),
    "may be overtaken": renamed("g", [*RECEIVED, *FIRST, *OVERTAKEN]),
    "duplicate": DUPLICATE,
}
"""Runs of every sort, in the order of their names."""


@pytest.mark.slow
@pytest.mark.parametrize("suffix", [".jsonl", ".parquet"])
@pytest.mark.parametrize("more", [[], OVERTAKEN], ids=["", "overtaken"])
def test_the_rule_is_the_same(
    spark: SparkSession, tmp_path: Path, suffix: str, more: list[Event]
) -> None:
    path = tmp_path / f"all{suffix}"
    write_trace(path, [*(event for rows in RUNS.values() for event in rows), *more])
    report = check(open_trace(path), examples=3)
    assert (report.duplicates, report.violations) == (1, 1 + bool(more))
    assert [row.run for row in report.bad_rows] == ["a", "b", "c"]
    assert report.verdict.startswith("NOT" if more else "cannot tell")
    assert check_paths([path], examples=3) == report


@pytest.mark.slow
def test_a_table(spark: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path / "table.parquet")
    write_trace(Path(path), [*RECEIVED, *FIRST])
    columns = json.dumps({name: name for name in NAMES[:-2] if name != "lamport"})
    report = check_foreign([path], "table", columns=columns).report
    assert report.bad.total() == 1
    assert report == check(read_foreign([path], "table", columns=columns).trace)


@pytest.mark.slow
def test_few_columns_are_read_and_only_one_if_no_node_wrote_them(spark: SparkSession) -> None:
    asked: list[list[str]] = []

    def read(rows: list[Event]) -> Callable[[Sequence[str]], DataFrame]:
        table = spark.createDataFrame(rows, EVENTS)

        def selected(columns: Sequence[str]) -> DataFrame:
            asked.append(list(columns))
            return table.select(*columns)

        return selected

    outcome = row_of("r", 0, Report(runs=1, events=7, duplicates=1))
    outcomes = pa.Table.from_pylist([outcome], OUTCOME)
    assert with_namesakes(outcomes, read([*RECEIVED[1:], *FIRST[1:]]), 10) is outcomes
    assert asked == [["kind"]]
    (row,) = with_namesakes(outcomes, read([*RECEIVED, *FIRST]), 10).to_pylist()
    assert (row["duplicates"], dict(row["bad"])) == (0, {RECEIVED_AGAIN: 1})
    assert asked[1:] == [["kind"], ["run", "process", "origin", "mid", "seq", "kind"]]
