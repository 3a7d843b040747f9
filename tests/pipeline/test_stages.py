"""How far Spark is, as its status tracker tells."""

from __future__ import annotations

import threading
from types import SimpleNamespace
from typing import TYPE_CHECKING

import pytest

from causewire.pipeline.stages import count_tasks, tasks_told

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class Tracker:
    """A status tracker with two jobs; one of them and one stage have just ended."""

    def getActiveJobsIds(self) -> list[int]:  # noqa: N802
        return [3, 4]

    def getJobInfo(self, job: int) -> SimpleNamespace | None:  # noqa: N802
        return SimpleNamespace(stageIds=[5, 6, 7]) if job == 3 else None

    def getStageInfo(self, stage: int) -> SimpleNamespace | None:  # noqa: N802
        if stage == 6:
            return None
        return SimpleNamespace(numCompletedTasks=stage, numTasks=10)


def test_tasks_of_all_running_jobs_are_counted() -> None:
    assert count_tasks(Tracker()) == (12, 20)


@pytest.mark.slow
def test_tasks_are_told_while_a_job_runs(spark: SparkSession) -> None:
    told: list[tuple[int, int]] = []
    seen = threading.Event()

    def tell(done: int, total: int) -> None:
        told.append((done, total))
        seen.set()

    with tasks_told(spark, tell, pause=0.01):
        for _ in range(20):  # one is enough unless the machine is very slow
            spark.sparkContext.parallelize(range(6), 6).foreach(lambda _: None)
            if seen.is_set():
                break
    assert told
    assert all(0 <= done <= total == 6 for done, total in told)
