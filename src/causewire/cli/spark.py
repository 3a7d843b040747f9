"""Arguments and progress of the commands that run on Spark."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from .errors import CommandError
from .progress import Progress

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from ..pipeline.sweep import SweepState

__all__ = ["SparkProgress", "add_spark_arguments", "config_of"]


def add_spark_arguments(parser: argparse.ArgumentParser) -> None:
    """Add --master and --conf."""
    parser.add_argument(
        "--master",
        metavar="URL",
        help="the Spark master: local[4], spark://host:7077, yarn, sc://host; default: that of "
        "spark-submit, or this machine",
    )
    parser.add_argument(
        "--conf",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="a setting of Spark, as of spark-submit; may be given several times",
    )


def config_of(args: argparse.Namespace) -> dict[str, str]:
    """Return the settings of Spark that the arguments give."""
    config = {}
    for setting in args.conf:
        key, mark, value = setting.partition("=")
        if not mark or not key.startswith("spark."):
            raise CommandError(f"--conf: {setting!r} is not of the form spark.KEY=VALUE")
        config[key] = value
    return config


class SparkProgress:
    """Shows what Spark is doing, and how many tasks of it are done."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self._doing = ""

    def say(self, doing: str) -> None:
        """Show what is being done now."""
        self._doing = doing
        self._progress.say(doing)

    def tasks(self, done: int, total: int) -> None:
        """Show how many tasks are done, and when the rest will be."""
        words = f"{done:,} of {total:,} tasks"
        self._progress.share(f"{self._doing}, {words}" if self._doing else words, done, total)

    def runs(self, state: SweepState) -> None:
        """Show how many runs of a sweep have ended, and when the rest will have."""
        if state.done == state.runs:
            self._progress.say("writing the table of runs")
            return
        text = f"{state.done:,} of {state.runs:,} runs"
        if state.failed:
            text += f", {state.failed:,} failed"
        if state.rate:
            text += f", {state.rate:.3g} a second"
        self._progress.part(text, state.share, state.seconds)

    @contextmanager
    def session(
        self,
        master: str | None,
        config: dict[str, str] | None = None,
        *,
        memory: str | None = None,
        tasks: bool = True,
    ) -> Iterator[SparkSession]:
        """Enter a block with a Spark session whose tasks are shown, unless that is not wanted."""
        from ..pipeline import session
        from ..pipeline.stages import tasks_told

        self._progress.say(f"starting Spark on {master or 'this machine'}")
        with session(master, memory=memory, config=config) as spark:
            if not tasks:
                yield spark
                return
            with tasks_told(spark, self.tasks):
                yield spark
