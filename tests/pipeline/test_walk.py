"""The walk of docs/walks.md through a sweep, followed on the shared session."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from causewire.pipeline.sweep import read_experiment, sweep
from causewire.pipeline.sweep.simulation import JournalSettings, TaskAttempt

from ..test_walks import Recording, follow, walks

EXPERIMENT = """
[settings]
messages = 50
[vary]
protocol = ["fifo", "csps"]
"""


@pytest.mark.slow
def test_walk(spark: SparkSession, tmp_path: Path) -> None:
    file = tmp_path / "walk.toml"
    file.write_text(EXPERIMENT)
    (tmp_path / "journal").mkdir()
    recording = Recording()
    with recording():
        experiment = read_experiment(file)
        sweep(spark, experiment, tmp_path / "out")

        # What a task does, here instead of in a worker of Spark.
        settings = JournalSettings(str(tmp_path / "journal"), code="", start="")
        attempt = TaskAttempt(settings, "00000", again=False)
        run = experiment.runs()[0]
        attempt.load([run.run])
        attempt.row(run.run, run.config)
        attempt.close()
    follow(walks()["One sweep"], recording)
