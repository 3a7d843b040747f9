"""How many tasks of the jobs that Spark is running are done."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from .session import is_connect

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["count_tasks", "tasks_told"]

_PAUSE = 0.3
"""Seconds between two questions to Spark."""


def count_tasks(tracker: Any) -> tuple[int, int]:
    """Return how many tasks of all jobs that are running are done, and how many there are.

    Args:
        tracker: The status tracker of a Spark context.
    """
    done = total = 0
    for number in tracker.getActiveJobsIds():
        job = tracker.getJobInfo(number)
        for stage in job.stageIds if job is not None else ():
            info = tracker.getStageInfo(stage)
            if info is not None:  # else its job has ended meanwhile
                done += info.numCompletedTasks
                total += info.numTasks
    return done, total


@contextmanager
def tasks_told(
    spark: SparkSession, tell: Callable[[int, int], None], pause: float = _PAUSE
) -> Iterator[None]:
    """Call `tell` with the tasks that are done and all tasks now and then, while a block runs.

    A Spark Connect server does not say how far it is; with one, `tell` is never called.

    Args:
        spark: The session whose jobs are counted.
        tell: Called from another thread, and only while jobs are running.
        pause: The seconds between two calls.
    """
    if is_connect(spark):
        yield
        return
    tracker = spark.sparkContext.statusTracker()
    over = threading.Event()

    def watch() -> None:
        while not over.wait(pause):
            try:
                done, total = count_tasks(tracker)
            except Exception:  # the session ends, and Py4J raises what it likes
                return
            if total:
                tell(done, total)

    thread = threading.Thread(target=watch, name="causewire-tasks", daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
