"""The study on Spark, reduced to what takes seconds, up to its page."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from campaigns.study.__main__ import run_parts, write_page
from campaigns.study.effort import effort, measure, read_effort
from campaigns.study.page import filled, said
from campaigns.study.parts import FOLDER, Size, experiment
from causewire.report.numbers import estimate

TINY = Size(seeds=2, processes=10, messages=40)


@pytest.mark.slow
def test_a_study_writes_its_page(spark: SparkSession, tmp_path: Path) -> None:
    out = tmp_path / "study"
    parts = ["replay", "scale"]
    run_parts(spark, out, TINY, parts)
    run_parts(None, out, TINY, parts)  # nothing is left, so no session is made
    scale = experiment("scale", TINY, out)
    measured = measure(scale, out / "effort.jsonl", 1)
    assert {row["protocol"] for row in measured} >= {"csps", "ks", "rst"}
    before = (out / "effort.jsonl").read_bytes()
    assert measure(scale, out / "effort.jsonl", 1) == measured
    assert sorted(map(str, read_effort(out / "effort.jsonl"))) == sorted(map(str, measured))
    assert (out / "effort.jsonl").read_bytes() == before

    page = tmp_path / "study.md"
    write_page(out, page, tmp_path / "figures", "How it was run.")
    text = page.read_text("utf-8")
    assert "How it was run." in text
    assert not re.search(r"\{\{|\}\}|None|nan", text)
    assert "| `replay` | Spans of another system, replayed | 32 | 2 |" in text
    assert re.search(r"\| spans in a zone \| `csps` \| \d", text)
    assert re.search(r"\| `rst` \| 10 \| ", text)  # run with up to 10 processes
    assert (tmp_path / "figures" / "study.png").stat().st_size > 10_000


def test_the_template_names_blocks_that_exist() -> None:
    template = (FOLDER / "page.md").read_text("utf-8")
    assert "{{verdict}}" in template
    with pytest.raises(KeyError, match="nothing"):
        filled("{{nothing}}", {})


def test_errors_are_shown_where_they_count() -> None:
    assert said(estimate([1.0, 1.0])) == "1.00"
    assert said(estimate([1.0, 1.2, 1.4])) == "1.20 ± 0.50"
    assert said(estimate([12_345.0])) == "12,345"
    assert said(None) == ""


def test_effort_counts_the_protocol_and_not_the_application() -> None:
    config = '{"protocol": "%s", "messages": 300, "workload": {"kind": "deployment", "size": 40}}'
    matrix, constant = effort(config % "rst"), effort(config % "mf")
    assert matrix["state_mean"] > 40 * 40 / 4
    assert matrix["state_mean"] > 10 * constant["state_mean"]
    assert constant["cpu_us_per_message"] > 0
