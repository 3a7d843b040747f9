"""The report of traces that Spark checks and measures."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from causewire import cli
from causewire.sim import Config, simulate
from causewire.trace import open_writer

from ..report.sweep_folder import read_csv

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SYSTEM = {"workload": "relay", "processes": 4, "messages": 1500, "seed": 7}


def test_where_the_time_went(
    spark: SparkSession,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    traces = Path("traces")
    traces.mkdir()
    means = {}
    for protocol in ("csps", "mf"):
        with open_writer(traces / f"{protocol}.parquet") as writer:
            summary = simulate(
                Config.from_dict(SYSTEM | {"protocol": protocol, "messages": 200}),
                writer,
                run=protocol,
            )
        means[protocol] = summary.latency.mean_ns
    assert cli.main(["report", "traces", "--master", "local[2]"]) == 0
    assert capsys.readouterr().out.startswith("traces-report/index.html: causally ordered in ")
    out = Path("traces-report")
    rows = {row["run"]: row for row in read_csv(out / "times.csv")}
    assert {run: float(row["latency_mean_ns"]) for run, row in rows.items()} == pytest.approx(means)
    for row in rows.values():
        held = [float(row[f"{part}_mean_ns"]) for part in ("held_at_sender", "network")]
        whole = sum(held) + float(row["held_at_receiver_mean_ns"])
        assert whole == pytest.approx(float(row["latency_mean_ns"]))
    assert "Where did the time of messages go?" in (out / "index.html").read_text()
