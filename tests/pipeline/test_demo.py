"""What `causewire demo` learns from Spark is what it finds out by itself."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from causewire.cli import main
from causewire.demo.judge import judge_here, judge_on_spark

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_both_judges_agree(spark: SparkSession, tmp_path: Path) -> None:
    folders = [tmp_path / name for name in ("fifo", "csps")]
    for folder in folders:
        folder.mkdir()
        run = ["--protocol", folder.name, "--run", folder.name, "--workload", "relay"]
        size = ["--processes", "5", "--messages", "200", "--jitter", "40ms", "--seed", "1"]
        assert main(["simulate", *run, *size, "--trace", str(folder / "all.jsonl")]) == 0
    steps: list[str] = []
    judged = judge_on_spark(folders, None, steps.append, lambda *_: None)
    assert steps == ["starting Spark", "checking fifo", "checking csps", "measuring"]
    for folder, judgement in zip(folders, judged, strict=True):
        here = judge_here(folder)
        assert judgement.report.to_json() == here.report.to_json()
        assert judgement[1:3] == here[1:3]
        assert judgement.metadata == pytest.approx(here.metadata)
        assert judgement.row is not None
        assert judgement.row["run"] == folder.name
    assert not judged[0].report.ordered
    assert judged[1].report.ordered
